//! Walks of the heap where something is missing or goes wrong: memory, processes, `fork` itself, time; and a child
//! that fails at each of its stages. Each costs one line, and the JVM goes on.

use heapwarden_harness::proc_files::{self, state};
use heapwarden_tests::cgroup::Cgroup;
use heapwarden_tests::command::{self, Finished, PATIENCE, left_out, poll};
use heapwarden_tests::jdk::{
    Collector, Vm, every_jdk_with, is_long, on_each, on_each_at_once, one_jdk_with, some_vms,
};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::walks::{
    self, FINE, LIMIT, assert_no_traces, children, signal, walkers, zombies,
};
use policy_report::Paths;

/// The fault by which the VM itself gets no memory.
const STARVED: usize = 5;
const CLASS: [&str; 2] = ["--class", "victim.paths.SixHolders$Item"];

fn walk(id: u32, more: &[&str]) -> Finished {
    let arguments = [&CLASS, more].concat();
    command::run(&mut walks::command(id, "paths", &arguments), LIMIT)
}

/// One line that says why, and an exit code for "no answer".
#[track_caller]
fn assert_refused(finished: &Finished, parts: &[&str], jvm: &Jvm) {
    assert_eq!(
        finished.status.code(),
        Some(1),
        "{finished:#?}\n{}",
        jvm.log()
    );
    assert_eq!(finished.stderr.lines().count(), 1, "{finished:#?}");
    assert!(
        parts.iter().any(|part| finished.stderr.contains(part)),
        "none of {parts:?}: {finished:#?}"
    );
}

#[track_caller]
fn assert_failed_by(number: usize, finished: &Finished, parts: &[&str], vm: &Vm, jvm: &Jvm) {
    // Shenandoah walks with a bitmap of its own; the others may do with memory that is already there.
    let needs_no_memory = vm.collector != Collector::Shenandoah && number == STARVED;
    if !(needs_no_memory && finished.status.success()) {
        assert_refused(finished, parts, jvm);
    }
}

#[track_caller]
fn assert_walked(finished: &Finished, jvm: &Jvm) {
    assert!(finished.status.success(), "{finished:#?}\n{}", jvm.log());
    assert!(
        finished.stdout.contains("in a forked child"),
        "{finished:#?}"
    );
}

#[test]
fn a_child_that_fails_in_any_way_costs_one_line_and_the_next_walk_is_as_ever() {
    const STARVED: usize = 5;
    let expected: [&[&str]; 10] = [
        // Killed before it isolates itself, and before it has tables.
        &["ended by signal 9"],
        &["ended by signal 9"],
        &["no memory for its tables"],
        // The walker: before the walk, and in it.
        &["ended by signal 9"],
        &["ended by signal 9"],
        // `STARVED`: HotSpot ends itself if it needs memory and gets none.
        &["ended by signal", "gave no answer"],
        // Out of processor time.
        &["ended by signal 9"],
        // With what the parent waited for names of classes, if the machine is busy.
        &["not done within"],
        // The watcher: after the walk, and in the middle of its answer.
        &["ended by signal 9"],
        &["ended by signal 9"],
    ];
    // A heap of ZGC's is never forked: see `paths`.
    let is_forked = |vm: &Vm| !matches!(vm.collector, Collector::Z | Collector::GenerationalZ);
    let vms: Vec<Vm> = some_vms(1).into_iter().filter(is_forked).collect();
    on_each(&vms, |vm| {
        let builder = victim(vm, "victim.paths.SixHolders")
            .policy(FINE)
            .option("test-walk=faults");
        let report = builder.folder().join("of-the-operator");
        let mut jvm = builder
            .flag(&format!("-XX:OnError=echo %p > {}", report.display()))
            .start();
        jvm.ask("hold");
        jvm.ask("grow 200");
        for (number, parts) in expected.iter().enumerate() {
            let finished = walk(jvm.id(), &[]);
            // Whether HotSpot needs memory is chance: the C library may have reserved enough for its thread (seen with
            // Shenandoah). Then the answer must be right.
            if number == STARVED && finished.status.success() {
                assert_walked(&finished, &jvm);
            } else {
                assert_failed_by(number, &finished, parts, vm, &jvm);
            }
            println!("{vm}: fault {number}: {}", finished.stderr.trim());
            assert_no_traces(&jvm, jvm.id());
        }
        assert_walked(&walk(jvm.id(), &[]), &jvm);
        assert!(
            !report.exists(),
            "a child has started the operator's program"
        );
        assert_no_traces(&jvm, jvm.id());
        jvm.finish();
    });
}

