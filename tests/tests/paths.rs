//! Who keeps it alive: chains and holders by a walk in a forked child, on real JVMs; and what the walk does to the
//! JVM and leaves behind.

use heapwarden_harness::proc_files;
use heapwarden_harness::process::Guard;
use heapwarden_tests::artifacts;
use heapwarden_tests::command::{self, Finished, PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, Vm, is_long, on_each, one_jdk_with, some_vms};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::scrape;
use heapwarden_tests::walks::{self, FINE, LIMIT, assert_no_traces, line, signal, walkers};
use policy_report::{Holders, Paths, Walks};
use std::process::{Command, Stdio};
use std::time::Duration;

fn heapwarden(jvm: &Jvm, subcommand: &str, more: &[&str]) -> Finished {
    command::run(&mut walks::command(jvm.id(), subcommand, more), LIMIT)
}

/// How a VM is asked: ZGC cannot be forked.
fn how(vm: &Vm) -> (&'static str, &'static [&'static str]) {
    match vm.collector {
        Collector::Z | Collector::GenerationalZ => ("in-place", &["--in-place", "60s"]),
        _ => ("forked", &[]),
    }
}

fn paths(jvm: &Jvm, more: &[&str]) -> Paths<'static> {
    let mut arguments = more.to_vec();
    arguments.push("--json");
    let finished = heapwarden(jvm, "paths", &arguments);
    let code = finished.status.code();
    assert!(matches!(code, Some(0 | 3)), "{finished:#?}\n{}", jvm.log());
    serde_json::from_str(&finished.stdout).expect("the document")
}

const MAP: &str =
    " > java.util.HashMap table > java.util.HashMap$Node[] [*] > java.util.HashMap$Node value";

/// The holder of each class of `SixHolders`: the exact chain, or the two that are equally short on average.
fn six() -> Vec<(&'static str, Vec<String>)> {
    let of = |class: &'static str| format!("victim.paths.SixHolders${class}");
    let statics = |field: &str| format!("static victim.paths.SixHolders.{field}");
    let concurrent = "> java.util.concurrent.ConcurrentHashMap table > java.util.concurrent.ConcurrentHashMap$Node[] [*] > java.util.concurrent.ConcurrentHashMap$Node val";
    vec![
        ("Mapped", vec![format!("{}{MAP}", statics("MAP"))]),
        ("byte[]", vec![format!("{}{MAP}", statics("RAW"))]),
        (
            "Listener",
            vec![format!(
                "{} > {} listeners > java.util.ArrayList elementData > java.lang.Object[] [*]",
                statics("BUS"),
                of("Bus")
            )],
        ),
        (
            "Item",
            [("first", "next"), ("last", "prev")]
                .map(|(end, next)| {
                    format!(
                        "{} > java.util.LinkedList {end} > java.util.LinkedList$Node {next} > java.util.LinkedList$Node item",
                        statics("QUEUE")
                    )
                })
                .to_vec(),
        ),
        (
            "Pooled",
            vec!["thread \"pool-7\" > java.lang.Thread \"pool-7\" threadLocals > java.lang.ThreadLocal$ThreadLocalMap table > java.lang.ThreadLocal$ThreadLocalMap$Entry[] [*] > java.lang.ThreadLocal$ThreadLocalMap$Entry value > java.util.ArrayList elementData > java.lang.Object[] [*]".to_owned()],
        ),
        (
            "Cached",
            vec![format!(
                "{} {concurrent} > {} attributes {concurrent} > {} entries > java.util.LinkedHashMap head > java.util.LinkedHashMap$Entry after > java.util.LinkedHashMap$Entry value",
                statics("CONTEXTS"), of("Context"), of("Cache")
            ), format!(
                "{} {concurrent} > {} attributes {concurrent} > {} entries > java.util.LinkedHashMap table > java.util.HashMap$Node[] [*] > java.util.LinkedHashMap$Entry value",
                statics("CONTEXTS"), of("Context"), of("Cache")
            )],
        ),
    ]
}

