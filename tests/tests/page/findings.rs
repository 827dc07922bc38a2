//! The page and `heapwarden doctor` say the same of every state that the agent's documents tell: each finding
//! that both can see is provoked once, and compared by severity and name.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use heapwarden_harness::stub_server;
use heapwarden_tests::browser::Browser;
use heapwarden_tests::{artifacts, command};
use policy_report::findings::{self, Seen};
use policy_report::{
    Account, Accounts, AccountsSum, Door, Ineffective, Leaks, LeftThread, State, Suspect, Usage,
};
use serde_json::{Value, json};

use crate::show;

const MIB: u64 = 1 << 20;

/// A document in which nothing is wrong, with one account.
fn healthy() -> Accounts<'static> {
    let mut all = Accounts::default();
    all.policy.mode = "enforce".into();
    all.policy.last_reload_successful = true;
    all.heap.max_bytes = 1024 * MIB;
    all.heap.gc_epoch = 4;
    all.sampling.samples = 1_000;
    all.sampling.interval_bytes = 64 << 10;
    all.accounts = vec![Account {
        name: "shop".into(),
        kind: "service".into(),
        service: "shop".into(),
        live_bytes: 50 * MIB,
        live_standard_error_bytes: Some(MIB),
        charged_bytes: 60 * MIB,
        standard_error_bytes: MIB,
        allocated_bytes_total: 100 * MIB,
        limit_bytes: Some(100 * MIB),
        state: State::Open,
        door: Door::Open,
        ..Account::default()
    }];
    all
}

/// The documents that the agent answers with in one state.
struct Told {
    accounts: Accounts<'static>,
    leaks: Leaks<'static>,
}

/// The use of a resource off the heap.
fn off_heap_of_33_mib(resource: &str) -> Usage<'_> {
    Usage {
        resource: resource.into(),
        used: 33 * MIB,
        ..Usage::default()
    }
}

/// The state of one account.
fn of(change: impl FnOnce(&mut Account<'static>)) -> Told {
    of_all(|all| change(&mut all.accounts[0]))
}

/// The state of the JVM.
fn of_all(change: impl FnOnce(&mut Accounts<'static>)) -> Told {
    let mut accounts = healthy();
    change(&mut accounts);
    Told {
        accounts,
        leaks: Leaks::default(),
    }
}

fn states() -> Vec<Told> {
    let over = |one: &mut Account<'static>| {
        one.live_bytes = 120 * MIB;
        one.state = State::Over;
    };
    let put_off = |one: &mut Account<'static>, reason: &'static str| {
        one.deferred_total = 3;
        one.deferred_by_reason.0 = vec![(reason.into(), 3)];
    };
    let shut = |one: &mut Account<'static>| {
        one.door = Door::Shut;
        one.admission_refusals_total = 9;
    };
    let mut states = vec![
        of_all(|_| {}),
        of_all(|all| {
            all.heap.accounts = Some(AccountsSum {
                live_bytes: 210 * MIB,
                standard_error_bytes: 5 * MIB,
                heap_bytes: 100 * MIB,
                over_heap_ratio: 2.1,
                exceeds: true,
                error_factor: 22.0,
            });
        }),
        of(|one| {
            over(one);
            one.ineffective = Some(Ineffective {
                reason: "no-unit".into(),
                frame: None,
            });
        }),
        of_all(|all| {
            over(&mut all.accounts[0]);
            all.policy.mode = "observe".into();
        }),
        of(over),
        of(|one| {
            over(one);
            put_off(one, "timer");
        }),
        of(|one| {
            over(one);
            one.refusals_total = 7;
        }),
        of(|one| {
            over(one);
            shut(one);
        }),
        // Beyond its reserve, and nothing stops it; and within.
        of(|one| {
            over(one);
            shut(one);
            put_off(one, "timer");
        }),
        of(|one| {
            over(one);
            shut(one);
            put_off(one, "timer");
            one.reserve_bytes = Some(50 * MIB);
        }),
        of(shut),
        of(|one| one.state = State::Suspect),
        of(|one| {
            one.state = State::Suspect;
            one.wait_milliseconds_total = 5_000;
        }),
        of(|one| one.threads_killed_total = 2),
        of(|one| {
            one.threads_killed_total = 2;
            one.refusals_total = 3;
        }),
        of(|one| one.refusals_total = 3),
        of(|one| one.admission_refusals_total = 3),
        of(|one| put_off(one, "timer")),
        of(|one| put_off(one, "grace")),
        of(|one| one.wait_milliseconds_total = 5_000),
        of_all(|all| all.enforcement.duress = true),
        of(|one| one.soft_limit_bytes = Some(40 * MIB)),
        of(|one| {
            over(one);
            one.soft_limit_bytes = Some(40 * MIB);
        }),
        of(|one| {
            one.direct_limit_bytes = Some(64 * MIB);
            one.usage = ["direct", "native"].map(off_heap_of_33_mib).into();
        }),
        of(|one| {
            one.direct_limit_bytes = Some(66 * MIB);
            one.usage = ["direct", "native"].map(off_heap_of_33_mib).into();
        }),
        of(|one| one.retired_loaders = 2),
        of(|one| {
            one.threads_left_behind = 5;
            one.left_threads = vec![LeftThread {
                name: "poller".into(),
                daemon: true,
                runs: Some("com.acme.Poller.run(Poller.java:31)".into()),
            }];
        }),
        of(|one| one.left_behind_bytes = MIB),
        of(|one| one.left_behind_bytes = MIB - 1),
        of(|one| one.limit_bytes = Some(2048 * MIB)),
        of_all(|all| {
            let mut cart = all.accounts[0].clone();
            cart.name = "cart".into();
            cart.limit_bytes = Some(1000 * MIB);
            all.accounts.push(cart);
        }),
        of(|one| one.limit_bytes = Some(MIB)),
        of_all(|all| {
            all.policy.last_reload_successful = false;
            all.policy.last_error = Some("line 1: no".into());
        }),
        of_all(|all| all.policy.mode = "observe".into()),
        of_all(|all| {
            all.sampling.samples = 0;
            all.accounts.clear();
        }),
        of(|one| one.live_bytes = 0),
        of_all(|all| {
            all.accounts[0].live_bytes = 0;
            all.heap.gc_epoch = 0;
        }),
        of_all(|all| {
            all.sampling.dropped = 5;
            all.sampling.dropped_by_reason.0 = vec![("table_full".into(), 5)];
        }),
    ];
    for state in [State::Open, State::Suspect] {
        for waits in [0, 5_000] {
            states.push(of_all(|all| {
                all.evidence.budget_used_up_seconds = Some(12.0);
                all.accounts[0].state = state;
                all.accounts[0].wait_milliseconds_total = waits;
            }));
        }
    }
    let mut leaking = of_all(|_| {});
    leaking.leaks.suspects = ["com.acme.Session", "byte[]"]
        .map(|class| Suspect {
            account: "shop".into(),
            class: class.into(),
            growth_bytes_per_second: 1e5,
            growth_standard_error: 1e3,
            window_seconds: 600,
            ..Suspect::default()
        })
        .into();
    states.push(leaking);
    states
}

