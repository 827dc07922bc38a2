//! Scopes: tenants that a program names through the Java API, on every JDK and collector, with the
//! agent and without it.

use std::sync::Mutex;
use std::time::Duration;

use heapwarden_tests::command;
use heapwarden_tests::jdk::{Collector, Vm, every_jdk_with, on_each, one_jdk_with, some_vms};
use heapwarden_tests::jvm::{Builder, Jvm, api_user, tenants_host};
use heapwarden_tests::scrape::Accounts;
use heapwarden_tests::stats;
use heapwarden_tests::truth::Truth;

const MIB: u64 = 1 << 20;
/// Longest that enforcement may take to notice on a busy machine.
const SOON: Duration = Duration::from_secs(90);
const EXACT: &str = "[sampling]\ninterval = \"exact\"\n";

fn program(vm: &Vm) -> Builder {
    tenants_host(vm).heap("512m")
}

fn start(vm: &Vm, policy: &str) -> Jvm {
    program(vm).policy(policy).start()
}

fn limits(mode: &str, service: &str, scope: &str) -> String {
    format!(
        "[sampling]\ncpu-budget = \"none\"\n\n[enforcement]\nmode = \"{mode}\"\nmask = \"8MiB\"\n\n\
         [[account]]\nname = \"shop\"\nservice = \"shop\"\nwork = [\"java.lang.Thread#run\", \"victim.*\"]\nlimit = \"{service}\"\n\n\
         [[account]]\nscope = \"tenant-*\"\nlimit = \"{scope}\"\n"
    )
}

/// Asserts that exactly what the order holds came to the account.
fn assert_charged(jvm: &mut Jvm, order: &str, account: &str) {
    let before = jvm.settled().holding(account);
    let truth = Truth::of(&jvm.ask(order));
    let after = jvm.settled().holding(account);
    assert_eq!(
        (
            after.live_bytes - before.live_bytes,
            after.live_objects - before.live_objects
        ),
        (truth.bytes as f64, truth.objects as f64),
        "{order}: what came to {account}"
    );
}

/// How many arrays of 1,000 bytes `tenant-1` holds. Names of threads are small arrays of bytes that
/// may come and go beside them.
fn arrays(accounts: &Accounts) -> u64 {
    let account = accounts.find("tenant-1").expect("listed");
    let classes = account["classes"].as_array().expect("a list");
    let bytes = classes.iter().find(|class| class["class"] == "byte[]");
    bytes.map_or(0, |class| class["live_bytes"].as_u64().expect("a number")) / 1016
}

#[test]
fn a_scope_is_charged_to_the_byte() {
    on_each(&some_vms(0), |vm| {
        let mut jvm = start(vm, EXACT);
        assert_eq!(jvm.ask("active"), ["active true"]);
        // Naming a tenant inside another's scope is the other's allocation.
        jvm.ask("nest tenant-1 tenant-2 8 10");
        jvm.ask("drop tenant-2");
        assert_charged(&mut jvm, "hold tenant-1 1000 300", "tenant-1");
        assert_charged(&mut jvm, "nest tenant-1 tenant-2 1000 300", "tenant-1");
        assert_eq!(
            jvm.accounts().holding("tenant-2").live_objects,
            300.0,
            "the inner scope pays while it is open"
        );
        // Code that a thread links at its first steps is charged to whoever takes them first.
        jvm.ask("inherit tenant-1 8 10");
        let before = arrays(&jvm.settled());
        let truth = Truth::of(&jvm.ask("inherit tenant-1 1000 300"));
        assert_eq!(arrays(&jvm.settled()) - before, truth.objects);
        let before = arrays(&jvm.settled());
        jvm.ask("alone tenant-1 1000 300");
        assert_eq!(
            arrays(&jvm.settled()),
            before,
            "nothing is inherited unasked"
        );
        let accounts = jvm.accounts();
        let account = accounts.find("tenant-1").expect("listed");
        assert_eq!(account["kind"], "scope");
        assert_eq!(account["parent"], serde_json::Value::Null);
        jvm.finish();
    });
}

#[test]
fn a_scope_follows_tasks_and_stages_through_wrapped_executors() {
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let mut jvm = start(vm, EXACT);
        jvm.ask("wrapped tenant-1 8 10");
        // The tasks and stages are made in the scope too, and end when they end: arrays alone are
        // the tenant's.
        let before = arrays(&jvm.settled());
        let truth = Truth::of(&jvm.ask("wrapped tenant-1 1000 300"));
        assert_eq!(arrays(&jvm.settled()) - before, truth.objects);
        jvm.finish();
    });
}

