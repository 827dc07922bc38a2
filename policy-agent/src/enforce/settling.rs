//! When the refunds of a collection that covers old memory are all in. Knows the ledger and a
//! clock, no JVM.

use std::time::Instant;

use crate::ledger::{Epoch, Ledger, Quiet, QuietWindow};

use super::couriers::Delivery;

/// Where the kernel does not tell whether the couriers are at work, refunds are taken to be in
/// after so long without one: longer than a busy machine sets a thread aside, as a rule ...
const QUIET_MS: u64 = 100;
/// ... and where there is always one at work, when a later batch has begun. Not at once: a look
/// that shows them asleep says more.
const ALWAYS_MS: u64 = 1_000;

/// Refunds of a covering collection coming in, if some are.
#[derive(Debug, Default)]
pub(super) struct Settling(Option<Batch>);

#[derive(Debug)]
struct Batch {
    epoch: Epoch,
    started: Instant,
    window: QuietWindow,
    /// The epoch when the old canary's death was seen: what is born later and dies is in a
    /// later batch of refunds.
    seen_in: Epoch,
}

impl Settling {
    /// Confirms what is covered when all refunds are in, and gives the epoch. `delivery` is
    /// asked after the proof was seen: what it says of couriers is said of that batch.
    pub(super) fn turn(
        &mut self,
        ledger: &Ledger,
        delivery: impl FnOnce() -> Delivery,
        now: Instant,
    ) -> Option<Epoch> {
        let epochs = ledger.epochs();
        let frees = ledger.frees_total();
        if self.0.is_none()
            && let Some(epoch) = epochs.pending_cover()
        {
            self.0 = Some(Batch {
                epoch,
                started: now,
                window: QuietWindow::with_bounds(0, frees, QUIET_MS, u64::MAX),
                seen_in: epochs.current(),
            });
        }
        let batch = self.0.as_mut()?;
        let elapsed_ms = now.saturating_duration_since(batch.started).as_millis();
        let elapsed_ms = u64::try_from(elapsed_ms).unwrap_or(u64::MAX);
        let is_quiet = batch.window.observe(elapsed_ms, frees) == Quiet::Settled;
        // Batches are posted one after the other: a death of a later one ends this one.
        let newest = epochs.pending().max(epochs.boundary());
        let later_came = elapsed_ms >= ALWAYS_MS && newest > Some(batch.seen_in);
        let settled = match delivery() {
            Delivery::Complete => true,
            Delivery::UnderWay => later_came,
            Delivery::Unknown => is_quiet || later_came,
        };
        let epoch = batch.epoch;
        if !settled {
            return None;
        }
        self.0 = None;
        epochs.confirm_cover(epoch);
        Some(epoch)
    }

    /// Whether some are awaited.
    pub(super) fn is_under_way(&self) -> bool {
        self.0.is_some()
    }
}
