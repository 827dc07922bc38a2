//! Days of a fleet that never ran, as Prometheus would have recorded them.

use crate::command;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Longest that promtool may take over a fleet's days.
const LIMIT: Duration = Duration::from_secs(900);

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
    /// Days after the beginning that it was there first.
    pub from_day: f64,
    /// Live MiB, so many days after the beginning.
    pub live_mib: fn(f64) -> f64,
    /// Live MiB of the scopes beneath it.
    pub beneath_mib: f64,
}

/// A service that is there from the beginning.
#[must_use]
pub const fn service(name: &'static str, live_mib: fn(f64) -> f64) -> Account {
    Account {
        name,
        kind: "service",
        from_day: 0.0,
        live_mib,
        beneath_mib: 0.0,
    }
}

/// A JVM of a fleet.
pub struct Jvm<'a> {
    /// Its labels.
    pub job: &'a str,
    /// Likewise.
    pub instance: &'a str,
    /// Maximum heap.
    pub heap_max_mib: f64,
    /// Days after the beginning between which it was down, once.
    pub down_days: Option<(f64, f64)>,
    /// The services and other accounts that hold memory in it.
    pub accounts: &'a [Account],
}

const MIB: f64 = 1_048_576.0;
/// As by default; an account's standard error follows from it.
const SAMPLING_INTERVAL_BYTES: f64 = 65_536.0;
/// Charges for each byte that is live: the rest is garbage.
const CHARGED_PER_LIVE: f64 = 2.0;
/// Samples counted from one time to the next.
const SAMPLES: u32 = 1000;

impl Recording {
    /// Adds a JVM, sampled at these times (seconds since 1970) with noise of its own, as large as
    /// sampling has it. `begin` is day 0 of what its accounts hold.
    pub fn jvm(&mut self, jvm: &Jvm<'_>, begin: i64, times: impl Iterator<Item = i64>) {
        let labels = format!("job=\"{}\",instance=\"{}\"", jvm.job, jvm.instance);
        let mut noise = Noise::of(jvm.instance);
        let mut samples = 0;
        for time in times {
            let days = (time - begin) as f64 / 86_400.0;
            if jvm
                .down_days
                .is_some_and(|(from, to)| (from..to).contains(&days))
            {
                samples = 0;
                continue;
            }
            let mut held = 0.0;
            for account in jvm.accounts.iter().filter(|one| days >= one.from_day) {
                let truth = (account.live_mib)(days) * MIB;
                let error = |bytes: f64| (bytes * SAMPLING_INTERVAL_BYTES).sqrt();
                let live = (truth + error(truth) * noise.next()).max(0.0).round();
                held += live;
                let charged = live * CHARGED_PER_LIVE;
                let of_charged = error(truth * CHARGED_PER_LIVE);
                let name = escaped(account.name);
                let of = format!("{labels},account=\"{name}\"");
                self.sample("heapwarden_account_live_bytes", &of, live, time);
                self.sample("heapwarden_account_charged_bytes", &of, charged, time);
                let metric = "heapwarden_account_standard_error_bytes";
                self.sample(metric, &of, of_charged, time);
                if account.beneath_mib > 0.0 {
                    let whole = live + account.beneath_mib * MIB;
                    held += account.beneath_mib * MIB;
                    for (part, value) in [
                        ("live_bytes", whole),
                        ("charged_bytes", whole * CHARGED_PER_LIVE),
                        ("standard_error_bytes", error(whole * CHARGED_PER_LIVE)),
                    ] {
                        let metric = format!("heapwarden_account_tree_{part}");
                        self.sample(&metric, &of, value, time);
                    }
                }
                let service = if account.kind == "service" { &name } else { "" };
                let info = format!("{of},kind=\"{}\",service=\"{service}\"", account.kind);
                self.sample("heapwarden_account_info", &info, 1.0, time);
            }
            for (metric, value) in [
                ("heapwarden_heap_max_bytes", jvm.heap_max_mib * MIB),
                ("heapwarden_heap_used_after_gc_bytes", held),
                (
                    "heapwarden_sampling_interval_bytes",
                    SAMPLING_INTERVAL_BYTES,
                ),
                ("heapwarden_samples_total", f64::from(samples)),
            ] {
                self.sample(metric, &labels, value, time);
            }
            samples += SAMPLES;
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

    /// Around 0, with a standard deviation of 1.
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        12_f64.sqrt() * ((self.0 >> 11) as f64 / (1_u64 << 53) as f64 - 0.5)
    }
}
