//! The signal that wakes the watching thread.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A wake-up call from the event source or from the handle.
#[derive(Debug, Default)]
pub(super) struct Signal {
    state: Mutex<State>,
    wake: Condvar,
}

/// The meaning of an event for the file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Touch {
    /// A program writes, and will close the file when it is done.
    Begun,
    /// The content is complete now: the writer has closed the file, or another file has replaced it.
    Done,
    /// Neither.
    Aside,
}

/// The signs in events of programs that write the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Writing {
    /// Since when one has been writing without closing the file.
    pub(super) since: Option<Instant>,
    /// How often there was a [`Touch::Begun`].
    pub(super) begun: u64,
    /// How often there was a [`Touch::Done`].
    pub(super) done: u64,
}

#[derive(Debug, Default)]
struct State {
    stop: bool,
    changed: bool,
    writing: Writing,
    /// The paths whose events matter; the directories around them may be busy.
    relevant: HashSet<PathBuf>,
}

impl Signal {
    fn state(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the thread.
    pub(super) fn stop(&self) {
        self.state().stop = true;
        self.wake.notify_all();
    }

    /// Says that the file may have changed, if one of `paths` matters to it.
    pub(super) fn touched<P: AsRef<Path>>(&self, paths: &[P], how: Touch) {
        let mut state = self.state();
        if paths
            .iter()
            .any(|path| state.relevant.contains(path.as_ref()))
        {
            state.changed = true;
            match how {
                Touch::Begun => {
                    state.writing.since.get_or_insert_with(Instant::now);
                    state.writing.begun += 1;
                }
                Touch::Done => {
                    state.writing.since = None;
                    state.writing.done += 1;
                }
                Touch::Aside => {}
            }
            self.wake.notify_all();
        }
    }

    /// Says that events were lost, so the file may have changed.
    pub(super) fn lost_track(&self) {
        let mut state = self.state();
        state.changed = true;
        state.writing.since = None;
        self.wake.notify_all();
    }

    /// Returns the signs of programs that write the file.
    pub(super) fn writing(&self) -> Writing {
        self.state().writing
    }

    /// Replaces the paths that matter.
    pub(super) fn set_relevant(&self, relevant: HashSet<PathBuf>) {
        self.state().relevant = relevant;
    }

    /// Waits for a change, at least until `earliest` and at most until `latest`. Breaks at once when the
    /// thread is to end.
    pub(super) fn wait(&self, earliest: Instant, latest: Instant) -> ControlFlow<()> {
        let mut state = self.state();
        loop {
            if state.stop {
                return ControlFlow::Break(());
            }
            let until = if state.changed {
                earliest.min(latest)
            } else {
                latest
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.changed = false;
                return ControlFlow::Continue(());
            }
            state = self
                .wake
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}
