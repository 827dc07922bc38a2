//! Requests that the door of an account lets in while the account is over its limit.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use crate::diagnostic::{Sink, quote};
use crate::glob::{Glob, GlobError};
use crate::tree::{Located, Section};

/// Longest method of an [`Admit`], in bytes. The longest registered one (`UPDATEREDIRECTREF`) has 17.
pub const MAX_METHOD_BYTES: usize = 40;

/// One entry of `admit`: an HTTP method and a glob over the path inside the application, such as
/// `DELETE *` or `* /logout`.
///
/// The method `*` stands for all. Methods are compared without regard to ASCII case and kept in upper
/// case; case matters in paths.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Admit {
    /// In upper case; `None`: any.
    method: Option<String>,
    path: Glob,
}

/// Why a text is no entry of `admit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdmitError {
    /// It has no method, or no path.
    #[error("a method and a path are wanted")]
    Incomplete,
    /// The method has characters that no method has.
    #[error("the method is not a word such as GET, and not `*`")]
    BadMethod,
    /// The method is longer than [`MAX_METHOD_BYTES`].
    #[error("the method is longer than {MAX_METHOD_BYTES} bytes")]
    LongMethod,
    /// The path begins with neither `/` nor `*`, so it could never match.
    #[error("the path does not begin with `/` or `*`")]
    Relative,
    /// The path has white space within.
    #[error("the path contains white space")]
    WhiteSpace,
    /// The path is no glob.
    #[error(transparent)]
    Path(#[from] GlobError),
}

impl AdmitError {
    /// Returns advice on the text to write instead.
    pub fn hint(self) -> &'static str {
        match self {
            AdmitError::Incomplete => "write both, such as \"DELETE *\" or \"* /logout\"",
            AdmitError::BadMethod | AdmitError::LongMethod => {
                "write the method first: \"DELETE *\"; `*` stands for every method"
            }
            AdmitError::Relative => {
                "write the path inside the application, such as \"* /logout\", or * for every path"
            }
            AdmitError::WhiteSpace => "write an entry for each path, and ? for a space in a path",
            AdmitError::Path(error) => error.hint(),
        }
    }
}

impl Admit {
    /// Parses an entry: a method, white space, and a glob of at most
    /// [`MAX_GLOB_BYTES`](crate::MAX_GLOB_BYTES).
    ///
    /// # Errors
    /// [`AdmitError`] if a part is missing, too long, or can never match.
    pub fn new(text: &str) -> Result<Self, AdmitError> {
        let (method, path) = text
            .trim()
            .split_once(char::is_whitespace)
            .ok_or(AdmitError::Incomplete)?;
        if method.len() > MAX_METHOD_BYTES {
            return Err(AdmitError::LongMethod);
        }
        let method = match method {
            "*" => None,
            word if word.bytes().all(is_of_method) => Some(word.to_ascii_uppercase()),
            _ => return Err(AdmitError::BadMethod),
        };
        let path = path.trim_start();
        if !path.starts_with(['/', '*']) {
            return Err(AdmitError::Relative);
        }
        if path.contains(char::is_whitespace) {
            return Err(AdmitError::WhiteSpace);
        }
        Ok(Admit {
            method,
            path: Glob::new(path)?,
        })
    }

    /// Whether a request with this method and this path is let in. `path` is the path inside the
    /// application: it begins with `/`.
    ///
    /// Allocates nothing; its time is bounded as that of [`Glob::matches`].
    pub fn matches(&self, method: &str, path: &str) -> bool {
        (self.method.as_deref()).is_none_or(|wanted| wanted.eq_ignore_ascii_case(method))
            && self.path.matches(path)
    }

    /// True if every request matches: the entry takes the door away.
    pub fn matches_everything(&self) -> bool {
        let path = self.path.as_str();
        self.method.is_none()
            && path
                .bytes()
                .skip(usize::from(path.starts_with("/*")))
                .all(|byte| byte == b'*')
    }
}

/// The characters of a token of HTTP (RFC 9110, 5.6.2), without `*`, which stands for all methods.
fn is_of_method(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'+-.^_`|~".contains(&byte)
}

impl fmt::Display for Admit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = self.method.as_deref().unwrap_or("*");
        write!(formatter, "{method} {}", self.path)
    }
}

