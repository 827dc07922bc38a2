//! The contract's document, and its bounds.

use policy_core::enforce::duress::Figures;
use policy_core::usage::{Resource, Usage};
use serde_json::{Value, json};

use super::super::{
    DoorState, Heap, Ineffective, Kind, Mode, PolicyStatus, Process, Sampling, State,
};
use super::*;

fn rendered(snapshot: &Snapshot, classes: Classes) -> Value {
    serde_json::from_slice(&render(snapshot, classes).unwrap()).unwrap()
}

fn class(class: &str, live_bytes: u64) -> Class {
    Class {
        class: class.to_owned(),
        live_bytes,
        live_objects: 1,
        allocated_bytes_total: live_bytes,
        ..Class::default()
    }
}

#[test]
fn the_document_is_the_contract_s() {
    let snapshot = Snapshot {
        process: Process {
            id: 4711,
            program: "app.jar".to_owned(),
            vm: "OpenJDK 64-Bit Server VM".to_owned(),
            version: "21.0.5+11".to_owned(),
            loaded_at_start: true,
        },
        evidence_budget_used_up_seconds: Some(2.5),
        duress: Figures {
            is_on: true,
            free_bytes: 7,
            short_below_bytes: 8,
        },
        heap: Heap {
            used_after_gc_bytes: 1,
            max_bytes: u64::MAX,
            gc_epoch: 3,
            live_gc_epoch: 2,
            live_age_seconds: Some(1.5),
            accounts: Some(super::super::accounts_sum_of_a_test()),
        },
        sampling: Sampling {
            interval_bytes: 65536,
            samples: 9,
            dropped: vec![("slab_full", 2), ("reentry", 3)],
            thinned: 0,
            thinned_by_class: 0,
            error_factor: 1.0,
            callback_p50_ns: 900,
            callback_p99_ns: 4_000,
        },
        policy: PolicyStatus {
            generation: 1,
            mode: Mode::Enforce,
            last_error: Some("a.toml:1:2: no".to_owned()),
            ..PolicyStatus::default()
        },
        accounts: vec![Account {
            name: "shop".to_owned(),
            kind: Kind::Service,
            service: "/shop".to_owned(),
            live_bytes: 10,
            live_standard_error_bytes: 0.5,
            live_at_most_bytes: Some(7),
            charged_bytes: 20,
            standard_error_bytes: 1.5,
            live_objects: 2,
            allocated_bytes_total: 30,
            allocated_objects_total: 4,
            limit_bytes: Some(268_435_456),
            reserve_bytes: Some(33_554_432),
            state: State::Suspect,
            door: DoorState::Shut,
            admission_refusals_total: 9,
            threads_killed_total: 8,
            wait_milliseconds_total: 1_500,
            refusals_total: 5,
            would_refuse_total: 6,
            deferred: vec![("clinit", 7), ("lock", 1)],
            ineffective: Some(Ineffective {
                reason: "clinit",
                frame: Some("com.acme.Loop.run".to_owned()),
            }),
            places: vec![Place {
                frame: "a.Map#put".to_owned(),
                entry: "a.jobs.Cleaner#run".to_owned(),
                thread: "background",
                unit: "scope".to_owned(),
                count: 3,
                never_interrupt: Some("never-interrupt = [\"a.jobs\"]".to_owned()),
            }],
            places_elsewhere: 2,
            retired_loaders: 1,
            left_behind_bytes: 9,
            threads_left_behind: 3,
            left_threads: vec![LeftThread {
                name: "poller".to_owned(),
                is_daemon: true,
                runs: Some("a.Poller.run(Poller.java:3)".to_owned()),
            }],
            usage: vec![Usage {
                resource: Resource::Threads,
                used: 12,
            }],
            principals: vec![Principal {
                name: "_unaccounted".to_owned(),
                live_bytes: 10,
            }],
            classes: vec![class("byte[]", 10)],
            ..Account::default()
        }],
        cpu_seconds: vec![("http", 1.5)],
        memory_bytes: vec![("sites", 7)],
        ..Snapshot::default()
    };
    let mut expected = json!({
        "heap": {"used_after_gc_bytes": 1, "max_bytes": u64::MAX, "gc_epoch": 3,
            "live_gc_epoch": 2, "live_age_seconds": 1.5},
        "sampling": {"interval_bytes": 65536, "samples": 9, "dropped": 5,
            "dropped_by_reason": {"slab_full": 2, "reentry": 3},
            "callback_p50_ns": 900, "callback_p99_ns": 4000},
        "policy": {"generation": 1, "mode": "enforce", "last_reload_successful": false,
            "last_error": "a.toml:1:2: no"},
        "accounts": [{"name": "shop", "kind": "service", "service": "/shop",
            "live_bytes": 10, "live_standard_error_bytes": 1, "live_at_most_bytes": 7,
            "charged_bytes": 20, "standard_error_bytes": 2,
            "live_objects": 2, "allocated_bytes_total": 30, "allocated_objects_total": 4,
            "limit_bytes": 268_435_456, "reserve_bytes": 33_554_432,
            "state": "suspect", "door": "shut",
            "refusals_total": 5, "would_refuse_total": 6, "admission_refusals_total": 9,
            "threads_killed_total": 8,
            "wait_milliseconds_total": 1_500,
            "deferred_total": 8,
            "deferred_by_reason": {"clinit": 7, "lock": 1}, "retired_loaders": 1, "left_behind_bytes": 9,
            "principals": [{"name": "_unaccounted", "live_bytes": 10}],
            }],
        "accounts_omitted": 0,
    });
    expected["accounts"][0]["ineffective"] =
        json!({"reason": "clinit", "frame": "com.acme.Loop.run"});
    expected["evidence"] = json!({"budget_used_up_seconds": 2.5});
    expected["jvm"] = json!({"pid": 4711, "name": "app.jar", "vm": "OpenJDK 64-Bit Server VM",
        "version": "21.0.5+11", "loaded_at_start": true});
    expected["accounts"][0]["classes"] = json!([{"class": "byte[]",
        "live_bytes": 10, "live_standard_error_bytes": 0, "live_objects": 1,
        "allocated_bytes_total": 10, "allocated_objects_total": 0,
        "freed_bytes_total": 0, "freed_objects_total": 0, "generations": 0}]);
    expected["accounts"][0]["places"] = json!([{"frame": "a.Map#put", "entry": "a.jobs.Cleaner#run",
        "thread": "background", "unit": "scope", "count": 3,
        "never_interrupt": "never-interrupt = [\"a.jobs\"]"}]);
    expected["accounts"][0]["places_other"] = json!(2);
    expected["heap"]["accounts"] = json!({"live_bytes": 9, "standard_error_bytes": 1, "heap_bytes": 4,
        "over_heap_ratio": 2.25, "exceeds": true, "error_factor": 10.0});
    expected["enforcement"] =
        json!({"duress": true, "heap_free_bytes": 7, "heap_short_below_bytes": 8});
    expected["accounts"][0]["classes"][0] = json!({"class": "byte[]", "live_bytes": 10,
        "live_objects": 1, "allocated_bytes_total": 10, "live_standard_error_bytes": 0,
        "allocated_objects_total": 0, "freed_bytes_total": 0, "freed_objects_total": 0,
        "generations": 0});
    expected["costs"] = json!({"cpu_milliseconds": {"http": 1500}, "memory_bytes": {"sites": 7}});
    expected["accounts"][0]["threads_left_behind"] = json!(3);
    expected["accounts"][0]["left_threads"] =
        json!([{"name": "poller", "daemon": true, "runs": "a.Poller.run(Poller.java:3)"}]);
    expected["accounts"][0]["usage"] = json!([
        {"resource": "heap", "used": 10, "limit": 268_435_456, "refusals_total": 14},
        {"resource": "threads", "used": 12, "limit": null, "refusals_total": 0}]);
    // Other fields are those of an empty account.
    let mut account = json!(document::Account::default());
    for (key, value) in expected["accounts"][0].as_object_mut().unwrap() {
        account[key] = value.take();
    }
    expected["accounts"][0] = account;
    assert_eq!(rendered(&snapshot, Classes::Top), expected);
}

