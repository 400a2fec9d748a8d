//! `intervals.csv`, read back column by column.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::{Figure, RecordError};

/// The rows of an `intervals.csv`, by the names of its columns.
///
/// A column that is not there reads as if it were empty: a later tickpong may have more of them, an earlier one fewer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntervalTable {
    rows: usize,
    columns: BTreeMap<String, Vec<Figure>>,
}

impl IntervalTable {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or a row has another number of fields than the head.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let text = fs::read_to_string(path).map_err(RecordError::io("read", path))?;
        Self::parse(&text).map_err(|(line, reason)| RecordError::Csv { path: path.to_owned(), line, reason })
    }

    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut lines = (1..).zip(text.lines());
        let names: Vec<&str> = lines.next().map(|(_, head)| head.split(',').collect()).unwrap_or_default();
        let mut table = Self::default();
        for (number, line) in lines {
            let fields: Vec<&str> = line.split(',').collect();
            if fields.len() != names.len() {
                return Err((number, format!("{} fields, and the head has {}", fields.len(), names.len())));
            }
            for (name, field) in names.iter().zip(fields) {
                let field = figure(field).ok_or_else(|| (number, format!("{name} is `{}`", field.escape_debug())))?;
                table.columns.entry((*name).to_owned()).or_default().push(field);
            }
            table.rows += 1;
        }
        Ok(table)
    }

    /// How many intervals.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// One column; whole numbers, fractions cut off. What a row does not know is [`Figure::Unsupported`].
    pub fn column(&self, name: &str) -> Vec<Figure> {
        self.columns.get(name).cloned().unwrap_or_else(|| vec![Figure::Unsupported; self.rows])
    }
}

fn figure(field: &str) -> Option<Figure> {
    match field {
        "" => Some(Figure::Unsupported),
        "inf" => Some(Figure::Infinite),
        number => {
            let whole = number.split_once('.').map_or(number, |(whole, _)| whole);
            whole.parse().ok().map(Figure::Finite)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntervalRow;

    #[test]
    fn what_a_row_wrote_reads_back() {
        let rows =
            [3, 4].map(|interval| IntervalRow { interval, achieved_rate_hz: Some(10.5), ..IntervalRow::default() });
        let text = format!("{}\n{}\n{}\n", IntervalRow::header(), rows[0].to_csv(), rows[1].to_csv());
        let table = IntervalTable::parse(&text).unwrap();
        assert_eq!(table.rows(), 2);
        assert_eq!(table.column("interval"), [Figure::Finite(3), Figure::Finite(4)]);
        assert_eq!(table.column("achieved_rate_hz"), [Figure::Finite(10), Figure::Finite(10)]);
        assert_eq!(table.column("rtt_p50_ns"), [Figure::Unsupported; 2]);
        assert_eq!(table.column("of_a_later_version"), [Figure::Unsupported; 2]);
    }

    #[test]
    fn what_makes_no_sense_names_its_line() {
        assert_eq!(IntervalTable::parse("a,b\n1,inf\n1\n"), Err((3, "1 fields, and the head has 2".to_owned())));
        assert_eq!(IntervalTable::parse("a,b\n1,\u{1b}[m\n"), Err((2, "b is `\\u{1b}[m`".to_owned())));
        assert_eq!(IntervalTable::parse("").unwrap().rows(), 0);
    }
}
