//! Account against truth, in standard errors.
//!
//! The comparison is of what was *added* between two readings, each after a full collection. An
//! application's account also holds what the container made for it (its context, its classes'
//! static state), which the application does not know of and which is there in both readings; in
//! the difference it cancels.
//!
//! **The standard error of the difference.** Let the first reading have standard error s₁ and the
//! second s₂. Each object is sampled once, when it is allocated, so an object that is there at both
//! readings adds the same to both and nothing to the difference. Only objects there at one reading
//! alone count: Var = Var(only in the second) + Var(only in the first). The demo has the
//! applications let go of everything before the first reading: what that reading holds is the
//! container's and stays, so Var = s₂² − s₁². Where some of it has gone after all, the true
//! variance is larger, up to s₁² + s₂². So √(s₂² − s₁²) is never too large: it can make the
//! comparison stricter than it should be, never more lenient.

use std::fmt;

/// How many standard errors an account may be away from the truth.
pub(crate) const WITHIN: f64 = 3.0;

/// An estimate beside the truth at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Point {
    /// Live bytes of the account.
    pub(crate) live_bytes: f64,
    /// Its standard error.
    pub(crate) standard_error_bytes: f64,
    /// The bytes that the application says it holds.
    pub(crate) truth_bytes: f64,
}

/// An account at both readings.
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    /// The account.
    pub(crate) name: String,
    /// After the warm-up.
    pub(crate) before: Point,
    /// After the load.
    pub(crate) after: Point,
}

impl Comparison {
    fn added_bytes(&self) -> f64 {
        self.after.live_bytes - self.before.live_bytes
    }

    fn truly_added_bytes(&self) -> f64 {
        self.after.truth_bytes - self.before.truth_bytes
    }

    fn error_bytes(&self) -> f64 {
        self.added_bytes() - self.truly_added_bytes()
    }

    /// Of the difference; see the module's documentation.
    fn standard_error_bytes(&self) -> f64 {
        let (first, second) = (
            self.before.standard_error_bytes,
            self.after.standard_error_bytes,
        );
        (second * second - first * first).max(0.0).sqrt()
    }

    /// The error of the difference, in standard errors.
    fn distance(&self) -> f64 {
        distance(self.error_bytes(), self.standard_error_bytes())
    }

    /// The error of the second reading by itself, in its standard errors. Here the container's
    /// share counts as error.
    fn direct_distance(&self) -> f64 {
        let error = self.after.live_bytes - self.after.truth_bytes;
        distance(error, self.after.standard_error_bytes)
    }

    fn is_within(&self, standard_errors: f64) -> bool {
        // Nothing added proves nothing, however well it agrees.
        self.truly_added_bytes() > 0.0 && self.distance() <= standard_errors
    }
}

fn distance(error: f64, standard_error: f64) -> f64 {
    if error == 0.0 {
        return 0.0;
    }
    error.abs() / standard_error
}

/// All accounts, and how far each may be away.
pub(crate) struct Verdict {
    /// In the order shown.
    pub(crate) comparisons: Vec<Comparison>,
    /// In standard errors.
    pub(crate) within: f64,
}

/// Accounts were too far from the truth.
#[derive(Debug)]
pub(crate) struct TooFar {
    names: Vec<String>,
    within: f64,
}

impl fmt::Display for TooFar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "not within {} standard errors of the truth: {}",
            self.within,
            self.names.join(", ")
        )
    }
}

impl std::error::Error for TooFar {}

impl Verdict {
    /// An error that names the accounts too far from the truth.
    pub(crate) fn check(&self) -> Result<(), TooFar> {
        let names: Vec<String> = self
            .comparisons
            .iter()
            .filter(|comparison| !comparison.is_within(self.within))
            .map(|comparison| comparison.name.trim().to_owned())
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        Err(TooFar {
            names,
            within: self.within,
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  {:<10}{:>8}{:>8}{:>8}{:>8}{:>8}   {:<11}{:>10}",
            "MiB", "live", "added", "truth", "error", "1 s.e.", "off by", "directly"
        )?;
        let mib = |bytes: f64| bytes / f64::from(1 << 20);
        for each in &self.comparisons {
            let mark = if each.is_within(self.within) {
                "✓"
            } else {
                "✗"
            };
            writeln!(
                f,
                "  {:<10}{:>8.1}{:>8.1}{:>8.1}{:>+8.2}{:>8.2}   {:<11}{:>10}",
                each.name,
                mib(each.after.live_bytes),
                mib(each.added_bytes()),
                mib(each.truly_added_bytes()),
                mib(each.error_bytes()),
                mib(each.standard_error_bytes()),
                format!("{:.1} s.e. {mark}", each.distance()),
                format!("{:.1} s.e.", each.direct_distance()),
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(before: (f64, f64, f64), after: (f64, f64, f64)) -> Comparison {
        let point = |(live_bytes, standard_error_bytes, truth_bytes)| Point {
            live_bytes,
            standard_error_bytes,
            truth_bytes,
        };
        Comparison {
            name: "it".into(),
            before: point(before),
            after: point(after),
        }
    }

    fn passes(comparison: Comparison) -> bool {
        Verdict {
            comparisons: vec![comparison],
            within: WITHIN,
        }
        .check()
        .is_ok()
    }

    #[test]
    fn the_container_s_share_cancels() {
        let it = comparison((50.0, 0.0, 1.0), (150.0, 10.0, 101.0));
        assert_eq!(it.error_bytes(), 0.0);
        assert_eq!(it.distance(), 0.0);
        assert_eq!(it.direct_distance(), 4.9);
        assert!(passes(it));
    }

    #[test]
    fn the_standard_error_is_that_of_what_came_between() {
        let it = comparison((0.0, 3.0, 0.0), (110.0, 5.0, 100.0));
        assert_eq!(it.standard_error_bytes(), 4.0);
        assert_eq!(it.distance(), 2.5);
    }

    #[test]
    fn three_standard_errors_are_the_bound_on_both_sides() {
        for (live, good) in [(130.0, true), (130.1, false), (70.0, true), (69.9, false)] {
            assert_eq!(
                passes(comparison((0.0, 0.0, 0.0), (live, 10.0, 100.0))),
                good,
                "{live}"
            );
        }
    }

    #[test]
    fn an_error_without_a_standard_error_is_too_far() {
        assert!(!passes(comparison((0.0, 0.0, 0.0), (101.0, 0.0, 100.0))));
        assert!(passes(comparison((0.0, 0.0, 0.0), (100.0, 0.0, 100.0))));
    }

    #[test]
    fn nothing_added_is_no_success() {
        assert!(!passes(comparison((5.0, 1.0, 5.0), (5.0, 1.0, 5.0))));
    }

    #[test]
    fn the_accounts_too_far_are_named() {
        let mut bad = comparison((0.0, 0.0, 0.0), (500.0, 10.0, 100.0));
        bad.name = "bad".into();
        let good = comparison((0.0, 0.0, 0.0), (100.0, 10.0, 100.0));
        let verdict = Verdict {
            comparisons: vec![good, bad],
            within: WITHIN,
        };
        let error = verdict.check().unwrap_err();
        assert_eq!(
            error.to_string(),
            "not within 3 standard errors of the truth: bad"
        );
        assert!(verdict.to_string().contains("40.0 s.e. ✗"), "{verdict}");
    }
}
