//! The cases that are measured: leaks of several shapes against one limit, in every JVM found.

use std::fmt;

use crate::collector::Collector;
use crate::jdk::Jdk;

/// The limit of the one account that has one.
pub(crate) const LIMIT_BYTES: u64 = 256 << 20;
/// The heap in which it is.
pub(crate) const HEAP: &str = "-Xmx2g";
/// Length of the arrays of a service that bounces or churns.
pub(crate) const LENGTH: u32 = 1_000;
/// The memory that a service holds while it churns, in percent of its limit.
pub(crate) const CHURN_PERCENT: u32 = 90;
/// The budget of evidence by default, as a share of wall time, and how far ahead it is granted.
pub(crate) const BUDGET: f64 = 0.05;
pub(crate) const CREDIT_SECONDS: f64 = 60.0;

/// Threads that leak, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leak {
    pub(crate) threads: u32,
    pub(crate) length: u32,
}

/// All of them.
pub(crate) const LEAKS: [Leak; 4] = [
    Leak {
        threads: 1,
        length: 200,
    },
    Leak {
        threads: 8,
        length: 200,
    },
    Leak {
        threads: 1,
        length: 1_000_000,
    },
    Leak {
        threads: 8,
        length: 1_000_000,
    },
];

/// A JDK with one of its collectors.
#[derive(Debug, Clone)]
pub(crate) struct Vm {
    pub(crate) jdk: Jdk,
    pub(crate) collector: Collector,
}

impl fmt::Display for Vm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JDK {} {}", self.jdk.feature, self.collector.name())
    }
}

/// The policy: one account by package, with or without a limit.
pub(crate) fn policy(limited: bool) -> String {
    let limit = if limited {
        format!("{}MiB", LIMIT_BYTES >> 20)
    } else {
        "none".to_owned()
    };
    format!(
        "[enforcement]\nmode = \"enforce\"\n\n\
         [[account]]\nname = \"tenant\"\npackages = [\"enforcement.tenant\"]\nwork = [\"enforcement.tenant\"]\nlimit = \"{limit}\"\n"
    )
}
