//! The reviewed rules: which of the JDK's methods an error may pass through.
//!
//! `reviewed.toml` is the data, for people to read and to dispute; this compiles it for
//! look-up by class and method. The most specific row decides: a method, its class, the
//! classes around that class, the package, the packages above it with `.*`.

use std::collections::HashMap;

use serde::Deserialize;

use super::judge::Verdict;
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
    verdict: Word,
    scope: Option<Scope>,
    reason: Option<String>,
    why: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Transparent,
    Never,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scope {
    Above,
    Anywhere,
}

/// Why a table is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RulesError {
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    #[error("{0}: {1}")]
    Row(String, &'static str),
}

impl Row {
    fn verdict(&self) -> Result<Verdict, &'static str> {
        if self.why.trim().is_empty() {
            return Err("a rule says why");
        }
        match (self.verdict, self.scope, &self.reason) {
            (Word::Transparent, None, None) => Ok(Verdict::Transparent),
            (Word::Transparent, ..) => Err("what is transparent has no scope and no reason"),
            (Word::Never, Some(scope), Some(reason)) => {
                let reason = Reason::from_name(reason).ok_or("no such reason")?;
                Ok(match scope {
                    Scope::Above => Verdict::Above(reason),
                    Scope::Anywhere => Verdict::Anywhere(reason),
                })
            }
            (Word::Never, ..) => Err("what is never interrupted has a scope and a reason"),
        }
    }
}

/// A place in the code, as a row names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    /// `a.b.*`
    Below(String),
    /// `a.b`
    Package(String),
    /// `a.b.C`, `a.b.C$D`: with the classes inside it.
    Class(String),
    /// `a.b.C#m`
    Method(String, String),
}

impl Place {
    fn read(text: &str) -> Result<Place, &'static str> {
        if let Some((class, method)) = text.split_once('#') {
            return match Place::read(class)? {
                Place::Class(class) if !method.is_empty() => {
                    Ok(Place::Method(class, method.to_owned()))
                }
                _ => Err("a method needs its class"),
            };
        }
        let (name, below) = match text.strip_suffix(".*") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let part_is_class = |part: &str| part.starts_with(char::is_uppercase);
        let parts: Vec<&str> = name.split('.').collect();
        let classes = parts.iter().filter(|part| part_is_class(part)).count();
        let last_is_class = parts.last().is_some_and(|part| part_is_class(part));
        if parts
            .iter()
            .any(|part| part.is_empty() || part.contains('*'))
        {
            return Err("not a package, a class or a method");
        }
        match (below, classes, last_is_class) {
            (true, 0, _) => Ok(Place::Below(name.to_owned())),
            (false, 0, _) => Ok(Place::Package(name.to_owned())),
            (false, 1, true) => Ok(Place::Class(name.to_owned())),
            _ => Err("classes inside classes are written with a `$`"),
        }
    }
}

/// The rules, compiled.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    rows: HashMap<Place, Verdict>,
}

/// What the rules say of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ruling {
    pub(crate) verdict: Verdict,
    /// It is the method itself that is named, not its class or package.
    pub(crate) by_name: bool,
}

impl Rules {
    /// The table that is compiled in.
    pub(crate) fn reviewed() -> Rules {
        Rules::parse(REVIEWED).unwrap_or_else(|error| {
            // A test reads the table, so this is a build that nobody tested.
            tracing::error!(
                "the table of throw points is unreadable ({error}); nothing is refused"
            );
            let nowhere = ["java", "jdk"].map(|package| Place::Below(package.to_owned()));
            Rules {
                rows: nowhere
                    .into_iter()
                    .map(|place| (place, Verdict::Anywhere(Reason::Unresolved)))
                    .collect(),
            }
        })
    }

    fn parse(text: &str) -> Result<Rules, RulesError> {
        let file: File = toml::from_str(text)?;
        let mut rows = HashMap::new();
        for row in &file.rule {
            for at in &row.at {
                let bad = |why| RulesError::Row(at.clone(), why);
                let verdict = row.verdict().map_err(bad)?;
                if rows
                    .insert(Place::read(at).map_err(bad)?, verdict)
                    .is_some()
                {
                    return Err(bad("given twice"));
                }
            }
        }
        Ok(Rules { rows })
    }

    /// What is said of a method of a class, whose name is written as Java does
    /// (`java.util.Map$Entry`); `None` where nothing is.
    pub(crate) fn of(&self, class: &str, method: &str) -> Option<Ruling> {
        let named = Place::Method(class.to_owned(), method.to_owned());
        if let Some(&verdict) = self.rows.get(&named) {
            return Some(Ruling {
                verdict,
                by_name: true,
            });
        }
        let (package, _) = class.rsplit_once('.').unwrap_or(("", class));
        around(class)
            .map(|class| Place::Class(class.to_owned()))
            .chain([Place::Package(package.to_owned())])
            .chain(above(package).map(|package| Place::Below(package.to_owned())))
            .find_map(|place| self.rows.get(&place))
            .map(|&verdict| Ruling {
                verdict,
                by_name: false,
            })
    }
}

/// A class and those around it, the innermost first.
fn around(class: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(class), |inner| {
        inner.rsplit_once('$').map(|(outer, _)| outer)
    })
}

/// A package and those above it.
fn above(package: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(package), |below| {
        below.rsplit_once('.').map(|(above, _)| above)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Rules {
        Rules::parse(text).unwrap()
    }

    fn said(rules: &Rules, class: &str, method: &str) -> Option<Verdict> {
        rules.of(class, method).map(|ruling| ruling.verdict)
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
                let place = Place::read(at).unwrap();
                let mut without = rules(REVIEWED);
                without.rows.remove(&place);
                let (class, method) = match &place {
                    Place::Below(package) => (format!("{package}.below.X"), "m"),
                    Place::Package(package) => (format!("{package}.NoSuchClass"), "m"),
                    Place::Class(class) => (class.clone(), "noSuchMethod"),
                    Place::Method(class, method) => (class.clone(), method.as_str()),
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
        let jdk = Some(Verdict::Above(Reason::Jdk));
        let locks = Some(Verdict::Anywhere(Reason::Locks));
        let clear = Some(Verdict::Transparent);
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
                "no scope",
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
