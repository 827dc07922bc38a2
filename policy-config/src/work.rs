//! Code with which a unit of work begins: the `work` of an account.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;

use crate::diagnostic::{Sink, quote};
use crate::pattern::{PackagePattern, PackageTable, PatternError};
use crate::tree::{Located, Section};

/// A method (`a.b.C#m`), a class with the classes inside it (`a.b.C`, `a.b.C$D`), a package (`a.b`), or
/// a package with all below (`a.b.*`).
///
/// A name whose last part begins with a capital is a class.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WorkPattern {
    /// All overloads of a method.
    Method {
        /// The class that declares it, as Java writes it.
        class: String,
        /// The method's name.
        method: String,
    },
    /// Every method of a class, and of the classes inside it.
    Class(String),
    /// Every method of these classes.
    Package(PackagePattern),
}

/// Why a text is no [`WorkPattern`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// The class or package is not a name.
    #[error(transparent)]
    Name(#[from] PatternError),
    /// The text behind the `#` is no method's name.
    #[error("{} is not the name of a method", quote(.0))]
    Method(String),
    /// A method of a package.
    #[error("{} is not the name of a class", quote(.0))]
    NoClass(String),
    /// A class inside a class, with a dot.
    #[error("{}: a class inside a class is written with a `$`", quote(.0))]
    Inner(String),
}

impl WorkError {
    /// Returns advice on the text to write instead.
    pub fn hint(&self) -> String {
        match self {
            WorkError::Name(error) => error.hint(),
            WorkError::Method(_) => {
                "write the class, a `#` and the method, without brackets".to_owned()
            }
            WorkError::NoClass(_) => {
                "write the full name of the class: \"com.acme.Loop#step\"".to_owned()
            }
            WorkError::Inner(text) => {
                let is_class = |part: &&str| part.starts_with(char::is_uppercase);
                let packages = text.split('.').take_while(|part| !is_class(part)).count();
                let text = text.strip_suffix(".*").unwrap_or(text);
                let parts: Vec<&str> = text.split('.').collect();
                let (packages, classes) = parts.split_at(packages);
                let name = [packages.join("."), classes.join("$")].join(".");
                format!("write \"{}\"", name.trim_start_matches('.'))
            }
        }
    }
}

impl WorkPattern {
    /// Parses `a.b.C#m`, `a.b.C`, `a.b` or `a.b.*`.
    ///
    /// # Errors
    /// [`WorkError`] says which rule the text breaks.
    pub fn new(text: &str) -> Result<Self, WorkError> {
        let (name, method) = match text.split_once('#') {
            Some((name, method)) => (name, Some(method)),
            None => (text, None),
        };
        let pattern = PackagePattern::new(name)?;
        let classes = (pattern.prefix().split('.'))
            .filter(|part| part.starts_with(char::is_uppercase))
            .count();
        let is_class = pattern.looks_like_a_class() && !pattern.includes_below();
        if classes > usize::from(is_class) {
            return Err(WorkError::Inner(text.to_owned()));
        }
        match (method, is_class) {
            (None, false) => Ok(WorkPattern::Package(pattern)),
            (None, true) => Ok(WorkPattern::Class(name.to_owned())),
            (Some(_), false) => Err(WorkError::NoClass(name.to_owned())),
            (Some(method), true) if is_method(method) => Ok(WorkPattern::Method {
                class: name.to_owned(),
                method: method.to_owned(),
            }),
            (Some(method), true) => Err(WorkError::Method(method.to_owned())),
        }
    }
}

/// Compilers of other languages than Java use more characters than Java has in names.
fn is_method(name: &str) -> bool {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || ".;[/<>()#*\"".contains(c);
    !name.is_empty() && !name.contains(is_odd)
}

impl fmt::Display for WorkPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkPattern::Method { class, method } => write!(formatter, "{class}#{method}"),
            WorkPattern::Class(class) => formatter.write_str(class),
            WorkPattern::Package(pattern) => pattern.fmt(formatter),
        }
    }
}

/// An account's `work`, compiled.
#[derive(Debug, Clone, Default)]
pub struct WorkTable {
    /// `a.b.C#m`, and `a.b.C` for a class.
    names: HashSet<String>,
    packages: PackageTable,
}

