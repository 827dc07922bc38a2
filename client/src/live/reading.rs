//! One JVM at one moment.

use super::{Accounts, Address, Classes, Client, Leaks, LiveError};

/// One JVM at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The agent's answer to `/api/v1/accounts`.
    pub accounts: Accounts,
    /// Why it keeps no accounts, if it says so; as it came.
    pub not_ready: Option<String>,
    /// The agent's verdict on leaks, if that was asked for and the agent gives it (an older one does not).
    pub leaks: Option<Leaks>,
}

impl Reading {
    /// Reads a JVM. If the answer with all classes is too large, reads the largest classes only.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn take(
        client: &Client,
        address: &Address,
        classes: Classes,
    ) -> Result<Reading, LiveError> {
        let accounts = match client.accounts(address, classes) {
            Err(LiveError::TooLarge { .. }) if classes == Classes::All => {
                client.accounts(address, Classes::Top)
            }
            other => other,
        };
        Ok(Reading {
            accounts: accounts?,
            not_ready: client.not_ready(address),
            leaks: None,
        })
    }
}
