//! The cost of a fork for this process, and the memory that the machine or the cgroup has free.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::cgroup::{self, Memory, Quota};
use super::system;

/// The time of a fork that does not grow with the memory: the stop of the threads, the list of mappings.
const FIXED: Duration = Duration::from_millis(2);
/// The processor time of a fork over that of the probe, in thousandths, until one was measured.
const FORK_PER_PROBE: u64 = 1700;
/// A probe that is shorter says nothing about the ratio.
const LEAST_PROBE: Duration = Duration::from_micros(500);
/// Microseconds that a fork takes for each GiB of small and of huge pages, where the kernel offers no probe.
const US_PER_GIB: f64 = 60_000.0;
const US_PER_HUGE_GIB: f64 = 5_000.0;
/// Threads of this process that are looked at.
const MAX_THREADS: usize = 512;
/// Memory that is left to others in any case.
const RESERVE_BYTES: u64 = 64 << 20;

/// The same ratio as the last forks had it; 0 before the first one.
static MEASURED: AtomicU64 = AtomicU64::new(0);

/// The resident memory of this process.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Resident {
    pub(super) bytes: u64,
    /// Of these, in huge pages.
    pub(super) huge_bytes: u64,
    /// The tables of pages.
    pub(super) page_table_bytes: u64,
    /// The size of the address space.
    pub(super) virtual_bytes: u64,
    /// The processor time of the probe; zero if there is none.
    pub(super) probe: Duration,
    /// By how much a fork will be stretched by those who want the processors, too; at least 1.
    pub(super) stretch: f64,
    /// The same at the most: if the threads of all other processes have their turn.
    pub(super) most_stretch: f64,
    /// The processor time that this process may take, where it is limited.
    pub(super) quota: Option<Quota>,
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
    /// Reads it from the kernel, for some milliseconds a GiB.
    ///
    /// Reading `smaps_rollup` is the *probe*: the kernel walks the same tables and touches the same descriptors of
    /// pages as a fork does, one by one, so the processor time of both is proportional whatever the machine, the
    /// pages' size, and their place in memory. The kernel lets writers of the address space pass meanwhile.
    pub(super) fn read() -> Option<Resident> {
        let status = proc("self/status")?;
        let (began, time_before) = (Instant::now(), system::thread_time());
        let rollup = proc("self/smaps_rollup");
        let probe = system::thread_time().saturating_sub(time_before);
        let stretch = began.elapsed().as_secs_f64() / probe.as_secs_f64().max(1e-6);
        let huge = rollup
            .as_ref()
            .and_then(|rollup| kib(rollup, "AnonHugePages"));
        let most_stretch = crowd().max(1.0);
        Some(Resident {
            bytes: kib(&status, "VmRSS")?,
            huge_bytes: huge.unwrap_or(0),
            page_table_bytes: kib(&status, "VmPTE")?,
            virtual_bytes: kib(&status, "VmSize")?,
            probe: huge.map_or(Duration::ZERO, |_| probe),
            // The probe was stretched by this process's own threads as well, which a fork stops; the list of who
            // wants to run has those of low priority, too. Each is too much.
            stretch: stretch.clamp(1.0, most_stretch),
            most_stretch,
            quota: cgroup::quota(),
        })
    }

    /// The processor time of a fork.
    fn fork_time(&self) -> Duration {
        if self.probe.is_zero() {
            let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
            let us = gib(self.bytes.saturating_sub(self.huge_bytes)) * US_PER_GIB
                + gib(self.huge_bytes) * US_PER_HUGE_GIB;
            return Duration::from_micros(us as u64);
        }
        let ratio = match MEASURED.load(Ordering::Relaxed) {
            0 => FORK_PER_PROBE,
            measured => measured,
        };
        self.probe.mul_f64(ratio as f64 / 1000.0)
    }

    /// How long a fork will stop the world: its processor time, stretched by those who want the processors too, and
    /// the times at which the kernel stops it because the quota of a period is used up.
    pub(super) fn predicted_pause(&self) -> Duration {
        FIXED + self.fork_time().mul_f64(self.stretch) + self.stopped()
    }

    /// The same at the most: the quota may be used up when it begins.
    pub(super) fn most_predicted_pause(&self) -> Duration {
        let period = self.quota.map_or(Duration::ZERO, |quota| quota.period);
        FIXED + self.fork_time().mul_f64(self.most_stretch) + self.stopped() + period
    }

    fn stopped(&self) -> Duration {
        (self.quota).map_or(Duration::ZERO, |quota| quota.stopped_for(self.fork_time()))
    }

    /// Learns from a fork that took so much processor time.
    pub(super) fn forked_in(&self, time: Duration) {
        if self.probe < LEAST_PROBE {
            return;
        }
        let ratio = time.as_secs_f64() / self.probe.as_secs_f64();
        let ratio = (ratio * 1000.0).clamp(500.0, 6000.0) as u64;
        let before = match MEASURED.load(Ordering::Relaxed) {
            0 => FORK_PER_PROBE,
            measured => measured,
        };
        // One odd fork is not the rule.
        MEASURED.store((3 * before + ratio) / 4, Ordering::Relaxed);
    }

    /// The memory that a child needs besides its tables: page tables, twice, and copies of what the parent
    /// writes meanwhile.
    pub(super) fn child_bytes(&self, copies_what_it_visits: bool) -> u64 {
        let copies = match copies_what_it_visits {
            true => self.bytes,
            false => self.bytes / 4,
        };
        2 * self.page_table_bytes + copies
    }
}

