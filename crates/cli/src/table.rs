//! Tables for people: columns as wide as they need be.

use std::fmt;

/// Rows of cells under a heading. Columns of numbers stand to the right.
pub(crate) struct Table {
    heading: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Table {
        Table { heading: heading.iter().map(|&cell| cell.to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row; it must have as many cells as the heading.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let row: Vec<_> = cells.into_iter().collect();
        debug_assert_eq!(row.len(), self.heading.len());
        self.rows.push(row);
    }
}

impl fmt::Display for Table {
    /// Every line starts with two spaces; newlines stand between lines, none at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.heading.len();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| &row[column]).chain([&self.heading[column]]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        let numeric = |column: usize| {
            !self.rows.is_empty() && self.rows.iter().all(|row| row[column].starts_with(|c: char| c.is_ascii_digit()))
        };
        let right: Vec<_> = (0..columns).map(numeric).collect();

        for (line, row) in [&self.heading].into_iter().chain(&self.rows).enumerate() {
            let mut text = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                text += "  ";
                text += &if right[column] { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
            }
            let newline = if line > 0 { "\n" } else { "" };
            write!(f, "{newline}{}", text.trim_end())?;
        }
        Ok(())
    }
}

/// A count as people read it: 29,230.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count of things, of which there may be one: `1 broker`, `2 brokers`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right() {
        let mut table = Table::new(&["name", "n"]);
        table.row(["a".into(), count(7)]);
        table.row(["longer".into(), count(1_234_567)]);
        assert_eq!(table.to_string(), "  name            n\n  a               7\n  longer  1,234,567");
    }

    #[test]
    fn an_empty_table_is_its_heading() {
        assert_eq!(Table::new(&["a", "b"]).to_string(), "  a  b");
    }

    #[test]
    fn counts() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (29_230, "29,230"), (1_000_000, "1,000,000")] {
            assert_eq!(count(number), text);
        }
        assert_eq!(counted(1, "line", "lines"), "1 line");
        assert_eq!(counted(0, "line", "lines"), "0 lines");
    }
}
