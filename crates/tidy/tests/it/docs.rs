//! The documents: links that lead somewhere, crates that say what they own, and words that belong to no reader.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::findings::{Finding, assert_none, assert_one};
use crate::repository::{self, Package};
use crate::source::{self, Source};

/// What no file may say, each with its reason; put together here so that this file says none of it.
const BANNED_ANYWHERE: &[(&str, &str)] = &[
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("../sha", "red"), "a path outside the repository"),
    (concat!(".libra", "ry"), "a path outside the repository"),
    (concat!("/ro", "ot/"), "a path of one user"),
    (concat!("BEGIN OPENSSH PRI", "VATE KEY"), "a secret"),
    (concat!("<<<<", "<<< "), "a conflict left behind"),
    (concat!(">>>>", ">>> "), "a conflict left behind"),
];

/// The relative links of the document at `path` that lead nowhere among `files`.
fn dead_links(path: &str, text: &str, files: &BTreeSet<String>, read: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, target) in links(text) {
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (file, anchor) = target.split_once('#').map_or((target.as_str(), None), |(file, a)| (file, Some(a)));
        let linked = if file.is_empty() { path.to_owned() } else { joined(path, file) };
        let folder = format!("{linked}/");
        if !files.contains(&linked) && !files.iter().any(|file| file.starts_with(&folder)) {
            findings.push(Finding::new("link", path, line, format!("`{target}`: there is no {linked}")));
        } else if let Some(anchor) = anchor.filter(|_| repository::has_extension(&linked, "md")) {
            let headings = if linked == path { Some(text.to_owned()) } else { read(&linked) };
            if !headings.is_some_and(|text| anchors(&text).contains(anchor)) {
                findings.push(Finding::new("link", path, line, format!("`{target}`: no such heading in {linked}")));
            }
        }
    }
    findings
}

/// The targets of `[text](target)` and `[text]: target`, with their lines; code is not searched.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (line, text) in prose(text) {
        let spoken = without_code(text);
        if let Some((_, target)) = spoken.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
            links.extend(first_word(target).map(|target| (line, target)));
        }
        for (_, rest) in spoken.match_indices("](").map(|(at, mark)| spoken.split_at(at + mark.len())) {
            let target = rest.split_once(')').map_or(rest, |(target, _)| target);
            links.extend(first_word(target).map(|target| (line, target)));
        }
    }
    links
}

/// Without the title that may follow, nor the brackets that may stand around.
fn first_word(target: &str) -> Option<String> {
    target.split_whitespace().next().map(|word| word.trim_matches(['<', '>']).to_owned())
}

/// The lines outside fenced blocks.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let is_fence = text.trim_start().starts_with("```");
        fenced ^= is_fence;
        if !fenced && !is_fence {
            lines.push((line, text));
        }
    }
    lines
}

fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// What a heading is called in a link.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).into_iter().filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len() && title.starts_with(' ')).then(|| title.trim().to_lowercase())
    });
    let spelled = headings.map(|title| title.replace(' ', "-"));
    spelled.map(|title| title.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()).collect()
}

/// `file` as seen from the folder of `path`, relative to the root.
fn joined(path: &str, file: &str) -> String {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let mut parts: Vec<String> = Vec::new();
    for part in folder.join(file).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    parts.join("/")
}

/// The packages that the map of the repository does not name.
fn unmapped(map: &str, packages: &[Package]) -> Vec<Finding> {
    let named = |word: &str| map.contains(&format!("`{word}`")) || map.contains(&format!("crates/{word}"));
    let unnamed = packages.iter().filter(|package| !named(package.word()));
    unnamed
        .map(|package| Finding::new("map", "ARCHITECTURE.md", 0, format!("does not name {}", package.folder)))
        .collect()
}

/// What the head of a crate leaves out.
fn heads(source: &Source) -> Vec<Finding> {
    let head = if source.is_crate_root() { source.head() } else { return Vec::new() };
    let missing = ["Owns: ", "Does not own: "].into_iter().filter(|part| !head.contains(part));
    missing.map(|part| Finding::new("head", &source.path, 1, format!("the crate's doc lacks `{part}…`"))).collect()
}

