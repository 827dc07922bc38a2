//! Measures the CPU time that Heapwarden itself takes.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Buckets of sample durations: eight to each doubling, so that a quantile read from them is
/// at most 9 % off.
const BUCKETS_PER_DOUBLING: u32 = 8;
/// One report of a freed object in so many is timed. That is a quarter of the share of the samples, because
/// a report takes less time than its timing.
const REPORTS_TIMED_ONE_IN: u64 = 256;
/// In a sample that takes longer, the thread was preempted, or walked some thousand frames that were not in
/// the caches.
const LONG: Duration = Duration::from_millis(1);
/// Measurements of an empty interval. The smallest of them is subtracted from every other measurement.
const EMPTIES: u32 = 64;
/// Up to 2^40 ns, which is 18 minutes.
const BUCKETS: usize = 40 * BUCKETS_PER_DOUBLING as usize;

/// CPU time by part, and how long samples take.
///
/// For callbacks it is an estimate from a timed share of the samples and refunds. For threads it is the
/// kernel's count.
///
/// # How a sample is timed
/// By the wall clock, which takes some 20 ns to read. The thread's CPU time would be right even if the
/// thread is preempted during a sample, but it is a system call: in a program whose caches are full of
/// other data it takes microseconds, and afterwards the sample itself takes several times as long as one
/// that is not timed. So it is read only when needed:
///
/// * A measurement above [`LONG`] does not count. Nearly always the thread was preempted, and the
///   measurement would count many times, once for each sample that it stands for.
/// * The thread's next measurement uses both clocks, and the smaller result counts. This goes on while
///   measurements are long. So samples that really take long count from the second on.
#[derive(Debug)]
pub(crate) struct Costs {
    /// The measured time of an empty interval.
    empty: Duration,
    callback_ns: AtomicU64,
    refund_ns: AtomicU64,
    native_memory_ns: AtomicU64,
    durations: Box<[AtomicU64]>,
    threads: Mutex<Vec<(&'static str, f64)>>,
}

impl Default for Costs {
    fn default() -> Costs {
        let empties = (0..EMPTIES).filter_map(|_| Began::now().elapsed());
        Costs {
            empty: empties.min().unwrap_or_default(),
            callback_ns: AtomicU64::new(0),
            refund_ns: AtomicU64::new(0),
            native_memory_ns: AtomicU64::new(0),
            durations: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            threads: Mutex::default(),
        }
    }
}

impl Costs {
    /// CPU time of the calling thread since `began`, less the time of the measurement itself; `None` if
    /// that is not known.
    pub(crate) fn since(&self, began: Began) -> Option<Duration> {
        Some(began.elapsed()?.saturating_sub(self.empty))
    }

    /// One of `one_in` samples took this long. Two atomic adds.
    pub(crate) fn samples_took(&self, one: Duration, one_in: u64) {
        let ns = add(&self.callback_ns, one, one_in);
        self.durations[bucket(ns)].fetch_add(1, Ordering::Relaxed);
    }

    /// A new thread made its garbage, see [`policy_core::sampling::new_threads`]: part of what samples cost. An
    /// atomic add.
    pub(crate) fn phase_took(&self, one: Duration) {
        add(&self.callback_ns, one, 1);
    }

    /// It took so long to find out whose a block of native memory is, if the thread was not preempted meanwhile. An
    /// atomic add.
    pub(crate) fn block_took(&self, one: Duration) {
        if one <= LONG {
            add(&self.native_memory_ns, one, 1);
        }
    }

    /// One of `one_in` refunds took this long. An atomic add.
    fn refunds_took(&self, one: Duration, one_in: u64) {
        add(&self.refund_ns, one, one_in);
    }

    /// Does `work`, which handles the report of one freed object, and times one report in
    /// [`REPORTS_TIMED_ONE_IN`]. On the thread that reports; neither waits nor allocates.
    pub(crate) fn of_refund(&self, work: impl FnOnce()) {
        thread_local! {
            static TURN: Cell<u64> = Cell::new(first_turn());
        }
        let turn = TURN
            .try_with(|turn| turn.replace(turn.get().wrapping_add(1)))
            .unwrap_or(1);
        if !turn.is_multiple_of(REPORTS_TIMED_ONE_IN) {
            return work();
        }
        let began = Began::now();
        work();
        if let Some(took) = self.since(began) {
            self.refunds_took(took, REPORTS_TIMED_ONE_IN);
        }
    }

