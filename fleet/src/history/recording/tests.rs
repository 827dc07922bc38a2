//! Series put together; a real Prometheus is read in `tests/tests/suggest.rs`.

use super::assembly::AccountColumns;
use super::*;
use crate::history::selector::Selector;
use crate::history::{Column, Kind};
use crate::prometheus::{Series, Span};

const STEPS: u64 = 6;

fn request() -> Request {
    Request {
        selector: Selector::default(),
        span: Span::covering(1000 + 10 * (STEPS as i64 - 1), 10 * STEPS, 10),
        jvm_labels: vec!["job".into(), "instance".into()],
        accounts: None,
        rollups: false,
    }
}

fn series(labels: &[(&str, &str)], readings: &[(u64, f64)]) -> Series {
    let labels = labels.iter().map(|(k, v)| ((*k).into(), (*v).into()));
    let points = readings
        .iter()
        .map(|(step, x)| (1000.0 + 10.0 * *step as f64, *x));
    Series {
        labels: labels.collect(),
        points: points.collect(),
    }
}

fn shop<'a>() -> [(&'a str, &'a str); 3] {
    [("job", "j"), ("instance", "i"), ("account", "/shop")]
}

#[test]
fn accounts_come_and_go_and_steps_are_missing() {
    let request = request();
    let mut reading = Assembly::new(&request);
    let live = [series(&shop(), &[(1, 100.0), (2, f64::NAN), (4, 300.0)])];
    reading
        .accounts(&live, |entry| &mut entry.live_bytes)
        .unwrap();
    reading
        .jvms(
            &[series(
                &[("job", "j"), ("instance", "i")],
                &[(0, 9.0), (1, 20.0), (4, 5.0), (5, 6.0)],
            )],
            |jvm| &mut jvm.samples,
        )
        .unwrap();
    let jvms = reading.finish();
    assert_eq!(jvms.len(), 1);
    assert_eq!(jvms[0].name(), "j i");
    assert_eq!(jvms[0].restarts, [4]);
    let account = &jvms[0].accounts[0];
    assert_eq!(
        (account.kind, account.service.as_str()),
        (Kind::Service, "/shop")
    );
    let live: Vec<_> = account.live_bytes.readings().collect();
    assert_eq!(live, [(1, 100.0), (4, 300.0)]);
}

#[test]
fn the_latest_kind_counts_and_labels_of_targets_do_not() {
    let request = request();
    let mut reading = Assembly::new(&request);
    let info = |kind, step| {
        let mut labels = shop().to_vec();
        labels.extend([
            ("kind", kind),
            ("service", "svc-of-kubernetes"),
            ("exported_service", "/shop"),
            ("exported_parent", "/mall"),
            ("parent", "datacenter"),
        ]);
        series(&labels, &[(step, 1.0)])
    };
    reading
        .kinds(&[info("service", 4), info("package", 1)])
        .unwrap();
    let live = [series(&shop(), &[(1, 1.0)])];
    reading
        .accounts(&live, |entry| &mut entry.live_bytes)
        .unwrap();
    let jvms = reading.finish();
    let account = &jvms[0].accounts[0];
    assert_eq!(
        (account.kind, account.service.as_str()),
        (Kind::Service, "/shop")
    );
    assert_eq!(account.parent, "/mall");
}

#[test]
fn refusals_are_counted_where_their_time_is_known() {
    let request = request();
    let mut reading = Assembly::new(&request);
    let live = [series(
        &shop(),
        &[(0, 1.0), (1, 1.0), (2, 1.0), (4, 1.0), (5, 1.0)],
    )];
    reading
        .accounts(&live, |entry| &mut entry.live_bytes)
        .unwrap();
    // From 0 to 7, to 10; then a gap, and after it a restart.
    let counter = [series(&shop(), &[(1, 7.0), (2, 10.0), (4, 50.0), (5, 2.0)])];
    reading
        .counted(&counter, |entry| &mut entry.refusals)
        .unwrap();
    let jvms = reading.finish();
    let refusals: Vec<_> = jvms[0].accounts[0].refusals.readings().collect();
    assert_eq!(refusals, [(1, 7.0), (2, 3.0), (5, 2.0)]);
}

#[test]
fn the_error_is_that_of_the_live_part() {
    let request = request();
    let mut reading = Assembly::new(&request);
    let one = |value| [series(&shop(), &[(0, value)])];
    reading
        .accounts(&one(100.0), |entry| &mut entry.live_bytes)
        .unwrap();
    reading
        .accounts(&one(400.0), |entry| &mut entry.charged_bytes)
        .unwrap();
    reading
        .accounts(&one(8.0), |entry| &mut entry.standard_error_bytes)
        .unwrap();
    reading.scale_errors();
    let jvms = reading.finish();
    assert_eq!(jvms[0].accounts[0].standard_error_bytes.get(0), Some(4.0));
}

#[test]
fn the_published_error_of_live_bytes_is_used_where_there_is_one() {
    let request = request();
    let mut reading = Assembly::new(&request);
    let one = |value| [series(&shop(), &[(0, value)])];
    type Choose = fn(&mut AccountColumns) -> &mut Column;
    let columns: [(f64, Choose); 4] = [
        (100.0, |entry| &mut entry.live_bytes),
        (400.0, |entry| &mut entry.charged_bytes),
        (8.0, |entry| &mut entry.standard_error_bytes),
        (3.0, |entry| &mut entry.live_standard_error_bytes),
    ];
    for (value, column) in columns {
        reading.accounts(&one(value), column).unwrap();
    }
    reading.scale_errors();
    let jvms = reading.finish();
    assert_eq!(jvms[0].accounts[0].standard_error_bytes.get(0), Some(3.0));
}

#[test]
fn two_jvms_of_one_name_are_not_mixed() {
    let request = request();
    let mut reading = Assembly::new(&request);
    let in_cluster = |cluster, step| {
        let mut labels = shop().to_vec();
        labels.push(("cluster", cluster));
        series(&labels, &[(step, 1.0)])
    };
    // One after the other is a JVM that was labelled anew.
    let apart = [in_cluster("a", 0), in_cluster("b", 1)];
    reading
        .accounts(&apart, |entry| &mut entry.live_bytes)
        .unwrap();
    let again = [in_cluster("b", 0)];
    let error = reading
        .accounts(&again, |entry| &mut entry.live_bytes)
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("differ in cluster") && text.contains("job,instance,cluster"),
        "{text}"
    );
}

#[test]
fn a_fleet_in_too_fine_steps_is_refused_with_a_step_that_would_do() {
    let request = Request {
        span: Span::covering(1_000_000, 604_800, 1),
        ..request()
    };
    let mut reading = Assembly::new(&request);
    let many = vec![series(&shop(), &[(0, 1.0)]); 1000];
    let text = reading.kinds(&many).unwrap_err().to_string();
    assert!(text.contains("--step 1m"), "{text}");
}
