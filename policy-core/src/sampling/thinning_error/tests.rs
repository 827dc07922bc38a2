//! The pure rules: what a drawn array adds, what stays of it, what live bytes make of it.

use proptest::prelude::*;

use super::super::weight::charge;
use super::*;

const MIB: u64 = 1 << 20;

fn sums(arrays: &[Drawn]) -> Thinned {
    let mut sums = Thinned::default();
    for array in arrays {
        sums.drawn += array.variance;
        sums.weighted += array.weighted;
    }
    sums
}

proptest! {
    /// The mean over the draw is the variance of the charge, and so is that of the usual rule.
    #[test]
    fn a_drawn_array_adds_the_variance_of_its_charge(
        size in MIB / 2..64 * MIB,
        drawn in 4 << 10..64 * MIB,
        wider in 1u64..64,
    ) {
        let wider = drawn * wider;
        let p = |interval: u64| 1.0 - (-(size as f64) / interval as f64).exp();
        let array = Drawn::of(size, drawn, wider);
        let usual = charge(size, wider);
        let expected = p(wider) * usual.variance as f64;
        let tolerance = 1e-6 * expected + 1.0;
        prop_assert!((p(drawn) * array.variance - expected).abs() <= tolerance);
        prop_assert!((p(drawn) * array.bytes / size as f64 - 1.0).abs() < 1e-9);
    }
}

#[test]
fn nothing_is_taken_off_where_nothing_kept_has_died() {
    let array = Drawn::of(MIB, 64 << 10, 16 * MIB);
    let usual = charge(MIB, 16 * MIB).variance;
    let mut of_two = sums(&[array, array]);
    assert_eq!(of_two.share_left(), 1.0, "none was kept");
    of_two.kept = usual as f64;
    of_two.held = usual as f64;
    assert_eq!(of_two.share_left(), 1.0, "it lives");
    // The variance that its record states is not counted twice.
    let others = 1000;
    assert_eq!(
        of_two.charged_variance(usual + others, &Found::default()),
        others + of_two.drawn as u64
    );
    assert_eq!(
        Thinned::default().charged_variance(77, &Found::default()),
        77
    );
}

#[test]
fn as_much_as_can_go_unseen_stays_where_all_kept_have_died() {
    let array = Drawn::of(MIB, 64 << 10, 16 * MIB);
    let usual = charge(MIB, 16 * MIB).variance as f64;
    let mut garbage = sums(&vec![array; 16_000]);
    garbage.kept = 1000.0 * usual;
    let left = garbage.variance();
    assert!((left / (2.0 * usual) - 1.0).abs() < 0.05, "{left}");
}

#[test]
fn what_is_undecided_may_be_missing_from_live_bytes_within_the_room_of_the_heap() {
    let array = Drawn::of(MIB, 64 << 10, 16 * MIB);
    let sums = Thinned {
        passed_bytes: 300.0 * MIB as f64,
        ..sums(&vec![array; 300])
    };
    let mut found = Found {
        is_settled: true,
        ..Found::default()
    };
    let error = |found: &Found| (sums.live_variance(0, found) as f64 * UNIT).sqrt() / MIB as f64;
    assert!((error(&found) - 300.0 / 3.0f64.sqrt()).abs() < 0.1);
    found.room_bytes = Some(30 * MIB);
    assert!((error(&found) - 30.0 / 3.0f64.sqrt()).abs() < 0.1);
    // A moment after the decision the sums do not know of it.
    found = Found::default();
    assert!((error(&found) - (sums.drawn * UNIT).sqrt() / MIB as f64).abs() < 0.1);
    found.room_bytes = Some(0);
    assert_eq!(error(&found), 0.0, "there is no room for anything unseen");
}

#[test]
fn the_error_of_what_died_is_no_more_than_what_the_heap_holds_beside_the_accounts() {
    let array = Drawn::of(4 * MIB, 64 << 10, 64 * MIB);
    let mut died = sums(&vec![array; 100]);
    died.kept = 6.0 * charge(4 * MIB, 64 * MIB).variance as f64;
    died.drawn *= died.share_left();
    died.kept = 0.0;
    died.decided = died.drawn;
    let error = |died: &Thinned, found: &Found| {
        (died.charged_variance(0, found) as f64 * UNIT).sqrt() / MIB as f64
    };
    let mut found = Found {
        is_settled: true,
        ..Found::default()
    };
    assert!(error(&died, &found) > 50.0, "{}", error(&died, &found));
    found.room_bytes = Some(3 * MIB);
    assert!((error(&died, &found) - 3.0).abs() < 0.1);
    // Arrays drawn since are charged and undecided: no collection has made room for them.
    let before = died;
    died.drawn += 10.0 * array.variance;
    let since = (10.0 * array.variance * UNIT).sqrt() / MIB as f64;
    let both = (since * since + 9.0).sqrt();
    assert!((error(&died, &found) - both).abs() < 0.1);
    // Nor is anything bounded before the sums have followed the decision.
    found.is_settled = false;
    assert!(error(&before, &found) > 50.0);
}
