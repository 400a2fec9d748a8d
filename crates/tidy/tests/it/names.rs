//! Words and calls that have no place here, or only one.

use syn::visit::{self, Visit};

use crate::findings::{Exception, Finding, after, assert_none, assert_one};
use crate::source::{self, Source};

/// Sequences of tokens that may stand in some crates only.
struct Rule {
    name: &'static str,
    /// Tokens with spaces between.
    sequences: &'static [&'static str],
    /// The last words of the crates where they may stand.
    only_in: &'static [&'static str],
    /// Whether test code is held to it too.
    holds_tests: bool,
    why: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        name: "unsafe",
        sequences: &["unsafe"],
        only_in: &["hostio"],
        holds_tests: true,
        why: "unsafe code lives in hostio",
    },
    Rule {
        name: "clock",
        sequences: &["Instant :: now", "SystemTime :: now", "thread :: sleep", "clock_gettime", "_rdtsc", "__rdtscp"],
        only_in: &["hostio"],
        // Tests may wait and measure; clippy has them sign for it.
        holds_tests: false,
        why: "time is an argument; only hostio reads a clock or sleeps",
    },
    Rule {
        name: "instant",
        sequences: &["from_clock"],
        only_in: &["units", "hostio", "wire", "record", "probe"],
        holds_tests: false,
        why: "only clocks, and decoders of what clocks showed, make instants",
    },
    Rule {
        name: "print",
        sequences: &["println !", "print !", "eprintln !", "eprint !"],
        only_in: &["cli"],
        holds_tests: false,
        why: "only the command prints",
    },
    Rule {
        name: "allow",
        sequences: &["[ allow (", ", allow ("],
        only_in: &[],
        holds_tests: true,
        why: "sign the exception: #[expect(lint, reason = \"…\")]",
    },
    Rule {
        name: "ignore",
        sequences: &["[ ignore"],
        only_in: &[],
        holds_tests: true,
        why: "a test that does not run tests nothing",
    },
    Rule {
        name: "unfinished",
        sequences: &["todo !", "unimplemented !", "dbg !"],
        only_in: &[],
        holds_tests: true,
        why: "finish it, or leave it out",
    },
];

/// Where a rule of this file does not hold.
const EXCEPTIONS: &[Exception] = &[Exception {
    rule: "unsafe",
    path: "crates/probe/tests/it/allocation.rs",
    reason: "an allocator that counts is unsafe by its trait; it hands every call on as it is",
}];

/// Words that no name may hold, and what is said instead.
const BANNED_IN_NAMES: &[(&str, &str)] = &[
    ("client", "pinger"),
    ("master", "pinger"),
    ("server", "reflector"),
    ("ponger", "reflector"),
    ("slave", "reflector"),
    ("hiccup", "fall-behind"),
    ("percentile", "quantile"),
];

/// Words that are no name when they stand alone, and what is said instead.
const BANNED_AS_NAMES: &[(&str, &str)] = &[
    ("sender", "pinger, or transmitter"),
    ("jitter", "say which: send lateness, delay variation"),
    ("latency", "say which: rtt, supply to receive, one-way delay"),
    ("throughput", "say which: offered, achieved or answered rate"),
];

/// Words that no documentation may hold, and what is said instead.
const BANNED_IN_DOCS: &[(&str, &str)] = &[
    ("client", "pinger"),
    ("ponger", "reflector"),
    ("hiccup", "fall-behind"),
    ("master", "pinger"),
    ("slave", "reflector"),
    ("co-corrected", "coordinated omission is avoided, or patched by back-filling"),
];

/// Marks of unfinished work in comments; put together here so that this file holds none.
const BANNED_IN_COMMENTS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Everything in `source` that breaks a rule of this file.
fn check(source: &Source) -> Vec<Finding> {
    let mut findings = sequences(source);
    findings.extend(declared_names(source));
    findings.extend(prose(source));
    if source.is_crate_root() && source.crate_folder() != "crates/hostio" && !forbids_unsafe(source) {
        findings.push(Finding::new("forbid", &source.path, 0, "the crate lacks #![forbid(unsafe_code)]"));
    }
    findings
}

