//! Checks of what the agent suspects to leak. One finding an account.

use std::collections::BTreeMap;

use super::super::finding::{Finding, findings};
use super::super::inputs::Inputs;
use crate::leaks::{at_least, forecast};
use heapwarden_client::live::Suspect;
use heapwarden_terminal::table::amount;

/// So many classes of an account are named.
const SHOWN_CLASSES: usize = 3;

/// Accounts with classes that are suspected to leak.
pub(super) fn suspected(inputs: &Inputs) -> Vec<Finding> {
    let Some(leaks) = &inputs.leaks else {
        return Vec::new();
    };
    let mut by_account: BTreeMap<&str, Vec<&Suspect>> = BTreeMap::new();
    for suspect in &leaks.suspects {
        by_account
            .entry(&suspect.account)
            .or_default()
            .push(suspect);
    }
    by_account
        .into_iter()
        .map(|(account, suspects)| finding(account, &suspects))
        .collect()
}

fn finding(account: &str, suspects: &[&Suspect]) -> Finding {
    let shown: Vec<String> = suspects
        .iter()
        .take(SHOWN_CLASSES)
        .map(|one| growth(one))
        .collect();
    let more = match suspects.len().saturating_sub(SHOWN_CLASSES) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Finding::of_account(
        &findings::LEAK_SUSPECTED,
        account,
        format!("{}{more}", shown.join(", ")),
    )
}

/// `com.acme.Session grows by 98 ± 6 KiB/s over 10 min, limit full in 3 h to 5 h`
fn growth(suspect: &Suspect) -> String {
    let rate = amount::estimate(
        // Saturates; what is not a number is 0.
        suspect.growth_bytes_per_second as u64,
        suspect.growth_standard_error as u64,
    );
    let full = suspect.exhausts.as_ref();
    let full = full.map_or_else(String::new, |it| format!(", {}", forecast(it)));
    let window = at_least(suspect.window_seconds);
    format!("{} grows by {rate}/s over {window}{full}", suspect.class)
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::test_inputs::agent;
    use super::*;

    fn inputs(suspects: &str) -> Inputs {
        let text = format!(
            r#"{{"at":"","horizon_seconds":600,"undecided":null,"suspects":[{suspects}],"growing":[]}}"#
        );
        let mut inputs = agent("", Vec::new());
        inputs.leaks = Some(serde_json::from_str(&text).unwrap());
        inputs
    }

    #[test]
    fn each_account_has_one_finding_with_its_fastest_classes() {
        let one = |account: &str, class: &str| {
            format!(
                r#"{{"account":"{account}","class":"{class}","growth_bytes_per_second":102400,
                "growth_standard_error":2048,"window_seconds":600,
                "exhausts":{{"what":"heap","earliest_seconds":32400}}}}"#
            )
        };
        let suspects = [
            one("shop", "a.B"),
            one("cart", "c.D"),
            one("shop", "e.F"),
            one("shop", "g.H"),
            one("shop", "i.J"),
        ];
        let found = suspected(&inputs(&suspects.join(",")));
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].sentence, "account cart is suspected to leak");
        assert_eq!(
            found[0].evidence,
            "c.D grows by 100.0 ± 2.0 KiB/s over 10 min, heap not full before 9 h"
        );
        assert!(
            found[1].evidence.starts_with("a.B grows")
                && found[1].evidence.ends_with(", and 1 more")
        );
        assert!(found.iter().all(|one| one.severity == Severity::Warning));
    }

    #[test]
    fn no_suspects_and_an_older_agent_are_no_findings() {
        assert!(suspected(&inputs("")).is_empty());
        assert!(suspected(&agent("", Vec::new())).is_empty());
    }
}
