//! A host's disclosure, and how two of them differ.

use serde_json::{Value, json};
use tickpong_record::host::{Class, Difference, Group, Reading, class_of};
use tickpong_record::{FactValue, HostFacts};

use crate::clean::{clean, cut};
use crate::page::{Colour, Page};
use crate::{Style, escaped};

/// Where values begin, unless a key is longer.
const VALUE_INDENT: usize = 36;

/// Two disclosures of one end, and what both ends are called: nothing where there is but one.
#[derive(Clone, Debug)]
pub struct Compared<'a> {
    /// `pinger` or `reflector`, or nothing.
    pub end: &'a str,
    /// The first, where it was made.
    pub first: Option<&'a HostFacts>,
    /// The second, where it was made.
    pub second: Option<&'a HostFacts>,
}

impl Compared<'_> {
    fn differences(&self) -> Vec<Difference<'_>> {
        match (self.first, self.second) {
            (Some(first), Some(second)) => first.differences(second),
            _ => Vec::new(),
        }
    }

    /// Whether a key that must match differs, or one of the two was never made.
    pub fn must_match_differs(&self) -> bool {
        let must = |difference: &Difference<'_>| matches!(difference.class, Class::MustMatch(_));
        self.first.is_some() != self.second.is_some() || self.differences().iter().any(must)
    }
}

/// The page of a disclosure: what must match by group, then the rest.
pub fn host(host: &HostFacts, style: Style) -> String {
    let mut page = Page::new(style);
    let must = |key: &&str| matches!(class_of(key), Class::MustMatch(_));
    page.field("disclosure", &format!("{}, tickpong {}", clean(&host.role), clean(&host.tickpong_version)));
    page.field("hash", &format!("{} of {} keys that must match", host.hash(), host.keys().filter(must).count()));
    let groups = Group::ALL.map(Class::MustMatch);
    for class in groups.into_iter().chain([Class::Informative, Class::Passing]) {
        let keys: Vec<&str> = host.keys().filter(|key| class_of(key) == class).collect();
        if !keys.is_empty() {
            page.blank();
            page.line(&heading(class));
        }
        for key in keys {
            entry(&mut page, key, &said(host.reading(key)));
        }
    }
    page.finish()
}

/// The page of what differs, what must match first.
pub fn differences(compared: &[Compared<'_>], style: Style) -> String {
    let mut page = Page::new(style);
    let differs = compared.iter().any(Compared::must_match_differs);
    let (word, colour) = if differs { ("DIFFERENT", Colour::Red) } else { ("COMPARABLE", Colour::Green) };
    let keys: usize = compared.iter().map(|of| of.differences().iter().filter(|d| is_must(d.class)).count()).sum();
    let why = match keys {
        0 if differs => "an end was disclosed once only".to_owned(),
        0 => "no key that must match differs".to_owned(),
        1 => "one key that must match differs".to_owned(),
        keys => format!("{keys} keys that must match differ"),
    };
    page.verdict(word, colour, &why);
    for of in compared {
        let end = if of.end.is_empty() { String::new() } else { format!("{}, ", of.end) };
        if of.first.is_some() != of.second.is_some() {
            page.blank();
            let which = if of.first.is_some() { "first" } else { "second" };
            page.line(&format!("{end}disclosed by the {which} only"));
        }
        let mut last = None;
        for difference in of.differences() {
            if last != Some(difference.class) {
                page.blank();
                page.line(&format!("{end}{}", heading(difference.class)));
                last = Some(difference.class);
            }
            entry(&mut page, difference.key, &format!("{} → {}", said(difference.first), said(difference.second)));
        }
    }
    page.finish()
}

/// A disclosure as it is written, with its last line's end.
///
/// # Panics
///
/// Never: a disclosure serialises.
pub fn host_json(host: &HostFacts) -> String {
    escaped(serde_json::to_string_pretty(host).expect("a disclosure serialises"))
}

/// What differs, for programs: in the order of the page.
pub fn differences_json(compared: &[Compared<'_>]) -> String {
    let reading = |reading: Reading<'_>| match reading {
        Reading::Value(value) => json!({ "value": value }),
        Reading::Absent(reason) => json!({ "absent": reason }),
        Reading::Untold => Value::Null,
    };
    let difference = |difference: &Difference<'_>| {
        let group = if let Class::MustMatch(group) = difference.class { Some(group.name()) } else { None };
        json!({
            "key": difference.key,
            "must_match": is_must(difference.class),
            "group": group,
            "first": reading(difference.first),
            "second": reading(difference.second),
        })
    };
    let end = |of: &Compared<'_>| {
        json!({
            "end": if of.end.is_empty() { None } else { Some(of.end) },
            "comparable": !of.must_match_differs(),
            "first_hash": of.first.map(HostFacts::hash),
            "second_hash": of.second.map(HostFacts::hash),
            "differences": of.differences().iter().map(difference).collect::<Vec<_>>(),
        })
    };
    escaped(format!("{:#}", Value::Array(compared.iter().map(end).collect())))
}

fn is_must(class: Class) -> bool {
    matches!(class, Class::MustMatch(_))
}

fn heading(class: Class) -> String {
    match class {
        Class::MustMatch(group) => format!("must match: {}", group.name()),
        Class::Informative => "informative".to_owned(),
        Class::Passing => "of this process and this moment".to_owned(),
    }
}

fn entry(page: &mut Page, key: &str, said: &str) {
    // A key of ours is never so long; a file may say anything.
    let key = cut(&clean(key), page.width / 2);
    page.hang(&format!("  {key:<width$}  ", width = VALUE_INDENT - 4), VALUE_INDENT, said);
}

fn said(reading: Reading<'_>) -> String {
    match reading {
        Reading::Value(FactValue::Flag(flag)) => if *flag { "yes" } else { "no" }.to_owned(),
        Reading::Value(FactValue::Integer(number)) => number.to_string(),
        Reading::Value(FactValue::List(list)) if list.is_empty() => "none".to_owned(),
        Reading::Value(FactValue::List(list)) => list.iter().map(|word| clean(word)).collect::<Vec<_>>().join(", "),
        Reading::Value(FactValue::Text(text)) => clean(text),
        Reading::Absent(reason) => format!("absent ({})", clean(reason)),
        Reading::Untold => "not told".to_owned(),
    }
}