fn sequences(source: &Source) -> Vec<Finding> {
    let word = source.crate_folder().rsplit('/').next().unwrap_or_default();
    let mut findings = Vec::new();
    for rule in RULES.iter().filter(|rule| !rule.only_in.contains(&word)) {
        for sequence in rule.sequences {
            let lines = source.lines_with(sequence).into_iter();
            let held = lines.filter(|line| rule.holds_tests || !source.is_test_line(*line));
            let what = format!("`{}`: {}", sequence.replace(' ', ""), rule.why);
            findings.extend(held.map(|line| Finding::new(rule.name, &source.path, line, what.clone())));
        }
    }
    findings
}

fn forbids_unsafe(source: &Source) -> bool {
    !source.lines_with("# ! [ forbid ( unsafe_code )").is_empty()
}

fn declared_names(source: &Source) -> Vec<Finding> {
    let mut names = Names::default();
    names.visit_file(&source.tree);
    let mut findings = Vec::new();
    for (name, line) in names.0 {
        let words = words_of(&name);
        let holding = BANNED_IN_NAMES.iter().filter(|(banned, _)| words.iter().any(|word| word == banned));
        let being = BANNED_AS_NAMES.iter().filter(|(banned, _)| words == [*banned]);
        for (banned, instead) in holding.chain(being) {
            let what = format!("`{name}` says \"{banned}\"; {instead}");
            findings.push(Finding::new("name", &source.path, line, what));
        }
    }
    findings
}

/// What the file itself names: types, functions, fields, variants, variables. What others named is theirs.
#[derive(Default)]
struct Names(Vec<(String, usize)>);

impl Names {
    fn note(&mut self, name: &syn::Ident) {
        self.0.push((name.to_string(), name.span().start().line));
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            syn::Item::Const(item) => self.note(&item.ident),
            syn::Item::Enum(item) => self.note(&item.ident),
            syn::Item::Mod(item) => self.note(&item.ident),
            syn::Item::Static(item) => self.note(&item.ident),
            syn::Item::Struct(item) => self.note(&item.ident),
            syn::Item::Trait(item) => self.note(&item.ident),
            syn::Item::Type(item) => self.note(&item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.note(&signature.ident);
        visit::visit_signature(self, signature);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        field.ident.iter().for_each(|name| self.note(name));
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.note(&variant.ident);
        visit::visit_variant(self, variant);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.note(&pattern.ident);
        visit::visit_pat_ident(self, pattern);
    }
}

/// `UdpClient`, `udp_client` and `UDP_CLIENT` all hold the words `udp` and `client`.
fn words_of(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut after_small = false;
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && after_small) {
            spaced.push(' ');
        }
        after_small = letter.is_lowercase() || letter.is_ascii_digit();
        spaced.extend(letter.to_lowercase().filter(|letter| *letter != '_'));
    }
    spaced.split_whitespace().map(str::to_owned).collect()
}

fn prose(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, text) in (1..).zip(source.text.lines()) {
        let Some((_, comment)) = text.split_once("//") else { continue };
        for mark in BANNED_IN_COMMENTS.iter().filter(|mark| comment.contains(**mark)) {
            findings.push(Finding::new("unfinished", &source.path, line, format!("`{mark}` in a comment")));
        }
        if !["///", "//!"].iter().any(|mark| text.trim_start().starts_with(mark)) {
            continue;
        }
        // What stands between backquotes is someone's name for a thing.
        let spoken: String = comment.to_lowercase().split('`').step_by(2).collect();
        let words: Vec<&str> = spoken.split(|c: char| !c.is_alphanumeric() && c != '-').collect();
        let says = |banned: &str| words.iter().any(|word| *word == banned || word.strip_suffix('s') == Some(banned));
        for (banned, instead) in BANNED_IN_DOCS.iter().filter(|(banned, _)| says(banned)) {
            findings.push(Finding::new("word", &source.path, line, format!("says \"{banned}\"; {instead}")));
        }
    }
    findings
}

#[test]
fn no_name_call_or_word_is_out_of_place() {
    assert_none(&after(EXCEPTIONS, source::all().iter().flat_map(check).collect()));
}

fn check_text(path: &str, text: &str) -> Vec<Finding> {
    check(&Source::new(path, text))
}

