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
    /// Makes a group of a controller, `memory`, `pids` or `cpu`.
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

    /// Limits processor time: so many microseconds, on all processors together, in each period.
    #[must_use]
    pub fn limit_processors(&self, quota_us: u64, period_us: u64) -> bool {
        if self.is_v2 {
            return self.write("cpu.max", &format!("{quota_us} {period_us}"));
        }
        self.write("cpu.cfs_period_us", &period_us.to_string())
            && self.write("cpu.cfs_quota_us", &quota_us.to_string())
    }

    /// The group comes before all others that want the processors: a busy machine then leaves it its quota.
    #[must_use]
    pub fn come_first(&self) -> bool {
        let (file, most) = match self.is_v2 {
            true => ("cpu.weight", "10000"),
            false => ("cpu.shares", "262144"),
        };
        self.write(file, most)
    }

    /// How often the kernel has looked at the quota, and stopped the group, until now.
    #[must_use]
    pub fn periods(&self) -> Periods {
        let stat = self.read("cpu.stat");
        let of = |key: &str| {
            let found = stat.lines().find_map(|line| line.strip_prefix(key));
            number(found.unwrap_or_else(|| panic!("no {key} in {stat}")))
        };
        Periods {
            all: of("nr_periods "),
            throttled: of("nr_throttled "),
        }
    }

    /// The processes in the group, by id: also those whose parent has ended.
    #[must_use]
    pub fn ids(&self) -> Vec<u32> {
        let list = self.read("cgroup.procs");
        list.lines().filter_map(|id| id.parse().ok()).collect()
    }

    fn read(&self, file: &str) -> String {
        let path = self.folder.join(file);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn write(&self, file: &str, text: &str) -> bool {
        std::fs::write(self.folder.join(file), text).is_ok()
    }
}

/// Periods of a quota of processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Periods {
    /// Those in which something of the group ran.
    pub all: u64,
    /// Those in which the quota was used up, so that the kernel stopped the group.
    pub throttled: u64,
}

impl Periods {
    /// Those since an earlier look.
    #[must_use]
    pub fn since(self, earlier: Periods) -> Periods {
        Periods {
            all: self.all - earlier.all,
            throttled: self.throttled - earlier.throttled,
        }
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
