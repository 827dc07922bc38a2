//! The documents as they are on the wire: written exactly, read tolerantly.

use std::borrow::Cow;
use std::net::SocketAddr;

use policy_report::{
    Account, AccountSites, Accounts, AccountsSum, Class, ClassSites, Costs, Counts, Door,
    Enforcement, Evidence, Exact, Heap, Ineffective, Jvm, LeftThread, Place, Policy, Principal,
    Route, RunFile, Sampling, Site, Sites, State, Tree, Usage, account_figures,
};
use proptest::prelude::*;

fn read(text: &str) -> Accounts<'static> {
    serde_json::from_str(text).unwrap()
}

/// Byte for byte, fields in the order of the contract.
#[test]
fn the_document_is_written_as_the_contract_says() {
    let document = Accounts {
        jvm: Jvm {
            pid: 4711,
            name: "app.jar".into(),
            vm: "OpenJDK 64-Bit Server VM".into(),
            version: "21.0.5+11".into(),
            loaded_at_start: Some(true),
        },
        evidence: Evidence {
            budget_used_up_seconds: Some(2.5),
        },
        enforcement: Enforcement {
            duress: true,
            heap_free_bytes: 7,
            heap_short_below_bytes: 8,
        },
        costs: Costs {
            cpu_milliseconds: Counts::of(&[("http", 1500)]),
            memory_bytes: Counts::of(&[("sites", 7)]),
        },
        exact: None,
        heap: Heap {
            used_after_gc_bytes: 1,
            max_bytes: u64::MAX,
            gc_epoch: 3,
            live_gc_epoch: Some(2),
            live_age_seconds: Some(1.5),
            accounts: Some(AccountsSum {
                live_bytes: 9,
                standard_error_bytes: 1,
                heap_bytes: 4,
                over_heap_ratio: 2.25,
                exceeds: true,
                error_factor: 8.0,
            }),
        },
        sampling: Sampling {
            interval_bytes: 65536,
            samples: 9,
            dropped: 5,
            dropped_by_reason: Counts::of(&[("table_full", 2), ("reentry", 3)]),
            callback_p50_ns: 900,
            callback_p99_ns: 4000,
        },
        policy: Policy {
            generation: 1,
            mode: "enforce".into(),
            last_reload_successful: true,
            last_error: None,
        },
        accounts: vec![Account {
            name: "shop".into(),
            kind: "service".into(),
            service: "/shop".into(),
            tree: Some(Tree {
                live_bytes: 1,
                charged_bytes: 2,
                standard_error_bytes: 3,
                ..Tree::default()
            }),
            live_bytes: 10,
            charged_bytes: 20,
            standard_error_bytes: 2,
            live_standard_error_bytes: Some(1),
            live_objects: 2,
            limit_bytes: Some(268_435_456),
            reserve_bytes: Some(33_554_432),
            state: State::Suspect,
            door: Door::Shut,
            admission_refusals_total: 4,
            threads_killed_total: 6,
            wait_milliseconds_total: 5,
            places: vec![Place {
                frame: "a.Map#put".into(),
                entry: "a.jobs.Cleaner#run".into(),
                thread: "background".into(),
                unit: "java.util.concurrent.FutureTask#run".into(),
                count: 3,
                never_interrupt: Some("never-interrupt = [\"a.jobs\"]".into()),
            }],
            places_other: 2,
            routes: vec![Route {
                route: "POST /statements".into(),
                calls_total: 9,
                refused_total: 8,
                live_bytes: 7,
                standard_error_bytes: 6,
                kept_bytes_per_call: 5,
                allocated_bytes_per_call: 4,
                peak_bytes_per_call: 3,
            }],
            threads_left_behind: 2,
            left_threads: vec![LeftThread {
                name: "poller".into(),
                daemon: true,
                runs: Some("a.Poller.run(Poller.java:3)".into()),
            }],
            usage: vec![Usage {
                resource: "heap".into(),
                used: 10,
                limit: Some(268_435_456),
                refusals_total: 4,
            }],
            principals: vec![Principal {
                name: "_unaccounted".into(),
                live_bytes: 10,
            }],
            classes: vec![Class {
                class: "byte[]".into(),
                live_bytes: 10,
                live_objects: 1,
                allocated_bytes_total: 30,
                ..Class::default()
            }],
            ..Account::default()
        }],
        accounts_omitted: 0,
    };
    let expected = concat!(
        r#"{"jvm":{"pid":4711,"name":"app.jar","vm":"OpenJDK 64-Bit Server VM","#,
        r#""version":"21.0.5+11","loaded_at_start":true},"#,
        r#""heap":{"used_after_gc_bytes":1,"max_bytes":18446744073709551615,"gc_epoch":3,"#,
        r#""live_gc_epoch":2,"live_age_seconds":1.5,"#,
        r#""accounts":{"live_bytes":9,"standard_error_bytes":1,"heap_bytes":4,"#,
        r#""over_heap_ratio":2.25,"exceeds":true,"error_factor":8.0}},"#,
        r#""sampling":{"interval_bytes":65536,"samples":9,"dropped":5,"#,
        r#""dropped_by_reason":{"table_full":2,"reentry":3},"#,
        r#""callback_p50_ns":900,"callback_p99_ns":4000},"#,
        r#""policy":{"generation":1,"mode":"enforce","last_reload_successful":true,"#,
        r#""last_error":null},"#,
        r#""evidence":{"budget_used_up_seconds":2.5},"enforcement":{"duress":true,"heap_free_bytes":7,"heap_short_below_bytes":8},"#,
        r#""costs":{"cpu_milliseconds":{"http":1500},"memory_bytes":{"sites":7}},"#,
        r#""accounts":[{"name":"shop","kind":"service","service":"/shop","parent":null,"#,
        r#""tree":{"live_bytes":1,"live_at_most_bytes":null,"charged_bytes":2,"standard_error_bytes":3},"#,
        r#""live_bytes":10,"live_standard_error_bytes":1,"live_at_most_bytes":null,"#,
        r#""charged_bytes":20,"standard_error_bytes":2,"#,
        r#""live_objects":2,"allocated_bytes_total":0,"allocated_objects_total":0,"#,
        r#""soft_limit_bytes":null,"limit_bytes":268435456,"reserve_bytes":33554432,"#,
        r#""state":"suspect","door":"shut","#,
        r#""refusals_total":0,"would_refuse_total":0,"admission_refusals_total":4,"#,
        r#""threads_killed_total":6,"#,
        r#""wait_milliseconds_total":5,"#,
        r#""soft_limit_events_total":0,"#,
        r#""deferred_total":0,"deferred_by_reason":{},"ineffective":null,"#,
        r#""places":[{"frame":"a.Map#put","entry":"a.jobs.Cleaner#run","thread":"background","#,
        r#""unit":"java.util.concurrent.FutureTask#run","count":3,"#,
        r#""never_interrupt":"never-interrupt = [\"a.jobs\"]"}],"places_other":2,"#,
        r#""routes":[{"route":"POST /statements","calls_total":9,"refused_total":8,"live_bytes":7,"#,
        r#""standard_error_bytes":6,"kept_bytes_per_call":5,"allocated_bytes_per_call":4,"#,
        r#""peak_bytes_per_call":3}],"retired_loaders":0,"#,
        r#""left_behind_bytes":0,"threads_left_behind":2,"#,
        r#""left_threads":[{"name":"poller","daemon":true,"runs":"a.Poller.run(Poller.java:3)"}],"#,
        r#""usage":[{"resource":"heap","used":10,"limit":268435456,"refusals_total":4}],"#,
        r#""principals":[{"name":"_unaccounted","live_bytes":10}],"principals_omitted":0,"#,
        r#""classes":[{"class":"byte[]","live_bytes":10,"live_objects":1,"#,
        r#""allocated_bytes_total":30}],"classes_omitted":0}],"#,
        r#""accounts_omitted":0}"#,
    );
    let mut written = serde_json::to_string(&document).unwrap();
    // Others may be added, anywhere.
    for key in Account::FIGURES {
        if !expected.contains(&format!("\"{key}\":")) {
            written = written.replace(&format!("\"{key}\":0,"), "");
            written = written.replace(&format!("\"{key}\":null,"), "");
        }
    }
    assert_eq!(written, expected);
}

