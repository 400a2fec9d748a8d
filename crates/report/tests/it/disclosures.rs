//! The pages of disclosures: to be read by a person whenever one changes.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use tickpong_record::{FactValue, HOST_FORMAT, HostFacts};
use tickpong_report::{Compared, Style, differences, differences_json, host, host_json};

fn made() -> HostFacts {
    let text = |text: &str| FactValue::Text(text.to_owned());
    let facts = [
        ("bypass.libraries", FactValue::List(Vec::new())),
        ("cpu.governor", text("0-3: performance; 4-7: powersave")),
        ("cpu.isolated", text("2-3")),
        ("cpu.model", text("Some CPU @ 2.60GHz")),
        (
            "kernel.command_line",
            text("isolcpus=domain,managed_irq,2-3 nohz_full=2-3 rcu_nocbs=2-3 mce=ignore_ce audit=0 quiet"),
        ),
        ("kernel.mitigations.spectre_v2", text("Mitigation: Enhanced IBRS")),
        ("nic.firmware", text("8.1.0.1007")),
        ("nic.mtu", FactValue::Integer(1_500)),
        ("nic.name", text("eth2")),
        ("nic.offload.rx-gro", FactValue::Flag(false)),
        ("nic.qdiscs", FactValue::List(vec!["mq".into(), "noqueue".into()])),
        ("state.load", text("0.52")),
    ];
    HostFacts {
        format: HOST_FORMAT,
        role: "alone".into(),
        boot_id: None,
        tickpong_version: "0.1.0".into(),
        binary_sha256: None,
        facts: facts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        absent: BTreeMap::from([("nic.fec.active".into(), "ETHTOOL_MSG_FEC_GET: Operation not supported".into())]),
    }
}

fn other() -> HostFacts {
    let mut other = made();
    other.facts.insert("nic.mtu".into(), FactValue::Integer(9_000));
    other.facts.insert("nic.firmware".into(), FactValue::Text("8.2.0.1000".into()));
    other.facts.insert("nic.name".into(), FactValue::Text("eth3".into()));
    other.facts.insert("nic.fec.active".into(), FactValue::Text("RS".into()));
    other.facts.insert("state.load".into(), FactValue::Text("7.01".into()));
    other.facts.remove("cpu.isolated");
    other.absent.remove("nic.fec.active");
    other
}

fn style(width: usize) -> Style {
    Style { width, colour: false }
}

#[test]
fn a_disclosure() {
    assert_snapshot!(host(&made(), style(80)));
}

#[test]
fn what_differs_has_what_must_match_first() {
    let (one, other) = (made(), other());
    assert_snapshot!(differences(&[Compared { end: "", first: Some(&one), second: Some(&other) }], style(80)));
}

#[test]
fn both_ends_of_two_runs() {
    let (one, other) = (made(), other());
    let ends = [
        Compared { end: "pinger", first: Some(&one), second: Some(&one) },
        Compared { end: "reflector", first: Some(&one), second: Some(&other) },
    ];
    assert_snapshot!(differences(&ends, style(72)));
    let missing = [Compared { end: "reflector", first: Some(&one), second: None }];
    assert!(missing[0].must_match_differs());
    assert_snapshot!(differences(&missing, style(72)));
    let none = [Compared { end: "reflector", first: None, second: None }];
    assert!(!none[0].must_match_differs());
}

#[test]
fn what_differs_for_programs() {
    let (one, other) = (made(), other());
    assert_snapshot!(differences_json(&[Compared { end: "", first: Some(&one), second: Some(&other) }]));
}

#[test]
fn nothing_that_a_host_says_is_obeyed() {
    let mut hostile = made();
    hostile.role = "alone\u{1b}[2J".into();
    hostile.facts.insert("nic.\u{1b}[31m\nbios.version".into(), FactValue::Text("a\nCOMPARABLE\u{202e}".into()));
    hostile.facts.insert("nic.qdiscs".into(), FactValue::List(vec!["\u{9b}2J".into()]));
    hostile.absent.insert("x".repeat(300), "\r\u{7f}".into());
    let one = made();
    let compared = [Compared { end: "", first: Some(&one), second: Some(&hostile) }];
    let pages = [
        host(&hostile, style(80)),
        differences(&compared, style(80)),
        differences_json(&compared),
        host_json(&hostile),
    ];
    for page in &pages {
        assert!(page.chars().all(|c| c == '\n' || !c.is_control()), "{page:?}");
    }
    for page in &pages[..2] {
        assert!(page.lines().all(|line| line.chars().count() <= 80 && !line.starts_with("COMPARABLE")), "{page}");
    }
}
