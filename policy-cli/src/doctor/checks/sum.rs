//! The check of the figures by themselves: whether the accounts sum up to more than the heap holds.

use policy_report::catalog;

use super::super::finding::{Finding, findings};
use super::super::inputs::Inputs;
use heapwarden_terminal::size;

/// The accounts hold more than the heap has. The agent judged it, twice in a row and beyond three standard errors.
pub(super) fn exceeds_the_heap(inputs: &Inputs) -> Vec<Finding> {
    let sum = inputs.accounts.iter().filter_map(|all| all.heap.accounts);
    sum.filter(|sum| sum.exceeds)
        .map(|sum| {
            Finding::new(
                &findings::ACCOUNTS_EXCEED_HEAP,
                format!(
                    "the figures are wrong: the accounts sum up to {:.2} times what the heap has in use; no account is refused \
                     until they fit again, and all standard errors are stated {:.1} times as large",
                    sum.over_heap_ratio, sum.error_factor
                ),
                format!(
                    "{} = {:.3}: {} ± {} where the heap had {} after a collection of all memory",
                    catalog::ACCOUNTS_OVER_HEAP_RATIO.name,
                    sum.over_heap_ratio,
                    size::shown(sum.live_bytes as f64),
                    size::shown(sum.standard_error_bytes as f64),
                    size::shown(sum.heap_bytes as f64)
                ),
                remedy(inputs),
            )
        })
        .collect()
}

fn remedy(inputs: &Inputs) -> &'static str {
    let capabilities = (inputs.metrics).by_label(catalog::CAPABILITY_ENABLED.name, "capability");
    let mut refill = capabilities.filter(|(name, _)| *name == "tlab_refill");
    if refill.any(|(_, value)| value == 0.0) {
        "start the JVM with -XX:TLABRefillWasteFraction=1, or use JDK 25: before it the JVM samples arrays of 0.5 to 4 KiB too \
         often (the finding buffers-not-refilled says why the agent has not changed that)"
    } else {
        "if the program makes a thread for each request, run requests on a pool or on virtual threads, or set a smaller \
         [sampling] interval; if that is not it, report it with the output of heapwarden status --json"
    }
}

#[cfg(test)]
mod tests {
    use policy_report::AccountsSum;

    use super::super::super::finding::Severity;
    use super::super::test_inputs::agent;
    use super::*;

    fn told(metrics: &str, exceeds: bool) -> Vec<Finding> {
        let mut inputs = agent(metrics, vec![]);
        inputs.accounts.as_mut().unwrap().heap.accounts = Some(AccountsSum {
            live_bytes: 210 << 20,
            standard_error_bytes: 5 << 20,
            heap_bytes: 100 << 20,
            over_heap_ratio: 2.1,
            exceeds,
            error_factor: 22.0,
        });
        exceeds_the_heap(&inputs)
    }

    #[test]
    fn a_sum_beyond_the_heap_is_an_error_and_told_first() {
        assert_eq!(told("", false), []);
        assert_eq!(
            exceeds_the_heap(&agent("", vec![])),
            [],
            "an agent of before"
        );
        let found = told("heapwarden_samples_total 9\n", true).remove(0);
        assert_eq!(found.severity, Severity::Error);
        assert!(found.sentence.contains("2.10 times"), "{found:?}");
        assert!(found.sentence.contains("22.0 times as large"), "{found:?}");
        assert!(
            found
                .evidence
                .contains("210.0 MiB ± 5.0 MiB where the heap had 100.0 MiB")
                || found
                    .evidence
                    .contains("210 MiB ± 5.0 MiB where the heap had 100 MiB"),
            "{found:?}"
        );
        assert!(
            found.remedy.contains("thread for each request"),
            "{found:?}"
        );
    }

    #[test]
    fn the_remedy_is_the_jvms_flag_where_it_is_missing() {
        let of = |value| {
            let metrics =
                format!("heapwarden_capability_enabled{{capability=\"tlab_refill\"}} {value}\n");
            told(&metrics, true).remove(0).remedy
        };
        assert!(of(0).contains("-XX:TLABRefillWasteFraction=1"));
        assert!(!of(1).contains("-XX:TLABRefillWasteFraction=1"));
    }
}
