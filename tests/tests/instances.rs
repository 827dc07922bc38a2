//! Single objects of an account, against programs that know what they hold.

use heapwarden_tests::application::subject;
use heapwarden_tests::artifacts;
use heapwarden_tests::command::{self, Finished, poll};
use heapwarden_tests::jdk::{
    Collector, Vm, every_jdk_with, is_long, on_each, one_jdk_with, some_vms,
};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::scrape;
use heapwarden_tests::server::Installation;
use heapwarden_tests::stats;
use policy_report::{InstanceAnswers, Instances};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(300);

fn policy(interval: &str, more: &str) -> String {
    format!(
        "[sampling]\ninterval = \"{interval}\"\ncpu-budget = \"none\"\n{more}\n\
         [[account]]\nname = \"shop\"\npackages = [\"victim.instances.*\"]\n"
    )
}

const VALUES: &str = "[privacy]\nvalues = true";

fn heapwarden(jvm: &Jvm, more: &[&str]) -> Finished {
    let mut command = Command::new(artifacts::command());
    command
        .args(["instances", &jvm.id().to_string()])
        .args(more)
        .env("NO_COLOR", "1");
    command::run(&mut command, LIMIT)
}

/// An answer. A busy machine may stop the JVM in the middle of a search: no bound.
fn instances(jvm: &Jvm, more: &[&str]) -> Instances<'static> {
    let mut arguments = vec!["--account", "shop", "--json", "--max-pause", "20s"];
    arguments.extend(more);
    let finished = heapwarden(jvm, &arguments);
    assert!(finished.status.success(), "{finished:#?}\n{}", jvm.log());
    let answer: Instances<'_> = serde_json::from_str(&finished.stdout).expect("the document");
    assert_eq!(answer.not_readable, Vec::<String>::new(), "{answer:#?}");
    answer
}

/// Every JDK with G1, ZGC on the newest, and one more collector.
fn vms() -> Vec<Vm> {
    let mut vms = every_jdk_with(Collector::G1);
    vms.extend(every_jdk_with(Collector::Z).pop());
    vms.extend(one_jdk_with(Collector::Parallel, 1));
    vms
}

fn untouched(jvm: &mut Jvm) {
    assert_eq!(jvm.ask("touched"), ["touched false"], "code was called");
}

/// Collections of the JDK by class, how many elements each holds, and how many it has room for where the test says it.
const SIZES: [(&str, u64, Option<u64>); 20] = [
    ("java.util.ArrayList", 101, Some(200)),
    ("java.util.ArrayDeque", 102, None),
    ("java.util.ArrayDeque", 250, Some(301)),
    ("java.util.HashMap", 103, Some(256)),
    ("java.util.LinkedHashMap", 104, Some(256)),
    ("java.util.HashSet", 105, Some(256)),
    ("java.util.TreeMap", 106, None),
    ("java.util.concurrent.ConcurrentHashMap", 107, Some(256)),
    ("java.util.Vector", 108, Some(160)),
    ("java.lang.StringBuilder", 109, Some(300)),
    ("java.lang.StringBuffer", 110, None),
    ("java.util.TreeSet", 111, None),
    ("java.util.LinkedList", 112, None),
    ("java.util.PriorityQueue", 113, None),
    ("java.util.Hashtable", 114, Some(191)),
    ("java.util.WeakHashMap", 115, Some(256)),
    ("java.util.concurrent.CopyOnWriteArrayList", 116, Some(116)),
    ("java.util.LinkedHashSet", 117, Some(256)),
    ("java.io.ByteArrayOutputStream", 118, None),
    ("java.util.Stack", 119, Some(160)),
];

/// Equal values: class, number of objects, and how the value is shown.
fn equal_values() -> Vec<(&'static str, u64, String)> {
    vec![
        ("java.lang.Integer", 30, "-123456".to_owned()),
        ("java.lang.Long", 29, "77777777777".to_owned()),
        ("java.lang.Double", 28, "1.25".to_owned()),
        ("java.lang.Character", 27, "€".to_owned()),
        (
            "java.util.UUID",
            26,
            "01234567-89ab-cdef-fedc-ba9876543210".to_owned(),
        ),
        (
            "java.math.BigInteger",
            25,
            "-0x000100000000000000000000".to_owned(),
        ),
        ("java.math.BigDecimal", 24, "1250E-2".to_owned()),
        ("int[]", 23, "1, -2, 3".to_owned()),
        (
            "java.lang.String",
            22,
            format!("\u{1b}[31mred\u{202e}{}…", "y".repeat(71)),
        ),
        ("java.lang.Float", 21, "-0.5".to_owned()),
    ]
}

