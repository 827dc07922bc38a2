//! Tables: one query a column, joined by the labels that the rows are about.

use serde_json::{Map, Value, json};

use super::panel::{Panel, reference};

/// A table whose rows are told apart by labels.
pub(super) struct Table {
    panel: Panel,
    renamed: Map<String, Value>,
    hidden: Map<String, Value>,
    order: Map<String, Value>,
}

impl Table {
    /// `rows` are the labels, each with the heading of its column.
    pub(super) fn new(title: &'static str, about: &'static str, rows: &[(&str, &str)]) -> Table {
        let mut table = Table {
            panel: blank(title, "none", about),
            renamed: Map::new(),
            hidden: Map::from_iter([("Time".to_owned(), json!(true))]),
            order: Map::new(),
        };
        for (label, heading) in rows {
            table.show(label, heading);
        }
        table
    }

    /// A column of values in that unit.
    pub(super) fn column(self, heading: &str, unit: &str, expression: &str) -> Table {
        self.column_with(heading, unit, expression, &[])
    }

    /// A column with more properties than its unit.
    pub(super) fn column_with(
        mut self,
        heading: &str,
        unit: &str,
        expression: &str,
        more: &[(&str, Value)],
    ) -> Table {
        let value = format!("Value #{}", reference(self.panel.queries()));
        self.show(&value, heading);
        let mut properties = vec![("unit", json!(unit))];
        properties.extend(more.iter().cloned());
        self.panel = self.panel.rows(expression).field(heading, &properties);
        self
    }

    /// A query for its labels alone, each with the heading of its column.
    pub(super) fn labels(mut self, expression: &str, labels: &[(&str, &str)]) -> Table {
        let value = format!("Value #{}", reference(self.panel.queries()));
        self.hidden.insert(value, json!(true));
        for (label, heading) in labels {
            self.show(label, heading);
        }
        self.panel = self.panel.rows(expression);
        self
    }

    /// A column for a label that a query gives beside those of the rows.
    pub(super) fn named(mut self, label: &str, heading: &str) -> Table {
        self.show(label, heading);
        self
    }

    /// Properties of the column with that heading.
    pub(super) fn heading(mut self, heading: &str, properties: &[(&str, Value)]) -> Table {
        self.panel = self.panel.field(heading, properties);
        self
    }

    fn show(&mut self, field: &str, heading: &str) {
        self.order.insert(field.to_owned(), json!(self.order.len()));
        self.renamed.insert(field.to_owned(), json!(heading));
    }

    /// The panel, with the largest of a column first.
    pub(super) fn sorted_by(self, heading: &str) -> Panel {
        let arranged = json!({
            "excludeByName": self.hidden,
            "indexByName": self.order,
            "renameByName": self.renamed,
        });
        self.panel
            .option("sortBy", json!([{"desc": true, "displayName": heading}]))
            .transformed("merge", json!({}))
            .transformed("organize", arranged)
            .sized(24, 10)
    }
}

/// A table with a row for each value of a label and a column for each value of another.
pub(super) fn matrix(
    title: &'static str,
    unit: &str,
    about: &'static str,
    expression: &str,
    (rows, columns): (&str, &str),
) -> Panel {
    let options = json!({
        "columnField": columns,
        "emptyValue": "null",
        "rowField": rows,
        "valueField": "Value",
    });
    blank(title, unit, about)
        .rows(expression)
        .transformed("groupingToMatrix", options)
        .sized(12, 8)
}

fn blank(title: &'static str, unit: &str, about: &'static str) -> Panel {
    let options = json!({"cellHeight": "sm", "frameIndex": 0, "showHeader": true});
    Panel::new("table", title, unit, about, options)
        .custom("align", json!("auto"))
        .custom("inspect", json!(false))
        .custom("filterable", json!(true))
}
