//! One JVM as it was last seen.

use std::collections::HashMap;
use std::time::Duration;

use super::history::History;
use crate::live::{Account, Reading};
use crate::table::{Rates, Row};

/// What came of asking a JVM once.
#[derive(Debug, Clone)]
pub(crate) struct Poll {
    /// Which JVM, in the order in which they were named.
    pub(crate) jvm: usize,
    /// When, since the command started.
    pub(crate) at: Duration,
    /// What it answered, or why it could not be read, fit to be printed.
    pub(crate) outcome: Result<Reading, String>,
}

/// One JVM as it was last seen.
#[derive(Debug, Default)]
pub(crate) struct Jvm {
    /// How it was named, fit to be printed.
    pub(crate) address: String,
    /// The latest answer; older than the error, where there is one.
    pub(crate) reading: Option<Reading>,
    /// Why it could not be read when it was last asked.
    pub(crate) error: Option<String>,
    /// When it was last read.
    pub(crate) read_at: Duration,
    histories: HashMap<String, History>,
}

impl Jvm {
    pub(super) fn new(address: String) -> Self {
        Jvm {
            address,
            ..Jvm::default()
        }
    }

    /// Takes in what came of asking it.
    pub(super) fn take(&mut self, at: Duration, outcome: Result<Reading, String>) {
        let reading = match outcome {
            Ok(reading) => reading,
            Err(error) => {
                self.error = Some(error);
                return;
            }
        };
        let mut histories = HashMap::with_capacity(reading.accounts.accounts.len());
        for account in &reading.accounts.accounts {
            let name = &account.name;
            // Accounts that are gone take their histories with them.
            let mut history = self.histories.remove(name).unwrap_or_default();
            history.add(at, account);
            histories.insert(name.clone(), history);
        }
        self.histories = histories;
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
        // A JVM that does not answer has no pace that anyone knows.
        if self.error.is_some() {
            return Rates::default();
        }
        let history = self.histories.get(&account.name);
        history.map(History::rates).unwrap_or_default()
    }
}
