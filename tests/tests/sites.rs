//! Where survivors were allocated: the lines that a program knows, with their shares.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use heapwarden_tests::command::{self, PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Builder, Jvm, victim};
use heapwarden_tests::stats::judge_family;
use heapwarden_tests::{artifacts, java, scrape};
use policy_report::{ClassSites, Site, Sites};
use serde_json::Value;

const ITEM: &str = "com.acme.sites.Item";
const ASKED: &str = "[leaks]\nsites = [\"shop\"]\n\n";

fn policy(leaks: &str, interval: &str) -> String {
    format!(
        "[sampling]\ninterval = \"{interval}\"\ncpu-budget = \"none\"\n\n{leaks}[[account]]\nname = \"shop\"\n\
         packages = [\"com.acme.sites.*\"]\n"
    )
}

fn host(vm: &Vm, policy: &str) -> Builder {
    victim(vm, "victim.AllocationSites")
        .heap("512m")
        .policy(policy)
}

/// A program of whose account stacks are taken. Its account begins with its first sample, and what comes before the
/// agent has seen the account has no stacks.
fn asked(vm: &Vm, interval: &str) -> Jvm {
    let mut jvm = host(vm, &policy(ASKED, interval)).start();
    jvm.ask("arrays 100");
    let is_taken = poll(PATIENCE, || {
        (!sites(&jvm).accounts.is_empty()).then_some(())
    });
    assert!(is_taken.is_some(), "no stacks are taken: {}", jvm.log());
    jvm
}

/// Each JDK with G1 and with ZGC.
fn vms() -> Vec<Vm> {
    let mut vms = every_jdk_with(Collector::G1);
    vms.extend(every_jdk_with(Collector::Z));
    vms
}

/// `com.acme.sites.Shelf.often(Shelf.java:33)`, of the line with this comment.
fn line(class: &str, method: &str, site: &str) -> String {
    let path = format!("tests/java/com/acme/sites/{class}.java");
    let source = std::fs::read_to_string(artifacts::repository().join(path)).expect("a source");
    let comment = format!("// site: {site}");
    let number = source.lines().position(|line| line.ends_with(&comment));
    let number = number.expect("the line is marked") + 1;
    format!("com.acme.sites.{class}.{method}({class}.java:{number})")
}

fn sites(jvm: &Jvm) -> Sites<'static> {
    let answer = scrape::get(jvm.address(), "/api/v1/sites");
    serde_json::from_str(&answer.body).expect("a document")
}

fn class<'a>(sites: &'a Sites<'static>, class: &str) -> Option<&'a ClassSites<'static>> {
    let shop = sites.accounts.iter().find(|one| one.account == "shop")?;
    shop.classes.iter().find(|one| one.class == class)
}

/// The sites of a class, once the methods on their stacks have names.
fn named(jvm: &mut Jvm, of: &str) -> ClassSites<'static> {
    jvm.settled();
    // An answer may be of a second ago, before the collection.
    std::thread::sleep(Duration::from_millis(1_100));
    let found = poll(PATIENCE, || {
        let sites = sites(jvm);
        let found = class(&sites, of)?.clone();
        let shown = found.sites.iter().flat_map(|site| &site.frames);
        let is_named =
            shown.clone().count() > 0 && shown.clone().all(|frame| !frame.contains("not named"));
        is_named.then_some(found)
    });
    found.unwrap_or_else(|| panic!("no sites of {of}: {:?}\n{}", sites(jvm), jvm.log()))
}

fn place<'a>(of: &'a ClassSites<'static>, frame: &str) -> Option<&'a Site<'static>> {
    of.sites.iter().find(|site| site.frames[0] == frame)
}

/// Stacks are bounded a second: of what is kept in several seconds more are taken.
const PARTS: usize = 4;
const NEXT_SECOND: Duration = Duration::from_millis(1_100);

/// How far shares of survivors lie from the truth, on all virtual machines of a test.
#[derive(Default)]
struct Scores(Mutex<Vec<(String, f64)>>);

impl Scores {
    /// Compares the site's share of the class's survivors. The error is published for the share that was found,
    /// and grows with the root of p(1-p): it is taken to the true share, which a share found too small would
    /// otherwise be too sure of.
    fn compare(&self, vm: &Vm, of: &ClassSites<'static>, frame: &str, share: f64) {
        let site = place(of, frame).unwrap_or_else(|| panic!("{frame} is not listed: {of:?}"));
        let error = site.share_standard_error;
        assert!(error > 0.0 && error < 0.15, "{site:?}");
        let spread = |share: f64| (share * (1.0 - share)).sqrt();
        let error = error / spread(site.share) * spread(share);
        let z = (site.share - share) / error;
        let found = format!("{vm}, {frame}: {} ± {error} of {share}", site.share);
        (self.0.lock().expect("no comparison panics here")).push((found, z));
    }

