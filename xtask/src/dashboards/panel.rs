//! Panels: what each shows, in which unit, and what its reader should know.

use serde_json::{Map, Value, json};

/// A panel without its place.
pub(super) struct Panel {
    /// Columns of 24.
    pub(super) width: u32,
    /// Grid rows of 30 pixels.
    pub(super) height: u32,
    kind: &'static str,
    title: &'static str,
    about: &'static str,
    targets: Vec<Value>,
    transformations: Vec<Value>,
    options: Value,
    defaults: Map<String, Value>,
    custom: Map<String, Value>,
    overrides: Vec<Value>,
}

/// A colour from a value on.
pub(super) type Step = (Option<f64>, &'static str);

/// Green, and orange and red from the shares on at which a heap or a limit gets tight.
pub(super) const TIGHT: [Step; 3] = [(None, "green"), (Some(0.75), "orange"), (Some(0.9), "red")];
/// Green at none, orange from one on.
pub(super) const ANY_WARNS: [Step; 2] = [(None, "green"), (Some(1.0), "orange")];
/// Green at none, red from one on.
pub(super) const ANY_ALARMS: [Step; 2] = [(None, "green"), (Some(1.0), "red")];

/// A policy's mode in words.
pub(super) const MODES: [(u32, &str, &str); 2] = [(1, "enforce", "blue"), (0, "observe", "text")];

impl Panel {
    pub(super) fn new(
        kind: &'static str,
        title: &'static str,
        unit: &str,
        about: &'static str,
        options: Value,
    ) -> Panel {
        Panel {
            width: 8,
            height: 8,
            kind,
            title,
            about,
            targets: Vec::new(),
            transformations: Vec::new(),
            options,
            defaults: Map::from_iter([("unit".to_owned(), json!(unit))]),
            custom: Map::new(),
            overrides: Vec::new(),
        }
    }

    /// Lines over time.
    pub(super) fn lines(title: &'static str, unit: &str, about: &'static str) -> Panel {
        let options = json!({
            "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": true},
            "tooltip": {"mode": "multi", "sort": "desc"}
        });
        Panel::new("timeseries", title, unit, about, options)
            .default("min", json!(0))
            .custom("showPoints", json!("never"))
            .custom("spanNulls", json!(false))
    }

    /// Areas over time, one upon the other.
    pub(super) fn areas(title: &'static str, unit: &str, about: &'static str) -> Panel {
        Panel::lines(title, unit, about)
            .custom("fillOpacity", json!(40))
            .custom("stacking", json!({"mode": "normal", "group": "A"}))
    }

    /// One figure, as it is now.
    pub(super) fn figure(title: &'static str, unit: &str, about: &'static str) -> Panel {
        let options = json!({
            "colorMode": "value",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "percentChangeColorMode": "standard",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": false},
            "showPercentChange": false,
            "textMode": "value",
            "wideLayout": true
        });
        Panel::new("stat", title, unit, about, options).sized(3, 4)
    }

    /// States over time, a bar for each series.
    pub(super) fn states(title: &'static str, about: &'static str) -> Panel {
        let options = json!({
            "alignValue": "left",
            "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": false},
            "mergeValues": true,
            "rowHeight": 0.8,
            "showValue": "auto",
            "tooltip": {"mode": "single", "sort": "none"}
        });
        Panel::new("state-timeline", title, "none", about, options)
            .custom("fillOpacity", json!(70))
            .custom("lineWidth", json!(0))
    }

    /// Its place on the grid: columns of 24 and grid rows.
    pub(super) fn sized(mut self, width: u32, height: u32) -> Panel {
        (self.width, self.height) = (width, height);
        self
    }

    /// A query over the time range; series are called as `legend` says, or by all their labels.
    pub(super) fn query(self, expression: impl Into<String>, legend: &str) -> Panel {
        let target = json!({
            "editorMode": "code",
            "expr": expression.into(),
            "legendFormat": legend,
            "range": true,
        });
        self.target(target)
    }

    /// A query at the end of the time range.
    pub(super) fn now(self, expression: impl Into<String>, legend: &str) -> Panel {
        let target = json!({
            "editorMode": "code",
            "expr": expression.into(),
            "instant": true,
            "legendFormat": legend,
            "range": false,
        });
        self.target(target)
    }

    /// A query at the end of the time range, its labels and value as columns.
    pub(super) fn rows(self, expression: impl Into<String>) -> Panel {
        let target = json!({
            "editorMode": "code",
            "expr": expression.into(),
            "format": "table",
            "instant": true,
            "range": false,
        });
        self.target(target)
    }

    fn target(mut self, mut target: Value) -> Panel {
        target["datasource"] = data_source();
        target["refId"] = json!(reference(self.targets.len()));
        self.targets.push(target);
        self
    }

    /// A step between the queries and what is shown.
    pub(super) fn transformed(mut self, id: &str, options: Value) -> Panel {
        let step = json!({"id": id, "options": options});
        self.transformations.push(step);
        self
    }

    /// An option of this kind of panel.
    pub(super) fn option(mut self, name: &str, value: Value) -> Panel {
        self.options[name] = value;
        self
    }

    /// A property of every field.
    pub(super) fn default(mut self, name: &str, value: Value) -> Panel {
        self.defaults.insert(name.to_owned(), value);
        self
    }

    /// A property of every field that this kind of panel alone knows.
    pub(super) fn custom(mut self, name: &str, value: Value) -> Panel {
        self.custom.insert(name.to_owned(), value);
        self
    }

    /// Properties of the field of that name.
    pub(super) fn field(self, name: &str, properties: &[(&str, Value)]) -> Panel {
        self.overridden(json!({"id": "byName", "options": name}), properties)
    }

    /// Properties of what the query with that letter gives.
    pub(super) fn series(self, letter: &str, properties: &[(&str, Value)]) -> Panel {
        let matcher = json!({"id": "byFrameRefID", "options": letter});
        self.overridden(matcher, properties)
    }

    fn overridden(mut self, matcher: Value, properties: &[(&str, Value)]) -> Panel {
        let properties: Vec<Value> = properties
            .iter()
            .map(|(id, value)| json!({"id": id, "value": value}))
            .collect();
        let entry = json!({"matcher": matcher, "properties": properties});
        self.overrides.push(entry);
        self
    }

    /// Colours by value.
    pub(super) fn coloured(self, steps: &[Step]) -> Panel {
        self.default("color", json!({"mode": "thresholds"}))
            .default("thresholds", thresholds(steps))
    }

    /// Words and colours in place of numbers.
    pub(super) fn worded(self, words: &[(u32, &str, &str)]) -> Panel {
        self.default("mappings", mappings(words))
    }

    /// Sets the text that stands there while there is nothing to show.
    pub(super) fn or(self, text: &str) -> Panel {
        self.default("noValue", json!(text))
    }

    /// The panel as Grafana reads it.
    pub(super) fn placed(self, id: u32, x: u32, y: u32) -> Value {
        let mut defaults = self.defaults;
        if !self.custom.is_empty() {
            defaults.insert("custom".to_owned(), Value::Object(self.custom));
        }
        let mut panel = json!({
            "datasource": data_source(),
            "description": self.about,
            "fieldConfig": {"defaults": defaults, "overrides": self.overrides},
            "gridPos": {"h": self.height, "w": self.width, "x": x, "y": y},
            "id": id,
            "options": self.options,
            "targets": self.targets,
            "title": self.title,
            "type": self.kind,
        });
        if !self.transformations.is_empty() {
            panel["transformations"] = Value::Array(self.transformations);
        }
        panel
    }

    /// How many queries there are.
    pub(super) fn queries(&self) -> usize {
        self.targets.len()
    }
}

/// The data source that the reader chose.
pub(super) fn data_source() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

/// Letter of the query with that index.
pub(super) fn reference(index: usize) -> String {
    let letter = u8::try_from(index).ok().and_then(|n| b'A'.checked_add(n));
    char::from(letter.unwrap_or(b'Z')).to_string()
}

/// Colours by value.
pub(super) fn thresholds(steps: &[Step]) -> Value {
    let steps: Vec<Value> = steps
        .iter()
        .map(|(from, color)| json!({"color": color, "value": from}))
        .collect();
    json!({"mode": "absolute", "steps": steps})
}

/// Words and colours in place of numbers.
pub(super) fn mappings(words: &[(u32, &str, &str)]) -> Value {
    let options: Map<String, Value> = words
        .iter()
        .enumerate()
        .map(|(index, (value, text, color))| {
            let result = json!({"color": color, "index": index, "text": text});
            (value.to_string(), result)
        })
        .collect();
    json!([{"type": "value", "options": options}])
}
