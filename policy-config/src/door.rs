//! Where new work is turned away: `door`, `refuse-with` and `status` of an account.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use crate::diagnostic::{Sink, quote};
use crate::interrupt::Listed;

use crate::tree::{Located, Section};
use crate::words::{Throw, word};
use crate::work::{WorkError, WorkPattern};

/// Most methods that the `door` of an account names.
pub const MAX_DOOR_METHODS: usize = 32;

/// Longest name of a method in a `door`, in bytes.
const MAX_METHOD_NAME_BYTES: usize = 200;

/// The status of what a server's door turns away, where the policy names none.
pub const DEFAULT_DOOR_STATUS: u16 = 503;

/// The statuses that a policy may choose.
const STATUSES: [u16; 2] = [DEFAULT_DOOR_STATUS, 429];

/// The form of an entry, as hints show it.
const EXAMPLE: &str = "com.acme.Shop#order";

/// `door`: where new work is turned away while the account is over its limit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Door {
    /// In the servers that the agent knows, before code of the application runs.
    #[default]
    Auto,
    /// Nowhere: work is let in, and its allocations are refused. For services only.
    Off,
    /// At these methods, beside the servers' own doors. Never empty, at most [`MAX_DOOR_METHODS`], none twice.
    Methods(Vec<DoorMethod>),
}

impl Door {
    /// The words of the contract; a list of methods stands for itself.
    pub const WORDS: &'static [&'static str] = &["auto", "off"];

    /// The door that `word` stands for.
    pub fn from_word(word: &str) -> Option<Door> {
        match word {
            "auto" => Some(Door::Auto),
            "off" => Some(Door::Off),
            _ => None,
        }
    }

    /// The methods that it names; empty for a word.
    pub fn methods(&self) -> &[DoorMethod] {
        match self {
            Door::Auto | Door::Off => &[],
            Door::Methods(methods) => methods,
        }
    }
}

impl fmt::Display for Door {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Door::Auto => formatter.write_str("auto"),
            Door::Off => formatter.write_str("off"),
            Door::Methods(methods) => Listed(methods).fmt(formatter),
        }
    }
}

/// A method with which a unit of work begins, in all its overloads: `a.b.C#m`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DoorMethod {
    /// The class that declares it, as Java writes it: `a.b.C$D`.
    pub class: String,
    /// The method's name.
    pub method: String,
}

/// Why a text is no [`DoorMethod`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DoorError {
    /// It does not name one method of one class.
    #[error("{} is not a method of a class", quote(.0))]
    NoMethod(String),
    /// A class inside a class, with a dot.
    #[error(transparent)]
    Inner(WorkError),
}

impl DoorError {
    /// Returns advice on the text to write instead.
    pub fn hint(&self) -> String {
        match self {
            DoorError::NoMethod(_) => {
                format!("write the full name of the class, a `#` and the method: \"{EXAMPLE}\"")
            }
            DoorError::Inner(error) => error.hint(),
        }
    }
}

impl DoorMethod {
    /// Parses `a.b.C#m`. There are no wildcards: what a door does is done at each call of the method.
    ///
    /// # Errors
    /// [`DoorError`] says what is wrong with the text.
    pub fn new(text: &str) -> Result<DoorMethod, DoorError> {
        match WorkPattern::new(text) {
            Ok(WorkPattern::Method { class, method }) if method.len() <= MAX_METHOD_NAME_BYTES => {
                Ok(DoorMethod { class, method })
            }
            Err(error @ WorkError::Inner(_)) if text.contains('#') => Err(DoorError::Inner(error)),
            _ => Err(DoorError::NoMethod(text.to_owned())),
        }
    }
}

impl fmt::Display for DoorMethod {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}#{}", self.class, self.method)
    }
}

/// The keys about doors, as far as they could be read.
pub(crate) struct Doors {
    pub(crate) door: Door,
    pub(crate) refuse_with: Option<Throw>,
    pub(crate) status: u16,
}

