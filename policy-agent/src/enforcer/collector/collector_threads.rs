//! The CPU time that collections take from the program, by the kernel's count.
//!
//! A concurrent collection has no cost that a clock could show: it shares the processors with the
//! program. What it takes is the CPU time of its threads. A pause takes all processors, whether its work
//! is done on one of them or on all.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How the names of HotSpot's collecting threads begin (cut by Linux to 15 bytes): G1's workers, its
/// concurrent ones and their leader; ZGC's workers in all versions; Shenandoah's.
const WORKERS: [&str; 6] = [
    "GC Thread#",
    "G1 Conc#",
    "G1 Main Marker",
    "ZWorker",
    "XWorker",
    "Shenandoah GC",
];
/// Runs what needs a pause, and with Serial the collection itself.
const PAUSING: &str = "VM Thread";

/// The threads that collect, read through `/proc/self/task`. On the enforcer's thread.
#[derive(Debug, Default)]
pub(crate) struct CollectorThreads {
    workers: Vec<PathBuf>,
    pausing: Vec<PathBuf>,
}

impl CollectorThreads {
    /// The threads that there are now: HotSpot starts some of them when they are first needed.
    pub(crate) fn find() -> CollectorThreads {
        let mut found = CollectorThreads::default();
        let threads = fs::read_dir("/proc/self/task");
        for thread in threads.into_iter().flatten().flatten() {
            let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
            let schedstat = thread.path().join("schedstat");
            if WORKERS.iter().any(|known| name.starts_with(known)) {
                found.workers.push(schedstat);
            } else if name.trim_end() == PAUSING {
                found.pausing.push(schedstat);
            }
        }
        found
    }

    /// How long all processors together would have worked on collections so far: the CPU time of the
    /// workers and of the calling thread (which allocates garbage to provoke a collection), divided by
    /// the processors that the process may use, and that of the thread that runs pauses. `None` if no
    /// thread was found, one has ended, or the kernel does not count.
    pub(crate) fn time(&self) -> Option<Duration> {
        let sum = |paths: &[PathBuf]| -> Option<Duration> {
            paths.iter().map(|path| on_processor(path)).sum()
        };
        if self.pausing.is_empty() {
            return None;
        }
        let shared = sum(&self.workers)? + on_processor(Path::new("/proc/thread-self/schedstat"))?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Some(shared / u32::try_from(processors).unwrap_or(u32::MAX) + sum(&self.pausing)?)
    }
}

fn on_processor(schedstat: &Path) -> Option<Duration> {
    nanoseconds(&fs::read_to_string(schedstat).ok()?)
}

/// The first number of a `schedstat` file: nanoseconds on a processor
/// (`Documentation/scheduler/sched-stats.rst`).
fn nanoseconds(schedstat: &str) -> Option<Duration> {
    let nanos = schedstat.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_kernels_count_is_read() {
        assert_eq!(nanoseconds("12 34 5\n"), Some(Duration::from_nanos(12)));
        assert_eq!(nanoseconds(""), None);
        assert_eq!(nanoseconds("x 1 2"), None);
    }

    /// A thread of this name, which has been on a processor for a while.
    fn busy(name: &str) -> (mpsc::Sender<()>, std::thread::JoinHandle<()>) {
        let (done, wait) = mpsc::channel::<()>();
        let (worked, ready) = mpsc::channel::<()>();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let own = Path::new("/proc/thread-self/schedstat");
                while on_processor(own).expect("the kernel counts") < Duration::from_millis(20) {
                    std::hint::spin_loop();
                }
                let _ = worked.send(());
                let _ = wait.recv();
            });
        ready
            .recv_timeout(Duration::from_secs(60))
            .expect("it works");
        (done, thread.expect("a thread"))
    }

    #[test]
    fn collecting_threads_count_and_others_do_not() {
        let began = Instant::now();
        assert_eq!(
            CollectorThreads::find().time(),
            None,
            "this process has none"
        );
        let _other = busy("http-8080");
        let _pausing = busy("VM Thread");
        let pauses = CollectorThreads::find().time().expect("it is found");
        assert!(pauses >= Duration::from_millis(20), "{pauses:?}");
        let _worker = busy("ZWorkerOld#0");
        let found = CollectorThreads::find();
        assert_eq!((found.workers.len(), found.pausing.len()), (1, 1));
        let all = found.time().expect("all are found");
        assert!(all > pauses && all <= began.elapsed() * 3, "{all:?}");
    }
}
