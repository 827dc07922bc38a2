//! The accounts that have limits: reads them from the directory and evaluates them in each turn of
//! the enforcer.
//!
//! A turn reads the directory if it has changed, the charge of each limited account always, and the
//! records only if a collection has moved a boundary and some account is near its limit.
//! [`super::evaluation`] does the evaluation; this module supplies what it needs: the accounts, their
//! names as Java strings, and the log of refusals.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy_config::{Door, Mode, Reserve, When};

use crate::core::Core;
use crate::ledger::{Epoch, PurseId};
use crate::ports::{CollectorKind, References};
use crate::sampling::governor::Wants;
use crate::snapshot::Kind;

use super::account_check::{CheckContext, LimitedAccount};
use super::collection_planner::Need;
use super::door::DoorRules;
use super::duress::Figures;
use super::evaluation::Evaluation;
use super::limit_status::LimitStatus;
use super::ports::Jvm;
use super::refusal_details::{MethodDoors, RefusalDetails};
use super::state::Phase;

/// The accounts that have limits, as of the latest turn. On the enforcer's thread.
pub struct LimitedAccounts {
    version: u64,
    enforced: bool,
    only_in_duress: bool,
    evaluation: Evaluation,
    /// The doors at methods of the accounts that have any, by name.
    method_doors: HashMap<Arc<str>, Arc<MethodDoors>>,
}

impl LimitedAccounts {
    /// Before the first turn: none.
    pub fn new() -> LimitedAccounts {
        LimitedAccounts {
            version: 0,
            enforced: false,
            only_in_duress: false,
            evaluation: Evaluation::default(),
            method_doors: HashMap::new(),
        }
    }

    /// Evaluates all accounts once. Returns which evidence they need, and when to look again at the
    /// latest. `duress`: whether the heap is short. `collector`: once it is known.
    pub fn turn(
        &mut self,
        core: &Core,
        jvm: &dyn Jvm,
        now: Instant,
        duress: Figures,
        collector: Option<CollectorKind>,
    ) -> (Need, Duration) {
        self.read_directory(core, jvm);
        let context = CheckContext {
            ledger: &core.ledger,
            gates: &core.enforcement.gates,
            free_heap_bytes: core.heap.free_after_gc_bytes(),
            max_heap_bytes: core.heap.max_bytes(),
            duress,
            only_in_duress: self.only_in_duress,
            sum: core.accounts_sum.read(),
            enforced: self.enforced && !core.has_failed(),
            collector,
            test_refuse: core.test_refuse,
            now,
        };
        let mut access = &core.enforcement;
        let method_doors = &self.method_doors;
        let wanted = (self.evaluation).turn(
            &context,
            &mut access,
            &mut |limited, limit_bytes, status| {
                let doors = method_doors.get(&limited.account).cloned();
                publish_details(
                    core,
                    jvm,
                    limited,
                    limit_bytes,
                    status,
                    doors.unwrap_or_default(),
                );
            },
        );
        self.log_refusals(jvm, now);
        self.name_frames(core, jvm);
        name_places(jvm);
        wanted
    }

    /// Notes the frames that barred refusals.
    fn name_frames(&self, core: &Core, jvm: &dyn Jvm) {
        while let Some(barring) = jvm.take_barring_frame() {
            let mut limited = self.evaluation.limited().iter();
            let Some(frame) = barring.frame else {
                continue;
            };
            if let Some(limited) = limited.find(|limited| limited.gate == barring.gate)
                && let Some(status) = core.enforcement.statuses().known_mut(&limited.account)
            {
                status.effect.barred(barring.reason, frame.into());
            }
        }
    }

    /// The accounts that have limits, as of the latest turn.
    pub fn limited(&self) -> &[LimitedAccount] {
        self.evaluation.limited()
    }

    /// Returns the reasons why accounts want finer samples, as of the latest turn.
    pub fn wants(&self) -> Wants {
        self.evaluation.wants()
    }

    /// Returns the bytes that suspects can take until the next evidence, as of the latest turn.
    pub fn wanted_bytes(&self) -> u64 {
        self.evaluation.wanted_bytes()
    }

    /// Whether a covering collection is wanted for the figure of an account that is not suspect, as of the latest turn.
    pub fn looks_again(&self) -> bool {
        self.evaluation.looks_again()
    }

    /// Whether an account grows towards its limit and is close to it, as of the latest turn.
    pub fn is_any_close(&self) -> bool {
        self.evaluation.is_any_close()
    }

    /// Returns the bytes that accounts near their limits were charged since the latest pause ended.
    pub fn charged_since_pause_bytes(&self, core: &Core) -> u64 {
        let latest = core.ledger.epochs().current().get().checked_sub(1);
        let Some(latest) = latest.map(Epoch::new) else {
            return 0;
        };
        let gates = (self.limited().iter()).filter_map(|one| core.enforcement.gates.get(one.gate));
        let since = gates.filter_map(|gate| gate.born_after(latest, gate.spent()));
        since.fold(0, u64::saturating_add)
    }

    /// The smallest limit in bytes, if there is one.
    pub fn smallest_limit_bytes(&self) -> Option<u64> {
        let limits = self.evaluation.limited().iter();
        limits.filter_map(|limited| limited.limit_bytes).min()
    }

    /// Whether the gate of any account says that it is over its limit.
    pub fn is_any_over(&self, core: &Core) -> bool {
        let gates = &core.enforcement.gates;
        let mut accounts = self.evaluation.limited().iter();
        accounts.any(|limited| {
            gates
                .get(limited.gate)
                .map(|gate| gate.word().0)
                .is_some_and(|word| word.over || word.shut)
        })
    }

