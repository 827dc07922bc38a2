//! In `observe`, the places are listed where errors would have been thrown, and only those, with the line of
//! policy that spares background threads. The program knows how many there are.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use heapwarden_tests::command::{self, Finished, PATIENCE};
use heapwarden_tests::jdk::{Collector, every_jdk_with, on_each};
use heapwarden_tests::jvm::{Jvm, victim};
use heapwarden_tests::scrape::Accounts;
use heapwarden_tests::{artifacts, command::poll};
use serde_json::Value;

const FRAME: &str = "com.acme.place.store.Entries#make";
const REQUEST: Place = Place {
    entry: "com.acme.place.web.CartServlet#doPost",
    thread: "request",
    unit: "shaded.jakarta.servlet.http.HttpServlet#service",
    never_interrupt: None,
};
const JOB: Place = Place {
    entry: "com.acme.place.jobs.Evictor#run",
    thread: "background",
    unit: "java.util.concurrent.FutureTask#run",
    never_interrupt: Some(LINE),
};
const LINE: &str = "never-interrupt = [\"com.acme.place.jobs\"]";

struct Place {
    entry: &'static str,
    thread: &'static str,
    unit: &'static str,
    never_interrupt: Option<&'static str>,
}

fn policy(mode: &str, more: &str) -> String {
    format!(
        "[sampling]\ninterval = \"exact\"\n\n[enforcement]\nmode = \"{mode}\"\n\n[[account]]\nname = \"shop\"\n\
         packages = [\"com.acme.place.*\"]\nlimit = \"16MiB\"\ntasks = \"interrupt\"\n{more}"
    )
}

fn shop(accounts: &Accounts) -> &Value {
    accounts.find("shop").expect("it is listed")
}

/// Counts by entry, and what was counted elsewhere.
fn counts(accounts: &Accounts) -> BTreeMap<String, u64> {
    let shop = shop(accounts);
    let places = shop["places"].as_array().expect("a list");
    let count = |value: &Value| value.as_u64().expect("a number");
    let listed = places.iter().map(|place| {
        let entry = place["entry"].as_str().expect("a name");
        (entry.to_owned(), count(&place["count"]))
    });
    let other = ("other".to_owned(), count(&shop["places_other"]));
    listed.chain([other]).collect()
}

/// The account with this place in it.
fn assert_listed(accounts: &Accounts, place: &Place) {
    let shop = shop(accounts);
    let found = (shop["places"].as_array().expect("a list").iter())
        .find(|one| one["entry"] == place.entry)
        .unwrap_or_else(|| panic!("{} is not listed: {shop}", place.entry));
    let said = ["frame", "thread", "unit"].map(|field| found[field].as_str().unwrap_or_default());
    assert_eq!(said, [FRAME, place.thread, place.unit], "{found}");
    assert_eq!(found["never_interrupt"].as_str(), place.never_interrupt);
}

/// Repeats the work until the methods on its stack are known: until then it is put off as unresolved.
fn warm_up(jvm: &mut Jvm, work: &str) {
    let all = |accounts: &Accounts| {
        let deferred = shop(accounts)["deferred_total"].as_u64();
        due(accounts) + deferred.expect("a number")
    };
    let is_known = poll(PATIENCE, || {
        let before = jvm.accounts();
        jvm.ask(&format!("{work} 4"));
        let after = jvm.until(PATIENCE, "the work is counted", |accounts| {
            all(accounts) >= all(&before) + 4
        });
        (due(&after) >= due(&before) + 4).then_some(())
    });
    assert!(is_known.is_some(), "{work}\n{}", jvm.log());
}

/// Asks for so much work; then exactly so many errors are counted there, and none elsewhere.
fn assert_counted(jvm: &mut Jvm, work: &str, times: u64, entry: &str) {
    // Errors of earlier work may be counted a moment later.
    let before = jvm.until(PATIENCE, "all places have names", |accounts| {
        let counts = counts(accounts);
        counts["other"] == 0 && counts.values().sum::<u64>() == due(accounts)
    });
    let mut expected = counts(&before);
    *expected.entry(entry.to_owned()).or_default() += times;
    jvm.ask(&format!("{work} {times}"));
    let counted = poll(PATIENCE, || {
        Some(jvm.accounts()).filter(|accounts| due(accounts) >= due(&before) + times)
    });
    let after = counted.unwrap_or_else(|| {
        panic!(
            "{work} {times}: {}\nthen: {}",
            told(&before),
            told(&jvm.accounts())
        )
    });
    assert_eq!(counts(&after), expected, "{work}");
    assert_eq!(due(&after), due(&before) + times, "{work}");
}

/// Describes the counts of errors due, their places and those put off, for a message.
fn told(accounts: &Accounts) -> String {
    let (due, deferred) = (due(accounts), &shop(accounts)["deferred_by_reason"]);
    format!("{due} due at {:?}, deferred {deferred}", counts(accounts))
}

/// Returns how many errors would have been thrown so far.
fn due(accounts: &Accounts) -> u64 {
    shop(accounts)["would_refuse_total"]
        .as_u64()
        .expect("a number")
}

/// Returns how many errors were thrown so far.
fn thrown(accounts: &Accounts) -> u64 {
    shop(accounts)["refusals_total"].as_u64().expect("a number")
}

fn deferred(accounts: &Accounts, reason: &str) -> u64 {
    shop(accounts)["deferred_by_reason"][reason]
        .as_u64()
        .unwrap_or(0)
}