#[test]
fn a_jvm_that_is_process_one_adopts_no_zombie() {
    const TEST: &str = "a_jvm_that_is_process_one_adopts_no_zombie";
    let launcher = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let can = command::run(
        std::process::Command::new(launcher[0]).args([&launcher[1..], &["true"]].concat()),
        PATIENCE,
    );
    if !can.status.success() {
        assert!(
            !rustix::process::geteuid().is_root() || can.stderr.contains("not permitted"),
            "root can unshare: {can:#?}"
        );
        return left_out(TEST, can.stderr.trim());
    }
    // One at a time: each is process 1, and the JVM's socket for commands has that number.
    on_each_at_once(1, &one_jdk_with(Collector::G1, 0), |vm| {
        let mut jvm = victim(vm, "victim.paths.SixHolders")
            .policy(FINE)
            .option("test-walk=faults")
            .under(launcher.map(str::to_owned).to_vec())
            .start();
        jvm.ask("hold");
        jvm.ask("grow 200");
        let id = children(jvm.id())[0];
        let namespace = proc_files::read(id, "status").expect("it runs");
        let own_id =
            proc_files::field(&namespace, "NSpid").and_then(|ids| ids.split_whitespace().last());
        assert_eq!(own_id, Some("1"), "{namespace}");
        // A watcher that is killed leaves its walker to process 1. The last walk is made.
        for fault in 0..=10 {
            let finished = walk(id, &[]);
            match fault {
                10 => assert_walked(&finished, &jvm),
                _ => {
                    let parts = ["child process", "not done"];
                    assert_failed_by(fault, &finished, &parts, vm, &jvm);
                }
            }
            assert_no_traces(&jvm, id);
            assert!(zombies(id).is_empty(), "fault {fault}: {:?}", zombies(id));
        }
        jvm.finish();
    });
}

#[test]
fn a_cgroup_with_too_little_memory_gets_no_walk_and_one_with_enough_does() {
    const TEST: &str = "a_cgroup_with_too_little_memory_gets_no_walk_and_one_with_enough_does";
    let group = match Cgroup::make("memory") {
        Ok(group) => group,
        Err(why) => return left_out(TEST, &why),
    };
    // One at a time: they are in one group.
    let vms = one_jdk_with(Collector::Serial, 1);
    on_each_at_once(1, &vms, |vm| {
        let mut jvm = victim(vm, "victim.paths.SixHolders")
            .policy(FINE)
            .heap("300m")
            .under(group.entering())
            .start();
        jvm.ask("hold");
        jvm.ask("grow 3000");
        jvm.ask("gc");
        let used = group.memory();
        assert!(used > 64 << 20, "the JVM is not in its group: {used}");
        // The agent itself has to run.
        assert!(group.limit_memory(used + (96 << 20)));
        let finished = walk(jvm.id(), &[]);
        assert_refused(&finished, &["of memory, and "], &jvm);
        assert!(finished.stderr.contains("--in-place"), "{finished:#?}");
        let enough = group.memory() + (2 << 30);
        assert!(group.limit_memory(enough));
        assert_walked(&walk(jvm.id(), &[]), &jvm);

        // Memory runs short while the children live: here they cannot go on, so it is the parent that ends them.
        let finished = while_walking(&jvm, |both| {
            both.iter().for_each(|&child| signal("-STOP", child));
            assert!(group.limit_memory(group.memory() + (40 << 20)));
        });
        assert_refused(&finished, &["memory ran short", "signal 9"], &jvm);
        assert!(group.limit_memory(enough));
        assert_no_traces(&jvm, jvm.id());

        // And here the kernel may be first: it takes the children, not the JVM.
        for _ in 0..3 {
            let finished = while_walking(&jvm, |_| {
                let _ = group.limit_memory(group.memory() + (2 << 20));
            });
            let is_done = finished.status.success();
            assert!(group.limit_memory(enough));
            if !is_done {
                let parts = ["memory ran short", "signal 9", "no memory"];
                assert_refused(&finished, &parts, &jvm);
            }
            println!("{vm}: {}", finished.stderr.trim());
            assert_no_traces(&jvm, jvm.id());
        }
        jvm.ask("gc");
        assert_walked(&walk(jvm.id(), &[]), &jvm);
        jvm.finish();
    });
}

