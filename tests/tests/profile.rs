//! Profiles of real JVMs, as Go's pprof reads them: their sums are the accounts' own.

use std::process::Command;
use std::time::Duration;

use heapwarden_tests::artifacts;
use heapwarden_tests::command::{self, Finished, PATIENCE, poll};
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each, one_jdk_with};
use heapwarden_tests::jvm::{Jvm, tenants_host, victim};
use heapwarden_tests::pprof::{self, Read, Values};
use heapwarden_tests::scrape::{self, Accounts};
use serde_json::Value;

const SHOP: &str = "[[account]]\nname = \"shop\"\npackages = [\"com.acme.sites.*\"]\n";
const SAMPLING: &str = "[sampling]\ninterval = \"16KiB\"\ncpu-budget = \"none\"\n\n";
const SITES: &str = "[leaks]\nsites = [\"shop\"]\n\n";
const ITEM: &str = "com.acme.sites.Item";
/// Bytes of an item with its header.
const ITEM_BYTES: i128 = 216;

/// A program with the account `shop`; with `leaks`, of which stacks are taken.
fn started(vm: &Vm, leaks: &str) -> Jvm {
    let mut jvm = victim(vm, "victim.AllocationSites")
        .heap("512m")
        .policy(&format!("{SAMPLING}{leaks}{SHOP}"))
        .start();
    // Its account begins with its first sample.
    jvm.ask("arrays 100");
    if !leaks.is_empty() {
        let is_taken = poll(PATIENCE, || {
            let sites = scrape::get(jvm.address(), "/api/v1/sites").body;
            let sites: Value = serde_json::from_str(&sites).expect("a document");
            (!sites["accounts"].as_array()?.is_empty()).then_some(())
        });
        assert!(is_taken.is_some(), "no stacks are taken: {}", jvm.log());
    }
    jvm
}

fn profile(arguments: &[&str]) -> Finished {
    let mut command = Command::new(artifacts::command());
    command.arg("profile").args(arguments);
    command::run(&mut command, Duration::from_secs(120))
}

/// Takes a profile by the command.
fn taken(jvm: &Jvm, name: &str, arguments: &[&str]) -> String {
    let file = jvm.folder().join(name);
    let file = file.to_str().expect("a temporary path is text").to_owned();
    let address = jvm.address().to_string();
    let finished = profile(&[&[address.as_str(), "-o", &file], arguments].concat());
    assert!(finished.status.success(), "{finished:?}");
    file
}

fn figures(account: &Value) -> Values {
    [
        "allocated_objects_total",
        "allocated_bytes_total",
        "live_objects",
        "live_bytes",
    ]
    .map(|key| account[key].as_u64().expect("a number").into())
}

/// A profile that was taken between two answers of the accounts, and what neither of them saw move. The account that is
/// named is among that.
fn taken_at_rest(jvm: &Jvm, name: &str, still: &[&str]) -> (String, Accounts) {
    let found = poll(PATIENCE, || {
        let before = jvm.accounts();
        let file = taken(jvm, name, &[]);
        // An answer may be as old as this.
        std::thread::sleep(Duration::from_millis(300));
        let after = jvm.accounts();
        let mut unmoved = after.0.clone();
        let list = unmoved["accounts"].as_array_mut().expect("a list");
        list.retain(|account| {
            let earlier = before.find(account["name"].as_str().expect("a name"));
            earlier.is_some_and(|earlier| figures(earlier) == figures(account))
        });
        let unmoved = Accounts(unmoved);
        (still.iter().all(|name| unmoved.find(name).is_some())).then_some((file, unmoved))
    });
    found.unwrap_or_else(|| panic!("nothing rests: {}", jvm.accounts().brief()))
}

/// Asserts that the sums of each account are those that the agent publishes.
fn assert_same(vm: &Vm, read: &Read, accounts: &Accounts) {
    assert!(!accounts.list().is_empty());
    for account in accounts.list() {
        let name = account["name"].as_str().expect("a name");
        assert_eq!(read.account(name), figures(account), "{vm}: {name}");
    }
}

