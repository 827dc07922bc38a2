//! Selectors of series, in PromQL.

use super::Error;

/// Matchers of labels, such as `job="tomcat",instance="a:9464"`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Selector {
    matchers: String,
}

impl Selector {
    /// `text` as `--match` takes it, narrowed to one `instance`.
    ///
    /// Prometheus checks what is between the braces.
    ///
    /// # Errors
    /// [`Error::Selector`] if there are no braces.
    pub(super) fn new(text: Option<&str>, instance: Option<&str>) -> Result<Selector, Error> {
        let mut matchers = match text.map(str::trim) {
            None => String::new(),
            Some(text) => text
                .strip_prefix('{')
                .and_then(|rest| rest.strip_suffix('}'))
                .map(|inner| inner.trim().trim_end_matches(',').to_owned())
                .ok_or_else(|| Error::Selector { text: text.into() })?,
        };
        if let Some(instance) = instance {
            if !matchers.is_empty() {
                matchers.push(',');
            }
            matchers.push_str(&format!("instance={}", quoted(instance)));
        }
        Ok(Selector { matchers })
    }

    /// Narrowed to values of a label.
    pub(super) fn among<'a>(
        &self,
        label: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Selector {
        let patterns: Vec<String> = values.into_iter().map(escaped).collect();
        self.matching(label, &patterns.join("|"))
    }

    /// Narrowed to values of a label that match a regular expression as a whole.
    pub(super) fn matching(&self, label: &str, pattern: &str) -> Selector {
        let mut matchers = self.matchers.clone();
        if !matchers.is_empty() {
            matchers.push(',');
        }
        matchers.push_str(&format!("{label}=~{}", quoted(pattern)));
        Selector { matchers }
    }

    /// The series of a metric.
    pub(super) fn of(&self, metric: &str) -> String {
        if self.matchers.is_empty() {
            metric.into()
        } else {
            format!("{metric}{{{}}}", self.matchers)
        }
    }

    /// For messages: empty without a selector.
    pub(super) fn clause(&self) -> String {
        if self.matchers.is_empty() {
            String::new()
        } else {
            format!(", where {{{}}}", self.matchers)
        }
    }
}

/// Of a name with `*` for anything, the regular expression.
pub(super) fn pattern(glob: &str) -> String {
    let parts: Vec<String> = glob.split('*').map(escaped).collect();
    parts.join(".*")
}

/// A text as a regular expression that matches it alone.
fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        if r"\.+*?()|[]{}^$".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// A string of PromQL, in double quotes.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_are_joined() {
        let of = |text, instance| Selector::new(text, instance).unwrap().of("m");
        assert_eq!(of(None, None), "m");
        assert_eq!(of(Some("{}"), None), "m");
        assert_eq!(
            of(Some(" {job=\"a\",} "), Some("x\"\\")),
            r#"m{job="a",instance="x\"\\"}"#
        );
        assert_eq!(of(None, Some("h:1")), r#"m{instance="h:1"}"#);
        assert!(Selector::new(Some("job=\"a\""), None).is_err());
    }

    #[test]
    fn values_and_patterns_match_nothing_else() {
        let all = Selector::default();
        assert_eq!(
            all.among("instance", ["a.b:1", "c|d"]).of("m"),
            r#"m{instance=~"a\\.b:1|c\\|d"}"#
        );
        assert_eq!(pattern("/team-*.war"), r"/team-.*\.war");
        assert_eq!(
            all.matching("job", "x")
                .matching("account", &pattern("*"))
                .of("m"),
            r#"m{job=~"x",account=~".*"}"#
        );
    }
}