/// Objects by class and number: what the answer says of equal values.
fn groups(answer: &Instances<'_>) -> BTreeMap<(String, u64), (Option<String>, Option<String>)> {
    let rows = answer.equal.iter().flatten();
    rows.map(|row| {
        let text = row.value.text.clone().map(String::from);
        let digest = row.value.digest.clone().map(String::from);
        ((row.class.to_string(), row.objects), (text, digest))
    })
    .collect()
}

#[test]
fn with_every_allocation_sampled_sizes_and_values_are_exact_on_every_jdk() {
    on_each(&vms(), |vm| {
        let builder = victim(vm, "victim.Instances").policy(&policy("exact", ""));
        let file = builder.policy_path();
        let mut jvm = builder.start();
        jvm.ask("one-of-each");
        jvm.settled();
        let answer = instances(&jvm, &["--limit", "100"]);
        assert!(
            !answer.values_shown && answer.cut_short.is_none(),
            "{answer:#?}"
        );
        assert_eq!(answer.standard_error_bytes, 0);
        let elements = answer.elements.as_ref().expect("all tables");
        for (class, count, capacity) in SIZES {
            let found = elements
                .iter()
                .find(|row| row.class == class && row.elements == Some(count));
            let found = found.unwrap_or_else(|| panic!("{vm}: {class} {count}: {elements:#?}"));
            assert!(
                capacity.is_none() || found.capacity == capacity,
                "{vm}: {found:#?}"
            );
        }
        // A class of the application is not looked into, whatever it extends.
        let is_own = |class: &str| class.starts_with("victim.instances.");
        assert!(elements.iter().all(|row| !is_own(&row.class)), "{vm}");
        let largest = answer.largest.as_ref().expect("all tables");
        assert_eq!(largest[0].class, "double[]", "{vm}");
        assert_eq!(largest[0].elements, Some(50_000), "{vm}");
        assert!((400_000..400_100).contains(&largest[0].bytes), "{vm}");
        assert!(largest.is_sorted_by(|a, b| a.bytes >= b.bytes), "{vm}");
        let oldest = answer.oldest.as_ref().expect("all tables");
        assert!(
            oldest
                .iter()
                .all(|row| row.age_at_least_seconds <= row.age_at_most_seconds
                    && (!is_own(&row.class) || (row.value.is_none() && row.elements.is_none())))
        );
        let own = instances(
            &jvm,
            &["--class", "victim.instances.Shop$Touchy", "--oldest"],
        );
        let rows = own.oldest.as_ref().expect("it was asked for");
        assert_eq!((own.sampled, rows.len()), (40, 10), "{vm}: {own:#?}");
        assert!(rows.iter().all(|row| row.bytes >= 128), "{vm}: {own:#?}");
        assert!(own.largest.is_none() && own.equal.is_none(), "{vm}");

        // The value of a digest cannot be looked up: it is another one in each answer.
        let masked = groups(&answer);
        let again = groups(&instances(&jvm, &["--equal", "--limit", "100"]));
        for (class, objects, _) in equal_values() {
            let key = (class.to_owned(), objects);
            let (text, digest) = masked.get(&key).unwrap_or_else(|| panic!("{vm}: {key:?}"));
            assert!(text.is_none() && digest.is_some(), "{vm}: {class}");
            assert_ne!(&again[&key].1, digest, "{vm}: {class}");
        }
        let whole = serde_json::to_string(&answer).expect("it is JSON");
        for secret in ["-123456", "77777777777", "yyyy", "fedc-ba98", "red"] {
            assert!(!whole.contains(secret), "{vm}: {secret} in {whole}");
        }
        let finished = heapwarden(&jvm, &["--account", "shop", "--max-pause", "20s"]);
        assert!(
            finished.stdout.contains("Values are masked"),
            "{finished:#?}"
        );

        // Shown after a reload, and forgotten after another.
        std::fs::write(&file, policy("exact", VALUES)).expect("writable");
        let shown = poll(LIMIT, || {
            let answer = instances(&jvm, &["--equal", "--limit", "100"]);
            answer.values_shown.then_some(answer)
        });
        let shown = groups(&shown.unwrap_or_else(|| panic!("{vm}: {}", jvm.log())));
        for (class, objects, expected) in equal_values() {
            let (text, digest) = &shown[&(class.to_owned(), objects)];
            assert_eq!(text.as_deref(), Some(&*expected), "{vm}: {class}");
            assert!(digest.is_none(), "{vm}: {class}");
        }
        let finished = heapwarden(
            &jvm,
            &[
                "--account",
                "shop",
                "--equal",
                "--limit",
                "100",
                "--max-pause",
                "20s",
            ],
        );
        assert!(
            finished.stdout.contains("\\u{1b}[31mred\\u{202e}yyy")
                && !finished.stdout.contains('\u{1b}'),
            "{finished:#?}"
        );
        let kept = || scrape::get(jvm.address(), "/api/v1/instances").body;
        let answers: InstanceAnswers<'_> = serde_json::from_str(&kept()).expect("the document");
        assert_eq!(answers.answers.len(), 5, "{vm}");
        assert!(kept().contains("77777777777"), "{vm}");
        std::fs::write(&file, policy("exact", "")).expect("writable");
        let forgotten = poll(LIMIT, || (!kept().contains("77777777777")).then_some(()));
        assert!(forgotten.is_some(), "{vm}: {}", kept());

        // Nothing is kept alive by having been looked at.
        assert_eq!(jvm.ask("alive"), ["alive 16"], "{vm}");
        jvm.ask("drop");
        jvm.settled();
        assert_eq!(jvm.ask("alive"), ["alive 0"], "{vm}");
        untouched(&mut jvm);
        let output = jvm.finish();
        assert!(!output.contains("WARNING in native"), "{vm}: {output}");
    });
}

