//! The policy file is written ten thousand times in every way, good and bad, while accounts are
//! charged: no answer ever shows a part of a policy, the last good one is in force at the end, and
//! the log stays readable.
//!
//! Every good policy carries a serial number in each of its limits, in the mode and nowhere else,
//! so that whoever reads an answer sees whether it is of one piece.

use heapwarden_tests::command::poll;
use heapwarden_tests::jdk::{Collector, is_long, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::policy_edits::{Editor, Way};
use heapwarden_tests::scrape::{self, Accounts};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often the policy is edited. The agent reads about one policy a second of them, and the log
/// bounds the lines only after twenty: fewer edits than this test neither.
const EDITS: u64 = 10_000;
const LONG_EDITS: u64 = 40_000;

fn edits() -> u64 {
    if is_long() { LONG_EDITS } else { EDITS }
}

/// The package accounts, all of which the victim allocates in.
const NAMES: [(&str, &str); 5] = [
    ("orders", "com.acme.orders"),
    ("deep", "com.acme.orders.deep"),
    ("billing", "com.acme.billing"),
    ("xml", "org.lib.xml"),
    ("json", "org.lib.json"),
];
/// Beyond the heap, so that no account ever reaches it and nothing waits for evidence.
const LIMIT: u64 = 4 << 30;
const SOFT_LIMIT: u64 = 2 << 30;
/// Longest that a change may take to be in force on a busy machine.
const IN_FORCE: Duration = Duration::from_secs(60);
/// A content that is to be seen rests longer than the agent waits for writers.
const REST: Duration = Duration::from_millis(400);
/// Within which the log tells what it had no room for.
const TOLD: Duration = Duration::from_secs(60);

fn policy(serial: u64) -> String {
    let mode = mode(serial);
    let mut text = format!("[sampling]\ninterval = \"exact\"\n[enforcement]\nmode = \"{mode}\"\n");
    for (name, package) in NAMES {
        let (soft, limit) = (SOFT_LIMIT + serial, LIMIT + serial);
        let _ = write!(
            text,
            "[[account]]\nname = \"{name}\"\npackages = [\"{package}\"]\n\
             soft-limit = \"{soft}B\"\nlimit = \"{limit}B\"\n"
        );
    }
    text
}

fn mode(serial: u64) -> &'static str {
    if serial.is_multiple_of(2) {
        "observe"
    } else {
        "enforce"
    }
}

/// Which policy an answer is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    /// The policy of an empty file, which has no account of ours.
    Defaults,
    Serial(u64),
}

/// Reads the policy off an answer.
///
/// # Panics
/// If it is of more than one, or of a part of one.
fn shown(accounts: &Accounts) -> Shown {
    let of = |name: &str, key: &str, base: u64| {
        let bytes = accounts
            .find(name)
            .map_or(&Value::Null, |found| &found[key]);
        bytes.as_u64().map(|bytes| bytes - base)
    };
    let serials: BTreeSet<Option<u64>> = NAMES
        .iter()
        .flat_map(|(name, _)| {
            [
                of(name, "limit_bytes", LIMIT),
                of(name, "soft_limit_bytes", SOFT_LIMIT),
            ]
        })
        .collect();
    let policy = &accounts.0["policy"];
    assert_eq!(
        serials.len(),
        1,
        "of several policies: {serials:?}, {policy}"
    );
    let (shown, expected) = match serials.first().expect("one").as_ref() {
        None => (Shown::Defaults, "observe"),
        Some(&serial) => (Shown::Serial(serial), mode(serial)),
    };
    assert_eq!(policy["mode"], expected, "{shown:?} with another's mode");
    shown
}

/// A generator (a linear congruence with Knuth's factor), so that a storm can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Mostly none, now and then longer than anything must rest to be believed.
    fn pause(&mut self) -> Duration {
        Duration::from_millis(match self.below(100) {
            0..80 => 0,
            80..98 => self.below(15),
            _ => 100 + self.below(600),
        })
    }
}

