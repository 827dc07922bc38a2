//! Samples that come by chance beside many new threads.
//!
//! # Why they do not
//! HotSpot's sampler has one state of random numbers for all threads, and each new thread sets it to its own address
//! ([`super::first_draws`]). What comes next, of that thread and of others, follows from the address. Threads that are
//! made one after another get the same few addresses: all of them are sampled at the same places of their work, and a
//! thread beside them draws the same distances again and again.
//!
//! # What is done
//! *r* is the number of threads that began for each sample that is kept.
//!
//! 1. **A random phase.** From `r` = 1/256 on, a new thread makes garbage before its first own object: a random number of
//!    bytes, up to [`PHASE_INTERVALS`] intervals, or `MAX_PHASE_BYTES`. So it skips a random number of draws, and those
//!    that follow come at places of its work that no other thread's come at.
//! 2. **Finer draws.** From `r` = 1/32 on, threads draw under a part of the interval: up to `1 / 2^MAX_HALVINGS`. Samples
//!    are kept with a random number of our own, so that they weigh and count as before ([`super::interval`]). What the
//!    address decides is then one of many draws for each sample that is kept, and a phase skips more of them.
//!
//! With both, threads of 0.1 MB one after another, and a thread beside new ones, were 1.3 to 1.7 standard errors from the
//! truth (root of the mean square of 30 each, JDK 17, 21 and 25); without, 5 to 13. What is left is that the same
//! addresses come again: [`super::first_draws`] tells it of short threads.
//!
//! # What it may cost
//! Both come out of `cpu-budget`: at most a quarter of it each. The time of phases is measured, and their width follows
//! from it. A sample that is drawn but not kept costs what the JVM needs to report it, taken as [`PER_EVENT`]; that is
//! part of what samples cost.
//!
//! # When
//! Never while the heap is short. Every `WINDOW`. Both begin after two windows that want them, so that the threads of a program's start do not count.
//! Phases end with the first that does not, finer draws after `CALM` windows with less than half of `r`.
//!
//! # Threads
//! [`NewThreads::began`] is one add and one load, on a new thread. [`NewThreads::look`] is for the enforcer.

use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// The widest phase, in intervals in force.
pub const PHASE_INTERVALS: u64 = 2;
const MAX_PHASE_BYTES: u64 = 256 << 10;
/// Threads that begin for each sample: one for so many samples.
const SAMPLES_FOR_PHASE: u64 = 256;
const SAMPLES_FOR_FINER: u64 = 32;
/// Draws are at most `2^this` times finer.
const MAX_HALVINGS: u32 = 4;
/// No draws are finer than this.
const FINEST_DRAWN_BYTES: u64 = 1 << 10;
/// The time that the JVM needs to report a sample: 0.3 to 0.5 microseconds were measured.
pub const PER_EVENT: Duration = Duration::from_nanos(500);
/// The part of the budget that phases, and finer draws, may take.
const BUDGET_PART: f64 = 0.25;
const WINDOW: Duration = Duration::from_secs(1);
const CALM: u32 = 30;
/// Fewer threads in a window are not many.
const LEAST_THREADS: u64 = 8;

/// The width of the phases of new threads, and the counts of those that began.
#[derive(Debug, Default)]
pub struct NewThreads {
    began: AtomicU64,
    phases_ns: AtomicU64,
    /// The widest phase; 0: none.
    phase_bytes: AtomicU64,
}

/// The measurements since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measured {
    /// The time since the agent was loaded.
    pub since_start: Duration,
    /// CPU time of the process.
    pub process_cpu: Duration,
    /// Samples kept.
    pub samples: u64,
    /// The share of the process's CPU time that samples may take; `None` for no bound.
    pub budget: Option<f64>,
    /// The interval in force; 0 is exact.
    pub interval_bytes: u64,
    /// The heap is short.
    pub is_heap_short: bool,
}

/// The state between two looks.
#[derive(Debug, Default)]
pub struct Rule {
    window: Measured,
    began: u64,
    phases_ns: u64,
    /// Windows in a row in which many threads began.
    coming: u32,
    /// Windows in a row that want finer draws, or that do not.
    wanting: u32,
    calm: u32,
    halvings: u32,
    phase_share: f64,
    /// The CPU time of samples that were drawn and not kept.
    unkept_cpu: Duration,
}

