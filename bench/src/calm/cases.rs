//! The JVMs that are measured, and the variants of the limit that take turns in each round.

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

/// The policy's enforcement mode: the limit is only watched, or enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Observe,
    Enforce,
}

/// When the limit is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Given {
    /// The policy that the JVM starts with has it; each variant has JVMs of its own
    Start,
    /// Reloads bring and take it, when everything is held; the variants take turns in one JVM
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

/// One way to give the account its limit: the mode and the moment. Without a mode there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) mode: Option<Mode>,
    pub(crate) given: Given,
}

impl Variant {
    /// All of a round.
    pub(crate) fn all(given: Given) -> [Variant; 3] {
        [None, Some(Mode::Observe), Some(Mode::Enforce)].map(|mode| Variant { mode, given })
    }

    fn name(self) -> &'static str {
        match (self.mode, self.given) {
            (None, Given::Start) => "none",
            (Some(Mode::Observe), Given::Start) => "observe",
            (Some(Mode::Enforce), Given::Start) => "enforce",
            (None, Given::Reload) => "none, by turns",
            (Some(Mode::Observe), Given::Reload) => "observe, by turns",
            (Some(Mode::Enforce), Given::Reload) => "enforce, by turns",
        }
    }

    /// The limit that its policy gives the account, in bytes.
    pub(crate) fn limit_bytes(self) -> Option<u64> {
        self.mode.map(|_| LIMIT_MIB << 20)
    }

    /// Its policy: one account by package.
    pub(crate) fn policy(self) -> String {
        let mode = match self.mode {
            Some(Mode::Enforce) => "enforce",
            Some(Mode::Observe) | None => "observe",
        };
        let limit = match self.mode {
            Some(_) => format!("{LIMIT_MIB}MiB"),
            None => "none".to_owned(),
        };
        format!(
            "[enforcement]\nmode = \"{mode}\"\n\n\
             [[account]]\nname = \"tenant\"\npackages = [\"calm.tenant\"]\nwork = [\"calm.tenant\"]\nlimit = \"{limit}\"\n"
        )
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
    fn the_policy_has_the_limit_and_the_mode() {
        let variants = Variant::all(Given::Reload);
        let policies = variants.map(Variant::policy);
        let have = |text: &str| policies.each_ref().map(|policy| policy.contains(text));
        assert_eq!(have("limit = \"128MiB\""), [false, true, true]);
        assert_eq!(have("limit = \"none\""), [true, false, false]);
        assert_eq!(have("mode = \"enforce\""), [false, false, true]);
        let limits = variants.map(Variant::limit_bytes);
        assert_eq!(limits, [None, Some(128 << 20), Some(128 << 20)]);
    }

    #[test]
    fn none_is_always_first() {
        let variants = Variant::all(Given::Start);
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
