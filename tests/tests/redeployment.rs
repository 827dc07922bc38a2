//! Services are deployed and undeployed: no class loader is kept alive, each name has one account, and the
//! agent's memory does not grow.

use heapwarden_harness::proc_files;
use heapwarden_tests::command::{PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, Vm, on_each, one_jdk_with, some_vms};
use heapwarden_tests::jvm::{Builder, Jvm, victim};
use heapwarden_tests::scrape::is_background;
use heapwarden_tests::{command, java};
use std::process::Command;
use std::time::Duration;

fn server(vm: &Vm) -> Builder {
    victim(vm, "victim.ServiceHost")
        .argument(java::classes().tenant())
        .policy("[sampling]\ninterval = \"exact\"\n")
}

/// Collects until no undeployed loader is left, at most ten times: a loader goes one collection
/// after the last object that its classes have.
fn loaders_left(jvm: &mut Jvm) -> String {
    let mut answer = String::new();
    for _ in 0..10 {
        jvm.ask("gc");
        answer = jvm.ask("loaders").concat();
        if answer.starts_with("loaders 0 of") {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    answer
}

#[test]
fn fifty_redeployments_keep_one_account_and_leak_no_loader() {
    on_each(&some_vms(0), |vm| {
        let mut jvm = server(vm).start();
        for deployment in 1..=50 {
            jvm.ask("deploy svc-a");
            jvm.ask("call svc-a own 1000 50");
            jvm.ask("call svc-a null 1000 50");
            // A loader that dies within milliseconds, before anyone could ask its name, is nobody's
            // by design: what it was charged counts as `_unaccounted`. So each lives until its
            // hundred arrays show under its name.
            jvm.until(command::PATIENCE, "it is named", |accounts| {
                accounts.find("svc-a").is_some_and(|account| {
                    account["allocated_bytes_total"].as_f64()
                        >= Some(f64::from(deployment) * 101_600.0)
                })
            });
            jvm.ask("undeploy svc-a");
            jvm.ask("release svc-a");
        }
        assert_eq!(loaders_left(&mut jvm), "loaders 0 of 50");
        jvm.ask("deploy svc-a");
        jvm.ask("call svc-a own 1000 100");
        let accounts = jvm.settled();
        let named_so = accounts
            .list()
            .iter()
            .filter(|account| !is_background(account))
            .count();
        assert_eq!(
            named_so,
            1,
            "one account for all fifty-one: {}",
            accounts.brief()
        );
        let holding = accounts.holding("svc-a");
        assert_eq!(
            (holding.live_bytes, holding.live_objects),
            (101_600.0, 100.0),
            "the last deployment's hundred arrays of 1016 bytes"
        );
        let allocated = jvm
            .metrics()
            .of_account("heapwarden_account_allocated_objects_total", "svc-a");
        assert_eq!(allocated, Some(5_100.0), "the account remembers them all");
        jvm.finish();
    });
}

#[test]
fn bytes_that_an_undeployed_service_has_left_show_and_no_loader_is_called_leaked() {
    on_each(&some_vms(1), |vm| {
        let mut jvm = server(vm).start();
        jvm.ask("deploy svc-a");
        jvm.ask("call svc-a own 1000 100");
        jvm.settled();
        // An undeployment is taken note of by and by.
        let assert_left = |jvm: &Jvm, bytes: f64, why: &str| {
            let shown = |name| jvm.metrics().of_account(name, "svc-a").unwrap_or(0.0);
            let left = || shown("heapwarden_account_left_behind_bytes");
            let shows = command::poll(command::PATIENCE, || (left() == bytes).then_some(()));
            assert!(shows.is_some(), "{} bytes left: {why}", left());
            let retired = shown("heapwarden_account_retired_loaders");
            assert_eq!(retired, 0.0, "loaders that live: {why}");
        };
        assert_left(&jvm, 0.0, "still deployed");
        // The arrays stay with the server: of a class of the JDK, they do not hold the loader.
        jvm.ask("undeploy svc-a");
        assert_eq!(loaders_left(&mut jvm), "loaders 0 of 1");
        assert_eq!(jvm.settled().holding("svc-a").live_bytes, 101_600.0);
        assert_left(&jvm, 101_600.0, "undeployed, and a hundred arrays stayed");
        jvm.ask("release svc-a");
        assert_eq!(jvm.settled().holding("svc-a").live_bytes, 0.0);
        assert_left(&jvm, 0.0, "nothing held any more");
        jvm.finish();
    });
}

/// Resident bytes of a process, by `/proc`.
fn resident_bytes(id: u32) -> u64 {
    let status = proc_files::read(id, "status").expect("the JVM runs");
    proc_files::bytes(&status, "VmRSS").expect("Linux states VmRSS")
}

/// Lets the allocator give back what it holds without use, which is 8 MiB more or less from one reading to the
/// next: how many accounts an answer has depends on how late the cleaning is. A JDK without this command is
/// measured as it is.
fn give_back_free_memory(vm: &Vm, process: u32) {
    let jcmd = vm.jdk.program("jcmd");
    if jcmd.is_file() {
        let process = process.to_string();
        let given = Command::new(jcmd)
            .args([&process, "System.trim_native_heap"])
            .output();
        given.expect("jcmd runs");
    }
}

#[test]
fn a_hundred_thousand_services_made_and_gone_leave_memory_where_it_was() {
    const STEP: u32 = 10_000;
    /// `_unaccounted`, the program, and a service or two to which the JDK happened to allocate for itself
    /// while it was the context: a string constant that a compilation resolves.
    const LEFT: usize = 4;
    on_each(&one_jdk_with(Collector::Serial, 2), |vm| {
        // The heap is touched whole at the start, so that what grows later is native memory; and
        // it is not the optimising compiler's, nor that of an allocator with an arena a thread.
        let mut jvm = server(vm)
            .heap("128m")
            .flag("-Xms128m")
            .flag("-XX:+AlwaysPreTouch")
            .flag("-XX:TieredStopAtLevel=1")
            .environment("MALLOC_ARENA_MAX", "1")
            .start();
        let mut resident = Vec::new();
        let mut own = Vec::new();
        for from in (0..100_000).step_by(STEP as usize) {
            jvm.ask(&format!("swarm {from} {STEP} 200"));
            // The agent forgets what is gone by and by, after collections; how soon is a matter
            // of the machine. That nothing is left is not.
            // Asked as seldom as may be: an answer with ten thousand accounts takes memory of its
            // own, and leaves the allocator's arena as it happens to.
            let mut rounds = 0;
            loop {
                for _ in 0..3 {
                    jvm.ask("gc");
                    std::thread::sleep(Duration::from_millis(600));
                }
                let accounts = jvm.accounts();
                if accounts.0["accounts_omitted"] == 0 && accounts.list().len() <= LEFT {
                    break;
                }
                rounds += 1;
                assert!(
                    rounds < 40,
                    "{vm}: services that are gone are not forgotten: {}",
                    accounts.brief()
                );
            }
            give_back_free_memory(vm, jvm.id());
            resident.push(resident_bytes(jvm.id()));
            own.push(jvm.metrics().sum("heapwarden_agent_memory_bytes"));
        }
        eprintln!("{vm}: resident {resident:?}, the agent's own {own:?}");
        // The first 30,000 size the tables and the allocator's arenas; from there on, nothing. A
        // hundred bytes lost for each would be 7 MB.
        let sized = resident[..3].iter().max().expect("three");
        let grown = resident[9].saturating_sub(*sized);
        assert!(grown < 6 << 20, "{grown} bytes more after 70,000 services");
        // On a busy machine the cleaning is late: names of classes and loaders stay longer than the accounts.
        let cleaned = poll(PATIENCE, || {
            jvm.ask("gc");
            let now = jvm.metrics().sum("heapwarden_agent_memory_bytes");
            (now <= own[2] * 1.1 + 65_536.0).then_some(())
        });
        assert!(cleaned.is_some(), "the agent's own: {own:?}");
        jvm.ask("deploy svc-after");
        jvm.ask("call svc-after own 1000 100");
        let holding = jvm.settled().holding("svc-after");
        assert_eq!(
            holding.live_bytes, 101_600.0,
            "a new service gets an account of its own still"
        );
        jvm.finish();
    });
}
