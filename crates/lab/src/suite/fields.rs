//! One table of a suite's file, read field by field; what is wrong is noted, and reading goes on.

use std::str::FromStr;

use tickpong_units::{Nanos, PayloadLen, Rate};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Problem;

/// How alike a known key must be to be suggested (Jaro and Winkler).
const ALIKE: f64 = 0.75;

/// What is wrong so far, and where lines begin.
pub(super) struct Problems<'a> {
    text: &'a str,
    found: Vec<Problem>,
}

impl<'a> Problems<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, found: Vec::new() }
    }

    /// Notes what is wrong at this byte.
    pub(super) fn at(&mut self, byte: usize, what: impl Into<String>) {
        let before = self.text.get(..byte).unwrap_or(self.text);
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        self.found.push(Problem { line, what: what.into() });
    }

    pub(super) fn any(&self) -> bool {
        !self.found.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.found.len()
    }

    /// In the order of the lines; a default that is wrong is wrong once, however many use it.
    pub(super) fn list(mut self) -> Vec<Problem> {
        self.found.sort();
        self.found.dedup();
        self.found
    }
}

/// A table and what it falls back on.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    fields: &'a DeTable<'a>,
    /// Where it stands, for what it lacks.
    pub(super) byte: usize,
    defaults: Option<&'a DeTable<'a>>,
}

impl<'a> Table<'a> {
    pub(super) fn new(table: &'a Spanned<DeValue<'a>>, problems: &mut Problems<'_>, what: &str) -> Option<Self> {
        let fields = table.get_ref().as_table();
        if fields.is_none() {
            problems.at(table.span().start, format!("{what} is {}: want a table", article(table.get_ref())));
        }
        Some(Self { fields: fields?, byte: table.span().start, defaults: None })
    }

    pub(super) fn root(table: &'a Spanned<DeTable<'a>>) -> Self {
        Self { fields: table.get_ref(), byte: 0, defaults: None }
    }

    /// The same, with another to take what it lacks from.
    pub(super) fn or(self, defaults: Option<Self>) -> Self {
        Self { defaults: defaults.map(|table| table.fields), ..self }
    }

    /// Notes every key that is none of these.
    pub(super) fn know(&self, keys: &[&str], problems: &mut Problems<'_>) {
        for key in self.fields.keys() {
            let name: &str = key.get_ref();
            if !keys.contains(&name) {
                let nearest = nearest(name, keys).map(|nearest| format!("; did you mean `{nearest}`?"));
                let wanted = nearest.unwrap_or_else(|| format!("; there are {}", keys.join(", ")));
                problems.at(key.span().start, format!("unknown key `{}`{wanted}", name.escape_debug()));
            }
        }
    }

    pub(super) fn value(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.fields.get(key).or_else(|| self.defaults?.get(key))
    }

    /// Whether the table itself has it.
    pub(super) fn has(&self, key: &str) -> bool {
        self.fields.contains_key(key)
    }

    pub(super) fn text(&self, key: &str, problems: &mut Problems<'_>) -> Option<&'a str> {
        let value = self.value(key)?;
        let text = value.get_ref().as_str();
        if text.is_none() {
            problems.at(value.span().start, format!("{key} is {}: want a text", article(value.get_ref())));
        }
        text
    }

    pub(super) fn flag(&self, key: &str, problems: &mut Problems<'_>) -> Option<bool> {
        let value = self.value(key)?;
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            problems.at(value.span().start, format!("{key} is {}: want true or false", article(value.get_ref())));
        }
        flag
    }

    /// Texts and numbers alike, as the command line has them.
    pub(super) fn parsed<T: FromStr<Err: ToString>>(&self, key: &str, problems: &mut Problems<'_>) -> Option<T> {
        let value = self.value(key)?;
        let text = match value.get_ref() {
            DeValue::String(text) => text.as_ref(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            other => {
                problems.at(value.span().start, format!("{key} is {}: want a number or a text", article(other)));
                return None;
            }
        };
        match text.replace('_', "").parse() {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                problems.at(value.span().start, format!("{key}: {}", error.to_string()));
                None
            }
        }
    }

    pub(super) fn rate(&self, key: &str, problems: &mut Problems<'_>) -> Option<Rate> {
        self.parsed(key, problems)
    }

    pub(super) fn time(&self, key: &str, problems: &mut Problems<'_>) -> Option<Nanos> {
        self.parsed(key, problems)
    }

    pub(super) fn size(&self, key: &str, problems: &mut Problems<'_>) -> Option<PayloadLen> {
        self.parsed(key, problems)
    }

    /// A number within limits.
    pub(super) fn number<T>(
        &self,
        key: &str,
        within: std::ops::RangeInclusive<T>,
        problems: &mut Problems<'_>,
    ) -> Option<T>
    where
        T: FromStr<Err: ToString> + PartialOrd + std::fmt::Display,
    {
        let number = self.parsed(key, problems)?;
        if within.contains(&number) {
            return Some(number);
        }
        let byte = self.value(key).map_or(self.byte, |value| value.span().start);
        problems.at(byte, format!("{key} is {number}: want {} to {}", within.start(), within.end()));
        None
    }
}

/// The known key that is most like it, if one is.
fn nearest<'k>(name: &str, keys: &[&'k str]) -> Option<&'k str> {
    let likeness = |key: &&str| strsim::jaro_winkler(name, key);
    let best = keys.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) >= ALIKE).then_some(best)
}

fn article(value: &DeValue<'_>) -> String {
    let kind = value.type_str();
    let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {kind}")
}
