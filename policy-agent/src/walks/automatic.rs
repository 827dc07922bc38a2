//! A walk for a suspect, without a command, where the policy says so: once for each suspect, within a budget a day,
//! and forked only.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use policy_config::LeakPaths;
use policy_report::{Chain, WalkRequest};

use crate::agent::Agent;

/// The budget counts from here to here.
const DAY: Duration = Duration::from_secs(86_400);
/// Chains of one suspect at the most, and their length in characters.
const MOST_CHAINS: usize = 3;
const MOST_CHARACTERS: usize = 600;

/// What was walked for without a command.
#[derive(Default)]
pub(crate) struct Automatic {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When the present day began, and how many walks it had.
    day: Option<(Instant, u32)>,
    /// The suspects that were walked for, by account and class.
    done: HashSet<(Arc<str>, Arc<str>)>,
}

impl State {
    /// Takes one walk of the budget.
    fn take(&mut self, per_day: u32, now: Instant) -> bool {
        let day = self
            .day
            .filter(|(began, _)| now.duration_since(*began) < DAY);
        let (began, used) = day.unwrap_or((now, 0));
        let is_left = used < per_day;
        self.day = Some((began, used + u32::from(is_left)));
        is_left
    }
}

/// Starts a walk for a suspect that has no chain yet, if the policy says so and the budget has room. On the holdings
/// thread, which does not wait for it.
pub(crate) fn consider(agent: &'static Agent) {
    let policy = agent.policy.in_force();
    if policy.leak_settings.paths != LeakPaths::Forked {
        return;
    }
    let report = agent.core.leaks.report();
    let mut state = agent
        .walks
        .automatic
        .state
        .lock()
        .unwrap_or_else(|e| e.into_inner());
    let suspects: Vec<_> = (report.suspects.iter())
        .map(|one| (one.account.clone(), one.class.clone()))
        .collect();
    // One that is suspected anew is walked for anew.
    state.done.retain(|one| suspects.contains(one));
    let Some(next) = suspects.into_iter().find(|one| !state.done.contains(one)) else {
        return;
    };
    if !state.take(policy.leak_settings.paths_per_day, Instant::now()) {
        return;
    }
    state.done.insert(next.clone());
    drop(state);
    let spawned = agent.vm().spawn("heapwarden-walk", move |jni| {
        let (account, class) = next;
        let request = WalkRequest {
            question: "paths".into(),
            account: Some((*account).into()),
            class: Some((*class).into()),
            ..WalkRequest::default()
        };
        let reply = super::answer(agent, jni, &request, &|| agent.stopping());
        agent.costs.thread_was("walk");
        let Some(paths) = reply.paths else {
            let why = reply.error.unwrap_or_default();
            tracing::warn!("what keeps {class} of {account} alive is not known: {why}");
            return;
        };
        // The chain that keeps most of them is the reason.
        let mut chains = paths.paths;
        chains.sort_by_key(|chain| std::cmp::Reverse(chain.objects));
        let lines: Vec<String> = chains.iter().take(MOST_CHAINS).map(line).collect();
        if let Some(first) = lines.first() {
            tracing::warn!(
                "{class} of {account}, which is suspected to leak, is kept by {first} (the JVM stood still for {:.0} ms)",
                paths.walk.pause_ms
            );
        }
        agent.core.leaks.set_kept_by(account, class, lines);
    });
    if let Err(error) = spawned {
        tracing::warn!("a walk for a suspect cannot be started ({error})");
    }
}

/// A chain in one line: `static com.acme.Cache.map → java.util.HashMap.table → …`.
fn line(chain: &Chain<'_>) -> String {
    let mut line = chain.root.to_string();
    for step in &chain.steps {
        let between = if step.via.starts_with(['[', '(']) {
            " "
        } else {
            "."
        };
        line.push_str(&format!(" → {}{between}{}", step.class, step.via));
        if step.repeats > 1 {
            line.push_str(&format!(" ×{}", step.repeats));
        }
    }
    match line.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use policy_report::ChainStep;

    use super::*;

    #[test]
    fn a_day_has_so_many_walks_and_the_next_one_again() {
        let mut state = State::default();
        let morning = Instant::now();
        assert!(state.take(2, morning) && state.take(2, morning + DAY / 2));
        assert!(!state.take(2, morning + DAY / 2));
        assert!(state.take(2, morning + DAY) && !state.take(1, morning + DAY));
    }

    #[test]
    fn a_chain_is_one_line_of_bounded_length() {
        let step = |class: &'static str, via: &'static str, repeats| ChainStep {
            class: class.into(),
            via: via.into(),
            repeats,
        };
        let mut chain = Chain {
            root: "static com.acme.Cache.map".into(),
            steps: vec![step("Node[]", "[*]", 1), step("Node", "next", 400)],
            ..Chain::default()
        };
        assert_eq!(
            line(&chain),
            "static com.acme.Cache.map → Node[] [*] → Node.next ×400"
        );
        chain.steps = vec![step("ⱼ.Long", "field", 1); 500];
        assert_eq!(line(&chain).chars().count(), MOST_CHARACTERS + 1);
    }
}
