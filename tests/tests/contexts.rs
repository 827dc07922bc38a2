//! Contexts: what inserted code counts by calling context is what the program did, to the object.

use std::collections::BTreeMap;
use std::time::Duration;

use heapwarden_tests::command::{self, poll};
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Builder, Jvm, api_user, victim};
use heapwarden_tests::{artifacts, scrape};
use serde_json::Value;

/// Longest that counts may take to be gathered, and a command to run, on a busy machine.
const SOON: Duration = command::PATIENCE;
/// Counts are gathered more often than this.
const GATHERED: Duration = Duration::from_millis(1_000);
const ON: &str = "[exact]\ncontexts = [\"victim.contexts.*\"]\n";
const OFF: &str = "[exact]\ncontexts = []\n";
const BYTECODES: &str = "[exact]\ncontexts = [\"victim.contexts.*\"]\nbytecodes = true\n";

/// By path of methods and type: objects, or arrays and their elements.
type Tuples = BTreeMap<(String, String), (u64, u64)>;

fn program(vm: &Vm, policy: &str) -> Builder {
    victim(vm, "victim.ContextWays").policy(policy)
}

fn document(jvm: &Jvm) -> Value {
    let answer = scrape::get(jvm.address(), "/api/v1/contexts");
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str(&answer.body).expect("JSON")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// `victim.contexts.Paths.leaf(int)` as `Paths.leaf`.
fn short(method: &str) -> String {
    let method = method.split('(').next().unwrap_or_default();
    method.replace("victim.contexts.", "")
}

/// The path of each context.
fn paths(document: &Value) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for context in list(&document["contexts"]) {
        let method = short(context["method"].as_str().expect("a method"));
        paths.push(match context["parent"].as_u64() {
            None | Some(0) => method,
            Some(parent) => format!("{} {method}", paths[parent as usize]),
        });
    }
    paths
}

fn tuples(document: &Value) -> Tuples {
    let mut tuples = Tuples::new();
    for (context, path) in list(&document["contexts"]).iter().zip(paths(document)) {
        let number = |value: &Value| value.as_u64().expect("a number");
        for of in list(&context["objects"]) {
            let class = short(of["class"].as_str().expect("a class"));
            let before = tuples.insert((path.clone(), class), (number(&of["objects"]), 0));
            assert_eq!(before, None);
        }
        for of in list(&context["arrays"]) {
            let class = format!("{}[]", of["elements"].as_str().expect("a type"));
            let counted = (number(&of["arrays"]), number(&of["elements_total"]));
            assert_eq!(tuples.insert((path.clone(), class), counted), None);
        }
    }
    tuples
}

/// Waits until three gatherings in a row have changed nothing, because a busy machine may leave one out, and returns
/// the document that is published then.
fn rested(jvm: &Jvm) -> Value {
    const SAME: u32 = 3;
    let mut last = document(jvm);
    let mut same = 0;
    let rested = poll(SOON, || {
        std::thread::sleep(GATHERED);
        let now = document(jvm);
        same = if now == last { same + 1 } else { 0 };
        last = now;
        (same == SAME).then(|| last.clone())
    });
    rested.unwrap_or_else(|| panic!("contexts do not come to rest"))
}

/// Gives an order, and returns the objects and elements that it adds, by path and type.
fn counted(jvm: &mut Jvm, order: &str) -> Tuples {
    let before = tuples(&rested(jvm));
    jvm.ask(order);
    let mut after = tuples(&rested(jvm));
    for (key, (objects, elements)) in &before {
        let now = after.get_mut(key).expect("nothing that was counted goes");
        *now = (now.0 - objects, now.1 - elements);
    }
    after.retain(|_, counted| *counted != (0, 0));
    after
}

fn expected(tuples: &[(&str, &str, u64, u64)]) -> Tuples {
    (tuples.iter())
        .map(|&(path, class, objects, elements)| {
            ((path.to_owned(), class.to_owned()), (objects, elements))
        })
        .collect()
}

/// By path of methods: calls that have ended, and the instructions that they have run.
type Ran = BTreeMap<String, (u64, u64)>;

fn ran(document: &Value) -> Ran {
    let paths = paths(document);
    let all = list(&document["contexts"]).iter().zip(paths);
    all.filter_map(|(context, path)| {
        let calls = context["calls"].as_u64()?;
        Some((path, (calls, context["bytecodes"].as_u64().expect("both"))))
    })
    .collect()
}

