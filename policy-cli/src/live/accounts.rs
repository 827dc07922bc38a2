//! What `/api/v1/accounts` answers, as far as this command reads it.
//!
//! The agent may be older or newer than the command: fields that are not known are ignored, those
//! that are absent have defaults, and a number may be anything that JSON calls one.

use serde::{Deserialize, Deserializer};

/// The whole answer.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct Accounts {
    /// The heap as a whole.
    #[serde(default)]
    pub(crate) heap: Heap,
    /// The sampler.
    #[serde(default)]
    pub(crate) sampling: Sampling,
    /// The policy in force.
    #[serde(default)]
    pub(crate) policy: Policy,
    /// Every account, the largest live bytes first.
    pub(crate) accounts: Vec<Account>,
    /// Accounts beyond the agent's bound.
    #[serde(default, deserialize_with = "amount")]
    pub(crate) accounts_omitted: u64,
}

/// The heap as a whole.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Heap {
    /// Used bytes as read just after the latest collection.
    #[serde(deserialize_with = "amount")]
    pub(crate) used_after_gc_bytes: u64,
    /// The maximum heap in bytes.
    #[serde(deserialize_with = "amount")]
    pub(crate) max_bytes: u64,
    /// Collection pauses since the agent was loaded.
    #[serde(deserialize_with = "amount")]
    pub(crate) gc_epoch: u64,
}

/// The sampler.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Sampling {
    /// Mean bytes between samples; 0 when every allocation is sampled.
    #[serde(deserialize_with = "amount")]
    pub(crate) interval_bytes: u64,
    /// Samples charged since the agent was loaded.
    #[serde(deserialize_with = "amount")]
    pub(crate) samples: u64,
    /// Samples dropped since then.
    #[serde(deserialize_with = "amount")]
    pub(crate) dropped: u64,
}

/// The policy in force.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Policy {
    /// Counts the policies put in force.
    #[serde(deserialize_with = "amount")]
    pub(crate) generation: u64,
    /// `observe` or `enforce`.
    pub(crate) mode: String,
    /// Why the latest policy file was rejected, if it was.
    pub(crate) last_error: Option<String>,
}

/// Where an account stands against its limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// Not known to be over its limit.
    Open,
    /// The charge is above the limit; evidence is awaited.
    Suspect,
    /// What survived a collection is above the limit.
    Over,
    /// A state that this command does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

impl State {
    /// The contract's spelling.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            State::Unknown => "unknown",
            State::Open => "open",
            State::Suspect => "suspect",
            State::Over => "over",
        }
    }
}

/// One account.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Account {
    /// Its name, as a tenant may have chosen it.
    pub(crate) name: String,
    /// `service`, `package`, `library`, `scope` or `reserved`.
    pub(crate) kind: String,
    /// The service it was recognised as; empty for other kinds.
    pub(crate) service: String,
    /// The account of the service around a scope, where there is one.
    pub(crate) parent: Option<String>,
    /// What of its charges survived the latest collection.
    #[serde(deserialize_with = "amount")]
    pub(crate) live_bytes: u64,
    /// Charges less refunds: includes garbage that no collection has found yet.
    #[serde(deserialize_with = "amount")]
    pub(crate) charged_bytes: u64,
    /// Standard error of the charged estimate.
    #[serde(deserialize_with = "amount")]
    pub(crate) standard_error_bytes: u64,
    /// With the scopes beneath it, where there are any: what its limits are about.
    pub(crate) tree: Option<Tree>,
    /// Estimated number of live objects.
    #[serde(deserialize_with = "amount")]
    pub(crate) live_objects: u64,
    /// All bytes ever charged.
    #[serde(deserialize_with = "amount")]
    pub(crate) allocated_bytes_total: u64,
    /// Soft limit, if there is one.
    #[serde(deserialize_with = "optional_amount")]
    pub(crate) soft_limit_bytes: Option<u64>,
    /// Limit, if there is one.
    #[serde(deserialize_with = "optional_amount")]
    pub(crate) limit_bytes: Option<u64>,
    /// Where it stands against its limit.
    pub(crate) state: State,
    /// Refusals thrown.
    #[serde(deserialize_with = "amount")]
    pub(crate) refusals_total: u64,
    /// Refusals that `observe` did not throw.
    #[serde(deserialize_with = "amount")]
    pub(crate) would_refuse_total: u64,
    /// Refusals due where a throw was not safe.
    #[serde(deserialize_with = "amount")]
    pub(crate) deferred_total: u64,
    /// Undeployed services of this account that still hold bytes.
    #[serde(deserialize_with = "amount")]
    pub(crate) retired_loaders: u64,
    /// On whose behalf its live bytes were allocated, the largest first.
    pub(crate) principals: Vec<Principal>,
    /// Principals beyond the agent's bound.
    #[serde(deserialize_with = "amount")]
    pub(crate) principals_omitted: u64,
    /// What it holds by class, the largest live bytes first.
    pub(crate) classes: Vec<Class>,
    /// Classes beyond those asked for.
    #[serde(deserialize_with = "amount")]
    pub(crate) classes_omitted: u64,
}

