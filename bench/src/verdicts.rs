//! Whether aims were met, and the list of it that closes each report.

use serde::Serialize;

/// The answer that a measurement gives to an aim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    /// The aim is met.
    Met,
    /// It is not.
    Missed,
    /// The measurement is too uncertain to say.
    CannotTell,
}

impl Outcome {
    /// How it is called.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Outcome::Met => "met",
            Outcome::Missed => "MISSED",
            Outcome::CannotTell => "cannot tell",
        }
    }

    /// Of several that must all be met: missed if one is, and met if all are.
    pub(crate) fn of_all(outcomes: impl IntoIterator<Item = Outcome>) -> Outcome {
        let mut all = Outcome::Met;
        for outcome in outcomes {
            match outcome {
                Outcome::Missed => return Outcome::Missed,
                Outcome::CannotTell => all = Outcome::CannotTell,
                Outcome::Met => {}
            }
        }
        all
    }
}

/// How an aim was met.
#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    pub(crate) aim: String,
    pub(crate) outcome: Outcome,
    pub(crate) measured: String,
}

impl Verdict {
    /// Of an aim whose figure is taken as it is, without an interval.
    pub(crate) fn new(aim: String, met: bool, measured: String) -> Verdict {
        let outcome = if met { Outcome::Met } else { Outcome::Missed };
        Verdict {
            aim,
            outcome,
            measured,
        }
    }

    #[cfg(test)]
    pub(crate) fn met(&self) -> bool {
        self.outcome == Outcome::Met
    }
}

/// The verdicts as a Markdown section.
pub(crate) fn text(verdicts: &[Verdict]) -> String {
    let mut text = "### Aims\n\n".to_owned();
    for verdict in verdicts {
        let word = verdict.outcome.word();
        text.push_str(&format!(
            "- {word}: {}: {}\n",
            verdict.aim, verdict.measured
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_met_only_if_each_is() {
        use Outcome::{CannotTell, Met, Missed};
        assert_eq!(Outcome::of_all([Met, Met]), Met);
        assert_eq!(Outcome::of_all([Met, CannotTell]), CannotTell);
        assert_eq!(Outcome::of_all([CannotTell, Missed, Met]), Missed);
    }

    #[test]
    fn a_verdict_is_one_line() {
        let verdict = Verdict::new("fast".to_owned(), false, "2 s".to_owned());
        assert_eq!(text(&[verdict]), "### Aims\n\n- MISSED: fast: 2 s\n");
    }
}
