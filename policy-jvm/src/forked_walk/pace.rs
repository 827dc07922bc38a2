//! How much processor time the children take where a cgroup limits that of the JVM.
//!
//! The lowest priority does not help there: whatever a child takes is the JVM's, and when the quota of a period is
//! used up the kernel stops the whole JVM until the next one. So the children take a quarter of the quota at the most
//! and rest in between.
//!
//! # Rules
//! 1. Who has used more than the share rests until the share has caught up. Who rests longer than it must, or waits for
//!    a processor, gains nothing: no burst follows.
//! 2. The walker runs the VM's code, so it is not asked to rest: the watcher stops it and lets it go on, by both
//!    processes' clocks. The watcher itself rests between the steps of its search.
//! 3. Every rest is bounded, and nothing is waited for but the clock. A watcher that is ended while the walker is
//!    stopped takes it along, as ever: the walker is first stopped when it walks, after it has seen to that.
//! 4. The quota is read before the fork. What an operator changes later holds for the next walk.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::cgroup::Quota;
use super::system;

/// The children's part of the quota.
const PART: f64 = 0.25;
/// How long the walker runs between two looks, at the most; at the least, whatever the quota.
const LONGEST_RUN: Duration = Duration::from_millis(2);
const SHORTEST_RUN: Duration = Duration::from_micros(200);
/// By how much a walk may take longer for want of processor time than it may without a quota.
const MAX_STRETCH: f64 = 6.0;
/// How many steps of a search there are between two looks at the clock.
const STEPS: u32 = 1024;
/// The longest rest in a search. A share of a processor that needs longer ones is out of all reason.
const LONGEST_REST: Duration = Duration::from_secs(10);

/// The processor time that the children may take, and in which pieces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Share {
    /// So much of one processor, less than all of it.
    pub(super) of_processor: f64,
    /// How long the walker runs between two looks.
    pub(super) run: Duration,
}

impl Share {
    /// The children's share of a quota; `None` if they cannot take more: they use one processor at a time.
    pub(super) fn of(quota: Quota) -> Option<Share> {
        let of_processor = quota.processors() * PART;
        let run = quota.time.mul_f64(PART / 2.0);
        (of_processor < 1.0).then_some(Share {
            of_processor,
            run: run.clamp(SHORTEST_RUN, LONGEST_RUN),
        })
    }

    /// How long a walk may take that may take `max_time` with a whole processor.
    pub(super) fn stretched(&self, max_time: Duration) -> Duration {
        max_time.mul_f64((1.0 / self.of_processor).clamp(1.0, MAX_STRETCH))
    }
}

/// Keeps to a share. Both clocks only go forward.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    of_processor: f64,
    /// Processor time and time when the account was last even.
    used: Duration,
    at: Duration,
}

impl Pace {
    /// Begins when `used` is the processor time, and `now` the time.
    pub(super) fn new(share: Share, used: Duration, now: Duration) -> Pace {
        Pace {
            of_processor: share.of_processor,
            used,
            at: now,
        }
    }

    /// How long to rest now, after so much processor time.
    pub(super) fn rest(&mut self, used: Duration, now: Duration) -> Duration {
        let since = used.saturating_sub(self.used).as_secs_f64();
        let earned = now.saturating_sub(self.at).as_secs_f64() * self.of_processor;
        // A nanosecond of the sum is no debt.
        if since <= earned + 1e-9 {
            (self.used, self.at) = (used, now);
            return Duration::ZERO;
        }
        let rest = Duration::try_from_secs_f64((since - earned) / self.of_processor);
        rest.unwrap_or(Duration::MAX)
    }
}

/// Rests between the steps of a search, by the clock of the thread that searches. No lock, no allocation.
pub(super) struct Rests {
    began: Instant,
    pace: Option<Cell<Pace>>,
    steps: Cell<u32>,
}

impl Rests {
    /// Without a share it never rests.
    pub(super) fn new(share: Option<Share>) -> Rests {
        let pace = |share| Cell::new(Pace::new(share, system::thread_time(), Duration::ZERO));
        Rests {
            began: Instant::now(),
            pace: share.map(pace),
            steps: Cell::new(0),
        }
    }

    /// Takes a step of some ten nanoseconds to some microseconds, after a rest if one is due.
    #[inline]
    pub(super) fn step(&self) {
        if let Some(pace) = &self.pace {
            let steps = self.steps.get().wrapping_add(1);
            self.steps.set(steps);
            if steps.is_multiple_of(STEPS) {
                self.look(pace);
            }
        }
    }

