//! A table that is printed as text or as Markdown.

use crate::clean::cut;
use crate::page::Page;

/// Blanks between columns.
const GAP: usize = 2;

/// Rows of cells below a head. The first column holds words and stands at the left, the others numbers and stand at the right.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    pub(crate) fn new<const N: usize>(head: [&str; N]) -> Self {
        Self { head: head.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Two blanks between columns; columns that find no room stand below, beside the first again.
    pub(crate) fn text(&self, page: &mut Page) {
        let shown: Vec<Vec<String>> =
            [&self.head].into_iter().chain(&self.rows).map(|row| shortened(row, page)).collect();
        let wide =
            |column: usize| shown.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..self.head.len()).map(|column| wide(column).unwrap_or(0)).collect();
        let mut from = 1;
        while from < widths.len() || from == 1 {
            let first = widths.first().copied().unwrap_or(0);
            let mut used = first;
            let fits = |width: &&usize| {
                used += GAP + **width;
                used <= page.width
            };
            let to = from + widths[from.min(widths.len())..].iter().take_while(fits).count().max(1);
            for row in &shown {
                let cells = row.iter().zip(&widths).take(to).skip(from);
                let cells = cells.map(|(cell, width)| format!("{:GAP$}{cell:>width$}", ""));
                page.line(&format!("{:<first$}{}", row.first().map_or("", String::as_str), cells.collect::<String>()));
            }
            from = to;
        }
    }

    /// A table of GitHub's Markdown; what would end a cell is escaped.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.trim().replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule: Vec<&str> = (0..self.head.len()).map(|column| if column == 0 { ":--" } else { "--:" }).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}| {} |\n{rows}", line(&self.head), rule.join(" | "))
    }
}

/// No cell takes more than a good third of the page.
fn shortened(row: &[String], page: &Page) -> Vec<String> {
    row.iter().map(|cell| cut(cell, page.width * 2 / 5)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;

    #[test]
    fn the_same_table_twice() {
        let mut grid = Grid::new(["name", "µs"]);
        grid.row(["a|b".to_owned(), "1.5".to_owned()]);
        grid.row(["longer".to_owned(), "1,000".to_owned()]);
        let mut page = Page::new(Style::default());
        grid.text(&mut page);
        assert_eq!(page.finish(), "name       µs\na|b       1.5\nlonger  1,000\n");
        assert_eq!(grid.markdown(), "| name | µs |\n| :-- | --: |\n| a\\|b | 1.5 |\n| longer | 1,000 |\n");
    }
}