#[test]
fn numbers_are_written_as_integers() {
    let snapshot = Snapshot {
        heap: Heap {
            max_bytes: u64::MAX,
            ..Heap::default()
        },
        ..Snapshot::default()
    };
    let text = String::from_utf8(render(&snapshot, Classes::Top).unwrap()).unwrap();
    assert!(
        text.contains("\"max_bytes\":18446744073709551615,"),
        "{text}"
    );
}

#[test]
fn accounts_and_classes_come_largest_first() {
    let account = |name: &str, live_bytes| Account {
        name: name.to_owned(),
        live_bytes,
        classes: (0..30).map(|i| class(&format!("c{i:02}"), i)).collect(),
        ..Account::default()
    };
    let snapshot = Snapshot {
        accounts: vec![account("b", 1), account("a", 1), account("c", 2)],
        ..Snapshot::default()
    };
    let top = rendered(&snapshot, Classes::Top);
    let names: Vec<_> = (0..3).map(|i| top["accounts"][i]["name"].clone()).collect();
    assert_eq!(names, ["c", "a", "b"]);
    let classes = top["accounts"][0]["classes"].as_array().unwrap();
    assert_eq!(classes.len(), TOP_CLASSES);
    assert_eq!(classes[0]["class"], "c29");
    assert_eq!(top["accounts"][0]["classes_omitted"], 10);
    let all = rendered(&snapshot, Classes::All);
    let classes = all["accounts"][0]["classes"].as_array().unwrap();
    assert_eq!(classes.len(), 30);
    assert_eq!(all["accounts"][0]["classes_omitted"], 0);
}

#[test]
fn the_document_is_bounded_and_says_what_it_leaves_out() {
    let snapshot = Snapshot {
        accounts: (0..MAX_ACCOUNTS as u64 + 5)
            .map(|i| Account {
                name: format!("t{i}"),
                live_bytes: i,
                classes: (0..12).map(|i| class("x", i)).collect(),
                places: vec![Place {
                    count: 3,
                    ..Place::default()
                }],
                places_elsewhere: 1,
                ..Account::default()
            })
            .collect(),
        ..Snapshot::default()
    };
    let document = rendered(&snapshot, Classes::All);
    assert_eq!(document["accounts_omitted"], 5);
    let accounts = document["accounts"].as_array().unwrap();
    assert_eq!(accounts.len(), MAX_ACCOUNTS);
    let of = |a: &Value, rows: &str| a[rows].as_array().unwrap().len();
    let rows = |a: &Value| of(a, "classes") + of(a, "places");
    assert_eq!(accounts.iter().map(rows).sum::<usize>(), MAX_DETAIL_ROWS);
    assert_eq!(
        (rows(&accounts[0]), &accounts[0]["places_other"]),
        (13, &json!(1))
    );
    let last = accounts.last().unwrap();
    assert_eq!((rows(last), &last["classes_omitted"]), (0, &json!(12)));
    assert_eq!(last["places_other"], 4, "none is lost");
}