#[test]
fn ten_thousand_virtual_threads_each_in_its_own_scope() {
    let scores = Mutex::new(Vec::new());
    // Before 21 as many tasks on a few platform threads.
    on_each(&some_vms(1), |vm| {
        let mut jvm = start(
            vm,
            "[sampling]\ninterval = \"16KiB\"\ncpu-budget = \"none\"\n",
        );
        jvm.ask("virtual 10 100 100");
        jvm.ask("drop virtual");
        let before = jvm.settled();
        let answer = jvm.ask("virtual 10 2000 10000");
        let after = jvm.settled();
        for group in 0..10 {
            let name = format!("v{group}");
            let mark = format!("truth {name} ");
            let line = answer.iter().find(|line| line.starts_with(&mark));
            let truth = Truth::of(&[line.expect("one for each").clone()]);
            let came = after.holding(&name).live_bytes - before.holding(&name).live_bytes;
            let z = (came - truth.bytes as f64) / truth.variance(16384.0).sqrt();
            eprintln!("{vm} {name}: {z:+.2} standard errors");
            if z.abs() > 4.0 {
                eprintln!("{truth:?}\n{}", after.classes(&name));
            }
            (scores.lock().expect("never held over a panic")).push((format!("{vm} {name}"), z));
        }
        jvm.finish();
    });
    stats::judge_family(&scores.into_inner().expect("never held over a panic"));
}

fn answer<'a>(answer: &'a [String], word: &str) -> Vec<&'a str> {
    let line = answer.last().expect("an answer");
    assert!(line.starts_with(word), "{answer:?}");
    line.split(' ').collect()
}

fn is_over(accounts: &Accounts, name: &str) -> bool {
    accounts.is_in_state(name, "over")
}

/// Leaks in a scope with a limit of 64 MiB until it is refused. It goes on only when it is known to
/// be over: on a slow machine the heap might be full before.
fn leak_until_refused(jvm: &mut Jvm, scope: &str) -> Vec<String> {
    jvm.ask(&format!("leak {scope} 96"));
    jvm.until(SOON, "it is over", |accounts| is_over(accounts, scope));
    jvm.ask(&format!("leak {scope} 2000"))
}

/// Waits until refusals of this account were put off for this reason: counts may be a moment old.
fn assert_deferred(jvm: &Jvm, account: &str, reason: &str) {
    let labels = [("account", account), ("reason", reason)];
    let deferred = command::poll(SOON, || {
        let metrics = jvm.metrics();
        let count = metrics.value("heapwarden_account_deferred_refusals_total", &labels);
        (count > Some(0.0)).then_some(())
    });
    assert!(deferred.is_some(), "{account}, {reason}: {}", jvm.log());
}

#[test]
fn a_tenant_over_its_limit_is_refused_and_its_neighbour_is_not() {
    on_each(&some_vms(2), |vm| {
        let mut jvm = start(vm, &limits("enforce", "none", "64MiB"));
        answer(&jvm.ask("leak tenant-good 32"), "held");
        assert_eq!(jvm.ask("admits tenant-bad"), ["admits true"], "{vm}");
        jvm.ask("listen tenant-bad");
        let refused = leak_until_refused(&mut jvm, "tenant-bad");
        assert_eq!(answer(&refused, "refused")[1], "tenant-bad", "{vm}");
        answer(&jvm.ask("leak tenant-good 16"), "held");
        let accounts = jvm.until(SOON, "the refusal is counted", |accounts| {
            let bad = accounts.find("tenant-bad").expect("listed");
            bad["refusals_total"].as_u64() >= Some(1)
        });
        let good = accounts.find("tenant-good").expect("listed");
        assert_eq!(good["refusals_total"], 0);
        let read = jvm.ask("read tenant-bad");
        assert_eq!(answer(&read, "read")[4..], ["67108864", "OVER"], "{vm}");
        assert_eq!(jvm.ask("admits tenant-bad"), ["admits false"], "{vm}");
        assert_eq!(jvm.ask("admits tenant-good"), ["admits true"], "{vm}");
        jvm.ask("drop tenant-bad");
        jvm.until(SOON, "it is admitted again", |accounts| {
            accounts.is_in_state("tenant-bad", "open")
        });
        assert_eq!(jvm.ask("admits tenant-bad"), ["admits true"], "{vm}");
        answer(&jvm.ask("leak tenant-bad 16"), "held");
        let heard = heapwarden_tests::command::poll(SOON, || {
            let heard = jvm.ask("heard");
            (heard.len() >= 2).then_some(heard)
        });
        assert_eq!(
            heard.expect("the listener hears both"),
            ["OVER_LIMIT tenant-bad true", "RECOVERED tenant-bad true"],
            "{vm}"
        );
        jvm.finish();
    });
}

