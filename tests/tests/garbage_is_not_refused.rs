//! Garbage never leads to a refusal: a service that holds 90 % of its limit and allocates at full speed is
//! never refused, and the collections that the agent asks for stay within their budget. With hardly
//! any budget, the service waits for less than half of its time, and each suspicion ends.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, Vm, every_vm, is_long, on_each, on_each_at_once, some_vms};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::scrape;

/// How long it churns; `--long` makes it a minute.
const SECONDS: u64 = 25;
const LONG_SECONDS: u64 = 60;
/// JVMs at a time: each has its time, however many share the machine.
const AT_ONCE: usize = 3;
/// 90 % of the limit, in a call for each of two threads.
const HELD_BYTES: u64 = (256 << 20) / 10 * 9;
/// The budget's share of wall time, and the credit it may spend ahead.
const SHARE: f64 = 0.05;
const CREDIT_SECONDS: f64 = 60.0;

const POLICY: &str = r#"
[enforcement]
mode = "enforce"

[[account]]
name = "tenant"
packages = ["com.acme.tenant"]
work = ["com.acme.tenant"]
limit = "256MiB"
"#;

/// Of the smallest budget: what a collection of this heap takes is soon used up.
const SCANTY: &str = "evidence-budget = \"0.1%\"";
/// How long a suspicion may last.
const SUSPICION: Duration = Duration::from_secs(15);

/// Pauses that the collector's log tells of.
#[derive(Debug, Default)]
struct Pauses {
    /// Full collections.
    full: Vec<String>,
    /// Milliseconds of the pauses of cycles that the agent asked for.
    ours_ms: Vec<f64>,
}

/// Reads `-Xlog:gc`: a cycle that the agent asked for begins with a pause for the cause
/// "G1 Periodic Collection" and has two more of the same number.
fn pauses(log: &Path) -> Pauses {
    let text = std::fs::read_to_string(log).expect("the JVM writes its log");
    let mut pauses = Pauses::default();
    let mut asked = false;
    for line in text.lines().filter(|line| line.contains("Pause")) {
        if line.contains("Pause Full") {
            pauses.full.push(line.to_owned());
        }
        if line.contains("Pause Young") {
            asked = line.contains("G1 Periodic Collection");
        }
        let cycle = line.contains("Remark") || line.contains("Cleanup");
        let milliseconds = line
            .rsplit(' ')
            .next()
            .and_then(|word| word.strip_suffix("ms"));
        if let (true, Some(ms)) = (
            asked && (cycle || line.contains("Pause Young")),
            milliseconds,
        ) {
            pauses
                .ours_ms
                .push(ms.parse().expect("a number of milliseconds"));
        }
    }
    pauses
}

/// The longest step of the evidence's seconds: a collection is added when it has ended, so no
/// single one took longer.
fn longest_step(address: SocketAddr, done: &AtomicBool) -> f64 {
    let mut longest = 0.0_f64;
    let mut before = None;
    // Once more after the end, for the step at it.
    let mut last = false;
    while !last {
        last = done.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(200));
        let spent = scrape::metrics(address).sum("heapwarden_evidence_seconds_total");
        longest = longest.max(spent - before.unwrap_or(spent));
        before = Some(spent);
    }
    longest
}

/// The longest suspicion. Each is told by its length when it ends, and those of one account follow each other; so
/// what a step of their sum tells is one of them, and what fits into the step.
fn longest_suspicion(address: SocketAddr, done: &AtomicBool) -> Duration {
    let sum = || scrape::metrics(address).sum("heapwarden_verdict_delay_seconds_sum");
    let (mut longest, mut before) = (0.0_f64, sum());
    let mut last = false;
    while !last {
        last = done.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(200));
        let now = sum();
        longest = longest.max(now - before);
        before = now;
    }
    Duration::from_secs_f64(longest)
}