    /// The `quantile` of the durations of timed samples, in ns; 0 before the first.
    pub(crate) fn sample_ns(&self, quantile: f64) -> u64 {
        let counts: Vec<u64> = self
            .durations
            .iter()
            .map(|c| c.load(Ordering::Relaxed))
            .collect();
        let total: u64 = counts.iter().sum();
        let wanted = (total as f64 * quantile).ceil() as u64;
        let mut seen = 0;
        for (index, count) in counts.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return lower_bound_ns(index + 1);
            }
        }
        0
    }

    /// Records what the calling thread has used so far, under its part's name. Agent
    /// threads only.
    pub(crate) fn thread_is(&self, part: &'static str) {
        let seconds = thread_cpu_time().as_secs_f64();
        let mut threads = self.threads.lock().unwrap_or_else(|e| e.into_inner());
        match threads.iter_mut().find(|(name, _)| *name == part) {
            Some((_, used)) => *used = seconds,
            None => threads.push((part, seconds)),
        }
    }

    /// Adds the CPU time of the calling thread, which is about to end and was one of several of this part.
    pub(crate) fn thread_was(&self, part: &'static str) {
        let seconds = thread_cpu_time().as_secs_f64();
        let mut threads = self.threads.lock().unwrap_or_else(|e| e.into_inner());
        match threads.iter_mut().find(|(name, _)| *name == part) {
            Some((_, used)) => *used += seconds,
            None => threads.push((part, seconds)),
        }
    }

    /// CPU time of all samples and their refunds, and how many samples were timed for that estimate.
    pub(crate) fn samples(&self) -> (Duration, u64) {
        let timed = self.durations.iter().map(|c| c.load(Ordering::Relaxed));
        let took = [&self.callback_ns, &self.refund_ns].map(|ns| ns.load(Ordering::Relaxed));
        (
            Duration::from_nanos(took[0].saturating_add(took[1])),
            timed.sum(),
        )
    }

    /// CPU seconds by part.
    pub(crate) fn seconds(&self) -> Vec<(&'static str, f64)> {
        let seconds = |ns: &AtomicU64| ns.load(Ordering::Relaxed) as f64 / 1e9;
        let mut parts = vec![
            ("callbacks", seconds(&self.callback_ns)),
            ("refunds", seconds(&self.refund_ns)),
            ("native_memory", seconds(&self.native_memory_ns)),
        ];
        parts.extend(
            self.threads
                .lock()
                .unwrap_or_else(|e| e.into_inner())
                .iter(),
        );
        parts
    }
}

/// Adds `one_in` times `one`; returns the ns of `one`.
fn add(sum: &AtomicU64, one: Duration, one_in: u64) -> u64 {
    let ns = u64::try_from(one.as_nanos()).unwrap_or(u64::MAX);
    sum.fetch_add(ns.saturating_mul(one_in), Ordering::Relaxed);
    ns
}

/// The number at which a thread begins to count its turns, one in so many of which is timed. Each thread
/// begins at another number: if the first turn of each were timed, short-lived threads would count far too
/// much.
pub(crate) fn first_turn() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    begins_at(THREADS.fetch_add(1, Ordering::Relaxed))
}

/// As [`first_turn`], of the thread of this number. The factor is odd, so that as many threads in a row
/// as there are turns to one that is timed (a power of two) begin at each of them once, and far apart.
fn begins_at(thread: u64) -> u64 {
    thread.wrapping_mul(37)
}

thread_local! {
    /// Whether what this thread timed last was long.
    static LAST_WAS_LONG: Cell<bool> = const { Cell::new(false) };
}

/// When the calling thread began something; by both clocks if its last measurement was long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Began {
    cpu: Option<Duration>,
    wall: Instant,
}

impl Began {
    /// Now. The wall clock is read last here and first at the end, so that no system call lies between its
    /// two readings.
    pub(crate) fn now() -> Began {
        let last_was_long = LAST_WAS_LONG.try_with(Cell::get).unwrap_or(false);
        Began {
            cpu: last_was_long.then(thread_cpu_time),
            wall: Instant::now(),
        }
    }

    fn elapsed(self) -> Option<Duration> {
        let wall = self.wall.elapsed();
        let is_long = wall > LONG;
        let _ = LAST_WAS_LONG.try_with(|last| last.set(is_long));
        match self.cpu {
            Some(cpu) => Some(wall.min(thread_cpu_time().saturating_sub(cpu))),
            None if is_long => None,
            None => Some(wall),
        }
    }
}

/// CPU time that the calling thread has used. A system call, of some hundred ns.
pub(crate) fn thread_cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// CPU time that the process has used. A system call.
pub(crate) fn process_cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// The bucket of a duration: its doubling, and the three bits below its highest.
fn bucket(ns: u64) -> usize {
    let ns = ns.max(u64::from(BUCKETS_PER_DOUBLING));
    let doubling = ns.ilog2();
    let within = (ns >> (doubling - 3)) & 7;
    ((doubling * BUCKETS_PER_DOUBLING) as usize + within as usize).min(BUCKETS - 1)
}

