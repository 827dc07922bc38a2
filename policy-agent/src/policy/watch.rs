//! Watches the policy file and reports its content each time that changes.
//!
//! Only content counts: editors, `cp -p` and Kubernetes change times and inode numbers as they like.
//! Directory events show a change at once, if the system has them. A slow poll finds the others: on
//! network file systems, beyond event limits, and behind links that no watch can follow.
//!
//! A policy that is cut off between two lines is also a policy, with fewer limits. So a change is reported
//! when the content has not changed for a moment, and not while events show a program that has the file
//! open after writing to it. Both waits end: if the file changes all the time, the content between two
//! writes is reported, and a program that never closes the file delays the report only for a while.
//!
//! Knows nothing of policies but their largest size, and nothing of the rest of the agent.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use signal::{Signal, Writing};
use sources::Sources;

use crate::threads;

mod links;
mod signal;
mod sources;
#[cfg(test)]
mod tests;

/// The thread's name.
const THREAD_NAME: &str = "heapwarden-policy";

/// How long new content must stay unchanged.
const DEBOUNCE: Duration = Duration::from_millis(250);

/// After this time content is reported even if it never stays unchanged for so long, provided that no
/// program seems to be writing: two reads in succession are equal, or events show that whole files
/// replace each other.
const MAX_DEBOUNCE: Duration = Duration::from_millis(750);

/// The time between those two reads, and for events to arrive.
const GLANCE: Duration = Duration::from_millis(5);

/// The longest wait for a program that keeps the file open after writing to it.
const MAX_WRITING: Duration = Duration::from_millis(1250);

/// The longest time between two reads of the file. Without events [`MAX_DEBOUNCE`] is added, with events
/// only [`MAX_WRITING`] counts. Both stay below two seconds, within which every change must be seen.
const POLL: Duration = Duration::from_secs(1);

/// The shortest time between two reads, however many events there are.
const MIN_GAP: Duration = Duration::from_millis(50);

/// Largest file that is read, in bytes; a policy is not larger.
const MAX_FILE_BYTES: u64 = policy_config::MAX_FILE_BYTES as u64;

/// The result of a look at the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Observation {
    /// The whole text of the file.
    Content(String),
    /// No file: never written, removed, or a link that leads nowhere.
    Missing,
    /// Something that is not the text of a policy, and why, for the log.
    Unreadable(String),
}

/// Why a file cannot be watched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WatchError {
    /// The path is empty, or relative to a working directory that is gone.
    #[error("the path of the policy file cannot be made absolute: {0}")]
    Path(#[source] io::Error),
    /// The thread cannot be started.
    #[error("the thread that watches the policy file cannot be started: {0}")]
    Thread(#[source] io::Error),
}

/// Keeps a watch going until it is dropped, which waits for the thread's end, at most
/// for a callback under way.
#[derive(Debug)]
pub(crate) struct WatchHandle {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for WatchHandle {
    fn drop(&mut self) {
        self.signal.stop();
        let Some(thread) = self.thread.take() else {
            return;
        };
        // A callback may drop the handle of its own thread, which cannot wait for itself.
        if thread.thread().id() != thread::current().id() {
            // Callbacks are guarded, and nothing else on that thread panics.
            let _ = thread.join();
        }
    }
}

/// Reads `path` once.
///
/// Blocks as long as the file system does. Only regular files are opened: a pipe would
/// block for ever, and a device might never end.
pub(crate) fn observe(path: impl AsRef<Path>) -> Observation {
    let mut bytes = Vec::new();
    let read = fs::metadata(&path).and_then(|metadata| {
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        File::open(&path)?
            .take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
    });
    match read {
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Observation::Missing,
            _ => Observation::Unreadable(error.to_string()),
        },
        Ok(_) if bytes.len() as u64 > MAX_FILE_BYTES => {
            Observation::Unreadable(format!("it is larger than {MAX_FILE_BYTES} bytes"))
        }
        Ok(_) => match String::from_utf8(bytes) {
            Ok(text) => Observation::Content(text),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                Observation::Unreadable(format!("it is not UTF-8 text from byte {at} on"))
            }
        },
    }
}

/// Watches `path` on a thread of its own, and calls `on_change` there with each
/// observation that differs from the one before, the first time from `known`: what
/// [`observe`] gave when the caller read the file, so that no change in between is lost.
///
/// Every change that lasts is reported within two seconds. Neither the file nor its
/// directory need exist. A panic of `on_change` is confined to that call.
///
/// # Errors
/// [`WatchError`]; a system without directory events is none, the poll alone remains.
pub(crate) fn watch(
    path: impl Into<PathBuf>,
    known: Observation,
    on_change: impl FnMut(Observation) + Send + 'static,
) -> Result<WatchHandle, WatchError> {
    start(path.into(), known, on_change, Sources::events)
}