/// Comparisons of a whole run: five for each of a few VMs.
const COMPARISONS: usize = 20;

/// Whether an estimate is further from the truth than chance explains.
fn is_off(estimate: u64, error: u64, truth: u64) -> bool {
    estimate.abs_diff(truth) as f64 > stats::outermost(COMPARISONS) * error as f64
}

#[test]
fn estimates_from_a_sample_are_within_their_errors() {
    let vms = if is_long() {
        some_vms(2)
    } else {
        let mut vms = one_jdk_with(Collector::G1, 0);
        vms.extend(one_jdk_with(Collector::Z, 1));
        vms
    };
    on_each(&vms, |vm| {
        let mut jvm = victim(vm, "victim.Instances")
            .policy(&policy("4KiB", VALUES))
            .heap("400m")
            .start();
        jvm.ask("many");
        jvm.settled();
        let strings = instances(&jvm, &["--class", "java.lang.String", "--equal"]);
        let rows = strings.equal.as_ref().expect("it was asked for");
        // 200,000 strings of 24 bytes, a sample each 4 KiB.
        assert!(strings.sampled > 600, "{vm}: {strings:#?}");
        assert_eq!(
            rows[0].value.text.as_deref(),
            Some("password=hunter2"),
            "{vm}: {rows:#?}"
        );
        let is_wide = matches!(vm.collector, Collector::Z | Collector::GenerationalZ);
        // With a reference of 8 bytes a string has 32.
        let string = if is_wide { 32 } else { 24 };
        let truth = 80_000 * string;
        let row = &rows[0];
        assert!(
            !is_off(row.live_bytes, row.standard_error_bytes, truth),
            "{vm}: {truth} {row:#?}"
        );
        assert!(row.standard_error_bytes < truth / 5, "{vm}: {row:#?}");
        // With an array of 16 bytes and its header each.
        assert!(
            !is_off(
                row.with_content_bytes,
                row.with_content_standard_error_bytes,
                80_000 * (string + 32)
            ),
            "{vm}: {row:#?}"
        );
        // Whoever wants waste of lists and maps alone gets a better estimate of it than by asking for all.
        for (class, truth) in [
            ("java.util.ArrayList", 20_000 * 90 * 4),
            ("java.util.HashMap", 5_000 * 1020 * 4),
        ] {
            let answer = instances(&jvm, &["--class", class, "--wasted"]);
            let rows = answer.wasted.as_ref().expect("it was asked for");
            let row = &rows[0];
            // The width of a reference: ZGC has no narrow ones.
            let truth = if is_wide { 2 * truth } else { truth };
            assert!(
                !is_off(row.wasted_bytes, row.standard_error_bytes, truth),
                "{vm}: {truth} {row:#?}"
            );
            assert!(row.wasted_bytes <= row.capacity_bytes, "{vm}: {row:#?}");
            assert!(row.standard_error_bytes < truth / 2, "{vm}: {row:#?}");
        }
        // All questions at once: of more objects than are looked at.
        let all = instances(&jvm, &[]);
        assert!(
            all.looked_at <= 2_020 && all.drawn <= 2_000,
            "{vm}: {all:#?}"
        );
        assert!(all.sampled > all.drawn, "{vm}: {all:#?}");
        let equal = all.equal.as_ref().expect("all tables");
        let row = (equal.iter())
            .find(|row| {
                row.value.text.as_deref() == Some("password=hunter2")
                    && row.class == "java.lang.String"
            })
            .unwrap_or_else(|| panic!("{vm}: {all:#?}"));
        assert!(
            !is_off(row.live_bytes, row.standard_error_bytes, truth),
            "{vm}: {row:#?}"
        );
        println!(
            "{vm}: {} of {} looked at in {} searches, the longest {} ms, {} ms in all",
            all.looked_at, all.sampled, all.searches, all.longest_search_ms, all.searches_ms
        );
        untouched(&mut jvm);
        let output = jvm.finish();
        assert!(!output.contains("WARNING in native"), "{vm}: {output}");
    });
}

