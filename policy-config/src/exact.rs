//! `[exact]`: what inserted code counts exactly.

use crate::diagnostic::{Sink, quote};
use crate::pattern::PackagePattern;
use crate::tree::{Located, Section};

/// Most patterns of `contexts`.
pub const MAX_CONTEXTS: usize = 100;

/// The packages of the JDK whose code is no program's own; each with all below.
const OF_THE_JDK: [&str; 3] = ["java", "jdk", "sun"];

/// `[exact]`: what is counted exactly, by code inserted into classes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Exact {
    /// `accounts`: whether every allocation is counted to its account.
    pub accounts: bool,
    /// `contexts`: the packages of whose methods the allocations are counted by their callers; none by default, at
    /// most [`MAX_CONTEXTS`] patterns, none within the JDK.
    pub contexts: Vec<PackagePattern>,
    /// `bytecodes`: whether the calls and the executed instructions of each context are counted too.
    pub bytecodes: bool,
}

impl Exact {
    /// Whether code is to be inserted into any class.
    pub fn is_wanted(&self) -> bool {
        self.accounts || !self.contexts.is_empty()
    }

    /// Whether contexts are wanted of the classes of this package, written with dots or slashes.
    pub fn has_contexts_of(&self, package: &str) -> bool {
        self.contexts.iter().any(|pattern| pattern.matches(package))
    }
}

pub(crate) fn read(section: &Section<'_, '_>, sink: &mut Sink) -> Exact {
    let exact = Exact {
        accounts: section.switch("accounts", sink).unwrap_or_default(),
        contexts: read_contexts(section, sink),
        bytecodes: section.switch("bytecodes", sink).unwrap_or_default(),
    };
    if exact.bytecodes
        && exact.contexts.is_empty()
        && let Some(span) = section.key_span("bytecodes")
    {
        sink.warning(
            span,
            "`bytecodes` counts nothing without `contexts`".to_owned(),
        )
        .hint("name packages: contexts = [\"com.acme.*\"]");
    }
    exact
}

fn read_contexts(section: &Section<'_, '_>, sink: &mut Sink) -> Vec<PackagePattern> {
    let texts = section.strings_or_none("contexts", "com.acme.*", sink);
    if let Some(first_beyond) = texts.get(MAX_CONTEXTS) {
        let message = format!(
            "`contexts` has {} patterns; the most are {MAX_CONTEXTS}",
            texts.len()
        );
        sink.error(first_beyond.span.clone(), message)
            .hint("use patterns with all packages below, such as \"com.acme.*\"");
        return Vec::new();
    }
    let mut contexts: Vec<PackagePattern> = Vec::with_capacity(texts.len());
    for Located { value, span } in texts {
        match PackagePattern::new(value) {
            Ok(pattern) if OF_THE_JDK.iter().any(|own| pattern.is_within(own)) => {
                let message = format!("{} is a part of the JDK", quote(value));
                sink.error(span, message).hint(
                    "name packages of your program or its libraries; what the JDK allocates for them is \
                     counted by `accounts`",
                );
            }
            Ok(pattern) if contexts.contains(&pattern) => {
                sink.warning(span, format!("{} stands here twice", quote(value)))
                    .hint("remove one");
            }
            Ok(pattern) => {
                if pattern.looks_like_a_class() {
                    sink.warning(span, format!("{} looks like a class", quote(value)))
                        .hint("patterns name packages, of which all classes have contexts");
                }
                contexts.push(pattern);
            }
            Err(error) => {
                sink.error(span, error.to_string()).hint(error.hint());
            }
        }
    }
    contexts
}