/// So many objects of the tree found no room, and calls.
fn overflow(jvm: &Jvm, reason: &str) -> (u64, u64) {
    let document = document(jvm);
    let mut all = list(&document["overflow"]).iter();
    let of = all.find(|of| of["reason"] == reason).expect("the reason");
    let number = |value: &Value| value.as_u64().expect("a number");
    (number(&of["calls"]), number(&of["objects"]))
}

#[test]
fn the_papers_examples_come_out_as_the_paper_says() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = program(vm, ON).start();
        let found = counted(&mut jvm, "examples");
        const A: &str = "Examples.run Examples.constructors Examples$A.<init>";
        let wanted = expected(&[
            ("Examples.run Examples.objects235", "reference[]", 9, 38),
            ("Examples.run Examples.objects230", "reference[]", 9, 8),
            ("Examples.run Examples.objects205", "reference[]", 3, 2),
            ("Examples.run Examples.objects035", "reference[]", 1, 0),
            ("Examples.run Examples.ints235", "reference[]", 3, 8),
            ("Examples.run Examples.ints235", "int[]", 6, 30),
            ("Examples.run Examples.ints230", "reference[]", 3, 8),
            ("Examples.run Examples.ints230", "int[]", 6, 0),
            ("Examples.run Examples.ints205", "reference[]", 3, 2),
            ("Examples.run Examples.ints035", "reference[]", 1, 0),
            ("Examples.run Examples.partial", "reference[]", 5, 24),
            ("Examples.run Examples.booleans", "reference[]", 1, 3),
            ("Examples.run Examples.booleans", "boolean[]", 3, 21),
            ("Examples.run Examples.constructors", "Examples$A", 1, 0),
            (A, "java.lang.Object", 1, 0),
        ]);
        assert_eq!(found, wanted, "{vm}");
        // Nothing can be counted in the second constructor, which is beneath the first, so it has no place.
        let document = document(&jvm);
        assert!(paths(&document).contains(&A.to_owned()), "{vm}: {document}");
        let both = format!("{A} Examples$A.<init>");
        assert!(!paths(&document).contains(&both), "{vm}: {document}");
        jvm.finish();
    });
}

#[test]
fn two_runs_of_a_deterministic_program_give_identical_tuples() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let run = || {
            let mut jvm = program(vm, BYTECODES).start();
            let orders = [
                "mixed 500",
                "exceptions 50",
                "recurse 40",
                "wide 6",
                "loops 900",
            ];
            for order in orders {
                jvm.ask(order);
            }
            let document = rested(&jvm);
            jvm.finish();
            (tuples(&document), ran(&document))
        };
        let (one, other) = (run(), run());
        assert!(one.0.len() > 150 && one.1.len() > 150, "{vm}: {one:?}");
        assert_eq!(one, other, "{vm}");
    });
}

#[test]
fn paths_through_the_jdk_are_counted_from_where_they_come_back() {
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let mut jvm = program(vm, ON).start();
        let found = counted(&mut jvm, "mixed 30");
        let of = |path: &str, class: &str| {
            let key = (format!("Paths.mixed {path}"), class.to_owned());
            found.get(&key).copied().unwrap_or_default()
        };
        // Even rounds go left and right, then right again; each leaf by its own path.
        assert_eq!(of("Paths.left Paths.leaf", "Paths$Once"), (30, 0));
        assert_eq!(
            of("Paths.left Paths.right Paths.leaf", "Paths$Once"),
            (30, 0)
        );
        assert_eq!(of("Paths.right Paths.leaf", "reference[]"), (60, 120));
        assert_eq!(of("Paths.right Paths.leaf", "byte[]"), (60, 60));
        assert_eq!(of("Paths.lambda$mixed$0", "long[]"), (30, 60), "{found:?}");
        let called_back = of("Paths.lambda$mixed$1 Paths.leaf", "Paths$Once");
        assert_eq!(called_back, (90, 0), "{found:?}");
        jvm.finish();
    });
}

/// Adds the objects that so many rounds of `Throwing.down(3)` make beneath `path`.
fn down(path: &str, rounds: u64, into: &mut Tuples) {
    let mut path = path.to_owned();
    for elements in [3, 2, 1, 0] {
        path.push_str(" Throwing.down");
        let key = (path.clone(), "char[]".to_owned());
        into.insert(key, (rounds, elements * rounds));
    }
    let thrown = "java.lang.IllegalStateException".to_owned();
    into.insert((path, thrown), (rounds, 0));
}

