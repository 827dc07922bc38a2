//! The limits that the control groups of this process set: memory and processor time, of version 1 and version 2.
//!
//! # Rules
//! 1. A group's place is found by both `/proc/self/cgroup` and the list of mounts: a container may see a part of a
//!    hierarchy only, mounted elsewhere.
//! 2. What holds is the tightest of the group and its ancestors that are visible. A limit above them cannot be known.
//! 3. What cannot be read is no limit.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A group with a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    folder: PathBuf,
    is_v2: bool,
}

/// How much processor time a group may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quota {
    /// So much, on all processors together, in each period.
    pub(super) time: Duration,
    pub(super) period: Duration,
}

impl Quota {
    /// How many processors that is.
    pub(super) fn processors(&self) -> f64 {
        self.time.as_secs_f64() / self.period.as_secs_f64()
    }

    /// How long somebody is stopped who needs so much processor time on one processor, if nobody else takes any: once
    /// for each period whose quota is used up before it is done.
    pub(super) fn stopped_for(&self, need: Duration) -> Duration {
        let rest = self.period.saturating_sub(self.time);
        let used_up = need.as_nanos().saturating_sub(1) / self.time.as_nanos().max(1);
        rest.saturating_mul(u32::try_from(used_up).unwrap_or(u32::MAX))
    }
}

/// The groups of this process that limit memory.
pub(super) struct Memory(Vec<Group>);

impl Memory {
    pub(super) fn of_this_process() -> Memory {
        Memory(groups_of_this_process("memory"))
    }

    /// Returns the bytes that are free in the narrowest one; `None` if nothing limits them.
    pub(super) fn free_bytes(&self) -> Option<u64> {
        self.0.iter().filter_map(Group::free_bytes).min()
    }
}

/// The tightest quota of processor time of this process.
pub(super) fn quota() -> Option<Quota> {
    tightest(&groups_of_this_process("cpu"))
}

fn tightest(groups: &[Group]) -> Option<Quota> {
    let quotas = groups.iter().filter_map(Group::quota);
    quotas.min_by(|one, other| one.processors().total_cmp(&other.processors()))
}

fn groups_of_this_process(controller: &str) -> Vec<Group> {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    groups(
        &read("/proc/self/cgroup"),
        &read("/proc/self/mountinfo"),
        controller,
    )
}

/// The groups with a controller, by the two lists of the kernel: each with its ancestors.
fn groups(cgroups: &str, mounts: &str, controller: &str) -> Vec<Group> {
    let mut found = Vec::new();
    for line in cgroups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let is_v2 = controllers.is_empty();
        if !is_v2 && !controllers.split(',').any(|name| name == controller) {
            continue;
        }
        let mounts = || {
            let all = mounts.lines().filter_map(Mount::parse);
            all.filter(|mount| mount.has(is_v2, controller))
        };
        // A mount of what is elsewhere in the hierarchy, as of the host's, tells nothing. If there is no other, the
        // kernel has named the group in a way that only the host knows, and what is mounted is what it can see.
        let own = mounts().find_map(|mount| Some((mount.below(path)?, mount.point)));
        let own = own.or_else(|| mounts().next().map(|mount| (PathBuf::new(), mount.point)));
        let Some((below, point)) = own else {
            continue;
        };
        let folders = below.ancestors().map(|part| point.join(part));
        found.extend(folders.map(|folder| Group { folder, is_v2 }));
    }
    found
}

/// A mount of a hierarchy of groups.
struct Mount<'m> {
    /// The part of the hierarchy that is mounted.
    root: PathBuf,
    point: PathBuf,
    is_v2: bool,
    options: &'m str,
}

impl<'m> Mount<'m> {
    fn parse(line: &'m str) -> Option<Mount<'m>> {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let is_v2 = match kind.next()? {
            "cgroup" => false,
            "cgroup2" => true,
            _ => return None,
        };
        let mut place = place.split(' ').skip(3);
        Some(Mount {
            root: PathBuf::from(unescaped(place.next()?)),
            point: PathBuf::from(unescaped(place.next()?)),
            is_v2,
            options: kind.nth(1)?,
        })
    }

    fn has(&self, is_v2: bool, controller: &str) -> bool {
        let is_named = || self.options.split(',').any(|option| option == controller);
        self.is_v2 == is_v2 && (is_v2 || is_named())
    }

    /// Where a group is below the mount.
    fn below(&self, path: &str) -> Option<PathBuf> {
        let below = Path::new(path).strip_prefix(&self.root).ok()?;
        let is_inside = !below.components().any(|part| part.as_os_str() == "..");
        is_inside.then(|| below.to_owned())
    }
}

/// A name of the list of mounts, in which spaces and the like are octal numbers.
fn unescaped(name: &str) -> String {
    let mut parts = name.split('\\');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let number = part
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match number {
            Some(byte) if byte.is_ascii() => {
                text.push(byte.into());
                text.push_str(&part[3..]);
            }
            _ => {
                text.push('\\');
                text.push_str(part);
            }
        }
    }
    text
}

impl Group {
    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(file)).ok()
    }

    /// A number; `None` for `max` and for what is not there.
    fn number(&self, file: &str) -> Option<u64> {
        self.read(file)?.trim().parse().ok()
    }

    fn free_bytes(&self) -> Option<u64> {
        // Where version 2 has two limits: beyond the lower one the kernel slows the group down.
        let (limit, used, cache) = match self.is_v2 {
            true => {
                let limits = ["memory.max", "memory.high"].map(|file| self.number(file));
                let limit = limits.into_iter().flatten().min()?;
                (limit, "memory.current", "inactive_file ")
            }
            false => (
                self.number("memory.limit_in_bytes")?,
                "memory.usage_in_bytes",
                // With what is below it, as the usage is.
                "total_inactive_file ",
            ),
        };
        let used = self.number(used)?;
        // The kernel gives up the cache of files before it ends a process.
        let stat = self.read("memory.stat").unwrap_or_default();
        let cache = stat.lines().find_map(|line| line.strip_prefix(cache));
        let cache: u64 = cache.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        Some(limit.saturating_sub(used.saturating_sub(cache)))
    }

    fn quota(&self) -> Option<Quota> {
        let (time, period) = match self.is_v2 {
            true => {
                let text = self.read("cpu.max")?;
                let mut words = text.split_whitespace();
                let time = words.next()?.parse().ok()?;
                (time, words.next()?.parse().ok()?)
            }
            // Without a limit the first is -1.
            false => (
                self.number("cpu.cfs_quota_us")?,
                self.number("cpu.cfs_period_us")?,
            ),
        };
        (time > 0 && period > 0).then_some(Quota {
            time: Duration::from_micros(time),
            period: Duration::from_micros(period),
        })
    }
}

#[cfg(test)]
mod tests;
