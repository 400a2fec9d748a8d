//! What a check found, and the exceptions from it that were signed.

use std::fmt;

/// One breach of one rule.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) rule: &'static str,
    pub(crate) path: String,
    /// From one; zero where the whole file is meant.
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl Finding {
    pub(crate) fn new(rule: &'static str, path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { rule, path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}: {}", self.path, self.rule, self.what),
            line => write!(f, "{}:{line}: {}: {}", self.path, self.rule, self.what),
        }
    }
}

/// A place where one rule does not hold, and why that is right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exception {
    pub(crate) rule: &'static str,
    /// A file, or a folder with its closing slash.
    pub(crate) path: &'static str,
    pub(crate) reason: &'static str,
}

impl Exception {
    fn covers(&self, finding: &Finding) -> bool {
        let here =
            if self.path.ends_with('/') { finding.path.starts_with(self.path) } else { finding.path == self.path };
        here && self.rule == finding.rule
    }
}

/// The findings that no exception covers, and one more for each exception that covers nothing: a ratchet only tightens.
pub(crate) fn after(exceptions: &[Exception], findings: Vec<Finding>) -> Vec<Finding> {
    let idle = exceptions.iter().filter(|exception| !findings.iter().any(|finding| exception.covers(finding)));
    let idle: Vec<Finding> = idle
        .map(|exception| {
            let what = format!("this exception is no longer needed, remove it: {}", exception.reason);
            Finding::new(exception.rule, exception.path, 0, what)
        })
        .collect();
    let open = findings.into_iter().filter(|finding| !exceptions.iter().any(|exception| exception.covers(finding)));
    open.chain(idle).collect()
}

/// Fails with every finding, a line each.
pub(crate) fn assert_none(findings: &[Finding]) {
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} to put right:\n{}\n", lines.len(), lines.join("\n"));
}

/// Fails unless exactly one finding says `expected`.
pub(crate) fn assert_one(findings: &[Finding], expected: &str) {
    let says = |finding: &Finding| finding.to_string().contains(expected);
    assert!(findings.len() == 1 && findings.iter().all(says), "want one finding with `{expected}`, got {findings:#?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXCEPTIONS: &[Exception] = &[
        Exception { rule: "width", path: "crates/a/src/lib.rs", reason: "a table" },
        Exception { rule: "unsafe", path: "crates/b/", reason: "all of it" },
    ];

    #[test]
    fn an_exception_covers_its_rule_at_its_path_only() {
        let wide = Finding::new("width", "crates/a/src/lib.rs", 3, "130");
        let bare = Finding::new("unsafe", "crates/b/src/x.rs", 1, "unsafe");
        assert_none(&after(EXCEPTIONS, vec![wide.clone(), bare.clone()]));

        let elsewhere = Finding::new("unsafe", "crates/a/src/lib.rs", 9, "unsafe");
        assert_one(&after(EXCEPTIONS, vec![wide, bare, elsewhere]), "crates/a/src/lib.rs:9: unsafe");
    }

    #[test]
    fn an_exception_that_covers_nothing_is_a_finding() {
        let bare = Finding::new("unsafe", "crates/b/src/x.rs", 1, "unsafe");
        assert_one(&after(EXCEPTIONS, vec![bare]), "no longer needed, remove it: a table");
    }

    #[test]
    #[should_panic(expected = "1 to put right")]
    fn findings_fail() {
        assert_none(&[Finding::new("width", "x.rs", 1, "130")]);
    }
}
