use std::time::{Duration, Instant};

use policy_core::enforce::limit_status::LimitStatus;
use policy_core::enforce::state::{Estimate, Phase};
use policy_core::ledger::Epoch;

use super::*;

const COUNT: &str = "heapwarden_reading_duration_seconds_count{purpose=\"report\"} ";

fn count(recorder: &EventRecorder) -> usize {
    let text = recorder.render();
    let value = text.lines().find_map(|line| line.strip_prefix(COUNT));
    value.unwrap().parse().unwrap()
}

#[test]
fn only_threads_that_run_inside_it_are_heard() {
    let (one, other) = (EventRecorder::default(), EventRecorder::default());
    one.run(|| {
        drop(events::reading_for_report());
        // As on an allocating thread.
        std::thread::spawn(|| drop(events::reading_for_report()))
            .join()
            .unwrap();
    });
    drop(events::reading_for_report());
    assert_eq!((count(&one), count(&other)), (1, 0));
}

#[test]
fn a_panic_on_a_thread_leaves_its_recorder_behind() {
    let recorder = EventRecorder::default();
    let caught = std::panic::catch_unwind(|| {
        recorder.run(|| {
            let _timing = events::reading_for_report();
            std::panic::resume_unwind(Box::new("a test"));
        })
    });
    assert!(caught.is_err());
    drop(events::reading_for_report());
    assert_eq!(count(&recorder), 1);
}

#[test]
fn values_that_are_not_listed_add_no_series() {
    let recorder = EventRecorder::default();
    let lines = recorder.render().lines().count();
    recorder.run(|| {
        events::evidence_collection("unheard-of", Duration::ZERO);
        events::http_response(299);
        events::http_request("/a/tenant/s/path", Duration::ZERO);
    });
    let text = recorder.render();
    assert_eq!(text.lines().count(), lines);
    assert!(text.contains("_count{path=\"other\"} 1\n"), "{text}");
}

#[test]
fn no_duration_is_lost_by_draining_while_others_record() {
    const EACH: usize = 3 * MAX_UNDRAINED;
    let recorder = EventRecorder::default();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                recorder.run(|| (0..EACH).for_each(|_| drop(events::reading_for_report())))
            });
        }
        for _ in 0..20 {
            count(&recorder);
        }
    });
    assert_eq!(count(&recorder), 4 * EACH);
}

#[test]
fn a_verdict_s_delay_runs_from_the_suspicion() {
    let recorder = EventRecorder::default();
    let begun = Instant::now();
    let since = Epoch::default();
    let suspect = Phase::Suspect { since };
    let over = Phase::Over { limit_bytes: 1 };
    let mut status = LimitStatus::default();
    recorder.run(|| {
        // Suspected anew in between: the same suspicion still awaits its verdict.
        for (phase, second) in [
            (suspect, 1),
            (suspect, 2),
            (over, 4),
            (Phase::Open, 50),
            (suspect, 60),
            (Phase::Open, 61),
            (over, 70),
        ] {
            let now = begun + Duration::from_secs(second);
            status.enter(phase, Estimate::default(), now);
        }
    });
    let text = recorder.render();
    for line in [
        "heapwarden_verdict_delay_seconds_sum{outcome=\"over\"} 3\n",
        "heapwarden_verdict_delay_seconds_count{outcome=\"over\"} 1\n",
        "heapwarden_verdict_delay_seconds_sum{outcome=\"open\"} 1\n",
        "heapwarden_verdict_delay_seconds_count{outcome=\"open\"} 1\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}
