//! Detects that a concurrent cycle of G1 has begun: its marking thread, which sleeps between cycles, has
//! run. The VM has no event for that.

use std::fs;
use std::path::PathBuf;

/// The name of the thread that runs G1's concurrent cycles.
const NAME: &str = "G1 Main Marker";

/// G1's marking thread, observed through the kernel's counts of its context switches.
#[derive(Debug)]
pub(crate) struct G1MarkingThread {
    status: PathBuf,
}

impl G1MarkingThread {
    /// `None` if there is no such thread, or no `/proc`.
    pub(crate) fn find() -> Option<G1MarkingThread> {
        let thread = fs::read_dir("/proc/self/task")
            .ok()?
            .flatten()
            .find(|thread| {
                fs::read_to_string(thread.path().join("comm"))
                    .is_ok_and(|name| name.trim_end() == NAME)
            })?;
        Some(G1MarkingThread {
            status: thread.path().join("status"),
        })
    }

    /// A number that grows when a cycle begins and while it runs, and stays otherwise.
    pub(crate) fn activity(&self) -> Option<u64> {
        switches(&fs::read_to_string(&self.status).ok()?)
    }
}

fn switches(status: &str) -> Option<u64> {
    let count = |name| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    Some(count("voluntary_ctxt_switches:")? + count("nonvoluntary_ctxt_switches:")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_counts_are_read() {
        let status =
            "Name:\tG1 Main Marker\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t41\n";
        assert_eq!(switches(status), Some(44));
        assert_eq!(switches("Name:\tx\n"), None);
        let own = fs::read_to_string("/proc/thread-self/status").expect("Linux");
        assert!(switches(&own).is_some());
    }

    #[test]
    fn this_process_has_no_such_thread() {
        assert!(G1MarkingThread::find().is_none());
    }
}
