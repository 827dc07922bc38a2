//! The Prometheus text format, as far as the agent writes it.

use std::collections::BTreeMap;

/// One reading of `/metrics`: samples by metric, in the order of the text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Metrics(BTreeMap<String, Vec<Sample>>);

#[derive(Debug, Clone, PartialEq)]
struct Sample {
    labels: BTreeMap<String, String>,
    value: f64,
}

impl Metrics {
    /// Reads the text; lines that are not understood are left out.
    pub(super) fn parse(text: &str) -> Metrics {
        let mut metrics = Metrics::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some((name, sample)) = sample(line) {
                metrics.0.entry(name.to_owned()).or_default().push(sample);
            }
        }
        metrics
    }

    /// Whether there is nothing: the agent was not read.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a metric without labels.
    pub(super) fn value(&self, name: &str) -> Option<f64> {
        Some(self.0.get(name)?.first()?.value)
    }

    /// The values of a metric by one of its labels.
    pub(super) fn by_label<'a>(
        &'a self,
        name: &str,
        label: &'a str,
    ) -> impl Iterator<Item = (&'a str, f64)> {
        let samples = self.0.get(name).into_iter().flatten();
        samples.filter_map(move |sample| Some((sample.labels.get(label)?.as_str(), sample.value)))
    }
}

/// `name{label="value",…} number`
fn sample(line: &str) -> Option<(&str, Sample)> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some((name, Sample { labels, value }))
}

/// The labels up to the closing brace, and what follows it.
fn labels(text: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (label, after) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = after.char_indices();
        loop {
            match characters.next()? {
                (at, '"') => {
                    rest = &after[at + 1..];
                    break;
                }
                (_, '\\') => value.push(match characters.next()?.1 {
                    'n' => '\n',
                    escaped => escaped,
                }),
                (_, plain) => value.push(plain),
            }
        }
        labels.insert(label.to_owned(), value);
    }
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
        assert_eq!(metrics.value("a"), Some(3.0));
        let b: Vec<_> = metrics.by_label("b", "reason").collect();
        assert_eq!(b, [("x", 1000.0), ("y, \"z\\\n}", 2.0)]);
        let c: Vec<_> = metrics.by_label("c", "account").collect();
        assert_eq!(c, [("/shop", 5.0)]);
        assert_eq!(metrics.value("none"), None);
    }

    #[test]
    fn broken_lines_are_left_out() {
        for line in [
            "a",
            "a{",
            "a{b=\"",
            "a{b=\"\\",
            "a{b} 1",
            "a x",
            "{",
            "a{b=\"c\"}",
        ] {
            assert!(Metrics::parse(line).is_empty(), "{line}");
        }
    }
}