#[test]
fn exceptions_leave_each_thread_where_it_was() {
    const ROUNDS: u64 = 300;
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = program(vm, ON).start();
        let found = counted(&mut jvm, &format!("exceptions {ROUNDS}"));
        let mut wanted = expected(&[
            ("Throwing.caughtWithin", "Paths$Once", 2 * ROUNDS, 0),
            ("Throwing.caughtWithin", "short[]", ROUNDS, 2 * ROUNDS),
            ("Throwing.inConstructor", "Paths$Once", 2 * ROUNDS, 0),
            ("Throwing.inConstructor", "Throwing$Before", ROUNDS, 0),
            ("Throwing.inConstructor", "Throwing$After", ROUNDS, 0),
            // After each exception that left all of them, and at the end of the round.
            ("Paths.once", "Paths$Once", 6 * ROUNDS, 0),
            ("Throwing.beneath", "Throwing$Beneath", ROUNDS, 0),
            ("Throwing.beneath", "Paths$Once", ROUNDS, 0),
        ]);
        down("Throwing.caughtWithin", ROUNDS, &mut wanted);
        down("Throwing.through", ROUNDS, &mut wanted);
        for (path, is_after) in [
            ("Throwing.inConstructor Throwing$Before.<init>", false),
            ("Throwing.inConstructor Throwing$After.<init>", true),
            ("Throwing$Before.<init>", false),
            ("Throwing$After.<init>", true),
            (
                "Throwing.beneath Throwing$Beneath.<init> Throwing$Failing.<init>",
                false,
            ),
        ] {
            let thrown = &format!("{path} Throwing.thrown");
            let made = [
                (&thrown[..], "double[]", ROUNDS, ROUNDS),
                (thrown, "java.lang.IllegalStateException", ROUNDS, 0),
                (path, "float[]", ROUNDS, ROUNDS),
            ];
            wanted.extend(expected(&made[..if is_after { 3 } else { 2 }]));
        }
        assert_eq!(found, wanted, "{vm}");
        jvm.finish();
    });
}

#[test]
fn what_is_too_deep_counts_for_the_deepest_context_there_is() {
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let mut jvm = program(vm, ON).start();
        let found = counted(&mut jvm, "recurse 3000");
        let once = |depth: usize| {
            let path = vec!["Paths.recurse"; depth].join(" ");
            found.get(&(path, "Paths$Once".to_owned())).copied()
        };
        for depth in 1..1_000 {
            assert_eq!(once(depth), Some((1, 0)), "{vm}: {depth}");
        }
        assert_eq!(once(1_000), Some((2_001, 0)), "{vm}");
        assert_eq!(found.len(), 1_000, "{vm}");
        // The call that found no room, and the objects of those beneath it too.
        assert_eq!(overflow(&jvm, "depth"), (1, 2_000), "{vm}");
        let metrics = jvm.metrics();
        let published = |name: &str| metrics.value(name, &[("reason", "depth")]);
        let calls = published("heapwarden_exact_context_overflow_calls_total");
        let objects = published("heapwarden_exact_context_overflow_objects_total");
        assert_eq!((calls, objects), (Some(1.0), Some(2_000.0)), "{vm}");
        jvm.finish();
    });
}

/// How many calls find no room beneath `wide` of this depth, without those beneath them.
fn refused(depth: u32, room: &mut u64) -> u64 {
    let takes = |room: &mut u64| {
        let left = room.checked_sub(1);
        *room = left.unwrap_or(0);
        left.is_some()
    };
    let mut refused = 0;
    for _maker in 0..if depth == 0 { 0 } else { 2 } {
        // The maker, and `wide` beneath it.
        refused += match takes(room) && takes(room) {
            true => self::refused(depth - 1, room),
            false => 1,
        };
    }
    refused
}