/// What an account and the scopes beneath it hold together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Tree {
    /// Of all of them.
    #[serde(deserialize_with = "amount")]
    pub(crate) live_bytes: u64,
    /// Likewise.
    #[serde(deserialize_with = "amount")]
    pub(crate) charged_bytes: u64,
    /// Of the charged estimate of all of them.
    #[serde(deserialize_with = "amount")]
    pub(crate) standard_error_bytes: u64,
}

/// A share of an account's live bytes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Principal {
    /// Account name of the principal.
    pub(crate) name: String,
    /// Live bytes allocated on its behalf.
    #[serde(deserialize_with = "amount")]
    pub(crate) live_bytes: u64,
}

/// The objects of one class in one account.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Class {
    /// Java source name.
    pub(crate) class: String,
    /// Live bytes.
    #[serde(deserialize_with = "amount")]
    pub(crate) live_bytes: u64,
    /// Live objects.
    #[serde(deserialize_with = "amount")]
    pub(crate) live_objects: u64,
    /// All bytes ever charged for this class.
    #[serde(deserialize_with = "amount")]
    pub(crate) allocated_bytes_total: u64,
}

impl Account {
    /// What its limits are about: with the scopes beneath it, where there are any.
    pub(crate) fn whole(&self) -> Tree {
        self.tree.unwrap_or(Tree {
            live_bytes: self.live_bytes,
            charged_bytes: self.charged_bytes,
            standard_error_bytes: self.standard_error_bytes,
        })
    }

    /// Live bytes, with those of the scopes beneath it, as a share of the limit in percent, where
    /// there is a limit.
    pub(crate) fn percent_of_limit(&self) -> Option<f64> {
        let limit_bytes = self.limit_bytes.filter(|&bytes| bytes > 0)?;
        Some(self.whole().live_bytes as f64 / limit_bytes as f64 * 100.0)
    }
}

/// Any number of JSON, or `null` for none.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Whole(u64),
    /// Also what is negative or beyond 64 bits.
    Other(f64),
}

fn optional_amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let number = Option::<Number>::deserialize(deserializer)?;
    Ok(number.map(|number| match number {
        Number::Whole(whole) => whole,
        // Saturates at both ends.
        Number::Other(other) => other as u64,
    }))
}

fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    optional_amount(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_an_agent() {
        let text = r#"{"heap":{"used_after_gc_bytes":1,"max_bytes":2,"gc_epoch":3},
            "sampling":{"interval_bytes":65536,"samples":4,"dropped":5,"dropped_by_reason":{}},
            "policy":{"generation":1,"mode":"enforce","last_error":null},
            "accounts":[{"name":"shop","kind":"service","live_bytes":10,"charged_bytes":11,
              "standard_error_bytes":2,"live_objects":1,"allocated_bytes_total":99,
              "soft_limit_bytes":null,"limit_bytes":40,"state":"suspect","refusals_total":1,
              "would_refuse_total":2,"deferred_total":3,"retired_loaders":4,
              "principals":[{"name":"_unaccounted","live_bytes":10}],
              "classes":[{"class":"byte[]","live_bytes":10,"live_objects":1,
                "allocated_bytes_total":50}],"classes_omitted":7}],
            "accounts_omitted":6}"#;
        let answer: Accounts = serde_json::from_str(text).unwrap();
        assert_eq!(answer.heap.gc_epoch, 3);
        assert_eq!(answer.policy.mode, "enforce");
        assert_eq!(answer.accounts_omitted, 6);
        let shop = &answer.accounts[0];
        assert_eq!((shop.live_bytes, shop.limit_bytes), (10, Some(40)));
        assert_eq!(shop.soft_limit_bytes, None);
        assert_eq!(shop.percent_of_limit(), Some(25.0));
        assert_eq!(shop.state, State::Suspect);
        assert_eq!(shop.classes[0].class, "byte[]");
        assert_eq!(shop.principals[0].name, "_unaccounted");
    }

    #[test]
    fn limits_are_about_an_account_with_the_scopes_beneath_it() {
        let text = r#"{"accounts":[{"name":"shop","live_bytes":10,"charged_bytes":12,
              "standard_error_bytes":1,"limit_bytes":40,"parent":null,
              "tree":{"live_bytes":30,"charged_bytes":34,"standard_error_bytes":3}},
            {"name":"shop/tenant-42","live_bytes":20,"limit_bytes":40,"parent":"shop","tree":null}]}"#;
        let answer: Accounts = serde_json::from_str(text).unwrap();
        let [shop, tenant] = &answer.accounts[..] else {
            panic!("{answer:?}");
        };
        assert_eq!((shop.live_bytes, shop.whole().live_bytes), (10, 30));
        assert_eq!(shop.percent_of_limit(), Some(75.0));
        assert_eq!(shop.parent, None);
        assert_eq!(tenant.whole().live_bytes, 20);
        assert_eq!(tenant.percent_of_limit(), Some(50.0));
        assert_eq!(tenant.parent.as_deref(), Some("shop"));
    }

    #[test]
    fn older_and_newer_agents_are_read() {
        let older: Accounts = serde_json::from_str(r#"{"accounts":[{"name":"a"}]}"#).unwrap();
        assert_eq!(older.accounts[0].state, State::Unknown);
        assert_eq!(older.accounts[0].percent_of_limit(), None);
        let newer: Accounts = serde_json::from_str(
            r#"{"accounts":[{"name":"a","state":"frozen","live_bytes":1.5,"x":{"y":[]}}],"z":0}"#,
        )
        .unwrap();
        assert_eq!(newer.accounts[0].state, State::Unknown);
        assert_eq!(newer.accounts[0].live_bytes, 1);
        assert!(
            serde_json::from_str::<Accounts>(r#"{"status":"success"}"#).is_err(),
            "another server's JSON"
        );
    }

    #[test]
    fn absurd_numbers_are_taken_as_far_as_they_go() {
        let text = r#"{"accounts":[{"live_bytes":-5,"charged_bytes":1e300,"limit_bytes":0,
            "live_objects":99999999999999999999999,"refusals_total":null}]}"#;
        let answer: Accounts = serde_json::from_str(text).unwrap();
        let account = &answer.accounts[0];
        assert_eq!(account.live_bytes, 0);
        assert_eq!(account.charged_bytes, u64::MAX);
        assert_eq!(account.live_objects, u64::MAX);
        assert_eq!(account.refusals_total, 0);
        assert_eq!(account.percent_of_limit(), None, "no division by zero");
    }
}
