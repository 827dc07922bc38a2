//! Globs over names: of services, scopes, accounts and classes.

use std::fmt;

use crate::diagnostic::{Sink, is_invisible};
use crate::tree::{Located, Section};

/// Longest glob, in bytes.
pub const MAX_GLOB_BYTES: usize = 1000;

/// A pattern over names: `*` stands for any run of characters (also none, also `/`),
/// `?` for exactly one, everything else for itself. Case matters.
///
/// There is no escape: no server gives a deployment a name with `*` or `?` in it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Glob {
    pattern: String,
}

/// Why a text is not a glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// It would match only the empty name, which nothing has.
    #[error("the glob is empty")]
    Empty,
    /// Longer than [`MAX_GLOB_BYTES`].
    #[error("the glob is longer than {MAX_GLOB_BYTES} bytes")]
    TooLong,
    /// No name contains them, so it could never match.
    #[error("the glob contains control or invisible characters")]
    Invisible,
}

impl GlobError {
    /// Returns advice on the text to write instead.
    pub fn hint(self) -> &'static str {
        match self {
            GlobError::Empty => "\"*\" matches every name",
            GlobError::TooLong => "shorten it with *",
            GlobError::Invisible => "remove them",
        }
    }
}

impl Glob {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`GlobError`] if the pattern can never match, or is too long.
    pub fn new(pattern: &str) -> Result<Self, GlobError> {
        if pattern.is_empty() {
            return Err(GlobError::Empty);
        }
        if pattern.len() > MAX_GLOB_BYTES {
            return Err(GlobError::TooLong);
        }
        if pattern.chars().any(is_invisible) {
            return Err(GlobError::Invisible);
        }
        Ok(Glob {
            pattern: pattern.into(),
        })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// True if the pattern has no `*` or `?`, so that it names one thing.
    pub fn is_literal(&self) -> bool {
        !self.pattern.contains(['*', '?'])
    }

    /// True if every name matches.
    pub fn matches_everything(&self) -> bool {
        self.pattern.bytes().all(|byte| byte == b'*')
    }

    /// Whether `name` matches as a whole.
    ///
    /// Takes time in proportion to at most the product of both lengths, and no memory: on a mismatch
    /// only the latest `*` takes one more character, because it can take whatever an earlier one
    /// could.
    pub fn matches(&self, name: &str) -> bool {
        let mut pattern = self.pattern.chars();
        let mut rest = name.chars();
        // After the latest `*`: the pattern behind it, and the name not yet given to it.
        let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
        loop {
            let mut tail = pattern.clone();
            let mut ahead = rest.clone();
            match (tail.next(), ahead.next()) {
                (None, None) => return true,
                (Some('*'), _) => {
                    retry = Some((tail.clone(), rest.clone()));
                    pattern = tail;
                }
                (Some('?'), Some(_)) => {
                    pattern = tail;
                    rest = ahead;
                }
                (Some(wanted), Some(given)) if wanted == given => {
                    pattern = tail;
                    rest = ahead;
                }
                _ => {
                    let Some((after_star, not_taken)) = &mut retry else {
                        return false;
                    };
                    if not_taken.next().is_none() {
                        return false;
                    }
                    pattern = after_star.clone();
                    rest = not_taken.clone();
                }
            }
        }
    }

    /// Whether any of `names` matches: a deployment is known by several, such as the
    /// context path `/shop`, the name `shop` and the file `shop.war`.
    pub fn matches_any<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> bool {
        names.into_iter().any(|name| self.matches(name))
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.pattern)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Glob({:?})", self.pattern)
    }
}

/// The glob at `key` of `section`; `None` if it is absent or, with an error, no glob.
pub(crate) fn read(
    section: &Section<'_, '_>,
    key: &str,
    example: &str,
    sink: &mut Sink,
) -> Option<Located<Glob>> {
    let Located { value, span } = section.string(key, example, sink)?;
    match Glob::new(value) {
        Ok(glob) => Some(Located { value: glob, span }),
        Err(error) => {
            sink.error(span, error.to_string()).hint(error.hint());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn glob(pattern: &str) -> Glob {
        Glob::new(pattern).unwrap()
    }

    #[test]
    fn literals_match_themselves_only() {
        assert!(glob("/shop").matches("/shop"));
        assert!(!glob("/shop").matches("/shop/"));
        assert!(!glob("/shop").matches("/Shop"));
        assert!(!glob("/shop").matches(""));
    }

    #[test]
    fn stars_and_question_marks() {
        assert!(glob("*").matches(""));
        assert!(glob("tenant-*").matches("tenant-"));
        assert!(glob("tenant-*").matches("tenant-42"));
        assert!(!glob("tenant-*").matches("Tenant-42"));
        assert!(glob("*.war").matches("a.war.war"));
        assert!(glob("a*b*c").matches("a-b-b-c"));
        assert!(!glob("a*b*c").matches("a-c-b"));
        assert!(glob("v?").matches("vä"));
        assert!(!glob("v?").matches("v"));
        assert!(glob("/*/api").matches("/shop/eu/api"));
        assert!(
            glob("[a]{b}\\").matches("[a]{b}\\"),
            "no other metacharacters"
        );
    }

    #[test]
    fn any_of_the_names_will_do() {
        let names = ["/shop", "shop", "shop.war"];
        assert!(glob("/shop").matches_any(names));
        assert!(glob("shop").matches_any(names));
        assert!(glob("*.war").matches_any(names));
        assert!(!glob("/other").matches_any(names));
    }

    #[test]
    fn what_can_never_match_is_refused() {
        assert_eq!(Glob::new(""), Err(GlobError::Empty));
        assert_eq!(Glob::new("a\nb"), Err(GlobError::Invisible));
        assert_eq!(Glob::new(&"a".repeat(1001)), Err(GlobError::TooLong));
    }

    #[test]
    fn many_stars_stay_cheap() {
        let pattern = glob(&format!("{}b", "a*".repeat(300)));
        let name = "a".repeat(10_000);
        let start = std::time::Instant::now();
        assert!(!pattern.matches(&name));
        assert!(start.elapsed() < std::time::Duration::from_secs(5));
    }

    /// The definition, without regard to cost.
    fn oracle(pattern: &[char], name: &[char]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some(('*', tail)) => (0..=name.len()).any(|taken| oracle(tail, &name[taken..])),
            Some(('?', tail)) => !name.is_empty() && oracle(tail, &name[1..]),
            Some((wanted, tail)) => name.first() == Some(wanted) && oracle(tail, &name[1..]),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[abä*?]{1,8}", name in "[abä]{0,10}") {
            let characters: Vec<char> = pattern.chars().collect();
            let name_characters: Vec<char> = name.chars().collect();
            prop_assert_eq!(
                glob(&pattern).matches(&name),
                oracle(&characters, &name_characters)
            );
        }
    }
}