    #[cold]
    fn look(&self, pace: &Cell<Pace>) {
        let mut now = pace.get();
        let rest = now.rest(system::thread_time(), self.began.elapsed());
        pace.set(now);
        if !rest.is_zero() {
            system::sleep(rest.min(LONGEST_REST));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(time_us: u64, period_us: u64) -> Quota {
        Quota {
            time: Duration::from_micros(time_us),
            period: Duration::from_micros(period_us),
        }
    }

    /// Random numbers (xorshift), the same in each run.
    struct Chance(u64);

    impl Chance {
        fn up_to(&mut self, most: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % (most + 1)
        }
    }

    #[test]
    fn the_share_is_a_quarter_of_the_quota_and_none_where_it_is_a_whole_processor() {
        let half = Share::of(quota(50_000, 100_000)).unwrap();
        assert_eq!((half.of_processor, half.run), (0.125, LONGEST_RUN));
        // Half of the children's part of a period, as far as a timer can do that.
        let tenth = Share::of(quota(10_000, 100_000)).unwrap();
        assert_eq!(tenth.run, Duration::from_micros(1250));
        assert_eq!(Share::of(quota(1000, 1_000_000)).unwrap().run, SHORTEST_RUN);
        assert!(Share::of(quota(399_000, 100_000)).is_some());
        assert_eq!(Share::of(quota(400_000, 100_000)), None);
        // The limit of time knows it, to an extent.
        let minute = Duration::from_secs(60);
        let three = Share::of(quota(300_000, 100_000)).unwrap();
        assert_eq!(three.stretched(minute), Duration::from_secs(80));
        assert_eq!(half.stretched(minute), 6 * minute);
        assert_eq!(tenth.stretched(minute), 6 * minute);
    }

    #[test]
    fn a_rest_is_as_long_as_the_share_needs_to_catch_up() {
        let ms = Duration::from_millis;
        let share = Share::of(quota(50_000, 100_000)).unwrap();
        let mut pace = Pace::new(share, ms(5), ms(100));
        // Two milliseconds of time, all of them used: an eighth is allowed.
        assert_eq!(pace.rest(ms(7), ms(102)), ms(14));
        // Woken up too early, it rests for the remainder.
        assert_eq!(pace.rest(ms(7), ms(106)), ms(10));
        assert_eq!(pace.rest(ms(7), ms(116)), ms(0));
        // Processor time that a long sleep has left unused is no credit.
        assert_eq!(pace.rest(ms(7), ms(10_116)), ms(0));
        assert_eq!(pace.rest(ms(9), ms(10_118)), ms(14));
        // Clocks that go backwards are no debt.
        assert_eq!(pace.rest(ms(0), ms(0)), ms(0));
    }

    /// Of any stretch of time no more is used than the share and two runs, whatever the machine does: runs that are
    /// interrupted, clocks that wake late. And it goes on: a rest pays the debt, and who has used nothing never rests.
    #[test]
    fn no_stretch_of_time_has_more_than_the_share_and_two_runs() {
        let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
        for round in 0..200 {
            let period_us = 1000 + chance.up_to(999_000);
            let Some(share) = Share::of(quota(1000 + chance.up_to(4 * period_us), period_us))
            else {
                continue;
            };
            let (mut used, mut now) = (Duration::ZERO, Duration::ZERO);
            let mut pace = Pace::new(share, used, now);
            let most_run_us = 1 + chance.up_to(20_000);
            // After each rest.
            let mut points = vec![(used, now)];
            for _ in 0..200 {
                let run = Duration::from_micros(chance.up_to(most_run_us));
                let waited = match chance.up_to(3) {
                    0 => Duration::from_micros(chance.up_to(200_000)),
                    _ => Duration::ZERO,
                };
                used += run;
                now += run + waited;
                let rest = pace.rest(used, now);
                now += rest;
                assert_eq!(pace.rest(used, now), Duration::ZERO, "it is paid");
                assert_eq!(pace.rest(used, now), Duration::ZERO, "nothing was used");
                if chance.up_to(4) == 0 {
                    now += Duration::from_micros(chance.up_to(300_000));
                }
                points.push((used, now));
            }
            let two_runs = 2.0 * most_run_us as f64 * 1e-6;
            for (first, (used, at)) in points.iter().enumerate() {
                for (later_used, later_at) in &points[first + 1..] {
                    let took = (*later_used - *used).as_secs_f64();
                    let allowed = (*later_at - *at).as_secs_f64() * share.of_processor;
                    assert!(
                        took <= allowed + two_runs + 1e-6,
                        "round {round}: {took} of {allowed} s, {share:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_search_rests_and_one_without_a_quota_does_not() {
        let worked = |share: Option<Share>| {
            let (began, before) = (Instant::now(), system::thread_time());
            let rests = Rests::new(share);
            let mut sum = 0u64;
            while system::thread_time() - before < Duration::from_millis(20) {
                for step in 0..STEPS {
                    sum = std::hint::black_box(sum.wrapping_add(step.into()));
                    rests.step();
                }
            }
            let used = system::thread_time() - before;
            used.as_secs_f64() / began.elapsed().as_secs_f64()
        };
        let share = Share::of(quota(50_000, 100_000)).unwrap();
        // A machine that is busy makes it less, and nothing makes it more: but the last steps, which no rest follows.
        let part = worked(Some(share));
        assert!(part < share.of_processor * 1.25, "{part} of a processor");
        assert!(Rests::new(None).pace.is_none());
    }
}