/// Returns the share of their time that two threads waited, and the longest suspicion.
fn waits_for_evidence(vm: &Vm) -> (f64, Duration) {
    let seconds = if is_long() { LONG_SECONDS } else { SECONDS };
    let policy = POLICY.replace("mode =", &format!("{SCANTY}\nmode ="));
    let mut jvm = victim(vm, "victim.LimitedTenant")
        .heap("2g")
        .policy(&policy)
        .start();
    let answer = jvm.ask(&format!("leak 2 2000 {} 0", HELD_BYTES / 2));
    assert!(answer[0].starts_with("held"), "{vm}: {answer:?}");
    let waited = |jvm: &Jvm| jvm.metrics().sum("heapwarden_account_wait_seconds_total");
    let before = waited(&jvm);
    let done = AtomicBool::new(false);
    let address = jvm.address();
    let begun = Instant::now();
    let (answer, threads_seconds, longest) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| longest_suspicion(address, &done));
        let answer = jvm.ask(&format!("churn 2 2000 {seconds}"));
        let threads_seconds = 2.0 * begun.elapsed().as_secs_f64();
        // Ends the last suspicion.
        jvm.settled();
        done.store(true, Ordering::Relaxed);
        (
            answer,
            threads_seconds,
            watch.join().expect("it only reads"),
        )
    });
    assert!(
        answer[0].starts_with("churned"),
        "{vm}: {answer:?}\n{}",
        jvm.log()
    );
    let share = (waited(&jvm) - before) / threads_seconds;
    jvm.finish();
    (share, longest)
}

#[test]
fn a_lack_of_evidence_makes_nobody_wait() {
    on_each_at_once(AT_ONCE, &some_vms(1), |vm| {
        let (share, longest) = waits_for_evidence(vm);
        eprintln!(
            "{vm}: waited {:.1} % of the time, suspect for {longest:.1?} at most",
            share * 100.0
        );
        assert_eq!(share, 0.0, "{vm}: waited {share} of the time");
        assert!(longest < SUSPICION, "{vm}: suspect for {longest:?}");
    });
}

fn churns_unrefused(vm: &Vm) -> String {
    let seconds = if is_long() { LONG_SECONDS } else { SECONDS };
    let builder = victim(vm, "victim.LimitedTenant").heap("2g").policy(POLICY);
    let log = builder.folder().join("gc.log");
    let mut jvm = builder
        .flag(&format!("-Xlog:gc:file={}", log.display()))
        .start();
    let answer = jvm.ask(&format!("leak 2 2000 {} 0", HELD_BYTES / 2));
    assert!(answer[0].starts_with("held"), "{vm}: {answer:?}");
    let begun = Instant::now();
    let done = AtomicBool::new(false);
    let address = jvm.address();
    let (answer, longest) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| longest_step(address, &done));
        let answer = jvm.ask(&format!("churn 2 2000 {seconds}"));
        done.store(true, Ordering::Relaxed);
        (answer, watch.join().expect("it only reads"))
    });
    assert!(
        answer[0].starts_with("churned"),
        "{vm}: {answer:?}\n{}",
        jvm.log()
    );
    let wall = begun.elapsed().as_secs_f64();
    let accounts = jvm.accounts();
    let account = accounts.find("tenant").expect("it is listed");
    assert_eq!(account["refusals_total"], 0, "{vm}: {account}");
    assert_ne!(account["state"], "over", "{vm}: {account}");
    let metrics = jvm.metrics();
    let spent = metrics.sum("heapwarden_evidence_seconds_total");
    let collections = metrics.sum("heapwarden_evidence_collections_total");
    // While they filled the account, too.
    let waited = metrics.sum("heapwarden_account_wait_seconds_total");
    assert_eq!(
        waited,
        0.0,
        "{vm}: a service below its limit waits\n{}",
        jvm.log()
    );
    let pauses = pauses(&log);
    jvm.finish();
    // One collection may go beyond what is left of the credit, for as long as it takes here.
    let most = SHARE * (wall + CREDIT_SECONDS) + longest;
    assert!(spent <= most, "{vm}: {spent} s of evidence in {wall} s");
    if vm.collector == Collector::G1 {
        assert_eq!(pauses.full, Vec::<String>::new(), "{vm}");
    }
    format!(
        "{vm}: {} GB churned, {collections} collections asked for, {spent:.2} s; {} pauses of ours, longest {:.1} ms; {} full",
        answer[0]
            .trim_start_matches("churned ")
            .parse::<u64>()
            .unwrap_or(0)
            >> 30,
        pauses.ours_ms.len(),
        pauses.ours_ms.iter().fold(0.0, |a: f64, &b| a.max(b)),
        pauses.full.len(),
    )
}