/// The answer of an agent that has neither trees nor doors nor the error and the age of live bytes.
#[test]
fn an_older_agent_is_read() {
    let answer = read(
        r#"{"heap":{"used_after_gc_bytes":1,"max_bytes":2,"gc_epoch":3},
        "sampling":{"interval_bytes":65536,"samples":4,"dropped":5},
        "policy":{"generation":1,"mode":"enforce"},
        "accounts":[{"name":"shop","kind":"service","live_bytes":10,"charged_bytes":11,
          "standard_error_bytes":2,"live_objects":1,"allocated_bytes_total":99,
          "soft_limit_bytes":null,"limit_bytes":40,"state":"suspect","refusals_total":1,
          "would_refuse_total":2,"deferred_total":3,
          "principals":[{"name":"_unaccounted","live_bytes":10}],
          "classes":[{"class":"byte[]","live_bytes":10,"live_objects":1,
            "allocated_bytes_total":50}]},
          {"name":"empty"}]}"#,
    );
    assert_eq!(answer.heap.gc_epoch, 3);
    assert_eq!(answer.heap.live_gc_epoch, None);
    assert_eq!(answer.heap.live_age_seconds, None);
    assert_eq!(answer.policy.mode, "enforce");
    let [shop, empty] = &answer.accounts[..] else {
        panic!("{answer:?}");
    };
    assert_eq!((shop.live_bytes, shop.limit_bytes), (10, Some(40)));
    assert_eq!((shop.soft_limit_bytes, shop.tree), (None, None));
    assert_eq!(shop.percent_of_limit(), Some(25.0));
    assert_eq!(shop.state, State::Suspect);
    assert_eq!((shop.door, shop.reserve_bytes), (Door::None, None));
    assert_eq!(
        (shop.admission_refusals_total, shop.threads_killed_total),
        (0, 0)
    );
    assert_eq!(shop.classes[0].class, "byte[]");
    assert_eq!(shop.principals[0].name, "_unaccounted");
    assert_eq!(shop.whole().live_error_bytes(), 2, "the charged error");
    assert_eq!(
        (empty.state, empty.whole().live_at_most()),
        (State::Unknown, None)
    );
    assert_eq!(empty.percent_of_limit(), None);
}