    fn judge(self) {
        judge_family(&self.0.into_inner().expect("no comparison panics here"));
    }
}

#[test]
fn survivors_are_ranked_by_the_line_that_allocated_them() {
    let scores = Scores::default();
    on_each(&vms(), |vm| {
        let mut jvm = asked(vm, "16KiB");
        // 216 bytes each: 20 MB. The garbage is 400 MB of arrays, of which 4 MB are kept by another line.
        jvm.ask("arrays 1000");
        for _ in 0..PARTS {
            assert_eq!(jvm.ask("keep 17500 7500 25000"), ["kept 17500 7500"]);
            std::thread::sleep(NEXT_SECOND);
        }
        let items = named(&mut jvm, ITEM);
        let (often, seldom) = (
            line("Shelf", "often", "often"),
            line("Shelf", "seldom", "seldom"),
        );
        assert_eq!(items.sites.len(), 2, "{vm}: {items:?}");
        // Of few stacks (they are bounded a second, and a slow machine may get a dozen) the smaller share may be found
        // the larger one; what is published is in order, and how far the shares lie from the truth is judged below.
        let shares: Vec<f64> = items.sites.iter().map(|site| site.share).collect();
        assert!(shares[0] >= shares[1], "{vm}: {items:?}");
        scores.compare(vm, &items, &often, 0.7);
        assert!(place(&items, &seldom).is_some(), "{vm}: {items:?}");
        assert!(items.sites.iter().all(|site| site.through.is_empty()));
        assert_eq!(
            items.sites[0].frames[1].split('(').next(),
            Some("victim.AllocationSites.keep")
        );
        let whole: f64 = items.sites.iter().map(|site| site.share).sum();
        assert!((whole - 1.0).abs() < 1e-9);

        let sites = sites(&jvm);
        let arrays = class(&sites, "byte[]").expect("arrays survived");
        let array = line("Shelf", "array", "array");
        assert_eq!(arrays.sites[0].frames[0], array, "{vm}: {arrays:?}");
        let garbage = place(arrays, &line("Shelf", "garbage", "garbage"));
        assert!(
            garbage.is_none_or(|site| site.share < 0.02),
            "{vm}: {garbage:?}"
        );

        // The garbage has no part in what lives, and nearly all of what was allocated: 400 MB and 4 MB.
        let garbage = place(arrays, &line("Shelf", "garbage", "garbage")).expect("listed");
        let error = garbage.allocated_share_standard_error;
        assert!(
            (garbage.allocated_share - 0.99).abs() < 0.01 + 3.0 * error,
            "{vm}: {garbage:?}"
        );
        assert!(garbage.allocated_bytes > 50 * garbage.live_bytes, "{vm}");
        let of_items: u64 = items.sites.iter().map(|site| site.allocated_bytes).sum();
        assert_eq!(of_items, items.allocated_bytes, "{vm}");
        // 100,000 of 216 bytes.
        let deviation = items.allocated_bytes as f64 - 21.6e6;
        let squares = items.sites.iter();
        let squares: f64 = squares
            .map(|site| (site.allocated_standard_error_bytes as f64).powi(2))
            .sum();
        assert!(deviation.abs() < 4.0 * squares.sqrt(), "{vm}: {items:?}");

        told_by_the_command(&jvm, &[&often, &seldom, &array]);
        let metrics = jvm.metrics();
        let taken = metrics
            .value("heapwarden_site_stacks_total", &[])
            .expect("published");
        assert!(taken >= items.stacks as f64, "{vm}");
        jvm.finish();
    });
    scores.judge();
}

/// `heapwarden status --sites` shows them.
fn told_by_the_command(jvm: &Jvm, frames: &[&String]) {
    let mut command = Command::new(artifacts::command());
    let address = jvm.address().to_string();
    command.args(["status", "--sites", "shop", &address]);
    let finished = command::run(&mut command, Duration::from_secs(60));
    assert!(finished.status.success(), "{finished:?}");
    for frame in frames {
        assert!(
            finished.stdout.contains(frame.as_str()),
            "{frame}\n{}",
            finished.stdout
        );
    }
}

fn heapwarden(arguments: &[&str]) -> String {
    let mut command = Command::new(artifacts::command());
    let finished = command::run(command.args(arguments), Duration::from_secs(60));
    assert!(finished.status.success(), "{finished:?}");
    finished.stdout
}

