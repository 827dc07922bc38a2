//! Duress: the heap itself is short. Only then does anybody wait, and is a thread without a unit of work slowed.
//!
//! # Rules
//! 1. The heap is *short* at a reading if it has less free than a tenth of it, or less than what the suspects can take
//!    until the next evidence ([`pace_bytes`], for [`EVIDENCE`]), by the share of it that was measured to survive; who
//!    makes garbage and has not grown of late takes nothing. That counts up to half of the heap only, and with a
//!    concurrent collector up to a quarter: its heap is full of garbage.
//! 2. One reading after a pause that stops the world is enough if what suspects can take is more than what it left
//!    free: the heap would be full before another came. Otherwise one reading is a moment, and the latest [`STREAK`]
//!    ends of pauses must be short. Other collectors free memory between their pauses, so a pause shows the heap at its
//!    fullest: with them each reading of the last `WINDOW` must be short, and [`STREAK`] of them at the least. While
//!    one is short, the enforcer reads every [`LOOK`]; before, in half the time in which suspects can make it short.
//! 3. Duress ends when a reading shows a twentieth of the heap more than what rule 1 asks for: it does not flicker.
//! 4. In duress the account that is furthest beyond its limit is refused first ([`victims`]): its excess counts
//!    divided by its priority. As many are refused as would end the shortage by what they hold beyond their limits;
//!    each further covering collection that still shows duress adds one.
//!
//! Readings count garbage as used: they take the free bytes of the heap as the JVM reports them. One after a pause
//! comes some time later, so what accounts near their limits were charged since the pause counts as free.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::ports::CollectorKind;

/// The heap is short below one part in so many.
const TENTH: u64 = 10;
/// The memory that suspects can take counts up to one part in so many of the heap.
const MOST: u64 = 2;
/// The same with a concurrent collector.
const MAX_CONCURRENT: u64 = 4;
/// Duress ends that much beyond, one part in so many.
const BEYOND: u64 = 20;
/// How many readings must agree.
pub const STREAK: usize = 2;
/// For how long the readings of a concurrent collector must agree.
const WINDOW: Duration = Duration::from_millis(300);
/// The same with generational ZGC: it gives back tagged garbage at major collections alone, so who makes garbage is not
/// known as such before one, and between its minor ones the heap is full of it (on a busy machine for half a second).
const WINDOW_WITH_GENERATIONS: Duration = Duration::from_secs(1);
/// How often the enforcer reads the heap while it seems short, with a concurrent collector.
pub const LOOK: Duration = Duration::from_millis(20);
/// How long evidence takes, as a rule.
pub const EVIDENCE: Duration = Duration::from_secs(1);
/// Readings that are kept, at the most; with a concurrent collector those of the latest window.
const MAX_READINGS: usize = 1024;

/// The figures that say whether the heap is short, for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Whether there is duress.
    pub is_on: bool,
    /// Bytes of the heap that are taken as free.
    pub free_bytes: u64,
    /// Below so many free bytes the heap is short.
    pub short_below_bytes: u64,
}

/// A reading of the heap.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// When.
    pub now: Instant,
    /// The free bytes.
    pub free_bytes: u64,
    /// It was taken at the end of a pause.
    pub after_pause: bool,
}

/// Follows the heap. On the enforcer's thread; no JVM.
#[derive(Debug, Default)]
pub struct Duress {
    readings: VecDeque<Reading>,
    figures: Figures,
    /// The bytes that suspects can take in [`EVIDENCE`], without an upper bound.
    wanted_bytes: u64,
}