/// Reads `door`, `refuse-with` and `status` of an account, and checks who may have them and `admit`.
pub(crate) fn read(section: &Section<'_, '_>, sink: &mut Sink) -> Doors {
    let is_service = section.key_span("service").is_some();
    let has_methods = section.is_array("door");
    let door = match has_methods {
        true => read_methods(section, sink),
        false => word(section, "door", Door::WORDS, Door::from_word, sink).unwrap_or_default(),
    };
    if let Some(span) = section.key_span("door")
        && !is_service
        && !has_methods
    {
        sink.error(
            span,
            "a `door` without methods applies only to an account with `service`",
        )
        .hint(format!(
            "remove it, or name the methods: door = [\"{EXAMPLE}\"]"
        ));
    }
    for key in ["admit", "status"] {
        if let Some(span) = section.key_span(key)
            && !is_service
        {
            sink.error(
                span,
                format!("`{key}` applies only to an account with `service`"),
            )
            .hint("remove it: only requests for a service can be turned away");
        }
    }
    if door == Door::Off && is_service {
        if let Some(span) = section.key_span("admit") {
            sink.warning(
                span,
                "with door = \"off\", `admit` is only for a program that asks by the Java API",
            )
            .hint("remove it if yours does not, or use door = \"auto\"");
        }
        if let Some(span) = section.key_span("status") {
            sink.warning(span, "with door = \"off\", `status` has no effect")
                .hint("remove it, or use door = \"auto\"");
        }
    }
    let refuse_with = word(section, "refuse-with", Throw::WORDS, Throw::from_word, sink);
    if let Some(span) = section.key_span("refuse-with")
        && !has_methods
    {
        sink.error(span, "`refuse-with` applies only to a `door` of methods")
            .hint(format!(
                "name them: door = [\"{EXAMPLE}\"]; `throw` is for refusals elsewhere"
            ));
    }
    Doors {
        door,
        refuse_with,
        status: read_status(section, sink).unwrap_or(DEFAULT_DOOR_STATUS),
    }
}

fn read_status(section: &Section<'_, '_>, sink: &mut Sink) -> Option<u16> {
    let hint = "write status = 503 or status = 429, without quotes";
    let Located { value, span } = section.whole_number("status", hint, sink)?;
    let status = STATUSES
        .into_iter()
        .find(|status| value == Some(u32::from(*status)));
    if status.is_none() {
        sink.error(span, "`status` must be 503 or 429").hint(hint);
    }
    status
}

fn read_methods(section: &Section<'_, '_>, sink: &mut Sink) -> Door {
    let texts = section.strings("door", EXAMPLE, sink).unwrap_or_default();
    let mut seen: HashMap<&str, Range<usize>> = HashMap::new();
    let mut methods = Vec::new();
    for Located { value, span } in texts {
        if let Some(first) = seen.get(value) {
            sink.warning(span, format!("{} is given twice", quote(value)))
                .hint("remove one")
                .related(first.clone(), "first given here");
            continue;
        }
        match DoorMethod::new(value) {
            Ok(_) if methods.len() == MAX_DOOR_METHODS => {
                sink.error(
                    span,
                    format!("a `door` has at most {MAX_DOOR_METHODS} methods"),
                )
                .hint("name those with which a unit of work begins, not what they call");
                break;
            }
            Ok(method) => {
                seen.insert(value, span);
                methods.push(method);
            }
            Err(error) => {
                sink.error(span, error.to_string()).hint(error.hint());
            }
        }
    }
    match methods.is_empty() {
        true => Door::default(),
        false => Door::Methods(methods),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_named_in_one_form_only() {
        for text in ["org.h2.command.Command#executeUpdate", "a.C$D#m", "Top#run"] {
            assert_eq!(DoorMethod::new(text).unwrap().to_string(), text);
        }
        for (text, hint) in [
            ("a.b.C", "a `#` and the method"),
            ("a.b.*", "a `#` and the method"),
            ("a.b#m", "full name of the class"),
            ("a.b.*#m", "full name of the class"),
            ("*.h2.C#m", "full name of the class"),
            ("a.C#*", "full name of the class"),
            ("a.C#<init>", "full name of the class"),
            ("a.C#m()", "full name of the class"),
            ("a/b/C#m", "full name of the class"),
            ("", "full name of the class"),
            ("a.C.D#m", "write \"a.C$D#m\""),
        ] {
            let refused = DoorMethod::new(text).unwrap_err();
            assert!(refused.hint().contains(hint), "{text}: {}", refused.hint());
        }
        let long = "m".repeat(MAX_METHOD_NAME_BYTES);
        assert!(DoorMethod::new(&format!("a.C#{long}")).is_ok());
        assert!(DoorMethod::new(&format!("a.C#{long}m")).is_err());
    }
}
