//! Where others ask the snapshot thread for something, and where readers find the latest document.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::report::{Requested, Wanted};

/// How long a document is kept for readers.
const KEPT: Duration = Duration::from_secs(10);
/// The shortest time between two documents for readers.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
/// The pause after a document, as a multiple of the time that it took.
const PAUSE_PER_DOCUMENT: u32 = 9;

/// The desk. One lock, held for a few instructions.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The thread serves.
    is_open: bool,
    /// A reader waits for this.
    asked: Option<Wanted>,
    made: Option<Made>,
    /// The settings may have changed.
    is_new: bool,
    exit: Exit,
}

#[derive(Debug)]
struct Made {
    wanted: Wanted,
    begun: Instant,
    ended: Instant,
    answer: Requested,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Exit {
    #[default]
    No,
    Asked,
    Done,
}

/// The next task of the thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Work {
    /// Make or read this for readers.
    Make(Wanted),
    /// The time that was waited for has come.
    Due,
    /// Look at the settings.
    Look,
    /// The JVM ends.
    Exit,
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Returns the answer for a reader who first asked at `asked`; it was begun no earlier. Any thread; does not wait.
    pub(crate) fn requested(&self, wanted: &Wanted, asked: Instant) -> Requested {
        let mut state = self.state();
        match &state.made {
            // An answer that was begun since then includes what the reader did just before it asked.
            Some(made) if made.begun >= asked && made.wanted == *wanted => {
                return made.answer.clone();
            }
            _ if !state.is_open => {
                return Requested::Failed(
                    "the thread that makes snapshots is not there".to_owned(),
                );
            }
            _ => {}
        }
        // Another reader's wish comes first; this one asks again soon.
        if state.asked.is_none() {
            state.asked = Some(wanted.clone());
            self.changed.notify_all();
        }
        Requested::Pending
    }

    /// The settings may have changed. Any thread.
    pub(crate) fn look(&self) {
        self.state().is_new = true;
        self.changed.notify_all();
    }

    /// The JVM ends: asks for the last snapshot and waits for it, at most so long. In `VMDeath`.
    pub(crate) fn exit(&self, longest: Duration) {
        let deadline = Instant::now() + longest;
        let mut state = self.state();
        if !state.is_open {
            return;
        }
        state.exit = Exit::Asked;
        self.changed.notify_all();
        while state.is_open && state.exit != Exit::Done {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            (state, _) =
                (self.changed.wait_timeout(state, left)).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// Native memory held, in bytes.
    pub(crate) fn committed_bytes(&self) -> u64 {
        match &self.state().made {
            Some(Made {
                answer: Requested::Made(bytes),
                ..
            }) => bytes.len() as u64,
            _ => 0,
        }
    }

    // ---- the thread ------------------------------------------------------------------

    /// The thread begins to serve; it ends when the value is dropped.
    pub(super) fn open(&self) -> Open<'_> {
        self.state().is_open = true;
        Open(self)
    }

    /// Waits for work; until `due` at most.
    pub(super) fn wait(&self, due: Option<Instant>) -> Work {
        let mut state = self.state();
        loop {
            let now = Instant::now();
            if state.exit == Exit::Asked {
                return Work::Exit;
            }
            if std::mem::take(&mut state.is_new) {
                return Work::Look;
            }
            if due.is_some_and(|due| due <= now) {
                return Work::Due;
            }
            let mut wake_at = due;
            let mut earlier = |at: Instant| wake_at = Some(wake_at.map_or(at, |wake| wake.min(at)));
            if let Some(wanted) = &state.asked {
                let allowed = state.made.as_ref().map_or(now, Made::next_allowed);
                if allowed <= now {
                    return Work::Make(wanted.clone());
                }
                earlier(allowed);
            }
            if let Some(made) = &state.made {
                let end = made.ended.max(made.next_allowed()) + KEPT;
                if end <= now {
                    state.made = None;
                } else {
                    earlier(end);
                }
            }
            state = match wake_at.map(|at| at.saturating_duration_since(now)) {
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(|e| e.into_inner()).0
                }
                None => (self.changed.wait(state)).unwrap_or_else(|e| e.into_inner()),
            };
        }
    }

    /// Hands over the answer that readers want, or the reason why they cannot have it.
    pub(super) fn made(&self, wanted: Wanted, begun: Instant, answer: Requested) {
        let mut state = self.state();
        state.asked = None;
        state.made = Some(Made {
            wanted,
            begun,
            ended: Instant::now(),
            answer,
        });
    }

