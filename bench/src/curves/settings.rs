//! The settings that JVMs run with: nothing, or the agent with a policy.

use std::fmt::Write as _;

/// Records that the agent may keep, so that no curve ends where the default would end it.
const MAX_TRACKED: u32 = 4_000_000;
/// Patterns in one account of a policy that has many.
const PATTERNS_AN_ACCOUNT: usize = 10;

/// The agent in the JVM beside the program, with its policies; or none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    /// How it is called in tables and pictures.
    pub(crate) name: String,
    /// The agent's policy file; empty for its defaults. Without the agent, none.
    pub(crate) policy: Option<String>,
    /// The policy file that takes its place before anything is timed.
    pub(crate) then: Option<String>,
}

impl Setting {
    /// Nothing: what the others are compared with.
    pub(crate) fn plain() -> Setting {
        Setting {
            name: "plain".to_owned(),
            policy: None,
            then: None,
        }
    }

    fn agent(name: &str, policy: String) -> Setting {
        Setting {
            name: name.to_owned(),
            policy: Some(policy),
            then: None,
        }
    }

    /// The agent as it comes: an account for each service.
    pub(crate) fn default() -> Setting {
        Setting::agent("agent", String::new())
    }

    /// So many package patterns, none of which owns a frame: all of the stack is looked at.
    pub(crate) fn strangers(name: &str, patterns: usize) -> Setting {
        let all: Vec<String> = (1..=patterns)
            .map(|number| format!("\"com.acme.p{number}.*\""))
            .collect();
        let mut policy = String::new();
        for (account, some) in all.chunks(PATTERNS_AN_ACCOUNT).enumerate() {
            let packages = some.join(", ");
            let _ = writeln!(
                policy,
                "[[account]]\nname = \"other{account}\"\npackages = [{packages}]\n"
            );
        }
        Setting::agent(name, policy)
    }

    /// The same, with an interval that never gives way, whatever samples cost.
    pub(crate) fn unwidened(self, name: &str) -> Setting {
        let budget = "[sampling]\ncpu-budget = \"none\"\n\n".to_owned();
        Setting {
            name: name.to_owned(),
            policy: self.policy.map(|policy| budget + &policy),
            ..self
        }
    }

    /// Every allocation until the program holds what it is to hold, then the default interval.
    pub(crate) fn every_allocation_first() -> Setting {
        Setting {
            then: Some(sampling("64KiB")),
            ..Setting::agent("agent", sampling("exact"))
        }
    }

    /// An account of a package, measured at an interval.
    pub(crate) fn account(interval: &str, package: &str) -> Setting {
        let account = format!("[[account]]\nname = \"tenant\"\npackages = [\"{package}\"]\n");
        Setting::agent(interval, sampling(interval) + &account)
    }
}

fn sampling(interval: &str) -> String {
    format!(
        "[sampling]\ninterval = \"{interval}\"\ncpu-budget = \"none\"\nmax-tracked = {MAX_TRACKED}\n\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_has_the_patterns_that_were_asked_for() {
        for patterns in [1, 10, 25, 1_000] {
            let policy = Setting::strangers("agent", patterns).policy.unwrap();
            assert_eq!(policy.matches("com.acme.p").count(), patterns);
            let accounts = patterns.div_ceil(PATTERNS_AN_ACCOUNT);
            assert_eq!(policy.matches("[[account]]").count(), accounts);
        }
    }
}