fn heapwarden(arguments: &[&str]) -> Finished {
    let mut command = Command::new(artifacts::command());
    command.env_remove("HEAPWARDEN_PROMETHEUS");
    command::run(command.args(arguments), Duration::from_secs(60))
}

fn put_in_force(jvm: &Jvm, path: &std::path::Path, policy: &str, generation: u64) {
    std::fs::write(path, policy).expect("the case's folder is writable");
    jvm.until(PATIENCE, "the policy is in force", |accounts| {
        accounts.0["policy"]["generation"] == generation
    });
}

#[test]
fn observe_lists_where_errors_would_have_been_thrown_and_what_spares_a_job() {
    on_each(&every_jdk_with(Collector::G1), |vm| {
        let builder = victim(vm, "victim.RefusedPlaces").policy(&policy("observe", ""));
        let path = builder.policy_path();
        let mut jvm = builder.start();
        jvm.ask("request 1");
        assert_eq!(counts(&jvm.accounts()).len(), 1, "{vm}: nothing is due yet");
        jvm.ask(&format!("hold {}", 24 << 20));
        jvm.until(PATIENCE, "the account is over", |accounts| {
            accounts.is_in_state("shop", "over")
        });
        for work in ["request", "pooled", "job"] {
            warm_up(&mut jvm, work);
        }
        assert_counted(&mut jvm, "request", 7, REQUEST.entry);
        assert_counted(&mut jvm, "job", 5, JOB.entry);
        let accounts = jvm.accounts();
        assert_listed(&accounts, &REQUEST);
        assert_listed(&accounts, &JOB);
        // The servlet is nearer than the pool's task, whose thread serves a request here.
        assert_counted(&mut jvm, "pooled", 3, REQUEST.entry);

        // A loop would not have been refused.
        let before = jvm.accounts();
        jvm.ask("loop 6");
        let after = jvm.until(PATIENCE, "the loop is counted", |accounts| {
            deferred(accounts, "no-unit") >= deferred(&before, "no-unit") + 6
        });
        assert_eq!(counts(&after), counts(&before), "{vm}");
        assert_eq!(due(&after), due(&before), "{vm}");

        told_by_the_command(&jvm, &path, &counts(&after));

        // The line does what it says.
        put_in_force(&jvm, &path, &policy("observe", LINE), 2);
        let before = counts(&jvm.accounts());
        let spared = deferred(&jvm.accounts(), "policy");
        poll(PATIENCE, || {
            jvm.ask("job 4");
            (deferred(&jvm.accounts(), "policy") > spared).then_some(())
        })
        .expect("the job is spared");
        assert_eq!(
            counts(&jvm.accounts())[JOB.entry],
            before[JOB.entry],
            "{vm}"
        );

        // Another mode begins anew, and counts what is thrown.
        put_in_force(&jvm, &path, &policy("enforce", ""), 3);
        jvm.until(PATIENCE, "the places are gone", |accounts| {
            counts(accounts).len() == 1
        });
        // The rules of another policy for the methods on the stack must be found out first.
        let are_thrown = poll(PATIENCE, || {
            jvm.ask("job 4");
            (thrown(&jvm.accounts()) > 0).then_some(())
        });
        assert!(are_thrown.is_some(), "{vm}: {}", told(&jvm.accounts()));
        let accounts = jvm.until(
            PATIENCE,
            "errors are thrown and their place has its name",
            |accounts| {
                counts(accounts)
                    .get(JOB.entry)
                    .is_some_and(|&count| count == thrown(accounts))
            },
        );
        assert_eq!(counts(&accounts)["other"], 0, "{vm}");
        assert!(
            due(&accounts) > 0,
            "{vm}: what was observed is not forgotten"
        );
        jvm.finish();
    });
}

/// `status --places` and `suggest` say it as well.
fn told_by_the_command(jvm: &Jvm, policy: &std::path::Path, counts: &BTreeMap<String, u64>) {
    let address = jvm.address().to_string();
    let finished = heapwarden(&["status", "--places", &address]);
    assert!(finished.status.success(), "{finished:?}");
    let text = &finished.stdout;
    for place in [&REQUEST, &JOB] {
        let count = counts[place.entry].to_string();
        let words = ["shop", &count, place.thread, FRAME, place.entry, place.unit];
        assert!(
            text.lines().any(|line| line.split_whitespace().eq(words)),
            "{words:?}\n{text}"
        );
    }
    assert!(
        text.contains(&format!("to spare background threads of shop: {LINE}")),
        "{text}"
    );

    let policy = policy.to_str().expect("temporary folders have plain names");
    let arguments = [
        "suggest",
        "--live",
        &address,
        "--for",
        "5s",
        "--allow-short",
        "--policy",
        policy,
    ];
    let finished = heapwarden(&arguments);
    assert!(finished.status.success(), "{finished:?}");
    let text = &finished.stdout;
    for said in [
        format!(
            "{} in {FRAME}, background: {} in {}",
            counts[JOB.entry], JOB.entry, JOB.unit
        ),
        format!(
            "{} in {FRAME}, request: {}",
            counts[REQUEST.entry], REQUEST.entry
        ),
        format!("# suggested: {LINE}"),
    ] {
        assert!(text.contains(&said), "{said}\n{text}");
    }
    let suggested: toml::Table = toml::from_str(text).expect("a policy");
    let shop = &suggested["account"].as_array().expect("a list")[0];
    assert!(
        shop.get("never-interrupt").is_none(),
        "a comment only:\n{text}"
    );
}
