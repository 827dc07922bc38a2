//! A reader of the JVM's log of collections.
//!
//! Each collection has a number. A pause is a line that ends in its length; what ZGC and Shenandoah
//! log of their phases is read likewise.

use std::collections::BTreeSet;
use std::path::Path;

/// The JVM's flag that makes it log to `path`, as is read here: one file for the whole run (by
/// default the log goes round), each line in it when it is said, and where the heap lies.
pub(crate) fn flag(path: &Path) -> String {
    format!(
        "-Xlog:gc*,gc+heap+coops=debug:file={}::filecount=0",
        path.display()
    )
}

/// Of `… GC(12) …`.
pub(crate) fn number(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("GC(")?;
    rest.split_once(')')?.0.parse().ok()
}

/// Of a line that ends a pause, such as `GC(3) Pause Remark 20M->20M(2048M) 1.234ms`.
pub(crate) fn pause_ms(line: &str) -> Option<f64> {
    let (_, what) = line.split_once("GC(")?.1.split_once(") ")?;
    if !what.contains("Pause ") {
        return None;
    }
    what.rsplit(' ').next()?.strip_suffix("ms")?.parse().ok()
}

/// All pauses of a piece of the log.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pauses {
    /// Collections that paused the program at least once.
    pub(crate) collections: usize,
    /// Each pause, in milliseconds, in the log's order.
    pub(crate) ms: Vec<f64>,
}

impl Pauses {
    /// Those that ended within a piece of the log.
    pub(crate) fn of(log: &str) -> Pauses {
        let pauses = log
            .lines()
            .filter_map(|line| Some((number(line)?, pause_ms(line)?)));
        let (numbers, ms): (BTreeSet<u64>, Vec<f64>) = pauses.unzip();
        Pauses {
            collections: numbers.len(),
            ms,
        }
    }
}

/// Where the heap lies, as a range of addresses; none where the JVM does not say (ZGC).
pub(crate) fn heap(log: &str) -> Option<(u64, u64)> {
    let (_, rest) = log.split_once("Heap address: 0x")?;
    let (address, rest) = rest.split_once(", size: ")?;
    let (mib, _) = rest.split_once(" MB")?;
    let begin = u64::from_str_radix(address, 16).ok()?;
    let end = begin.checked_add(mib.parse::<u64>().ok()?.checked_mul(1 << 20)?)?;
    Some((begin, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_counts_once_and_concurrent_work_not_at_all() {
        let log = "\
[0.6s][gc,start] GC(1) Pause Young (Concurrent Start) (G1 Evacuation Pause)
[0.6s][gc      ] GC(1) Pause Young (Concurrent Start) (G1 Evacuation Pause) 30M->30M(256M) 8.956ms
[0.6s][gc      ] GC(2) Concurrent Mark Cycle
[0.6s][gc      ] GC(2) Pause Remark 30M->30M(107M) 0.342ms
[0.6s][gc      ] GC(2) Pause Cleanup 30M->30M(107M) 0.017ms
[0.6s][gc      ] GC(2) Concurrent Mark Cycle 10.259ms
";
        let pauses = Pauses::of(log);
        assert_eq!(pauses.ms, [8.956, 0.342, 0.017]);
        assert_eq!(pauses.collections, 2);
        assert_eq!(Pauses::of(""), Pauses::default());
    }

    #[test]
    fn the_heap_lies_where_the_jvm_says() {
        let log = "[0.006s][debug][gc,heap,coops] Heap address: 0x00000000c0000000, size: 1024 MB, \
                   Compressed Oops mode: 32-bit\n";
        assert_eq!(heap(log), Some((0xc000_0000, 0x1_0000_0000)));
        assert_eq!(heap("[gc,init] Heap Backing File: /memfd:java_heap"), None);
        assert_eq!(heap("Heap address: 0xffffffffffffffff, size: 1 MB"), None);
    }
}
