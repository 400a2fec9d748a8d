//! A page of text, and how lines break on it.

use crate::Style;

/// Holds two words on one line; printed as a blank. No string of a file holds it once it is clean.
pub(crate) const GLUE: char = '\u{a0}';

/// Where the text of a field begins.
const FIELD_INDENT: usize = 15;

/// The colours of a verdict.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Colour {
    Green,
    Red,
    Yellow,
}

/// Lines, none of them wider than the page.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) width: usize,
    colour: bool,
    text: String,
}

impl Page {
    pub(crate) fn new(style: Style) -> Self {
        Self { width: style.width.max(Style::MIN_WIDTH), colour: style.colour, text: String::new() }
    }

    /// One line as it is: whoever lays it out has made it fit.
    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// `key` at the margin and `text` beside it, as many lines as it takes.
    pub(crate) fn field(&mut self, key: &str, text: &str) {
        self.hang(&format!("{key:<FIELD_INDENT$}"), FIELD_INDENT, text);
    }

    /// `head`, then `text`, whose further lines stand at `indent`.
    pub(crate) fn hang(&mut self, head: &str, indent: usize, text: &str) {
        let mut lead = head.to_owned();
        let room = self.width - indent.max(head.chars().count());
        for line in wrap(text, room) {
            self.line(&format!("{lead}{line}"));
            lead = " ".repeat(indent);
        }
    }

    /// A verdict's word in its colour, and why it was given, where there is a reason.
    pub(crate) fn verdict(&mut self, word: &str, colour: Colour, why: &str) {
        let (begin, end) = match (self.colour, colour) {
            (false, _) => ("", ""),
            (true, Colour::Green) => ("\u{1b}[1;32m", "\u{1b}[0m"),
            (true, Colour::Red) => ("\u{1b}[1;31m", "\u{1b}[0m"),
            (true, Colour::Yellow) => ("\u{1b}[1;33m", "\u{1b}[0m"),
        };
        let separator = if why.is_empty() { "" } else { ": " };
        let indent = word.chars().count() + separator.len();
        // Escapes take no room on the line.
        let mut lead = format!("{begin}{word}{end}{separator}");
        for line in wrap(why, self.width - indent) {
            self.line(&format!("{lead}{line}"));
            lead = " ".repeat(indent);
        }
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// `text` in lines of at most `width` characters, broken at blanks, and within a word where it is longer than a line. Never no line.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        for (at, c) in word.chars().enumerate() {
            let line = lines.last_mut().expect("there is always one");
            if at == 0 && used > 0 {
                line.push(' ');
                used += 1;
            }
            if used == width {
                lines.push(String::new());
                used = 0;
            }
            let line = lines.last_mut().expect("there is always one");
            line.push(if c == GLUE { ' ' } else { c });
            used += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_break_at_blanks_and_not_at_glue() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("one two\u{a0}three", 9), ["one", "two three"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("", 10), [""]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_too_wide(text in "[a-z ]{0,200}", width in 1_usize..40) {
            let lines = wrap(&text, width);
            prop_assert!(lines.iter().all(|line| line.chars().count() <= width));
            let letters = |text: &str| text.replace(' ', "");
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }
}