impl fmt::Debug for Admit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Admit({:?})", self.to_string())
    }
}

/// Reads `admit` of an account.
pub(crate) fn read(section: &Section<'_, '_>, sink: &mut Sink) -> Vec<Admit> {
    let texts = section
        .strings("admit", "DELETE *", sink)
        .unwrap_or_default();
    let mut seen: HashMap<Admit, Range<usize>> = HashMap::new();
    let mut admits = Vec::with_capacity(texts.len());
    for Located { value, span } in texts {
        let admit = match Admit::new(value) {
            Ok(admit) => admit,
            Err(error) => {
                sink.error(span, format!("{}: {error}", quote(value)))
                    .hint(error.hint());
                continue;
            }
        };
        if admit.matches_everything() {
            sink.warning(
                span.clone(),
                format!("{} lets in every request", quote(value)),
            )
            .hint("name what frees memory, or write door = \"off\"");
        }
        if let Some(first) = seen.get(&admit) {
            sink.warning(span, format!("{} is given twice", quote(value)))
                .hint("remove one")
                .related(first.clone(), "first given here");
            continue;
        }
        seen.insert(admit.clone(), span);
        admits.push(admit);
    }
    admits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn admit(text: &str) -> Admit {
        Admit::new(text).unwrap()
    }

    #[test]
    fn method_and_path_must_both_match() {
        assert!(admit("DELETE *").matches("DELETE", "/cart/7"));
        assert!(admit("DELETE *").matches("DELETE", ""));
        assert!(!admit("DELETE *").matches("GET", "/cart/7"));
        assert!(!admit("DELETE *").matches("DELETE2", "/"));
        assert!(admit("* /logout").matches("POST", "/logout"));
        assert!(!admit("* /logout").matches("POST", "/logout/"));
        assert!(!admit("* /logout").matches("POST", "/Logout"));
        assert!(admit("POST /cache/*/clear").matches("POST", "/cache/eu/1/clear"));
    }

    #[test]
    fn case_and_white_space_around_the_method_do_not_matter() {
        let entry = admit("  delete\t  /x ");
        assert_eq!(entry, admit("DELETE /x"));
        assert_eq!(entry.to_string(), "DELETE /x");
        assert!(entry.matches("Delete", "/x") && entry.matches("DELETE", "/x"));
        assert_eq!(format!("{:?}", admit("* *")), "Admit(\"* *\")");
    }

    #[test]
    fn what_takes_the_door_away_is_known() {
        for text in ["* *", "* **", "* /*", "* /**"] {
            assert!(admit(text).matches_everything(), "{text}");
        }
        for text in ["GET *", "* /", "* /a*", "* */", "* *a", "* /*/"] {
            assert!(!admit(text).matches_everything(), "{text}");
        }
    }

    #[test]
    fn what_can_never_match_is_refused() {
        for (text, error) in [
            ("", AdmitError::Incomplete),
            ("DELETE", AdmitError::Incomplete),
            ("/logout", AdmitError::Incomplete),
            (" GET ", AdmitError::Incomplete),
            ("/logout POST", AdmitError::BadMethod),
            ("GET,POST /a", AdmitError::BadMethod),
            ("DEL* /a", AdmitError::BadMethod),
            ("GÉT /a", AdmitError::BadMethod),
            ("GET logout", AdmitError::Relative),
            ("GET ?logout", AdmitError::Relative),
            ("GET /a /b", AdmitError::WhiteSpace),
            ("GET /a\u{202e}", AdmitError::Path(GlobError::Invisible)),
        ] {
            assert_eq!(Admit::new(text), Err(error), "{text}");
        }
        let long = "X".repeat(MAX_METHOD_BYTES);
        assert!(Admit::new(&format!("{long} *")).is_ok());
        assert_eq!(
            Admit::new(&format!("{long}X *")),
            Err(AdmitError::LongMethod)
        );
        assert_eq!(
            Admit::new(&format!("* /{}", "x".repeat(crate::MAX_GLOB_BYTES))),
            Err(AdmitError::Path(GlobError::TooLong))
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(\\*|[A-Za-z]{1,4}|\\PC{0,5})[ \t]*\\PC{0,20}") {
            if let Ok(entry) = Admit::new(&text) {
                prop_assert_eq!(Admit::new(&entry.to_string()), Ok(entry));
            }
        }
    }
}
