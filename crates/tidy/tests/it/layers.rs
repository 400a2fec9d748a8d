//! Who may import whom.

use std::collections::{BTreeMap, BTreeSet};

use crate::findings::{Finding, assert_none, assert_one};
use crate::repository::{self, Package};
use crate::source::{self, Source};

/// One crate, the tier it lives on, and the crates it imports: all of them, and no others.
struct Row(&'static str, Tier, &'static [&'static str]);

/// A crate imports only from tiers below its own.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Tier {
    L0,
    L1,
    L2,
    L3,
    L4,
    L5,
    L6,
    /// Test only: imports nothing and is imported by nothing.
    Beside,
}

const LAYERS: &[Row] = &[
    Row("units", Tier::L0, &[]),
    Row("wire", Tier::L1, &["units"]),
    Row("stats", Tier::L1, &["units"]),
    Row("hostio", Tier::L1, &["units"]),
    Row("record", Tier::L2, &["units", "stats"]),
    Row("probe", Tier::L3, &["units", "wire", "record"]),
    Row("analyse", Tier::L3, &["units", "stats", "record"]),
    Row("runner", Tier::L4, &["units", "wire", "stats", "hostio", "record", "probe", "analyse"]),
    Row("report", Tier::L4, &["units", "stats", "record"]),
    Row("lab", Tier::L5, &["units", "stats", "hostio", "record", "runner"]),
    Row("cli", Tier::L6, &["units", "record", "runner", "report", "hostio", "lab"]),
    Row("tidy", Tier::Beside, &[]),
];

/// The edges of the table that point up, sideways, or at nothing.
fn tiers(layers: &[Row]) -> Vec<Finding> {
    let tier_of: BTreeMap<&str, Tier> = layers.iter().map(|Row(name, tier, _)| (*name, *tier)).collect();
    let mut findings = Vec::new();
    for Row(name, tier, imports) in layers {
        for import in *imports {
            match tier_of.get(import) {
                Some(below) if below < tier => {}
                Some(other) => findings.push(row_finding(name, format!("on {tier:?} imports `{import}` on {other:?}"))),
                None => findings.push(row_finding(name, format!("imports `{import}`, which has no row"))),
            }
        }
    }
    findings
}

/// Where the table and the manifests disagree.
fn edges(layers: &[Row], packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Row(name, _, imports) in layers {
        let Some(package) = packages.iter().find(|package| package.word() == *name) else {
            findings.push(row_finding(name, "has a row and no package"));
            continue;
        };
        let listed: BTreeSet<&str> = imports.iter().copied().collect();
        let declared: BTreeSet<&str> = package.depends_on.iter().map(String::as_str).collect();
        for edge in declared.difference(&listed) {
            findings.push(row_finding(name, format!("depends on `{edge}`, which its row does not list")));
        }
        for edge in listed.difference(&declared) {
            findings.push(row_finding(name, format!("does not depend on `{edge}`, which its row lists")));
        }
    }
    let rowless = packages.iter().filter(|package| !layers.iter().any(|Row(name, ..)| *name == package.word()));
    findings.extend(rowless.map(|package| row_finding(package.word(), "has a package and no row")));
    findings
}

/// The declared dependencies that no line outside a test mentions.
fn unused(packages: &[Package], sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let own = sources.iter().filter(|source| source.crate_folder() == package.folder);
        let shipped = own.flat_map(|source| source.tokens.iter().filter(|token| !source.is_test_line(token.line)));
        let mentioned: BTreeSet<&str> = shipped.filter_map(|token| token.text.strip_prefix("tickpong_")).collect();
        for edge in package.depends_on.iter().filter(|edge| !mentioned.contains(edge.as_str())) {
            let what = format!("declares `{edge}` and never says `tickpong_{edge}` outside its tests");
            findings.push(row_finding(package.word(), what));
        }
    }
    findings
}

/// Packages whose folder or manifest breaks the habit.
fn manifests(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        if package.name.strip_prefix("tickpong-").is_none() || package.folder != format!("crates/{}", package.word()) {
            let what = format!("lies in `{}`: the folder is the last word of the package's name", package.folder);
            findings.push(Finding::new("folder", &package.name, 0, what));
        }
        let lines: Vec<&str> = package.manifest.lines().map(str::trim).collect();
        if !lines.windows(2).any(|pair| pair == ["[lints]", "workspace = true"]) {
            findings.push(Finding::new("lints", &package.name, 0, "its manifest lacks `[lints] workspace = true`"));
        }
    }
    findings
}