/// Severities and names, of findings that both can see.
type Found = BTreeSet<(String, String)>;

fn shared(found: impl Iterator<Item = (String, String)>) -> Found {
    let is_shared = |name: &str| {
        let declared = findings::ALL.iter().find(|one| one.name == name);
        let declared = declared.unwrap_or_else(|| panic!("{name} is not declared"));
        declared.seen == Seen::InDocuments
    };
    found.filter(|(_, name)| is_shared(name)).collect()
}

fn by_page(browser: &Browser, file: &std::path::Path, told: &Told) -> Found {
    let documents = json!({"about": {"address": "a file"},
        "api/v1/accounts?classes=all": told.accounts, "api/v1/leaks": told.leaks});
    let text = policy_page::report(&documents.to_string(), "0123456789abcdef");
    fs::write(file, text).expect("writable");
    show(browser, &format!("file://{}", file.display()), "Overview");
    let all = browser.until(
        "const list = document.querySelector('section[aria-label=\"What is wrong\"]'); \
         return list?.querySelector('[data-finding], .fine') && [...list.querySelectorAll('[data-finding]')] \
         .map(one => [one.querySelector('.badge').textContent, one.dataset.finding])",
    );
    let all: Vec<(String, String)> = serde_json::from_value(all).expect("pairs");
    shared(all.into_iter())
}

/// The metrics of the same moment.
fn metrics(all: &Accounts<'_>) -> String {
    let mut text = format!(
        "heapwarden_samples_total {}\nheapwarden_gc_epoch {}\nheapwarden_policy_last_reload_successful {}\n",
        all.sampling.samples,
        all.heap.gc_epoch,
        u8::from(all.policy.last_reload_successful)
    );
    for (reason, count) in &all.sampling.dropped_by_reason.0 {
        writeln!(
            text,
            "heapwarden_samples_dropped_total{{reason=\"{reason}\"}} {count}"
        )
        .expect("a text");
    }
    text
}

fn by_doctor(told: &Told) -> Found {
    let answers = [
        ("/metrics", metrics(&told.accounts)),
        ("/api/v1/accounts", json!(told.accounts).to_string()),
        ("/api/v1/leaks", json!(told.leaks).to_string()),
    ];
    let address = stub_server::serve(move |head, _, stream| {
        let path = stub_server::path(head);
        let answer = answers.iter().find(|(known, _)| *known == path);
        match answer {
            Some((_, body)) => stub_server::respond(stream, "200 OK", body),
            None => stub_server::respond(stream, "404 Not Found", ""),
        }
    });
    let address = address.to_string();
    let mut doctor = Command::new(artifacts::command());
    doctor.args(["doctor", "--json", &address]);
    let told = command::run(&mut doctor, command::PATIENCE);
    let document: Value =
        serde_json::from_str(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:#?}"));
    let all = document["findings"].as_array().expect("findings");
    let text = |one: &Value, key: &str| one[key].as_str().expect("a text").to_owned();
    shared(
        all.iter()
            .map(|one| (text(one, "severity"), text(one, "name"))),
    )
}

#[test]
fn the_page_and_doctor_say_the_same_of_every_state() {
    let browser = Browser::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut seen = BTreeSet::new();
    for (at, told) in states().iter().enumerate() {
        let file = folder.path().join(format!("state-{at}.html"));
        let page = by_page(&browser, &file, told);
        assert_eq!(page, by_doctor(told), "state {at}, the page first");
        if at == 0 {
            assert_eq!(page, Found::new(), "nothing is wrong");
        }
        seen.extend(page.into_iter().map(|(_, name)| name));
    }
    let shared = findings::ALL
        .iter()
        .filter(|one| one.seen == Seen::InDocuments);
    let shared: BTreeSet<String> = shared.map(|one| one.name.to_owned()).collect();
    assert_eq!(seen, shared, "each is provoked");
}