/// Fields, states and kinds of numbers that this version does not know.
#[test]
fn a_newer_agent_is_read() {
    let answer = read(
        r#"{"heap":{"live_gc_epoch":7,"live_age_seconds":12,"regions":[1]},
        "sampling":{"dropped_by_reason":{"meteor":2.0}},
        "policy":{"mode":"dream"},
        "accounts":[{"name":"a","state":"frozen","door":"ajar","reserve_bytes":2.5,"kind":"tenant","live_bytes":1.5,
          "charged_bytes":1e3,"live_standard_error_bytes":0.5,"x":{"y":[]}},
          {"name":"b","live_at_most_bytes":200000,"deferred_by_reason":{"z":1}}],
        "z":0}"#,
    );
    assert_eq!(answer.heap.live_gc_epoch, Some(7));
    assert_eq!(answer.heap.live_age_seconds, Some(12.0));
    assert_eq!(answer.sampling.dropped_by_reason.sum(), 2);
    assert_eq!(answer.policy.mode, "dream");
    let [a, b] = &answer.accounts[..] else {
        panic!("{answer:?}");
    };
    assert_eq!((a.state, a.kind.as_ref()), (State::Unknown, "tenant"));
    assert_eq!((a.door, a.reserve_bytes), (Door::Unknown, Some(2)));
    assert_eq!((a.live_bytes, a.charged_bytes), (1, 1000));
    assert_eq!(a.whole().live_error_bytes(), 0, "live's own error");
    assert_eq!(b.whole().live_at_most(), Some(200_000));
}

#[test]
fn the_answer_of_another_server_is_not_read() {
    for text in [r#"{"status":"success"}"#, "[]", "1", r#"{"accounts":1}"#] {
        assert!(
            serde_json::from_str::<Accounts<'_>>(text).is_err(),
            "{text}"
        );
    }
}

#[test]
fn absurd_numbers_become_the_nearest_that_fits() {
    let answer = read(
        r#"{"accounts":[{"live_bytes":-5,"charged_bytes":1e300,"limit_bytes":0,
            "live_objects":99999999999999999999999,"refusals_total":null}]}"#,
    );
    let account = &answer.accounts[0];
    assert_eq!(account.live_bytes, 0);
    assert_eq!(account.charged_bytes, u64::MAX);
    assert_eq!(account.live_objects, u64::MAX);
    assert_eq!(account.refusals_total, 0);
    assert_eq!(account.percent_of_limit(), None, "no division by zero");
}

