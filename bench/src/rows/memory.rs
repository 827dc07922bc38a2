//! Memory of a JVM, as the kernel counts it.
//!
//! Native memory is what is resident and not the Java heap: the heap's own pages are found by its
//! addresses, since of a heap that is committed as a whole only part is ever touched. ZGC's heap is
//! memory that the kernel counts as shared, so there all that is anonymous is native.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::jvm::{Jvm, status_bytes};

/// Memory of a process at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// The most that was ever resident (`VmHWM`).
    pub(crate) peak_resident_bytes: u64,
    /// Resident (`VmRSS`).
    pub(crate) resident_bytes: u64,
    /// Of it, anonymous (`RssAnon`).
    pub(crate) anonymous_bytes: u64,
    /// Anonymous and not the Java heap.
    pub(crate) native_bytes: u64,
}

impl Memory {
    /// Of a JVM, now. `heap` is where its Java heap lies, where that is known.
    ///
    /// # Errors
    /// Where the kernel does not say, or the process has ended.
    pub(crate) fn of(jvm: &Jvm, heap: Option<(u64, u64)>) -> Result<Memory> {
        let status = jvm.proc_file("status")?;
        let anonymous_bytes = status_bytes(&status, "RssAnon")?;
        let heap_bytes = match heap {
            Some(range) => anonymous_within(&jvm.proc_file("smaps")?, range)?,
            None => 0,
        };
        Ok(Memory {
            peak_resident_bytes: status_bytes(&status, "VmHWM")?,
            resident_bytes: status_bytes(&status, "VmRSS")?,
            anonymous_bytes,
            native_bytes: anonymous_bytes.saturating_sub(heap_bytes),
        })
    }
}

/// Anonymous bytes that are resident in mappings which begin within a range of addresses, by
/// `/proc/PID/smaps`.
fn anonymous_within(smaps: &str, (begin, end): (u64, u64)) -> Result<u64> {
    let mut within = false;
    let mut bytes = 0;
    for line in smaps.lines() {
        if let Some(address) = mapping(line) {
            within = (begin..end).contains(&address);
        } else if within && let Some(rest) = line.strip_prefix("Anonymous:") {
            let kib = rest
                .split_whitespace()
                .next()
                .and_then(|n| n.parse::<u64>().ok());
            bytes += kib.with_context(|| format!("smaps has {line:?}"))? * 1024;
        }
    }
    Ok(bytes)
}

/// First address of a mapping, of the line that begins it.
fn mapping(line: &str) -> Option<u64> {
    let (begin, rest) = line.split_once('-')?;
    let (end, _) = rest.split_once(' ')?;
    u64::from_str_radix(end, 16).ok()?;
    u64::from_str_radix(begin, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mappings_of_the_heap_count_as_heap() {
        let smaps = "\
c0000000-c8000000 rw-p 00000000 00:00 0 
Rss:                 900 kB
Anonymous:           800 kB
AnonHugePages:       400 kB
c8000000-100000000 ---p 00000000 00:00 0 
Anonymous:             0 kB
7f0000000000-7f0000001000 rw-p 00000000 08:01 77   /usr/lib/libjvm.so
Anonymous:            12 kB
";
        let heap = (0xc000_0000, 0x1_0000_0000);
        assert_eq!(anonymous_within(smaps, heap).unwrap(), 800 << 10);
        assert_eq!(anonymous_within(smaps, (0, 1)).unwrap(), 0);
        let broken = "0-1 rw\nAnonymous: much kB\n";
        assert!(anonymous_within(broken, (0, 1)).is_err());
    }
}
