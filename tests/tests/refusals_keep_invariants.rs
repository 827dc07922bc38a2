//! Invariants of Java code, row by row: an error out of an allocation breaks each of these if it is thrown wherever it
//! is due, and none where the agent throws it.
//!
//! Each row runs in a process of its own, first without refusals (the victim itself is right), then
//! with `test-refuse=naive` (every sample of the tenant throws; this shows that the row can fail), then
//! with `test-refuse=storm` (every sample is due, and thrown where the agent finds it safe). The
//! interval is exact, so that every allocation of the tenant's is a sample and nothing depends on
//! chance; only the row of a map's growth lies behind allocations that would all be refused first.
//! What an error breaks does not depend on the collector: G1 stands for all.
//!
//! `ReferenceQueue` has no row of its own: on JDK 17 and 25 it allocates nothing under its caller.

use heapwarden_tests::command::PATIENCE;
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, is_long, on_each};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::scrape::Metrics;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const TRIALS: u64 = 20;
const EXACT: &str = "exact";
const LIMIT: &str = "limit = \"64KiB\"\n";

/// The effect of the naive throw on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naive {
    /// Something stays broken after the refusals have ended.
    Breaks,
    /// The caller's action fails, and succeeds when it is tried again.
    Interrupts,
    /// Only what the tenant's own code does fails: the row is about what must stay as it is.
    FailsAsItShould,
}

/// The effect of the storm on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storm {
    /// Not one refusal: all are put off, among them some for this reason.
    Defers(&'static str),
    /// The tenant's own allocations are refused.
    Refuses,
}

#[derive(Debug, Clone, Copy)]
struct Outcome {
    thrown: u64,
    broken: u64,
}

/// Nobody has a limit, or the tenant.
fn policy(interval: &str, limit: &str) -> String {
    format!(
        "[sampling]\ninterval = \"{interval}\"\ncpu-budget = \"none\"\n[enforcement]\nmode = \"enforce\"\n\
         [[account]]\nname = \"tenant\"\npackages = [\"victim.tenant.*\"]\nwork = [\"victim.tenant.*\"]\n{limit}\
         [[account]]\nname = \"observer\"\npackages = [\"victim.invariants.*\"]\n"
    )
}

/// A program that waits for its row, and how to change its policy.
struct Program {
    jvm: Jvm,
    policy: PathBuf,
    interval: &'static str,
}

impl Program {
    /// With the agent told to refuse by `test_refuse`, or without an agent.
    fn start(vm: &Vm, interval: &'static str, test_refuse: Option<&str>) -> Self {
        let mut builder = victim(vm, "victim.Invariants")
            .policy(&policy(interval, ""))
            .flag("--add-opens=java.base/java.util.concurrent=ALL-UNNAMED");
        builder = match test_refuse {
            Some(mode) => builder.option(&format!("test-refuse={mode}")),
            None => builder.without_agent(),
        };
        Self {
            policy: builder.policy_path(),
            jvm: builder.start(),
            interval,
        }
    }

    fn put_in_force(&self, limit: &str) {
        fs::write(&self.policy, policy(self.interval, limit))
            .expect("the case's folder is writable");
    }

    fn prepare(&mut self, row: &str) {
        self.jvm.ask(&format!("prepare {row} {TRIALS}"));
    }

    /// From now on the tenant is refused.
    fn arm(&mut self) {
        self.put_in_force(LIMIT);
        self.jvm.ask("arm");
    }

    /// Runs the trials.
    fn run(&mut self) -> u64 {
        number(&self.jvm.ask("run"), "thrown ")
    }

    /// Ends the refusals.
    fn calm(&mut self) {
        self.put_in_force("");
        self.jvm.ask("calm");
    }

    /// How many trials left something broken, and what.
    fn check(&mut self) -> (u64, Vec<String>) {
        let answer = self.jvm.ask("check");
        (number(&answer, "broken "), answer)
    }

    /// Reads the agent's counts after half a second: a snapshot may be a quarter of a second old.
    fn counted(&self) -> Counted {
        std::thread::sleep(Duration::from_millis(500));
        Counted::of(&self.jvm.metrics())
    }
}

/// The number after `word` in an answer.
fn number(answer: &[String], word: &str) -> u64 {
    answer
        .iter()
        .find_map(|line| line.strip_prefix(word)?.trim().parse().ok())
        .unwrap_or_else(|| panic!("no {word} in {answer:?}"))
}

/// Counts of the tenant's charges that were due: those that were refused, and those put off, by reason.
#[derive(Debug, Clone, Default)]
struct Counted {
    refusals: f64,
    deferred: BTreeMap<String, f64>,
}