    /// Reads the accounts again if anything about them has changed.
    fn read_directory(&mut self, core: &Core, jvm: &dyn Jvm) {
        let directory = core.directory();
        if directory.version() == self.version {
            return;
        }
        self.version = directory.version();
        let policy = directory.policy().clone();
        let max_heap = core.heap.max_bytes();
        let enforced = policy.enforcement.mode == Mode::Enforce;
        if enforced != self.enforced {
            self.enforced = enforced;
            core.enforcement.statuses().restart_places();
        }
        self.only_in_duress = policy.enforcement.when == When::HeapIsShort;
        let mask_bytes = policy.enforcement.mask.resolve(max_heap);
        (core.enforcement).set_mask_bytes(mask_bytes.unwrap_or(u64::MAX));
        (core.enforcement).set_evidence_share(policy.enforcement.evidence_budget_percent / 100.0);
        let limited = directory
            .accounts()
            .filter_map(|(account, entry)| {
                // A library has no charges of its own: its callers pay.
                let rule = (entry.kind != Kind::Library)
                    .then(|| policy.accounts.get(entry.rule?))
                    .flatten()?;
                let limited = LimitedAccount {
                    account: account.clone(),
                    gate: u32::from(directory.standing_for(entry)?.get()),
                    purses: entry.tree().collect(),
                    limit_bytes: rule.limit.resolve(max_heap),
                    soft_limit_bytes: rule.soft_limit.resolve(max_heap),
                    throw: rule.throw,
                    door: (rule.door != Door::Off && directory.has_door(entry)).then(|| {
                        DoorRules {
                            reserve_share: match policy.enforcement.reserve {
                                Reserve::Auto => 1.0,
                                Reserve::Share(share) => share,
                            },
                        }
                    }),
                    admit: rule.admit.as_slice().into(),
                    status: rule.status,
                    priority: rule.priority,
                };
                (limited.limit_bytes.is_some() || limited.soft_limit_bytes.is_some())
                    .then_some(limited)
            })
            .collect();
        self.method_doors = directory
            .accounts()
            .filter_map(|(account, entry)| {
                let rule = policy.accounts.get(entry.rule?)?;
                let methods = rule.door.methods().to_vec();
                let refuse_with = rule.refuse_with.unwrap_or(rule.throw);
                let doors = MethodDoors {
                    methods,
                    refuse_with,
                    are_the_only_ones: directory.has_method_doors_alone(entry),
                };
                (!doors.methods.is_empty()).then(|| (account.clone(), Arc::new(doors)))
            })
            .collect();
        core.throw_points.know_payers(&directory);
        let representatives: Vec<_> = directory.representatives().collect();
        let aboves: HashMap<PurseId, PurseId> = directory.aboves().collect();
        drop(directory);
        let publish = || {
            for (purse, first) in representatives {
                core.identity.set_representative(purse, first);
                let above = aboves.get(&purse).copied();
                core.identity.set_above(purse, above);
            }
        };
        let enforcement = &core.enforcement;
        let closed = (self.evaluation).adopt(
            limited,
            &core.ledger,
            &mut enforcement.statuses(),
            &enforcement.gates,
            publish,
        );
        for number in closed {
            enforcement.details.set(number, None);
        }
        let limited = self.evaluation.limited();
        jvm.forget_account_names(&|name| limited.iter().any(|l| *l.account == *name));
    }

    /// Logs the refusals since the last turn.
    fn log_refusals(&mut self, jvm: &dyn Jvm, now: Instant) {
        while let Some(refused) = jvm.take_refusal() {
            self.evaluation.log.refused(&refused, now);
        }
    }
}

/// Names the places at which threads were refused for the first time.
fn name_places(jvm: &dyn Jvm) {
    while let Some(new) = jvm.take_new_place() {
        new.counts.name(new.slot, new.name);
    }
}

/// Publishes what a refusal says, if that has changed.
fn publish_details(
    core: &Core,
    jvm: &(impl References + ?Sized),
    limited: &LimitedAccount,
    limit_bytes: u64,
    status: &LimitStatus,
    method_doors: Arc<MethodDoors>,
) {
    let name = jvm.account_name(&limited.account);
    let proof = if matches!(status.phase, Phase::Over { .. }) {
        status.covered
    } else {
        status.survived
    };
    let (live_bytes, standard_error_bytes) =
        (proof.left.bytes, proof.left.standard_error_bytes() as u64);
    let admit = limited.admit.clone();
    let table = &core.enforcement.details;
    let is_unchanged = table.get(limited.gate).is_some_and(|published| {
        published.as_ref().is_some_and(|published| {
            published.account == limited.account
                && (published.throw, published.limit_bytes) == (limited.throw, limit_bytes)
                && (published.live_bytes, published.standard_error_bytes)
                    == (live_bytes, standard_error_bytes)
                && published.admit == admit
                && published.status == limited.status
                && published.method_doors == method_doors
                && Arc::ptr_eq(&published.places, status.places.counts())
        })
    });
    if is_unchanged {
        return;
    }
    let Some(name) = name else {
        return;
    };
    let details = RefusalDetails {
        account: limited.account.clone(),
        name,
        throw: limited.throw,
        method_doors,
        limit_bytes,
        live_bytes,
        standard_error_bytes,
        admit,
        status: limited.status,
        places: status.places.counts().clone(),
    };
    table.set(limited.gate, Some(Arc::new(details)));
}