#[test]
fn a_full_tree_counts_for_the_contexts_above_and_loses_nothing() {
    const DEPTH: u32 = 15;
    on_each(&one_jdk_with(Collector::G1, 2), |vm| {
        let mut jvm = program(vm, ON).start();
        let before = jvm.metrics().value("heapwarden_exact_contexts", &[]);
        // One is that of `wide` itself.
        let mut room = 65_535 - before.unwrap_or(0.0) as u64 - 1;
        let found = counted(&mut jvm, &format!("wide {DEPTH}"));
        let all: u64 = found.values().map(|(objects, _)| objects).sum();
        assert_eq!(all, (1 << (DEPTH + 1)) - 2, "{vm}");
        // Each of these would have a context of its maker, and of `wide` beneath.
        assert!(2 * all > 65_535);
        let contexts = jvm.metrics().value("heapwarden_exact_contexts", &[]);
        assert_eq!(contexts, Some(65_535.0), "{vm}");
        let (calls, objects) = overflow(&jvm, "contexts");
        assert_eq!(calls, refused(DEPTH, &mut room), "{vm}");
        // The others were made where there is no context for them.
        let makes = |path: &str| path.ends_with("Paths.one") || path.ends_with("Paths.other");
        let in_place = found.keys().filter(|(path, _)| makes(path)).count() as u64;
        assert_eq!(objects, all - in_place, "{vm}");
        // Contexts that are there are still found, and the tree stays as large as it is.
        let again = counted(&mut jvm, &format!("wide {DEPTH}"));
        assert_eq!(again, found, "{vm}");
        let memory = jvm.metrics();
        let memory = memory.value("heapwarden_agent_memory_bytes", &[("part", "contexts")]);
        assert!(
            memory.is_some_and(|bytes| bytes > 3e6 && bytes < 64e6),
            "{vm}: {memory:?}"
        );
        jvm.finish();
    });
}

#[test]
fn forty_virtual_threads_are_counted_to_the_object() {
    const ROUNDS: u64 = 400;
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = program(vm, ON).start();
        let found = counted(&mut jvm, &format!("threads 40 {ROUNDS}"));
        let all = 40 * ROUNDS;
        let wanted = expected(&[
            ("Paths.yielding", "Paths$Once", all, 0),
            ("Paths.yielding Paths.parked", "int[]", 2 * all, 7 * all),
            ("Paths.yielding Paths.parked", "Paths$Once", all, 0),
        ]);
        assert_eq!(found, wanted, "{vm}");
        let lost = jvm.metrics();
        let lost = lost.value("heapwarden_exact_context_lost_objects_total", &[]);
        assert_eq!(lost, Some(0.0), "{vm}");
        jvm.finish();
    });
}

#[test]
fn a_reload_switches_them_on_and_off_with_accounts_and_without() {
    const ACCOUNTS: &str = "[exact]\naccounts = true\ncontexts = [\"victim.contexts\"]\n";
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let builder = program(vm, OFF);
        let file = builder.policy_path();
        let mut jvm = builder.start();
        let set = |policy: &str| std::fs::write(&file, policy).expect("the policy can be written");
        jvm.ask("mixed 10");
        assert_eq!(tuples(&rested(&jvm)), Tuples::new(), "{vm}");
        set(ON);
        jvm.until_logged("contexts are counted of victim.contexts.*");
        let first = counted(&mut jvm, "mixed 10");
        assert!(first.len() > 10, "{vm}: {first:?}");
        assert_eq!(counted(&mut jvm, "mixed 10"), first, "{vm}");
        set(OFF);
        jvm.until_logged("contexts are counted of no package");
        assert_eq!(counted(&mut jvm, "mixed 10"), Tuples::new(), "{vm}");
        set(ACCOUNTS);
        jvm.until_logged("contexts are counted of victim.contexts:");
        assert_eq!(counted(&mut jvm, "mixed 10"), first, "{vm}");
        let found = counted(&mut jvm, "exceptions 3");
        let once = ("Paths.once".to_owned(), "Paths$Once".to_owned());
        assert_eq!(found.get(&once), Some(&(18, 0)), "{vm}");
        jvm.finish();
    });
}