impl WorkTable {
    pub(crate) fn new(patterns: &[WorkPattern]) -> WorkTable {
        let packages = patterns.iter().filter_map(|pattern| match pattern {
            WorkPattern::Package(pattern) => Some((pattern, 0)),
            _ => None,
        });
        WorkTable {
            names: (patterns.iter())
                .filter(|pattern| !matches!(pattern, WorkPattern::Package(_)))
                .map(ToString::to_string)
                .collect(),
            packages: PackageTable::new(packages),
        }
    }

    /// Whether some pattern matches a method of a class, whose name is written with dots.
    pub fn matches(&self, class: &str, method: &str) -> bool {
        let mut enclosing = std::iter::successors(Some(class), |inner| {
            inner.rsplit_once('$').map(|(outer, _)| outer)
        });
        let package = class.rsplit_once('.').map_or("", |(package, _)| package);
        !self.names.is_empty()
            && (self.names.contains(&format!("{class}#{method}"))
                || enclosing.any(|class| self.names.contains(class)))
            || self.packages.lookup(package).is_some()
    }
}

/// Reads `work` of an account.
pub(crate) fn read(section: &Section<'_, '_>, sink: &mut Sink) -> Vec<WorkPattern> {
    let texts = section.strings("work", "com.acme.Loop#step", sink);
    let mut seen: HashMap<&str, Range<usize>> = HashMap::new();
    let mut patterns = Vec::new();
    for Located { value, span } in texts.unwrap_or_default() {
        if let Some(first) = seen.get(value) {
            sink.warning(span, format!("{} is given twice", quote(value)))
                .hint("remove one")
                .related(first.clone(), "first given here");
            continue;
        }
        match WorkPattern::new(value) {
            Ok(pattern) => {
                seen.insert(value, span);
                patterns.push(pattern);
            }
            Err(error) => {
                sink.error(span, error.to_string()).hint(error.hint());
            }
        }
    }
    patterns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_classes_and_packages_match() {
        let patterns = [
            "org.h2.server.TcpServerThread#process",
            "a.b.C",
            "a.b.D$E#m",
            "jobs",
            "x.y.*",
            "Top#main",
        ];
        let patterns = patterns.map(|text| WorkPattern::new(text).unwrap());
        let table = WorkTable::new(&patterns);
        for (class, method, expected) in [
            ("org.h2.server.TcpServerThread", "process", true),
            ("org.h2.server.TcpServerThread", "run", false),
            ("org.h2.server.TcpServerThread$1", "process", false),
            ("a.b.C", "any", true),
            ("a.b.C$$Lambda", "run", true),
            ("a.b.C2", "any", false),
            ("a.b.D$E", "m", true),
            ("a.b.D", "m", false),
            ("jobs.Job", "run", true),
            ("jobs.nightly.Job", "run", false),
            ("x.y.z.W", "m", true),
            ("x.W", "m", false),
            ("Top", "main", true),
            ("Top", "run", false),
        ] {
            assert_eq!(table.matches(class, method), expected, "{class}#{method}");
        }
        assert!(!WorkTable::default().matches("a.b.C", "m"));
        for (pattern, text) in patterns
            .iter()
            .zip(["org.h2.server.TcpServerThread#process"])
        {
            assert_eq!(pattern.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_a_hint() {
        for (text, error, hint) in [
            ("", "empty", "a.b"),
            ("*", "every package", "name the packages"),
            ("a/b/C", "dots", "a.b.C"),
            ("a.b#m", "not the name of a class", "full name"),
            ("a.*#m", "not the name of a class", "full name"),
            ("a.C#", "not the name of a method", "without brackets"),
            ("a.C#m()", "not the name of a method", "without brackets"),
            ("a.C#m#n", "not the name of a method", "without brackets"),
            ("a.C.D", "with a `$`", "write \"a.C$D\""),
            ("a.C.*", "with a `$`", "write \"a.C\""),
        ] {
            let refused = WorkPattern::new(text).unwrap_err();
            assert!(refused.to_string().contains(error), "{text}: {refused}");
            assert!(refused.hint().contains(hint), "{text}: {}", refused.hint());
        }
    }
}
