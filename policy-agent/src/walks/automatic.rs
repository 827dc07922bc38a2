//! A walk for a suspect, without a command, where the policy says so: within a budget a day, and forked only.

use std::time::Instant;

use policy_config::LeakPaths;
use policy_report::{Chain, WalkRequest};

use crate::ground::Ground;

use super::answering::{Walks, answer};

/// Chains of one suspect at the most, and their length in characters.
const MAX_CHAINS: usize = 3;
const MAX_CHARACTERS: usize = 600;

/// Starts a walk for a suspect that has no chain yet, if the policy says so and the budget has room. On the holdings
/// thread, which does not wait for it.
pub(crate) fn consider(ground: &'static Ground, walks: &'static Walks) {
    let policy = ground.policy.in_force();
    if policy.leak_settings.paths != LeakPaths::Forked {
        return;
    }
    let report = ground.core.leaks.report();
    let suspects = (report.suspects.iter())
        .map(|one| (one.account.clone(), one.class.clone()))
        .collect();
    if walks.is_under_way() {
        return;
    }
    let per_day = policy.leak_settings.paths_per_day;
    let Some(next) = (walks.tries.state()).next(suspects, per_day, Instant::now()) else {
        return;
    };
    let spawned = ground.vm().spawn("heapwarden-walk", move |jni| {
        let (account, class) = &next;
        let request = WalkRequest {
            question: "paths".into(),
            account: Some((**account).into()),
            class: Some((**class).into()),
            ..WalkRequest::default()
        };
        let reply = answer(ground, walks, jni, &request, &|| ground.stopping());
        ground.costs.thread_was("walk");
        let Some(paths) = reply.paths else {
            let why = reply.error.unwrap_or_default();
            if walks.tries.state().ended(&next, Some(&why)) {
                tracing::warn!("what keeps {class} of {account} alive is not known: {why}");
            }
            return;
        };
        walks.tries.state().ended(&next, None);
        // The chain that keeps most of them is the reason.
        let mut chains = paths.paths;
        chains.sort_by_key(|chain| std::cmp::Reverse(chain.objects));
        let lines: Vec<String> = chains.iter().take(MAX_CHAINS).map(line).collect();
        if let Some(first) = lines.first() {
            tracing::warn!(
                "{class} of {account}, which is suspected to leak, is kept by {first} (the JVM stood still for {:.0} ms)",
                paths.walk.pause_ms
            );
        }
        ground.core.leaks.set_kept_by(account.clone(), class.clone(), lines);
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
    match line.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use policy_report::ChainStep;

    use super::*;

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
        assert_eq!(line(&chain).chars().count(), MAX_CHARACTERS + 1);
    }
}
