//! Whether refusals stop an account, as a pure rule over its counts.
//!
//! # Rules
//! 1. An account is *ineffectively* refused if errors were to be thrown in it without a break for [`AFTER`],
//!    and in that time at least [`ENOUGH`] of them were put off for a lasting reason, and at least [`MANY`]
//!    times as many as were thrown: it goes on allocating, and hardly anything stops it.
//! 2. Lasting is what a later try meets again: a frame that bars, or no unit of work. A grace, a mask, a
//!    handler, or code that is not looked up yet passes by itself.
//! 3. It ends when no errors are to be thrown any more, or when in another [`AFTER`] rule 1 does not hold.
//!
//! An account that is over its limit and allocates nothing is not ineffectively refused: nothing is due.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::gate::{Counts, MAX_REASONS};
use super::throw_points::Reason;

/// How long refusals must have had hardly any effect.
pub const AFTER: Duration = Duration::from_secs(10);
/// How many must have been put off in that time.
pub const ENOUGH: u64 = 4;
/// And how many for each that was thrown.
pub const MANY: u64 = 16;
/// How long the log waits for the name of the frame that bars.
const NAMED_WITHIN: Duration = Duration::from_secs(3);

/// The reason for which refusals do not stop an account, and the frame that bars them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ineffective {
    /// The most frequent reason.
    pub reason: Reason,
    /// The method that barred one of them for that reason, as in a stack trace; `None` while it is not known.
    pub frame: Option<Arc<str>>,
    since: Instant,
    is_told: bool,
}

/// Follows one account. On the enforcer's thread.
#[derive(Debug, Default)]
pub struct Effect {
    window: Option<Window>,
    found: Option<Ineffective>,
}

/// The counts of an account at the beginning of a stretch of [`AFTER`].
#[derive(Debug)]
struct Window {
    since: Instant,
    refusals: u64,
    deferred: [u64; MAX_REASONS],
}

impl Effect {
    /// Notes a check. `is_refused`: errors are to be thrown in the account's threads; `counts`: all so far.
    pub fn look(&mut self, is_refused: bool, counts: &Counts, now: Instant) {
        if !is_refused {
            *self = Effect::default();
            return;
        }
        let begun = Window {
            since: now,
            refusals: counts.refusals,
            deferred: counts.deferred,
        };
        let Some(window) = &self.window else {
            self.window = Some(begun);
            return;
        };
        if now.saturating_duration_since(window.since) < AFTER {
            return;
        }
        let refusals = counts.refusals.saturating_sub(window.refusals);
        let deferred = |reason: Reason| {
            let index = reason as usize;
            counts.deferred[index].saturating_sub(window.deferred[index])
        };
        let lasting = || Reason::ALL.into_iter().filter(|reason| lasts(*reason));
        let sum: u64 = lasting().map(deferred).sum();
        let most = lasting().max_by_key(|reason| deferred(*reason));
        self.window = Some(begun);
        match most.filter(|_| sum >= ENOUGH && sum >= refusals.saturating_mul(MANY)) {
            None => self.found = None,
            Some(reason)
                if self
                    .found
                    .as_ref()
                    .is_some_and(|found| found.reason == reason) => {}
            Some(reason) => {
                let is_told = self.found.take().is_some_and(|before| before.is_told);
                self.found = Some(Ineffective {
                    reason,
                    frame: None,
                    since: now,
                    is_told,
                });
            }
        }
    }

    /// Returns the reason and the frame that bar the account's refusals, if they have hardly any effect.
    pub fn ineffective(&self) -> Option<&Ineffective> {
        self.found.as_ref()
    }

    /// Whether the name of the frame that bars is wanted.
    pub fn wants_frame(&self) -> bool {
        (self.found.as_ref()).is_some_and(|found| found.frame.is_none())
    }

    /// A frame barred a refusal of the account for this reason.
    pub fn barred(&mut self, reason: Reason, frame: Arc<str>) {
        if let Some(found) = &mut self.found
            && found.reason == reason
        {
            found.frame = Some(frame);
        }
    }