#[test]
fn limits_are_about_an_account_with_the_scopes_inside_it() {
    let answer = read(
        r#"{"accounts":[{"name":"shop","live_bytes":0,"charged_bytes":12,
              "standard_error_bytes":1,"limit_bytes":40,"parent":null,"live_at_most_bytes":9,
              "tree":{"live_bytes":30,"charged_bytes":34,"standard_error_bytes":3,
                "live_standard_error_bytes":2}},
            {"name":"shop/tenant-42","live_bytes":20,"limit_bytes":40,"parent":"shop","tree":null}]}"#,
    );
    let [shop, tenant] = &answer.accounts[..] else {
        panic!("{answer:?}");
    };
    assert_eq!((shop.live_bytes, shop.whole().live_bytes), (0, 30));
    assert_eq!(shop.whole().live_error_bytes(), 2);
    assert_eq!(
        shop.whole().live_at_most(),
        None,
        "its scopes hold something"
    );
    assert_eq!(shop.percent_of_limit(), Some(75.0));
    assert_eq!(shop.parent, None);
    assert_eq!(tenant.whole().live_bytes, 20);
    assert_eq!(tenant.percent_of_limit(), Some(50.0));
    assert_eq!(tenant.parent.as_deref(), Some("shop"));
}

#[test]
fn sites_are_written_exactly_and_read_tolerantly() {
    let document = Sites {
        stacks: 9,
        skipped: Counts::of(&[("budget", 2), ("full", 0)]),
        accounts: vec![AccountSites {
            account: "shop".into(),
            classes: vec![ClassSites {
                class: "byte[]".into(),
                live_bytes: 30,
                with_stack_bytes: 20,
                stacks: 4,
                allocated_bytes: 90,
                allocated_stacks: 11,
                sites: vec![Site {
                    frames: vec!["a.Cart.add(Cart.java:41)".into()],
                    through: vec!["java.util.Map.of(Map.java:1)".into()],
                    share: 0.75,
                    share_standard_error: 0.125,
                    live_bytes: 15,
                    objects: 3,
                    stacks: 3,
                    live_standard_error_bytes: 9,
                    allocated_bytes: 60,
                    allocated_standard_error_bytes: 21,
                    allocated_objects: 12,
                    allocated_share: 0.5,
                    allocated_share_standard_error: 0.25,
                    allocated_stacks: 8,
                    cohorts: Vec::new(),
                }],
                sites_omitted: 1,
            }],
            classes_omitted: 2,
        }],
    };
    let text = concat!(
        r#"{"stacks":9,"skipped":{"budget":2,"full":0},"accounts":[{"account":"shop","classes":["#,
        r#"{"class":"byte[]","live_bytes":30,"with_stack_bytes":20,"stacks":4,"allocated_bytes":90,"allocated_stacks":11,"sites":["#,
        r#"{"frames":["a.Cart.add(Cart.java:41)"],"through":["java.util.Map.of(Map.java:1)"],"share":0.75,"#,
        r#""share_standard_error":0.125,"live_bytes":15,"objects":3,"stacks":3,"live_standard_error_bytes":9,"#,
        r#""allocated_bytes":60,"allocated_standard_error_bytes":21,"allocated_objects":12,"allocated_share":0.5,"#,
        r#""allocated_share_standard_error":0.25,"allocated_stacks":8}],"sites_omitted":1}],"#,
        r#""classes_omitted":2}]}"#,
    );
    assert_eq!(serde_json::to_string(&document).unwrap(), text);
    assert_eq!(
        serde_json::from_str::<Sites<'static>>(text).unwrap(),
        document
    );
    let newer = r#"{"new":[],"accounts":[{"account":"a","classes":[{"class":"b","sites":[{}]}]}]}"#;
    let read: Sites<'static> = serde_json::from_str(newer).unwrap();
    assert_eq!(read.accounts[0].classes[0].sites, [Site::default()]);
    assert!(
        serde_json::from_str::<Sites<'static>>("{}").is_err(),
        "another server's"
    );
}

#[test]
fn the_run_file_is_one_small_object() {
    let run = RunFile {
        pid: 4711,
        listen: SocketAddr::from(([127, 0, 0, 1], 41234)),
    };
    let text = serde_json::to_string(&run).unwrap();
    assert_eq!(text, r#"{"pid":4711,"listen":"127.0.0.1:41234"}"#);
    let newer = r#"{"pid":4711,"listen":"127.0.0.1:41234","since":1}"#;
    assert_eq!(serde_json::from_str::<RunFile>(newer).unwrap(), run);
    for text in [r#"{"pid":1}"#, r#"{"listen":"127.0.0.1:1"}"#] {
        assert!(serde_json::from_str::<RunFile>(text).is_err(), "{text}");
    }
}

fn text() -> impl Strategy<Value = Cow<'static, str>> {
    any::<String>().prop_map(Cow::Owned)
}