#[test]
fn executed_bytecodes_are_those_of_the_code() {
    const N: u64 = 1_000;
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let builder = program(vm, BYTECODES);
        let file = builder.policy_path();
        let mut jvm = builder.start();
        jvm.ask(&format!("loops {N}"));
        let found = ran(&rested(&jvm));
        let wanted = [
            ("sum", 1, 9 * N + 9),
            ("caught", 1, 6),
            ("caught Loops.thrown", 1, 4 * N + 8),
            ("caught Loops.thrown Loops$Stop.<init>", 1, 7),
            ("deep", 1, 7),
            ("deep Loops.deep", 1, 7),
            ("deep Loops.deep Loops.deep", 1, 7),
            ("deep Loops.deep Loops.deep Loops.deep", 1, 3),
        ];
        for (path, calls, bytecodes) in wanted {
            let path = format!("Loops.run Loops.{path}");
            assert_eq!(found.get(&path), Some(&(calls, bytecodes)), "{vm}: {path}");
        }
        assert_eq!(found.get("Loops.run"), Some(&(1, 28)), "{vm}");
        // Methods without loops that allocate nothing, and call nothing but such.
        assert_eq!(found.len(), 9, "{vm}: {found:?}");
        // Virtual threads, or platform threads.
        jvm.ask("threads 40 50");
        let threads = ran(&rested(&jvm));
        let calls = |path: &str| threads.get(path).map(|ran| ran.0);
        assert_eq!(calls("Paths.yielding"), Some(40), "{vm}");
        assert_eq!(calls("Paths.yielding Paths.parked"), Some(40 * 50), "{vm}");
        // Off again, while contexts go on.
        std::fs::write(&file, ON).expect("the policy can be written");
        jvm.until_logged("contexts are counted of victim.contexts.*:");
        let before = document(&jvm);
        let made = counted(&mut jvm, "loops 10");
        assert_eq!(made.len(), 2, "{vm}: {made:?}");
        assert_eq!(ran(&document(&jvm)), ran(&before), "{vm}");
        let said = command::run(
            std::process::Command::new(artifacts::command())
                .args(["contexts", "--by", "bytecodes"])
                .arg(jvm.address().to_string()),
            SOON,
        );
        let sum = format!("1 calls with {} of its own", 9 * N + 9);
        assert!(said.stdout.contains(&sum), "{vm}: {said:?}");
        jvm.finish();
    });
}

/// All instructions of `wide`: eleven, or three where it calls nothing; and of each of its makers: `new`, `dup`,
/// `invokespecial`, `putstatic`, `iload`, `invokestatic` and `return`. The constructor is small.
fn bytecodes_of_wide(depth: u32) -> u64 {
    let leaves = 1 << depth;
    (leaves - 1) * 11 + leaves * 3 + (2 * leaves - 2) * 7
}

#[test]
fn a_full_tree_counts_all_bytecodes() {
    const DEPTH: u32 = 15;
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let mut jvm = program(vm, BYTECODES).start();
        let mut all = |depth: u32| {
            let sum = |jvm: &Jvm| -> u64 {
                let ran = ran(&rested(jvm));
                let of_wide = ran
                    .iter()
                    .filter(|(path, _)| path.starts_with("Paths.wide"));
                of_wide.map(|(_, ran)| ran.1).sum()
            };
            let before = sum(&jvm);
            jvm.ask(&format!("wide {depth}"));
            sum(&jvm) - before
        };
        assert_eq!(all(6), bytecodes_of_wide(6), "{vm}");
        assert_eq!(all(DEPTH), bytecodes_of_wide(DEPTH), "{vm}");
        // A call that found no room is not counted for the context above: each path is taken once by an order.
        let most = ran(&document(&jvm)).values().map(|ran| ran.0).max();
        assert_eq!(most, Some(2), "{vm}");
        assert!(overflow(&jvm, "contexts").0 > 0, "{vm}");
        jvm.finish();
    });
}

#[test]
fn checked_by_the_jvm_itself_they_are_clean() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = program(vm, BYTECODES)
            .flag("-Xcheck:jni")
            .flag("-XX:+UnlockDiagnosticVMOptions")
            .flag("-XX:+BytecodeVerificationLocal")
            .start();
        for order in [
            "examples",
            "mixed 50",
            "exceptions 20",
            "threads 8 20",
            "loops 9",
        ] {
            jvm.ask(order);
        }
        rested(&jvm);
        let said = jvm.finish();
        for fault in ["FATAL ERROR in native", "WARNING in native", "VerifyError"] {
            assert!(!said.contains(fault), "{vm}: {said}");
        }
    });
}

#[test]
fn the_command_prints_the_tree_and_the_agents_own_answer() {
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let mut jvm = program(vm, ON).start();
        jvm.ask("examples");
        rested(&jvm);
        let address = jvm.address().to_string();
        let run = |arguments: &[&str]| {
            let mut command = std::process::Command::new(artifacts::command());
            let finished = command::run(command.arg("contexts").args(arguments), SOON);
            assert!(finished.status.success(), "{vm}: {finished:?}");
            finished.stdout
        };
        let text = run(&[&address]);
        assert!(
            text.contains("contexts of victim.contexts.*; 55 objects in"),
            "{vm}: {text}"
        );
        assert!(
            text.contains("6 int[] with 30, 3 reference[] with 8"),
            "{vm}: {text}"
        );
        let json: Value = serde_json::from_str(&run(&["--json", &address])).expect("JSON");
        assert_eq!(json[0]["answer"], document(&jvm), "{vm}");
        jvm.finish();
    });
}