    /// Returns the finding to be logged now, once for each time that it begins: when the frame is known, or after a
    /// moment.
    pub fn tell(&mut self, now: Instant) -> Option<&Ineffective> {
        let found = self.found.as_mut()?;
        let is_late = now.saturating_duration_since(found.since) >= NAMED_WITHIN;
        if found.is_told || found.frame.is_none() && !is_late {
            return None;
        }
        found.is_told = true;
        Some(found)
    }
}

/// Whether a later try at the same place meets the reason again.
fn lasts(reason: Reason) -> bool {
    !matches!(
        reason,
        Reason::Grace | Reason::Masked | Reason::Handler | Reason::Unresolved | Reason::Shutdown
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An account that is refused, looked at each second.
    struct Course {
        effect: Effect,
        counts: Counts,
        now: Instant,
    }

    impl Course {
        fn new() -> Course {
            Course {
                effect: Effect::default(),
                counts: Counts::default(),
                now: Instant::now(),
            }
        }

        /// So many seconds, with so many refusals and deferrals in each.
        fn pass(&mut self, seconds: u32, refusals: u64, deferred: &[(Reason, u64)]) -> &mut Course {
            for _ in 0..seconds {
                self.now += Duration::from_secs(1);
                self.counts.refusals += refusals;
                for &(reason, count) in deferred {
                    self.counts.deferred[reason as usize] += count;
                }
                self.effect.look(true, &self.counts, self.now);
            }
            self
        }

        fn reason(&self) -> Option<Reason> {
            self.effect.ineffective().map(|found| found.reason)
        }
    }

    #[test]
    fn what_is_put_off_again_and_again_is_found() {
        let mut course = Course::new();
        let loops = [(Reason::NoUnit, 3), (Reason::Jdk, 2), (Reason::Grace, 99)];
        assert_eq!(course.pass(10, 0, &loops).reason(), None, "not yet");
        assert_eq!(course.pass(1, 0, &loops).reason(), Some(Reason::NoUnit));
        // Another reason prevails.
        course.pass(10, 0, &[(Reason::Logging, 5), (Reason::NoUnit, 1)]);
        assert_eq!(course.reason(), Some(Reason::Logging));
        // It has stopped allocating.
        assert_eq!(course.pass(10, 0, &[]).reason(), None);
    }

    #[test]
    fn refusals_that_are_thrown_have_an_effect() {
        let mut course = Course::new();
        course.pass(21, 1, &[(Reason::Container, 15)]);
        assert_eq!(course.reason(), None);
        course.pass(10, 1, &[(Reason::Container, 16)]);
        assert_eq!(course.reason(), Some(Reason::Container));
        course.effect.look(false, &course.counts, course.now);
        assert_eq!(course.reason(), None, "it is admitted again");
    }

    #[test]
    fn what_passes_by_itself_is_not_told() {
        for reason in [
            Reason::Grace,
            Reason::Masked,
            Reason::Handler,
            Reason::Unresolved,
        ] {
            let mut course = Course::new();
            assert_eq!(course.pass(40, 0, &[(reason, 100)]).reason(), None);
        }
    }

    #[test]
    fn it_is_told_once_with_its_frame_or_after_a_moment() {
        let mut course = Course::new();
        course.pass(11, 0, &[(Reason::NoUnit, 9)]);
        assert!(course.effect.wants_frame());
        assert_eq!(course.effect.tell(course.now), None);
        course.effect.barred(Reason::Jdk, "a.B.c".into());
        assert!(course.effect.wants_frame(), "another reason's");
        course.effect.barred(Reason::NoUnit, "a.Loop.run".into());
        let told = course
            .effect
            .tell(course.now)
            .cloned()
            .expect("it is known");
        assert_eq!(told.frame.as_deref(), Some("a.Loop.run"));
        assert_eq!(course.effect.tell(course.now + AFTER), None);
        course.pass(30, 0, &[(Reason::NoUnit, 9)]);
        assert_eq!(course.effect.tell(course.now), None, "it goes on");

        let mut course = Course::new();
        course.pass(11, 0, &[(Reason::NoUnit, 9)]);
        assert!(course.effect.tell(course.now + NAMED_WITHIN).is_some());
    }
}