fn counts() -> impl Strategy<Value = Counts<'static>> {
    prop::collection::vec((text(), any::<u64>()), 0..3).prop_map(Counts)
}

fn state() -> impl Strategy<Value = State> {
    prop::sample::select(vec![
        State::Open,
        State::Suspect,
        State::Over,
        State::Unknown,
    ])
}

fn door() -> impl Strategy<Value = Door> {
    prop::sample::select(vec![Door::None, Door::Open, Door::Shut, Door::Unknown])
}

prop_compose! {
    fn tree()(amounts in any::<[u64; 3]>(), optional in any::<[Option<u64>; 2]>()) -> Tree {
        Tree {
            live_bytes: amounts[0],
            charged_bytes: amounts[1],
            standard_error_bytes: amounts[2],
            live_standard_error_bytes: optional[0],
            live_at_most_bytes: optional[1],
        }
    }
}

prop_compose! {
    fn class()(class in text(), amounts in any::<[u64; 3]>()) -> Class<'static> {
        Class {
            class,
            live_bytes: amounts[0],
            live_objects: amounts[1],
            allocated_bytes_total: amounts[2],
            ..Class::default()
        }
    }
}

prop_compose! {
    fn principal()(name in text(), live_bytes in any::<u64>()) -> Principal<'static> {
        Principal { name, live_bytes }
    }
}

prop_compose! {
    fn place()(
        names in [text(), text(), text(), text()],
        count in any::<u64>(),
        never_interrupt in prop::option::of(text()),
    ) -> Place<'static> {
        let [frame, entry, thread, unit] = names;
        Place {
            frame,
            entry,
            thread,
            unit,
            count,
            never_interrupt,
        }
    }
}

prop_compose! {
    fn route()(route in text(), amounts in any::<[u64; 7]>()) -> Route<'static> {
        Route {
            route,
            calls_total: amounts[0],
            refused_total: amounts[1],
            live_bytes: amounts[2],
            standard_error_bytes: amounts[3],
            kept_bytes_per_call: amounts[4],
            allocated_bytes_per_call: amounts[5],
            peak_bytes_per_call: amounts[6],
        }
    }
}

prop_compose! {
    fn left_thread()(
        name in text(), daemon in any::<bool>(), runs in prop::option::of(text()),
    ) -> LeftThread<'static> {
        LeftThread { name, daemon, runs }
    }
}

prop_compose! {
    fn usage()(
        resource in text(),
        amounts in any::<[u64; 2]>(),
        limit in any::<Option<u64>>(),
    ) -> Usage<'static> {
        Usage { resource, used: amounts[0], limit, refusals_total: amounts[1] }
    }
}

/// A figure of an account, from any number.
trait Drawn {
    fn of(number: Option<u64>) -> Self;
}

impl Drawn for u64 {
    fn of(number: Option<u64>) -> Self {
        number.unwrap_or_default()
    }
}

impl Drawn for Option<u64> {
    fn of(number: Option<u64>) -> Self {
        number
    }
}

macro_rules! drawn {
    ($numbers:ident {$($field:tt)*} $(fields $fields:tt figures {$(
        $(#[$serde:meta])* $key:ident: $type:ty [$($row:tt)*] $help:literal;
    )*})*) => {
        Account {
            $($field)*
            $($($key: Drawn::of($numbers.next().unwrap()),)*)*
        }
    };
}

prop_compose! {
    fn account()(
        names in [text(), text(), text()],
        parent in prop::option::of(text()),
        tree in prop::option::of(tree()),
        amounts in any::<[u64; 4]>(),
        optional in any::<[Option<u64>; 2]>(),
        figures in prop::collection::vec(any::<Option<u64>>(), 23),
        state in state(),
        door in door(),
        deferred_by_reason in counts(),
        principals in prop::collection::vec(principal(), 0..3),
        classes in prop::collection::vec(class(), 0..3),
        ineffective in prop::option::of((text(), prop::option::of(text())).prop_map(
            |(reason, frame)| Ineffective { reason, frame },
        )),
        places in prop::collection::vec(place(), 0..3),
        routes in prop::collection::vec(route(), 0..3),
        resources in (
            prop::collection::vec(left_thread(), 0..3),
            prop::collection::vec(usage(), 0..3),
        ),
    ) -> Account<'static> {
        let [name, kind, service] = names;
        let mut numbers = figures.into_iter().cycle();
        account_figures!(drawn! numbers {
            name,
            kind,
            service,
            parent,
            tree,
            live_by_ratio_bytes: optional[0],
            live_by_ratio_standard_error_bytes: optional[1],
            state,
            door,
            deferred_total: amounts[0],
            deferred_by_reason,
            ineffective,
            places,
            places_other: amounts[1],
            routes,
            left_threads: resources.0,
            usage: resources.1,
            principals,
            principals_omitted: amounts[2],
            classes,
            classes_omitted: amounts[3],
        })
    }
}