/// Asserts that the sums of a class are the class's. Its objects are rounded by themselves, and fitted into those of the
/// account, so that they may differ by a few of them.
fn assert_same_class(vm: &Vm, found: Values, class: &Value) {
    let expected = figures(class);
    for at in [1, 3] {
        assert_eq!(found[at], expected[at], "{vm}: {found:?} {expected:?}");
    }
    for at in [0, 2] {
        let difference = expected[at] - found[at];
        assert!(
            (0..20).contains(&difference),
            "{vm}: {found:?} {expected:?}"
        );
    }
}

/// The figure that `pprof -tags` prints for a value of a label, in bytes or objects.
fn tag(text: &str, label: &str, value: &str) -> f64 {
    let mut lines = text.lines();
    let head = format!(" {label}: Total ");
    lines
        .by_ref()
        .find(|line| line.starts_with(&head))
        .expect("the label");
    let end = format!("): {value}");
    let line = lines
        .find(|line| line.ends_with(&end))
        .unwrap_or_else(|| panic!("{value}: {text}"));
    let figure = line.split_whitespace().next().expect("a figure");
    figure
        .trim_end_matches(char::is_alphabetic)
        .parse()
        .unwrap_or_else(|_| panic!("{line}"))
}

#[test]
fn pprof_reads_the_accounts_to_the_byte_and_the_lines_that_allocated() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = started(vm, SITES);
        // Some of it survives, more of it does not.
        jvm.ask("keep 70000 30000 50000");
        jvm.settled();
        let named = poll(PATIENCE, || {
            let (file, accounts) = taken_at_rest(&jvm, "a.pb.gz", &["shop"]);
            let read = Read::of(&file);
            let shop = read.samples.iter().filter(|one| one.account == "shop");
            let mut frames = shop.flat_map(|one| &one.frames);
            (!frames.any(|frame| frame.contains("not named"))).then_some((file, accounts, read))
        });
        let (file, accounts, read) = named.expect("the methods get names");
        assert_same(vm, &read, &accounts);
        for part in [
            "PeriodType: space bytes",
            "Heapwarden: inuse is what survived",
            "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes[dflt]",
        ] {
            assert!(read.head.contains(part), "{vm}: {part}: {}", read.head);
        }

        // The labels are those that pprof's own reports know, with the same figures.
        let account = accounts.find("shop").expect("at rest");
        for (index, expected) in [
            "alloc_objects",
            "alloc_space",
            "inuse_objects",
            "inuse_space",
        ]
        .iter()
        .zip(figures(account))
        {
            let text = pprof::run(&["-tags", "-unit=b", &format!("-sample_index={index}"), &file]);
            assert_eq!(
                tag(&text, "account", "shop"),
                expected as f64,
                "{vm}: {index}"
            );
        }
        let classes = account["classes"].as_array().expect("a list");
        let item = classes
            .iter()
            .find(|class| class["class"] == ITEM)
            .expect("listed");
        let of_item = |sample: &pprof::Sample| sample.account == "shop" && sample.class == ITEM;
        assert_same_class(vm, read.sum(of_item), item);

        // Seven of ten items are of one line: with the class's other samples that is what the site says.
        let line = |method: &str| format!("com.acme.sites.Shelf.{method} Shelf.java:");
        let of_line = |method: &str| {
            let line = line(method);
            read.sum(|sample| of_item(sample) && sample.frames[0].starts_with(&line))
        };
        let (often, seldom) = (of_line("often"), of_line("seldom"));
        assert!(
            often[3] > seldom[3] && seldom[3] > 0,
            "{vm}: {often:?} {seldom:?}"
        );
        assert!(often[3] + seldom[3] <= read.sum(of_item)[3]);
        let garbage = line("garbage");
        let garbage =
            read.sum(|sample| sample.class == "byte[]" && sample.frames[0].starts_with(&garbage));
        assert!(garbage[1] > 50 * garbage[3], "{vm}: {garbage:?}");
        for sample in &read.samples {
            let root = sample.frames.last().expect("a stack is never empty");
            assert!(
                root.starts_with(&format!("[{}]", sample.account)),
                "{sample:?}"
            );
        }
        let keep = read
            .samples
            .iter()
            .filter(|sample| of_item(sample) && sample.frames.len() > 3);
        assert!(keep.clone().count() > 0);
        for sample in keep {
            assert!(
                sample.frames[1].starts_with("victim.AllocationSites.keep "),
                "{sample:?}"
            );
        }

        // As an engineer asks: what holds most, straight from the agent.
        let address = format!("http://{}/api/v1/profile", jvm.address());
        let top = pprof::run(&["-top", "-cum", "-tagfocus=account=^shop$", &address]);
        assert!(
            top.contains("Type: inuse_space") && top.contains("[shop]"),
            "{top}"
        );
        assert!(top.contains("com.acme.sites.Shelf.often"), "{top}");
        let traces = pprof::run(&["-traces", "-sample_index=alloc_space", &file]);
        assert!(traces.contains("com.acme.sites.Shelf.garbage"), "{traces}");
        assert!(traces.contains("class:"), "{traces}");
        jvm.finish();
    });
}