fn banned(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        for (words, why) in BANNED_ANYWHERE.iter().filter(|(words, _)| text.contains(words)) {
            findings.push(Finding::new("banned", path, line, format!("`{words}`: {why}")));
        }
    }
    findings
}

#[test]
fn every_link_leads_somewhere() {
    let files: BTreeSet<String> = repository::files().into_iter().collect();
    let documents = files.iter().filter(|file| repository::has_extension(file, "md"));
    let checked = documents.flat_map(|file| {
        let text = repository::text(file).expect("documents are UTF-8");
        dead_links(file, &text, &files, repository::text)
    });
    assert_none(&checked.collect::<Vec<_>>());
}

#[test]
fn the_map_names_every_crate() {
    let map = PathBuf::from("ARCHITECTURE.md");
    assert!(repository::root().join(&map).is_file(), "there is no {}", map.display());
    assert_none(&unmapped(&repository::text("ARCHITECTURE.md").expect("UTF-8"), &repository::packages()));
}

#[test]
fn every_crate_says_what_it_owns() {
    assert_none(&source::all().iter().flat_map(heads).collect::<Vec<_>>());
}

#[test]
fn no_file_says_what_belongs_to_no_reader() {
    let texts = repository::files().into_iter().filter_map(|file| Some((repository::text(&file)?, file)));
    assert_none(&texts.flat_map(|(text, file)| banned(&file, &text)).collect::<Vec<_>>());
}

fn dead_in(text: &str) -> Vec<Finding> {
    let files = ["README.md", "docs/apis.md", "benches/hosts.sh"].map(str::to_owned).into();
    dead_links("docs/apis.md", text, &files, |_| Some("# What it is\n".to_owned()))
}

#[test]
fn dead_links_are_found() {
    assert_one(
        &dead_in("one\n\nsee [that](nowhere.md)"),
        "docs/apis.md:3: link: `nowhere.md`: there is no docs/nowhere.md",
    );
    assert_one(&dead_in("[a]: ../no.sh"), "there is no no.sh");
    assert_one(&dead_in("[x](../README.md#who)"), "no such heading in README.md");
    assert_one(&dead_in("# Here\n[x](#there)"), "no such heading in docs/apis.md");
}

#[test]
fn live_links_and_code_are_not() {
    assert_none(&dead_in("[a](../README.md) [b](https://example.org/x) [c](../benches \"Title\") [d](apis.md)"));
    assert_none(&dead_in(
        "# Why, and *how*?\n[x](#why-and-how) [y](../README.md#what-it-is)\n[z]: <../benches/hosts.sh>",
    ));
    assert_none(&dead_in("`[a](no.md)`\n```sh\n[b](no.md)\n```\n"));
}

#[test]
fn a_crate_missing_from_the_map_is_found() {
    let packages = ["tickpong-units", "tickpong-wire"].map(|name| Package {
        name: name.to_owned(),
        folder: name.replace("tickpong-", "crates/"),
        ..Package::default()
    });
    assert_none(&unmapped("| `units` | … |\n| crates/wire |", &packages));
    assert_one(&unmapped("| `units` | the wire |", &packages), "does not name crates/wire");
}

#[test]
fn a_head_that_leaves_out_what_it_owns_is_found() {
    let head = |text| heads(&Source::new("crates/wire/src/lib.rs", text));
    assert_none(&head("//! Wire.\n//!\n//! Owns: a.\n//! Does not own: b.\n"));
    assert_one(&head("//! Wire.\n//!\n//! Owns: a.\n"), "lacks `Does not own: …`");
    assert_eq!(head("//! Wire.\n").len(), 2);
    assert_none(&heads(&Source::new("crates/wire/src/cursor.rs", "//! A cursor.\n")));
}

#[test]
fn banned_words_are_found() {
    for (words, why) in BANNED_ANYWHERE {
        assert_one(&banned("notes.md", &format!("first\nsee {words}here")), why);
    }
    assert_none(&banned("ci.yml", "path: .github/workflows/ci.yml"));
}