#[test]
fn six_ways_of_holding_are_named_with_their_classes_and_fields() {
    on_each(&some_vms(1), |vm| {
        let mut jvm = victim(vm, "victim.paths.SixHolders")
            .policy(FINE)
            .heap("256m")
            .start();
        jvm.ask("hold");
        jvm.settled();
        let (how, more) = how(vm);
        for (class, expected) in six() {
            let full = match class {
                "byte[]" => class.to_owned(),
                own => format!("victim.paths.SixHolders${own}"),
            };
            let mut arguments = vec!["--class", &full];
            arguments.extend(more);
            let found = paths(&jvm, &arguments);
            assert_eq!(found.walk.how, how, "{vm}");
            assert!(
                found.walk.pause_ms > 0.0 && found.walk.references > 20_000,
                "{found:?}"
            );
            let most: u64 = found.paths.iter().map(|chain| chain.objects).sum();
            assert_eq!(most + found.unreached, found.looked_for, "{found:?}");
            // Arrays of bytes are held by all of the others, too.
            let right: u64 = (found.paths.iter())
                .filter(|chain| expected.contains(&line(chain)))
                .map(|chain| chain.objects)
                .sum();
            // The ends of a list or map may be reached by a shorter way.
            let least = if class == "byte[]" { 1 } else { most * 9 / 10 };
            assert!(
                right >= least && right > 0,
                "{vm}: {class}: {right} of {most}; expected {expected:#?}, found {:#?}",
                found.paths.iter().map(line).collect::<Vec<_>>()
            );
        }
        // The page can show the last five.
        let kept = scrape::get(jvm.address(), "/api/v1/paths");
        let kept: Walks<'_> = serde_json::from_str(&kept.body).expect("the document");
        assert_eq!(kept.walks.len(), 5);
        assert!(kept.walks[0].paths.as_ref().is_some_and(|newest| {
            newest
                .paths
                .iter()
                .any(|chain| chain.class.ends_with("$Cached"))
        }));
        assert_no_traces(&jvm, jvm.id());
    });
}

#[test]
fn a_fork_stops_the_jvm_for_a_fraction_of_a_walk_in_place() {
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let mut jvm = victim(vm, "victim.paths.SixHolders")
            .heap("700m")
            .flag("-Xms700m")
            .start();
        jvm.ask("hold");
        jvm.ask("grow 6000");
        jvm.ask("gc");
        let class = ["--class", "java.lang.Object[]"];
        let mut forked: Vec<Paths<'_>> = (0..3).map(|_| paths(&jvm, &class)).collect();
        forked.sort_by(|a, b| a.walk.pause_ms.total_cmp(&b.walk.pause_ms));
        let forked = &forked[1];
        let mut arguments = class.to_vec();
        // A fork that may not stop it at all is never begun.
        arguments.extend(["--in-place", "120s", "--json"]);
        let id = jvm.id().to_string();
        let finished = command::run(
            Command::new(artifacts::command())
                .args(["paths", &id, "--max-pause", "0ms"])
                .args(&arguments),
            LIMIT,
        );
        assert!(finished.status.success(), "{finished:#?}");
        let in_place: Paths<'_> = serde_json::from_str(&finished.stdout).expect("the document");
        println!(
            "forked {} ms (predicted {} ms), in place {} ms, {} references",
            forked.walk.pause_ms,
            forked.walk.predicted_pause_ms,
            in_place.walk.pause_ms,
            in_place.walk.references
        );
        assert_eq!(
            (&*forked.walk.how, &*in_place.walk.how),
            ("forked", "in-place")
        );
        // Both have seen the whole heap. It differs by what the two commands themselves made.
        let difference = in_place.walk.references.abs_diff(forked.walk.references);
        assert!(
            difference < in_place.walk.references / 50,
            "{forked:?} {in_place:?}"
        );
        assert!(
            in_place.walk.pause_ms > 5.0 * forked.walk.pause_ms,
            "forked {} ms, in place {} ms",
            forked.walk.pause_ms,
            in_place.walk.pause_ms
        );
    });
}

#[test]
fn without_consent_a_heap_that_cannot_be_forked_is_left_alone() {
    on_each(&one_jdk_with(Collector::Z, 0), |vm| {
        let mut jvm = victim(vm, "victim.paths.SixHolders").policy(FINE).start();
        jvm.ask("hold");
        let class = ["--class", "victim.paths.SixHolders$Item"];
        let id = jvm.id().to_string();
        // That the heap is shared is the reason also where the fork would take too long: waiting changes nothing.
        for max_pause in ["60s", "0ms"] {
            let finished = command::run(
                Command::new(artifacts::command())
                    .args(["paths", &id, "--max-pause", max_pause])
                    .args(class),
                LIMIT,
            );
            assert_eq!(finished.status.code(), Some(1), "{finished:#?}");
            for part in ["shared memory", "--in-place", "GC.heap_dump"] {
                assert!(finished.stderr.contains(part), "{finished:#?}");
            }
            assert_eq!(finished.stderr.lines().count(), 1, "{finished:#?}");
        }
    });
}

