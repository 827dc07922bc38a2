//! A dashboard: its variables, annotations, links, and panels placed row by row.

use serde_json::{Value, json};

use super::panel::{Panel, data_source};

/// Columns of Grafana's grid.
const COLUMNS: u32 = 24;
/// The classic model's version that Grafana 10.4 to 11.0 writes; later ones migrate it as they load.
const SCHEMA_VERSION: u32 = 39;

/// The `uid` of the dashboard of a fleet, and of one JVM: they link to each other.
pub(super) const FLEET_UID: &str = "heapwarden-fleet";
pub(super) const JVM_UID: &str = "heapwarden-jvm";

/// A dashboard under construction.
pub(super) struct Board {
    json: Value,
    panels: Vec<Value>,
    next_id: u32,
    next_y: u32,
}

/// How many values of a variable may be chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    One,
    Many,
}

impl Board {
    /// An empty one. Its `uid` never changes: links and bookmarks are made of it.
    pub(super) fn new(uid: &str, title: &str, about: &str) -> Board {
        let json = json!({
            "annotations": {"list": [built_in_annotations()]},
            "description": about,
            "editable": true,
            "graphTooltip": 1,
            "id": null,
            "links": [],
            "refresh": "1m",
            "schemaVersion": SCHEMA_VERSION,
            "tags": ["heapwarden"],
            "templating": {"list": [data_source_variable()]},
            "time": {"from": "now-3h", "to": "now"},
            "timepicker": {},
            "timezone": "browser",
            "title": title,
            "uid": uid,
            "version": 1,
        });
        Board {
            json,
            panels: Vec::new(),
            next_id: 1,
            next_y: 0,
        }
    }

    /// A variable with the values of `label` in the series that `selector` selects.
    pub(super) fn variable(
        mut self,
        label: &str,
        title: &str,
        selector: &str,
        choice: Choice,
    ) -> Board {
        let query = format!("label_values({selector}, {label})");
        let many = choice == Choice::Many;
        let mut variable = json!({
            "datasource": data_source(),
            "definition": query,
            "hide": 0,
            "includeAll": many,
            "label": title,
            "multi": many,
            "name": label,
            "options": [],
            "query": query,
            "refresh": 2,
            "regex": "",
            "skipUrlSync": false,
            "sort": 1,
            "type": "query",
        });
        if many {
            // Not the list of all values: there may be hundreds, and new ones must show at once.
            variable["allValue"] = json!(".*");
            variable["current"] = json!({"selected": true, "text": ["All"], "value": ["$__all"]});
        }
        self.push("/templating/list", variable);
        self
    }

    /// Marks on all graphs where the expression has values above 0.
    pub(super) fn annotation(
        self,
        name: &str,
        color: &str,
        expression: String,
        text: &str,
    ) -> Board {
        self.annotated(name, color, expression, text, false)
    }

    /// Marks on all graphs at the times that the expression's values are, in milliseconds.
    pub(super) fn annotation_at(
        self,
        name: &str,
        color: &str,
        expression: String,
        text: &str,
    ) -> Board {
        self.annotated(name, color, expression, text, true)
    }

    fn annotated(
        mut self,
        name: &str,
        color: &str,
        expression: String,
        text: &str,
        at_value: bool,
    ) -> Board {
        let annotation = json!({
            "datasource": data_source(),
            "enable": true,
            "expr": expression,
            "hide": false,
            "iconColor": color,
            "name": name,
            "step": "60s",
            "tagKeys": "account,instance",
            "textFormat": text,
            "titleFormat": name,
            "useValueForTime": at_value,
        });
        self.push("/annotations/list", annotation);
        self
    }

    /// A link to another dashboard over the same data source and time.
    pub(super) fn link(mut self, title: &str, uid: &str) -> Board {
        let link = json!({
            "asDropdown": false,
            "icon": "dashboard",
            "includeVars": false,
            "keepTime": true,
            "tags": [],
            "targetBlank": false,
            "title": title,
            "tooltip": "",
            "type": "link",
            "url": format!("/d/{uid}?${{datasource:queryparam}}"),
        });
        self.push("/links", link);
        self
    }

    fn push(&mut self, list: &str, entry: Value) {
        if let Some(Value::Array(entries)) = self.json.pointer_mut(list) {
            entries.push(entry);
        }
    }

    /// A heading and its panels, from left to right, in as many lines as they need.
    pub(super) fn row(mut self, title: &str, panels: impl IntoIterator<Item = Panel>) -> Board {
        let heading = json!({
            "collapsed": false,
            "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": self.next_y},
            "id": self.next_id,
            "panels": [],
            "title": title,
            "type": "row",
        });
        self.panels.push(heading);
        self.next_id += 1;
        self.next_y += 1;
        let (mut x, mut line_height) = (0, 0);
        for panel in panels {
            if x + panel.width > COLUMNS {
                self.next_y += line_height;
                (x, line_height) = (0, 0);
            }
            let (width, height) = (panel.width, panel.height);
            self.panels.push(panel.placed(self.next_id, x, self.next_y));
            self.next_id += 1;
            x += width;
            line_height = line_height.max(height);
        }
        self.next_y += line_height;
        self
    }

    /// The dashboard as Grafana reads it.
    pub(super) fn finish(mut self) -> Value {
        self.json["panels"] = Value::Array(self.panels);
        self.json
    }
}

fn data_source_variable() -> Value {
    json!({
        "hide": 0,
        "includeAll": false,
        "label": "Data source",
        "multi": false,
        "name": "datasource",
        "options": [],
        "query": "prometheus",
        "refresh": 1,
        "regex": "",
        "skipUrlSync": false,
        "type": "datasource",
    })
}

/// The marks that people and Grafana's own alerts leave; every dashboard has them.
fn built_in_annotations() -> Value {
    json!({
        "builtIn": 1,
        "datasource": {"type": "grafana", "uid": "-- Grafana --"},
        "enable": true,
        "hide": true,
        "iconColor": "rgba(0, 211, 255, 1)",
        "name": "Annotations & Alerts",
        "type": "dashboard",
    })
}
