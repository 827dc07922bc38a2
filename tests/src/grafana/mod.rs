//! Grafana's dashboards, read strictly ([`model`]), and what no type can say: that options and
//! properties are those of the panel's kind, and that every name in them names something.

pub mod model;

use crate::promql::LabelNames;
use model::*;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;

impl Dashboard {
    /// Reads a dashboard, every panel's options and its fields' properties included.
    ///
    /// # Errors
    /// What doesn't fit the model, and where.
    pub fn parse(text: &str) -> Result<(Self, Vec<Row>, Vec<Panel>), String> {
        let dashboard: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let (mut rows, mut panels) = (Vec::new(), Vec::new());
        for json in &dashboard.panels {
            if json["type"] == "row" {
                rows.push(read(json, "row")?);
            } else {
                let panel: Panel = read(json, &json["title"].to_string())?;
                panel.check()?;
                panels.push(panel);
            }
        }
        Ok((dashboard, rows, panels))
    }
}

impl Panel {
    fn check(&self) -> Result<(), String> {
        let options = (&self.options, format!("{}, options", self.title));
        match self.r#type {
            Kind::Timeseries => fits::<TimeseriesOptions>(options.0, &options.1)?,
            Kind::Table => fits::<TableOptions>(options.0, &options.1)?,
            Kind::Stat => fits::<StatOptions>(options.0, &options.1)?,
            Kind::StateTimeline => fits::<TimelineOptions>(options.0, &options.1)?,
        }
        self.check_custom(&self.field_config.defaults.custom)?;
        for entry in &self.field_config.overrides {
            let mut custom = self.field_config.defaults.custom.clone();
            for property in &entry.properties {
                let place = format!("{}, {}", self.title, property.id);
                match (property.id.as_str(), property.id.strip_prefix("custom.")) {
                    (_, Some(name)) => custom[name] = property.value.clone(),
                    ("unit", _) => fits::<String>(&property.value, &place)?,
                    ("min" | "max", _) => fits::<f64>(&property.value, &place)?,
                    ("color", _) => fits::<Color>(&property.value, &place)?,
                    ("links", _) => fits::<Vec<DataLink>>(&property.value, &place)?,
                    ("mappings", _) => fits::<Vec<Mapping>>(&property.value, &place)?,
                    ("thresholds", _) => fits::<Thresholds>(&property.value, &place)?,
                    _ => return Err(format!("{place}: no such property")),
                }
            }
            self.check_custom(&custom)?;
        }
        for step in &self.transformations {
            let place = format!("{}, {}", self.title, step.id);
            match step.id.as_str() {
                "merge" => fits::<Nothing>(&step.options, &place)?,
                "organize" => fits::<Organize>(&step.options, &place)?,
                "groupingToMatrix" => fits::<GroupingToMatrix>(&step.options, &place)?,
                _ => return Err(format!("{place}: no such transformation")),
            }
        }
        Ok(())
    }

    fn check_custom(&self, custom: &Value) -> Result<(), String> {
        let place = format!("{}, custom", self.title);
        match self.r#type {
            Kind::Timeseries => fits::<GraphField>(custom, &place)?,
            Kind::Table => fits::<TableField>(custom, &place)?,
            Kind::Stat if custom.is_null() => {}
            Kind::Stat => return Err(format!("{place}: a stat has none")),
            Kind::StateTimeline => fits::<TimelineField>(custom, &place)?,
        }
        Ok(())
    }

    /// Returns the name that a query's values are shown under: the panel's title, and in a table the column's heading
    /// too.
    #[must_use]
    pub fn heading(&self, target: &Target) -> String {
        let value = format!("Value #{}", target.ref_id);
        let organize = self.transformation::<Organize>("organize");
        match organize.and_then(|organize| organize.rename_by_name.get(&value).cloned()) {
            Some(column) => format!("{}: {column}", self.title),
            None => self.title.clone(),
        }
    }

    /// Every name in a panel's transformations and overrides is a label, a value or a heading it has.
    ///
    /// # Errors
    /// The name that isn't, and where.
    pub fn arranged(&self, labels: &LabelNames) -> Result<(), String> {
        let letters: Vec<&str> = self.targets.iter().map(|target| &*target.ref_id).collect();
        let mut headings = BTreeSet::new();
        if let Some(organize) = self.transformation::<Organize>("organize") {
            let is_field = |name: &str| {
                let letter = name.strip_prefix("Value #");
                name == "Time"
                    || labels.contains(name)
                    || letter.is_some_and(|l| letters.contains(&l))
            };
            let Organize {
                exclude_by_name,
                index_by_name,
                rename_by_name,
            } = &organize;
            let names = exclude_by_name
                .keys()
                .chain(index_by_name.keys())
                .chain(rename_by_name.keys());
            if let Some(name) = names.into_iter().find(|name| !is_field(name)) {
                return Err(format!("no field {name}"));
            }
            headings.extend(rename_by_name.values().cloned());
            if headings.len() != rename_by_name.len() {
                return Err("two columns of one name".to_owned());
            }
            let sorted = self.options["sortBy"][0]["displayName"].as_str();
            if !sorted.is_some_and(|name| headings.contains(name)) {
                return Err(format!("sorted by {sorted:?}"));
            }
        } else if let Some(matrix) = self.transformation::<GroupingToMatrix>("groupingToMatrix") {
            for label in [&matrix.row_field, &matrix.column_field] {
                if !labels.contains(label) {
                    return Err(format!("no label {label}"));
                }
            }
        } else if self.r#type == Kind::Table {
            return Err("a table of raw series".to_owned());
        }
        for entry in &self.field_config.overrides {
            let name = &entry.matcher.options;
            let known = match entry.matcher.id.as_str() {
                "byName" => headings.contains(name),
                "byFrameRefID" => letters.contains(&name.as_str()),
                _ => false,
            };
            if !known {
                return Err(format!("an override for {name}, which isn't there"));
            }
        }
        Ok(())
    }

    /// The options of a transformation, where the panel has it.
    fn transformation<T: DeserializeOwned>(&self, id: &str) -> Option<T> {
        let step = self.transformations.iter().find(|step| step.id == id)?;
        read(&step.options, id).ok()
    }
}

fn fits<T: DeserializeOwned>(json: &Value, place: &str) -> Result<(), String> {
    read::<T>(json, place).map(drop)
}

fn read<T: DeserializeOwned>(json: &Value, place: &str) -> Result<T, String> {
    T::deserialize(json).map_err(|error| format!("{place}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::model::Place;
    use super::read;
    use serde_json::json;

    #[test]
    fn a_misspelt_property_is_an_error() {
        assert!(read::<Place>(&json!({"h": 1, "w": 1, "x": 0, "y": 0}), "").is_ok());
        let error = read::<Place>(&json!({"h": 1, "w": 1, "x": 0, "yy": 0}), "there");
        assert!(error.is_err_and(|error| error.contains("there: unknown field `yy`")));
    }
}