const PROFILED: &str = "[exact]\ncontexts = [\"victim.profiled\"]\n";

#[test]
fn a_thread_reads_its_own_tree() {
    on_each(&one_jdk_with(Collector::G1, 2), |vm| {
        let mut jvm = api_user(vm, "victim.Profiles").policy(PROFILED).start();
        let answer = jvm.ask("own 200");
        let run = "victim.profiled.Work.run(int)";
        let (single, pair) = (
            "victim.profiled.Work.single()",
            "victim.profiled.Work.pair()",
        );
        let item = "victim.profiled.Work$Item";
        let mut found: Vec<&str> = (answer.iter())
            .filter_map(|line| line.strip_prefix("tuple "))
            .collect();
        found.sort_unstable();
        let mut wanted = [
            format!("{run}>{single}|{item}|200|-1"),
            format!("{run}>{pair}>{single}|{item}|200|-1"),
            format!("{run}>{pair}|int|200|1400"),
        ];
        wanted.sort_unstable();
        assert_eq!(found, wanted, "{vm}");
        for line in ["active true", "then 601", "anew 0"] {
            assert!(answer.iter().any(|said| said == line), "{vm}: {answer:?}");
        }
        // Each counts its own, on whatever carrier, and all are in the tree of the JVM.
        let before = all_objects(&rested(&jvm));
        assert_eq!(jvm.ask("threads 40 100"), ["right 40"], "{vm}");
        let after = all_objects(&rested(&jvm));
        assert_eq!(after - before, 40 * 100 + 40 * 39 / 2, "{vm}");
        // Without `bytecodes = true`.
        assert!(jvm.ask("ran 1").iter().all(|line| line.ends_with("|0|0")));
        let misuse = jvm.ask("misuse");
        assert_eq!(misuse, ["second refused", "elsewhere refused"], "{vm}");
        jvm.finish();
    });
}

#[test]
fn a_thread_reads_what_it_has_run() {
    let policy = format!("{PROFILED}bytecodes = true\n");
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let mut jvm = api_user(vm, "victim.Profiles").policy(&policy).start();
        let answer = jvm.ask("ran 200");
        let work = "victim.profiled.Work";
        let (run, single) = (format!("{work}.run(int)"), format!("{work}.single()"));
        let pair = format!("{run}>{work}.pair()");
        // new, dup, invokespecial, putstatic, return; and before the array: invokestatic, bipush, newarray.
        let array = "|200|1000";
        let mut found: Vec<&str> = (answer.iter())
            .filter_map(|line| line.strip_prefix("ran "))
            .collect();
        found.sort_unstable();
        // Two before the loop, three at each test, four in each round, one at the end.
        let mut wanted = [
            "|0|0".to_owned(),
            format!("{run}|1|{}", 2 + 3 * 201 + 4 * 200 + 1),
            format!("{run}>{single}{array}"),
            format!("{pair}{array}"),
            format!("{pair}>{single}{array}"),
        ];
        wanted.sort_unstable();
        assert_eq!(found, wanted, "{vm}");
        jvm.finish();
    });
}

fn all_objects(document: &Value) -> u64 {
    tuples(document).values().map(|(objects, _)| objects).sum()
}

#[test]
fn a_callback_comes_at_exactly_each_nth_object() {
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let mut jvm = api_user(vm, "victim.Profiles").policy(PROFILED).start();
        for (every, objects) in [(1, 50), (7, 1_000), (1_000, 100_000), (600, 599)] {
            let answer = jvm.ask(&format!("every {every} {objects}"));
            let calls: Vec<String> = (1..=objects / every)
                .map(|call| (call * every - 1).to_string())
                .collect();
            let called = format!("called {}", calls.join(" "));
            // Allocations of the callbacks in the same packages are not counted.
            assert_eq!(answer, [format!("counted {objects}"), called], "{vm}");
        }
        // 1 and 10 arrays by one instruction.
        assert_eq!(jvm.ask("many 4 10"), ["counted 11", "called 2"], "{vm}");
        assert_eq!(jvm.ask("failing"), ["ended true", "counted 100"], "{vm}");
        jvm.finish();
    });
}
