//! The matrix as a text file: sections, an operation per line, and a cell for each kind of caller.

use std::fmt::Write;

pub(super) struct Table {
    pub(super) columns: Vec<&'static str>,
    pub(super) rows: Vec<Row>,
}

#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) section: &'static str,
    pub(super) operation: &'static str,
    pub(super) cells: Vec<&'static str>,
}

impl Row {
    /// Returns the first word of the operation: a method, or the name of a request.
    pub(super) fn verb(&self) -> &'static str {
        self.operation.split(' ').next().unwrap_or_default()
    }

    /// Returns the rest of the operation.
    pub(super) fn rest(&self) -> &'static str {
        self.operation.split_once(' ').map(|(_, rest)| rest.trim()).unwrap_or_default()
    }
}

impl Table {
    /// Parses the text. An invalid line fails the test.
    pub(super) fn read(text: &'static str) -> Self {
        let mut table = Self { columns: Vec::new(), rows: Vec::new() };
        let mut section = "";
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name;
                continue;
            }
            let (operation, cells) = line.split_once('|').unwrap_or_else(|| panic!("no cells: {line}"));
            let cells: Vec<&str> = cells.split_whitespace().collect();
            // The names of the columns may be repeated for readability.
            if table.columns.is_empty() || operation.trim() == "operation" {
                assert!(table.columns.is_empty() || table.columns == cells, "other columns: {line}");
                table.columns = cells;
                continue;
            }
            assert_eq!(cells.len(), table.columns.len(), "the wrong number of cells: {line}");
            table.rows.push(Row { section, operation: operation.trim(), cells });
        }
        table
    }

    /// Compares a row with the observed cells. Returns the differences and the line as it should
    /// be.
    pub(super) fn compare(&self, row: &Row, observed: &[String]) -> Option<String> {
        let mut differences = String::new();
        for ((column, expected), observed) in self.columns.iter().zip(&row.cells).zip(observed) {
            if expected != observed {
                let (section, operation) = (row.section, row.operation);
                writeln!(
                    differences,
                    "[{section}] {operation}: {column} should be {expected}, was {observed}"
                )
                .unwrap();
            }
        }
        (!differences.is_empty())
            .then(|| differences + "    observed: " + &write(row.operation, observed) + "\n")
    }
}

/// Formats one line of the file.
fn write(operation: &str, cells: &[String]) -> String {
    let mut line = format!("{operation:<44} |");
    for cell in cells {
        write!(line, " {cell:<7}").unwrap();
    }
    line.trim_end().to_owned()
}
