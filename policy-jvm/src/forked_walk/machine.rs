//! What a fork will cost this process, and what the machine or the cgroup has free.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a fork takes for each GiB of pages of 4 KiB and of 2 MiB, in microseconds, until one was measured.
const US_PER_GIB: u64 = 60_000;
const US_PER_HUGE_GIB: u64 = 5_000;
/// What it takes besides.
const FIXED: Duration = Duration::from_millis(2);
/// Memory that is left to others in any case.
const RESERVE_BYTES: u64 = 64 << 20;

/// The measured cost for each GiB of small pages, in microseconds; 0 before the first fork.
static MEASURED_US_PER_GIB: AtomicU64 = AtomicU64::new(0);

/// The resident memory of this process.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Resident {
    pub(super) bytes: u64,
    /// Of these, in huge pages.
    pub(super) huge_bytes: u64,
    /// The size of the address space.
    pub(super) virtual_bytes: u64,
}

fn proc(file: &str) -> Option<String> {
    fs::read_to_string(Path::new("/proc").join(file)).ok()
}

/// The number behind a key of a table like `/proc/meminfo`, which counts in KiB.
fn kib(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let number = line.trim_start_matches(':').split_whitespace().next()?;
    Some(number.parse::<u64>().ok()? << 10)
}

impl Resident {
    /// Reads it from the kernel. Takes the kernel's lock of the address space for reading, for some
    /// milliseconds a GiB.
    pub(super) fn read() -> Option<Resident> {
        let status = proc("self/status")?;
        let rollup = proc("self/smaps_rollup").unwrap_or_default();
        Some(Resident {
            bytes: kib(&status, "VmRSS")?,
            huge_bytes: kib(&rollup, "AnonHugePages").unwrap_or(0),
            virtual_bytes: kib(&status, "VmSize")?,
        })
    }

    fn gib(bytes: u64) -> f64 {
        bytes as f64 / (1u64 << 30) as f64
    }

    fn small_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.huge_bytes)
    }

    /// How long a fork will stop the world.
    pub(super) fn predicted_pause(&self) -> Duration {
        let measured = MEASURED_US_PER_GIB.load(Ordering::Relaxed);
        let small = if measured == 0 { US_PER_GIB } else { measured };
        let us = Self::gib(self.small_bytes()) * small as f64
            + Self::gib(self.huge_bytes) * US_PER_HUGE_GIB as f64;
        FIXED + Duration::from_micros(us as u64)
    }

    /// Learns from a fork that took so long.
    pub(super) fn forked_in(&self, pause: Duration) {
        let small = Self::gib(self.small_bytes());
        // A small process says nothing about large ones.
        if small < 0.1 {
            return;
        }
        let huge = Self::gib(self.huge_bytes) * US_PER_HUGE_GIB as f64;
        let us = pause.saturating_sub(FIXED).as_micros() as f64 - huge;
        let rate = (us / small).clamp(10_000.0, 400_000.0) as u64;
        let before = MEASURED_US_PER_GIB.load(Ordering::Relaxed);
        // One slow fork on a busy machine is not the rule.
        let now = if before == 0 {
            (rate + US_PER_GIB) / 2
        } else {
            (3 * before + rate) / 4
        };
        MEASURED_US_PER_GIB.store(now, Ordering::Relaxed);
    }

    /// The memory that a child needs besides its tables: page tables, twice, and copies of what the parent
    /// writes meanwhile.
    pub(super) fn child_bytes(&self, copies_what_it_visits: bool) -> u64 {
        let page_tables = 2 * self.small_bytes() / 512;
        let copies = match copies_what_it_visits {
            true => self.bytes,
            false => self.bytes / 4,
        };
        page_tables + copies
    }
}