#[test]
fn pprof_subtracts_two_profiles() {
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let mut jvm = started(vm, SITES);
        jvm.ask("keep 40000 20000 0");
        jvm.settled();
        let (old, before) = taken_at_rest(&jvm, "old.pb.gz", &["shop"]);
        let nothing = pprof::run(&["-top", "-diff_base", &old, &old]);
        assert!(
            nothing.contains("Showing nodes accounting for 0, 0% of"),
            "{nothing}"
        );

        jvm.ask("keep 0 50000 0");
        jvm.settled();
        let (new, after) = taken_at_rest(&jvm, "new.pb.gz", &["shop"]);
        let bytes = |accounts: &Accounts| figures(accounts.find("shop").expect("at rest"))[3];
        let grown = bytes(&after) - bytes(&before);
        let text = pprof::run(&["-tags", "-unit=b", "-diff_base", &old, &new]);
        assert_eq!(tag(&text, "account", "shop"), grown as f64, "{vm}");
        let top = pprof::run(&[
            "-top",
            "-cum",
            "-unit=b",
            "-tagfocus=class=Item",
            "-diff_base",
            &old,
            &new,
        ]);
        // "flat flat% sum% cum cum%  name"
        let of = |name: &str| -> f64 {
            let line = top
                .lines()
                .find(|line| line.ends_with(name))
                .unwrap_or_else(|| panic!("{name}: {top}"));
            let figure = line.split_whitespace().nth(3).expect("a column");
            figure
                .trim_end_matches(char::is_alphabetic)
                .parse()
                .unwrap_or_else(|_| panic!("{line}"))
        };
        let seldom = of("com.acme.sites.Shelf.seldom");
        let truth = (50_000 * ITEM_BYTES) as f64;
        assert!(seldom > truth / 2.0, "{vm}: {seldom} of {truth}: {top}");
        jvm.finish();
    });
}