impl NewThreads {
    /// A platform thread has begun: how many bytes of garbage it should make, with `chance` uniform in [0, 1).
    pub fn began(&self, chance: impl FnOnce() -> f64) -> u64 {
        self.began.fetch_add(1, Ordering::Relaxed);
        match self.phase_bytes.load(Ordering::Relaxed) {
            0 => 0,
            most => (most as f64 * chance()) as u64,
        }
    }

    /// A phase took this long on the new thread.
    pub fn phase_took(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.phases_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Applies the rules: how often the interval in force is to be halved for draws. The enforcer.
    pub fn look(&self, rule: &mut Rule, measured: &Measured) -> u32 {
        let began = self.began.load(Ordering::Relaxed);
        let phases_ns = self.phases_ns.load(Ordering::Relaxed);
        rule.look(measured, began, phases_ns);
        let phase_bytes = match measured.is_heap_short {
            true => 0,
            false => rule.phase_bytes(measured.interval_bytes),
        };
        self.phase_bytes.store(phase_bytes, Ordering::Relaxed);
        rule.halvings_of(measured.interval_bytes)
    }
}

impl Rule {
    fn look(&mut self, measured: &Measured, began: u64, phases_ns: u64) {
        let before = self.window;
        let elapsed = measured.since_start.saturating_sub(before.since_start);
        if elapsed < WINDOW {
            return;
        }
        let threads = began.saturating_sub(self.began);
        let phases = phases_ns.saturating_sub(self.phases_ns) as f64 / 1e9;
        let samples = measured.samples.saturating_sub(before.samples);
        let used = measured.process_cpu.saturating_sub(before.process_cpu);
        let allowed = measured.budget.map_or(f64::INFINITY, |budget| {
            used.as_secs_f64() * budget * BUDGET_PART
        });
        let unkept = samples << self.halvings_of(before.interval_bytes);
        self.unkept_cpu += PER_EVENT * u32::try_from(unkept - samples).unwrap_or(u32::MAX);
        self.window = *measured;
        (self.began, self.phases_ns) = (began, phases_ns);

        let are_many = |for_each: u64| threads >= LEAST_THREADS && threads * for_each >= samples;
        self.coming = match are_many(SAMPLES_FOR_PHASE) {
            true => self.coming.saturating_add(1),
            false => 0,
        };
        self.phase_share = match self.coming >= 2 {
            false => 0.0,
            true if phases > allowed => self.phase_share * allowed / phases,
            true if self.phase_share > 0.0 => (self.phase_share * 2.0).min(1.0),
            true => 1.0,
        };
        let affordable = allowed / (samples.max(1) as f64 * PER_EVENT.as_secs_f64());
        let affordable = affordable
            .max(1.0)
            .log2()
            .floor()
            .min(f64::from(MAX_HALVINGS)) as u32;
        if are_many(SAMPLES_FOR_FINER) {
            (self.wanting, self.calm) = (self.wanting.saturating_add(1), 0);
            if self.wanting >= 2 {
                self.halvings = affordable;
            }
        } else if threads * SAMPLES_FOR_FINER * 2 < samples || threads == 0 {
            (self.wanting, self.calm) = (0, self.calm.saturating_add(1));
            if self.calm >= CALM {
                self.halvings = 0;
            }
        }
        self.halvings = self.halvings.min(affordable);
    }

    /// CPU time of samples that were drawn and not kept, by an estimate.
    pub fn unkept_cpu(&self) -> Duration {
        self.unkept_cpu
    }

    fn halvings_of(&self, interval_bytes: u64) -> u32 {
        let most = (interval_bytes / FINEST_DRAWN_BYTES).checked_ilog2();
        self.halvings.min(most.unwrap_or(0))
    }

