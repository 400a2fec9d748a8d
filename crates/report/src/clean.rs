//! Strings from files, made harmless.

/// `text` with everything escaped that is not seen as itself: control characters, line ends, escapes, reordering and combining marks, and
/// blanks that are none. Quotes and backslashes stay.
///
/// A label, a warning or a version comes from a file, or from the other host: no terminal may obey it, and no line of the page may be forged
/// by it.
pub fn clean(text: &str) -> String {
    let mut harmless = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\'' | '"' | '\\' => harmless.push(c),
            _ => harmless.extend(c.escape_debug()),
        }
    }
    harmless
}

/// At most `width` characters of `text`; an ellipsis says that there was more.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_instead() {
        let rows = [
            ("plain, 'quoted' and \\ µs – fine", "plain, 'quoted' and \\ µs – fine"),
            ("\u{1b}[31mred\u{1b}[0m", "\\u{1b}[31mred\\u{1b}[0m"),
            ("a\nVALID\r\tb", "a\\nVALID\\r\\tb"),
            ("\u{9b}2J \u{7f} \u{0}", "\\u{9b}2J \\u{7f} \\0"),
            ("right\u{202e}left", "right\\u{202e}left"),
            ("no\u{a0}break z\u{200b}w e\u{301}", "no\\u{a0}break z\\u{200b}w e\\u{301}"),
        ];
        for (text, harmless) in rows {
            assert_eq!(clean(text), harmless);
        }
    }

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(cut("tsc", 3), "tsc");
        assert_eq!(cut("µmonotonic", 5), "µmon…");
        assert_eq!(cut("long", 0), "…");
    }
}