/// Walks, and does something once both children are there.
fn while_walking(jvm: &Jvm, act: impl FnOnce(&[u32])) -> Finished {
    let mut asked = walks::command(jvm.id(), "paths", &["--class", "java.lang.Object[]"]);
    let asking = std::thread::spawn(move || command::run(&mut asked, LIMIT));
    let both = poll(PATIENCE, || {
        let found = walkers(jvm.id());
        (found.len() == 2).then_some(found)
    });
    act(&both.expect("two children"));
    asking.join().expect("no panic")
}

/// Half a processor: the children may take an eighth. Where they take what they can get, nearly each period ends with
/// the JVM stopped, as does each in which the JVM itself works hard: that shows that the counters count.
#[test]
fn a_walk_does_not_use_up_a_quota_of_processor_time() {
    const TEST: &str = "a_walk_does_not_use_up_a_quota_of_processor_time";
    const QUOTA_US: u64 = 50_000;
    const PERIOD_US: u64 = 100_000;
    /// A walk that is looked at for fewer periods shows nothing.
    const PERIODS: u64 = 20;
    const KILLS: u32 = 5;
    if let Err(why) = Cgroup::make("cpu") {
        return left_out(TEST, &why);
    }
    let mut vms = every_jdk_with(Collector::Serial);
    if !is_long() {
        // The oldest marks objects in the heap itself, and has to restore it.
        vms = vec![vms.remove(0), vms.pop().expect("two JDKs")];
    }
    on_each(&vms, |vm| {
        let group = Cgroup::make("cpu").expect("as before");
        let mut jvm = victim(vm, "victim.paths.SixHolders")
            .policy(FINE)
            .heap("500m")
            .under(group.entering())
            .start();
        jvm.ask("hold");
        jvm.ask("grow 5000");
        jvm.ask("gc");
        let json = [&CLASS[..], &["--json"]].concat();
        let id = jvm.id();
        let ask = || command::run(&mut walks::command(id, "paths", &json), LIMIT);
        let parsed = |finished: &Finished| -> Paths<'static> {
            serde_json::from_str(&finished.stdout)
                .unwrap_or_else(|error| panic!("{error}: {finished:#?}\n{}", jvm.log()))
        };
        let free = parsed(&ask());
        assert_eq!(free.walk.processor_share, None, "{free:#?}");

        // Who gets no processor uses up no quota.
        assert!(group.come_first());
        assert!(group.limit_processors(QUOTA_US, PERIOD_US));
        let mut watched = None;
        let finished = std::thread::scope(|scope| {
            let asking = scope.spawn(ask);
            let both = poll(LIMIT, || (walkers(id).len() == 2).then_some(()));
            assert!(both.is_some(), "two children");
            let first = group.periods();
            let mut last = first;
            // Periods after the end of the children are the JVM's own, and are left out.
            let ended = poll(LIMIT, || {
                let now = group.periods();
                let alive = walkers(id).len();
                if alive > 0 {
                    last = now;
                }
                (alive == 0).then_some(())
            });
            assert!(ended.is_some(), "the children stay");
            watched = Some(last.since(first));
            asking.join().expect("no panic")
        });
        let watched = watched.expect("set above");
        let limited = parsed(&finished);
        println!(
            "{vm}: {} of {} periods; the pause: {} ms, predicted {} to {}",
            watched.throttled,
            watched.all,
            limited.walk.pause_ms,
            limited.walk.predicted_pause_ms,
            limited.walk.most_predicted_pause_ms
        );
        assert_eq!(limited.walk.how, "forked", "{limited:#?}");
        assert_eq!(limited.walk.processor_share, Some(0.125), "{limited:#?}");
        assert!(watched.all >= PERIODS, "{watched:?} show nothing");
        assert!(
            watched.throttled * 4 <= watched.all,
            "the JVM was stopped in {watched:?}"
        );
        for walked in [&free, &limited] {
            let chains: u64 = walked.paths.iter().map(|chain| chain.objects).sum();
            assert!(chains > 0 && chains == walked.looked_for, "{walked:#?}");
            for line in walked.paths.iter().map(walks::line) {
                let queue = "static victim.paths.SixHolders.QUEUE > java.util.LinkedList ";
                assert!(line.starts_with(queue), "{line}");
            }
        }

        // Nobody is left to let the walker go on, and it ends all the same. The first stop comes early: a walker that was
        // stopped before it was bound to its watcher stayed for ever.
        for _ in 0..KILLS {
            let finished = while_walking(&jvm, |both| {
                let is_stopped = poll(PATIENCE, || (state(both[1]) == Some('T')).then_some(()));
                assert!(is_stopped.is_some(), "the walker never rests");
                signal("-KILL", both[0]);
            });
            assert_refused(&finished, &["signal 9"], &jvm);
            assert_no_traces(&jvm, jvm.id());
            let alone = poll(PATIENCE, || (group.ids() == [jvm.id()]).then_some(()));
            assert!(alone.is_some(), "{:?} beside {}", group.ids(), jvm.id());
        }

        let before = group.periods();
        let own = poll(PATIENCE, || {
            jvm.ask("gc");
            let own = group.periods().since(before);
            (own.throttled > 0).then_some(own)
        });
        println!("{vm}: by the JVM's own work {own:?}");
        assert!(own.is_some(), "the counters count nothing");
        assert!(group.limit_processors(8 * PERIOD_US, PERIOD_US));
        assert_no_traces(&jvm, jvm.id());
        jvm.finish();
    });
}

