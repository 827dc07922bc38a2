//! Watches the policy file and says what stands in it, each time that changes.
//!
//! Only content counts: times and inode numbers are what editors, `cp -p` and
//! Kubernetes play with. Directory events make a change known at once where the
//! system gives them; a slow poll is the net below, for network file systems, for
//! exhausted event limits, and for links that no watch can follow.
//!
//! A policy that was cut off between two lines is a policy too, with fewer limits. So a
//! change is reported once it has stood still for a moment, and not while some program has
//! the file open after writing to it, as far as events tell. Both waits are bounded: of a file
//! that never rests, what stands there between two writings is reported, and a program that
//! never closes the file is not waited for.
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

mod links;
mod signal;
mod sources;
#[cfg(test)]
mod tests;

/// The thread's name.
const THREAD_NAME: &str = "heapwarden-policy";

/// How long a new content must stand still.
const DEBOUNCE: Duration = Duration::from_millis(250);

/// When a content that never stands still for so long is reported nevertheless, if nobody
/// seems to be writing: two reads in succession give the same, or events tell that whole
/// files take each other's place.
const MAX_DEBOUNCE: Duration = Duration::from_millis(750);

/// The time between those two reads, and for events to arrive.
const GLANCE: Duration = Duration::from_millis(5);

/// When a program that keeps the file open after writing to it is no longer waited for.
const MAX_WRITING: Duration = Duration::from_millis(1250);

/// The longest time between two looks at the file. Without events [`MAX_DEBOUNCE`] comes on
/// top, with them [`MAX_WRITING`] counts alone: both stay below two seconds, within which
/// every change must be seen.
const POLL: Duration = Duration::from_secs(1);

/// The shortest time between two looks, however many events there are.
const MIN_GAP: Duration = Duration::from_millis(50);

/// Largest file that is read, in bytes; a policy is not larger.
const MAX_FILE_BYTES: u64 = policy_config::MAX_FILE_BYTES as u64;

/// What stands at the path.
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
    /// The system gives no thread.
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

/// Looks at `path` once.
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
    let thread = thread::Builder::new()
        .name(THREAD_NAME.into())
        .spawn(move || {
            let sources = sources(&of_thread);
            Watcher {
                path,
                reported: known,
                pending: None,
                looked_at: Writing::default(),
                on_change,
            }
            .run(sources, &of_thread);
        })
        .map_err(WatchError::Thread)?;
    Ok(WatchHandle {
        signal,
        thread: Some(thread),
    })
}

/// The state of the watching thread.
struct Watcher<F> {
    path: PathBuf,
    /// What the callback was told last.
    reported: Observation,
    pending: Option<Pending>,
    /// What events had told of writers before the last look.
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
    /// When to look again, if no event comes before.
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
            // Watches first: what changes behind the look is then an event.
            sources.follow(&self.path, signal);
            let looked = Instant::now();
            self.look(looked, signal);
            let latest = match &self.pending {
                // What is due already did not rest: the gap keeps this from spinning.
                Some(pending) => pending.due(signal).clamp(looked + MIN_GAP, looked + POLL),
                None => looked + POLL,
            };
            if signal.wait(looked + MIN_GAP, latest).is_break() {
                return;
            }
        }
    }

    /// Reads the file, and reports it if it differs and has stood still.
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
        if !self.rests(&pending, now, [last, before], signal) {
            self.pending = Some(pending);
            return;
        }
        self.reported = pending.observation.clone();
        let on_change = &mut self.on_change;
        // The panic hook has already said what happened; the next change gets its chance.
        let _ = catch_unwind(AssertUnwindSafe(|| on_change(pending.observation)));
    }

    /// Whether what was just read is to be believed. `writing` is what events had told before
    /// the look before this one, and before this one.
    fn rests(
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
        // Whole files that take each other's place, as events tell and so would tell of a writer.
        let replaced = last.done != after.done && before.begun == after.begun;
        !unfinished(after) && (replaced || observe(&self.path) == pending.observation)
    }
}
