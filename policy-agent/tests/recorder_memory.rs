//! Memory stays bounded where nobody scrapes. A process of its own, because it measures it.

use heapwarden::report::EventRecorder;

fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.unwrap().trim().trim_end_matches(" kB");
    kibibytes.parse::<usize>().unwrap() * 1024
}

/// Each duration is kept in 16 bytes until it is drained.
#[test]
fn durations_are_drained_without_a_scrape() {
    const RECORDED: usize = 2_000_000;
    let recorder = EventRecorder::default();
    recorder.run(|| {
        let histogram =
            metrics::histogram!("heapwarden_reading_duration_seconds", "purpose" => "report");
        let before = resident_bytes();
        for _ in 0..RECORDED {
            histogram.record(0.001);
        }
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < RECORDED * 16 / 4, "{grown} bytes more");
    });
}
