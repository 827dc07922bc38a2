//! The state of limit enforcement that the enforcer, allocating threads and reports share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::snapshot::{DoorState, State};

use super::duress::Figures;
use super::effect::Ineffective;
use super::gate::{Counts, Gates};
use super::killed_threads::KilledThreads;
use super::limit_status::LimitStatuses;
use super::refusal_details::RefusalDetailsTable;
use super::refused_places::RefusedPlace;
use super::routes::Routes;

/// The parts of the enforcement of limits that threads share. See each field for who may use it.
pub struct Enforcement {
    /// The accounts' limits as allocating threads see them. Lock-free.
    pub gates: Gates,
    /// The contents of refusals. Lock-free; the enforcer writes them.
    pub details: RefusalDetailsTable,
    /// How often the log told of threads that a refusal ended. Any thread that ends.
    pub killed_threads: KilledThreads,
    /// The routes of services, and what their requests cost.
    pub routes: Routes,
    statuses: Mutex<LimitStatuses>,
    duress: Mutex<Figures>,
    mask_bytes: AtomicU64,
    /// A share of wall time, of 0 to 1, as the bits of an `f64`.
    evidence_share: AtomicU64,
    /// When the evidence budget allows the next collection, in milliseconds of uptime.
    evidence_allowed_ms: AtomicU64,
}

/// Where an account stands, for a report.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Status {
    /// Open, suspect or over.
    pub state: State,
    /// Refusals, and charges that would have been refused or were deferred.
    pub counts: Counts,
    /// How many times the account went above its soft limit.
    pub soft_events: u64,
    /// Whether new requests are turned away.
    pub door: DoorState,
    /// Its reserve in bytes, if it has a door.
    pub reserve_bytes: Option<u64>,
    /// The reason and the frame that bar its refusals, if they do not stop it.
    pub ineffective: Option<Ineffective>,
    /// Where it was refused, or would have been, most frequent first.
    pub places: Vec<RefusedPlace>,
    /// How many refusals were elsewhere.
    pub places_elsewhere: u64,
}

impl Enforcement {
    /// No limits.
    pub fn new() -> Enforcement {
        Enforcement {
            gates: Gates::new(),
            details: RefusalDetailsTable::new(),
            killed_threads: KilledThreads::default(),
            routes: Routes::default(),
            statuses: Mutex::new(LimitStatuses::default()),
            duress: Mutex::new(Figures::default()),
            mask_bytes: AtomicU64::new(0),
            evidence_share: AtomicU64::new(super::budget::SHARE.to_bits()),
            evidence_allowed_ms: AtomicU64::new(0),
        }
    }

    /// Whether the heap is short, and by which figures. Takes a lock: never on an allocating thread.
    pub fn duress(&self) -> Figures {
        *self.duress.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Sets [`Enforcement::duress`]. On the enforcer's thread.
    pub fn set_duress(&self, figures: Figures) {
        *self.duress.lock().unwrap_or_else(|e| e.into_inner()) = figures;
    }

    /// Bytes that all masked threads of one account together may be charged until the account has
    /// recovered. Any thread.
    pub fn mask_bytes(&self) -> u64 {
        self.mask_bytes.load(Ordering::Relaxed)
    }

    /// Sets [`Enforcement::mask_bytes`] to what the policy in force says.
    pub fn set_mask_bytes(&self, bytes: u64) {
        self.mask_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The share of wall time, of 0 to 1, that the collections which the agent asks for may take. Any
    /// thread.
    pub fn evidence_share(&self) -> f64 {
        f64::from_bits(self.evidence_share.load(Ordering::Relaxed))
    }

    /// Sets [`Enforcement::evidence_share`] to what the policy in force says.
    pub fn set_evidence_share(&self, share: f64) {
        self.evidence_share
            .store(share.to_bits(), Ordering::Relaxed);
    }

    /// When the evidence budget allows the next collection, in milliseconds of uptime; in the past if it
    /// does now. Any thread.
    pub fn evidence_allowed_ms(&self) -> u64 {
        self.evidence_allowed_ms.load(Ordering::Relaxed)
    }

    /// Sets [`Enforcement::evidence_allowed_ms`]. On the enforcer's thread.
    pub fn set_evidence_allowed_ms(&self, uptime_ms: u64) {
        self.evidence_allowed_ms.store(uptime_ms, Ordering::Relaxed);
    }

    /// Locks what is known of each limited account. Never on an allocating thread.
    pub fn statuses(&self) -> MutexGuard<'_, LimitStatuses> {
        self.statuses.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// As [`Enforcement::statuses`]; `None` while another thread holds the lock.
    #[cfg(test)]
    pub fn try_statuses(&self) -> Option<MutexGuard<'_, LimitStatuses>> {
        self.statuses.try_lock().ok()
    }

    /// Adds the gates' counts to the statuses, so that [`Enforcement::status`] is up to date.
    pub fn drain(&self) {
        self.statuses().drain(&self.gates);
    }

    /// Counts a thread that ended with an uncaught refusal of this account, if the account has or had a
    /// limit. Takes the lock: on a thread that ends, not in an event.
    pub fn count_killed_thread(&self, account: &str) {
        if let Some(status) = self.statuses().known_mut(account) {
            status.counts.threads_killed += 1;
        }
    }

    /// Where an account stands, for a report. Takes the lock.
    pub fn status(&self, account: &str) -> Status {
        let statuses = self.statuses();
        let Some(status) = statuses.status(account) else {
            return Status::default();
        };
        Status {
            state: status.state(),
            counts: status.counts,
            soft_events: status.soft_events,
            door: match status.reserve {
                None => DoorState::None,
                Some(_) if status.is_shut() => DoorState::Shut,
                Some(_) => DoorState::Open,
            },
            reserve_bytes: status.reserve.map(|reserve| reserve.bytes),
            ineffective: status.effect.ineffective().cloned(),
            places: status.places.listed(),
            places_elsewhere: status.places.elsewhere(),
        }
    }

    /// Native memory held, in bytes.
    pub fn committed_bytes(&self) -> u64 {
        let places = self.statuses().places_bytes();
        self.gates.committed_bytes()
            + self.details.committed_bytes()
            + self.routes.committed_bytes()
            + places
    }
}