#[test]
fn what_cannot_be_answered_is_said_in_one_line() {
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let mut jvm = victim(vm, "victim.paths.SixHolders").policy(FINE).start();
        jvm.ask("hold");
        let cases: [(&[&str], &str); 4] = [
            (&[], "nothing is suspected to leak"),
            (
                &["--class", "com.acme.Nothing"],
                "no sampled object of class com.acme.Nothing",
            ),
            (&["--account", "nobody"], "of account nobody"),
            (&["--retired"], "no class loader of an undeployed service"),
        ];
        for (arguments, expected) in cases {
            let finished = heapwarden(&jvm, "paths", arguments);
            assert_eq!(finished.status.code(), Some(1), "{finished:#?}");
            assert!(finished.stderr.contains(expected), "{finished:#?}");
            assert_eq!(finished.stderr.lines().count(), 1, "{finished:#?}");
        }
        assert_no_traces(&jvm, jvm.id());
        let plain = victim(vm, "victim.paths.SixHolders")
            .without_agent()
            .start();
        let finished = heapwarden(&plain, "paths", &[]);
        assert_eq!(finished.status.code(), Some(1), "{finished:#?}");
        assert!(finished.stderr.contains("is not loaded"), "{finished:#?}");
    });
}

#[test]
fn a_class_that_has_no_name_yet_is_waited_for() {
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let builder = victim(vm, "victim.paths.SixHolders").policy(FINE);
        let mut jvm = builder.option("test-names=late-classes").start();
        jvm.ask("hold");
        // The last class that `hold` makes: seen by a sample milliseconds ago.
        let answer = paths(&jvm, &["--class", "victim.paths.SixHolders$Pooled"]);
        assert!(!answer.paths.is_empty(), "{answer:#?}");
    });
}

/// A JVM whose walks take some seconds.
fn large(vm: &Vm) -> Jvm {
    let mut jvm = victim(vm, "victim.paths.SixHolders").heap("500m").start();
    jvm.ask("hold");
    jvm.ask("grow 3000");
    jvm
}

#[test]
fn children_have_nothing_of_the_jvm_open_and_end_with_it() {
    on_each(&one_jdk_with(Collector::Parallel, 2), |vm| {
        let jvm = large(vm);
        let class = ["--class", "java.lang.Object[]"];
        let mut asked = walks::command(jvm.id(), "paths", &class);
        asked.stdout(Stdio::null()).stderr(Stdio::null());
        let asked = Guard::start(&mut asked).expect("the command starts");
        // The watcher and the walker.
        let both = poll(PATIENCE, || {
            let found = walkers(jvm.id());
            (found.len() == 2).then_some(found)
        });
        let both = both.expect("two children");
        // That the walker may open nothing is the last of what it gives up; on a busy machine it is met before.
        let is_ready = poll(PATIENCE, || {
            let limits = proc_files::read(both[1], "limits").ok()?;
            let mut open = limits
                .lines()
                .filter_map(|line| line.strip_prefix("Max open files"));
            (open.next()?.split_whitespace().next() == Some("0")).then_some(())
        });
        assert!(is_ready.is_some(), "the walker may open files");
        for &child in &both {
            signal("-STOP", child);
        }
        for &child in &both {
            for descriptor in std::fs::read_dir(format!("/proc/{child}/fd"))
                .expect("it lives")
                .flatten()
            {
                let leads_to = std::fs::read_link(descriptor.path()).unwrap_or_default();
                let leads_to = leads_to.to_string_lossy().into_owned();
                assert!(
                    leads_to == "/dev/null"
                        || leads_to.starts_with("pipe:")
                        || leads_to.starts_with("/proc/"),
                    "{child} has {leads_to} open"
                );
            }
            let read = |file: &str| proc_files::read(child, file).expect("it lives");
            let niceness = read("stat");
            let mut after = proc_files::behind_name(&niceness);
            assert_eq!(after.nth(16), Some("19"), "{niceness}");
            assert_eq!(read("oom_score_adj").trim(), "1000");
            // No signal reaches a handler of the VM's, no file can be written, no other program sees what it does.
            let word = |text: &str, line: &str| {
                let found = text.lines().find(|text| text.starts_with(line));
                let rest = found.and_then(|text| text.strip_prefix(line)).expect(line);
                rest.split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            };
            let status = read("status");
            let caught = u64::from_str_radix(&word(&status, "SigCgt:"), 16).expect("bits");
            // The C library keeps two signals to itself.
            assert_eq!(caught & !(3 << 31), 0, "{status}");
            assert!(word(&status, "SigBlk:").starts_with("ffffff"), "{status}");
            let limits = read("limits");
            assert_eq!(word(&limits, "Max file size"), "0", "{limits}");
            assert_eq!(word(&limits, "Max core file size"), "0", "{limits}");
            assert_ne!(word(&limits, "Max cpu time"), "unlimited", "{limits}");
            assert_ne!(word(&limits, "Max address space"), "unlimited", "{limits}");
            if child == both[1] {
                assert_eq!(word(&limits, "Max open files"), "0", "{limits}");
                assert!(!read("maps").contains("hsperfdata"), "counters of the JVM");
            }
        }
        // Stopped as they are, they die with the JVM, whose port is free at once.
        let port = jvm.address();
        signal("-KILL", jvm.id());
        let is_free = poll(PATIENCE, || std::net::TcpListener::bind(port).ok());
        assert!(is_free.is_some(), "{port} is still in use");
        // With the lowest priority they take their time to end on a busy machine.
        let are_gone = poll(LIMIT, || {
            let mut all = both.iter();
            let lives = |child: u32| proc_files::state(child).is_some_and(|state| state != 'Z');
            all.all(|child| !lives(*child)).then_some(())
        });
        assert!(are_gone.is_some(), "children outlive the JVM");
        drop(asked);
    });
}

