//! Exact accounts: what inserted code counts is what the JVM itself counts, to the byte, by account.

use std::collections::BTreeMap;
use std::time::Duration;

use heapwarden_tests::command::poll;
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, is_long, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Builder, Jvm, victim};

/// What one gathering, and a busy machine, may take.
const SOON: Duration = Duration::from_secs(60);
/// Counts are gathered more often than this.
const GATHERED: Duration = Duration::from_millis(1_000);
/// How often an order is repeated at the most.
const MOST_ORDERS: u32 = 6;
/// What the compiler removes is counted, and never made.
const AS_WRITTEN: [&str; 3] = [
    "-XX:-EliminateAllocations",
    "-XX:-EliminateAutoBox",
    "-XX:-OptimizeStringConcat",
];
const WAYS: [&str; 6] = [
    "news",
    "arrays",
    "copies",
    "reflective",
    "strings",
    "collections",
];
const BORDERS: [&str; 2] = ["outer", "inner"];
const VIRTUAL: &str = "virtual";

/// Bytes and objects.
type Counts = BTreeMap<String, (u64, u64)>;

fn policy(exact: bool) -> String {
    let accounts = (WAYS.iter().chain(&BORDERS).chain([&VIRTUAL])).map(|name| {
        format!("[[account]]\nname = \"{name}\"\npackages = [\"victim.ways.{name}.*\"]\n")
    });
    format!(
        "[exact]\naccounts = {exact}\n{}",
        accounts.collect::<String>()
    )
}

fn ways(vm: &Vm, exact: bool) -> Builder {
    (AS_WRITTEN.iter()).fold(
        victim(vm, "victim.ExactWays").policy(&policy(exact)),
        |builder, flag| builder.flag(flag),
    )
}

/// What is published of each account.
fn counted(jvm: &Jvm) -> Counts {
    let metrics = jvm.metrics();
    let of = |name: &str, account: &str| metrics.of_account(name, account);
    let accounts = jvm.accounts();
    (accounts.list().iter())
        .filter_map(|account| account["name"].as_str())
        .filter_map(|name| {
            let bytes = of("heapwarden_account_exact_allocated_bytes_total", name)?;
            let objects = of("heapwarden_account_exact_allocated_objects_total", name)?;
            Some((name.to_owned(), (bytes as u64, objects as u64)))
        })
        .collect()
}

/// What is published once all is gathered: of the accounts whose code runs on orders alone.
fn rested(jvm: &Jvm) -> Counts {
    let ordered = |jvm: &Jvm| {
        let mut counts = counted(jvm);
        counts.retain(|name, _| is_ordered(name));
        counts
    };
    let mut last = ordered(jvm);
    let rested = poll(SOON, || {
        std::thread::sleep(GATHERED);
        let now = ordered(jvm);
        let rests = now == last;
        last = now;
        rests.then(|| last.clone())
    });
    rested.unwrap_or_else(|| panic!("counts do not come to rest: {last:?}"))
}

fn is_ordered(account: &str) -> bool {
    WAYS.contains(&account) || BORDERS.contains(&account) || account == VIRTUAL
}

/// `truth ACCOUNT BYTES [OBJECTS]`, as the victim says it.
fn truths(answer: &[String]) -> BTreeMap<String, Vec<u64>> {
    let truths = answer.iter().filter_map(|line| {
        let mut words = line.strip_prefix("truth ")?.split(' ');
        let account = words.next()?.to_owned();
        let figures = words.map(|word| word.parse().expect("a number"));
        Some((account, figures.collect()))
    });
    truths.collect()
}

/// Orders the same again until each of these accounts got to the byte what the victim says. Now and then the
/// JVM itself allocates on the thread (a link that is resolved late): then the victim says more.
fn assert_exact(vm: &Vm, jvm: &mut Jvm, order: &str, accounts: &[&str]) {
    let mut wrong: Vec<&str> = accounts.to_vec();
    let mut told = String::new();
    for _ in 0..MOST_ORDERS {
        let before = rested(jvm);
        let truth = truths(&jvm.ask(order));
        let after = rested(jvm);
        wrong.retain(|&account| {
            let (was, is) = (before.get(account).copied(), after.get(account).copied());
            let ((was, had), (is, has)) = (was.unwrap_or_default(), is.unwrap_or_default());
            let (truth, found) = (&truth[account], [is - was, has - had]);
            assert!(
                found[0] <= truth[0],
                "{vm}: {account}: {found:?}, not {truth:?}"
            );
            let is_wrong = truth[..] != found[..truth.len()];
            if is_wrong {
                told.push_str(&format!("{account}: {found:?}, not {truth:?}\n"));
            }
            is_wrong
        });
        if wrong.is_empty() {
            return;
        }
    }
    panic!("{vm}: {order}\n{told}{}", jvm.log());
}

fn some_vms() -> Vec<Vm> {
    let mut vms = every_jdk_with(Collector::G1);
    match is_long() {
        true => vms.extend(every_jdk_with(Collector::Z)),
        false => vms.extend(one_jdk_with(Collector::Z, 0)),
    }
    vms
}

#[test]
fn every_way_of_allocating_is_counted_to_the_byte() {
    on_each(&some_vms(), |vm| {
        let mut jvm = ways(vm, true).start();
        jvm.ask("warm 3000");
        assert_exact(vm, &mut jvm, "run 2000", &WAYS);
        jvm.ask("borders 500");
        assert_exact(vm, &mut jvm, "borders 5000", &BORDERS);
        jvm.ask("virtual 4 200");
        assert_exact(vm, &mut jvm, "virtual 40 3000", &[VIRTUAL]);
        jvm.finish();
    });
}

#[test]
fn all_accounts_together_are_what_the_jvm_counts_for_its_threads() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = ways(vm, true).start();
        jvm.ask("warm 3000");
        rested(&jvm);
        let all = |jvm: &mut Jvm| truths(&jvm.ask("all"))["all"][0] as f64;
        let sum = |jvm: &Jvm| counted(jvm).values().map(|(bytes, _)| *bytes).sum::<u64>() as f64;
        let before = (all(&mut jvm), sum(&jvm));
        jvm.ask("run 20000");
        rested(&jvm);
        let after = (all(&mut jvm), sum(&jvm));
        let (made, found) = (after.0 - before.0, after.1 - before.1);
        assert!(
            (found / made - 1.0).abs() < 0.005,
            "{vm}: {found} of {made}"
        );
        jvm.finish();
    });
}

#[test]
fn a_reload_switches_them_on_and_off() {
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let builder = ways(vm, false);
        let file = builder.policy_path();
        let mut jvm = builder.start();
        jvm.ask("warm 500");
        assert_eq!(counted(&jvm), Counts::new(), "nothing is told while off");
        std::fs::write(&file, policy(true)).expect("the policy can be written");
        jvm.until_logged("loaded classes count their allocations");
        jvm.ask("warm 500");
        assert_exact(vm, &mut jvm, "run 500", &WAYS);
        std::fs::write(&file, policy(false)).expect("the policy can be written");
        jvm.until_logged("exact accounts are off");
        let before = rested(&jvm);
        jvm.ask("run 500");
        assert_eq!(rested(&jvm), before, "nothing is counted once they are off");
        jvm.finish();
    });
}
