//! Sizes that only shrink.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::findings::{Exception, Finding, after, assert_none, assert_one};
use crate::source::{self, Source};

/// Lines of a file that ship.
const SHIPPED_LINES: usize = 400;
/// Lines of a file, its tests included.
const ALL_LINES: usize = 600;
/// Lines of a function, from its signature to its closing brace.
const FUNCTION_LINES: usize = 70;
/// The same of a test's: a table of rows is long and simple.
const TEST_FUNCTION_LINES: usize = 100;
/// Characters of a line of code.
const CODE_WIDTH: usize = 120;
/// Characters of a line that holds prose, in a comment or a string, which rustfmt leaves alone.
const PROSE_WIDTH: usize = 160;

/// What is larger, and why that is right.
const EXCEPTIONS: &[Exception] = &[];

/// Everything in `source` that is too large.
fn check(source: &Source) -> Vec<Finding> {
    let mut findings = lengths(source);
    findings.extend(widths(source));
    let mut functions = Functions { source, findings };
    functions.visit_file(&source.tree);
    functions.findings
}

fn lengths(source: &Source) -> Vec<Finding> {
    let all = source.text.lines().count();
    let shipped = (1..=all).filter(|line| !source.is_test_line(*line)).count();
    let over = |name, lines, limit| {
        (lines > limit).then(|| Finding::new(name, &source.path, 0, format!("{lines} lines, at most {limit}")))
    };
    over("shipped lines", shipped, SHIPPED_LINES).into_iter().chain(over("all lines", all, ALL_LINES)).collect()
}

fn widths(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_string = |line| source.tokens.iter().any(|token| (token.line..token.last_line).contains(&line));
    for (line, text) in (1..).zip(source.text.lines()) {
        let width = text.chars().count();
        let prose = width > CODE_WIDTH && (text.contains("//") || text.contains('"') || is_string(line));
        let limit = if prose { PROSE_WIDTH } else { CODE_WIDTH };
        if width > limit {
            findings.push(Finding::new("width", &source.path, line, format!("{width} characters, at most {limit}")));
        }
    }
    findings
}

struct Functions<'a> {
    source: &'a Source,
    findings: Vec<Finding>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let (first, last) = (signature.span().start().line, body.span().end().line);
        let lines = last - first + 1;
        let limit = if self.source.is_test_line(first) { TEST_FUNCTION_LINES } else { FUNCTION_LINES };
        if lines > limit {
            let what = format!("`{}` has {lines} lines, at most {limit}", signature.ident);
            self.findings.push(Finding::new("function lines", &self.source.path, first, what));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.measure(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[test]
fn no_file_function_or_line_is_too_large() {
    assert_none(&after(EXCEPTIONS, source::all().iter().flat_map(check).collect()));
}

fn check_text(path: &str, text: &str) -> Vec<Finding> {
    check(&Source::new(path, text))
}

#[test]
fn long_files_are_found() {
    let item = "const A: u8 = 1;\n";
    let tests = |lines| format!("#[cfg(test)]\nmod tests {{\n{}}}\n", item.repeat(lines));
    let path = "crates/wire/src/a.rs";
    assert_none(&check_text(path, &(item.repeat(SHIPPED_LINES) + &tests(100))));
    assert_one(&check_text(path, &item.repeat(SHIPPED_LINES + 1)), "shipped lines: 401 lines, at most 400");
    assert_one(&check_text(path, &(item.repeat(300) + &tests(300))), "all lines: 603 lines, at most 600");
    assert_none(&check_text("crates/wire/tests/it/main.rs", &item.repeat(ALL_LINES)));
}

#[test]
fn long_functions_are_found() {
    let body = |lines: usize| format!("{{\n{}}}\n", "    x();\n".repeat(lines - 2));
    let path = "crates/wire/src/a.rs";
    assert_none(&check_text(path, &format!("fn f() {}", body(FUNCTION_LINES))));
    let long = body(FUNCTION_LINES + 1);
    for text in [format!("fn f() {long}"), format!("impl A {{ fn f() {long}}}"), format!("trait A {{ fn f() {long}}}")]
    {
        assert_one(&check_text(path, &text), "a.rs:1: function lines: `f` has 71 lines, at most 70");
    }
    let test = |lines| format!("#[cfg(test)]\nmod tests {{\n#[test]\nfn f() {}}}\n", body(lines));
    assert_none(&check_text(path, &test(TEST_FUNCTION_LINES)));
    assert_one(&check_text(path, &test(TEST_FUNCTION_LINES + 1)), "has 101 lines, at most 100");
}

#[test]
fn wide_lines_are_found() {
    let path = "crates/wire/src/a.rs";
    let code = |name: usize| format!("const {}: u8 = 1;", "A".repeat(name));
    assert_none(&check_text(path, &code(CODE_WIDTH - "const : u8 = 1;".len())));
    assert_one(&check_text(path, &code(CODE_WIDTH)), "a.rs:1: width: 135 characters, at most 120");
    assert_none(&check_text(path, &format!("// {}", "µ".repeat(PROSE_WIDTH - 3))));
    assert_one(
        &check_text(path, &format!("/// {}\nfn f() {{}}", "a".repeat(PROSE_WIDTH))),
        "164 characters, at most 160",
    );
}
