//! Package patterns, and the search for the most specific one that matches a package.

use std::fmt;

use crate::diagnostic::quote;

/// Longest package pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 1000;

/// Java packages by name: `a.b` is exactly that package, `a.b.*` is it and all below.
///
/// A bare `*` is not a pattern: the account closest to the allocation pays, so an account with every
/// package would pay for everything that the JDK allocates for others.
/// Reserved words of the Java language are accepted, because Kotlin, Scala and Groovy have packages
/// with such names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PackagePattern {
    /// With dots, without the `.*`.
    prefix: String,
    below: bool,
}

/// Why a text is not a package pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Nothing was given.
    #[error("the package pattern is empty")]
    Empty,
    /// Longer than [`MAX_PATTERN_BYTES`].
    #[error("the package pattern is longer than {MAX_PATTERN_BYTES} bytes")]
    TooLong,
    /// `*` alone.
    #[error("`*` would claim every package, the JDK's too")]
    Everything,
    /// A `*` that is not the whole last part.
    #[error("{}: `*` may only stand alone as the last part", quote(.0))]
    MisplacedStar(String),
    /// Slashes for dots.
    #[error("{}: the parts of a package are separated by dots", quote(.0))]
    Slashes(String),
    /// Two dots in a row, or one at either end.
    #[error("{} has an empty part", quote(.0))]
    EmptyPart(String),
    /// A part that no Java compiler accepts as a name.
    #[error("{} is not a valid part of a package name", quote(.0))]
    NotAnIdentifier(String),
}

impl PatternError {
    /// Returns advice on the text to write instead.
    pub fn hint(&self) -> String {
        match self {
            PatternError::Everything => {
                "name the packages you mean, such as \"com.acme.*\"; what no account matches \
                 is shown as _unaccounted"
                    .into()
            }
            PatternError::Slashes(text) => {
                let dotted = text.replace('/', ".");
                match PackagePattern::new(&dotted) {
                    Ok(pattern) => format!("write \"{pattern}\""),
                    Err(_) => FORMS.into(),
                }
            }
            PatternError::MisplacedStar(text) => {
                let prefix = text.split('*').next().unwrap_or_default();
                match PackagePattern::new(&format!("{}.*", prefix.trim_end_matches('.'))) {
                    Ok(pattern) => format!("\"{pattern}\" matches that package and all below"),
                    Err(_) => FORMS.into(),
                }
            }
            PatternError::Empty
            | PatternError::TooLong
            | PatternError::EmptyPart(_)
            | PatternError::NotAnIdentifier(_) => FORMS.into(),
        }
    }
}

const FORMS: &str = "write \"a.b\" for one package or \"a.b.*\" for it and all below";

impl PackagePattern {
    /// Reads `a.b` or `a.b.*`.
    ///
    /// # Errors
    /// [`PatternError`] says which rule the text breaks.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternError::TooLong);
        }
        if text == "*" {
            return Err(PatternError::Everything);
        }
        if text.contains('/') {
            return Err(PatternError::Slashes(text.into()));
        }
        let (prefix, below) = match text.strip_suffix(".*") {
            Some(prefix) => (prefix, true),
            None => (text, false),
        };
        for part in prefix.split('.') {
            if part.is_empty() {
                return Err(PatternError::EmptyPart(text.into()));
            }
            if part.contains('*') {
                return Err(PatternError::MisplacedStar(text.into()));
            }
            if !is_identifier(part) {
                return Err(PatternError::NotAnIdentifier(part.into()));
            }
        }
        Ok(PackagePattern {
            prefix: prefix.into(),
            below,
        })
    }

    /// The package named, without the `.*`.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// True for `a.b.*`, which includes all packages below.
    pub fn includes_below(&self) -> bool {
        self.below
    }

    /// Whether `package`, written with dots or slashes, matches.
    pub fn matches(&self, package: &str) -> bool {
        let mut given = package.split(SEPARATORS);
        for wanted in self.prefix.split('.') {
            if given.next() != Some(wanted) {
                return false;
            }
        }
        self.below || given.next().is_none()
    }

    /// True if all that it matches lies in `package` or below.
    pub(crate) fn is_within(&self, package: &str) -> bool {
        let mut parts = self.prefix.split('.');
        package.split('.').all(|part| parts.next() == Some(part))
    }

    /// True if the last part starts with a capital: then it is probably a class.
    pub(crate) fn looks_like_a_class(&self) -> bool {
        let last = self.prefix.rsplit('.').next().unwrap_or_default();
        last.starts_with(char::is_uppercase)
    }
}

