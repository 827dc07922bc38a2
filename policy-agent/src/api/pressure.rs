//! What listeners are told: an account passes its soft limit, is over its limit, recovers.
//!
//! The events are the differences between two looks at the docket, not a queue: an account that
//! came and went between two looks has nothing to tell any more, and no storm of changes can pile
//! up. Each account is told of in a fixed order: what is new before what is over.

use std::collections::HashMap;
use std::sync::Arc;

/// What has happened; the number is that of `dev.heapwarden.agent.Bridge.announce`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Change {
    /// Its live bytes rose above its soft limit.
    AboveSoft = 0,
    /// It is over its limit: refusals begin.
    Over = 1,
    /// It is not over its limit any more.
    Recovered = 2,
    /// Its live bytes fell below its soft limit.
    BelowSoft = 3,
}

/// An account as a look at the docket finds it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Standing {
    pub(crate) account: Arc<str>,
    pub(crate) above_soft: bool,
    pub(crate) over: bool,
    pub(crate) figures: Figures,
}

/// What an event tells. Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Figures {
    pub(crate) live_bytes: u64,
    pub(crate) charged_bytes: u64,
    pub(crate) standard_error_bytes: u64,
    pub(crate) soft_limit_bytes: Option<u64>,
    pub(crate) limit_bytes: Option<u64>,
}

/// What has changed since the look before.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Above its soft limit, over its limit; absent for neither.
    seen: HashMap<Arc<str>, (bool, bool)>,
}

impl Watch {
    /// The events since the last look. An account that is gone has none.
    pub(crate) fn look(&mut self, standings: &[Standing]) -> Vec<(Change, Standing)> {
        let mut events = Vec::new();
        let mut seen = HashMap::new();
        for standing in standings {
            let now = (standing.above_soft, standing.over);
            let before = self
                .seen
                .get(&standing.account)
                .copied()
                .unwrap_or_default();
            let mut tell = |is: bool, change| {
                if is {
                    events.push((change, standing.clone()));
                }
            };
            tell(now.0 && !before.0, Change::AboveSoft);
            tell(now.1 && !before.1, Change::Over);
            tell(!now.1 && before.1, Change::Recovered);
            tell(!now.0 && before.0, Change::BelowSoft);
            if now != (false, false) {
                seen.insert(standing.account.clone(), now);
            }
        }
        self.seen = seen;
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(account: &str, above_soft: bool, over: bool) -> Standing {
        Standing {
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
                watch.look(&[standing("a", above_soft, over), standing("b", false, false)]);
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
        watch.look(&[standing("a", false, true)]);
        assert_eq!(watch.look(&[]), []);
        assert_eq!(watch.seen.len(), 0);
        assert_eq!(watch.look(&[standing("a", false, true)]).len(), 1);
    }
}
