//! The reviewed rules: which of the JDK's methods an error may pass through.
//!
//! The data is `reviewed.toml`, written for people to review. This module compiles it for look-up by
//! class and method. The most specific row decides; see `places.rs`.

use std::sync::LazyLock;

use serde::Deserialize;

use super::judge::MethodRule;
use super::places::Places;
use super::reason::Reason;

/// The table that is compiled in.
const REVIEWED: &str = include_str!("reviewed.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rule: Vec<Row>,
}

/// One `[[rule]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    at: Vec<String>,
    verdict: Verdict,
    scope: Option<Scope>,
    reason: Option<String>,
    why: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Transparent,
    Never,
    Framework,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scope {
    Above,
    Anywhere,
}

/// Why a table of rules is invalid.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// It is not valid TOML, or has unknown keys.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// A row is invalid: the place that it names, and why.
    #[error("{0}: {1}")]
    Row(String, &'static str),
}

impl Row {
    fn rule(&self) -> Result<MethodRule, &'static str> {
        if self.why.trim().is_empty() {
            return Err("a rule says why");
        }
        match (self.verdict, self.scope, &self.reason) {
            (Verdict::Transparent, None, None) => Ok(MethodRule::Transparent),
            (Verdict::Framework, None, None) => Ok(MethodRule::Framework),
            (Verdict::Transparent | Verdict::Framework, ..) => {
                Err("only what is never interrupted has a scope and a reason")
            }
            (Verdict::Never, Some(scope), Some(reason)) => {
                let reason = Reason::from_name(reason).ok_or("no such reason")?;
                Ok(match scope {
                    Scope::Above => MethodRule::Above(reason),
                    Scope::Anywhere => MethodRule::Anywhere(reason),
                })
            }
            (Verdict::Never, ..) => Err("what is never interrupted has a scope and a reason"),
        }
    }
}

/// The rules, compiled.
#[derive(Debug, Default)]
pub struct Rules {
    rows: Places<MethodRule>,
}

/// The rule that was found for a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ruling {
    /// The rule.
    pub rule: MethodRule,
    /// The row names the method itself, not its class or package.
    pub by_name: bool,
}