#[test]
fn a_child_that_is_killed_at_any_stage_costs_one_line_and_nothing_else() {
    let mut vms = one_jdk_with(Collector::G1, 2);
    if is_long() {
        vms.extend(one_jdk_with(Collector::Serial, 0));
    }
    on_each(&vms, |vm| {
        let mut jvm = large(vm);
        let class = ["--class", "java.lang.Object[]"];
        let mut killed = 0;
        let stages = [0, 30, 100, 300, 800, 1500];
        for (turn, after_ms) in stages.into_iter().enumerate() {
            let mut asked = walks::command(jvm.id(), "paths", &class);
            let asking = std::thread::spawn(move || command::run(&mut asked, LIMIT));
            let first = poll(PATIENCE, || {
                let found = walkers(jvm.id());
                (!found.is_empty() || asking.is_finished()).then_some(found)
            });
            std::thread::sleep(Duration::from_millis(after_ms));
            // The watcher in some turns, the walker in others.
            let now = walkers(jvm.id());
            let victim = if turn % 2 == 0 {
                now.first()
            } else {
                now.last()
            };
            if let Some(&victim) = victim.or(first.as_ref().and_then(|found| found.first())) {
                signal("-KILL", victim);
            }
            let finished = asking.join().expect("no panic");
            match finished.status.code() {
                // It was too late.
                Some(0) => {}
                Some(1) => {
                    killed += 1;
                    assert_eq!(finished.stderr.lines().count(), 1, "{finished:#?}");
                    assert!(finished.stderr.contains("child process"), "{finished:#?}");
                }
                _ => panic!("{finished:#?}\n{}", jvm.log()),
            }
            assert_no_traces(&jvm, jvm.id());
            jvm.ask("gc");
        }
        assert!(
            killed >= 2,
            "of {} walks {killed} were killed",
            stages.len()
        );
        // Nothing is left that keeps the next one from its work.
        assert_eq!(paths(&jvm, &class).walk.how, "forked");
        // A command that goes away ends its walk.
        let mut asked = walks::command(jvm.id(), "paths", &class);
        asked.stdout(Stdio::null()).stderr(Stdio::null());
        let asked = Guard::start(&mut asked).expect("the command starts");
        let began = poll(PATIENCE, || (!walkers(jvm.id()).is_empty()).then_some(()));
        assert!(began.is_some(), "no child");
        drop(asked);
        assert_no_traces(&jvm, jvm.id());
    });
}

/// How many walks a storm has, where somebody says so.
fn runs() -> Option<u64> {
    std::env::var("HEAPWARDEN_TEST_RUNS").ok()?.parse().ok()
}

