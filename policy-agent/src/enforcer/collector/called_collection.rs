//! Collections that the VM offers as blocking calls alone: a thread of the agent's waits in them, so that the enforcer
//! goes on looking at the heap. On ZGC such a call lasts as long as a cycle, in which a leak at full speed fills the heap.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::ports::{Ended, Means};
use crate::wakeup::Wakeup;

/// An order comes with a signal; this is in case one is missed.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// The enforcer's order to the thread that waits, and its answer. One order at a time.
#[derive(Debug, Default)]
pub(crate) struct CalledCollection {
    inner: Mutex<Inner>,
    wakeup: Wakeup,
}

#[derive(Debug, Default)]
struct Inner {
    state: State,
    /// There is no thread to wait any more, or there never was.
    has_no_thread: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    None,
    Asked(Means),
    Running,
    Ended(Ended),
}

impl CalledCollection {
    /// Orders a collection. False if there is no thread that could wait for it. On the enforcer's thread.
    pub(crate) fn begin(&self, means: Means) -> bool {
        let mut inner = self.inner();
        if inner.has_no_thread {
            return false;
        }
        inner.state = State::Asked(means);
        self.wakeup.wake();
        true
    }

    /// How the collection that was ordered has ended; `None` while it runs. Told once. On the enforcer's thread.
    pub(crate) fn take_ended(&self) -> Option<Ended> {
        let mut inner = self.inner();
        let State::Ended(ended) = inner.state else {
            return None;
        };
        inner.state = State::None;
        Some(ended)
    }

    /// Notes the end of a collection: `has_run` says whether the VM ran it.
    pub(crate) fn ended(&self, has_run: bool) {
        let at = Instant::now();
        self.inner().state = State::Ended(Ended { has_run, at });
    }

    /// Wakes the thread that waits for orders, to end it.
    pub(crate) fn stop(&self) {
        self.wakeup.wake();
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
                self.ended(collect(means));
            }
            rest();
            self.wakeup.wait(LONGEST_SLEEP);
        }
    }

    fn take_order(&self) -> Option<Means> {
        let mut inner = self.inner();
        let State::Asked(means) = inner.state else {
            return None;
        };
        inner.state = State::Running;
        Some(means)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Lives as long as the thread that waits. Also where that could not be started or attached, or has failed: from then on
/// there is none, and an order that it has taken is refused.
pub(crate) struct Serving(pub(crate) &'static CalledCollection);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.inner().has_no_thread = true;
        let state = self.0.inner().state;
        if matches!(state, State::Asked(_) | State::Running) {
            self.0.ended(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use super::*;

    /// Ends the thread that serves, also where an assertion fails: a scope waits for its threads.
    struct End<'a>(&'a AtomicBool, &'a CalledCollection);

    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
            self.1.stop();
        }
    }

    #[test]
    fn an_order_is_carried_out_once_beside_the_enforcer_and_its_end_is_told_once() {
        let called = CalledCollection::default();
        let stops = AtomicBool::new(false);
        let (go_on, waits) = mpsc::channel::<bool>();
        let (rests, rested) = mpsc::channel();
        std::thread::scope(|scope| {
            let (called, stops) = (&called, &stops);
            let _end = End(stops, called);
            // Dropped first: the thread may wait for an answer.
            let go_on = go_on;
            scope.spawn(move || {
                let collect = |means| means == Means::Forced && waits.recv() == Ok(true);
                let rest = || {
                    let _ = rests.send(());
                };
                called.serve(|| stops.load(Ordering::Relaxed), collect, rest);
            });
            rested.recv().expect("it has begun");
            for has_run in [true, false] {
                assert_eq!(called.take_ended(), None);
                assert!(called.begin(Means::Forced));
                assert_eq!(called.take_ended(), None, "it waits");
                let before = Instant::now();
                go_on.send(has_run).expect("it runs");
                // It may rest once more than it has orders: it may wake for nothing.
                let ended = rested.iter().take(4).find_map(|()| called.take_ended());
                let ended = ended.expect("it has ended");
                assert!(ended.has_run == has_run && ended.at >= before, "{ended:?}");
                assert_eq!(called.take_ended(), None);
            }
        });
    }

    #[test]
    fn without_its_thread_nothing_is_ordered_and_what_was_ordered_is_refused() {
        for is_ordered in [false, true] {
            let called: &'static CalledCollection = Box::leak(Box::default());
            let serving = Serving(called);
            if is_ordered {
                assert!(called.begin(Means::Full));
            }
            drop(serving);
            let ended = called.take_ended().map(|ended| ended.has_run);
            assert_eq!(ended, is_ordered.then_some(false));
            assert!(!called.begin(Means::Full));
        }
    }
}
