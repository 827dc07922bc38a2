use super::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder in which groups are text files; removed when dropped.
struct Files(PathBuf);

impl Files {
    fn new() -> Files {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("heapwarden-cgroup-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).expect("writable");
        Files(folder)
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        fs::write(path, text).expect("writable");
    }

    /// The list of mounts, with this folder mounted.
    fn mounts(&self, root: &str, below: &str, kind: &str) -> String {
        let point = self.0.join(below).display().to_string();
        format!(
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n32 31 0:29 {root} {point} rw,relatime shared:4 - {kind}\n"
        )
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const V2: &str = "cgroup2 cgroup2 rw,nsdelegate";
const V1_CPU: &str = "cgroup cgroup rw,cpu,cpuacct";
const V1_MEMORY: &str = "cgroup cgroup rw,memory";

fn quota_of(files: &Files, cgroups: &str, mounts: &str) -> Option<(u64, u64)> {
    assert!(files.0.is_dir());
    let quota = tightest(&groups(cgroups, mounts, "cpu"))?;
    Some((
        quota.time.as_micros() as u64,
        quota.period.as_micros() as u64,
    ))
}

#[test]
fn the_tightest_quota_of_version_2_counts_whatever_its_period() {
    let files = Files::new();
    let mounts = files.mounts("/", "", V2);
    let quota = || quota_of(&files, "0::/pods/shop/jvm\n", &mounts);
    assert_eq!(quota(), None, "no such group");
    files.write("pods/shop/jvm/cpu.max", "max 100000\n");
    assert_eq!(quota(), None);
    // One and a half processors, half of one by way of a short period, two.
    files.write("pods/shop/jvm/cpu.max", "150000 100000\n");
    files.write("pods/shop/cpu.max", "5000 10000\n");
    files.write("pods/cpu.max", "200000 100000\n");
    files.write("pods/other/cpu.max", "1000 100000\n");
    assert_eq!(quota(), Some((5000, 10_000)));
    files.write("pods/shop/cpu.max", "max 10000\n");
    assert_eq!(quota(), Some((150_000, 100_000)));
    for nonsense in ["", "\n", "5000", "x 1", "0 100000", "5000 0", "-1 100000"] {
        files.write("pods/shop/jvm/cpu.max", nonsense);
        assert_eq!(quota(), Some((200_000, 100_000)), "{nonsense:?}");
    }
}

#[test]
fn the_tightest_quota_of_version_1_counts() {
    let files = Files::new();
    let mounts = files.mounts("/", "cpu", V1_CPU) + &files.mounts("/", "v2", V2);
    let lists = "4:memory:/pods/other\n3:cpu,cpuacct:/pods/shop\n0::/\n";
    let quota = || quota_of(&files, lists, &mounts);
    files.write("cpu/pods/shop/cpu.cfs_quota_us", "-1\n");
    files.write("cpu/pods/shop/cpu.cfs_period_us", "100000\n");
    assert_eq!(quota(), None);
    files.write("cpu/pods/cpu.cfs_quota_us", "75000\n");
    files.write("cpu/pods/cpu.cfs_period_us", "50000\n");
    assert_eq!(quota(), Some((75_000, 50_000)));
    files.write("cpu/pods/shop/cpu.cfs_quota_us", "50000\n");
    assert_eq!(quota(), Some((50_000, 100_000)));
    // Of a hierarchy with both versions, as some machines have it.
    files.write("v2/cpu.max", "1000 100000\n");
    assert_eq!(quota(), Some((1000, 100_000)));
}

#[test]
fn a_container_sees_its_own_part_of_a_hierarchy() {
    let files = Files::new();
    let quota = |path: &str, mounts: &str| quota_of(&files, &format!("3:cpu:{path}\n"), mounts);
    files.write("a b/cpu.cfs_quota_us", "50000\n");
    files.write("a b/cpu.cfs_period_us", "100000\n");
    files.write("a b/own/cpu.cfs_quota_us", "25000\n");
    files.write("a b/own/cpu.cfs_period_us", "100000\n");
    let whole = Some((50_000, 100_000));
    let narrow = Some((25_000, 100_000));
    // The container's group is mounted as if it were the root, and its name is the host's.
    let mounts = files.mounts("/docker/1f", "a\\040b", V1_CPU);
    assert_eq!(quota("/docker/1f", &mounts), whole);
    assert_eq!(quota("/docker/1f/own", &mounts), narrow);
    // The mounted group is all that it can see, whatever the name.
    assert_eq!(quota("/elsewhere/own", &mounts), whole);
    assert_eq!(quota("/../own", &mounts), whole);
    // The host's hierarchy is mounted as well, and comes first.
    let host = files.mounts("/../..", "host", V1_CPU);
    files.write("host/cpu.cfs_quota_us", "1000\n");
    files.write("host/cpu.cfs_period_us", "100000\n");
    assert_eq!(quota("/docker/1f/own", &(host.clone() + &mounts)), narrow);
    assert_eq!(quota("/docker/1f", "no list\n\n1 2 3 - cgroup\n"), None);
    assert_eq!(unescaped(r"a\134b\x\04\777"), r"a\b\x\04\777");
}

#[test]
fn free_memory_of_version_2_is_that_of_the_narrowest_group_without_its_cache() {
    let files = Files::new();
    let lists = "0::/pods/shop\n";
    let mounts = files.mounts("/", "", V2);
    let free = || Memory(groups(lists, &mounts, "memory")).free_bytes();
    files.write("pods/shop/memory.max", "max\n");
    files.write("pods/shop/memory.current", "700\n");
    assert_eq!(free(), None);
    files.write("pods/shop/memory.max", "1000\n");
    assert_eq!(free(), Some(300));
    files.write(
        "pods/shop/memory.stat",
        "anon 500\ninactive_file 150\nactive_file 50\n",
    );
    assert_eq!(free(), Some(450));
    // Beyond this one the kernel slows the group down.
    files.write("pods/shop/memory.high", "900\n");
    assert_eq!(free(), Some(350));
    files.write("pods/shop/memory.max", "max\n");
    assert_eq!(free(), Some(350));
    files.write("pods/memory.max", "5000\n");
    files.write("pods/memory.current", "4900\n");
    assert_eq!(free(), Some(100));
    files.write("pods/memory.current", "6000\n");
    assert_eq!(free(), Some(0));
}

#[test]
fn free_memory_of_version_1_is_that_of_the_narrowest_group_without_the_cache_of_all_below() {
    let files = Files::new();
    let lists = "4:memory:/pods/shop\n3:cpu:/\n0::/\n";
    let mounts = files.mounts("/", "", V1_MEMORY);
    let free = || Memory(groups(lists, &mounts, "memory")).free_bytes();
    assert_eq!(free(), None);
    files.write("pods/shop/memory.limit_in_bytes", "1000\n");
    files.write("pods/shop/memory.usage_in_bytes", "800\n");
    assert_eq!(free(), Some(200));
    files.write(
        "pods/shop/memory.stat",
        "inactive_file 7\ntotal_inactive_file 100\n",
    );
    assert_eq!(free(), Some(300));
    files.write("pods/memory.limit_in_bytes", "2000\n");
    files.write("pods/memory.usage_in_bytes", "1950\n");
    assert_eq!(free(), Some(50));
    // Without a limit.
    files.write("pods/memory.limit_in_bytes", "9223372036854771712\n");
    assert_eq!(free(), Some(300));
}

#[test]
fn who_needs_more_than_the_quota_is_stopped_once_for_each_period_that_it_fills() {
    let of = |time_ms, period_ms| Quota {
        time: Duration::from_millis(time_ms),
        period: Duration::from_millis(period_ms),
    };
    let ms = Duration::from_millis;
    let half = of(50, 100);
    assert_eq!(half.stopped_for(ms(0)), ms(0));
    assert_eq!(half.stopped_for(ms(50)), ms(0));
    assert_eq!(half.stopped_for(ms(51)), ms(50));
    assert_eq!(half.stopped_for(ms(100)), ms(50));
    assert_eq!(half.stopped_for(ms(101)), ms(100));
    // One processor alone does not use up the quota of two.
    assert_eq!(of(200, 100).stopped_for(ms(1000)), ms(0));
    let least = of(1, 1000).stopped_for(Duration::from_secs(1 << 40));
    assert!(least > Duration::from_secs(1 << 20), "no overflow");
}

#[test]
fn this_process_is_read() {
    // Whatever the machine has: the lists are the kernel's, and each group that they lead to is a folder.
    for controller in ["memory", "cpu"] {
        let found = groups_of_this_process(controller);
        println!("{controller}: {found:?}");
        assert!(found.iter().all(|group| group.folder.is_absolute()));
    }
    let quota = quota();
    assert!(
        quota.is_none_or(|quota| quota.processors() > 0.0),
        "{quota:?}"
    );
}
