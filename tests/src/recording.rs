//! Days of a fleet that never ran, as Prometheus would have recorded them.

use crate::command;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Longest that promtool may take over a fleet's days.
const LIMIT: Duration = Duration::from_secs(300);

/// Samples in the form that `promtool` makes blocks from.
#[derive(Debug, Default)]
pub struct Recording {
    openmetrics: String,
}

/// An account of a JVM: its name, its kind as the agent says it, and what it holds.
pub struct Account {
    /// As in the metrics.
    pub name: &'static str,
    /// `service`, `package`, …
    pub kind: &'static str,
    /// Live MiB, so many days after the beginning.
    pub live_mib: fn(f64) -> f64,
}

/// A JVM of a fleet.
pub struct Jvm<'a> {
    /// Its labels.
    pub job: &'a str,
    /// Likewise.
    pub instance: &'a str,
    /// Maximum heap.
    pub heap_max_mib: f64,
    /// What it holds.
    pub accounts: &'a [Account],
}

const MIB: f64 = 1_048_576.0;
/// As by default; an account's standard error follows from it.
const SAMPLING_INTERVAL_BYTES: f64 = 65_536.0;

impl Recording {
    /// Adds a JVM, sampled at these times (seconds since 1970) with noise of its own. `begin` is
    /// day 0 of what its accounts hold.
    pub fn jvm(&mut self, jvm: &Jvm<'_>, begin: i64, times: impl Iterator<Item = i64> + Clone) {
        let labels = format!("job=\"{}\",instance=\"{}\"", jvm.job, jvm.instance);
        let mut noise = Noise::of(jvm.instance);
        for (number, time) in times.enumerate() {
            let days = (time - begin) as f64 / 86_400.0;
            let mut held = 0.0;
            for account in jvm.accounts {
                let live = ((account.live_mib)(days) * MIB * noise.around(0.01)).round();
                held += live;
                let of = format!("{labels},account=\"{}\"", escaped(account.name));
                let error = (live * SAMPLING_INTERVAL_BYTES).sqrt();
                self.sample("heapwarden_account_live_bytes", &of, live, time);
                self.sample("heapwarden_account_charged_bytes", &of, live * 1.2, time);
                self.sample("heapwarden_account_standard_error_bytes", &of, error, time);
                let info = format!("{of},kind=\"{}\",service=\"\"", account.kind);
                self.sample("heapwarden_account_info", &info, 1.0, time);
            }
            let max = jvm.heap_max_mib * MIB;
            self.sample("heapwarden_heap_max_bytes", &labels, max, time);
            self.sample("heapwarden_heap_used_after_gc_bytes", &labels, held, time);
            let interval = SAMPLING_INTERVAL_BYTES;
            self.sample(
                "heapwarden_sampling_interval_bytes",
                &labels,
                interval,
                time,
            );
            let samples = (number * 1000) as f64;
            self.sample("heapwarden_samples_total", &labels, samples, time);
        }
    }

    fn sample(&mut self, metric: &str, labels: &str, value: f64, time: i64) {
        writeln!(self.openmetrics, "{metric}{{{labels}}} {value} {time}")
            .expect("a string takes everything");
    }

    /// Writes the blocks that a Prometheus with its data in `folder` will find.
    ///
    /// # Panics
    /// If `promtool` is missing, or does not take the samples.
    pub fn write(&self, folder: &Path) {
        let file = folder.join("recording.om");
        std::fs::write(&file, format!("{}# EOF\n", self.openmetrics))
            .expect("the case's folder is writable");
        let mut promtool = Command::new("promtool");
        promtool
            .args(["tsdb", "create-blocks-from", "openmetrics", "--quiet"])
            .args([&file, &folder.join("tsdb")]);
        let made = command::run(&mut promtool, LIMIT);
        assert!(made.status.success(), "{}{}", made.stdout, made.stderr);
    }
}

/// A label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// Marsaglia's xorshift, seeded by a name.
struct Noise(u64);

impl Noise {
    fn of(name: &str) -> Self {
        let seed = name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        Self(seed | 1)
    }

    /// 1, more or less by this share at the most.
    fn around(&mut self, share: f64) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        1.0 + share * (2.0 * (self.0 >> 11) as f64 / (1_u64 << 53) as f64 - 1.0)
    }
}