/// A listener is masked, also in a program that has neither opened a scope nor a mask.
#[test]
fn a_listener_is_not_refused_while_it_makes_room() {
    let policy = "[enforcement]\nmode = \"enforce\"\nmask = \"64MiB\"\n\n\
                  [[account]]\nname = \"program\"\npackages = [\"victim\"]\nwork = [\"victim\"]\nlimit = \"64MiB\"\n";
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let mut jvm = api_user(vm, "victim.PressureListener")
            .heap("512m")
            .policy(policy)
            .start();
        jvm.ask("listen program 32");
        jvm.ask("leak 96");
        jvm.until(SOON, "it is over", |accounts| is_over(accounts, "program"));
        answer(&jvm.ask("leak 2000"), "refused");
        let heard = command::poll(SOON, || {
            Some(jvm.ask("heard")).filter(|heard| !heard.is_empty())
        });
        let heard = heard.expect("the listener is told");
        assert_eq!(heard, ["OVER_LIMIT allocated"], "{vm}: {}", jvm.log());
        jvm.finish();
    });
}

#[test]
fn a_masked_section_is_spared_within_the_policys_bound() {
    on_each(&one_jdk_with(Collector::G1, 2), |vm| {
        let mut jvm = start(vm, &limits("enforce", "none", "64MiB"));
        answer(&leak_until_refused(&mut jvm, "tenant-bad"), "refused");
        let refused = jvm.ask("masked tenant-bad 64");
        let held: u64 = answer(&refused, "refused")[2].parse().expect("bytes");
        // The bound is counted in charges, which are estimates; what grace spares comes on top.
        assert!(
            (6 * MIB..24 * MIB).contains(&held),
            "{vm}: {held} bytes were spared"
        );
        assert_deferred(&jvm, "tenant-bad", "masked");
        jvm.finish();
    });
}

/// The policy was read before the scopes were opened.
#[test]
fn what_the_policy_never_interrupts_is_spared_in_a_scope_that_opens_later() {
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let policy = format!(
            "{}\n[[account]]\nscope = \"spared\"\nlimit = \"64MiB\"\nnever-interrupt = [\"victim\"]\n",
            limits("enforce", "none", "64MiB")
        );
        let mut jvm = start(vm, &policy);
        answer(&jvm.ask("leak spared 96"), "held");
        jvm.until(SOON, "it is over", |accounts| is_over(accounts, "spared"));
        answer(&jvm.ask("leak spared 104"), "held");
        assert_deferred(&jvm, "spared", "policy");
        jvm.ask("drop spared");
        answer(&leak_until_refused(&mut jvm, "tenant-bad"), "refused");
        jvm.finish();
    });
}

#[test]
fn work_that_was_let_in_has_one_allowance_on_all_its_threads_until_it_ends() {
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let finer = "[sampling]\ninterval = \"8KiB\"\n";
        let policy = limits("enforce", "none", "64MiB").replace("[sampling]\n", finer);
        let mut jvm = start(vm, &policy);
        answer(&leak_until_refused(&mut jvm, "tenant-bad"), "refused");
        let said = jvm.ask("probe tenant-bad");
        let made: Vec<u64> = (answer(&said, "probe")[1..].iter())
            .map(|kib| kib.parse().expect("KiB"))
            .collect();
        let [other, task, entered, ended] = made[..] else {
            panic!("{said:?}");
        };
        assert!(other <= 256, "{vm}: not of this work: {said:?}");
        assert_eq!(task, 512, "{vm}: a task of this work");
        // 1/32 of the limit; charges are estimates.
        assert!((1024..=2560).contains(&(task + entered)), "{vm}: {said:?}");
        assert!(ended <= 256, "{vm}: this work has ended: {said:?}");
        jvm.finish();
    });
}