impl fmt::Display for PackagePattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.prefix)?;
        if self.below {
            formatter.write_str(".*")?;
        }
        Ok(())
    }
}

/// A letter, `_` or `$`, then also digits, in any script. Java also allows other
/// currency signs and connectors, which no known package uses.
fn is_identifier(part: &str) -> bool {
    let mut characters = part.chars();
    let starts = characters
        .next()
        .is_some_and(|first| first.is_alphabetic() || first == '_' || first == '$');
    starts && characters.all(|next| next.is_alphanumeric() || next == '_' || next == '$')
}

/// Java source writes dots, the VM writes slashes.
const SEPARATORS: [char; 2] = ['.', '/'];

/// Many package patterns, each with a number, compiled for look-up.
///
/// The most specific pattern wins: the longest prefix, and for the same prefix the
/// exact form before the one with `.*`.
#[derive(Debug, Clone, Default)]
pub struct PackageTable {
    /// A trie by part of the name; the first node is the root.
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Default)]
struct Node {
    /// Sorted by name.
    children: Vec<(Box<str>, usize)>,
    exact: Option<usize>,
    below: Option<usize>,
}

impl PackageTable {
    /// Compiles `patterns`, each with the number that [`PackageTable::lookup`] shall
    /// give for it. Of two equal patterns the first counts.
    pub fn new<'a>(patterns: impl IntoIterator<Item = (&'a PackagePattern, usize)>) -> Self {
        let mut table = PackageTable {
            nodes: vec![Node::default()],
        };
        for (pattern, number) in patterns {
            let mut node = 0;
            for part in pattern.prefix.split('.') {
                node = table.child_or_insert(node, part);
            }
            let node = &mut table.nodes[node];
            let slot = if pattern.below {
                &mut node.below
            } else {
                &mut node.exact
            };
            slot.get_or_insert(number);
        }
        table
    }

    fn child_or_insert(&mut self, node: usize, part: &str) -> usize {
        let next = self.nodes.len();
        let children = &mut self.nodes[node].children;
        match children.binary_search_by(|(name, _)| (**name).cmp(part)) {
            Ok(place) => children[place].1,
            Err(place) => {
                children.insert(place, (part.into(), next));
                self.nodes.push(Node::default());
                next
            }
        }
    }

    /// True if no package can match.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() <= 1
    }

    /// The number of the most specific pattern that matches `package`, written with
    /// dots or slashes (`com.acme.orders` or `com/acme/orders`). Does not allocate.
    pub fn lookup(&self, package: &str) -> Option<usize> {
        let mut node = self.nodes.first()?;
        let mut best = None;
        for part in package.split(SEPARATORS) {
            let Ok(place) = node
                .children
                .binary_search_by(|(name, _)| (**name).cmp(part))
            else {
                return best;
            };
            node = &self.nodes[node.children[place].1];
            best = node.below.or(best);
        }
        node.exact.or(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> PackagePattern {
        PackagePattern::new(text).unwrap()
    }

    fn table(patterns: &[&str]) -> PackageTable {
        let patterns: Vec<_> = patterns.iter().map(|text| pattern(text)).collect();
        PackageTable::new(patterns.iter().zip(0..))
    }

    #[test]
    fn both_forms_match_as_defined() {
        assert!(pattern("a.b").matches("a.b"));
        assert!(!pattern("a.b").matches("a.b.c"));
        assert!(pattern("a.b.*").matches("a.b"));
        assert!(pattern("a.b.*").matches("a/b/c/d"));
        assert!(!pattern("a.b.*").matches("a.bc"));
        assert!(!pattern("a.b.*").matches("a"));
        assert!(!pattern("a").matches(""));
    }

    #[test]
    fn the_most_specific_wins_in_any_order() {
        for order in [
            ["com.acme.*", "com.acme.orders.*", "com.acme.orders"],
            ["com.acme.orders", "com.acme.orders.*", "com.acme.*"],
        ] {
            let table = table(&order);
            let winner = |package| table.lookup(package).map(|index| order[index]);
            assert_eq!(winner("com.acme"), Some("com.acme.*"));
            assert_eq!(winner("com/acme/stock"), Some("com.acme.*"));
            assert_eq!(winner("com.acme.orders"), Some("com.acme.orders"));
            assert_eq!(winner("com/acme/orders/eu"), Some("com.acme.orders.*"));
            assert_eq!(winner("com.acme2"), None);
            assert_eq!(winner("com"), None);
            assert_eq!(winner(""), None);
        }
    }

    #[test]
    fn an_exact_pattern_does_not_reach_below() {
        let table = table(&["a.b", "a.*"]);
        assert_eq!(table.lookup("a.b"), Some(0));
        assert_eq!(table.lookup("a.b.c"), Some(1));
    }

    #[test]
    fn empty_tables_match_nothing() {
        assert!(PackageTable::default().is_empty());
        assert!(table(&[]).is_empty());
        assert_eq!(PackageTable::default().lookup("a"), None);
        assert!(!table(&["a"]).is_empty());
    }

    #[test]
    fn bad_patterns_say_why_and_what_instead() {
        for (text, error, hint) in [
            ("", PatternError::Empty, FORMS),
            (
                "com.acme*",
                PatternError::MisplacedStar("com.acme*".into()),
                "\"com.acme.*\" matches that package and all below",
            ),
            (
                "com.*.dao",
                PatternError::MisplacedStar("com.*.dao".into()),
                "\"com.*\" matches that package and all below",
            ),
            (
                "com.acme.**",
                PatternError::MisplacedStar("com.acme.**".into()),
                "\"com.acme.*\" matches that package and all below",
            ),
            (
                "com/acme/*",
                PatternError::Slashes("com/acme/*".into()),
                "write \"com.acme.*\"",
            ),
            ("a..b", PatternError::EmptyPart("a..b".into()), FORMS),
            (".a", PatternError::EmptyPart(".a".into()), FORMS),
            ("a.", PatternError::EmptyPart("a.".into()), FORMS),
            (".*", PatternError::EmptyPart(".*".into()), FORMS),
            ("a.1b", PatternError::NotAnIdentifier("1b".into()), FORMS),
            ("a-b", PatternError::NotAnIdentifier("a-b".into()), FORMS),
            ("a b", PatternError::NotAnIdentifier("a b".into()), FORMS),
        ] {
            let given = PackagePattern::new(text).unwrap_err();
            assert_eq!(given, error);
            assert_eq!(given.hint(), hint, "{text}");
        }
        assert_eq!(PackagePattern::new("*"), Err(PatternError::Everything));
        assert_eq!(
            PackagePattern::new(&"a".repeat(1001)),
            Err(PatternError::TooLong)
        );
    }

    #[test]
    fn names_of_other_languages_and_scripts_are_accepted() {
        for text in ["org.native.*", "été.œuvre", "a._b.$c", "a1.b2"] {
            assert_eq!(pattern(text).to_string(), text);
        }
    }

    /// The definition: of all that match, the longest prefix, then the exact form.
    fn oracle(patterns: &[PackagePattern], package: &str) -> Option<usize> {
        let parts = |text: &str| text.split(SEPARATORS).count();
        (0..patterns.len())
            .filter(|&index| {
                let prefix = patterns[index].prefix();
                let dotted = package.replace('/', ".");
                dotted == prefix
                    || (patterns[index].includes_below()
                        && dotted.starts_with(&format!("{prefix}.")))
            })
            .max_by_key(|&index| {
                let one = &patterns[index];
                // Of equals the first, hence the reversed index.
                (
                    parts(one.prefix()),
                    !one.includes_below(),
                    std::cmp::Reverse(index),
                )
            })
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(
            texts in prop::collection::vec(r"[ab]{1,2}(\.[ab]{1,2}){0,3}(\.\*)?", 0..12),
            packages in prop::collection::vec(r"([ab]{1,2}([./][ab]{1,2}){0,4})?", 1..12),
        ) {
            let patterns: Vec<_> = texts.iter().map(|text| pattern(text)).collect();
            let table = PackageTable::new(patterns.iter().zip(0..));
            for package in &packages {
                let expected = oracle(&patterns, package);
                prop_assert_eq!(table.lookup(package), expected, "{}", package);
                let any = patterns.iter().any(|one| one.matches(package));
                prop_assert_eq!(any, expected.is_some(), "{}", package);
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,30}", package in ".{0,30}") {
            match PackagePattern::new(&text) {
                Ok(pattern) => {
                    prop_assert_eq!(pattern.to_string(), text);
                    let table = PackageTable::new([(&pattern, 7)]);
                    prop_assert_eq!(
                        table.lookup(&package).is_some(),
                        pattern.matches(&package)
                    );
                }
                Err(error) => prop_assert!(!error.hint().is_empty()),
            }
        }
    }
}
