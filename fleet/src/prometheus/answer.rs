//! The JSON of an answer.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

/// One series: its labels, and its samples by time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    /// Without `__name__`.
    pub labels: BTreeMap<String, String>,
    /// Seconds since 1970 and value. Values may be infinite or not numbers: Prometheus
    /// keeps such samples. Stale markers never come this far; a series is absent there.
    pub points: Vec<(f64, f64)>,
}

/// The whole document.
#[derive(Debug, Deserialize)]
pub(super) struct Document<'a, T> {
    #[serde(borrow)]
    pub(super) status: Cow<'a, str>,
    #[serde(default = "Option::default")]
    pub(super) data: Option<T>,
    #[serde(borrow, default, rename = "errorType")]
    pub(super) error_kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) error: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Data<'a> {
    #[serde(borrow, rename = "resultType")]
    pub(super) kind: Cow<'a, str>,
    /// Over a range every result is a list.
    pub(super) result: Vec<Row>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<(f64, Number)>,
}

impl From<Row> for Series {
    fn from(row: Row) -> Series {
        let mut labels = row.metric;
        labels.remove("__name__");
        let points = row.values.into_iter();
        Series {
            labels,
            points: points.map(|(time, Number(value))| (time, value)).collect(),
        }
    }
}

/// A value, which Prometheus writes as text: `1.5`, `NaN`, `+Inf`.
#[derive(Debug, Clone, Copy)]
struct Number(f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Number;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number in quotes")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Number, E> {
                let number = text.parse().map(Number);
                number.map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// The series of a result.
///
/// # Errors
/// How the answer differs from the API.
pub(super) fn series(data: Data<'_>) -> Result<Vec<Series>, String> {
    match &*data.kind {
        "matrix" => Ok(data.result.into_iter().map(Series::from).collect()),
        other => Err(format!("its result is a {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Vec<Series>, String> {
        let document: Document<'_, Data<'_>> =
            serde_json::from_str(json).map_err(|e| e.to_string())?;
        series(document.data.ok_or("no data")?)
    }

    #[test]
    fn a_matrix_is_series() {
        let matrix = read(
            r#"{"status":"success","data":{"resultType":"matrix","result":[
               {"metric":{"__name__":"m","a\"b":"ü\n"},"values":[[1.5,"2"],[3,"NaN"],[4,"+Inf"],[5,"-Inf"]]}]}}"#,
        )
        .unwrap();
        assert_eq!(
            matrix[0].labels,
            BTreeMap::from([("a\"b".into(), "ü\n".into())])
        );
        assert_eq!(matrix[0].points[0], (1.5, 2.0));
        assert!(matrix[0].points[1].1.is_nan());
        assert_eq!(matrix[0].points[2].1, f64::INFINITY);
        assert_eq!(matrix[0].points[3].1, f64::NEG_INFINITY);
    }

    #[test]
    fn other_documents_are_errors() {
        for json in [
            "[]",
            "{}",
            r#"{"status":"success"}"#,
            r#"{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}"#,
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"2"]}]}}"#,
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,2]]}]}}"#,
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,"x"]]}]}}"#,
        ] {
            assert!(read(json).is_err(), "{json}");
        }
    }
}