impl Rules {
    /// The table that is compiled in.
    pub fn reviewed() -> &'static Rules {
        static PARSED: LazyLock<Rules> = LazyLock::new(Rules::parse_reviewed);
        &PARSED
    }

    fn parse_reviewed() -> Rules {
        Rules::parse(REVIEWED).unwrap_or_else(|error| {
            // A test reads the table, so this build was never tested.
            tracing::error!(
                "the table of throw points is unreadable ({error}); nothing is refused"
            );
            let mut rows = Places::default();
            for nowhere in ["java.*", "jdk.*"] {
                let _ = rows.enter(nowhere, MethodRule::Anywhere(Reason::Unresolved));
            }
            Rules { rows }
        })
    }

    fn parse(text: &str) -> Result<Rules, RulesError> {
        let file: File = toml::from_str(text)?;
        let mut rows = Places::default();
        for row in &file.rule {
            for at in &row.at {
                let bad = |why| RulesError::Row(at.clone(), why);
                let rule = row.rule().map_err(bad)?;
                rows.enter(at, rule).map_err(bad)?;
            }
        }
        Ok(Rules { rows })
    }

    /// The rule for a method of a class, whose name is written as in Java (`java.util.Map$Entry`);
    /// `None` if no row applies.
    pub fn of(&self, class: &str, method: &str) -> Option<Ruling> {
        let (&rule, by_name) = self.rows.find(class, method)?;
        Some(Ruling { rule, by_name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Rules {
        Rules::parse(text).unwrap()
    }

    fn said(rules: &Rules, class: &str, method: &str) -> Option<MethodRule> {
        rules.of(class, method).map(|ruling| ruling.rule)
    }

    #[test]
    fn the_reviewed_table_is_readable() {
        let rules = rules(REVIEWED);
        assert!(rules.rows.len() > 100, "{}", rules.rows.len());
    }

    /// A row that changes nothing would be read as if it did.
    #[test]
    fn no_row_is_shadowed() {
        let file: File = toml::from_str(REVIEWED).unwrap();
        for row in &file.rule {
            for at in &row.at {
                let mut without = rules(REVIEWED);
                without.rows.remove(at);
                let name = at.strip_prefix("*.").unwrap_or(at);
                let (name, method) = name.split_once('#').unwrap_or((name, "noSuchMethod"));
                let class = match name.strip_suffix(".*") {
                    Some(package) => format!("{package}.below.X"),
                    None if name.contains(char::is_uppercase) => name.to_owned(),
                    None => format!("{name}.NoSuchClass"),
                };
                let rest = without.of(&class, method);
                let ruling = rules(REVIEWED).of(&class, method);
                assert_ne!(rest, ruling, "{at} says what holds without it");
            }
        }
    }

    #[test]
    fn the_most_specific_row_decides() {
        let rules = rules(
            r#"
            [[rule]]
            at = ["a.*"]
            verdict = "never"
            scope = "above"
            reason = "jdk"
            why = "all"
            [[rule]]
            at = ["a.b", "a.c.C$D", "a.c.C#m", "a.c.C$D$E#m"]
            verdict = "transparent"
            why = "these"
            [[rule]]
            at = ["a.c.C"]
            verdict = "never"
            scope = "anywhere"
            reason = "locks"
            why = "that"
            "#,
        );
        let jdk = Some(MethodRule::Above(Reason::Jdk));
        let locks = Some(MethodRule::Anywhere(Reason::Locks));
        let clear = Some(MethodRule::Transparent);
        for (class, method, expected) in [
            ("a.X", "m", jdk),
            ("a.b.X", "m", clear),
            ("a.b.c.X", "m", jdk),
            ("a.c.C", "m", clear),
            ("a.c.C", "n", locks),
            ("a.c.C$X", "m", locks),
            ("a.c.C$D", "n", clear),
            ("a.c.C$D$X$Y", "n", clear),
            ("b.X", "m", None),
            ("ab.X", "m", None),
            ("X", "m", None),
        ] {
            assert_eq!(said(&rules, class, method), expected, "{class}#{method}");
        }
        assert!(rules.of("a.c.C", "m").unwrap().by_name);
        assert!(!rules.of("a.c.C$D", "m").unwrap().by_name);
    }

    #[test]
    fn bad_rows_are_refused() {
        for (row, why) in [
            (r#"at = ["a.b"]"#, "missing"),
            (
                r#"at = ["a.b"]
                verdict = "transparent"
                why = " ""#,
                "says why",
            ),
            (
                r#"at = ["a.b"]
                verdict = "never"
                why = "x""#,
                "scope and a reason",
            ),
            (
                r#"at = ["a.b"]
                verdict = "never"
                scope = "above"
                reason = "whim"
                why = "x""#,
                "no such reason",
            ),
            (
                r#"at = ["a.b"]
                verdict = "transparent"
                scope = "above"
                why = "x""#,
                "never interrupted has a scope",
            ),
            (
                r#"at = ["a.b"]
                verdict = "framework"
                reason = "jdk"
                why = "x""#,
                "never interrupted has a scope",
            ),
            (
                r#"at = ["a.C.D"]
                verdict = "transparent"
                why = "x""#,
                "inside",
            ),
            (
                r#"at = ["a.b", "a.b"]
                verdict = "transparent"
                why = "x""#,
                "twice",
            ),
            (
                r#"at = ["a.b#m"]
                verdict = "transparent"
                why = "x""#,
                "needs its class",
            ),
            (
                r#"at = ["a.b"]
                verdict = "transparent"
                whence = "x"
                why = "x""#,
                "unknown",
            ),
        ] {
            let error = Rules::parse(&format!("[[rule]]\n{row}")).unwrap_err();
            assert!(error.to_string().contains(why), "{row}: {error}");
        }
    }
}