#[test]
fn without_sites_the_classes_stand_for_stacks_and_names_change_nothing() {
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let mut jvm = started(vm, "");
        jvm.ask("odd 20000");
        jvm.settled();
        let (file, accounts) = taken_at_rest(&jvm, "odd.pb.gz", &["shop"]);
        let read = Read::of(&file);
        assert_same(vm, &read, &accounts);
        let account = accounts.find("shop").expect("at rest");
        let classes = account["classes"].as_array().expect("a list");
        let mut odd = classes.iter().filter(|class| {
            let name = class["class"].as_str().expect("a name");
            name.starts_with("com.acme.sites.O\"d y'{n}=%s")
        });
        let odd = odd.next().expect("the class is listed by its own name");
        let name = odd["class"].as_str().expect("a name");
        assert_same_class(vm, read.sum(|sample| sample.class == name), odd);
        for sample in read
            .samples
            .iter()
            .filter(|sample| sample.account == "shop")
        {
            let [class, account] = &sample.frames[..] else {
                panic!("{vm}: {sample:?}")
            };
            assert!(
                class.starts_with(&sample.class) && account.starts_with("[shop]"),
                "{sample:?}"
            );
        }

        // The same as collapsed stacks, of this account alone.
        let file = taken(
            &jvm,
            "odd.txt",
            &[
                "--account",
                "shop",
                "--format",
                "collapsed",
                "--type",
                "alloc_space",
            ],
        );
        let text = std::fs::read_to_string(file).expect("it was written");
        let mut sum = 0;
        for line in text.lines() {
            let (stack, bytes) = line.rsplit_once(' ').expect("a value");
            assert!(
                stack.starts_with("[shop];") && stack.matches(';').count() == 1,
                "{line}"
            );
            sum += bytes.parse::<i128>().expect("a number");
        }
        assert!(text.contains(";com.acme.sites.O\"d y'{n}=%s"), "{text}");
        let now = jvm.accounts();
        assert_eq!(sum, figures(now.find("shop").expect("listed"))[1], "{vm}");
        jvm.finish();
    });
}

#[test]
fn contexts_are_stacks_too() {
    const OFTEN: i128 = 70_000;
    const SELDOM: i128 = 30_000;
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let contexts = "[exact]\ncontexts = [\"com.acme.sites\"]\n\n";
        let mut jvm = victim(vm, "victim.AllocationSites")
            .heap("512m")
            .policy(&format!("{SAMPLING}{contexts}{SHOP}"))
            .start();
        jvm.ask("arrays 100");
        jvm.ask(&format!("keep {OFTEN} {SELDOM} 50000"));
        jvm.settled();
        let found = poll(PATIENCE, || {
            // They are gathered twice a second, and later on a busy machine.
            std::thread::sleep(Duration::from_secs(1));
            let (file, accounts) = taken_at_rest(&jvm, "contexts.pb.gz", &["shop"]);
            let read = Read::of(&file);
            let items = |method: &str| {
                let frame = format!("com.acme.sites.Shelf.{method} ");
                let is_of = |sample: &pprof::Sample| sample.frames[0].starts_with(&frame);
                read.sum(|sample| sample.account == "shop" && sample.class == ITEM && is_of(sample))
            };
            let all = read.sum(|sample| sample.account == "shop" && sample.class == ITEM);
            let gathered = items("often")[0] + items("seldom")[0];
            let is_all = (gathered - all[0].min(OFTEN + SELDOM)).abs() <= 1;
            is_all.then_some((accounts, read))
        });
        let (accounts, read) = found.unwrap_or_else(|| panic!("{vm}: {}", jvm.log()));
        assert_same(vm, &read, &accounts);
        let of = |class: &str, method: &str| {
            read.sum(|sample| {
                sample.account == "shop"
                    && sample.class == class
                    && sample.frames[0].starts_with(&format!("com.acme.sites.Shelf.{method} "))
            })
        };
        let (often, seldom) = (of(ITEM, "often"), of(ITEM, "seldom"));
        let all = read.sum(|sample| sample.account == "shop" && sample.class == ITEM);
        // One by one; or, where the samples' estimate of the class is lower, in that proportion.
        let expected = all[0].min(OFTEN + SELDOM);
        assert!(
            (often[0] + seldom[0] - expected).abs() <= 1,
            "{vm}: {often:?} {seldom:?} {all:?}"
        );
        assert!(
            (often[0] * 10 - expected * 7).abs() <= 10,
            "{vm}: {often:?}"
        );
        let bytes = |of: Values| of[1] as f64 / of[0] as f64 / ITEM_BYTES as f64;
        assert!((bytes(often) - 1.0).abs() < 0.001, "{vm}: {often:?}");
        assert_eq!(
            (often[2], often[3]),
            (0, 0),
            "{vm}: nothing is known of what lives"
        );
        let garbage = of("byte[]", "garbage");
        assert!(
            garbage[0] <= 50_000 && garbage[0] > 40_000,
            "{vm}: {garbage:?}"
        );
        let bytes = garbage[1] as f64 / garbage[0] as f64;
        assert!((bytes / 4112.0 - 1.0).abs() < 0.1, "{vm}: {garbage:?}");
        jvm.finish();
    });
}

