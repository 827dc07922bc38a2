//! Memory pressure events for listeners of the Java API: an account is above its soft limit, is over its
//! limit, or recovers.
//!
//! The events are the differences between two looks at the accounts, not a queue. A change that is
//! undone between two looks makes no event, so events cannot pile up. The events of one account have a
//! fixed order: first those that begin, then those that end.

use std::collections::HashMap;
use std::sync::Arc;

/// A kind of event. Its number is an argument of `dev.heapwarden.agent.Bridge.announce`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Change {
    /// The live bytes of the account rose above its soft limit.
    AboveSoft = 0,
    /// The account is over its limit; refusals begin.
    Over = 1,
    /// The account is no longer over its limit.
    Recovered = 2,
    /// The live bytes of the account fell below its soft limit.
    BelowSoft = 3,
}

/// The state of one account at one look.
#[derive(Debug, Clone, PartialEq)]
pub struct AccountPressure {
    /// The account's name.
    pub account: Arc<str>,
    /// Its live bytes are above its soft limit.
    pub above_soft: bool,
    /// It is over its limit.
    pub over: bool,
    /// Its amounts and limits.
    pub figures: Figures,
}

/// The amounts that an event carries, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Charges that survived the latest collection.
    pub live_bytes: u64,
    /// Charges less refunds so far.
    pub charged_bytes: u64,
    /// The standard error of `live_bytes`.
    pub standard_error_bytes: u64,
    /// The soft limit, if there is one.
    pub soft_limit_bytes: Option<u64>,
    /// The limit, if there is one.
    pub limit_bytes: Option<u64>,
}

/// Finds the changes between two looks. Used by one thread of the agent, the API notifier.
#[derive(Debug, Default)]
pub struct Watch {
    /// By account: above its soft limit, over its limit. Accounts that are neither are absent.
    seen: HashMap<Arc<str>, (bool, bool)>,
}

impl Watch {
    /// The events since the last look. An account that no longer exists has none.
    pub fn look(&mut self, pressures: &[AccountPressure]) -> Vec<(Change, AccountPressure)> {
        let mut events = Vec::new();
        let mut seen = HashMap::new();
        for pressure in pressures {
            let now = (pressure.above_soft, pressure.over);
            let before = self
                .seen
                .get(&pressure.account)
                .copied()
                .unwrap_or_default();
            let mut tell = |is: bool, change| {
                if is {
                    events.push((change, pressure.clone()));
                }
            };
            tell(now.0 && !before.0, Change::AboveSoft);
            tell(now.1 && !before.1, Change::Over);
            tell(!now.1 && before.1, Change::Recovered);
            tell(!now.0 && before.0, Change::BelowSoft);
            if now != (false, false) {
                seen.insert(pressure.account.clone(), now);
            }
        }
        self.seen = seen;
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressure(account: &str, above_soft: bool, over: bool) -> AccountPressure {
        AccountPressure {
            account: account.into(),
            above_soft,
            over,
            figures: Figures::default(),
        }
    }

    #[test]
    fn each_change_is_told_once() {
        let mut watch = Watch::default();
        let mut look = |above_soft, over| -> Vec<Change> {
            let events =
                watch.look(&[pressure("a", above_soft, over), pressure("b", false, false)]);
            assert!(events.iter().all(|(_, s)| &*s.account == "a"));
            events.into_iter().map(|(change, _)| change).collect()
        };
        assert_eq!(look(false, false), []);
        assert_eq!(look(true, false), [Change::AboveSoft]);
        assert_eq!(look(true, false), []);
        assert_eq!(look(true, true), [Change::Over]);
        assert_eq!(look(false, false), [Change::Recovered, Change::BelowSoft]);
        assert_eq!(look(true, true), [Change::AboveSoft, Change::Over]);
    }

    #[test]
    fn an_account_that_is_gone_is_forgotten() {
        let mut watch = Watch::default();
        watch.look(&[pressure("a", false, true)]);
        assert_eq!(watch.look(&[]), []);
        assert_eq!(watch.seen.len(), 0);
        assert_eq!(watch.look(&[pressure("a", false, true)]).len(), 1);
    }
}