#[test]
fn misuse_is_tolerated_and_counted() {
    on_each(&one_jdk_with(Collector::G1, 0), |vm| {
        let mut jvm = start(vm, EXACT);
        assert_eq!(
            jvm.ask("misuse"),
            [
                "inner pays inner",
                "here pays here",
                "then pays victim.ScopedTenants",
                "refused a bad name",
                "refused a bad name",
                "refused a bad name",
                "refused a bad name",
                "refused a bad name",
                "refused a bad name",
            ]
        );
        // Published counts may be a fifth of a second old, the program's own reading included; the bad names come last.
        let bad_names = [("kind", "bad_name")];
        let metrics = heapwarden_tests::command::poll(SOON, || {
            let metrics = jvm.metrics();
            let counted = metrics.value("heapwarden_scope_misuse_total", &bad_names);
            (counted == Some(6.0)).then_some(metrics)
        });
        let metrics = metrics.unwrap_or_else(|| panic!("{vm}: {}", jvm.log()));
        let count = |kind| metrics.value("heapwarden_scope_misuse_total", &[("kind", kind)]);
        assert_eq!(count("closed_twice"), Some(1.0));
        assert_eq!(count("out_of_order"), Some(1.0));
        assert_eq!(count("foreign_thread"), Some(1.0));
        assert_eq!(count("bad_name"), Some(6.0));
        assert_eq!(count("folded"), Some(0.0));
        jvm.finish();
    });
}

#[test]
fn a_hostile_number_of_names_is_folded() {
    on_each(&one_jdk_with(Collector::G1, 1), |vm| {
        let mut jvm = start(vm, EXACT);
        jvm.ask("hold tenant-1 1000 300");
        // None of them is dropped: each is charged until a collection.
        jvm.ask("names hostile- 12000 100");
        let folded = [("kind", "folded")];
        let metrics = command::poll(SOON, || {
            let metrics = jvm.metrics();
            let count = metrics.value("heapwarden_scope_misuse_total", &folded);
            (count >= Some(1.0)).then_some(metrics)
        });
        let metrics = metrics.unwrap_or_else(|| panic!("{vm}: none is folded: {}", jvm.log()));
        assert!(
            metrics
                .value("heapwarden_account_live_bytes", &[("account", "_other")])
                .is_some()
        );
        let series = metrics.series("heapwarden_account_live_bytes").count();
        assert!(series <= 200, "{vm}: {series} accounts are published");
        // The charges of these names are gone, and so are the names: there is room again, for more names than there are
        // purses, and for one that is new.
        for round in 0..4 {
            jvm.settled();
            jvm.ask(&format!("names again-{round}- 12000 100"));
        }
        let had_room = command::poll(SOON, || {
            jvm.settled();
            let truth = Truth::of(&jvm.ask("hold tenant-late 1000 300"));
            let accounts = jvm.settled();
            let late = accounts.find("tenant-late")?;
            let live = late["live_bytes"].as_f64()?;
            assert!(live >= truth.bytes as f64, "{vm}: {late}");
            Some(())
        });
        assert!(had_room.is_some(), "{vm}: {}", jvm.log());
        jvm.finish();
    });
}

#[test]
fn every_copy_of_the_api_has_scopes_and_catches_its_own_errors() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = start(vm, &limits("enforce", "none", "48MiB"));
        for (service, kind, account, copy) in [
            ("shop", "own", "shop/tenant-a", "copy"),
            ("store", "own", "store/tenant-a", "copy"),
            ("stall", "shared", "stall/tenant-a", "boot"),
            ("layer", "module", "guest/tenant-m", "copy"),
            ("plugin", "plugin", "tenant-p", "boot"),
        ] {
            jvm.ask(&format!("deploy {service} {kind}"));
            let scope = account.rsplit('/').next().expect("a name");
            // It goes on when it is known to be over, or the heap might be full before.
            jvm.ask(&format!("serve {service} {scope} 72"));
            jvm.until(SOON, "it is over", |accounts| is_over(accounts, account));
            let outcome = jvm.ask(&format!("serve {service} {scope} 320"));
            assert_eq!(
                outcome,
                [format!("refused {account} mine {copy} traced")],
                "{vm}: {kind}"
            );
            jvm.until(SOON, "it is over", |accounts| is_over(accounts, account));
            jvm.ask(&format!("undeploy {service}"));
        }
        let collected = heapwarden_tests::command::poll(SOON, || {
            jvm.ask("gc");
            let loaders = jvm.ask("loaders");
            // A caught error may stay in a register of the interpreter for a while.
            jvm.ask("hold tenant-x 8 10");
            (loaders == ["loaders 0 of 5"]).then_some(())
        });
        assert!(
            collected.is_some(),
            "{vm}: nothing of ours holds a loader: {:?}",
            jvm.ask("loaders")
        );
        // The object that stands for a scope is let go of some seconds after its loader, and collected then.
        let ended = heapwarden_tests::command::poll(SOON, || {
            jvm.ask("gc");
            std::thread::sleep(Duration::from_millis(200));
            let accounts = jvm.accounts();
            // An account ends with its last object, and the JDK may keep a small one in a cache.
            let gone = |name| accounts.holding(name).live_bytes < 1e6;
            (gone("store/tenant-a") && gone("store")).then_some(())
        });
        assert!(
            ended.is_some(),
            "{vm}: accounts of what is gone: {}",
            jvm.accounts().brief()
        );
        jvm.finish();
    });
}

