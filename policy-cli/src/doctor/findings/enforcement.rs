//! Whether limits can be, and are, enforced.

use super::super::finding::{Finding, Severity};
use super::super::picture::Picture;
use crate::live::State;
use crate::process::{Collector, printable};

/// Share of the evidence budget from which it is taken for spent.
const SPENT: f64 = 0.9;
/// Youngest agent whose budget is judged, in seconds: one collection weighs much at first.
const YOUNGEST_SECONDS: f64 = 60.0;

/// Flags that keep the agent from proving anything.
pub(super) fn cannot_be_proved(picture: &Picture) -> Vec<Finding> {
    let Some(facts) = &picture.facts else {
        return Vec::new();
    };
    let keeps_classes =
        facts.arguments.has("-Xnoclassgc") || facts.arguments.flag("ClassUnloading") == Some(false);
    // Shenandoah with generations needs it as well; its threads do not tell it from the other.
    let needs_classes = matches!(
        facts.collector,
        None | Some(Collector::Serial | Collector::Parallel | Collector::Shenandoah)
    );
    if !keeps_classes || !needs_classes || picture.metrics.is_empty() {
        return Vec::new();
    }
    let collector = facts.collector.map_or("unknown", Collector::as_str);
    vec![Finding::new(
        Severity::Error,
        "nothing-provable",
        "classes are never unloaded, so on this collector nothing can be proved to be held and nothing is refused \
         (Shenandoah without generations is not concerned)",
        format!("-Xnoclassgc or -XX:-ClassUnloading, collector {collector}"),
        "start the JVM without that flag, or with G1 or ZGC",
    )]
}

/// Collections that the agent asked for have used up their share.
pub(super) fn budget_spent(picture: &Picture) -> Vec<Finding> {
    let value = |name| picture.metrics.value(name);
    let Some(budget) = value("heapwarden_evidence_budget_ratio").filter(|budget| *budget > 0.0)
    else {
        return Vec::new();
    };
    // The first policy was accepted when the agent was loaded; after a reload its age is not known.
    let generation = value("heapwarden_policy_generation");
    let since = value("heapwarden_policy_last_reload_success_timestamp_seconds");
    let (Some(1.0), Some(since)) = (generation, since) else {
        return Vec::new();
    };
    let age = picture.now_seconds - since;
    let spent: f64 = picture
        .metrics
        .by_label("heapwarden_evidence_seconds_total", "kind")
        .map(|(_, seconds)| seconds)
        .sum();
    let share = spent / age;
    if age < YOUNGEST_SECONDS || share < SPENT * budget {
        return Vec::new();
    }
    vec![Finding::new(
        Severity::Warning,
        "evidence-budget-spent",
        "collections for evidence have used up their budget: verdicts come late",
        format!(
            "{spent:.1} s of collections in {age:.0} s, {:.2} % of the time; budget {:.2} %",
            100.0 * share,
            100.0 * budget
        ),
        "raise [enforcement] evidence-budget, or the limit of the account that is at it all the time",
    )]
}

/// Refusals that were due where a throw was not safe.
pub(super) fn deferred(picture: &Picture) -> Vec<Finding> {
    const DEFERRED: &str = "heapwarden_account_deferred_refusals_total";
    let rows = picture.metrics.by_labels(DEFERRED, ["account", "reason"]);
    rows.filter(|(_, reason, count)| *count > 0.0 && *reason != "grace")
        .map(|(name, reason, count)| {
            let accounts = picture.accounts.as_ref();
            let account = accounts.and_then(|all| all.accounts.iter().find(|one| one.name == name));
            let refused = account.map_or(0, |one| one.refusals_total + one.would_refuse_total);
            let is_over = account.is_some_and(|one| one.state == State::Over);
            // Over, and never refused: it grows on.
            let severity = match is_over && refused == 0 {
                true => Severity::Warning,
                false => Severity::Note,
            };
            Finding::new(
                severity,
                "refusals-deferred",
                format!(
                    "refusals of account {} were put off: {}",
                    printable(name),
                    meaning(reason)
                ),
                format!(
                    "reason {}: {count} put off, {refused} refused (or would be)",
                    printable(reason)
                ),
                remedy(reason),
            )
        })
        .collect()
}

/// What a reason means, in half a sentence.
fn meaning(reason: &str) -> &'static str {
    match reason {
        "masked" => "the program asked not to be interrupted",
        "unresolved" => "a method on the stack was not known yet",
        "stack" => "the stack is too deep, or could not be walked",
        "shutdown" => "the VM is going down",
        "no-own-frame" => "none of the account's own code is on the stack",
        "clinit" => "a class was being initialised",
        "class-loading" => "a class was being loaded or defined",
        "linkage" => "a call site or class was being linked",
        "timer" => "one error would end a timer or a periodic task",
        "locks" => "a lock was being taken or given back",
        "references" => "a cleaner or finalizer runs",
        "logging" => "a logger runs",
        "uncaught" => "a thread's end was being handled",
        "completion" => "a future was being completed, and others wait for it",
        "throwable" => "an exception was being made",
        "serialization" => "a class was being described for serialization",
        "native" => "native code is on the way, which may not look for an error",
        "jdk" => "JDK code is on the way that is not known to keep its invariants",
        "container" => "the container's code, or nobody's, is on the way",
        "foreign" => "another account's code is on the way",
        "handler" => "a catch or finally block runs",
        "policy" => "the policy's never-interrupt says so",
        _ => "for a reason that this command does not know",
    }
}

