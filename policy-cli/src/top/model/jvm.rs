//! One JVM and its latest readings.

use std::collections::HashMap;
use std::time::Duration;

use super::trend::Trend;
use heapwarden_client::live::{Account, Reading};
use heapwarden_terminal::table::{Rates, Row};

/// The result of polling a JVM once.
#[derive(Debug, Clone)]
pub(crate) struct Poll {
    /// Which JVM, in the order in which they were named.
    pub(crate) jvm: usize,
    /// When, since the command started.
    pub(crate) at: Duration,
    /// The answer, or a printable reason why there is none.
    pub(crate) outcome: Result<Reading, String>,
}

/// One JVM and its latest readings.
#[derive(Debug, Default)]
pub(crate) struct Jvm {
    /// Its address as the user gave it, printable.
    pub(crate) address: String,
    /// The latest answer; older than the error, if there is one.
    pub(crate) reading: Option<Reading>,
    /// Why the latest poll failed, if it did.
    pub(crate) error: Option<String>,
    /// When it was last read.
    pub(crate) read_at: Duration,
    trends: HashMap<String, Trend>,
}

impl Jvm {
    pub(super) fn new(address: String) -> Self {
        Jvm {
            address,
            ..Jvm::default()
        }
    }

    /// Adds the result of a poll.
    pub(super) fn take(&mut self, at: Duration, outcome: Result<Reading, String>) {
        let reading = match outcome {
            Ok(reading) => reading,
            Err(error) => {
                self.error = Some(error);
                return;
            }
        };
        let mut trends = HashMap::with_capacity(reading.accounts.accounts.len());
        for account in &reading.accounts.accounts {
            let name = &account.name;
            // The trends of accounts that are gone are dropped.
            let mut trend = self.trends.remove(name.as_ref()).unwrap_or_default();
            trend.add(at, account);
            trends.insert(name.to_string(), trend);
        }
        self.trends = trends;
        self.reading = Some(reading);
        self.error = None;
        self.read_at = at;
    }

    /// The accounts as rows, in the agent's order.
    pub(super) fn rows(&self, jvm: usize) -> impl Iterator<Item = Row<'_>> {
        let accounts = self.reading.iter().flat_map(|one| &one.accounts.accounts);
        accounts.map(move |account| Row {
            jvm,
            address: &self.address,
            account,
            rates: self.rates(account),
            is_stale: self.error.is_some(),
        })
    }

    fn rates(&self, account: &Account) -> Rates {
        // The rates of a JVM that does not answer are not known.
        if self.error.is_some() {
            return Rates::default();
        }
        let trend = self.trends.get(account.name.as_ref());
        trend.map(Trend::rates).unwrap_or_default()
    }
}
