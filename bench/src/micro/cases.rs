//! The cases that are measured: policies that make the callback do more or less.

use std::fmt::Write as _;

/// Depths of the stack at which is allocated.
pub(crate) const DEPTHS: [usize; 6] = [5, 10, 20, 50, 100, 200];
/// Accounts in the policy, or services in the JVM.
pub(crate) const ACCOUNTS: [usize; 4] = [1, 100, 1000, 5000];
/// The depth at which the number of accounts is varied.
pub(crate) const DEPTH_OF_ACCOUNTS: usize = 20;

/// The sampling interval for times: small, for many samples in little time.
pub(crate) const INTERVAL_BYTES: u64 = 8 << 10;

/// The policy of a case, by the work that it gives the callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Service accounts alone: the context loader decides.
    Services,
    /// A package account owns the top frame.
    TopFrame,
    /// A package account owns no frame: the whole stack is looked at.
    NothingFound,
}

impl Policy {
    /// All, the cheapest first.
    pub(crate) const ALL: [Policy; 3] = [Policy::Services, Policy::TopFrame, Policy::NothingFound];

    /// How it is called in the tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Policy::Services => "services only",
            Policy::TopFrame => "top frame decides",
            Policy::NothingFound => "nothing found",
        }
    }

    /// How many frames the rule needs to see, at the most.
    pub(crate) fn frames(self) -> usize {
        match self {
            Policy::Services => 0,
            Policy::TopFrame => 1,
            Policy::NothingFound => 1024,
        }
    }

    /// Who pays in the programs: an account, or a prefix of several.
    pub(crate) fn payer(self) -> &'static str {
        match self {
            Policy::Services => "s",
            Policy::TopFrame => "top",
            Policy::NothingFound => "shop",
        }
    }

    /// The policy file, with `accounts` accounts where they are by package.
    pub(crate) fn file(self, interval: &str, accounts: usize) -> String {
        let mut text = format!("[sampling]\ninterval = \"{interval}\"\ncpu-budget = \"none\"\n");
        match self {
            Policy::Services => text.push_str("[[account]]\nservice = \"*\"\n"),
            Policy::TopFrame => {
                text.push_str("[[account]]\nname = \"top\"\npackages = [\"chain\"]\n");
            }
            Policy::NothingFound => {
                for number in 1..=accounts {
                    let _ = writeln!(
                        text,
                        "[[account]]\nname = \"other{number}\"\npackages = [\"com.acme.p{number}.*\"]"
                    );
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_has_the_accounts_that_were_asked_for() {
        for accounts in ACCOUNTS {
            let text = Policy::NothingFound.file("8KiB", accounts);
            assert_eq!(text.matches("[[account]]").count(), accounts);
        }
    }
}