#[test]
fn a_tenant_cannot_break_a_profile_by_its_name() {
    const HOSTILE: [&str; 3] = [
        ";{\"a\"=b},<x>&$(y)%0a",
        "]:\\n\u{202e}ü,class:[x",
        "com.acme.Cart.add(Cart.java:1)",
    ];
    on_each(&one_jdk_with(Collector::G1, 2), |vm| {
        let mut jvm = tenants_host(vm)
            .policy("[sampling]\ninterval = \"exact\"\n")
            .start();
        for (name, length) in HOSTILE.iter().zip([1000, 2000, 3000]) {
            jvm.ask(&format!("hold {name} {length} 100"));
        }
        jvm.settled();
        let accounts = jvm.accounts();
        let scopes: Vec<&str> = (accounts.list().iter())
            // The program has one of its own, from its start.
            .filter(|account| account["kind"] == "scope" && account["name"] != "warm")
            .map(|account| account["name"].as_str().expect("a name"))
            .collect();
        assert_eq!(scopes.len(), HOSTILE.len(), "{scopes:?}");
        let (file, accounts) = taken_at_rest(&jvm, "scopes.pb.gz", &scopes);
        let read = Read::of(&file);
        assert_same(vm, &read, &accounts);
        for scope in &scopes {
            assert!(read.account(scope)[3] >= 100 * 1016, "{vm}: {scope}");
            let one = Read::of(&taken(&jvm, "one.pb.gz", &["--account", scope]));
            assert_eq!(one.account(scope), read.account(scope), "{vm}");
            assert!(one.samples.iter().all(|sample| sample.account == *scope));
        }
        let finished = profile(&[&jvm.address().to_string(), "--format", "collapsed"]);
        assert!(finished.status.success(), "{finished:?}");
        for line in finished.stdout.lines() {
            let (stack, bytes) = line.rsplit_once(' ').expect("a value");
            assert_eq!(stack.matches(';').count(), 1, "{line}");
            assert!(
                bytes.parse::<u64>().is_ok() && !line.contains('\u{1b}'),
                "{line}"
            );
        }
        jvm.finish();
    });
}

#[test]
fn a_process_id_is_enough_and_an_account_that_is_not_there_is_said() {
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let jvm = started(vm, "");
        let id = jvm.id().to_string();
        let finished = profile(&[&id, "--format", "collapsed", "--type", "alloc_space"]);
        assert!(finished.status.success(), "{finished:?}");
        assert!(finished.stdout.contains("[shop];byte[] "), "{finished:?}");
        let finished = profile(&[&id, "--account", "nobody"]);
        assert_eq!(finished.status.code(), Some(1));
        assert!(
            finished
                .stderr
                .contains("nothing of an account nobody; it has "),
            "{finished:?}"
        );
        let answer = scrape::get(jvm.address(), "/api/v1/profile?account=shop");
        assert_eq!(
            (answer.status, &*answer.body),
            (400, "No query is understood here.\n")
        );
        // The listener counts what it answers.
        let metrics = jvm.metrics();
        let path = [("path", "/api/v1/profile")];
        let counted = metrics.value("heapwarden_http_request_duration_seconds_count", &path);
        assert!(counted.is_some_and(|count| count >= 3.0), "{counted:?}");
        jvm.finish();
    });
}