#[test]
fn calls_out_of_place_are_found() {
    let rows = [
        ("unsafe { go() };", "unsafe: `unsafe`"),
        ("let now = std::time::Instant::now();", "clock: `Instant::now`"),
        ("let now = SystemTime::now();", "clock: `SystemTime::now`"),
        ("thread::sleep(a_while);", "clock: `thread::sleep`"),
        ("let at = Instant::<PingerClock>::from_clock(1);", "instant: `from_clock`"),
        ("println!(\"{x}\");", "print: `println!`"),
        ("eprint!(\"{x}\");", "print: `eprint!`"),
        ("#[allow(dead_code)] let x = 1;", "allow: `[allow(`"),
        ("#[cfg_attr(test, allow(dead_code))] let x = 1;", "allow: `,allow(`"),
        ("todo!();", "unfinished: `todo!`"),
        ("unimplemented!(\"later\");", "unfinished: `unimplemented!`"),
        ("dbg!(x);", "unfinished: `dbg!`"),
    ];
    for (statement, expected) in rows {
        let text = format!("fn f() {{\n    {statement}\n}}\n");
        assert_one(
            &check_text("crates/report/src/text.rs", &text),
            &format!("crates/report/src/text.rs:2: {expected}"),
        );
    }
    assert_one(&check_text("crates/cli/tests/it/main.rs", "#[test]\n#[ignore]\nfn f() {}"), "ignore:");
}

#[test]
fn calls_in_their_place_are_not() {
    let rows = [
        ("crates/hostio/src/clock.rs", "fn f() { unsafe { go() }; Instant::now(); }"),
        ("crates/record/src/read.rs", "fn f() { Instant::from_clock(1); }"),
        ("crates/cli/src/print.rs", "fn f() { println!(); }"),
        ("crates/analyse/tests/it/main.rs", "fn f() { thread::sleep(x); Instant::from_clock(1); println!(); }"),
        ("crates/analyse/src/lines.rs", "// Not unsafe { } at all\nfn f() { g(\"todo!\"); }"),
        ("crates/analyse/src/lines.rs", "#[expect(dead_code, reason = \"a law\")]\nfn allow() {}"),
    ];
    for (path, text) in rows {
        assert_none(&check_text(path, text));
    }
}

#[test]
fn a_crate_that_does_not_forbid_unsafe_code_is_found() {
    assert_one(&check_text("crates/wire/src/lib.rs", "//! Head.\n"), "forbid:");
    assert_one(&check_text("crates/cli/src/main.rs", "#![deny(unsafe_code)]\n"), "forbid:");
    assert_none(&check_text("crates/wire/src/lib.rs", "//! Head.\n#![forbid(unsafe_code)]\n"));
    assert_none(&check_text("crates/hostio/src/lib.rs", "//! Head.\n"));
}

#[test]
fn banned_names_are_found_where_they_are_declared() {
    let rows = [
        ("struct UdpClient;", "`UdpClient` says \"client\"; pinger"),
        ("fn start_server() {}", "`start_server` says \"server\"; reflector"),
        ("enum Role { Master }", "`Master` says \"master\""),
        ("struct S { jitter: u64 }", "`jitter` says \"jitter\""),
        ("const LATENCY: u64 = 1;", "`LATENCY` says \"latency\""),
        ("fn f() { let percentile = 1; }", "`percentile` says \"percentile\""),
        ("trait T { fn sender(&self); }", "`sender` says \"sender\""),
    ];
    for (text, expected) in rows {
        assert_one(&check_text("crates/wire/src/a.rs", text), expected);
    }
    assert_none(&check_text("crates/wire/src/a.rs", "use std::sync::mpsc::Sender;\nstruct DmaLatency(http::Client);"));
}

#[test]
fn banned_words_are_found_in_docs_and_marks_in_comments() {
    assert_one(
        &check_text("crates/wire/src/a.rs", "/// Clients send.\npub fn f() {}"),
        "a.rs:1: word: says \"client\"",
    );
    assert_one(&check_text("crates/wire/src/a.rs", "//! A hiccup.\n"), "fall-behind");
    let unfinished = format!("fn f() {{}} // {}: more", BANNED_IN_COMMENTS[0]);
    assert_one(&check_text("crates/wire/src/a.rs", &unfinished), "a.rs:1: unfinished:");
    assert_none(&check_text("crates/wire/src/a.rs", "/// What `client` is to NFS.\nfn f() {}"));
    assert_none(&check_text("crates/wire/src/a.rs", "// The kernel's word for it is client.\nfn f() {}"));
}