#[test]
fn walks_one_after_the_other_under_a_storm_break_nothing() {
    let (vms, count) = match is_long() {
        true => (some_vms(0), runs().unwrap_or(1000)),
        false => (one_jdk_with(Collector::G1, 0), runs().unwrap_or(12)),
    };
    on_each(&vms, |vm| {
        let (_, more) = how(vm);
        let mut jvm = victim(vm, "victim.paths.Storm")
            .policy(FINE)
            .heap("256m")
            .flag("-XX:StartFlightRecording=settings=profile")
            .flag("-Xlog:jfr*=off")
            .start();
        jvm.ask("gc");
        let mut arguments = vec!["--class", "victim.paths.Storm$Kept"];
        arguments.extend(more);
        let mut found = 0;
        for turn in 0..count {
            let answer = paths(&jvm, &arguments);
            found += u64::from(!answer.paths.is_empty());
            // The policy is put in force anew meanwhile.
            if turn % 5 == 0 {
                let text = format!("{FINE}# {turn}\n");
                std::fs::write(jvm.folder().join("heapwarden.toml"), text).expect("writable");
            }
        }
        assert_eq!(found, count, "walks that found what is kept");
        // On a slow machine it has done little by then.
        let mut done = Vec::new();
        let mut words: Vec<u64> = Vec::new();
        let is_storm = poll(PATIENCE, || {
            done = jvm.ask("done");
            words = (done[0].split(' ').skip(1))
                .map(|word| word.parse().expect("a number"))
                .collect();
            let [processes, _, classes, threads, deployments] = words[..] else {
                panic!("{done:?}")
            };
            (processes > 10 && classes > 10 && threads > 100 && deployments > 10).then_some(())
        });
        assert!(is_storm.is_some(), "{done:?}");
        println!("{vm}: {count} walks; processes, lost, classes, threads, deployments: {words:?}");
        assert_eq!(words[1], 0, "lost: {}", jvm.log());
        assert_no_traces(&jvm, jvm.id());
        jvm.finish();
    });
}

const THREE: &str = r#"
[[account]]
name = "maker"
packages = ["victim.paths.maker"]
[[account]]
name = "keeper"
packages = ["victim.paths.keeper"]
[[account]]
name = "other"
packages = ["victim.paths.other"]
"#;

#[test]
fn holders_are_told_from_makers_alone_together_and_on_a_stack() {
    on_each(&some_vms(2), |vm| {
        let mut jvm = victim(vm, "victim.paths.MadeAndKept")
            .policy(&format!("{FINE}{THREE}"))
            .heap("256m")
            .start();
        jvm.ask("hold");
        let accounts = jvm.settled();
        let (_, more) = how(vm);
        let mut arguments = more.to_vec();
        arguments.push("--json");
        let finished = heapwarden(&jvm, "holders", &arguments);
        assert!(finished.status.success(), "{finished:#?}\n{}", jvm.log());
        let holders: Holders<'_> = serde_json::from_str(&finished.stdout).expect("the document");
        let row = |holder: &str| {
            let mut rows = holders.holders.iter();
            rows.find(|row| row.holder == holder && row.made_by == "maker")
                .unwrap_or_else(|| panic!("{vm}: no row of {holder}: {holders:#?}"))
        };
        let made = holders.made.iter().find(|made| made.made_by == "maker");
        let made = made.expect("what maker made");
        // With the headers of arrays of 1,000 bytes.
        let bytes = |count: u64| (count * 1016) as f64;
        let within = |what: &str, found: u64, truth: f64, error: f64| {
            assert!(
                (found as f64 - truth).abs() < 5.0 * error.max(40_000.0),
                "{vm}: {what}: {found}, truth {truth} ± {error}: {holders:#?}"
            );
        };
        let keeper = row("keeper");
        let error = keeper.standard_error_bytes as f64;
        within("held by keeper", keeper.live_bytes, bytes(9000), error);
        within("by nobody else", keeper.exclusive_bytes, bytes(6000), error);
        let other = row("other");
        let error = other.standard_error_bytes as f64;
        within("held by other", other.live_bytes, bytes(3000), error);
        within("by other alone", other.exclusive_bytes, 0.0, 1.0);
        within("held by several", made.shared_bytes, bytes(3000), error);
        let stacks = row("_stacks");
        within(
            "on stacks",
            stacks.live_bytes,
            bytes(4000),
            stacks.standard_error_bytes as f64,
        );
        // The rows divide what is live.
        let of_maker = holders.holders.iter().filter(|row| row.made_by == "maker");
        let alone: u64 = of_maker.map(|row| row.exclusive_bytes).sum();
        assert_eq!(alone + made.shared_bytes, made.live_bytes, "{holders:#?}");
        let live = accounts.holding("maker").live_bytes;
        let difference = (live - made.live_bytes as f64).abs();
        assert!(
            difference < 0.05 * live + 100_000.0,
            "live {live}, {made:?}"
        );
    });
}