#[test]
fn what_cannot_be_answered_is_said_in_one_line() {
    on_each(&one_jdk_with(Collector::G1, 2), |vm| {
        let mut jvm = victim(vm, "victim.Instances")
            .policy(&policy("4KiB", ""))
            .start();
        jvm.ask("many");
        jvm.settled();
        for (arguments, expected) in [
            (["--account", "nobody"].as_slice(), "of account nobody"),
            (
                &["--account", "shop", "--class", "com.acme.Nothing"],
                "no sampled object of class com.acme.Nothing",
            ),
        ] {
            let finished = heapwarden(&jvm, arguments);
            assert_eq!(finished.status.code(), Some(1), "{finished:#?}");
            assert!(finished.stderr.contains(expected), "{finished:#?}");
            assert_eq!(finished.stderr.lines().count(), 1, "{finished:#?}");
        }
        let finished = heapwarden(&jvm, &["--account", "shop", "--limit", "0"]);
        assert_eq!(finished.status.code(), Some(2), "{finished:#?}");
        // No search is allowed to take any time: one is made, and the answer says why there are no more.
        let finished = heapwarden(
            &jvm,
            &[
                "--account",
                "shop",
                "--wasted",
                "--json",
                "--max-pause",
                "0ms",
            ],
        );
        let answer: Instances<'_> = serde_json::from_str(&finished.stdout).expect("the document");
        assert_eq!((answer.searches, answer.drawn), (1, 1), "{answer:#?}");
        let why = answer.cut_short.expect("it was cut short");
        assert!(why.contains("than the 0 ms"), "{why}");
    });
}

/// Reads the answer to `allocate`: microseconds for all, and for the slowest mebibyte.
fn micros(lines: &[String]) -> (u64, u64) {
    let words: Vec<&str> = lines[0].split(' ').collect();
    let number = |at: usize| words[at].parse().expect("a number");
    (number(1), number(2))
}

