//! Evenly spaced times of evaluation.

/// Most points that Prometheus gives of one series in one answer.
pub(super) const MAX_POINTS: u64 = 11_000;

/// The times `start, start + step, …`, `points` of them, in seconds since 1970.
///
/// Starts are multiples of the step, so that a repeated or divided query is evaluated at the same
/// times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    start_seconds: i64,
    step_seconds: u64,
    points: u64,
}

impl Span {
    /// The times that cover `range_seconds` up to `end_seconds`; at least one. A step of 0
    /// counts as one second.
    pub fn covering(end_seconds: i64, range_seconds: u64, step_seconds: u64) -> Span {
        let step_seconds = step_seconds.clamp(1, i64::MAX as u64);
        let step = step_seconds as i64;
        let points = range_seconds.div_ceil(step_seconds).max(1);
        let last = end_seconds.div_euclid(step).saturating_mul(step);
        let length = i64::try_from(points - 1).map_or(i64::MAX, |n| n.saturating_mul(step));
        Span {
            start_seconds: last.saturating_sub(length),
            step_seconds,
            points,
        }
    }

    /// The first time.
    pub fn start_seconds(self) -> i64 {
        self.start_seconds
    }

    /// The last time.
    pub fn end_seconds(self) -> i64 {
        self.time(self.points - 1)
    }

    /// Between two times.
    pub fn step_seconds(self) -> u64 {
        self.step_seconds
    }

    /// How many times.
    pub fn points(self) -> usize {
        usize::try_from(self.points).unwrap_or(usize::MAX)
    }

    /// From before the first time, by a step, to the last.
    pub fn seconds(self) -> u64 {
        self.points.saturating_mul(self.step_seconds)
    }

    /// The time with this number.
    pub fn time(self, index: u64) -> i64 {
        let offset = i64::try_from(index.saturating_mul(self.step_seconds)).unwrap_or(i64::MAX);
        self.start_seconds.saturating_add(offset)
    }

    /// The number of the time closest to `seconds`, if it lies within half a step of one.
    pub fn index(self, seconds: f64) -> Option<usize> {
        let index = ((seconds - self.start_seconds as f64) / self.step_seconds as f64).round();
        (index >= 0.0 && index < self.points as f64).then_some(index as usize)
    }

    /// In pieces of at most `most` points (at least one), in order, without overlap.
    pub fn pieces(self, most: u64) -> impl Iterator<Item = Span> {
        let most = most.max(1);
        (0..self.points.div_ceil(most)).map(move |piece| Span {
            start_seconds: self.time(piece * most),
            step_seconds: self.step_seconds,
            points: most.min(self.points - piece * most),
        })
    }

    /// Both halves; `None` where there is but one point.
    pub fn halves(self) -> Option<[Span; 2]> {
        let mut pieces = (self.points > 1).then(|| self.pieces(self.points.div_ceil(2)))?;
        Some([pieces.next()?, pieces.next()?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_week_in_five_minutes() {
        let span = Span::covering(1_700_000_123, 7 * 86_400, 300);
        assert_eq!(span.points(), 2016);
        assert_eq!(span.end_seconds() % 300, 0);
        assert!(span.end_seconds() <= 1_700_000_123);
        assert_eq!(span.end_seconds() - span.start_seconds(), 2015 * 300);
    }

    proptest! {
        #[test]
        fn pieces_are_the_whole(
            end in 0_i64..4_000_000_000, range in 1_u64..10_000_000, step in 1_u64..100_000,
            most in 1_u64..20_000,
        ) {
            let span = Span::covering(end, range, step);
            prop_assert!(span.seconds() >= range);
            let mut next = span.start_seconds();
            let mut points = 0;
            for piece in span.pieces(most) {
                prop_assert_eq!(piece.start_seconds(), next);
                prop_assert!((1..=most).contains(&(piece.points() as u64)));
                points += piece.points();
                next = piece.end_seconds() + step as i64;
            }
            prop_assert_eq!(points, span.points());
            prop_assert_eq!(next, span.end_seconds() + step as i64);
            let last = span.points() - 1;
            prop_assert_eq!(span.index(span.end_seconds() as f64), Some(last));
            if let Some([first, second]) = span.halves() {
                prop_assert_eq!(first.points() + second.points(), span.points());
            }
        }

        #[test]
        fn absurd_numbers_do_not_panic(end: i64, range: u64, step: u64, seconds: f64) {
            let span = Span::covering(end, range, step);
            let _ = (span.index(seconds), span.end_seconds(), span.seconds(), span.halves());
        }
    }
}