/// Takes a snapshot by the command.
fn snapshot(jvm: &Jvm, name: &str) -> String {
    let file = jvm.folder().join(name);
    let file = file.to_str().expect("a temporary path is text");
    heapwarden(&["snapshot", &jvm.address().to_string(), "-o", file]);
    file.to_owned()
}

/// The places of a class that changed.
fn changes(old: &str, new: &str) -> Vec<Value> {
    let found: Value = serde_json::from_str(&heapwarden(&["diff", old, new, "--json"])).unwrap();
    assert_eq!(
        (&found["same_run"], &found["cancels"]),
        (&true.into(), &true.into())
    );
    assert_eq!(found["sites_unknown"], 0);
    let sites = found["sites"].as_array().expect("a list").iter();
    sites
        .filter(|site| site["class"] == ITEM)
        .cloned()
        .collect()
}

#[test]
fn the_difference_of_two_snapshots_names_the_line_that_grew() {
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let mut jvm = asked(vm, "16KiB");
        jvm.ask("keep 90000 30000 0");
        named(&mut jvm, ITEM);
        let old = snapshot(&jvm, "old.json.gz");
        let same = snapshot(&jvm, "same.json.gz");
        assert_eq!(changes(&old, &same), Vec::<Value>::new(), "{vm}");

        jvm.ask("keep 0 20000 0");
        named(&mut jvm, ITEM);
        let new = snapshot(&jvm, "new.json.gz");
        let found = changes(&same, &new);
        let [grown] = &found[..] else {
            panic!("{vm}: {found:?}")
        };
        let seldom = line("Shelf", "seldom", "seldom");
        assert_eq!(grown["frames"][0], *seldom, "{vm}");
        let number = |key: &str| grown[key].as_f64().expect("a number");
        assert_eq!(number("went_bytes"), 0.0, "{vm}: {grown}");
        let (change, error) = (number("change_bytes"), number("standard_error_bytes"));
        let truth = 20_000.0 * 216.0;
        assert!((change - truth).abs() <= 4.0 * error, "{vm}: {grown}");
        // Of what came alone, and of the lot by which samples get a stack.
        assert!((0.01..0.3).contains(&(error / truth)), "{vm}: {grown}");
        assert_eq!(grown["significant"], true, "{vm}: {grown}");
        let csv = heapwarden(&["diff", &same, &new, "--csv=sites"]);
        assert!(
            csv.lines()
                .any(|line| line.contains(&format!("\"{seldom}\","))),
            "{csv}"
        );
        jvm.finish();
    });
}

#[test]
fn the_jdks_frames_do_not_hide_the_application() {
    on_each(&vms(), |vm| {
        let mut jvm = asked(vm, "4KiB");
        jvm.ask("deep 100000");
        jvm.ask("lambda 50000");
        let nodes = named(&mut jvm, "java.util.HashMap$Node");
        let deep = &nodes.sites[0];
        assert_eq!(
            deep.frames[0],
            line("Shelf", "deep", "deep"),
            "{vm}: {nodes:?}"
        );
        assert!(
            deep.through[0].starts_with("java.util.HashMap."),
            "{vm}: {deep:?}"
        );
        assert_eq!(
            deep.through.last().map(|frame| &**frame),
            Some("..."),
            "{vm}: {deep:?}"
        );
        assert!(deep.share > 0.9, "{vm}: {deep:?}");
        assert!(deep.frames.len() >= 2 && deep.frames.len() + deep.through.len() <= 17);

        let items = named(&mut jvm, ITEM);
        let first = &items.sites[0];
        assert_eq!(
            first.frames[0],
            line("Shelf", "lambda$lambda$0", "lambda"),
            "{vm}: {items:?}"
        );
        let shown = first.frames.iter().chain(&first.through);
        for frame in shown {
            let is_linkage = ["$$Lambda", "LambdaForm", "java.lang.invoke"]
                .iter()
                .any(|part| frame.contains(part));
            assert!(!is_linkage, "{vm}: {first:?}");
        }
        jvm.finish();
    });
}

#[test]
fn virtual_threads_have_stacks_too() {
    let scores = Scores::default();
    let vms = vms()
        .into_iter()
        .filter(|vm| vm.jdk.feature >= 21)
        .collect::<Vec<_>>();
    on_each(&vms, |vm| {
        let mut jvm = asked(vm, "16KiB");
        for _ in 0..PARTS {
            jvm.ask("virtual 10000 15000 0");
            std::thread::sleep(NEXT_SECOND);
        }
        let items = named(&mut jvm, ITEM);
        scores.compare(vm, &items, &line("Shelf", "often", "often"), 0.4);
        let seldom = line("Shelf", "seldom", "seldom");
        assert!(
            items.sites.len() == 2 && place(&items, &seldom).is_some(),
            "{vm}: {items:?}"
        );
        jvm.finish();
    });
    scores.judge();
}