fn row_finding(name: &str, what: impl Into<String>) -> Finding {
    Finding::new("layers", name, 0, what)
}

#[test]
fn a_crate_imports_only_from_tiers_below_its_own() {
    assert_none(&tiers(LAYERS));
}

#[test]
fn the_manifests_declare_the_edges_of_the_table_and_no_others() {
    assert_none(&edges(LAYERS, &repository::packages()));
}

#[test]
fn every_declared_edge_is_used() {
    assert_none(&unused(&repository::packages(), &source::all()));
}

#[test]
fn every_package_lies_in_its_folder_and_takes_the_lints_of_the_workspace() {
    assert_none(&manifests(&repository::packages()));
}

fn package(name: &str, depends_on: &[&str]) -> Package {
    Package {
        name: format!("tickpong-{name}"),
        folder: format!("crates/{name}"),
        depends_on: depends_on.iter().map(ToString::to_string).collect(),
        manifest: "[lints]\nworkspace = true\n".to_owned(),
    }
}

#[test]
fn an_edge_sideways_up_or_nowhere_is_found() {
    let sideways = [Row("wire", Tier::L1, &["stats"]), Row("stats", Tier::L1, &[])];
    assert_one(&tiers(&sideways), "wire: layers: on L1 imports `stats` on L1");
    let up = [Row("units", Tier::L0, &["record"]), Row("record", Tier::L2, &[])];
    assert_one(&tiers(&up), "units: layers: on L0 imports `record` on L2");
    assert_one(&tiers(&[Row("wire", Tier::L1, &["nothing"])]), "has no row");
}

#[test]
fn a_disagreement_of_table_and_manifests_is_found() {
    const TABLE: &[Row] = &[Row("units", Tier::L0, &[]), Row("wire", Tier::L1, &["units"])];
    assert_none(&edges(TABLE, &[package("units", &[]), package("wire", &["units"])]));
    let unlisted = edges(TABLE, &[package("units", &["wire"]), package("wire", &["units"])]);
    assert_one(&unlisted, "units: layers: depends on `wire`, which its row does not list");
    let undeclared = edges(TABLE, &[package("units", &[]), package("wire", &[])]);
    assert_one(&undeclared, "wire: layers: does not depend on `units`, which its row lists");
    let packageless = edges(TABLE, &[package("units", &[])]);
    assert_one(&packageless, "wire: layers: has a row and no package");
    let rowless = edges(TABLE, &[package("units", &[]), package("wire", &["units"]), package("sim", &[])]);
    assert_one(&rowless, "sim: layers: has a package and no row");
}

#[test]
fn a_dependency_used_only_in_tests_or_in_words_is_found() {
    let packages = [package("wire", &["units"])];
    let used = Source::new("crates/wire/src/lib.rs", "use tickpong_units::Seq;");
    assert_none(&unused(&packages, &[used]));
    let in_macro = Source::new("crates/wire/src/lib.rs", "fn f() { write!(x, \"{}\", tickpong_units::Seq::new(1)); }");
    assert_none(&unused(&packages, &[in_macro]));
    let said = "/// See `tickpong_units`.\npub fn f() {}\n#[cfg(test)]\nmod tests { use tickpong_units::Seq; }\n";
    assert_one(&unused(&packages, &[Source::new("crates/wire/src/lib.rs", said)]), "declares `units`");
    let elsewhere = Source::new("crates/stats/src/lib.rs", "use tickpong_units::Seq;");
    assert_one(&unused(&packages, &[elsewhere]), "declares `units`");
}

#[test]
fn a_package_out_of_place_or_without_lints_is_found() {
    let moved = Package { folder: "crates/wires".to_owned(), ..package("wire", &[]) };
    assert_one(&manifests(&[moved]), "tickpong-wire: folder: lies in `crates/wires`");
    let unlinted = Package { manifest: "[lints]\n[dependencies]\n".to_owned(), ..package("wire", &[]) };
    assert_one(&manifests(&[unlinted]), "tickpong-wire: lints:");
}