fn remedy(reason: &str) -> &'static str {
    match reason {
        "jdk" | "container" => {
            "where that code bears an error, list its packages in the account's interrupt-through"
        }
        "no-own-frame" => {
            "give the account packages, or list the code that allocates for it in its interrupt-through"
        }
        "foreign" => "if the other account is a library, give it charge = \"caller\"",
        "policy" => "narrow the account's never-interrupt",
        "timer" => {
            "let the task hand its work to a pool's thread, where a refusal ends the request alone"
        }
        "clinit" | "handler" => {
            "move the large allocation out of the static initialiser or the handler"
        }
        "unresolved" => {
            "nothing: the agent looks such methods up, and the next sample finds them known"
        }
        "stack" => "look for endless recursion; stacks of that depth are not judged",
        _ => "nothing, if it is refused elsewhere: the next sample of the thread is judged again",
    }
}

/// Undeployed services that still hold memory.
pub(super) fn retired(picture: &Picture) -> Vec<Finding> {
    let accounts = picture.accounts.iter().flat_map(|all| &all.accounts);
    accounts
        .filter(|account| account.retired_loaders > 0)
        .map(|account| {
            Finding::new(
                Severity::Warning,
                "retired-loader",
                format!("an undeployed version of {} still holds memory", account.name),
                format!("heapwarden_account_retired_loaders = {}", account.retired_loaders),
                "collect once (jcmd PID GC.run); if it stays, its class loader leaks: a thread, a thread local, \
                 a driver or a listener holds it",
            )
        })
        .collect()
}

/// Accounts that have no series of their own.
pub(super) fn folded(picture: &Picture) -> Vec<Finding> {
    let folded = picture.metrics.value("heapwarden_accounts_folded");
    let folded = folded.filter(|count| *count > 0.0).into_iter();
    folded
        .map(|count| {
            Finding::new(
                Severity::Note,
                "accounts-folded",
                "the smallest accounts have no series of their own in the metrics, and are summed in _other",
                format!("heapwarden_accounts_folded = {count}"),
                "/api/v1/accounts and heapwarden top show them; one account for several services takes a name in the policy",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::pictures::{account, agent, jvm};
    use super::*;

    #[test]
    fn a_flag_that_forbids_proof_matters_on_some_collectors() {
        let mut picture = agent("heapwarden_samples_total 1\n", vec![]);
        picture.facts = jvm(&[], &["-Xnoclassgc", "Main"]).facts;
        let mut found = |collector| {
            picture.facts.as_mut().unwrap().collector = Some(collector);
            cannot_be_proved(&picture).len()
        };
        assert_eq!(found(Collector::Serial), 1);
        assert_eq!(found(Collector::Parallel), 1);
        assert_eq!(found(Collector::G1), 0);
        assert_eq!(found(Collector::Z), 0);
    }

    #[test]
    fn a_budget_is_judged_by_the_agents_age() {
        let metrics = "heapwarden_evidence_budget_ratio 0.05\nheapwarden_policy_generation 1\n\
            heapwarden_policy_last_reload_success_timestamp_seconds 1000\n\
            heapwarden_evidence_seconds_total{kind=\"young\"} 1\n\
            heapwarden_evidence_seconds_total{kind=\"full\"} 4\n";
        let mut picture = agent(metrics, vec![]);
        picture.now_seconds = 1100.0;
        let found = budget_spent(&picture);
        assert!(
            found[0]
                .evidence
                .contains("5.0 s of collections in 100 s, 5.00 %"),
            "{found:?}"
        );
        picture.now_seconds = 1200.0;
        assert_eq!(budget_spent(&picture), [], "2.5 % of 5 %");
        picture.now_seconds = 1010.0;
        assert_eq!(budget_spent(&picture), [], "too young to tell");
        picture.metrics = super::super::super::metrics::Metrics::default();
        assert_eq!(budget_spent(&picture), []);
    }

    #[test]
    fn deferrals_are_told_by_reason_and_matter_where_nothing_is_refused() {
        let metrics = "heapwarden_account_deferred_refusals_total{account=\"/shop\",reason=\"container\"} 12\n\
            heapwarden_account_deferred_refusals_total{account=\"/shop\",reason=\"grace\"} 5\n";
        let mut shop = account("service", "/shop");
        shop.state = State::Over;
        let mut picture = agent(metrics, vec![shop]);
        let found = deferred(&picture);
        assert_eq!((found.len(), found[0].severity), (1, Severity::Warning));
        assert!(found[0].remedy.contains("interrupt-through"), "{found:?}");
        picture.accounts.as_mut().unwrap().accounts[0].refusals_total = 3;
        assert_eq!(deferred(&picture)[0].severity, Severity::Note);
    }

    #[test]
    fn retired_loaders_and_folded_accounts_are_said() {
        let mut shop = account("service", "/shop");
        shop.retired_loaders = 2;
        let picture = agent("heapwarden_accounts_folded 7\n", vec![shop]);
        assert!(retired(&picture)[0].evidence.ends_with("= 2"));
        assert!(folded(&picture)[0].evidence.ends_with("= 7"));
        assert_eq!(folded(&agent("heapwarden_accounts_folded 0\n", vec![])), []);
    }
}
