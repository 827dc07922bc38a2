//! Groups of processes with limits, where this machine lets root make some: version 1 and version 2.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::command::poll;

const V1: &str = "/sys/fs/cgroup";
const V2: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// How long a group may stay in use after its processes have ended.
const EMPTY: Duration = Duration::from_secs(10);

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A group of its own; removed when dropped, after its processes.
#[derive(Debug)]
pub struct Cgroup {
    folder: PathBuf,
    is_v2: bool,
}

impl Cgroup {
    /// Makes a group of a controller, `memory` or `pids`.
    ///
    /// # Errors
    /// Why this machine has none: nobody but root makes groups, and a container often may not.
    ///
    /// # Panics
    /// If it should be possible and is not.
    pub fn make(controller: &str) -> Result<Cgroup, String> {
        let (parent, is_v2) = hierarchy(controller)
            .ok_or_else(|| format!("no hierarchy of cgroups has the controller {controller}"))?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("heapwarden-test-{}-{number}", std::process::id()));
        match std::fs::create_dir(&folder) {
            Ok(()) => Ok(Cgroup { folder, is_v2 }),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                Err(format!("{} cannot be made ({error})", folder.display()))
            }
            Err(error) => panic!("{} cannot be made: {error}", folder.display()),
        }
    }

    /// A command line that enters the group before it becomes the program that follows.
    #[must_use]
    pub fn entering(&self) -> Vec<String> {
        let enter = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
        let folder = self.folder.display().to_string();
        ["sh", "-c", enter, &folder].map(str::to_owned).to_vec()
    }

    /// Limits memory, in bytes. False if the kernel does not take it: it cannot free as much (version 1).
    #[must_use]
    pub fn limit_memory(&self, bytes: u64) -> bool {
        let file = ["memory.limit_in_bytes", "memory.max"][usize::from(self.is_v2)];
        self.write(file, &bytes.to_string())
    }

    /// Memory in use, in bytes, without files that the kernel may give up.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let file = ["memory.usage_in_bytes", "memory.current"][usize::from(self.is_v2)];
        let stat = self.read("memory.stat");
        let cache = stat
            .lines()
            .find_map(|line| line.strip_prefix("inactive_file "));
        let cache: u64 = cache.and_then(|text| text.parse().ok()).unwrap_or(0);
        number(&self.read(file)).saturating_sub(cache)
    }

    /// Limits processes and threads; `None` lifts the limit.
    #[must_use]
    pub fn limit_tasks(&self, most: Option<u64>) -> bool {
        let text = most.map_or_else(|| "max".to_owned(), |most| most.to_string());
        self.write("pids.max", &text)
    }

    /// Processes and threads.
    #[must_use]
    pub fn tasks(&self) -> u64 {
        number(&self.read("pids.current"))
    }

    fn read(&self, file: &str) -> String {
        let path = self.folder.join(file);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn write(&self, file: &str, text: &str) -> bool {
        std::fs::write(self.folder.join(file), text).is_ok()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Nothing is in it any more but what is ending.
        let _ = poll(EMPTY, || std::fs::remove_dir(&self.folder).ok());
    }
}

fn number(text: &str) -> u64 {
    text.trim().parse().expect("a number of the kernel's")
}

/// The folder of a controller's hierarchy.
fn hierarchy(controller: &str) -> Option<(PathBuf, bool)> {
    let old = Path::new(V1).join(controller);
    if old.join("cgroup.procs").exists() {
        return Some((old, false));
    }
    let new = V2.iter().map(Path::new).find(|base| {
        let offered = std::fs::read_to_string(base.join("cgroup.subtree_control"));
        offered.is_ok_and(|offered| offered.split_whitespace().any(|one| one == controller))
    })?;
    Some((new.to_owned(), true))
}
