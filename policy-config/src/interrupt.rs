//! Where an account's threads may be refused, in addition to the agent's own rules.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use crate::diagnostic::{Sink, quote};
use crate::pattern::{PackagePattern, PackageTable, PatternError};
use crate::tree::{Located, Section};
use crate::work::{self, WorkPattern, WorkTable};

/// Packages whose code is never interrupted, for any account: an error there would break state that
/// all share. `interrupt-through` does not change this; nor does it allow refusals in static
/// initialisers, in class loaders and in code that handles an earlier error.
pub const NEVER_INTERRUPTED: &[&str] = &[
    "ch.qos.logback",
    "java.lang.invoke",
    "java.lang.ref",
    "java.lang.runtime",
    "java.util.concurrent.locks",
    "java.util.logging",
    "jdk.internal.loader",
    "jdk.internal.ref",
    "org.apache.commons.logging",
    "org.apache.juli",
    "org.apache.log4j",
    "org.apache.logging",
    "org.jboss.logging",
    "org.jboss.logmanager",
    "org.slf4j",
    "sun.instrument",
];

/// An account's rules for the code on the stack of a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Interrupts {
    /// `interrupt-through`: packages that keep their invariants when an allocation inside
    /// them fails, in addition to those that the agent knows.
    pub through: Vec<PackagePattern>,
    /// `never-interrupt`: packages of which no frame may be on the stack of a refusal.
    pub never: Vec<PackagePattern>,
    /// `work`: code with which a unit of work begins, in addition to what the agent knows.
    pub work: Vec<WorkPattern>,
}

/// The rule for one package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interrupt {
    /// A refusal may pass through it.
    Through,
    /// No refusal while it is on the stack.
    Never,
}

impl Interrupts {
    /// True if there is no rule.
    pub fn is_empty(&self) -> bool {
        self.through.is_empty() && self.never.is_empty() && self.work.is_empty()
    }

    /// The lists compiled for look-up.
    pub fn table(&self) -> InterruptTable {
        let through = self.through.iter().map(|pattern| (pattern, THROUGH));
        let never = self.never.iter().map(|pattern| (pattern, NEVER));
        InterruptTable {
            packages: PackageTable::new(never.chain(through)),
            work: WorkTable::new(&self.work),
        }
    }
}

const THROUGH: usize = 0;
const NEVER: usize = 1;

/// An account's [`Interrupts`], compiled.
#[derive(Debug, Clone, Default)]
pub struct InterruptTable {
    packages: PackageTable,
    work: WorkTable,
}

impl InterruptTable {
    /// The rule of the most specific pattern that matches `package`, which is written with dots or
    /// slashes.
    pub fn lookup(&self, package: &str) -> Option<Interrupt> {
        self.packages.lookup(package).map(|number| match number {
            THROUGH => Interrupt::Through,
            _ => Interrupt::Never,
        })
    }

    /// Whether a unit of work begins with a method of a class, whose name is written with dots.
    pub fn is_work(&self, class: &str, method: &str) -> bool {
        self.work.matches(class, method)
    }
}

/// Patterns, or requests, as a message lists them.
#[derive(PartialEq)]
pub(crate) struct Listed<'a, T>(pub(crate) &'a [T]);

impl<T: fmt::Display> fmt::Display for Listed<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Most patterns that are listed, so that a message stays one readable line.
        const MAX_LISTED: usize = 4;
        if self.0.is_empty() {
            return formatter.write_str("none");
        }
        for (index, pattern) in self.0.iter().take(MAX_LISTED).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(formatter, "{comma}{pattern}")?;
        }
        match self.0.len().saturating_sub(MAX_LISTED) {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}

/// Reads `interrupt-through`, `never-interrupt` and `work` of an account.
pub(crate) fn read(section: &Section<'_, '_>, sink: &mut Sink) -> Interrupts {
    let mut seen = HashMap::new();
    let through = read_list(section, "interrupt-through", &mut seen, sink);
    for (pattern, span) in &through {
        let never = NEVER_INTERRUPTED
            .iter()
            .any(|package| pattern.is_within(package));
        if never {
            let message = format!("{} is never interrupted", quote(&pattern.to_string()));
            sink.warning(span.clone(), message)
                .hint("remove it: an error there would harm other accounts too");
        }
    }
    let never = read_list(section, "never-interrupt", &mut seen, sink);
    let patterns = |list: Vec<(PackagePattern, _)>| list.into_iter().map(|one| one.0).collect();
    Interrupts {
        through: patterns(through),
        never: patterns(never),
        work: work::read(section, sink),
    }
}

type Spanned = (PackagePattern, Range<usize>);

fn read_list<'t>(
    section: &Section<'t, '_>,
    key: &'static str,
    seen: &mut HashMap<&'t str, (&'static str, Range<usize>)>,
    sink: &mut Sink,
) -> Vec<Spanned> {
    let example = "com.acme.tx.*";
    let texts = section.strings(key, example, sink).unwrap_or_default();
    let mut patterns = Vec::with_capacity(texts.len());
    for Located { value, span } in texts {
        let pattern = match PackagePattern::new(value) {
            Ok(pattern) => pattern,
            Err(PatternError::Everything) => {
                sink.error(span, "`*` would take in every package")
                    .hint("name the packages you mean, such as \"com.acme.*\"");
                continue;
            }
            Err(error) => {
                sink.error(span, error.to_string()).hint(error.hint());
                continue;
            }
        };
        if pattern.looks_like_a_class() {
            sink.warning(span.clone(), format!("{} looks like a class", quote(value)))
                .hint("patterns name packages: this matches no class");
        }
        match seen.get(value) {
            None => {
                seen.insert(value, (key, span.clone()));
                patterns.push((pattern, span));
            }
            Some((first, place)) if *first == key => {
                sink.warning(span, format!("{} is given twice", quote(value)))
                    .hint("remove one")
                    .related(place.clone(), "first given here");
            }
            Some((first, place)) => {
                let message = format!("{} stands in `{first}` too", quote(value));
                sink.error(span, message)
                    .hint("decide for one: it may be interrupted, or never")
                    .related(place.clone(), "there");
            }
        }
    }
    patterns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_of_both_lists_decides() {
        let patterns = |texts: &[&str]| {
            let read = |text: &&str| PackagePattern::new(text).unwrap();
            texts.iter().map(read).collect()
        };
        let interrupts = Interrupts {
            through: patterns(&["java.util.concurrent.*", "com.acme.tx.log"]),
            never: patterns(&["com.acme.tx.*", "java.util.concurrent.atomic"]),
            work: Vec::new(),
        };
        let table = interrupts.table();
        for (package, expected) in [
            ("java.util.concurrent", Some(Interrupt::Through)),
            ("java/util/concurrent/atomic", Some(Interrupt::Never)),
            ("com.acme.tx", Some(Interrupt::Never)),
            ("com.acme.tx.log", Some(Interrupt::Through)),
            ("com.acme.tx.log.x", Some(Interrupt::Never)),
            ("com.acme", None),
        ] {
            assert_eq!(table.lookup(package), expected, "{package}");
        }
        assert!(Interrupts::default().is_empty() && !interrupts.is_empty());
        assert_eq!(Interrupts::default().table().lookup("a"), None);
    }
}
