//! The room's shared state: what the warden, allocating threads and reports have in common.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crossbeam_queue::ArrayQueue;

use crate::report::State;

use super::docket::Docket;
use super::gate::{Counts, Gates};
use super::refused::{MOST_WAITING, Refused};
use super::terms::TermsTable;

/// What the enforcement of limits shares between threads.
pub(crate) struct Enforcement {
    /// For allocating threads.
    pub(crate) gates: Gates,
    pub(crate) terms: TermsTable,
    /// Refusals to be logged.
    pub(crate) refused: ArrayQueue<Refused>,
    docket: Mutex<Docket>,
    mask_bytes: AtomicU64,
}

/// Where an account stands, for a report.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Status {
    pub(crate) state: State,
    pub(crate) counts: Counts,
    pub(crate) soft_events: u64,
}

impl Enforcement {
    pub(crate) fn new() -> Enforcement {
        Enforcement {
            gates: Gates::new(),
            terms: TermsTable::new(),
            refused: ArrayQueue::new(MOST_WAITING),
            docket: Mutex::new(Docket::default()),
            mask_bytes: AtomicU64::new(0),
        }
    }

    /// What masked threads of an account may be charged until it has recovered. Any thread.
    pub(crate) fn mask_bytes(&self) -> u64 {
        self.mask_bytes.load(Ordering::Relaxed)
    }

    /// The policy in force says so.
    pub(crate) fn set_mask_bytes(&self, bytes: u64) {
        self.mask_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The cases. Never on an allocating thread.
    pub(crate) fn docket(&self) -> MutexGuard<'_, Docket> {
        self.docket.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Takes in what the gates have counted, so that [`Enforcement::status`] is of now.
    pub(crate) fn drain(&self) {
        self.docket().drain(&self.gates);
    }

    /// Where an account stands.
    pub(crate) fn status(&self, account: &str) -> Status {
        let docket = self.docket();
        let Some(case) = docket.case(account) else {
            return Status::default();
        };
        Status {
            state: case.state(),
            counts: case.counts,
            soft_events: case.soft_events,
        }
    }

    /// Native memory held, in bytes.
    pub(crate) fn committed_bytes(&self) -> u64 {
        self.gates.committed_bytes() + self.terms.committed_bytes()
    }
}