#[test]
fn a_cgroup_without_room_for_processes_gets_a_clear_no() {
    const TEST: &str = "a_cgroup_without_room_for_processes_gets_a_clear_no";
    let group = match Cgroup::make("pids") {
        Ok(group) => group,
        Err(why) => return left_out(TEST, &why),
    };
    // One at a time: they are in one group.
    on_each_at_once(1, &one_jdk_with(Collector::Serial, 2), |vm| {
        let mut jvm = victim(vm, "victim.paths.SixHolders")
            .policy(FINE)
            .under(group.entering())
            .start();
        jvm.ask("hold");
        assert_walked(&walk(jvm.id(), &[]), &jvm);
        // Room for no thread of the agent, for none of the two children, for one of them, for both.
        let mut of_fork = 0;
        let mut walked = 0;
        for room in 0..=5 {
            assert!(group.limit_tasks(Some(group.tasks() + room)));
            let finished = walk(jvm.id(), &[]);
            assert!(group.limit_tasks(None));
            println!("{vm}: room for {room}: {}", finished.stderr.trim());
            if finished.status.success() {
                walked += 1;
            } else {
                assert_refused(&finished, &[""], &jvm);
                of_fork += usize::from(finished.stderr.contains("does not let the JVM fork"));
            }
            assert_no_traces(&jvm, jvm.id());
        }
        assert!(of_fork >= 1 && walked >= 1, "{of_fork} {walked}");
        assert_walked(&walk(jvm.id(), &[]), &jvm);
        jvm.finish();
    });
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn seccomp_without_fork_gets_a_clear_no_and_the_server_goes_on() {
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch,
    };
    const CLONE: i64 = 56;
    const FORK: i64 = 57;
    const CLONE3: i64 = 435;
    /// Children that share the memory, until they become another program, and threads.
    const CLONE_VM: u64 = 0x100;
    let filter = |rules: Vec<(i64, Vec<SeccompRule>)>, error: u32| -> BpfProgram {
        let filter = SeccompFilter::new(
            rules.into_iter().collect(),
            SeccompAction::Allow,
            SeccompAction::Errno(error),
            TargetArch::x86_64,
        );
        filter
            .and_then(TryInto::try_into)
            .expect("a filter that the kernel takes")
    };
    let copies = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Qword,
        SeccompCmpOp::MaskedEq(CLONE_VM),
        0,
    )
    .and_then(|condition| SeccompRule::new(vec![condition]))
    .expect("a rule");
    let not_permitted = filter(vec![(CLONE, vec![copies]), (FORK, Vec::new())], 1);
    // As container engines do: C libraries then use the older call.
    let unknown = filter(vec![(CLONE3, Vec::new())], 38);
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let builder = victim(vm, "victim.paths.SixHolders").policy(FINE);
        // A filter is of a thread, and of what it starts.
        let started = std::thread::scope(|scope| {
            let start = scope.spawn(|| {
                for filter in [&unknown, &not_permitted] {
                    seccompiler::apply_filter(filter).expect("the kernel has seccomp");
                }
                builder.start()
            });
            start.join().expect("it starts")
        });
        let mut jvm = started;
        jvm.ask("hold");
        let finished = walk(jvm.id(), &[]);
        let no = "does not let the JVM fork (Operation not permitted";
        assert_refused(&finished, &[no], &jvm);
        assert!(finished.stderr.contains("--in-place"), "{finished:#?}");
        assert_no_traces(&jvm, jvm.id());
        // The alternative works.
        let finished = walk(jvm.id(), &["--in-place", "60s"]);
        assert!(finished.status.success(), "{finished:#?}");
        assert!(finished.stdout.contains("walked in place"), "{finished:#?}");
        jvm.ask("gc");
        jvm.finish();
    });
}
