//! One account of one JVM.

type Account = policy_report::Account<'static>;

/// Rates from two or more readings; empty after the first.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Bytes charged in a second, between the latest two readings.
    pub allocated_bytes_per_second: Option<f64>,
    /// Growth of the live bytes in a minute, over the readings kept.
    pub live_bytes_per_minute: Option<f64>,
}

/// One account of one JVM, with what its columns need.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Which of the JVMs, in the order in which they were named.
    pub jvm: usize,
    /// The address of the JVM, as the user gave it.
    pub address: &'a str,
    /// The account.
    pub account: &'a Account,
    /// Its rates.
    pub rates: Rates,
    /// True if the latest poll of the JVM failed: the numbers are older.
    pub is_stale: bool,
}
