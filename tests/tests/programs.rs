//! Programs that are started from a class path have an account, and limits bind it: programs of the tests,
//! and Kafka's broker.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use heapwarden_harness::ports;
use heapwarden_harness::process::Guard;
use heapwarden_harness::run_file;
use heapwarden_tests::command::{self, poll};
use heapwarden_tests::java;
use heapwarden_tests::jdk::{
    Collector, compiler, every_jdk, every_jdk_with, on_each, one_jdk_with,
};
use heapwarden_tests::jvm::victim;
use heapwarden_tests::scrape;
use heapwarden_tests::server::{Installation, installed};
use heapwarden_tests::truth::Truth;

const MIB: u64 = 1 << 20;
const EXACT: &str = "[sampling]\ninterval = \"exact\"\n";
/// Longest that a verdict, and a server's start, may take on a busy machine.
const SOON: Duration = Duration::from_secs(120);

#[test]
fn a_program_has_an_account_of_its_main_class_and_the_policy_renames_it() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let renamed = format!(
            "{EXACT}[[account]]\nname = \"victim.renamed\"\nservice = \"victim.Hold*\"\nlimit = \"99MiB\"\n"
        );
        for (policy, account) in [(EXACT, "victim.Holder"), (&renamed, "victim.renamed")] {
            let mut jvm = victim(vm, "victim.Holder")
                .argument("com.acme.orders")
                .policy(policy)
                .start();
            let before = jvm.settled().holding(account).live_bytes;
            let truth = Truth::of(&jvm.ask("hold com.acme.orders bytes:1000*20000"));
            let accounts = jvm.settled();
            let came = accounts.holding(account).live_bytes - before;
            let nobodys = accounts.holding("_unaccounted").live_bytes;
            // The JVM's own threads move it a little.
            let truth = truth.bytes as f64;
            assert!(
                (came - truth).abs() < 0.01 * truth,
                "{came} of {truth}: {}",
                accounts.brief()
            );
            assert!(nobodys < 0.1 * truth, "{}", accounts.brief());
            let listed = accounts.find(account).expect("listed");
            assert_eq!(
                (&listed["kind"], &listed["service"]),
                (&"service".into(), &"victim.Holder".into())
            );
            jvm.finish();
        }
    });
}

#[test]
fn a_limit_for_all_services_refuses_a_jar_s_leak() {
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let jar = folder.path().join("victims-1.2.jar");
        let made = Command::new(compiler().program("jar"))
            .arg("--create")
            .arg("--file")
            .arg(&jar)
            .arg("-C")
            .arg(java::classes().victims())
            .arg(".")
            .status()
            .expect("jar runs");
        assert!(made.success());
        let policy = "[sampling]\ncpu-budget = \"none\"\n\n[enforcement]\nmode = \"enforce\"\n[[account]]\nservice = \"*\"\nlimit = \"64MiB\"\nthrow = \"error\"\nwork = [\"com.acme.tenant\"]\n";
        let mut jvm = victim(vm, "victim.LimitedTenant")
            .class_path(jar.display().to_string())
            .heap("512m")
            .policy(policy)
            .start();
        // Bounded by bytes until the verdict, which may come late on a busy machine.
        let drip = |most: u64| format!("drip 10000 {} {}", most * MIB, 40 * MIB);
        let mut answer = jvm.ask(&drip(100));
        if answer[0].starts_with("refused nothing") {
            jvm.until(SOON, "the account is over", |accounts| {
                accounts.is_in_state("victims", "over")
            });
            answer = jvm.ask(&drip(300));
        }
        assert!(
            answer[0].starts_with("refused dev.heapwarden.AllocationRefusedError"),
            "{answer:?}"
        );
        // The jar without its version.
        jvm.until(SOON, "the refusal is counted", |accounts| {
            (accounts.find("victims"))
                .is_some_and(|account| account["refusals_total"].as_u64() >= Some(1))
        });
        jvm.finish();
    });
}

/// A minute after the start the log tells of limits that bind nobody, once.
#[test]
fn a_limit_that_binds_nobody_is_told_once() {
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let policy = "[[account]]\nname = \"shop\"\nservice = \"/shop\"\nlimit = \"9MiB\"\n";
        let mut jvm = victim(vm, "victim.Holder")
            .argument("com.acme.orders")
            .policy(policy)
            .start();
        let told = "the limit of account shop (service \"/shop\") binds nobody";
        assert!(!jvm.log().contains(told), "applications may still start");
        jvm.ask("hold com.acme.orders bytes:1000*2000");
        let is_told = poll(SOON, || jvm.log().contains(told).then_some(()));
        assert!(is_told.is_some(), "{}", jvm.log());
        std::thread::sleep(Duration::from_secs(12));
        assert_eq!(jvm.log().matches(told).count(), 1, "{}", jvm.log());
        jvm.finish();
    });
}