#[test]
fn stacks_are_taken_while_the_policy_asks_for_them_and_gone_afterwards() {
    on_each(&one_jdk_with(Collector::G1, 3), |vm| {
        let builder = host(vm, &policy("", "4KiB"));
        let path = builder.policy_path();
        let mut jvm = builder.start();
        let part = |jvm: &Jvm| {
            let metrics = jvm.metrics();
            metrics
                .value("heapwarden_agent_memory_bytes", &[("part", "sites")])
                .expect("published")
        };
        jvm.ask("keep 5000 0 0");
        jvm.settled();
        let (none, before) = (sites(&jvm), part(&jvm));
        assert!(
            none.accounts.is_empty() && none.stacks == 0,
            "{vm}: {none:?}"
        );

        put_in_force(&jvm, &path, &policy(ASKED, "4KiB"), 2);
        poll(PATIENCE, || {
            (!sites(&jvm).accounts.is_empty()).then_some(())
        })
        .expect("asked for");
        jvm.ask("keep 0 5000 0");
        let items = named(&mut jvm, ITEM);
        // Those kept before have no stack, and do not count among the shares.
        assert_eq!(items.sites.len(), 1, "{vm}: {items:?}");
        assert_eq!(items.sites[0].frames[0], line("Shelf", "seldom", "seldom"));
        let kept = items.with_stack_bytes as f64 / items.live_bytes as f64;
        assert!((0.25..0.75).contains(&kept), "{vm}: {items:?}");
        assert!(part(&jvm) > before + f64::from(1 << 20));

        put_in_force(&jvm, &path, &policy("", "4KiB"), 3);
        poll(PATIENCE, || sites(&jvm).accounts.is_empty().then_some(())).expect("given up");
        poll(PATIENCE, || (part(&jvm) < before + 65_536.0).then_some(()))
            .expect("memory is given back");
        let taken = sites(&jvm).stacks;
        jvm.ask("keep 0 5000 0");
        assert_eq!(sites(&jvm).stacks, taken, "{vm}");
        // Sites that are asked for again do not find the stacks of before.
        put_in_force(&jvm, &path, &policy(ASKED, "4KiB"), 4);
        poll(PATIENCE, || {
            (!sites(&jvm).accounts.is_empty()).then_some(())
        })
        .expect("asked for");
        jvm.ask("keep 5000 0 0");
        let items = named(&mut jvm, ITEM);
        assert_eq!(items.sites.len(), 1, "{vm}: {items:?}");
        assert_eq!(items.sites[0].frames[0], line("Shelf", "often", "often"));
        jvm.finish();
    });
}

fn put_in_force(jvm: &Jvm, path: &Path, policy: &str, generation: u64) {
    std::fs::write(path, policy).expect("the case's folder is writable");
    jvm.until(PATIENCE, "the policy is in force", |accounts| {
        accounts.0["policy"]["generation"] == generation
    });
}

#[test]
fn classes_may_be_unloaded_while_their_sites_are_read() {
    on_each(&vms(), |vm| {
        let mut jvm = asked(vm, "256B");
        let code = java::classes().victims();
        let address = jvm.address();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut answers = 0;
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    let answer = scrape::get(address, "/api/v1/sites");
                    let read: Result<Sites<'static>, _> = serde_json::from_str(&answer.body);
                    read.expect("a document");
                    answers += 1;
                }
                answers
            });
            for _ in 0..6 {
                jvm.ask(&format!("passing 30 {}", code.display()));
                jvm.ask("gc");
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(reader.join().expect("every answer is whole") > 3);
        });
        let items = named(&mut jvm, ITEM);
        let passing = line("Passing", "accept", "passing");
        let maker = line("Passing", "accept", "maker");
        let gone = "(a class that was unloaded before it was named)";
        // All versions of the class are one place. Some may have been unloaded too early.
        let unknown = place(&items, gone).map_or(0.0, |site| site.share);
        let known =
            [&passing, &maker].map(|line| place(&items, line).map_or(0.0, |site| site.share));
        let known: f64 = known.iter().sum();
        assert!(known > 0.0, "{vm}: {items:?}");
        assert!(known + unknown > 0.99, "{vm}: {items:?}");
        jvm.finish();
    });
}
