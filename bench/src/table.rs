//! Tables that read well in a terminal and are valid Markdown.

/// The text of a column's cell in a row.
type Cell<'a, R> = &'a dyn Fn(&R) -> String;

/// A table under construction.
pub(crate) struct Table {
    title: String,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(title: &str, columns: &[&str]) -> Table {
        Table {
            title: title.to_owned(),
            rows: vec![columns.iter().map(|&c| c.to_owned()).collect()],
        }
    }

    /// One of these rows: each column is a title and the text of its cell.
    pub(crate) fn of<'r, R: 'r>(
        title: &str,
        rows: impl IntoIterator<Item = &'r R>,
        columns: &[(&str, Cell<'_, R>)],
    ) -> Table {
        let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
        let mut table = Table::new(title, &titles);
        for row in rows {
            table.row(columns.iter().map(|(_, cell)| cell(row)).collect());
        }
        table
    }

    /// Adds a row of as many cells as there are columns.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.rows[0].len());
        self.rows.push(cells);
    }

    /// The table as text: the first column flush left, numbers flush right.
    pub(crate) fn text(&self) -> String {
        let columns = self.rows[0].len();
        let widths: Vec<usize> = (0..columns)
            .map(|c| self.rows.iter().map(|r| r[c].chars().count()).max())
            .map(|width| width.unwrap_or(0).max(3))
            .collect();
        let mut text = format!("### {}\n\n", self.title);
        for (number, row) in self.rows.iter().enumerate() {
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                text.push_str(if column == 0 { "| " } else { " | " });
                text.push_str(&if column == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                });
            }
            text.push_str(" |\n");
            if number == 0 {
                for (column, &width) in widths.iter().enumerate() {
                    let dashes = "-".repeat(width - 1);
                    text.push_str(&if column == 0 {
                        format!("| {dashes}-")
                    } else {
                        format!(" | {dashes}:")
                    });
                }
                text.push_str(" |\n");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_markdown_knows_them() {
        let mut table = Table::new("T", &["what", "ns"]);
        table.row(vec!["a long name".to_owned(), "1".to_owned()]);
        assert_eq!(
            table.text(),
            "### T\n\n\
             | what        |  ns |\n\
             | ----------- | --: |\n\
             | a long name |   1 |\n"
        );
    }
}
