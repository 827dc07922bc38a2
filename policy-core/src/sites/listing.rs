//! The places of a reading, by account and class.

use std::sync::Arc;

use super::Counts;
use super::survivors::RowSites;

/// The counts of stacks, and the sites of each account.
#[derive(Debug, Clone, Default)]
pub struct SitesReading {
    /// Stacks taken and skipped.
    pub counts: Counts,
    /// Every account of which stacks are wanted, most survivors with a stack first.
    pub accounts: Vec<AccountSites>,
}

/// The sites of an account.
#[derive(Debug, Clone, Default)]
pub struct AccountSites {
    /// Its name.
    pub account: Arc<str>,
    /// By class, most survivors with a stack first.
    pub classes: Vec<(Arc<str>, RowSites)>,
}

impl AccountSites {
    pub(super) fn with_stack_bytes(&self) -> u64 {
        let classes = self.classes.iter();
        classes.fold(0, |sum, (_, row)| sum.saturating_add(row.with_stack_bytes))
    }
}
