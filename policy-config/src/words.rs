//! Words of the contract that stand for a value.

use crate::diagnostic::{Sink, quote};
use crate::did_you_mean;
use crate::tree::{self, Located, Section};

/// A contract word for each value of an enumeration, in both directions.
macro_rules! words {
    ($type:ty { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $type {
            /// All words of the contract, in the order the documentation gives them.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The contract's word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// The value that `word` stands for.
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

/// The kind of Java throwable that a refused thread gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Throw {
    /// An `OutOfMemoryError`.
    #[default]
    Oom,
    /// An `Error` that frameworks do not treat as a dying JVM.
    Error,
    /// A `RuntimeException`.
    Exception,
}
words!(Throw { Oom = "oom", Error = "error", Exception = "exception" });

/// One of the `words` at `key`, as `from_word` reads it.
pub(crate) fn word<T>(
    section: &Section<'_, '_>,
    key: &str,
    words: &[&str],
    from_word: fn(&str) -> Option<T>,
    sink: &mut Sink,
) -> Option<T> {
    let example = words.first().copied().unwrap_or_default();
    let Located { value, span } = section.string(key, example, sink)?;
    let found = from_word(value);
    if found.is_none() {
        let hint = match did_you_mean::closest(value, words) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => format!("the choices are {}", tree::list(words)),
        };
        let message = format!("{} is no value of `{key}`", quote(value));
        sink.error(span, message).hint(hint);
    }
    found
}
