//! Makes a pass.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Pace, Pass, Row, Tally};
use crate::core::Core;
use crate::identity::classes::ClassId;

impl Pass {
    /// Scans the records and looks up the names of what it finds. On an agent thread; takes the directory's
    /// lock for two short steps, and holds none during the scan.
    #[must_use]
    pub fn take(core: &Core, now_ms: u64) -> Pass {
        Pass::take_with(core, now_ms, false)
    }

    fn take_with(core: &Core, now_ms: u64, is_charged: bool) -> Pass {
        let counting = core.directory().begin_counting();
        let times = core.holdings.marks();
        let covered = times.covered().unwrap_or_default();
        let covers = times.covers();
        let mut tally = Tally::new(times);
        core.ledger.scan(|record| {
            let mut record = *record;
            record.survived |= is_charged;
            tally.add(&record);
        });
        let mut directory = core.directory();
        let ended = directory.end_counting(counting);
        if !ended.purses.is_empty() || !ended.classes.is_empty() {
            tally.retain(|key| {
                !ended.classes.contains(&ClassId(key.class)) && !ended.purses.contains(&key.payer)
            });
        }
        let name = |row: &Row| Some((row.key.class, directory.class_name(ClassId(row.key.class))?));
        let classes = tally.rows.iter().filter_map(name).collect();
        Pass {
            covered,
            at_ms: now_ms,
            covers,
            is_charged,
            classes,
            accounts: directory.names(),
            tally,
        }
    }

    /// As [`Pass::take`], as if all that is charged had survived a collection: what may be held at most.
    #[must_use]
    pub fn take_charged(core: &Core, now_ms: u64) -> Pass {
        Pass::take_with(core, now_ms, true)
    }
}

impl Pace {
    /// Makes a pass if a covering collection has come since the last one and the rest is over. Returns it,
    /// or how long to wait at most. The holdings thread.
    ///
    /// # Errors
    /// How long to sleep unless it is woken.
    pub fn take_if_due(
        &mut self,
        core: &Core,
        now: impl Fn() -> Instant,
        now_ms: u64,
    ) -> Result<Arc<Pass>, Duration> {
        const IDLE: Duration = Duration::from_secs(10);
        let begun = now();
        if let Some(rest) = self
            .not_before
            .and_then(|then| then.checked_duration_since(begun))
            && !rest.is_zero()
        {
            return Err(rest);
        }
        if core.holdings.covers() == self.covers {
            return Err(IDLE);
        }
        let pass = Arc::new(Pass::take(core, now_ms));
        self.covers = pass.covers;
        core.holdings.latest.store(Some(pass.clone()));
        self.rest(begun, now());
        Ok(pass)
    }
}