#[test]
fn a_service_at_nine_tenths_of_its_limit_churns_unrefused() {
    let table = Mutex::new(Vec::new());
    on_each_at_once(AT_ONCE, &some_vms(2), |vm| {
        let line = churns_unrefused(vm);
        eprintln!("{line}");
        table.lock().expect("no panic holds it").push(line);
    });
}

/// The limit comes and goes while the account makes garbage; what is known of it begins anew each time. Half of the heap
/// is less than what it would hold in a second if it kept what it makes, so a suspicion that takes it for a leak
/// begins duress at once.
fn churns_while_limits_come_and_go(vm: &Vm) {
    const LIMITED: &str = "limit = \"512MiB\"";
    let limited = POLICY.replace("limit = \"256MiB\"", LIMITED);
    let unlimited = limited.replace(LIMITED, "");
    let builder = victim(vm, "victim.LimitedTenant")
        .heap("1g")
        .policy(&unlimited);
    let path = builder.policy_path();
    let mut jvm = builder.start();
    let answer = jvm.ask(&format!("leak 2 2000 {HELD_BYTES} 0"));
    assert!(answer[0].starts_with("held"), "{vm}: {answer:?}");
    let done = AtomicBool::new(false);
    let reloads = AtomicUsize::new(0);
    let address = jvm.address();
    let answer = std::thread::scope(|scope| {
        let edits = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_secs(2));
                let policy = [&limited, &unlimited][reloads.load(Ordering::Relaxed) % 2];
                let generation = || scrape::metrics(address).sum("heapwarden_policy_generation");
                let before = generation();
                std::fs::write(&path, policy).expect("the folder is the test's");
                poll(PATIENCE, || (generation() > before).then_some(())).expect("it is reloaded");
                reloads.fetch_add(1, Ordering::Relaxed);
            }
        });
        // Until the limit has come and gone: a busy machine takes its time over a reload.
        let answer = loop {
            let answer = jvm.ask("churn 2 2000 15");
            let is_enough = reloads.load(Ordering::Relaxed) >= 3 || edits.is_finished();
            if is_enough || !answer[0].starts_with("churned") {
                break answer;
            }
        };
        done.store(true, Ordering::Relaxed);
        edits.join().expect("each reload succeeds");
        answer
    });
    assert!(answer[0].starts_with("churned"), "{vm}: {answer:?}");
    let reloads = reloads.into_inner();
    assert!(reloads >= 3, "{vm}: {reloads} reloads");
    let waited = jvm.metrics().sum("heapwarden_account_wait_seconds_total");
    assert_eq!(waited, 0.0, "{vm}: it waits\n{}", jvm.log());
    let log = jvm.log();
    assert!(!log.contains("the heap is short"), "{vm}: {log}");
    jvm.finish();
}

#[test]
fn a_limit_by_a_reload_finds_no_leak_in_a_maker_of_garbage() {
    let vms = every_vm().iter().rev();
    let vms: Vec<Vm> = vms
        .filter(|vm| matches!(vm.collector, Collector::G1 | Collector::Parallel))
        .take(2)
        .cloned()
        .collect();
    on_each(&vms, churns_while_limits_come_and_go);
}