fn start(
    path: PathBuf,
    known: Observation,
    on_change: impl FnMut(Observation) + Send + 'static,
    sources: fn(&Arc<Signal>) -> Sources,
) -> Result<WatchHandle, WatchError> {
    let path = std::path::absolute(path).map_err(WatchError::Path)?;
    let signal = Arc::new(Signal::default());
    let of_thread = Arc::clone(&signal);
    let body = move || {
        // On this thread: the thread that the event source starts inherits its signal mask.
        let sources = sources(&of_thread);
        Watcher {
            path,
            reported: known,
            pending: None,
            looked_at: Writing::default(),
            on_change,
        }
        .run(sources, &of_thread);
    };
    let builder = thread::Builder::new().name(THREAD_NAME.into());
    let thread = threads::start(builder, body).map_err(WatchError::Thread)?;
    Ok(WatchHandle {
        signal,
        thread: Some(thread),
    })
}

/// The state of the watching thread.
struct Watcher<F> {
    path: PathBuf,
    /// The observation that was reported last.
    reported: Observation,
    pending: Option<Pending>,
    /// The signs of writers that events had shown before the last read.
    looked_at: Writing,
    on_change: F,
}

/// A difference from what was reported.
struct Pending {
    observation: Observation,
    /// When this very observation was first made.
    since: Instant,
    /// When the file first differed from what was reported.
    first: Instant,
}

impl Pending {
    /// When to read again, if no event comes before.
    fn due(&self, signal: &Signal) -> Instant {
        match signal.writing().since {
            Some(begun) => begun + MAX_WRITING,
            None => (self.since + DEBOUNCE).min(self.first + MAX_DEBOUNCE),
        }
    }
}

impl<F: FnMut(Observation)> Watcher<F> {
    fn run(mut self, mut sources: Sources, signal: &Signal) {
        loop {
            // Watches first, so that a change after the read is an event.
            sources.follow(&self.path, signal);
            let looked = Instant::now();
            self.look(looked, signal);
            let latest = match &self.pending {
                // If it is due already, the content was not stable: the gap prevents a busy loop.
                Some(pending) => pending.due(signal).clamp(looked + MIN_GAP, looked + POLL),
                None => looked + POLL,
            };
            if signal.wait(looked + MIN_GAP, latest).is_break() {
                return;
            }
        }
    }

    /// Reads the file, and reports it if it differs and is stable.
    fn look(&mut self, now: Instant, signal: &Signal) {
        let before = signal.writing();
        let seen = observe(&self.path);
        let last = std::mem::replace(&mut self.looked_at, before);
        if seen == self.reported {
            self.pending = None;
            return;
        }
        let first = self.pending.as_ref().map_or(now, |pending| pending.first);
        let pending = match self.pending.take() {
            Some(pending) if pending.observation == seen => pending,
            _ => Pending {
                observation: seen,
                since: now,
                first,
            },
        };
        if !self.is_stable(&pending, now, [last, before], signal) {
            self.pending = Some(pending);
            return;
        }
        self.reported = pending.observation.clone();
        let on_change = &mut self.on_change;
        // The panic hook has already said what happened; the next change gets its chance.
        let _ = catch_unwind(AssertUnwindSafe(|| on_change(pending.observation)));
    }

    /// Whether the content just read is stable. `writing`: what events had shown before the previous read,
    /// and before this one.
    fn is_stable(
        &self,
        pending: &Pending,
        now: Instant,
        writing: [Writing; 2],
        signal: &Signal,
    ) -> bool {
        let unfinished =
            |writing: Writing| (writing.since).is_some_and(|begun| now < begun + MAX_WRITING);
        if unfinished(signal.writing()) {
            return false;
        }
        if now >= pending.since + DEBOUNCE {
            return true;
        }
        if now < pending.first + MAX_DEBOUNCE {
            return false;
        }
        thread::sleep(GLANCE);
        let [last, before] = writing;
        let after = signal.writing();
        // Whole files replace each other; events show that, so they would also show a writer.
        let replaced = last.done != after.done && before.begun == after.begun;
        !unfinished(after) && (replaced || observe(&self.path) == pending.observation)
    }
}
