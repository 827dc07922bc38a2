//! The garbage collectors that a JDK has.

use std::process::{Command, Stdio};

use clap::ValueEnum;

use crate::jdk::Jdk;

/// A collector, as the JDK has it by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Collector {
    Serial,
    Parallel,
    G1,
    Zgc,
    Shenandoah,
}

impl Collector {
    /// The flag that chooses it.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            Collector::Serial => "-XX:+UseSerialGC",
            Collector::Parallel => "-XX:+UseParallelGC",
            Collector::G1 => "-XX:+UseG1GC",
            Collector::Zgc => "-XX:+UseZGC",
            Collector::Shenandoah => "-XX:+UseShenandoahGC",
        }
    }

    /// Whether it has a young generation whose size can be set and else is its choice.
    pub(crate) fn chooses_young_size(self) -> bool {
        matches!(
            self,
            Collector::Serial | Collector::Parallel | Collector::G1
        )
    }

    /// How it is called in the tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Collector::Serial => "Serial",
            Collector::Parallel => "Parallel",
            Collector::G1 => "G1",
            Collector::Zgc => "ZGC",
            Collector::Shenandoah => "Shenandoah",
        }
    }

    /// Whether the JDK starts with it: not every build has every one.
    pub(crate) fn is_in(self, jdk: &Jdk) -> bool {
        Command::new(jdk.program("java"))
            .args([self.flag(), "-Xmx64m", "-version"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }
}
