//! Which pauses in the JVM's log of collections the agent has asked for.
//!
//! The JVM logs the cause of one that was asked for:
//!
//! | collector | cause of ours | its pauses |
//! | --- | --- | --- |
//! | Serial, Parallel | `JvmtiEnv ForceGarbageCollection` | the full collection |
//! | G1 | `G1 Periodic Collection` | the young one that begins the cycle; remark and cleanup, under the next number |
//! | ZGC | `JvmtiEnv ForceGarbageCollection` | those of the same number |
//! | Shenandoah | the same, in a line without a number | those of the next number |
//!
//! A young collection that the agent brought about by allocating has the cause of any other:
//! its pause can't be told from theirs, and isn't counted here.

use std::collections::BTreeSet;

use crate::gc_log::{number, pause_ms};

const FORCED: &str = "JvmtiEnv ForceGarbageCollection";
const PERIODIC: &str = "G1 Periodic Collection";

/// The pauses of collections that the agent asked for, in milliseconds, in the log's order.
pub(crate) fn our_pauses_ms(log: &str) -> Vec<f64> {
    let mut ours = BTreeSet::new();
    let mut next_is_ours = false;
    for line in log.lines() {
        let Some(number) = number(line) else {
            next_is_ours |= line.contains(FORCED);
            continue;
        };
        if line.contains(FORCED) || std::mem::take(&mut next_is_ours) {
            ours.insert(number);
        }
        if line.contains(PERIODIC) {
            ours.insert(number);
            if line.contains("(Concurrent Start)") {
                ours.insert(number + 1);
            }
        }
    }
    log.lines()
        .filter(|line| number(line).is_some_and(|number| ours.contains(&number)))
        .filter_map(pause_ms)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_collection_counts_once() {
        let log = "\
[0.1s][info][gc] GC(4) Pause Young (Allocation Failure) 9M->8M(40M) 2.5ms
[0.6s][info][gc,start    ] GC(5) Pause Full (JvmtiEnv ForceGarbageCollection)
[0.6s][info][gc,phases   ] GC(5) Phase 1: Mark live objects 6.0ms
[0.6s][info][gc          ] GC(5) Pause Full (JvmtiEnv ForceGarbageCollection) 123M->77M(365M) 12.039ms
[0.7s][info][gc] GC(6) Pause Full (System.gc()) 9M->8M(40M) 9.0ms
";
        assert_eq!(our_pauses_ms(log), [12.039]);
    }

    #[test]
    fn a_cycle_of_g1_has_three() {
        let log = "\
[0.6s][gc,start] GC(1) Pause Young (Concurrent Start) (G1 Periodic Collection)
[0.6s][gc      ] GC(1) Pause Young (Concurrent Start) (G1 Periodic Collection) 30M->30M(256M) 8.956ms
[0.6s][gc      ] GC(2) Concurrent Mark Cycle
[0.6s][gc      ] GC(2) Pause Remark 30M->30M(107M) 0.342ms
[0.6s][gc      ] GC(2) Pause Cleanup 30M->30M(107M) 0.017ms
[0.6s][gc      ] GC(2) Concurrent Mark Cycle 10.259ms
[0.7s][gc      ] GC(3) Pause Young (Normal) (G1 Evacuation Pause) 30M->30M(256M) 3.0ms
";
        assert_eq!(our_pauses_ms(log), [8.956, 0.342, 0.017]);
    }

    #[test]
    fn z_and_shenandoah_have_those_of_the_collection() {
        let log = "\
[0.3s][gc       ] GC(3) Major Collection (JvmtiEnv ForceGarbageCollection)
[0.3s][gc,phases] GC(3) Y: Pause Mark Start 0.006ms
[0.3s][gc,phases] GC(3) O: Pause Relocate Start 0.007ms
[0.3s][gc       ] GC(3) Major Collection (JvmtiEnv ForceGarbageCollection) 142M->158M 0.055s
[0.4s][gc,phases] GC(4) Y: Pause Mark Start 0.009ms
";
        assert_eq!(our_pauses_ms(log), [0.006, 0.007]);
        let log = "\
[0.1s][gc] Trigger: Learning 1 of 5. Free (358M) is below initial threshold (358M)
[0.2s][gc] GC(0) Pause Init Mark (unload classes) 0.129ms
[0.3s][gc] Trigger: Explicit GC request (JvmtiEnv ForceGarbageCollection)
[0.3s][gc,start] GC(1) Pause Init Mark (unload classes)
[0.3s][gc] GC(1) Pause Init Mark (unload classes) 0.029ms
[0.3s][gc,stats] Pause Init Mark (N)                 137 us
[0.4s][gc] GC(2) Pause Init Mark (unload classes) 0.030ms
";
        assert_eq!(our_pauses_ms(log), [0.029]);
    }
}