prop_compose! {
    fn accounts()(
        heap in any::<[u64; 3]>(),
        pid in any::<u64>(),
        jvm in [text(), text(), text()],
        loaded_at_start in any::<Option<bool>>(),
        live_gc_epoch in any::<Option<u64>>(),
        // Eighths are exact in text, too.
        [live_age_eighths, budget_eighths] in prop::array::uniform2(prop::option::of(0_u32..1 << 30)),
        sampling in any::<[u64; 5]>(),
        dropped_by_reason in counts(),
        generation in any::<u64>(),
        mode in text(),
        last_reload_successful in any::<bool>(),
        last_error in prop::option::of(text()),
        accounts in prop::collection::vec(account(), 0..4),
        accounts_omitted in any::<u64>(),
        exact in any::<Option<(bool, [Option<u64>; 2], Option<i64>, u64)>>(),
    ) -> Accounts<'static> {
        let [name, vm, version] = jvm;
        Accounts {
            jvm: Jvm { pid, name, vm, version, loaded_at_start },
            evidence: Evidence {
                budget_used_up_seconds: budget_eighths.map(|eighths| f64::from(eighths) / 8.0),
            },
            enforcement: Enforcement {
                duress: last_reload_successful,
                heap_free_bytes: accounts_omitted,
                heap_short_below_bytes: 8,
            },
            costs: Costs { cpu_milliseconds: dropped_by_reason.clone(), memory_bytes: Counts::default() },
            exact: exact.map(|(counting, figures, remainder_bytes, lost_objects_total)| Exact {
                counting,
                jvm_allocated_bytes_total: figures[0],
                counted_bytes_total: figures[1],
                remainder_bytes,
                lost_objects_total,
                classes_rewritten_total: sampling[0],
                classes_skipped: dropped_by_reason.clone(),
            }),
            heap: Heap {
                used_after_gc_bytes: heap[0],
                max_bytes: heap[1],
                gc_epoch: heap[2],
                live_gc_epoch,
                live_age_seconds: live_age_eighths.map(|eighths| f64::from(eighths) / 8.0),
                accounts: live_age_eighths.map(|eighths| AccountsSum {
                    live_bytes: heap[0],
                    standard_error_bytes: heap[1],
                    heap_bytes: heap[2],
                    over_heap_ratio: f64::from(eighths) / 8.0,
                    exceeds: last_reload_successful,
                    error_factor: 1.0,
                }),
            },
            sampling: Sampling {
                interval_bytes: sampling[0],
                samples: sampling[1],
                dropped: sampling[2],
                dropped_by_reason,
                callback_p50_ns: sampling[3],
                callback_p99_ns: sampling[4],
            },
            policy: Policy { generation, mode, last_reload_successful, last_error },
            accounts,
            accounts_omitted,
        }
    }
}

proptest! {
    /// A document that was written is read as the same, to the last field.
    #[test]
    fn what_is_written_is_read(document in accounts()) {
        let bytes = serde_json::to_vec(&document).unwrap();
        let again: Accounts<'static> = serde_json::from_slice(&bytes).unwrap();
        prop_assert_eq!(again, document);
    }

    /// A reader never panics, and any object with a list of objects named `accounts` is read.
    #[test]
    fn any_numbers_are_read(number in prop_oneof![any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_filter("a number of JSON", |n| n.is_finite()).prop_map(|n| format!("{n:e}"))])
    {
        let text = format!(r#"{{"accounts":[{{"live_bytes":{number},"limit_bytes":{number}}}],
            "heap":{{"max_bytes":{number},"live_gc_epoch":{number},"live_age_seconds":{number}}}}}"#);
        let answer = read(&text);
        prop_assert_eq!(Some(answer.accounts[0].live_bytes), answer.accounts[0].limit_bytes);
    }
}
