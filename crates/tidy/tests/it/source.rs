//! A Rust file, read for the checks: its tokens, its tree, and which of its lines are tests.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, Spacing, Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::repository;

/// One token; a group's brackets are tokens of their own, and `::` is one.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// Where it begins; a string may end lines later.
    pub(crate) line: usize,
    pub(crate) last_line: usize,
}

/// One Rust file of the repository.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) tree: syn::File,
    pub(crate) tokens: Vec<Token>,
    tests: Vec<RangeInclusive<usize>>,
}

impl Source {
    /// # Panics
    ///
    /// When `text` is not Rust.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let stream: TokenStream = text.parse().unwrap_or_else(|error| panic!("{path}: read as Rust: {error}"));
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let tree = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: read as Rust: {error}"));
        let mut spans = TestSpans::default();
        spans.visit_file(&tree);
        Self { path: path.to_owned(), text: text.to_owned(), tree, tokens, tests: spans.0 }
    }

    /// Whether the whole file is compiled for tests or benchmarks alone.
    pub(crate) fn is_all_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.contains("/benches/") || self.path.ends_with("/tests.rs")
    }

    /// Whether `line` is compiled for tests alone.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.is_all_test() || self.tests.iter().any(|lines| lines.contains(&line))
    }

    /// The folder of the file's crate, as in `crates/units`.
    pub(crate) fn crate_folder(&self) -> &str {
        let parts = ["/src/", "/tests/", "/benches/", "/examples/"];
        let end = parts.iter().filter_map(|part| self.path.find(part)).min();
        end.map_or("", |end| &self.path[..end])
    }

    /// Whether the file is the root of a library or of a command.
    pub(crate) fn is_crate_root(&self) -> bool {
        let folder = self.crate_folder();
        ["src/lib.rs", "src/main.rs"].iter().any(|root| self.path == format!("{folder}/{root}"))
    }

    /// The lines at which this sequence of tokens begins, given with spaces between: `[ allow (`.
    pub(crate) fn lines_with(&self, sequence: &str) -> Vec<usize> {
        let wanted: Vec<&str> = sequence.split_whitespace().collect();
        let matches = |window: &&[Token]| window.iter().zip(&wanted).all(|(token, text)| token.text == *text);
        self.tokens.windows(wanted.len()).filter(matches).map(|window| window[0].line).collect()
    }

    /// The file's `//!` lines, joined.
    pub(crate) fn head(&self) -> String {
        let lines = self.text.lines().filter_map(|line| line.strip_prefix("//!"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Every Rust file of the repository, read.
pub(crate) fn all() -> Vec<Source> {
    let files = repository::files().into_iter().filter(|file| repository::has_extension(file, "rs"));
    files.map(|file| Source::new(&file, &repository::text(&file).expect("Rust files are UTF-8"))).collect()
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    let mut colon = false;
    for tree in stream {
        let double = colon && matches!(&tree, TokenTree::Punct(mark) if mark.as_char() == ':');
        colon = false;
        let mut push = |text: String, span: Span| {
            tokens.push(Token { text, line: span.start().line, last_line: span.end().line });
        };
        match tree {
            TokenTree::Ident(name) => push(name.to_string(), name.span()),
            TokenTree::Literal(literal) => push(literal.to_string(), literal.span()),
            TokenTree::Punct(_) if double => "::".clone_into(&mut tokens.last_mut().expect("the first colon").text),
            TokenTree::Punct(mark) => {
                colon = mark.as_char() == ':' && mark.spacing() == Spacing::Joint;
                push(mark.to_string(), mark.span());
            }
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(open.to_owned(), group.span_open());
                flatten(group.stream(), tokens);
                let line = group.span_close().start().line;
                tokens.push(Token { text: close.to_owned(), line, last_line: line });
            }
        }
    }
}

/// The lines of the items that carry `#[cfg(test)]` or `#[test]`, attributes included.
#[derive(Default)]
struct TestSpans(Vec<RangeInclusive<usize>>);

impl<'ast> Visit<'ast> for TestSpans {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_test(attributes(item)) {
            let span = item.span();
            self.0.push(span.start().line..=span.end().line);
        } else {
            visit::visit_item(self, item);
        }
    }
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = || attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"));
        attribute.path().is_ident("test") || (attribute.path().is_ident("cfg") && condition())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
//! Head.
fn shipped() { a::b!(\"c::d\"); } // c::d

#[cfg(test)]
mod tests {
    #[test]
    fn not_shipped() {}
}

#[cfg(not(test))]
fn last() {}
";

    #[test]
    fn tests_are_told_from_what_ships() {
        let source = Source::new("crates/units/src/time.rs", FILE);
        let tests: Vec<usize> = (1..=11).filter(|line| source.is_test_line(*line)).collect();
        assert_eq!(tests, [4, 5, 6, 7, 8]);
        assert!(Source::new("crates/units/tests/it/main.rs", FILE).is_test_line(2));
        assert!(Source::new("crates/units/src/time/tests.rs", FILE).is_test_line(2));
    }

    #[test]
    fn sequences_are_found_in_code_and_not_in_text() {
        let source = Source::new("crates/units/src/time.rs", FILE);
        assert_eq!(source.lines_with("a :: b !"), [2]);
        assert_eq!(source.lines_with("c :: d"), [0_usize; 0]);
        assert_eq!(source.lines_with("# [ cfg ("), [4, 10]);
    }

    #[test]
    fn a_file_knows_its_crate() {
        let root = Source::new("crates/units/src/lib.rs", FILE);
        assert!(root.is_crate_root());
        assert_eq!(root.crate_folder(), "crates/units");
        assert_eq!(root.head(), " Head.");
        assert!(!Source::new("crates/units/src/rate/lib.rs", FILE).is_crate_root());
    }
}