impl Duress {
    /// Notes a reading of a heap of `max_bytes`. `wanted_bytes`: what the suspects can take until the next evidence.
    pub fn look(
        &mut self,
        reading: Reading,
        kind: Option<CollectorKind>,
        max_bytes: u64,
        wanted_bytes: u64,
    ) -> Figures {
        let is_concurrent = kind.is_some_and(CollectorKind::frees_between_pauses);
        let since = reading.now.checked_sub(window(kind));
        if is_concurrent || reading.after_pause {
            self.readings.push_back(reading);
            // The oldest that is kept covers the window.
            let is_over = |kept: &Reading| since.is_some_and(|since| kept.now <= since);
            while self.readings.len() > MAX_READINGS
                || self.readings.len() > STREAK && self.readings.get(1).is_some_and(is_over)
            {
                self.readings.pop_front();
            }
        }
        self.wanted_bytes = wanted_bytes;
        let most = if is_concurrent { MAX_CONCURRENT } else { MOST };
        let wanted_bytes = wanted_bytes.min(max_bytes / most);
        let short_below_bytes = (max_bytes / TENTH).max(wanted_bytes);
        let is_sure = !is_concurrent && reading.after_pause && reading.free_bytes < wanted_bytes;
        let is_kept =
            |kept: &&Reading| !is_concurrent || since.is_none_or(|since| kept.now >= since);
        let latest = |most: usize| self.readings.iter().rev().take(most);
        let most = if is_concurrent { MAX_READINGS } else { STREAK };
        // The emptiest that it was of late.
        let free_bytes = latest(most)
            .filter(is_kept)
            .map(|kept| kept.free_bytes)
            .max();
        let free_bytes = match free_bytes {
            Some(free_bytes) if !is_sure => free_bytes,
            _ => reading.free_bytes,
        };
        let covers = !is_concurrent
            || (self.readings.front())
                .zip(since)
                .is_some_and(|(oldest, since)| oldest.now <= since);
        let agree = latest(most).filter(is_kept).count() >= STREAK && covers;
        let is_on = match self.figures.is_on {
            true => free_bytes < short_below_bytes + max_bytes / BEYOND,
            false => is_sure || agree && free_bytes < short_below_bytes,
        };
        self.figures = Figures {
            is_on,
            free_bytes,
            short_below_bytes,
        };
        self.figures
    }

    /// In which time suspects can take so many bytes; an hour at the most.
    fn time_to_take(&self, bytes: u64) -> Duration {
        const LONGEST: Duration = Duration::from_secs(3600);
        let times = bytes as f64 / self.wanted_bytes.max(1) as f64;
        EVIDENCE.mul_f64(times.min(LONGEST.as_secs_f64()))
    }

    /// How long until the next reading is wanted; `None` if the next pause is soon enough.
    pub fn look_again(&self, kind: Option<CollectorKind>) -> Option<Duration> {
        if !kind.is_some_and(CollectorKind::frees_between_pauses) {
            return None;
        }
        let short_below_bytes = self.figures.short_below_bytes;
        let is_near = self.figures.free_bytes < short_below_bytes || self.figures.is_on;
        let free_bytes = (self.readings.back()).map_or(u64::MAX, |latest| latest.free_bytes);
        if is_near || free_bytes < short_below_bytes {
            return Some(LOOK);
        }
        let half = self.time_to_take((free_bytes - short_below_bytes) / 2);
        (self.wanted_bytes > 0).then_some(half.max(LOOK))
    }

    /// The figures of the latest reading.
    pub fn figures(&self) -> Figures {
        self.figures
    }
}

fn window(kind: Option<CollectorKind>) -> Duration {
    match kind {
        Some(CollectorKind::GenerationalZgc) => WINDOW_WITH_GENERATIONS,
        _ => WINDOW,
    }
}

/// Returns the bytes that an account is charged in a second: it was `charged_bytes` in `passed`. Zero while too little
/// time has passed.
pub fn pace_bytes(charged_bytes: u64, passed: Duration) -> u64 {
    const LEAST: Duration = Duration::from_millis(5);
    if passed < LEAST {
        return 0;
    }
    (charged_bytes as f64 / passed.as_secs_f64()) as u64
}

/// An account that is over its limit, as [`victims`] compares it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beyond {
    /// The bytes that it holds beyond its limit.
    pub excess_bytes: u64,
    /// Its priority in the policy; more than zero.
    pub priority: f64,
}