/// How many threads of other processes want to run, for each processor, with the one that forks.
fn crowd() -> f64 {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    let load = proc("loadavg").unwrap_or_default();
    let others = running(&load).saturating_sub(own_running());
    (1 + others) as f64 / processors as f64
}

/// The threads that run or want to, of `/proc/loadavg`.
fn running(load: &str) -> usize {
    let word = load.split_whitespace().nth(3);
    let count = word.and_then(|word| word.split_once('/')?.0.parse().ok());
    count.unwrap_or(1)
}

/// The same of this process, by as many threads as are looked at.
fn own_running() -> usize {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return 1;
    };
    let tasks: Vec<_> = tasks.flatten().collect();
    let looked_at = tasks.len().min(MAX_THREADS);
    let is_running = |task: &&fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let after = stat.rsplit_once(") ");
        after.is_some_and(|(_, after)| after.starts_with('R'))
    };
    let running = tasks[..looked_at].iter().filter(is_running).count();
    running * tasks.len() / looked_at.max(1)
}

/// How much memory is free: of the machine, and of the narrowest cgroup that this process is in.
pub(super) struct FreeMemory {
    cgroups: Memory,
}

impl FreeMemory {
    pub(super) fn find() -> FreeMemory {
        FreeMemory {
            cgroups: Memory::of_this_process(),
        }
    }

    /// As it is now, without what is left to others.
    pub(super) fn bytes(&self) -> u64 {
        let meminfo = proc("meminfo").unwrap_or_default();
        let machine = kib(&meminfo, "MemAvailable").unwrap_or(u64::MAX);
        let free = (self.cgroups.free_bytes()).map_or(machine, |free| free.min(machine));
        free.saturating_sub(RESERVE_BYTES)
    }
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
    use super::super::memory::{Sharing, Table};
    use super::system::Child;
    use super::*;

    #[test]
    fn prediction_follows_the_probe_and_those_who_want_the_processors() {
        let of = |probe_ms, stretch| Resident {
            bytes: 4 << 30,
            page_table_bytes: 8 << 20,
            probe: Duration::from_millis(probe_ms),
            stretch,
            most_stretch: 4.0,
            ..Resident::default()
        };
        let alone = of(10, 1.0).predicted_pause();
        assert_eq!(alone, FIXED + Duration::from_millis(17));
        assert_eq!(
            of(10, 2.0).predicted_pause(),
            FIXED + Duration::from_millis(34)
        );
        let most = of(10, 2.0).most_predicted_pause();
        assert_eq!(most, FIXED + Duration::from_millis(68));
        // Where the kernel offers no probe, the size has to do.
        assert_eq!(
            of(0, 1.0).predicted_pause(),
            FIXED + Duration::from_millis(240)
        );
        let (beside, inside) = (of(1, 1.0).child_bytes(false), of(1, 1.0).child_bytes(true));
        assert!(inside > beside && beside > 16 << 20);
        // A fork that took thrice the probe moves what is predicted, and one that is out of all reason not further.
        of(10, 1.0).forked_in(Duration::from_millis(30));
        assert!(of(10, 1.0).predicted_pause() > alone);
        of(10, 1.0).forked_in(Duration::from_secs(300));
        assert!(of(10, 1.0).predicted_pause() < Duration::from_millis(40));
    }

    #[test]
    fn a_fork_takes_the_processor_time_that_the_probe_says() {
        let mut pages = Table::<u8>::new(256 << 20, Sharing::Private).unwrap();
        pages.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        // Processor time, which others disturb little; the middle one of a few.
        let mut ratios: Vec<f64> = (0..5)
            .map(|_| {
                let probe = Resident::read().unwrap().probe;
                let before = system::thread_time();
                let child = system::fork().unwrap();
                if child == 0 {
                    system::exit_now(0);
                }
                let took = system::thread_time().saturating_sub(before);
                while system::look_at(child) == Child::Runs {
                    system::sleep(Duration::from_millis(1));
                }
                took.as_secs_f64() / probe.as_secs_f64()
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        let stated = FORK_PER_PROBE as f64 / 1000.0;
        let is_right = (stated / 2.0..=stated * 2.0).contains(&ratios[2]);
        assert!(is_right, "{ratios:?}, stated {stated}");
    }

    #[test]
    fn threads_that_run_are_counted() {
        assert_eq!(running("0.58 0.88 1.88 3/456 7946\n"), 3);
        assert_eq!(running(""), 1);
        // The one that asks runs.
        assert!(own_running() >= 1 && crowd() > 0.0);
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
    fn a_quota_stops_a_fork_that_is_longer_and_at_the_most_a_period_before_it_begins() {
        let of = |quota: Option<(u64, u64)>| Resident {
            stretch: 1.0,
            most_stretch: 1.0,
            // Without a probe: 60 ms for each GiB, whatever other tests have measured.
            bytes: 2 << 30,
            quota: quota.map(|(time_ms, period_ms)| Quota {
                time: Duration::from_millis(time_ms),
                period: Duration::from_millis(period_ms),
            }),
            ..Resident::default()
        };
        let pauses = |quota| {
            let resident = of(quota);
            let (least, most) = (resident.predicted_pause(), resident.most_predicted_pause());
            ((least - FIXED).as_millis(), (most - FIXED).as_millis())
        };
        assert_eq!(pauses(None), (120, 120));
        // The quota of two periods, and a part of the third.
        assert_eq!(pauses(Some((50, 100))), (220, 320));
        assert_eq!(pauses(Some((100, 100))), (120, 220));
        assert_eq!(pauses(Some((800, 100))), (120, 220));
    }

    #[test]
    fn this_process_is_read() {
        assert!(FreeMemory::find().bytes() > 0 && Resident::read().unwrap().bytes > 0);
    }
}
