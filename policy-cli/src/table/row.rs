//! One account of one JVM.

use crate::live::Account;

/// What two or more readings tell; nothing after the first.
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
    /// How the JVM was named.
    pub(crate) address: &'a str,
    /// The account.
    pub(crate) account: &'a Account,
    /// Its rates.
    pub(crate) rates: Rates,
    /// True where the JVM did not answer when it was last asked: the numbers are older.
    pub(crate) is_stale: bool,
}
