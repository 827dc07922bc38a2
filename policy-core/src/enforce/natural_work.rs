//! The share of the machine that the collectors take anyway.
//!
//! A concurrent collection that the agent asks for may last for seconds, and the program's own young collections go on
//! beside it (on generational ZGC several in a second). The kernel counts the CPU time of the collectors' threads,
//! whoever asked. So the collectors' time while nothing of the agent's is in flight tells what would have come anyway,
//! and the budget pays for the rest alone.
//!
//! Rules:
//! - The share is that of the latest [`MEMORY`] or so without a collection of the agent's: older ones fade by half for
//!   each [`MEMORY`] of such time.
//! - It is looked at while evidence is wanted alone: the first collection after a rest is charged in full.
//! - Less than [`ENOUGH`] of it says nothing; then the whole work is charged.
//! - A program may become calm at the very moment a collection is asked for. So at least a [`LEAST_PART`] of what was
//!   measured is charged, whatever the share was.
//!
//! The charge never exceeds the time by the clock.

use std::time::{Duration, Instant};

/// The time without a collection of the agent's that halves the weight of what was before it.
const MEMORY: Duration = Duration::from_secs(10);
/// The least such time that tells a share.
const ENOUGH: Duration = Duration::from_secs(1);
/// The part of the measured work that is charged in any case: one of so many.
const LEAST_PART: u32 = 4;

/// See the module. On the enforcer's thread.
#[derive(Debug, Default)]
pub(super) struct NaturalWork {
    /// When it was last looked at while nothing was in flight, and the collectors' time then.
    last: Option<(Instant, Duration)>,
    /// Seconds, and the collectors' time in them; both fade.
    wall: f64,
    work: f64,
}

impl NaturalWork {
    /// Nothing of the agent's is in flight. `collector_time` is the count so far; without one the stretch begins anew.
    pub(super) fn look(&mut self, now: Instant, collector_time: Option<Duration>) {
        let Some(time) = collector_time else {
            self.last = None;
            return;
        };
        if let Some((then, before)) = self.last {
            let wall = now.saturating_duration_since(then).as_secs_f64();
            let faded = (-wall / MEMORY.as_secs_f64()).exp2();
            self.wall = self.wall * faded + wall;
            let work = time.saturating_sub(before).as_secs_f64();
            self.work = self.work * faded + work.min(wall);
        }
        self.last = Some((now, time));
    }

    /// A collection of the agent's begins, or other threads are counted from now on.
    pub(super) fn interrupt(&mut self) {
        self.last = None;
    }

    /// The charge for a collection of the agent's that took `took`, while the collectors worked for `work`.
    pub(super) fn beyond(&self, took: Duration, work: Duration) -> Duration {
        let share = match self.wall >= ENOUGH.as_secs_f64() {
            true => (self.work / self.wall).min(1.0),
            false => 0.0,
        };
        let beyond = work.saturating_sub(took.mul_f64(share));
        beyond.max(work / LEAST_PART).min(took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// So many seconds without a collection of the agent's, in which the collectors work for this share.
    fn idle(
        natural: &mut NaturalWork,
        now: &mut Instant,
        count: &mut Duration,
        share: f64,
        s: u32,
    ) {
        natural.look(*now, Some(*count));
        for _ in 0..s {
            *now += SECOND;
            *count += SECOND.mul_f64(share);
            natural.look(*now, Some(*count));
        }
    }

    #[test]
    fn work_that_comes_anyway_is_not_charged() {
        let (mut natural, mut now, mut count) = (NaturalWork::default(), Instant::now(), SECOND);
        let (took, work) = (SECOND * 4, SECOND * 2);
        assert_eq!(natural.beyond(took, work), work, "nothing is known");
        idle(&mut natural, &mut now, &mut count, 0.3, 5);
        let beyond = natural.beyond(took, work).as_secs_f64();
        assert!((beyond - 0.8).abs() < 0.01, "{beyond}");
        assert_eq!(
            natural.beyond(SECOND, SECOND * 3),
            SECOND,
            "never beyond the clock"
        );
    }

    #[test]
    fn a_program_that_became_calm_still_pays_a_part() {
        let (mut natural, mut now, mut count) = (NaturalWork::default(), Instant::now(), SECOND);
        idle(&mut natural, &mut now, &mut count, 0.9, 60);
        assert_eq!(natural.beyond(SECOND * 4, SECOND * 2), SECOND / 2);
        idle(&mut natural, &mut now, &mut count, 0.0, 60);
        let beyond = natural.beyond(SECOND * 4, SECOND * 2).as_secs_f64();
        assert!(beyond > 1.9, "the share fades: {beyond}");
    }

    #[test]
    fn what_the_agents_own_collections_do_is_no_natural_work() {
        let (mut natural, mut now, mut count) = (NaturalWork::default(), Instant::now(), SECOND);
        idle(&mut natural, &mut now, &mut count, 0.0, 5);
        natural.interrupt();
        now += SECOND * 4;
        count += SECOND * 4;
        idle(&mut natural, &mut now, &mut count, 0.0, 5);
        assert_eq!(natural.beyond(SECOND * 4, SECOND), SECOND);
    }

    #[test]
    fn a_stretch_is_never_more_than_natural_work_throughout() {
        let (mut natural, now) = (NaturalWork::default(), Instant::now());
        natural.look(now, Some(SECOND));
        natural.look(now + SECOND * 2, Some(SECOND * 1000));
        natural.look(now + SECOND * 12, Some(SECOND * 1000));
        let beyond = natural.beyond(SECOND * 4, SECOND * 4).as_secs_f64();
        assert!(beyond > 3.0, "{beyond}");
    }

    proptest! {
        #[test]
        fn the_charge_lies_between_its_bounds(
            looks in proptest::collection::vec((0u64..5000, 0u64..9000, any::<bool>()), 0..40),
            took in 0u64..60_000,
            work in 0u64..60_000,
        ) {
            let (mut natural, mut now, mut count) = (NaturalWork::default(), Instant::now(), SECOND);
            for (wall, time, known) in looks {
                now += Duration::from_millis(wall);
                count += Duration::from_millis(time);
                natural.look(now, known.then_some(count));
            }
            let (took, work) = (Duration::from_millis(took), Duration::from_millis(work));
            let charged = natural.beyond(took, work);
            prop_assert!(charged <= took.min(work));
            prop_assert!(charged >= (work / LEAST_PART).min(took));
        }
    }
}
