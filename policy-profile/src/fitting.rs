//! Makes parts fit into their whole.
//!
//! An account, its classes and its stacks are summed in passes that are not of the same instant, and stacks are
//! estimates of their own. A profile whose parts exceeded the account would contradict it.

use super::Values;

/// Makes `parts` fit into `whole` and returns what of it they leave. For each of the four values: if the parts are
/// less than the whole, they stay as they are; if they are more, they are scaled down so that their sum is the whole,
/// exactly.
pub fn fit(whole: Values, parts: &mut [Values]) -> Values {
    let whole = whole.to_array();
    let mut rest = [0; 4];
    for (at, (&whole, rest)) in whole.iter().zip(&mut rest).enumerate() {
        let sum: u128 = (parts.iter())
            .map(|part| u128::from(part.to_array()[at]))
            .sum();
        if sum <= u128::from(whole) {
            // It is at most the whole.
            *rest = whole - sum as u64;
            continue;
        }
        // Rounding the running sums, not the parts, keeps the last of them exact.
        let scaled = |before: u128| (before as f64 / sum as f64 * whole as f64) as u64;
        let (mut before, mut given) = (0u128, 0u64);
        let last = parts.len() - 1;
        for (number, part) in parts.iter_mut().enumerate() {
            let mut values = part.to_array();
            before += u128::from(values[at]);
            let upto = match number == last {
                true => whole,
                false => scaled(before).clamp(given, whole),
            };
            values[at] = upto - given;
            given = upto;
            *part = Values::from_array(values);
        }
    }
    Values::from_array(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn of(bytes: u64) -> Values {
        Values {
            live_bytes: bytes,
            ..Values::default()
        }
    }

    #[test]
    fn parts_that_fit_stay_and_leave_the_rest() {
        let mut parts = [of(10), of(20)];
        assert_eq!(fit(of(35), &mut parts), of(5));
        assert_eq!(parts, [of(10), of(20)]);
        assert_eq!(fit(of(35), &mut []), of(35));
    }

    #[test]
    fn parts_that_exceed_the_whole_are_scaled_to_it() {
        let mut parts = [of(30), of(10), of(0)];
        assert_eq!(fit(of(20), &mut parts), of(0));
        assert_eq!(parts, [of(15), of(5), of(0)]);
        assert_eq!(fit(of(0), &mut parts), of(0));
        assert_eq!(parts, [of(0), of(0), of(0)]);
    }

    fn value() -> impl Strategy<Value = u64> {
        prop_oneof![0..100u64, 0..1u64 << 40, any::<u64>()]
    }

    proptest! {
        #[test]
        fn parts_and_rest_are_the_whole_to_the_byte(
            whole in [value(), value(), value(), value()],
            parts in vec([value(), value(), value(), value()], 0..20),
        ) {
            let before: Vec<Values> = parts.iter().copied().map(Values::from_array).collect();
            let mut parts = before.clone();
            let rest = fit(Values::from_array(whole), &mut parts).to_array();
            for at in 0..4 {
                let sum: u128 = parts.iter().map(|part| u128::from(part.to_array()[at])).sum();
                prop_assert_eq!(sum + u128::from(rest[at]), u128::from(whole[at]));
            }
            let unchanged = before.iter().zip(&parts).all(|(a, b)| a == b);
            prop_assert!(unchanged || rest.contains(&0));
        }
    }
}