/// Returns bytes that are no policy, or another one than was meant.
fn damaged(whole: &str, random: &mut Random) -> Vec<u8> {
    let mut bytes = whole.as_bytes().to_vec();
    match random.below(9) {
        // Within the last limit, as a full disk or a killed editor leaves it.
        0 => bytes.truncate(whole.len() - 9),
        1 => bytes.extend(b"}]= garbage"),
        2 => bytes = whole.replacen("soft-limit", "sotf-limit", 1).into_bytes(),
        3 => bytes = whole.replacen("[[account]]", "[[account", 1).into_bytes(),
        4 => {
            bytes = whole
                .replacen("\"exact\"", "\"64 bananas\"", 1)
                .into_bytes()
        }
        5 => bytes.splice(20..20, [0xff, 0xfe, 0x00]).for_each(drop),
        // The limit below the soft limit.
        6 => {
            bytes = whole
                .replacen(&format!("\"{}", SOFT_LIMIT >> 30), "\"9", 1)
                .into_bytes()
        }
        7 => bytes.clear(),
        _ if random.below(10) == 0 => bytes.resize(2 << 20, b'#'),
        _ => bytes = b"[[account]]\nname = \"orders\"\n".to_vec(),
    }
    bytes
}

/// Edits the file; returns how often each way and each damage was taken.
fn storm(editor: &mut Editor, seed: u64) -> BTreeMap<String, u32> {
    let mut random = Random(seed);
    let mut taken = BTreeMap::new();
    let obstacles = editor.obstacles();
    for edit in 1..=edits() {
        let whole = policy(edit);
        let way = random.of(&Way::ALL);
        let rests = edit.is_multiple_of(250);
        let kind = if rests { 0 } else { random.below(10) };
        let name = match kind {
            0..6 => {
                editor.write(way, whole.as_bytes(), random.pause());
                format!("{way:?}")
            }
            6..8 => {
                editor.write(way, &damaged(&whole, &mut random), random.pause());
                "damaged".to_owned()
            }
            8 => {
                editor.append(b"\nneither = key nor value\n");
                "appended".to_owned()
            }
            _ => {
                let obstacle = random.of(&obstacles);
                editor.obstruct(obstacle);
                format!("{obstacle:?}")
            }
        };
        *taken.entry(name).or_default() += 1;
        if rests {
            std::thread::sleep(REST);
        }
    }
    taken
}

