//! Arrays that do not fit the rest of a thread's allocation buffer. Before JDK 25 the JVM samples some of them too
//! seldom and what refills a buffer too often (JDK-8356372); the agent sets a flag and thins samples against it.
//!
//! `HEAPWARDEN_TEST_TLAB_REFILL=keep` runs the agent without either, and the test fails.

use heapwarden_tests::jdk::{Collector, Vm, every_vm, is_long, on_each};
use heapwarden_tests::jvm::victim;
use heapwarden_tests::scrape::Accounts;
use heapwarden_tests::stats;
use heapwarden_tests::truth::Truth;
use std::sync::Mutex;

const INTERVAL_BYTES: u64 = 64 << 10;
/// Bytes held for each estimate, about: an error of 5 %.
const HELD_BYTES: usize = 24_000_000;
const SIZES: [usize; 4] = [512, 1024, 2048, 4096];
/// The JVM's own choice, and fixed ones.
const BUFFERS: [&str; 4] = ["", "2k", "16k", "128k"];
/// The first JDK whose sampler counts right.
const FIRST_RIGHT: u32 = 25;
/// Estimates of each case with `--long`.
const LONG_ROUNDS: usize = 4;
/// Buffers that small objects refill several times between two arrays: the rest that an array wastes is not the mean
/// of the thread, and its samples are thinned with the wrong one (docs/limitations.md).
const SMALL_BUFFER: &str = "2k";
/// How far such estimates may be off in the mean, as a factor: what the limitations say.
const MAX_OFF: f64 = 1.3;
/// The deviation of z-scores that is allowed for when their mean is judged. Those of small buffers have had 1.6.
const WIDEST: f64 = 1.5;

/// One way of allocating.
#[derive(Debug, Clone, Copy)]
struct Case {
    size: usize,
    threads: usize,
    /// Objects of 16 to 24 bytes after each array.
    small: usize,
}

impl Case {
    fn all() -> impl Iterator<Item = Case> {
        SIZES.into_iter().flat_map(|size| {
            [(1, 0), (8, 0), (1, 5), (8, size / 24)].map(|(threads, small)| Case {
                size,
                threads,
                small,
            })
        })
    }

    /// Whether the rest that its arrays waste is unknown.
    fn is_unsure(&self, buffer: &str) -> bool {
        buffer == SMALL_BUFFER && 24 * self.small > self.size / 2
    }

    fn order(&self) -> String {
        let each = self.size + 24 * self.small;
        let arrays = HELD_BYTES / each / self.threads;
        let length = self.size - 16;
        let batch = match self.small {
            0 => format!("bytes:{length}*{arrays}"),
            small => format!("bytes:{length}*1 object*{small} ").repeat(arrays),
        };
        format!("threads {} com.acme.orders {batch}", self.threads)
    }
}

/// The live bytes of a class of the account.
fn of_class(accounts: &Accounts, class: &str) -> f64 {
    let account = accounts.find("orders").expect("it is listed");
    let classes = account["classes"].as_array().expect("a list");
    let mut found = classes.iter().filter(|one| one["class"] == class);
    found
        .next()
        .and_then(|one| one["live_bytes"].as_f64())
        .unwrap_or(0.0)
}

/// Estimates of the account and of its arrays, in this order.
struct Estimate {
    is_unsure: bool,
    z: [f64; 2],
    of_truth: [f64; 2],
}

