//! When a candidate asks for a collection of old memory.
//!
//! Collections that come anyway are enough for most programs, and the statistic waits for them. But a leak may
//! fill young and old memory for minutes before the collector looks at old memory. So a row that seems to
//! grow asks for a concurrent cycle, within the evidence budget. The rules keep that rare:
//!
//! 1. A row is a *candidate* if it would be called a leak, or be near it, if all that is charged were held; or if
//!    nothing is known of it yet and it has enough samples to matter.
//! 2. A candidate that a look has refuted waits, and twice as long after each further refutation, up to
//!    `LONGEST_MS`. One that is not decided waits for `AGAIN` of the history, since a look with hardly
//!    more time behind it says hardly more. A suspect is looked at again ever more rarely.
//! 3. Requests keep a distance of `AGAIN` of the agent's age, up to `DISTANCE_MS`.
//! 4. Where a collection of old memory is one of the whole heap (ZGC, Shenandoah), there are at most
//!    [`FEW`] requests; after that a distance of `RARE_MS`, doubled with each request, up to
//!    `LONGEST_MS`.
//!
//! Pure but for its states.

use std::collections::HashMap;

use super::detector::Judged;
use super::history::RowName;
use super::statistic::Verdict;

/// The earliest request, in milliseconds since the agent was made.
const EARLIEST_MS: u64 = 40_000;
/// See rules 2 and 3.
const AGAIN: f64 = 0.3;
/// See rule 3.
const DISTANCE_MS: u64 = 150_000;
/// The shortest distance, in milliseconds.
const SHORTEST_MS: u64 = 12_000;
/// See rule 2: the pause after the first refutation.
const REFUTED_MS: u64 = 60_000;
/// The pause before a suspect is looked at for the first time.
const SUSPECT_MS: u64 = 150_000;
/// See rule 2.
const LONGEST_MS: u64 = 6 * 3_600_000;
/// See rule 4.
pub const FEW: u32 = 3;
/// See rule 4.
const FEW_DISTANCE_MS: u64 = 50_000;
/// See rule 4.
const RARE_MS: u64 = 20 * 60_000;
/// After so many looks that decided nothing, a row counts as refuted.
const MAX_UNDECIDED: u32 = 12;

/// The earliest time of a row's next request, and how often looks refuted, left open or confirmed it.
#[derive(Debug, Clone, Copy, Default)]
struct Ask {
    not_before_ms: u64,
    refuted: u32,
    undecided: u32,
    confirmed: u32,
}

/// Requests so far. On the holdings thread.
#[derive(Debug, Default)]
pub struct Asking {
    rows: HashMap<RowName, Ask>,
    requests: u32,
    last_ms: Option<u64>,
}

impl Asking {
    /// Whether a request keeps its distance from the ones before. `is_rare`: see rule 4.
    #[must_use]
    pub fn may_ask(&self, now_ms: u64, is_rare: bool) -> bool {
        if now_ms < EARLIEST_MS {
            return false;
        }
        let Some(last_ms) = self.last_ms else {
            return true;
        };
        let distance = if !is_rare {
            ((now_ms as f64 * AGAIN) as u64).clamp(SHORTEST_MS, DISTANCE_MS)
        } else if self.requests < FEW {
            FEW_DISTANCE_MS
        } else {
            (RARE_MS << (self.requests - FEW).min(10)).min(LONGEST_MS)
        };
        now_ms - last_ms >= distance
    }

    /// Whether this row may ask now. Rule 2.
    #[must_use]
    pub fn may_be_candidate(&self, name: &RowName, now_ms: u64) -> bool {
        (self.rows.get(name)).is_none_or(|ask| now_ms >= ask.not_before_ms)
    }

    /// A request was made.
    pub fn asked(&mut self, now_ms: u64) {
        self.requests = self.requests.saturating_add(1);
        self.last_ms = Some(now_ms);
    }

    /// A look has come: what it says of the rows decides when they may ask again.
    pub fn looked(&mut self, judged: &[Judged], now_ms: u64) {
        let mut before = std::mem::take(&mut self.rows);
        for one in judged {
            let mut ask = before.remove(&one.name).unwrap_or_default();
            let share = |window_seconds: u64| ((window_seconds * 1_000) as f64 * AGAIN) as u64;
            let pause = if one.verdict == Verdict::Leak {
                ask.confirmed += 1;
                SUSPECT_MS << (ask.confirmed - 1).min(6)
            } else if one.is_unconfirmed {
                share(one.window_seconds)
            } else if one.windows == 0 || one.verdict == Verdict::Undecided {
                ask.undecided += 1;
                ((now_ms as f64 * AGAIN) as u64).clamp(SHORTEST_MS, DISTANCE_MS)
                    << (ask.undecided.saturating_sub(MAX_UNDECIDED)).min(10)
            } else {
                ask.refuted += 1;
                let first = REFUTED_MS
                    .max((now_ms as f64 * AGAIN) as u64)
                    .min(2 * DISTANCE_MS);
                first << (ask.refuted - 1).min(12)
            };
            if one.verdict != Verdict::Leak {
                ask.confirmed = 0;
            }
            ask.not_before_ms = now_ms + pause.min(LONGEST_MS);
            self.rows.insert(one.name.clone(), ask);
        }
    }

    /// Native bytes held, about.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        (self.rows.capacity() * size_of::<(RowName, Ask)>()) as u64
    }
}