/// On generational ZGC the charge contains all garbage since the latest major collection. Class initialisers
/// that allocate beyond the overdraft then are no deferred refusals: nobody is over.
#[test]
fn garbage_of_an_account_far_below_its_limit_is_no_deferred_refusal() {
    // The newest JDK's ZGC is generational.
    let vm = every_jdk_with(Collector::Z).pop().expect("never empty");
    on_each(&[vm], |vm| {
        let policy = "[enforcement]\nmode = \"enforce\"\nevidence-budget = \"0.01%\"\n\
                      [[account]]\nservice = \"*\"\nlimit = \"25%\"\n";
        let mut jvm = victim(vm, "victim.Initialisers")
            .heap("512m")
            .policy(policy)
            .start();
        let mut was_beyond = false;
        let mut account = serde_json::Value::Null;
        for number in 0..4 {
            assert_eq!(
                jvm.ask(&format!("churn {number} 400")),
                ["churned"],
                "{}",
                jvm.log()
            );
            account = jvm
                .accounts()
                .find("victim.Initialisers")
                .expect("listed")
                .clone();
            was_beyond |= account["charged_bytes"].as_u64() > account["limit_bytes"].as_u64();
        }
        assert!(
            was_beyond,
            "the charge was never beyond the limit: {account}"
        );
        assert_ne!(account["state"], "over", "{account}");
        assert_eq!(account["deferred_total"], 0, "{account}");
        assert_eq!(account["refusals_total"], 0, "{account}");
        jvm.finish();
    });
}

/// Kafka 3.9 as its script starts it: the main class in one of many jars. It does not support the newest JDK.
#[test]
fn kafka_has_an_account_and_a_limit_for_all_services_binds_it() {
    let site = Installation::new();
    let libraries = installed().join("kafka/libs");
    let class_path: Vec<String> = jars(&libraries);
    let class_path = class_path.join(":");
    let properties = site.folder().join("server.properties");
    let (broker, controller) = (site.http_port(), ports::free());
    let settings = format!(
        "process.roles=broker,controller\nnode.id=1\n\
         controller.quorum.voters=1@127.0.0.1:{controller}\n\
         listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}\n\
         controller.listener.names=CONTROLLER\noffsets.topic.replication.factor=1\nlog.dirs={}\n",
        site.folder().join("logs").display()
    );
    fs::write(&properties, settings).expect("writable");
    let java = every_jdk()[0].program("java");
    let formatted = command::run(
        Command::new(&java)
            .args([
                "-Xmx128m",
                "-cp",
                &class_path,
                "kafka.tools.StorageTool",
                "format",
            ])
            .args(["-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c"])
            .arg(&properties),
        SOON,
    );
    assert!(formatted.status.success(), "{formatted:?}");
    // Observed, so that the broker lives: its threads are its own loops.
    let policy = "[[account]]\nservice = \"*\"\nlimit = \"8MiB\"\n";
    let log = site.folder().join("server.log");
    let out = fs::File::create(&log).expect("writable");
    let mut command = Command::new(&java);
    command
        .args(site.jvm_flags_with(policy))
        .args(["-cp", &class_path, "kafka.Kafka"])
        .arg(&properties)
        .current_dir(site.folder())
        .stdout(out.try_clone().expect("a file handle can be doubled"))
        .stderr(out);
    let mut guard = Guard::start(&mut command).expect("a JDK has java");
    let read = || fs::read_to_string(&log).unwrap_or_default();
    let address = poll(SOON, || run_file::listener(&site.folder().join("run.json")));
    let address = address.unwrap_or_else(|| panic!("no run file:\n{}", read()));
    let bound = poll(SOON, || {
        assert!(guard.ended().is_none(), "{}", read());
        let accounts = scrape::accounts(address);
        let broker = accounts.find("kafka_2.13")?;
        let count = |key: &str| broker[key].as_u64().unwrap_or_default();
        let is_bound =
            broker["state"] == "over" && count("would_refuse_total") + count("deferred_total") > 0;
        is_bound.then(|| accounts.clone())
    });
    let accounts =
        bound.unwrap_or_else(|| panic!("{}\n{}", scrape::accounts(address).brief(), read()));
    assert_eq!(
        accounts.find("kafka_2.13").expect("listed")["limit_bytes"],
        8 * MIB
    );
    let nobodys = accounts.holding("_unaccounted").live_bytes;
    let brokers = accounts.holding("kafka_2.13").live_bytes;
    assert!(nobodys < 0.5 * brokers, "{}", accounts.brief());
}

fn jars(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("Maven made it");
    let mut jars: Vec<String> = (entries.flatten())
        .map(|entry| entry.path().display().to_string())
        .filter(|path| path.ends_with(".jar"))
        .collect();
    jars.sort();
    assert!(jars.len() > 20, "{jars:?}");
    jars
}
