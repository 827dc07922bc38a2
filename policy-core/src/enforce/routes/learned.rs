//! Knowledge of a route and of its service.

use super::price::{Mark, Price, Windows};
use crate::ledger::Epoch;

/// A route's windows and price, and its standing at the shut door.
#[derive(Debug, Clone, Copy)]
pub(super) struct Learned {
    pub(super) windows: Windows,
    /// By the latest evidence.
    pub(super) price: Price,
    /// It has kept too much while the door was shut.
    pub(super) dismissed: bool,
    /// Its requests could go in freely since the door was shut.
    pub(super) was_free: bool,
}

/// The time for which the door of a service is shut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shut {
    pub(super) since_ms: u64,
    /// The epoch in which it was seen to be shut: objects of that epoch or a later one count as born since.
    pub(super) from: Epoch,
}

impl Learned {
    pub(super) fn begin(current: Epoch, changes: u32) -> Learned {
        let mark = Mark {
            epoch: current.get(),
            changes,
            ..Mark::default()
        };
        Learned {
            windows: Windows::begin(mark),
            price: Price::default(),
            dismissed: false,
            was_free: false,
        }
    }
}
