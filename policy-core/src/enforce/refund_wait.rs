//! Waits, without blocking, until all refunds of a collection of old memory have arrived. Knows the
//! ledger and a clock, no JVM.

use std::time::Instant;

use crate::events;
use crate::ledger::{Epoch, Ledger, Quiet, QuietWindow};
use crate::ports::Delivery;

/// If the kernel does not show whether the refund threads are running, refunds count as complete after
/// so long without one: usually longer than a busy machine suspends a thread.
const QUIET_MS: u64 = 100;
/// If a refund thread is always running, refunds count as complete once a later batch has begun, but
/// not before this time: seeing the threads asleep is the better proof.
const ALWAYS_MS: u64 = 1_000;

/// The refunds of a covering collection that are still arriving, if any. On the enforcer's thread.
#[derive(Debug, Default)]
pub struct RefundWait(Option<Batch>);

#[derive(Debug)]
struct Batch {
    epoch: Epoch,
    started: Instant,
    window: QuietWindow,
    /// The epoch in which the old canary's death was seen: objects that are born later and die are
    /// in a later batch of refunds.
    seen_in: Epoch,
}

impl RefundWait {
    /// Confirms the proof in the ledger once all refunds have arrived, and returns its epoch.
    /// `delivery` is called after the proof was seen, so its answer is about that batch.
    pub fn turn(
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
        // Batches are posted one after the other: a death of a later one shows that this one is done.
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
        events::waited_for_covering_refunds(now.saturating_duration_since(batch.started));
        self.0 = None;
        epochs.confirm_cover(epoch);
        Some(epoch)
    }

    /// Whether refunds are awaited.
    pub fn is_under_way(&self) -> bool {
        self.0.is_some()
    }
}