impl Counted {
    fn of(metrics: &Metrics) -> Self {
        let deferred = metrics
            .series("heapwarden_account_deferred_refusals_total")
            .filter(|(labels, _)| labels["account"] == "tenant")
            .map(|(labels, count)| (labels["reason"].clone(), count))
            .collect();
        let refusals = metrics
            .of_account("heapwarden_account_refusals_total", "tenant")
            .unwrap_or_default();
        Self { refusals, deferred }
    }

    fn and(mut self, more: &Self) -> Self {
        self.refusals += more.refusals;
        for (reason, count) in &more.deferred {
            *self.deferred.entry(reason.clone()).or_default() += count;
        }
        self
    }

    fn since(mut self, before: &Self) -> Self {
        self.refusals -= before.refusals;
        for (reason, count) in &mut self.deferred {
            *count -= before.deferred.get(reason).copied().unwrap_or_default();
        }
        self.deferred.retain(|_, count| *count != 0.0);
        self
    }
}

/// A row under refusals, from its preparation to its end: once, and then until `shown` is counted.
/// What a thread meets for the first time is put off until the agent knows it, and on a busy machine
/// that may take longer than all trials of a row.
fn rain(
    vm: &Vm,
    interval: &'static str,
    test_refuse: &str,
    row: &str,
    shown: impl Fn(&Counted) -> bool,
) -> (Outcome, Counted) {
    let mut program = Program::start(vm, interval, Some(test_refuse));
    let begun = Instant::now();
    let mut outcome = Outcome {
        thrown: 0,
        broken: 0,
    };
    let mut counted = Counted::default();
    loop {
        program.prepare(row);
        program.arm();
        let before = program.counted();
        outcome.thrown += program.run();
        counted = counted.and(&program.counted().since(&before));
        program.calm();
        // Of all rounds so far.
        let (broken, what) = program.check();
        outcome.broken = broken;
        eprintln!("{vm} {test_refuse} {row}: {outcome:?}, {what:?}, {counted:?}");
        if shown(&counted) || begun.elapsed() > PATIENCE {
            break;
        }
    }
    program.jvm.finish();
    (outcome, counted)
}

/// The victim itself is right.
fn assert_sound_without_agent(vm: &Vm, row: &str) {
    let mut program = Program::start(vm, EXACT, None);
    program.prepare(row);
    let thrown = program.run();
    let (broken, what) = program.check();
    assert_eq!((thrown, broken), (0, 0), "without any refusal: {what:?}");
    program.jvm.finish();
}

fn assert_row(row: &str, naive: Naive, storm: Storm) {
    assert_row_at(EXACT, row, naive, storm);
}

/// Whether this JDK is the one that the row is run on without the agent and with naive refusals, which
/// show that the row can fail: one JDK for each row, all of them in turn; every one with `--long`.
fn shows_that_it_can_fail(vm: &Vm, row: &str) -> bool {
    let turn: usize = row.bytes().map(usize::from).sum();
    let jdks = every_jdk_with(Collector::G1);
    is_long() || jdks[turn % jdks.len()].jdk == vm.jdk
}

fn assert_row_at(interval: &'static str, row: &str, naive: Naive, storm: Storm) {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let refused = |counted: &Counted| counted.refusals > 0.0;
        if shows_that_it_can_fail(vm, row) {
            assert_sound_without_agent(vm, row);
            let (outcome, counted) = rain(vm, interval, "naive", row, refused);
            assert!(refused(&counted), "naive: {counted:?}");
            let as_expected = match naive {
                Naive::Breaks => outcome.broken > 0,
                Naive::Interrupts => outcome.thrown > 0 && outcome.broken == 0,
                Naive::FailsAsItShould => outcome.broken == 0,
            };
            assert!(as_expected, "naive: {outcome:?}");
        }

        let shown = |counted: &Counted| match storm {
            Storm::Defers(reason) => counted.deferred.contains_key(reason),
            Storm::Refuses => refused(counted),
        };
        let (outcome, counted) = rain(vm, interval, "storm", row, shown);
        assert_eq!(outcome.broken, 0, "storm: {outcome:?} {counted:?}");
        assert!(shown(&counted), "storm: {counted:?}");
        if let Storm::Defers(_) = storm {
            assert_eq!(outcome.thrown, 0, "storm: {counted:?}");
        }
    });
}

#[test]
fn a_class_initialiser_is_never_refused() {
    assert_row("class-initialiser", Naive::Breaks, Storm::Defers("clinit"));
}

#[test]
fn a_lambda_links_at_its_first_use() {
    assert_row("lambda", Naive::Interrupts, Storm::Defers("linkage"));
}

