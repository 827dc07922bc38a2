//! What Heapwarden itself costs, measured by itself.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Buckets of sample durations: eight to each doubling, so that a quantile read from them is
/// at most 9 % off.
const BUCKETS_PER_DOUBLING: u32 = 8;
/// Measurements of nothing, the least of which is subtracted from every other.
const EMPTIES: u32 = 64;
/// Up to 2^40 ns, which is 18 minutes.
const BUCKETS: usize = 40 * BUCKETS_PER_DOUBLING as usize;

/// CPU time by part, and how long samples take.
///
/// The callbacks' is an estimate from a timed share of the samples, the threads' is the kernel's
/// count. A sample is timed by two clocks, and the lesser counts. The wall clock is read in some
/// 20 ns, but where more threads run than there are processors one that is set aside in the middle
/// of a sample would count for as many as the share stands for. The thread's CPU time knows better, but
/// is a system call, which takes microseconds in the midst of a program whose caches are full of
/// other things (measured: a median of 6 µs for samples of 1.5).
#[derive(Debug)]
pub(crate) struct Costs {
    /// What timing nothing comes to.
    empty: Duration,
    callback_ns: AtomicU64,
    durations: Box<[AtomicU64]>,
    threads: Mutex<Vec<(&'static str, f64)>>,
}

impl Default for Costs {
    fn default() -> Costs {
        let empties = (0..EMPTIES).map(|_| Began::now().elapsed());
        Costs {
            empty: empties.min().unwrap_or_default(),
            callback_ns: AtomicU64::new(0),
            durations: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            threads: Mutex::default(),
        }
    }
}

impl Costs {
    /// CPU time of the calling thread since it began, less what timing itself takes.
    pub(crate) fn since(&self, began: Began) -> Duration {
        began.elapsed().saturating_sub(self.empty)
    }

    /// One of `one_in` samples took this long. Two atomic adds.
    pub(crate) fn samples_took(&self, one: Duration, one_in: u64) {
        let ns = u64::try_from(one.as_nanos()).unwrap_or(u64::MAX);
        self.callback_ns
            .fetch_add(ns.saturating_mul(one_in), Ordering::Relaxed);
        self.durations[bucket(ns)].fetch_add(1, Ordering::Relaxed);
    }

    /// The duration in ns that a share `quantile` of the timed samples stayed within; 0
    /// before the first.
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

    /// CPU time of all samples, and how many were timed for that estimate.
    pub(crate) fn samples(&self) -> (Duration, u64) {
        let timed = self.durations.iter().map(|c| c.load(Ordering::Relaxed));
        let took = Duration::from_nanos(self.callback_ns.load(Ordering::Relaxed));
        (took, timed.sum())
    }

    /// CPU seconds by part.
    pub(crate) fn seconds(&self) -> Vec<(&'static str, f64)> {
        let mut parts = vec![(
            "callbacks",
            self.callback_ns.load(Ordering::Relaxed) as f64 / 1e9,
        )];
        parts.extend(
            self.threads
                .lock()
                .unwrap_or_else(|e| e.into_inner())
                .iter(),
        );
        parts
    }
}

/// When the calling thread began something, by both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Began {
    cpu: Duration,
    wall: Instant,
}

impl Began {
    /// Now. The wall clock is read last here and first at the end: nothing of the system call lies
    /// between its readings.
    pub(crate) fn now() -> Began {
        Began {
            cpu: thread_cpu_time(),
            wall: Instant::now(),
        }
    }

    fn elapsed(self) -> Duration {
        let wall = self.wall.elapsed();
        wall.min(thread_cpu_time().saturating_sub(self.cpu))
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

    #[test]
    fn a_thread_that_is_set_aside_costs_nothing_meanwhile() {
        let costs = Costs::default();
        let began = Began::now();
        std::thread::sleep(Duration::from_millis(300));
        let slept = costs.since(began);
        assert!(slept < Duration::from_millis(100), "{slept:?}");
        let mut sum = 0_u64;
        while thread_cpu_time() - began.cpu < Duration::from_millis(20) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(costs.since(began) >= Duration::from_millis(19));
    }

    #[test]
    fn the_lesser_of_both_clocks_counts() {
        const HOUR: Duration = Duration::from_secs(3600);
        let in_the_future = Began {
            cpu: Duration::ZERO,
            wall: Instant::now() + HOUR,
        };
        assert_eq!(in_the_future.elapsed(), Duration::ZERO);
        let set_aside = Began {
            cpu: thread_cpu_time(),
            wall: Instant::now()
                .checked_sub(HOUR)
                .unwrap_or_else(Instant::now),
        };
        assert!(set_aside.elapsed() < HOUR);
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
    }
}