    /// The last snapshot is written, or lost.
    pub(super) fn exited(&self) {
        self.state().exit = Exit::Done;
        self.changed.notify_all();
    }
}

impl Made {
    /// When the next may begin.
    fn next_allowed(&self) -> Instant {
        let took = self.ended.saturating_duration_since(self.begun);
        self.ended + (took * PAUSE_PER_DOCUMENT).clamp(SHORTEST_PAUSE, Duration::from_secs(60))
    }
}

/// While this lives, the desk is served.
pub(super) struct Open<'a>(&'a Desk);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.state().is_open = false;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str) -> Requested {
        Requested::Made(text.as_bytes().into())
    }

    #[test]
    fn a_reader_gets_the_document_that_it_waited_for() {
        let desk = Desk::default();
        let asked = Instant::now();
        assert!(
            matches!(
                desk.requested(&Wanted::Document, asked),
                Requested::Failed(_)
            ),
            "nobody serves"
        );
        let open = desk.open();
        assert_eq!(desk.requested(&Wanted::Document, asked), Requested::Pending);
        assert_eq!(desk.wait(None), Work::Make(Wanted::Document));
        assert_eq!(desk.requested(&Wanted::Document, asked), Requested::Pending);
        desk.made(Wanted::Document, Instant::now(), made("a"));
        assert_eq!(desk.requested(&Wanted::Document, asked), made("a"));
        assert_eq!(desk.committed_bytes(), 1);
        let later = Instant::now();
        assert_eq!(
            desk.requested(&Wanted::Document, later),
            Requested::Pending,
            "it is too old"
        );
        drop(open);
        assert!(matches!(
            desk.requested(&Wanted::Document, later),
            Requested::Failed(_)
        ));
    }

    #[test]
    fn documents_pause_in_proportion_to_what_they_took() {
        let desk = Desk::default();
        let _open = desk.open();
        let now = Instant::now();
        let begun = now.checked_sub(Duration::from_secs(2)).unwrap();
        desk.made(Wanted::Document, begun, made("a"));
        assert_eq!(desk.requested(&Wanted::Document, now), Requested::Pending);
        let due = now + Duration::from_millis(50);
        assert_eq!(desk.wait(Some(due)), Work::Due, "18 s are not over");
        assert_eq!(desk.requested(&Wanted::Document, now), Requested::Pending);
    }

    #[test]
    fn the_end_waits_for_the_last_snapshot_and_no_longer_than_it_may() {
        let desk = Desk::default();
        let begun = Instant::now();
        desk.exit(Duration::from_secs(60));
        assert!(begun.elapsed() < Duration::from_secs(30), "nobody serves");
        let open = desk.open();
        desk.exit(Duration::from_millis(20));
        assert_eq!(desk.wait(None), Work::Exit);
        desk.exited();
        std::thread::scope(|scope| {
            let ending = scope.spawn(|| desk.exit(Duration::from_secs(60)));
            while desk.state().exit != Exit::Asked {
                std::thread::yield_now();
            }
            desk.exited();
            ending.join().unwrap();
        });
        drop(open);
    }

    #[test]
    fn a_thread_that_fails_keeps_nobody_waiting() {
        let desk = Desk::default();
        let open = desk.open();
        std::thread::scope(|scope| {
            let ending = scope.spawn(|| desk.exit(Duration::from_secs(60)));
            while desk.state().exit != Exit::Asked {
                std::thread::yield_now();
            }
            drop(open);
            ending.join().unwrap();
        });
    }

    #[test]
    fn nobody_gets_what_another_reader_wants() {
        let desk = Desk::default();
        let _open = desk.open();
        let asked = Instant::now();
        let file = Wanted::File("a".to_owned());
        assert_eq!(desk.requested(&Wanted::Files, asked), Requested::Pending);
        assert_eq!(desk.requested(&file, asked), Requested::Pending);
        assert_eq!(desk.wait(None), Work::Make(Wanted::Files));
        desk.made(Wanted::Files, Instant::now(), made("list"));
        assert_eq!(desk.requested(&file, asked), Requested::Pending);
        assert_eq!(desk.requested(&Wanted::Files, asked), made("list"));
        assert_eq!(desk.wait(None), Work::Make(file.clone()));
        desk.made(file.clone(), Instant::now(), Requested::Missing);
        assert_eq!(desk.requested(&file, asked), Requested::Missing);
    }
}
