//! One account of one JVM.

use crate::live::Account;

/// Rates from two or more readings; empty after the first.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Rates {
    /// Bytes charged in a second, between the latest two readings.
    pub(crate) allocated_bytes_per_second: Option<f64>,
    /// Growth of the live bytes in a minute, over the readings kept.
    pub(crate) live_bytes_per_minute: Option<f64>,
}

/// One account of one JVM, with what its columns need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// Which of the JVMs, in the order in which they were named.
    pub(crate) jvm: usize,
    /// The address of the JVM, as the user gave it.
    pub(crate) address: &'a str,
    /// The account.
    pub(crate) account: &'a Account,
    /// Its rates.
    pub(crate) rates: Rates,
    /// True if the latest poll of the JVM failed: the numbers are older.
    pub(crate) is_stale: bool,
}