/// Which of these accounts are refused in duress (rule 4), the first to be refused first, as indexes.
/// `shortage_bytes`: how much less than enough the heap has free; `more`: how many covering collections have
/// shown duress since it began.
pub fn victims(accounts: &[Beyond], shortage_bytes: u64, more: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..accounts.len()).collect();
    let weight = |index: usize| {
        let account = &accounts[index];
        account.excess_bytes as f64 / account.priority.max(f64::MIN_POSITIVE)
    };
    order.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)));
    let mut gained = 0_u64;
    let enough = order.iter().position(|&index| {
        gained = gained.saturating_add(accounts[index].excess_bytes);
        gained >= shortage_bytes
    });
    let count = enough.map_or(order.len(), |last| last + 1);
    order.truncate(count.saturating_add(more));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;
    const HEAP: u64 = 1000 * MIB;

    struct Heap {
        duress: Duress,
        now: Instant,
        kind: CollectorKind,
        wanted: u64,
    }

    impl Heap {
        fn new(kind: CollectorKind) -> Heap {
            Heap {
                duress: Duress::default(),
                now: Instant::now(),
                kind,
                wanted: 0,
            }
        }

        fn read(&mut self, after_ms: u64, free_mib: u64, after_pause: bool) -> bool {
            self.now += Duration::from_millis(after_ms);
            let reading = Reading {
                now: self.now,
                free_bytes: free_mib * MIB,
                after_pause,
            };
            (self
                .duress
                .look(reading, Some(self.kind), HEAP, self.wanted))
            .is_on
        }
    }

    #[test]
    fn two_pauses_that_leave_little_are_duress_and_one_is_not() {
        let mut heap = Heap::new(CollectorKind::G1);
        assert!(!heap.read(0, 500, true));
        assert!(!heap.read(50, 90, true), "one");
        assert!(!heap.read(50, 5, false), "between pauses there is garbage");
        assert!(heap.read(50, 90, true));
        assert!(heap.read(50, 149, true), "it does not flicker");
        assert!(!heap.read(50, 151, true));
    }

    #[test]
    fn one_reading_is_enough_where_suspects_can_take_the_rest() {
        for kind in [CollectorKind::StopTheWorld, CollectorKind::G1] {
            let mut heap = Heap::new(kind);
            heap.wanted = 900 * MIB;
            assert!(!heap.read(0, 520, true), "half of the heap at most");
            assert!(heap.read(20, 480, true));
            let mut heap = Heap::new(kind);
            heap.wanted = 300 * MIB;
            assert!(!heap.read(0, 310, true), "they leave some");
            assert!(heap.read(20, 290, true));
        }
        let mut heap = Heap::new(CollectorKind::G1);
        heap.wanted = 900 * MIB;
        assert!(!heap.read(0, 100, false), "between pauses there is garbage");
        let mut heap = Heap::new(CollectorKind::Whole);
        heap.wanted = 900 * MIB;
        assert!(
            !heap.read(0, 100, false),
            "and always beside a concurrent one"
        );
    }

    #[test]
    fn a_concurrent_collector_is_full_at_its_pauses_and_not_in_duress() {
        for (kind, begins_within) in [
            (CollectorKind::Whole, 280..=440),
            (CollectorKind::GenerationalZgc, 980..=1140),
        ] {
            let mut heap = Heap::new(kind);
            for _ in 0..50 {
                assert!(!heap.read(20, 30, true));
                assert!(!heap.read(5, 40, true));
                assert!(!heap.read(20, 300, false));
                assert!(!heap.read(100, 120, false));
            }
            assert!(heap.duress.look_again(Some(heap.kind)).is_none());
            let begun = (0..80).find(|_| heap.read(20, 60, false));
            let begun = begun.expect("it is short for good") * 20;
            assert!(begins_within.contains(&begun), "{begun}");
            assert_eq!(heap.duress.look_again(Some(heap.kind)), Some(LOOK));
        }
    }

    /// Turns come as often as pauses, deaths and refunds do.
    #[test]
    fn however_often_the_heap_is_read_duress_begins() {
        let mut heap = Heap::new(CollectorKind::GenerationalZgc);
        heap.read(0, 900, false);
        let begun = (0..2000).find(|read| heap.read(1, 60, read % 3 == 0 || read % 7 == 0));
        let begun = begun.expect("it is short for good");
        assert!((1000..=1010).contains(&begun), "{begun}");
        assert!(heap.duress.readings.len() <= MAX_READINGS);
    }

    #[test]
    fn the_faster_suspects_fill_a_concurrent_heap_the_sooner_it_is_looked_at() {
        let mut heap = Heap::new(CollectorKind::GenerationalZgc);
        heap.read(0, 900, false);
        assert_eq!(heap.duress.look_again(Some(heap.kind)), None);
        for (wanted, again_ms) in [(100, 4_000), (1_000, 325), (100_000, 20)] {
            heap.wanted = wanted * MIB;
            heap.read(0, 900, false);
            let again = heap.duress.look_again(Some(heap.kind));
            assert_eq!(again, Some(Duration::from_millis(again_ms)), "{wanted}");
        }
        let mut heap = Heap::new(CollectorKind::StopTheWorld);
        heap.wanted = 100 * MIB;
        heap.read(0, 900, true);
        assert_eq!(heap.duress.look_again(Some(heap.kind)), None);
    }

    #[test]
    fn the_furthest_beyond_is_first_and_priority_weighs() {
        let beyond = |mib: u64, priority| Beyond {
            excess_bytes: mib * MIB,
            priority,
        };
        let accounts = [beyond(10, 1.0), beyond(100, 1.0), beyond(60, 1.0)];
        assert_eq!(victims(&accounts, 50 * MIB, 0), [1]);
        assert_eq!(victims(&accounts, 150 * MIB, 0), [1, 2]);
        assert_eq!(victims(&accounts, 50 * MIB, 1), [1, 2]);
        assert_eq!(victims(&accounts, 999 * MIB, 0), [1, 2, 0]);
        let accounts = [beyond(10, 1.0), beyond(100, 20.0), beyond(60, 1.0)];
        assert_eq!(victims(&accounts, 50 * MIB, 0), [2]);
        assert!(victims(&[], 50 * MIB, 3).is_empty());
    }

    #[test]
    fn a_pace_is_what_is_charged_in_a_second() {
        assert_eq!(pace_bytes(100, Duration::from_millis(500)), 200);
        assert_eq!(pace_bytes(100, Duration::from_millis(1)), 0);
    }

    proptest! {
        /// Whoever is spared is less far beyond than each who is refused, and the refused ones suffice, if all do.
        #[test]
        fn victims_are_the_furthest_and_enough(
            accounts in proptest::collection::vec((0u64..1 << 40, 0.01f64..100.0), 0..20),
            shortage in 0u64..1 << 42,
            more in 0usize..5,
        ) {
            let accounts: Vec<Beyond> = accounts.into_iter()
                .map(|(excess_bytes, priority)| Beyond { excess_bytes, priority }).collect();
            let refused = victims(&accounts, shortage, more);
            let weight = |index: usize| accounts[index].excess_bytes as f64 / accounts[index].priority;
            for spared in (0..accounts.len()).filter(|index| !refused.contains(index)) {
                prop_assert!(refused.iter().all(|&index| weight(index) >= weight(spared)));
            }
            let gained: u64 = refused.iter().map(|&index| accounts[index].excess_bytes).sum();
            prop_assert!(gained >= shortage || refused.len() == accounts.len());
        }

        /// No reading with room begins duress, whatever came before.
        #[test]
        fn room_is_no_duress(
            readings in proptest::collection::vec((1u64..400, 0u64..1000, any::<bool>()), 1..60),
            kind in 0usize..3,
        ) {
            let kind = [CollectorKind::G1, CollectorKind::StopTheWorld, CollectorKind::GenerationalZgc][kind];
            let mut heap = Heap::new(kind);
            let mut was_on = false;
            for (after_ms, free_mib, after_pause) in readings {
                let is_on = heap.read(after_ms, free_mib, after_pause);
                if is_on && !was_on {
                    prop_assert!(free_mib < 100 || kind != CollectorKind::GenerationalZgc && !after_pause);
                }
                was_on = is_on;
            }
        }
    }
}