/// How much memory is free: of the machine, or of the narrowest cgroup that this process is in.
pub(super) fn free_bytes() -> u64 {
    let meminfo = proc("meminfo").unwrap_or_default();
    let machine = kib(&meminfo, "MemAvailable").unwrap_or(u64::MAX);
    let cgroups = proc("self/cgroup").unwrap_or_default();
    let of_cgroups = cgroup_folders(&cgroups)
        .into_iter()
        .filter_map(|folder| of_cgroup(&folder));
    of_cgroups
        .fold(machine, u64::min)
        .saturating_sub(RESERVE_BYTES)
}

/// The folders of the memory cgroups of this process, up to the root, for both versions.
fn cgroup_folders(cgroups: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in cgroups.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let is_memory = controllers.split(',').any(|name| name == "memory");
        let bases: &[&str] = match (controllers.is_empty(), is_memory) {
            (true, _) => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            (_, true) => &["/sys/fs/cgroup/memory"],
            _ => continue,
        };
        for base in bases {
            let mut at = Some(Path::new(path.trim_start_matches('/')));
            while let Some(part) = at {
                folders.push(Path::new(base).join(part));
                at = part.parent();
            }
        }
    }
    folders
}

fn of_cgroup(folder: &Path) -> Option<u64> {
    let number = |file: &str| -> Option<u64> {
        fs::read_to_string(folder.join(file))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    let (limit, used) = match number("memory.max") {
        Some(limit) => (limit, number("memory.current")?),
        None => (
            number("memory.limit_in_bytes")?,
            number("memory.usage_in_bytes")?,
        ),
    };
    // The kernel gives up the cache of files before it ends a process.
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let inactive = stat
        .lines()
        .find_map(|line| line.strip_prefix("inactive_file "));
    let cache: u64 = inactive
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(cache)))
}

/// The mappings that this process shares with others and may write, without those of a few pages.
pub(super) fn shared_ranges() -> Vec<Range<u64>> {
    let maps = proc("self/maps").unwrap_or_default();
    maps.lines().filter_map(shared_range).collect()
}

fn shared_range(line: &str) -> Option<Range<u64>> {
    let mut words = line.split_whitespace();
    let (begin, end) = words.next()?.split_once('-')?;
    let permissions = words.next()?;
    let range = u64::from_str_radix(begin, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
    (permissions.ends_with('s') && permissions.contains('w')).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prediction_grows_with_small_pages_and_hardly_with_huge_ones() {
        let of = |bytes, huge_bytes| Resident {
            bytes,
            huge_bytes,
            virtual_bytes: 0,
        };
        let small = of(4 << 30, 0).predicted_pause();
        let huge = of(4 << 30, 4 << 30).predicted_pause();
        assert!(small > 5 * huge, "{small:?} {huge:?}");
        assert!(of(0, 0).predicted_pause() >= FIXED);
        assert!(of(1 << 30, 0).child_bytes(true) > of(1 << 30, 0).child_bytes(false));
    }

    #[test]
    fn only_writable_shared_mappings_count() {
        let heap = "7f00-7f10 rw-s 0 00:01 5 /memfd:java_heap (deleted)";
        assert_eq!(shared_range(heap), Some(0x7f00..0x7f10));
        assert_eq!(shared_range("7f00-7f10 rw-p 0 00:00 0"), None);
        assert_eq!(shared_range("7f00-7f10 r--s 0 fe:00 9 /index"), None);
        assert_eq!(shared_range("no mapping"), None);
    }

    #[test]
    fn every_folder_up_to_the_root_counts() {
        let folders = cgroup_folders("4:memory:/a/b\n0::/c\n1:cpu:/d\n");
        let has = |path: &str| folders.contains(&PathBuf::from(path));
        assert!(has("/sys/fs/cgroup/memory/a/b") && has("/sys/fs/cgroup/memory/a"));
        assert!(has("/sys/fs/cgroup/memory/") && has("/sys/fs/cgroup/c"));
        assert!(!folders.iter().any(|folder| folder.ends_with("d")));
        assert!(free_bytes() > 0 && Resident::read().unwrap().bytes > 0);
    }
}
