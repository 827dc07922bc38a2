//! Each answer by itself: a leak, and what each of its conditions keeps from being called one.

use super::*;

const SAMPLE_BYTES: f64 = 65_536.0;

fn born(records: u64) -> Born {
    Born {
        records,
        bytes: records as f64 * SAMPLE_BYTES,
        squares: records as f64 * SAMPLE_BYTES * SAMPLE_BYTES,
    }
}

/// A window of 100 s in which as many were born all the time, and nothing old died.
fn leak() -> WindowView {
    let part = Part {
        seconds: 50.0 / 6.0,
        born: born(33),
    };
    WindowView {
        seconds: 50.0,
        middle_seconds: 25.0,
        young_seconds: 25.0,
        old_then: born(100),
        old_now: born(100),
        middle: born(100),
        young: born(100),
        parts: vec![part; 6],
    }
}

fn verdict(view: &WindowView) -> Verdict {
    view.judge().verdict
}

#[test]
fn what_comes_all_the_time_and_never_dies_leaks() {
    let found = leak().judge();
    assert_eq!(found.verdict, Verdict::Leak);
    assert!(found.still_leaks && !found.old_dies);
    let truth = 200.0 * SAMPLE_BYTES / 50.0;
    assert!((found.growth - truth).abs() < 1e-6, "{found:?}");
    assert!(found.error > 0.0 && found.error < truth / 10.0, "{found:?}");
}

#[test]
fn what_does_not_outweigh_what_died_is_steady() {
    let view = WindowView {
        old_then: born(1_000),
        old_now: born(840),
        ..leak()
    };
    assert_eq!(verdict(&view), Verdict::Steady);
    // Twice the growth is sure.
    let view = WindowView {
        middle: born(200),
        young: born(200),
        ..view
    };
    assert_eq!(verdict(&view), Verdict::Leak);
}

#[test]
fn where_old_instances_die_it_is_turnover_however_much_comes() {
    let view = WindowView {
        old_then: born(100),
        old_now: born(40),
        middle: born(1_000),
        young: born(1_000),
        ..leak()
    };
    let found = view.judge();
    assert_eq!(found.verdict, Verdict::Turnover);
    assert!(found.old_dies && !found.still_leaks);
    // Of so few it is not sure how many die.
    let view = WindowView {
        old_then: born(20),
        old_now: born(12),
        ..view
    };
    assert_eq!(verdict(&view), Verdict::Undecided);
}

#[test]
fn what_comes_more_slowly_was_filled_at_the_start() {
    let view = WindowView {
        middle: born(200),
        young: born(60),
        ..leak()
    };
    let found = view.judge();
    assert_eq!(found.verdict, Verdict::FilledAtStart);
    assert!(!found.still_leaks);
}

#[test]
fn what_comes_in_one_lump_is_lumpy_and_without_parts_nobody_knows() {
    let mut view = leak();
    for (index, part) in view.parts.iter_mut().enumerate() {
        part.born = born(if index == 2 { 200 } else { 0 });
    }
    assert_eq!(verdict(&view), Verdict::Lumpy);
    view.parts.truncate(FEWEST_PARTS - 1);
    assert_eq!(verdict(&view), Verdict::Undecided);
}

#[test]
fn what_came_lately_must_outweigh_what_died_meanwhile() {
    let view = WindowView {
        old_then: born(1_000),
        old_now: born(900),
        middle: born(150),
        young: born(110),
        ..leak()
    };
    assert_eq!(verdict(&view), Verdict::Undecided);
}

#[test]
fn of_too_few_samples_nothing_is_said() {
    let view = WindowView {
        old_then: born(FEWEST_OLD - 1),
        old_now: born(FEWEST_OLD - 1),
        ..leak()
    };
    assert_eq!(verdict(&view), Verdict::Undecided);
    assert_eq!(verdict(&WindowView::default()), Verdict::Steady);
}