/// The smallest duration of a bucket.
fn lower_bound_ns(index: usize) -> u64 {
    let (doubling, within) = (index as u32 / BUCKETS_PER_DOUBLING, index as u64 % 8);
    (8 + within) << doubling >> 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_bucket() {
        let costs = Costs::default();
        assert_eq!(costs.sample_ns(0.5), 0);
        for ns in 1..=1000u64 {
            costs.samples_took(Duration::from_nanos(ns * 10), 64);
        }
        for (quantile, exact) in [(0.5, 5000.0), (0.99, 9900.0)] {
            let read = costs.sample_ns(quantile) as f64;
            assert!(read >= exact && read <= exact * 1.13, "{quantile}: {read}");
        }
    }

    /// Uses the processor for so long at least.
    fn work(time: Duration) {
        let began = thread_cpu_time();
        while thread_cpu_time() - began < time {}
    }

    #[test]
    fn a_thread_that_is_off_the_processor_costs_nothing() {
        let costs = Costs::default();
        for _ in 0..3 {
            let began = Began::now();
            std::thread::sleep(Duration::from_millis(300));
            let slept = costs.since(began).unwrap_or_default();
            assert!(slept < Duration::from_millis(100), "{slept:?}");
        }
    }

    #[test]
    fn work_that_really_takes_long_counts_from_the_second_on() {
        let costs = Costs::default();
        LAST_WAS_LONG.set(false);
        let mut counted = Vec::new();
        for _ in 0..3 {
            let began = Began::now();
            work(Duration::from_millis(20));
            counted.push(costs.since(began));
        }
        assert_eq!(counted[0], None);
        let least = Some(Duration::from_millis(19));
        assert!(counted[1] >= least && counted[2] >= least, "{counted:?}");
    }

    #[test]
    fn after_a_short_one_no_system_call_is_made() {
        LAST_WAS_LONG.set(true);
        let precise = Began::now();
        assert!(precise.cpu.is_some());
        // If this thread is preempted just here, the next measurement uses both clocks again.
        for _ in 0..1_000 {
            let _ = Began::now().elapsed();
            if !LAST_WAS_LONG.get() {
                assert!(Began::now().cpu.is_none());
                return;
            }
        }
        panic!("a thousand measurements of nothing were long");
    }

    #[test]
    fn the_lesser_of_both_clocks_counts() {
        const HOUR: Duration = Duration::from_secs(3600);
        let in_the_future = Began {
            cpu: Some(Duration::ZERO),
            wall: Instant::now() + HOUR,
        };
        assert_eq!(in_the_future.elapsed(), Some(Duration::ZERO));
        let set_aside = Began {
            cpu: Some(thread_cpu_time()),
            wall: Instant::now()
                .checked_sub(HOUR)
                .unwrap_or_else(Instant::now),
        };
        assert!(set_aside.elapsed().is_some_and(|took| took < HOUR));
    }

    #[test]
    fn every_duration_lies_in_its_bucket() {
        for ns in (8..5000).chain([u64::from(u32::MAX), 1 << 39]) {
            let index = bucket(ns);
            assert!(
                lower_bound_ns(index) <= ns && ns < lower_bound_ns(index + 1),
                "{ns}"
            );
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_callbacks_are_scaled_up_from_the_timed_share() {
        let costs = Costs::default();
        costs.samples_took(Duration::from_micros(2), 64);
        assert_eq!(costs.seconds()[0], ("callbacks", 128e-6));
        assert_eq!(costs.samples(), (Duration::from_micros(128), 1));
    }

    #[test]
    fn one_report_in_so_many_stands_for_all() {
        let costs = Costs::default();
        // A report during which the thread is preempted does not count.
        let (mut reports, rounds) = (0, 40);
        for _ in 0..rounds * REPORTS_TIMED_ONE_IN {
            costs.of_refund(|| {
                reports += 1;
                work(Duration::from_micros(20));
            });
        }
        assert_eq!(reports, rounds * REPORTS_TIMED_ONE_IN);
        let (part, told) = costs.seconds()[1];
        assert_eq!(part, "refunds");
        assert!(told >= 10e-6 * reports as f64, "{told}");
    }

    #[test]
    fn refunds_are_scaled_up_and_part_of_what_samples_cost() {
        let costs = Costs::default();
        costs.samples_took(Duration::from_micros(2), 64);
        costs.refunds_took(Duration::from_micros(1), 256);
        assert_eq!(costs.seconds()[1], ("refunds", 256e-6));
        assert_eq!(costs.samples(), (Duration::from_micros(128 + 256), 1));
    }

    #[test]
    fn short_lived_threads_are_timed_no_more_often_than_others() {
        for (one_in, taken_by_each) in [(64, 1), (64, 3), (REPORTS_TIMED_ONE_IN, 5)] {
            let turns = |thread| (0..taken_by_each).map(move |turn| begins_at(thread) + turn);
            let timed = (0..one_in)
                .flat_map(turns)
                .filter(|turn| turn.is_multiple_of(one_in));
            assert_eq!(timed.count() as u64, taken_by_each);
        }
    }
}
