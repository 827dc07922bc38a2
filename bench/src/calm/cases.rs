//! What is measured: the JVMs, and what each of a round is given.

use std::fmt;

use clap::ValueEnum;
use serde::{Serialize, Serializer};

use crate::collector::Collector;
use crate::jdk::Jdk;

/// The limit of the one account, in MiB, and the heap: four times as much, so it has room.
pub(crate) const LIMIT_MIB: u64 = 128;
pub(crate) const HEAP_MIB: u64 = 512;

/// A collector; ZGC is two, and the second is by generations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    G1,
    Parallel,
    Zgc,
    ZgcGenerational,
    Shenandoah,
}

impl Kind {
    /// The flags that choose it in this release; none if the release does not have it.
    fn flags(self, release: u32) -> Option<Vec<&'static str>> {
        let mut flags = vec![self.collector().flag()];
        match (self, release) {
            (Kind::Zgc, 24..) | (Kind::ZgcGenerational, ..=20) => return None,
            (Kind::Zgc, 23) => flags.push("-XX:-ZGenerational"),
            (Kind::ZgcGenerational, 21..=22) => flags.push("-XX:+ZGenerational"),
            _ => {}
        }
        Some(flags)
    }

    fn collector(self) -> Collector {
        match self {
            Kind::G1 => Collector::G1,
            Kind::Parallel => Collector::Parallel,
            Kind::Zgc | Kind::ZgcGenerational => Collector::Zgc,
            Kind::Shenandoah => Collector::Shenandoah,
        }
    }
}

/// A JDK with one of its collectors.
#[derive(Debug, Clone)]
pub(crate) struct Vm {
    pub(crate) jdk: Jdk,
    pub(crate) flags: Vec<&'static str>,
    kind: Kind,
}

impl fmt::Display for Vm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_generations = match self.kind {
            Kind::ZgcGenerational => ", generational",
            _ => "",
        };
        let collector = self.kind.collector().name();
        write!(f, "JDK {} {collector}{by_generations}", self.jdk.feature)
    }
}

/// Each JDK with each of these collectors that it has; with each at all, if none is named.
pub(crate) fn vms(jdks: &[Jdk], kinds: &[Kind]) -> Vec<Vm> {
    let wanted = |kind: &Kind| kinds.is_empty() || kinds.contains(kind);
    let mut vms = Vec::new();
    for jdk in jdks {
        for kind in Kind::value_variants().iter().copied().filter(wanted) {
            if let Some(flags) = kind.flags(jdk.feature)
                && kind.collector().is_in(jdk)
            {
                let jdk = jdk.clone();
                vms.push(Vm { jdk, flags, kind });
            }
        }
    }
    vms
}

/// What the agent does at the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Observe,
    Enforce,
}

/// When the limit is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Given {
    /// The policy that the JVM starts with has it
    Start,
    /// A reload brings it, when everything is held
    Reload,
}

impl Given {
    /// How it is called in the tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Given::Start => "at the start",
            Given::Reload => "by a reload",
        }
    }
}

/// One JVM of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// The agent accounts, and nothing has a limit.
    None,
    Limited(Mode, Given),
}

impl Variant {
    /// All of a round: what has no limit stands beside both ways to give one.
    pub(crate) fn all(given: &[Given]) -> Vec<Variant> {
        let mut all = vec![Variant::None];
        for given in given {
            for mode in [Mode::Observe, Mode::Enforce] {
                all.push(Variant::Limited(mode, *given));
            }
        }
        all
    }

    fn name(self) -> &'static str {
        match self {
            Variant::None => "none",
            Variant::Limited(Mode::Observe, Given::Start) => "observe",
            Variant::Limited(Mode::Enforce, Given::Start) => "enforce",
            Variant::Limited(Mode::Observe, Given::Reload) => "observe-by-reload",
            Variant::Limited(Mode::Enforce, Given::Reload) => "enforce-by-reload",
        }
    }

    /// The policy at the start, and the one that a reload brings.
    pub(crate) fn policies(self) -> (String, Option<String>) {
        let none = policy("observe", "none");
        match self {
            Variant::None => (none, None),
            Variant::Limited(mode, given) => {
                let mode = match mode {
                    Mode::Observe => "observe",
                    Mode::Enforce => "enforce",
                };
                let limited = policy(mode, &format!("{LIMIT_MIB}MiB"));
                match given {
                    Given::Start => (limited, None),
                    Given::Reload => (none, Some(limited)),
                }
            }
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Variant {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// The variants of a round in the order in which they run. It is another in each round, so that none is always first.
pub(crate) fn in_turn(variants: &[Variant], round: u32) -> Vec<Variant> {
    let mut order = variants.to_vec();
    order.rotate_left(round as usize / 2 % variants.len());
    if !round.is_multiple_of(2) {
        order.reverse();
    }
    order
}

/// One account by package.
fn policy(mode: &str, limit: &str) -> String {
    format!(
        "[enforcement]\nmode = \"{mode}\"\n\n\
         [[account]]\nname = \"tenant\"\npackages = [\"calm.tenant\"]\nwork = [\"calm.tenant\"]\nlimit = \"{limit}\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_release_has_the_kinds_of_zgc_that_it_has() {
        let has = |kind: Kind, release| kind.flags(release).map(|flags| flags.len());
        let z = [17, 21, 23, 25].map(|release| has(Kind::Zgc, release));
        assert_eq!(z, [Some(1), Some(1), Some(2), None]);
        let by_generations = [17, 21, 23, 25].map(|release| has(Kind::ZgcGenerational, release));
        assert_eq!(by_generations, [None, Some(2), Some(1), Some(1)]);
        assert_eq!(has(Kind::G1, 17), Some(1));
    }

    #[test]
    fn what_has_no_limit_is_measured_once() {
        let both = Variant::all(&[Given::Start, Given::Reload]);
        assert_eq!(both.len(), 5);
        assert_eq!(Variant::all(&[Given::Reload]).len(), 3);
        let policies: Vec<_> = both.iter().map(|variant| variant.policies()).collect();
        let limited = |text: &String| text.contains("limit = \"128MiB\"");
        let at_start = policies.iter().filter(|(start, _)| limited(start));
        assert_eq!(at_start.count(), 2);
        let later = policies.iter().filter_map(|(_, reload)| reload.as_ref());
        assert_eq!(later.filter(|text| limited(text)).count(), 2);
    }

    #[test]
    fn none_is_always_first() {
        let variants = Variant::all(&[Given::Start]);
        let order = |round| in_turn(&variants, round);
        let firsts: Vec<Variant> = (0..3).map(|round| order(round)[0]).collect();
        assert_eq!(firsts, [variants[0], variants[2], variants[1]]);
        for round in 0..6 {
            assert_eq!(order(round).len(), 3);
            assert!(
                variants
                    .iter()
                    .all(|variant| order(round).contains(variant))
            );
        }
    }
}
