//! A JVM whose threads are being sampled exits at once and without a crash, whatever ends it.

use heapwarden_tests::command::PATIENCE;
use heapwarden_tests::jdk::{Vm, on_each, some_vms};
use heapwarden_tests::jvm::{Jvm, victim};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Starts the victim, lets it be sampled, and gives the order to end.
fn ending(vm: &Vm, way: &str) -> Jvm {
    let jvm = victim(vm, "victim.JvmExit")
        .argument(way)
        .policy(
            "[sampling]\ninterval = \"1KiB\"\ncpu-budget = \"none\"\n[[account]]\nname = \"v\"\npackages = [\"victim\"]\n",
        )
        .start();
    let sampled = |accounts: &heapwarden_tests::scrape::Accounts| {
        accounts.0["sampling"]["samples"].as_u64() > Some(1_000)
    };
    jvm.until(PATIENCE, "samples arrive", sampled);
    jvm
}

fn end(mut jvm: Jvm, leaves_run_file: bool) -> ExitStatus {
    let status = jvm.end_within(PATIENCE);
    assert!(
        leaves_run_file || !jvm.run_file().exists(),
        "the run-file outlives an orderly end"
    );
    status
}

#[test]
fn system_exit() {
    on_each(&some_vms(0), |vm| {
        let mut jvm = ending(vm, "exit");
        jvm.tell("go");
        assert_eq!(end(jvm, false).code(), Some(7));
    });
}

#[test]
fn daemon_threads_only() {
    on_each(&some_vms(1), |vm| {
        let mut jvm = ending(vm, "return");
        jvm.tell("go");
        assert_eq!(end(jvm, false).code(), Some(0));
    });
}

#[test]
fn a_termination_signal() {
    on_each(&some_vms(2), |vm| {
        let jvm = ending(vm, "wait");
        let id = i32::try_from(jvm.id()).expect("process ids are small");
        kill_process(Pid::from_raw(id).expect("not 0"), Signal::TERM).expect("it runs");
        // HotSpot runs its shutdown hooks and ends with 128 + 15.
        let status = end(jvm, false);
        assert_eq!(status.code(), Some(143), "{status} {:?}", status.signal());
    });
}

/// Halt runs no hooks but ends the VM in order, so the agent is told.
#[test]
fn runtime_halt() {
    on_each(&some_vms(3), |vm| {
        let mut jvm = ending(vm, "halt");
        jvm.tell("go");
        assert_eq!(end(jvm, false).code(), Some(8));
    });
}
