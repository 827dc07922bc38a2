//! Holds the sum of all accounts against the heap after each covering collection, by the rules of
//! [`crate::sum_against_heap`]; publishes what it finds, and says what the log is to tell of it.
//!
//! A look is one pass over the records. It is followed by a rest of `REST_PER_PASS` times as long, ten seconds at the most,
//! so its cost is at most a two-hundredth of a processor where a pass takes less than 50 ms (a million records). Of
//! collections that follow one another faster the latest counts.

use std::time::{Duration, Instant};

use policy_config::format_rounded_bytes as size;

use crate::core::Core;
use crate::events;
use crate::ledger::Epoch;
use crate::sum_against_heap::{Judged, Reading};
use crate::uncertainty::{Survivors, stated_error_bytes};

const REST_PER_PASS: u32 = 200;
const SHORTEST_REST: Duration = Duration::from_millis(500);
const LONGEST_REST: Duration = Duration::from_secs(10);
/// The shortest time between two lines of the log.
const TOLD: Duration = Duration::from_secs(60);
/// The time between two collections that are asked for while the finding stands.
const ASKED: Duration = Duration::from_secs(60);

/// The judgement on the sum of all accounts, and when to look, to ask and to tell again. On the enforcer's thread.
#[derive(Debug, Default)]
pub struct HeapCheck {
    judged: Judged,
    /// The covering proof of the latest reading.
    looked: Option<Epoch>,
    again_at: Option<Instant>,
    told: Option<Instant>,
    /// The finding as the log has it.
    told_to_stand: bool,
    /// From when on a covering collection is wanted; `None` while nothing is doubted.
    ask_at: Option<Instant>,
}

impl HeapCheck {
    /// Returns the judgement on the readings so far.
    pub fn judged(&self) -> Judged {
        self.judged
    }

    /// Whether this covering proof is to be looked at now.
    pub fn is_due(&self, covered: Option<Epoch>, now: Instant) -> bool {
        covered > self.looked && self.again_at.is_none_or(|then| now >= then)
    }

    /// Whether another covering collection is wanted: at once where one reading has contradicted those before, now and
    /// then while the finding stands.
    pub fn wants_cover(&self, now: Instant) -> bool {
        self.ask_at.is_some_and(|then| now >= then)
    }

    /// Sums up what `covered` has left, and holds it against `heap_bytes`: what the heap had in use after that epoch,
    /// read before all refunds were waited for. `clock` gives the time.
    pub fn look(
        &mut self,
        core: &Core,
        covered: Epoch,
        heap_bytes: u64,
        clock: impl Fn() -> Instant,
    ) {
        let began = clock();
        let reading = read(core, covered, heap_bytes);
        self.judged = self.judged.next(reading);
        self.looked = Some(covered);
        let now = clock();
        let took = now.saturating_duration_since(began);
        self.again_at = Some(now + (took * REST_PER_PASS).clamp(SHORTEST_REST, LONGEST_REST));
        let is_settled = reading.exceeds() == self.judged.stands();
        let pause = if is_settled { ASKED } else { Duration::ZERO };
        self.ask_at = (self.judged.is_doubted()).then(|| now + pause);
        core.ledger.set_error_factor(self.judged.error_factor());
        core.accounts_sum.publish(self.judged);
        tracing::debug!(
            "the accounts hold {} ± {}, the heap {}",
            size(reading.accounts_bytes),
            size(reading.standard_error_bytes as u64),
            size(reading.heap_bytes)
        );
    }

    /// Tells the log that the finding begins or ends, and that it stands while limits would bind: `is_any_wanting` says
    /// whether an account beyond its limit goes on allocating. A line a minute at the most.
    pub fn tell(&mut self, is_any_wanting: bool, now: Instant) {
        let rests = (self.told).is_some_and(|then| now.saturating_duration_since(then) < TOLD);
        let stands = self.judged.stands();
        let is_news = stands != self.told_to_stand || stands && is_any_wanting;
        let Some(reading) = self.judged.latest().filter(|_| is_news && !rests) else {
            return;
        };
        self.told = Some(now);
        self.told_to_stand = stands;
        let sum = format!(
            "the accounts sum up to {} ± {} where the heap has {} in use",
            size(reading.accounts_bytes),
            size(reading.standard_error_bytes as u64),
            size(reading.heap_bytes)
        );
        if stands {
            tracing::warn!(
                "the figures are wrong: {sum}; nobody is refused until they fit again, and all errors are stated {:.1} \
                 times as large (heapwarden doctor says what may help)",
                self.judged.error_factor()
            );
        } else {
            tracing::info!(
                "the figures fit the heap again: {sum}; limits are enforced as the policy says"
            );
        }
    }
}

/// The sum of all accounts.
fn read(core: &Core, covered: Epoch, heap_bytes: u64) -> Reading {
    let _timing = events::reading_for_verdict();
    let (mut accounts_bytes, mut variance) = (0_u64, 0_u64);
    let used_bytes = core.heap.used_after_gc_bytes();
    let survivors = Survivors::of(&core.ledger, used_bytes, |record| {
        if record.birth <= covered {
            accounts_bytes = accounts_bytes.saturating_add(record.live.bytes);
            variance = variance.saturating_add(record.live.variance);
        }
    });
    let purses = survivors.purses();
    // Not widened: the finding must not hide itself.
    let stated = survivors.live_variance(&core.ledger, &purses);
    let of_records = survivors.live(&purses).variance;
    let variance = variance.saturating_add(stated).saturating_sub(of_records);
    Reading {
        accounts_bytes,
        standard_error_bytes: stated_error_bytes(variance),
        heap_bytes,
    }
}