#[test]
fn a_scope_inside_a_service_counts_for_both() {
    on_each(&some_vms(3), |vm| {
        let mut jvm = start(vm, &limits("enforce", "96MiB", "320MiB"));
        jvm.ask("deploy shop shared");
        assert_eq!(jvm.ask("serve shop tenant-a 40"), ["held"]);
        assert_eq!(jvm.ask("serve shop tenant-b 32"), ["held"]);
        let admits = |of: bool| [format!("service admits {of}"), format!("admits {of}")];
        assert_eq!(jvm.ask("admitsIn shop tenant-a"), admits(true), "{vm}");
        // Neither tenant is over its own limit; the service is over its.
        jvm.ask("serve shop tenant-c 64");
        jvm.until(SOON, "it is over", |accounts| is_over(accounts, "shop"));
        let refused = jvm.ask("serve shop tenant-c 240");
        assert_eq!(refused, ["refused shop mine boot traced"], "{vm}");
        assert_eq!(jvm.ask("admitsIn shop tenant-a"), admits(false), "{vm}");
        let accounts = jvm.accounts();
        assert_eq!(accounts.find("shop").expect("listed")["state"], "over");
        for tenant in ["shop/tenant-a", "shop/tenant-b", "shop/tenant-c"] {
            let account = accounts.find(tenant).expect("listed");
            assert_eq!(account["state"], "open", "{vm}: {account}");
            assert_eq!(account["refusals_total"], 0, "{vm}: {account}");
            assert_eq!(account["parent"], "shop");
        }
        let metrics = jvm.metrics();
        let of = |name, account| metrics.of_account(name, account).expect("published");
        let own = of("heapwarden_account_charged_bytes", "shop");
        let tenants: f64 = ["shop/tenant-a", "shop/tenant-b", "shop/tenant-c"]
            .map(|tenant| of("heapwarden_account_charged_bytes", tenant))
            .iter()
            .sum();
        let tree = of("heapwarden_account_tree_charged_bytes", "shop");
        assert!(
            (own + tenants - tree).abs() <= 0.02 * tree,
            "{vm}: {own} + {tenants} is not {tree}"
        );
        assert!(own < 8.0 * MIB as f64, "{vm}: {own} of its own");
        jvm.finish();
    });
}

#[test]
fn without_the_agent_it_does_nothing() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let mut jvm = program(vm).without_agent().start();
        assert_eq!(jvm.ask("active"), ["active false"]);
        jvm.ask("hold tenant-1 1000 300");
        jvm.ask("wrapped tenant-1 1000 300");
        jvm.ask("inherit tenant-1 1000 300");
        answer(&jvm.ask("leak tenant-1 128"), "held");
        answer(&jvm.ask("masked tenant-1 8"), "held");
        assert_eq!(jvm.ask("read tenant-1"), ["absent"]);
        let misuse = jvm.ask("misuse");
        assert_eq!(misuse[3..], ["refused a bad name"; 6]);
        for kind in ["own", "shared", "module"] {
            jvm.ask(&format!("deploy svc-{kind} {kind}"));
            assert_eq!(jvm.ask(&format!("serve svc-{kind} tenant-a 8")), ["held"]);
        }
        jvm.finish();
    });
}
