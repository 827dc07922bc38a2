//! What a refusal says: account, limit and figures, published by the warden for the threads
//! that it refuses.

use std::sync::Arc;

use arc_swap::{ArcSwapOption, Guard};
use policy_config::Throw;

use crate::jvm::java::Global;
use crate::ledger::Chunks;

/// The terms of one account.
pub(crate) struct Terms {
    pub(crate) account: Arc<str>,
    /// The name as a Java string, made before it is needed: a refused thread looks up and
    /// formats nothing.
    pub(crate) name: Arc<Global>,
    pub(crate) throw: Throw,
    pub(crate) limit_bytes: u64,
    pub(crate) live_bytes: u64,
    pub(crate) standard_error_bytes: u64,
}

/// The terms of all accounts that have limits, by the purse that represents each.
pub(crate) struct TermsTable(Chunks<ArcSwapOption<Terms>, 64>);

impl TermsTable {
    pub(crate) fn new() -> TermsTable {
        TermsTable(Chunks::new(1 << u16::BITS))
    }

    /// The terms in force. Lock-free, any thread.
    pub(crate) fn get(&self, representative: u32) -> Option<Guard<Option<Arc<Terms>>>> {
        Some(self.0.get(representative)?.load())
    }

    /// Publishes terms; the warden alone.
    pub(crate) fn set(&self, representative: u32, terms: Option<Arc<Terms>>) {
        if let Some(place) = self.0.get_or_grow(representative) {
            place.store(terms);
        }
    }

    /// Native memory held, in bytes.
    pub(crate) fn committed_bytes(&self) -> u64 {
        self.0.committed_bytes()
    }
}
