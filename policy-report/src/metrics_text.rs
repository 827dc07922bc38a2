//! The Prometheus text format, as far as the agent writes it: no time stamps, no exemplars.

use std::collections::{BTreeMap, BTreeSet};

/// The labels of a sample, by name.
pub type Labels = BTreeMap<String, String>;

/// One answer of `GET /metrics`: the samples by metric, those of one metric in the order of the text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics(BTreeMap<String, Vec<(Labels, f64)>>);

impl Metrics {
    /// Reads the text; lines that are not understood are left out, as an agent may be newer than its reader.
    #[must_use]
    pub fn parse(text: &str) -> Metrics {
        let mut metrics = Metrics::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            // A second sample of a series is left out too.
            let _ = metrics.take(line);
        }
        metrics
    }

    /// Takes in the sample of one line.
    ///
    /// # Errors
    /// What is wrong with it: it is no sample, or its series was there before.
    pub fn take(&mut self, line: &str) -> Result<(), &'static str> {
        let (series, value) = line.rsplit_once(' ').ok_or("not a sample")?;
        let (name, labels) = read_series(series).ok_or("not a sample")?;
        let value = value.parse().map_err(|_| "not a sample")?;
        let of_metric = self.0.entry(name.to_owned()).or_default();
        if of_metric.iter().any(|(known, _)| *known == labels) {
            return Err("a series twice");
        }
        of_metric.push((labels, value));
        Ok(())
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of the series with exactly these labels.
    #[must_use]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let is_it = |series: &Labels| {
            let of = |(name, value): &(&str, &str)| series.get(*name).is_some_and(|it| it == value);
            series.len() == labels.len() && labels.iter().all(of)
        };
        self.series(name)
            .find_map(|(series, value)| is_it(series).then_some(value))
    }

    /// The value of a series as the text writes it: `name{label="value"}`.
    #[must_use]
    pub fn written(&self, series: &str) -> Option<f64> {
        let (name, labels) = read_series(series)?;
        self.series(name)
            .find_map(|(of, value)| (*of == labels).then_some(value))
    }

    /// The sum of a metric over all its series; of none it is 0.
    #[must_use]
    pub fn sum(&self, name: &str) -> f64 {
        // Not `Iterator::sum`: of nothing, that is -0.
        self.series(name).fold(0.0, |sum, (_, value)| sum + value)
    }

    /// All series of a metric.
    pub fn series(&self, name: &str) -> impl Iterator<Item = (&Labels, f64)> {
        let series = self.0.get(name).into_iter().flatten();
        series.map(|(labels, value)| (labels, *value))
    }

    /// The values of a metric by one of its labels; series without it are left out.
    pub fn by_label(&self, name: &str, label: &str) -> impl Iterator<Item = (&str, f64)> {
        self.series(name)
            .filter_map(move |(labels, value)| Some((labels.get(label)?.as_str(), value)))
    }

    /// The names of all metrics; those of a histogram have its suffixes.
    #[must_use]
    pub fn names(&self) -> BTreeSet<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

/// `name{label="value",…}`
fn read_series(text: &str) -> Option<(&str, Labels)> {
    let end = text.find('{').unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = read_quoted(after)?;
            if !is_name(label) || labels.insert(label.to_owned(), value).is_some() {
                return None;
            }
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    (rest.is_empty() && is_name(name)).then_some((name, labels))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && (text.chars()).all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
}

/// A label's value up to its closing quote, unescaped, and what follows the quote.
fn read_quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                c @ ('\\' | '"') => c,
                _ => return None,
            }),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_text_is_read() {
        let metrics = Metrics::parse(
            "# HELP a b\n# TYPE a gauge\na 3\nb{reason=\"x\"} 1e3\nb{reason=\"y, \\\"z\\\\\\n}\"} 2\n\
             c{account=\"/shop\",reason=\"jdk\"} 5\n",
        );
        assert_eq!(metrics.value("a", &[]), Some(3.0));
        assert_eq!(metrics.value("b", &[("reason", "x")]), Some(1000.0));
        let b: Vec<_> = metrics.by_label("b", "reason").collect();
        assert_eq!(b, [("x", 1000.0), ("y, \"z\\\n}", 2.0)]);
        assert_eq!(metrics.sum("b"), 1002.0);
        let c: Vec<_> = metrics.by_label("c", "account").collect();
        assert_eq!(c, [("/shop", 5.0)]);
        assert_eq!(
            metrics.written("c{reason=\"jdk\",account=\"/shop\"}"),
            Some(5.0)
        );
        // By its whole name, and by all of its labels.
        assert_eq!(metrics.value("none", &[]), None);
        assert_eq!(metrics.value("c", &[("account", "/shop")]), None);
        assert_eq!(metrics.written("b"), None);
        assert_eq!(metrics.sum("none").to_bits(), 0.0_f64.to_bits());
        assert_eq!(
            metrics.names().into_iter().collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
    }

    #[test]
    fn broken_lines_are_left_out() {
        for line in [
            "a",
            "a{",
            "a{b=\"",
            "a{b=\"\\",
            "a{b} 1",
            "a{b=c} 1",
            "a{b=\"c} 1",
            "a x",
            "{",
            "a{b=\"c\"}",
            "a{b=\"c\",b=\"d\"} 1",
            "a{b=\"\\t\"} 1",
            "a{b=\"c\"}d 1",
            "1a 1",
        ] {
            assert!(Metrics::parse(line).is_empty(), "{line}");
            assert_eq!(Metrics::default().take(line), Err("not a sample"), "{line}");
        }
    }

    #[test]
    fn a_series_twice_is_an_error() {
        let mut metrics = Metrics::parse("m 1\n");
        assert_eq!(metrics.take("m 2"), Err("a series twice"));
        assert_eq!(metrics.value("m", &[]), Some(1.0));
    }
}