/// Reads the accounts until `over`; returns the policies seen, by generation.
fn watch(address: SocketAddr, over: &AtomicBool) -> BTreeMap<u64, Shown> {
    let mut seen = BTreeMap::new();
    let mut latest = 0;
    while !over.load(Ordering::Acquire) {
        let accounts = scrape::accounts(address);
        let shown = shown(&accounts);
        let generation = accounts.0["policy"]["generation"]
            .as_u64()
            .expect("a number");
        assert!(generation >= latest, "{latest} came before {generation}");
        latest = generation;
        let before = seen.insert(generation, shown);
        assert!(
            before.is_none_or(|before| before == shown),
            "generation {generation} is of {before:?} and of {shown:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    seen
}

/// Allocates in all accounts until `over`, and checks that the program still works.
fn load(jvm: &mut Jvm, over: &AtomicBool) -> u64 {
    let mut rounds = 0;
    while !over.load(Ordering::Acquire) {
        for (_, package) in NAMES {
            let answer = jvm.ask(&format!("churn {package} bytes:984*500 bytes:24*500"));
            assert!(answer.concat().contains(package), "{answer:?}");
        }
        rounds += 1;
    }
    rounds
}

/// Sets its flag when it goes, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Waits until the policy is in force, and says for how long.
fn await_serial(jvm: &Jvm, serial: u64, what: &str) -> Duration {
    let begin = Instant::now();
    jvm.until(IN_FORCE, what, |accounts| {
        shown(accounts) == Shown::Serial(serial)
    });
    begin.elapsed()
}

#[test]
fn thousands_of_edits_leave_the_last_good_policy_and_never_half_of_one() {
    on_each(&one_jdk_with(Collector::G1, 2), |vm| {
        let builder = NAMES
            .iter()
            .fold(victim(vm, "victim.Holder"), |builder, (_, package)| {
                builder.argument(*package)
            });
        let builder = builder.policy(&policy(0));
        let mut editor = Editor::new(&builder.policy_path());
        let mut jvm = builder.start();
        await_serial(&jvm, 0, "the first policy");
        for (held, (_, package)) in NAMES.iter().enumerate() {
            jvm.ask(&format!("hold {package} bytes:984*{}", (held + 1) * 100));
        }
        let before = jvm.settled();
        for (held, (name, _)) in NAMES.iter().enumerate() {
            assert_eq!(before.holding(name).live_objects, (held + 1) as f64 * 100.0);
        }

        let (over, address, begin) = (AtomicBool::new(false), jvm.address(), Instant::now());
        let (taken, seen, rounds) = std::thread::scope(|scope| {
            let edits = scope.spawn(|| {
                let _over = Over(&over);
                storm(&mut editor, u64::from(vm.jdk.feature))
            });
            let reader = scope.spawn(|| watch(address, &over));
            let rounds = load(&mut jvm, &over);
            // With its own words if it panicked.
            let seen = reader.join().unwrap_or_else(|panic| resume_unwind(panic));
            let taken = edits.join().expect("the folder is writable");
            (taken, seen, rounds)
        });
        let lasted = begin.elapsed();
        let serials = seen.values().filter(|shown| **shown != Shown::Defaults);
        println!(
            "{vm}: {} edits in {lasted:.0?}, {} policies seen in force, {rounds} rounds of load; {taken:?}",
            edits(),
            seen.len()
        );
        assert!(serials.count() > 10, "the storm hid all policies: {seen:?}");

        // The last good policy, and what was charged before.
        let last = edits() + 1;
        editor.write(Way::InPieces, policy(last).as_bytes(), Duration::ZERO);
        await_serial(&jvm, last, "the last policy");
        assert_eq!(
            jvm.metrics()
                .value("heapwarden_policy_last_reload_successful", &[]),
            Some(1.0)
        );
        let after = jvm.settled();
        assert_eq!(shown(&after), Shown::Serial(last));
        for (name, _) in NAMES {
            let (before, after) = (before.holding(name), after.holding(name));
            assert_eq!(after.live_bytes, before.live_bytes, "{name}");
            assert_eq!(after.live_objects, before.live_objects, "{name}");
        }
        assert_log(&jvm, lasted, last);
        assert_latencies(&jvm, &mut editor, last + 1);
        jvm.ask("drop");
        let empty = jvm.settled();
        for (name, _) in NAMES {
            assert_eq!(empty.holding(name).charged_bytes, 0.0, "{name}");
        }
        jvm.finish();
    });
}

/// A line for each change or error until there are many, then one now and then, and in the end
/// what is in force.
fn assert_log(jvm: &Jvm, lasted: Duration, last: u64) {
    // As a change, or as an account that the policy before did not have.
    let (changed, added) = (
        format!("-> {}B (", LIMIT + last),
        format!("limit {}B)", LIMIT + last),
    );
    let begin = Instant::now();
    let is_told = |log: String| log.contains(&changed) || log.contains(&added);
    poll(TOLD, || is_told(jvm.log()).then_some(()))
        .unwrap_or_else(|| panic!("{changed} is not told:\n{}", jvm.log()));
    let log = jvm.log();
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("heapwarden"))
        .collect();
    // Three kinds of lines (changes, errors, warnings), each a burst of 20 and one in 3 s.
    let most = 3 * (20 + (lasted + begin.elapsed()).as_secs() / 3) + 20;
    println!("{} lines in the log, of at most {most}", lines.len());
    assert!(lines.len() as u64 <= most, "{} lines:\n{log}", lines.len());
    assert!(
        log.contains("not shown"),
        "the storm was no test of this:\n{log}"
    );
    let longest = lines.iter().map(|line| line.len()).max();
    assert!(longest < Some(10_000), "{longest:?}");
}

/// Every way takes effect in time, also under an editor that does not rest.
fn assert_latencies(jvm: &Jvm, editor: &mut Editor, first: u64) {
    let mut serial = first;
    for way in Way::ALL {
        serial += 1;
        editor.write(way, policy(serial).as_bytes(), Duration::from_millis(100));
        let took = await_serial(jvm, serial, &format!("{way:?}"));
        println!("{way:?} was in force after {took:.1?}");
    }
    for way in [Way::InPlace, Way::Torn, Way::Renamed] {
        serial += 1;
        let begin = Instant::now();
        let mut round = 0;
        while shown(&jvm.accounts()) != Shown::Serial(serial) {
            assert!(
                begin.elapsed() < IN_FORCE,
                "{way:?} without rest is not read"
            );
            round += 1;
            let text = format!("{}# round {round}\n", policy(serial));
            editor.write(way, text.as_bytes(), Duration::from_millis(50));
            std::thread::sleep(Duration::from_millis(50));
        }
        println!(
            "{way:?} without rest was in force after {:.1?}",
            begin.elapsed()
        );
    }
}