#[test]
fn a_concatenation_links_at_its_first_use() {
    assert_row("concatenation", Naive::Interrupts, Storm::Refuses);
}

#[test]
fn a_dynamic_constant_is_computed() {
    assert_row(
        "dynamic-constant",
        Naive::Interrupts,
        Storm::Defers("linkage"),
    );
}

#[test]
fn a_class_is_found_though_its_loader_allocates_first() {
    assert_row(
        "find-class-before",
        Naive::Interrupts,
        Storm::Defers("class-loading"),
    );
}

#[test]
fn a_class_is_found_though_its_loader_allocates_last() {
    assert_row(
        "find-class-after",
        Naive::Interrupts,
        Storm::Defers("class-loading"),
    );
}

#[test]
fn a_loader_that_turns_errors_into_class_not_found_finds_its_class() {
    assert_row(
        "find-class-converted",
        Naive::Breaks,
        Storm::Defers("class-loading"),
    );
}

#[test]
fn a_task_at_a_fixed_rate_goes_on() {
    assert_row("fixed-rate", Naive::Breaks, Storm::Defers("timer"));
}

#[test]
fn a_timer_lives() {
    assert_row("timer", Naive::Breaks, Storm::Defers("timer"));
}

/// A submitted task that is refused has failed, which its future tells: so it is refused.
#[test]
fn a_submitted_task_tells_of_its_refusal() {
    assert_row("submit", Naive::FailsAsItShould, Storm::Refuses);
}

#[test]
fn a_future_task_completes() {
    assert_row("future-task", Naive::Breaks, Storm::Defers("completion"));
}

#[test]
fn a_completable_future_completes() {
    assert_row(
        "completable-future",
        Naive::Breaks,
        Storm::Defers("completion"),
    );
}

#[test]
fn a_map_that_computes_if_absent_stays_usable() {
    assert_row("compute-if-absent", Naive::FailsAsItShould, Storm::Refuses);
}

/// The interval lets most allocations pass, so that some of the refused ones are deep in a growth.
#[test]
fn a_map_grows_on() {
    assert_row_at("512B", "resize", Naive::Breaks, Storm::Defers("jdk"));
}

#[test]
fn a_read_lock_is_let_go() {
    assert_row("read-lock", Naive::Breaks, Storm::Defers("locks"));
}

#[test]
fn a_contended_lock_is_taken_and_let_go() {
    assert_row("lock", Naive::FailsAsItShould, Storm::Defers("locks"));
}

#[test]
fn a_condition_is_awaited() {
    assert_row("condition", Naive::FailsAsItShould, Storm::Defers("locks"));
}

/// The error leaves the monitor as it passes.
#[test]
fn a_monitor_is_let_go() {
    assert_row("monitor", Naive::FailsAsItShould, Storm::Refuses);
}

#[test]
fn a_cleaner_cleans() {
    assert_row("cleaner", Naive::Breaks, Storm::Defers("references"));
}

#[test]
fn a_finalizer_runs_to_its_end() {
    assert_row("finalizer", Naive::Breaks, Storm::Defers("references"));
}

#[test]
fn an_uncaught_exception_is_told() {
    assert_row("uncaught-handler", Naive::Breaks, Storm::Defers("uncaught"));
}

#[test]
fn a_record_reaches_its_handler() {
    assert_row("log-handler", Naive::Breaks, Storm::Defers("logging"));
}

#[test]
fn a_record_reaches_the_log() {
    assert_row("logger", Naive::Breaks, Storm::Defers("logging"));
}

#[test]
fn an_error_is_not_hidden_by_its_finally_block() {
    assert_row("finally", Naive::Breaks, Storm::Defers("handler"));
}

#[test]
fn an_error_is_not_hidden_by_the_close_of_a_resource() {
    assert_row("close", Naive::Breaks, Storm::Defers("handler"));
}

/// Work that a hook leaves undone is done by nobody: here the file that it writes.
#[test]
fn a_shutdown_hook_runs_to_its_end() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        for (test_refuse, written) in [(None, true), (Some("naive"), false), (Some("storm"), true)]
        {
            let mut program = Program::start(vm, EXACT, test_refuse);
            program.prepare("shutdown-hook");
            if test_refuse.is_some() {
                program.arm();
            }
            let folder = program.jvm.folder().to_owned();
            program.jvm.tell("exit");
            let status = program.jvm.end_within(PATIENCE);
            assert!(status.success(), "{status}:\n{}", program.jvm.log());
            let text = fs::read_to_string(folder.join("farewell.txt")).unwrap_or_default();
            assert_eq!(
                text == "goodbye",
                written,
                "{test_refuse:?}: {text:?}\n{}",
                program.jvm.log()
            );
        }
    });
}