    fn phase_bytes(&self, interval_bytes: u64) -> u64 {
        let widest = interval_bytes
            .saturating_mul(PHASE_INTERVALS)
            .min(MAX_PHASE_BYTES);
        (widest as f64 * self.phase_share) as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const INTERVAL: u64 = 64 << 10;

    /// A process that uses one processor.
    struct Process {
        threads: NewThreads,
        rule: Rule,
        measured: Measured,
    }

    impl Process {
        fn new(budget: Option<f64>) -> Process {
            Process {
                threads: NewThreads::default(),
                rule: Rule::default(),
                measured: Measured {
                    budget,
                    interval_bytes: INTERVAL,
                    ..Measured::default()
                },
            }
        }

        /// A second in which threads begin, and samples are kept.
        fn second(&mut self, threads: u64, samples: u64) -> (u32, u64) {
            for _ in 0..threads {
                self.threads.began(|| 0.5);
            }
            self.measured.since_start += WINDOW;
            self.measured.process_cpu += WINDOW;
            self.measured.samples += samples;
            let halvings = self.threads.look(&mut self.rule, &self.measured);
            (halvings, self.threads.began(|| 0.999_999))
        }
    }

    #[test]
    fn few_threads_change_nothing() {
        let mut process = Process::new(Some(0.01));
        for (threads, samples) in [(0, 0), (6, 10), (20, 50_000), (1, 0)] {
            for _ in 0..5 {
                assert_eq!(
                    process.second(threads, samples),
                    (0, 0),
                    "{threads} {samples}"
                );
            }
        }
    }

    #[test]
    fn a_thread_for_some_hundred_samples_gets_a_phase_alone() {
        let mut process = Process::new(Some(0.01));
        assert_eq!(process.second(20, 2_000), (0, 0), "a program starts");
        for _ in 0..5 {
            let (halvings, phase) = process.second(20, 2_000);
            assert_eq!(halvings, 0);
            assert!(
                (2 * INTERVAL - 2..=2 * INTERVAL).contains(&phase),
                "{phase}"
            );
        }
        assert_eq!(process.second(0, 2_000), (0, 0), "it ends with them");
    }

    #[test]
    fn draws_get_finer_when_threads_keep_coming_and_stay_so_for_a_while() {
        let mut process = Process::new(Some(0.01));
        assert_eq!(process.second(200, 100).0, 0, "a program starts");
        assert_eq!(process.second(200, 100).0, 4);
        for calm in 1..CALM {
            assert_eq!(process.second(0, 100).0, 4, "{calm}");
        }
        assert_eq!(process.second(0, 100).0, 0);
        assert_eq!(process.second(200, 100).0, 0, "two windows again");
    }

    #[test]
    fn events_that_are_not_kept_stay_within_their_part_of_the_budget() {
        for samples in [10_u64, 100, 1_000, 3_000, 10_000, 100_000] {
            let mut process = Process::new(Some(0.01));
            let mut halvings = 0;
            for _ in 0..5 {
                halvings = process.second(samples, samples).0;
            }
            let took = PER_EVENT.as_secs_f64() * (samples << halvings) as f64;
            assert!(
                halvings == 0 || took <= 0.01 * BUDGET_PART,
                "{samples}: {halvings}"
            );
            if samples <= 100 {
                assert_eq!(halvings, 4);
            }
        }
        let mut without = Process::new(None);
        without.second(1_000_000, 1_000_000);
        assert_eq!(without.second(1_000_000, 1_000_000).0, 4);
    }

    #[test]
    fn phases_get_narrower_until_they_fit_their_part() {
        let mut process = Process::new(Some(0.01));
        let per_byte = Duration::from_nanos(1);
        let (mut took, mut phase) = (0.0, 0);
        for _ in 0..60 {
            phase = process.second(1_000, 1_000).1;
            took = 0.0;
            for _ in 0..1_000 {
                process.threads.phase_took(per_byte * (phase / 2) as u32);
                took += (phase / 2) as f64 * 1e-9;
            }
        }
        assert!(took <= 0.01 * BUDGET_PART * 2.05, "{took}");
        assert!(phase > 0, "they do not end");
    }

    #[test]
    fn unkept_samples_are_charged_and_a_short_heap_gets_no_garbage() {
        let mut process = Process::new(Some(0.01));
        process.second(200, 100);
        process.second(200, 100);
        assert_eq!(process.rule.unkept_cpu(), Duration::ZERO);
        process.second(200, 100);
        assert_eq!(process.rule.unkept_cpu(), PER_EVENT * 1_500);
        process.measured.is_heap_short = true;
        assert_eq!(process.second(200, 100).1, 0);
        process.measured.is_heap_short = false;
        process.measured.interval_bytes = 0;
        assert_eq!(process.second(200, 100), (0, 0), "exact");
        process.measured.interval_bytes = 4 << 10;
        assert_eq!(process.second(200, 100).0, 2, "not below 1 KiB");
    }
}