#[test]
fn a_thread_that_allocates_goes_on_while_questions_are_answered() {
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        // Each allocation of 1,000 bytes is sampled with a chance of a fifth.
        let mut jvm = victim(vm, "victim.Instances")
            .policy(&policy("4KiB", ""))
            .heap("400m")
            .start();
        jvm.ask("many");
        jvm.settled();
        jvm.ask("allocate 300");
        let alone = micros(&jvm.ask("allocate 300"));
        let id = jvm.id().to_string();
        let is_done = AtomicBool::new(false);
        let (beside, answers) = std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let mut answers: Vec<Instances<'_>> = Vec::new();
                while !is_done.load(Ordering::Relaxed) || answers.is_empty() {
                    let finished = command::run(
                        Command::new(artifacts::command())
                            .args(["instances", &id, "--account", "shop", "--json"])
                            .args(["--max-pause", "20s"]),
                        LIMIT,
                    );
                    let answer = serde_json::from_str(&finished.stdout);
                    answers.push(answer.unwrap_or_else(|error| panic!("{error}: {finished:#?}")));
                }
                answers
            });
            let beside = micros(&jvm.ask("allocate 300"));
            is_done.store(true, Ordering::Relaxed);
            (beside, asking.join().expect("no question fails"))
        });
        let longest = answers.iter().map(|one| one.longest_search_ms);
        let longest = longest.fold(0.0, f64::max);
        let last = answers.last().expect("at least one");
        println!(
            "{vm}: 300 MiB in {} ms alone, the slowest in {} ms; beside {} questions in {} ms, the slowest in {} ms; \
             the longest search {longest} ms, {} searches in {} ms for {} objects",
            alone.0 / 1000,
            alone.1 / 1000,
            answers.len(),
            beside.0 / 1000,
            beside.1 / 1000,
            last.searches,
            last.searches_ms,
            last.looked_at
        );
        assert!(answers.iter().all(|one| one.looked_at > 100));
        untouched(&mut jvm);
        jvm.finish();
    });
}

/// The literals of 10 loads are strings that nobody else has; what is equal most often is printed.
#[test]
fn the_strings_of_an_rdf4j_store_are_those_that_it_was_loaded_with() {
    let subject = subject("rdf4j").expect("it is one of the applications");
    let vm = &one_jdk_with(Collector::G1, 0)[0];
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let site = Installation::with_heap("512m").as_in_production();
    let policy = format!("[sampling]\ninterval = \"4KiB\"\ncpu-budget = \"none\"\n{VALUES}\n");
    let server = subject.application.start(site, vm, data.path(), &policy);
    subject.application.prepare(&server);
    for number in 0..10 {
        let answer = subject.application.load(&server, number);
        assert!(answer.is_ok_and(|answer| answer.status < 300));
    }
    let id = server.id().to_string();
    let collected = command::run(
        Command::new(vm.jdk.program("jcmd")).args([&*id, "GC.run"]),
        LIMIT,
    );
    assert!(collected.status.success(), "{collected:#?}");
    let ask = || {
        let finished = command::run(
            Command::new(artifacts::command())
                .args(["instances", &id, "--account", "/rdf4j-server"])
                .args(["--class", "java.lang.String", "--elements", "--equal"])
                .args(["--limit", "100", "--json", "--max-pause", "20s"]),
            LIMIT,
        );
        serde_json::from_str::<Instances<'_>>(&finished.stdout).ok()
    };
    let literal = "x".repeat(80);
    let literals = |answer: &Instances<'_>| {
        let rows = answer.elements.iter().flatten();
        rows.filter(|row| {
            let text = row.value.as_ref().and_then(|value| value.text.as_deref());
            text.is_some_and(|text| text.starts_with(&literal))
        })
        .count()
    };
    // 5,000 of 24 bytes, a sample each 4 KiB: 29. The agent learns by and by that a collection was there.
    let answer = poll(LIMIT, || ask().filter(|answer| literals(answer) >= 10));
    let answer = answer.unwrap_or_else(|| panic!("{:#?}\n{}", ask(), server.log()));
    assert!(answer.values_shown && answer.not_readable.is_empty());
    let equal = answer.equal.as_ref().expect("it was asked for");
    for row in equal.iter().take(10) {
        println!(
            "{} strings of {} ± {} bytes: {:?}",
            row.objects, row.live_bytes, row.standard_error_bytes, row.value.text
        );
    }
    // Each literal is another one.
    assert!(equal.iter().all(|row| {
        let text = row.value.text.as_deref();
        text.is_some_and(|text| !text.starts_with(&literal))
    }));
    server.finish();
}
