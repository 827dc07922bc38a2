//! For what enforcement makes an account wait.

use super::{Account, Evidence, State};
use heapwarden_terminal::table::amount;

/// From this sum on, waits are worth a line: the agent logs them from then on, too.
pub const NOTICEABLE_MS: u64 = 2_000;

/// Why threads and requests of the account wait now, if they do: its state tells. `None`: nothing holds it.
pub fn wait_reason(account: &Account, evidence: &Evidence) -> Option<String> {
    match account.state {
        State::Over => Some("it is over its limit and goes on allocating".to_owned()),
        State::Suspect => {
            let seconds = evidence
                .budget_used_up_seconds
                .filter(|&seconds| seconds > 0.0);
            let budget = seconds.map_or_else(String::new, |seconds| {
                // Saturates.
                let left = amount::wait((seconds * 1e3) as u64);
                format!(", and the evidence budget is used up for another {left}")
            });
            Some(format!("evidence about it is awaited{budget}"))
        }
        State::Open | State::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_state_and_the_budget() {
        let of = |state, budget_used_up_seconds| {
            let account = Account {
                state,
                ..Account::default()
            };
            wait_reason(
                &account,
                &Evidence {
                    budget_used_up_seconds,
                },
            )
        };
        assert_eq!(of(State::Open, Some(9.0)), None);
        assert_eq!(
            of(State::Suspect, None).unwrap(),
            "evidence about it is awaited"
        );
        assert_eq!(
            of(State::Suspect, Some(12.3)).unwrap(),
            "evidence about it is awaited, and the evidence budget is used up for another 12 s"
        );
        assert!(
            of(State::Over, None)
                .unwrap()
                .contains("goes on allocating")
        );
        assert!(of(State::Suspect, Some(f64::INFINITY)).is_some());
    }
}
