//! Whose turn it is to be walked for without a command, within a budget a day.
//!
//! A suspect is walked for until there is an answer, [`MAX_TRIES`] times at most: what forbids a fork now, a busy
//! machine or little memory, passes. Each try costs the budget.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The budget counts from here to here.
const DAY: Duration = Duration::from_secs(86_400);
/// Tries for one suspect at the most.
const MAX_TRIES: u32 = 4;
/// From the first try to the second. It doubles with each further one.
const PAUSE: Duration = Duration::from_secs(20);

/// The walks that were made without a command.
#[derive(Default)]
pub(super) struct Tries {
    state: Mutex<State>,
}

/// Who was walked for so far.
#[derive(Default)]
pub(super) struct State {
    /// When the present day began, and how many walks it had.
    day: Option<(Instant, u32)>,
    /// The suspects that were walked for, by account and class.
    tried: HashMap<(Arc<str>, Arc<str>), Tried>,
}

/// The outcome of the walks for a suspect.
struct Tried {
    times: u32,
    latest: Instant,
    is_answered: bool,
    /// Why the latest one failed; told once.
    why: String,
}

impl Tried {
    fn is_due(&self, now: Instant) -> bool {
        let pause = PAUSE * (1 << self.times.saturating_sub(1).min(MAX_TRIES));
        !self.is_answered && self.times < MAX_TRIES && now.duration_since(self.latest) >= pause
    }
}

impl Tries {
    /// Locked for a moment.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl State {
    /// Takes one walk of the budget.
    fn take(&mut self, per_day: u32, now: Instant) -> bool {
        let day = self
            .day
            .filter(|(began, _)| now.duration_since(*began) < DAY);
        let (began, used) = day.unwrap_or((now, 0));
        let is_left = used < per_day;
        self.day = Some((began, used + u32::from(is_left)));
        is_left
    }

    /// The suspect that is walked for now. Forgets those that are suspected no longer: one that is suspected anew is
    /// walked for anew.
    pub(super) fn next(
        &mut self,
        suspects: Vec<(Arc<str>, Arc<str>)>,
        per_day: u32,
        now: Instant,
    ) -> Option<(Arc<str>, Arc<str>)> {
        self.tried.retain(|one, _| suspects.contains(one));
        let is_due = |one: &(Arc<str>, Arc<str>)| match self.tried.get(one) {
            Some(tried) => tried.is_due(now),
            None => true,
        };
        let next = suspects.into_iter().find(is_due)?;
        if !self.take(per_day, now) {
            return None;
        }
        let tried = self.tried.entry(next.clone()).or_insert(Tried {
            times: 0,
            latest: now,
            is_answered: false,
            why: String::new(),
        });
        tried.times += 1;
        tried.latest = now;
        Some(next)
    }

    /// A walk for it has ended. Returns whether the log must tell why it failed.
    pub(super) fn ended(&mut self, one: &(Arc<str>, Arc<str>), failed: Option<&str>) -> bool {
        let Some(tried) = self.tried.get_mut(one) else {
            return failed.is_some();
        };
        tried.is_answered = failed.is_none();
        let is_new = failed.is_some_and(|why| reason(why) != reason(&tried.why));
        tried.why = failed.unwrap_or_default().to_owned();
        is_new
    }
}

/// A failure without its figures, which differ each time.
fn reason(why: &str) -> String {
    why.chars().filter(|char| !char.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_so_many_walks_and_the_next_one_again() {
        let mut state = State::default();
        let morning = Instant::now();
        assert!(state.take(2, morning) && state.take(2, morning + DAY / 2));
        assert!(!state.take(2, morning + DAY / 2));
        assert!(state.take(2, morning + DAY) && !state.take(1, morning + DAY));
    }

    #[test]
    fn a_suspect_is_walked_for_until_there_is_an_answer() {
        let mut state = State::default();
        let one = |name: &str| (Arc::from(name), Arc::from("Entry"));
        let suspects = || vec![one("a"), one("b")];
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(state.next(suspects(), 50, began), Some(one("a")));
        let busy = "a fork would stop the JVM for about 262 ms";
        assert!(state.ended(&one("a"), Some(busy)), "told once");
        assert_eq!(state.next(suspects(), 50, at(1)), Some(one("b")));
        assert!(!state.ended(&one("b"), None));
        assert_eq!(state.next(suspects(), 50, at(19)), None, "it rests");
        for seconds in [20, 60, 140] {
            assert_eq!(state.next(suspects(), 50, at(seconds - 1)), None);
            assert_eq!(state.next(suspects(), 50, at(seconds)), Some(one("a")));
            assert!(!state.ended(&one("a"), Some(&busy.replace("262", "311"))));
        }
        assert_eq!(state.next(suspects(), 50, at(9_999)), None, "four times");
        // Suspected no longer, and again.
        assert_eq!(state.next(Vec::new(), 50, at(10_000)), None);
        assert_eq!(state.next(suspects(), 50, at(10_001)), Some(one("a")));
        let mut poor = State::default();
        assert_eq!(poor.next(suspects(), 0, began), None);
        assert!(poor.tried.is_empty());
    }
}
