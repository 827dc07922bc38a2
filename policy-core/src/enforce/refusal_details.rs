//! The content of a refusal: account, limit and figures. The enforcer publishes it for the threads that are refused.

use std::sync::Arc;

use arc_swap::{ArcSwapOption, Guard};
use policy_config::{Admit, DoorMethod, Throw};

use crate::ledger::Chunks;
use crate::ports::Token;
use crate::sync::places;

use super::place_counts::PlaceCounts;

/// The content of a refusal for one account, and the answers of the account's doors.
pub struct RefusalDetails {
    /// The account's name.
    pub account: Arc<str>,
    /// The name as a Java string, made before it is needed: a refused thread looks up and
    /// formats nothing.
    pub name: Token,
    /// Which error to throw.
    pub throw: Throw,
    /// Where else new work is turned away than at the servers' doors.
    pub method_doors: Arc<MethodDoors>,
    /// The account's limit in bytes.
    pub limit_bytes: u64,
    /// Bytes of the account that survived the covering collection of the verdict; the latest
    /// collection if there is no verdict.
    pub live_bytes: u64,
    /// The standard error of `live_bytes`.
    pub standard_error_bytes: u64,
    /// Which requests the account's door always lets in.
    pub admit: Arc<[Admit]>,
    /// The status of HTTP that a server's door answers.
    pub status: u16,
    /// Where the refusals of the account are counted by place.
    pub places: Arc<PlaceCounts>,
}

/// The doors of an account at methods, as the policy has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MethodDoors {
    /// The methods; empty for most accounts.
    pub methods: Vec<DoorMethod>,
    /// Which error a call gets that is turned away there.
    pub refuse_with: Throw,
    /// One of the methods has a door, and no server that the account is deployed to. Then requests at a server
    /// that is among its libraries are not asked: the policy has named where its work begins.
    pub are_the_only_ones: bool,
}

#[cfg(test)]
impl RefusalDetails {
    /// Those of an account with a limit of 1000 bytes, for tests.
    pub(super) fn sample(account: &str) -> RefusalDetails {
        RefusalDetails {
            account: account.into(),
            name: Arc::new(()),
            throw: Throw::default(),
            method_doors: Arc::default(),
            limit_bytes: 1000,
            live_bytes: 0,
            standard_error_bytes: 0,
            admit: Arc::default(),
            status: policy_config::DEFAULT_DOOR_STATUS,
            places: PlaceCounts::new(),
        }
    }
}

/// The details of all accounts that have limits, by the purse that represents each.
pub struct RefusalDetailsTable(Chunks<ArcSwapOption<RefusalDetails>, 64>);

impl RefusalDetailsTable {
    /// An empty table.
    pub fn new() -> RefusalDetailsTable {
        RefusalDetailsTable(Chunks::new(places(1 << u16::BITS)))
    }

    /// The details in force. Lock-free, any thread.
    pub fn get(&self, representative: u32) -> Option<Guard<Option<Arc<RefusalDetails>>>> {
        Some(self.0.get(representative)?.load())
    }

    /// Publishes details, or removes them. Only for the enforcer.
    pub fn set(&self, representative: u32, details: Option<Arc<RefusalDetails>>) {
        if let Some(place) = self.0.get_or_grow(representative) {
            place.store(details);
        }
    }

    /// Native memory held, in bytes.
    pub fn committed_bytes(&self) -> u64 {
        self.0.committed_bytes()
    }
}
