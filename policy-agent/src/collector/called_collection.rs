//! Collections that the VM offers as blocking calls alone: a thread of the agent's waits in them, so that the enforcer
//! goes on looking at the heap. On ZGC such a call lasts as long as a cycle, in which a leak at full speed fills the heap.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use crate::ports::Means;
use crate::wakeup::Wakeup;

/// An order comes with a signal; this is in case one is missed.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// The enforcer's order to the thread that waits, and its answer. One order at a time.
#[derive(Debug, Default)]
pub(crate) struct CalledCollection {
    state: Mutex<State>,
    wakeup: Wakeup,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    None,
    Asked(Means),
    Running,
    /// Whether the VM ran it.
    Ended(bool),
    /// There is no thread to wait.
    Missing,
}

impl CalledCollection {
    /// Orders a collection. On the enforcer's thread.
    pub(crate) fn begin(&self, means: Means) {
        let mut state = self.state();
        if *state != State::Missing {
            *state = State::Asked(means);
            self.wakeup.wake();
        }
    }

    /// Whether the VM has run the collection that was ordered; `None` while it runs. Told once. On the enforcer's thread.
    pub(crate) fn take_ended(&self) -> Option<bool> {
        let mut state = self.state();
        match *state {
            State::Ended(has_run) => {
                *state = State::None;
                Some(has_run)
            }
            State::Missing => Some(false),
            _ => None,
        }
    }

    /// The thread that was to wait cannot be started: every order is refused.
    pub(crate) fn is_missing(&self) {
        *self.state() = State::Missing;
    }

    /// Carries out orders by `collect` until `is_stopping`, and calls `rest` after each and before each sleep. On a
    /// thread of its own.
    pub(crate) fn serve(
        &self,
        is_stopping: impl Fn() -> bool,
        collect: impl Fn(Means) -> bool,
        rest: impl Fn(),
    ) {
        self.wakeup.listen();
        while !is_stopping() {
            if let Some(means) = self.take_order() {
                let has_run = collect(means);
                *self.state() = State::Ended(has_run);
            }
            rest();
            self.wakeup.wait(LONGEST_SLEEP);
        }
    }

    /// Wakes the thread that waits for orders, to end it.
    pub(crate) fn stop(&self) {
        self.wakeup.wake();
    }

    fn take_order(&self) -> Option<Means> {
        let mut state = self.state();
        let State::Asked(means) = *state else {
            return None;
        };
        *state = State::Running;
        Some(means)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn an_order_is_carried_out_once_beside_the_enforcer_and_its_end_is_told_once() {
        let called = CalledCollection::default();
        let stops = AtomicBool::new(false);
        let (go_on, waits) = mpsc::channel::<bool>();
        let (rests, rested) = mpsc::channel();
        std::thread::scope(|scope| {
            let (called, stops) = (&called, &stops);
            scope.spawn(move || {
                let collect = |means| means == Means::Forced && waits.recv().expect("an answer");
                let rest = || rests.send(()).expect("somebody listens");
                called.serve(|| stops.load(Ordering::Relaxed), collect, rest);
            });
            rested.recv().expect("it has begun");
            for has_run in [true, false] {
                assert_eq!(called.take_ended(), None);
                called.begin(Means::Forced);
                assert_eq!(called.take_ended(), None, "it waits");
                go_on.send(has_run).expect("it runs");
                rested.recv().expect("it has ended");
                assert_eq!(called.take_ended(), Some(has_run));
                assert_eq!(called.take_ended(), None);
            }
            stops.store(true, Ordering::Relaxed);
            called.stop();
        });
    }

    #[test]
    fn without_a_thread_every_order_is_refused() {
        let called = CalledCollection::default();
        called.is_missing();
        for _ in 0..2 {
            called.begin(Means::Full);
            assert_eq!(called.take_ended(), Some(false));
        }
    }
}
