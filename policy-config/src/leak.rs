//! `[leaks]`: what is found out about what accounts hold. `[[leak]]`: growth that the operators know about,
//! and that is not reported again.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use crate::diagnostic::{Sink, quote};
use crate::glob::{self, Glob};
use crate::tree::{Located, Section};

/// Most globs of `sites`.
pub const MAX_SITES: usize = 100;
/// Most `[[leak]]` tables.
pub const MAX_LEAKS: usize = 1_000;

/// One `[[leak]]`: a leak that is acknowledged. It is measured, and not reported as a suspect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AcknowledgedLeak {
    /// `account`: the account that leaks, by its name as it is published (`shop`, `_unaccounted`).
    pub account: Glob,
    /// `class`: the class that leaks, by its Java source name (`com.acme.Catalogue$Entry`, `byte[]`).
    pub class: Glob,
}

impl AcknowledgedLeak {
    /// Whether it is about this class of this account: both names as they are published.
    ///
    /// Allocates nothing; its time is bounded as that of [`Glob::matches`].
    pub fn matches(&self, account: &str, class: &str) -> bool {
        self.account.matches(account) && self.class.matches(class)
    }
}

impl fmt::Display for AcknowledgedLeak {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of account {}", self.class, self.account)
    }
}

/// Reads `sites` of `[leaks]`.
pub(crate) fn read_sites(section: &Section<'_, '_>, sink: &mut Sink) -> Vec<Glob> {
    let texts = section.strings_or_none("sites", "shop", sink);
    if let Some(first_beyond) = texts.get(MAX_SITES) {
        sink.error(
            first_beyond.span.clone(),
            format!(
                "`sites` has {} globs; the most are {MAX_SITES}",
                texts.len()
            ),
        )
        .hint("use globs that match several accounts at once, such as \"tenant-*\"");
        return Vec::new();
    }
    let mut sites: Vec<Glob> = Vec::with_capacity(texts.len());
    for Located { value, span } in texts {
        match Glob::new(value) {
            Ok(glob) if sites.contains(&glob) => {
                sink.warning(span, format!("{} stands here twice", quote(value)))
                    .hint("remove one");
            }
            Ok(glob) => sites.push(glob),
            Err(error) => {
                sink.error(span, error.to_string()).hint(error.hint());
            }
        }
    }
    sites
}

/// Reads every `[[leak]]`. Those with errors are left out: the whole policy is then rejected anyway.
pub(crate) fn read_all(sections: &[Section<'_, '_>], sink: &mut Sink) -> Vec<AcknowledgedLeak> {
    let mut seen: HashMap<AcknowledgedLeak, Range<usize>> = HashMap::new();
    let mut leaks = Vec::with_capacity(sections.len());
    for section in sections {
        let account = required(section, "account", "shop", sink);
        let class = required(section, "class", "com.acme.Catalogue$Entry", sink);
        let (Some(account), Some(class)) = (account, class) else {
            continue;
        };
        check_class(&class, sink);
        let leak = AcknowledgedLeak {
            account: account.value,
            class: class.value,
        };
        if let Some(first) = seen.get(&leak) {
            sink.warning(section.span(), format!("{leak} is acknowledged twice"))
                .hint("remove one")
                .related(first.clone(), "first given here");
            continue;
        }
        seen.insert(leak.clone(), section.span());
        leaks.push(leak);
    }
    leaks
}

/// The glob at `key`, which must be there: an entry with half of its names would hide more than was
/// looked at.
fn required(
    section: &Section<'_, '_>,
    key: &str,
    example: &str,
    sink: &mut Sink,
) -> Option<Located<Glob>> {
    if section.key_span(key).is_none() {
        sink.error(
            section.span(),
            format!("the leak does not name its `{key}`"),
        )
        .hint(format!("add {key} = \"{example}\""));
        return None;
    }
    glob::read(section, key, example, sink)
}

/// Warns about globs that hide every leak, or that no class name matches.
fn check_class(class: &Located<Glob>, sink: &mut Sink) {
    let text = class.value.as_str();
    if class.value.matches_everything() {
        sink.warning(
            class.span.clone(),
            "this acknowledges every leak of the account, also those that nobody has seen yet",
        )
        .hint("name the classes, such as \"com.acme.Catalogue$Entry\"");
    } else if text.starts_with('[') {
        sink.warning(
            class.span.clone(),
            format!(
                "{} matches no class: arrays are named as in Java's source",
                quote(text)
            ),
        )
        .hint("write \"byte[]\" or \"java.lang.String[]\"");
    } else if text.contains('/') && !text.contains('.') {
        sink.warning(
            class.span.clone(),
            format!(
                "{} matches no class: packages are separated by dots",
                quote(text)
            ),
        )
        .hint(format!("write \"{}\"", text.replace('/', ".")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leak(account: &str, class: &str) -> AcknowledgedLeak {
        AcknowledgedLeak {
            account: Glob::new(account).unwrap(),
            class: Glob::new(class).unwrap(),
        }
    }

    #[test]
    fn both_names_must_match() {
        let entry = leak("shop", "com.acme.Catalogue$Entry");
        assert!(entry.matches("shop", "com.acme.Catalogue$Entry"));
        assert!(!entry.matches("shop2", "com.acme.Catalogue$Entry"));
        assert!(!entry.matches("shop", "com.acme.Catalogue"));
        assert!(!entry.matches("com.acme.Catalogue$Entry", "shop"));
        let many = leak("tenant-*", "byte[]");
        assert!(many.matches("tenant-42", "byte[]"));
        assert!(!many.matches("tenant-42", "byte[][]"));
    }
}