/// One estimate of each case and round.
fn estimates(vm: &Vm, buffer: &str, rounds: usize) -> Vec<Estimate> {
    let mut builder = victim(vm, "victim.Holder")
        .argument("com.acme.orders")
        .heap("512m")
        .policy(&format!(
            "[sampling]\ninterval = \"{}KiB\"\ncpu-budget = \"none\"\n\
             [[account]]\nname = \"orders\"\npackages = [\"com.acme.orders\"]\n",
            INTERVAL_BYTES >> 10
        ));
    // Buffers of two arrays waste more than `auto` allows.
    let refill = std::env::var("HEAPWARDEN_TEST_TLAB_REFILL").unwrap_or("always".to_owned());
    builder = builder.option(&format!("tlab-refill={refill}"));
    if !buffer.is_empty() {
        let size = format!("-XX:TLABSize={buffer}");
        builder = builder.flag(&size).flag("-XX:-ResizeTLAB");
    }
    let mut jvm = builder.start();
    let mut estimates = Vec::new();
    for case in (0..rounds).flat_map(|_| Case::all()) {
        let truth = Truth::of(&jvm.ask(&case.order()));
        let accounts = jvm.settled();
        let is_array = |(size, _): &&(u64, u64)| *size >= SIZES[0] as u64;
        let sizes: Vec<(u64, u64)> = truth.sizes.iter().filter(is_array).copied().collect();
        let arrays = Truth {
            bytes: sizes.iter().map(|(size, count)| size * count).sum(),
            objects: sizes.iter().map(|(_, count)| count).sum(),
            sizes,
        };
        let z = |live: f64, truth: &Truth| {
            (live - truth.bytes as f64) / truth.variance(INTERVAL_BYTES as f64).sqrt()
        };
        let name = format!("{vm}, buffer {buffer:?}, {case:?}");
        let of_account = accounts.holding("orders").live_bytes;
        let of_arrays = of_class(&accounts, "byte[]");
        let of_truth = [
            of_account / truth.bytes as f64,
            of_arrays / arrays.bytes as f64,
        ];
        let [account, array] = of_truth;
        eprintln!("{name}: {account:.3} of the truth, arrays {array:.3}");
        estimates.push(Estimate {
            is_unsure: case.is_unsure(buffer),
            z: [z(of_account, &truth), z(of_arrays, &arrays)],
            of_truth,
        });
        jvm.ask("drop");
        jvm.settled();
    }
    jvm.finish();
    estimates
}

/// G1 on each JDK that the agent corrects; with `--long` every VM.
fn vms() -> Vec<Vm> {
    let is_wanted =
        |vm: &&Vm| is_long() || vm.collector == Collector::G1 && vm.jdk.feature < FIRST_RIGHT;
    every_vm().iter().filter(is_wanted).cloned().collect()
}

/// The mean of all is the truth, whatever the buffers, but for the unsure ones: these are off by no more than is said.
#[test]
fn arrays_that_refill_buffers_are_counted_once() {
    let rounds = if is_long() { LONG_ROUNDS } else { 1 };
    let judged = Mutex::new(Vec::new());
    on_each(&vms(), |vm| {
        let all: Vec<Estimate> = (BUFFERS.iter())
            .flat_map(|buffer| estimates(vm, buffer, rounds))
            .collect();
        let (unsure, sure): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.is_unsure);
        let mut judged = judged.lock().expect("never held over a panic");
        for (at, whose) in ["account", "arrays"].into_iter().enumerate() {
            let z: Vec<f64> = sure.iter().map(|one| one.z[at]).collect();
            let (mean, deviation) = stats::mean_and_deviation(&z);
            let bound = stats::mean_bound(z.len()) * deviation.clamp(1.0, WIDEST);
            judged.push((
                mean.abs() <= bound,
                format!("{vm}, {whose}: mean {mean:+.3} (±{bound:.3}), deviation {deviation:.3}"),
            ));
            let of_truth: Vec<f64> = unsure.iter().map(|one| one.of_truth[at]).collect();
            let (mean, _) = stats::mean_and_deviation(&of_truth);
            judged.push((
                (1.0 / MAX_OFF..=MAX_OFF).contains(&mean),
                format!("{vm}, {whose}, unsure: {mean:.3} of the truth (by {MAX_OFF} at most)"),
            ));
        }
    });
    let judged = judged.into_inner().expect("never held over a panic");
    for (_, line) in &judged {
        eprintln!("{line}");
    }
    let broken: Vec<&String> = (judged.iter())
        .filter(|(is_right, _)| !is_right)
        .map(|(_, line)| line)
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}
