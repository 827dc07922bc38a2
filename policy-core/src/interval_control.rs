//! Controls the sampling interval of the running agent: the policy's interval, a wider one if samples
//! cost more than their budget, and a separate one for large arrays.
//!
//! [`crate::sampling::governor`] and [`crate::sampling::thinning`] decide. This module gives them the
//! measurements of the process and passes their decisions to the VM. The metadata thread puts policies
//! in force, the enforcer measures; both take one lock, which no allocating thread takes.

mod turn;

use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use crate::ledger::Epoch;
use crate::sampling::governor::Governor;
use crate::sampling::new_threads;
use crate::sampling::thinning::Settler;

pub use turn::{adopt, know_regions, look, wants_decision};

/// The state of the control. Its functions are in this module.
#[derive(Debug, Default)]
pub struct IntervalControl(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    governor: Governor,
    new_threads: new_threads::Rule,
    /// How often the interval is halved for draws.
    halvings: u32,
    /// The share of the process's CPU time (0 to 1) that the policy lets samples take.
    budget: Option<f64>,
    /// `max-tracked` of the first policy, which stays in force until the JVM ends.
    max_tracked: Option<u64>,
    last_look: Option<Instant>,
    last_logged: Option<Instant>,
    unlogged: u32,
    settler: Settler,
    /// The epoch up to which large arrays are settled.
    decided: Option<Epoch>,
    thinning_logged: bool,
    /// The shares that the rules of the policy keep of the samples of their classes.
    shares: Vec<f64>,
}

impl IntervalControl {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
