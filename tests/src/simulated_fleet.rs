//! A fleet that never ran, of any size, as the recording rules for fleets would have kept it: made by
//! `promtool` for a real Prometheus, and known well enough that advice about it can be judged.
//!
//! Every [`PRESSED_EVERY`]th JVM is fuller than it should be, every [`ROOMY_EVERY`]th has room, and the
//! others are as full as they may be. The services of pressed JVMs and those of [`TEAM`] have a history
//! of a week, a sample in half an hour. All others have accounts with one sample: as many series, and fewer samples than
//! a real fleet's.

use crate::{artifacts, command};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Services in each JVM.
pub const SERVICES: usize = 50;
/// One JVM of so many is pressed.
pub const PRESSED_EVERY: usize = 50;
/// One JVM of so many has room.
pub const ROOMY_EVERY: usize = 10;
/// A JVM with the most room of all, that has a service of each name: no replica may go there.
pub const TWIN: usize = 5;
/// The team whose services have a history: one in each of these JVMs.
pub const TEAM: &str = "/team-7/";
const TEAM_EVERY: usize = 20;
/// How long the history is, in steps.
pub const STEPS: i64 = 7 * 48;
/// The time of a step.
pub const STEP_SECONDS: i64 = 1800;

const HEAP_MAX_BYTES: f64 = 4.0 * 1_073_741_824.0;
const MIB: f64 = 1_048_576.0;
/// JVMs in one file for promtool, so that its memory is bounded.
const JVMS_A_FILE: usize = 1_000;
/// Longest that promtool may take over one file.
const LIMIT: Duration = Duration::from_secs(900);

/// Whether a JVM is expected to be relieved.
#[must_use]
pub fn is_pressed(jvm: usize) -> bool {
    jvm % PRESSED_EVERY == 1
}

/// Whether a JVM has room for others' services.
#[must_use]
pub fn is_roomy(jvm: usize) -> bool {
    jvm % ROOMY_EVERY == 3 || jvm == TWIN
}

/// Its `instance`.
#[must_use]
pub fn instance(jvm: usize) -> String {
    format!("shop/tomcat-{jvm}")
}

/// A service's name. Those of a JVM are its own but for the team's, and the twin's, which are named
/// after those of the first pressed JVM.
fn service(jvm: usize, number: usize) -> String {
    if number == 0 && jvm % TEAM_EVERY == 7 {
        return format!("{TEAM}app");
    }
    let named = if jvm == TWIN { 1 } else { jvm };
    format!("/app-{named}-{number}")
}

/// Writes the blocks of `jvms` JVMs, the last of their samples at `end`, into a folder that a Prometheus
/// keeps its data in.
///
/// # Panics
/// If promtool is missing, or a series is written that no rule records.
pub fn write(folder: &Path, jvms: usize, end: i64) {
    let recorded = recorded();
    let file = folder.join("fleet.om");
    for first in (0..jvms).step_by(JVMS_A_FILE) {
        let mut out = BufWriter::new(File::create(&file).expect("writable"));
        let mut text = String::new();
        for jvm in first..(first + JVMS_A_FILE).min(jvms) {
            text.clear();
            samples(&mut text, &recorded, jvm, end);
            out.write_all(text.as_bytes()).expect("the disk has room");
        }
        out.write_all(b"# EOF\n").expect("the disk has room");
        drop(out);
        let mut promtool = Command::new("promtool");
        promtool
            // All of a week in few blocks: promtool reads the file once for each.
            .args(["tsdb", "create-blocks-from", "--max-block-duration=240h"])
            .args(["openmetrics", "--quiet"])
            .args([&file, &folder.join("tsdb")]);
        let made = command::run(&mut promtool, LIMIT);
        assert!(made.status.success(), "{}{}", made.stdout, made.stderr);
    }
    fs::remove_file(&file).expect("it was written");
}

/// The names of what the rules record.
fn recorded() -> BTreeSet<String> {
    let path = artifacts::repository().join("deploy/prometheus/heapwarden.fleet.rules.yml");
    let text = fs::read_to_string(path).expect("it is shipped");
    let names = text.lines().filter_map(|line| {
        let (_, name) = line.split_once("- record: ")?;
        Some(name.trim().to_owned())
    });
    names.collect()
}

fn samples(text: &mut String, recorded: &BTreeSet<String>, jvm: usize, end: i64) {
    let mut put = |metric: &str, labels: &str, value: f64, time: i64| {
        assert!(recorded.contains(metric), "no rule records {metric}");
        writeln!(text, "{metric}{{{labels}}} {value} {time}").expect("a string takes everything");
    };
    let labels = format!("job=\"heapwarden\",instance=\"{}\"", instance(jvm));
    let fullness = match jvm {
        TWIN => 0.05,
        _ if is_pressed(jvm) => 0.86,
        _ if is_roomy(jvm) => 0.45,
        _ => 0.77,
    };
    for step in 0..STEPS {
        let time = end - (STEPS - 1 - step) * STEP_SECONDS;
        let wobble = noise(jvm as u64, step as u64);
        let used = (HEAP_MAX_BYTES * (fullness + 0.01 * (wobble - 0.5))).round();
        put(
            "heapwarden:heap_used_after_gc_bytes:5m",
            &labels,
            used,
            time,
        );
        put(
            "heapwarden:heap_max_bytes:5m",
            &labels,
            HEAP_MAX_BYTES,
            time,
        );
        let count = 1000.0 * (step + 1) as f64;
        put("heapwarden:samples_total:5m", &labels, count, time);
    }
    put(
        "heapwarden:sampling_interval_bytes:5m",
        &labels,
        65_536.0,
        end,
    );
    for number in 0..SERVICES {
        let name = service(jvm, number);
        let of = format!("{labels},account=\"{name}\"");
        let info = format!("{of},kind=\"service\",service=\"{name}\"");
        let has_history = is_pressed(jvm) || name.starts_with(TEAM);
        let steps = if has_history { STEPS } else { 1 };
        for step in 0..steps {
            let time = end - (steps - 1 - step) * STEP_SECONDS;
            let wobble = noise((jvm * SERVICES + number) as u64 | 1 << 40, step as u64);
            let live = ((40.0 + 0.5 * number as f64 + 2.0 * wobble) * MIB).round();
            put("heapwarden:account_live_bytes:5m", &of, live, time);
            put(
                "heapwarden:account_live_standard_error_bytes:5m",
                &of,
                (live * 65_536.0).sqrt(),
                time,
            );
        }
        put("heapwarden:account_info:5m", &info, 1.0, end);
    }
}

/// From 0 to 1, by splitmix64: no step tells of the next one.
fn noise(of: u64, step: u64) -> f64 {
    let mut bits = (of << 16 | step)
        .wrapping_add(1)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (bits ^ bits >> 31) as f64 / u64::MAX as f64
}
