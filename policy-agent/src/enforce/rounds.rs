//! The warden's round: looks at every account that has a limit, moves its state, and tells
//! its threads.
//!
//! A round reads the directory when it has changed, the charge of each limited account
//! always, and the records only when a collection has moved a boundary and some account is
//! near its limit. What it makes of them is [`super::round`]; here is what that needs of the
//! agent: the accounts, their names as Java strings, the log of refusals.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy_config::Mode;

use crate::agent::Agent;
use crate::identity::naming;
use crate::jvm::errors::Errors;
use crate::jvm::java::{Global, Jni};
use crate::jvm::study;
use crate::ledger::PurseId;
use crate::report::Kind;

use super::docket::Case;
use super::evidence::Wish;
use super::round::Round;
use super::state::Phase;
use super::terms::Terms;
use super::visit::{Around, Limited};

/// What the warden carries from round to round.
pub(crate) struct Rounds {
    version: u64,
    enforced: bool,
    round: Round,
    names: Names,
}

/// Names as Java strings, of accounts that have a limit.
type Names = HashMap<Arc<str>, Arc<Global>>;

impl Rounds {
    pub(crate) fn new() -> Rounds {
        Rounds {
            version: 0,
            enforced: false,
            round: Round::default(),
            names: Names::new(),
        }
    }

    /// Goes round once. What evidence is wanted, and when to look again at the latest.
    /// `starved` tells that no evidence can be asked for now.
    pub(crate) fn turn(
        &mut self,
        agent: &Agent,
        jni: &Jni,
        now: Instant,
        starved: bool,
    ) -> (Wish, Duration) {
        self.read_directory(agent, jni);
        let around = Around {
            ledger: &agent.ledger,
            gates: &agent.enforcement.gates,
            free_heap_bytes: (agent.heap_max_bytes())
                .saturating_sub(agent.heap_used_after_gc_bytes()),
            max_heap_bytes: agent.heap_max_bytes(),
            starved,
            enforced: self.enforced && agent.lost().is_none(),
            test_refuse: agent.options().test_refuse,
            now,
        };
        let names = &mut self.names;
        let mut docket = agent.enforcement.docket();
        let wanted = (self.round).turn(&around, &mut docket, &mut |limited, limit_bytes, case| {
            publish_terms(agent, jni, names, limited, limit_bytes, case);
        });
        drop(docket);
        self.tell_refusals(agent, jni, now);
        wanted
    }

    /// Of the accounts with limits, the smallest.
    pub(crate) fn smallest_limit_bytes(&self) -> Option<u64> {
        let limits = self.round.limited().iter();
        limits.filter_map(|limited| limited.limit_bytes).min()
    }

    /// Whether the gate of any account says that it is over.
    pub(crate) fn is_any_over(&self, agent: &Agent) -> bool {
        let gates = &agent.enforcement.gates;
        let mut limited = self.round.limited().iter();
        limited.any(|one| gates.get(one.gate).is_some_and(|gate| gate.word().0.over))
    }

    /// Reads the accounts anew if anything about them has changed.
    fn read_directory(&mut self, agent: &Agent, jni: &Jni) {
        let directory = agent.directory();
        if directory.version() == self.version {
            return;
        }
        self.version = directory.version();
        let policy = directory.policy().clone();
        let max_heap = agent.heap_max_bytes();
        self.enforced = policy.enforcement.mode == Mode::Enforce;
        let mask_bytes = policy.enforcement.mask.resolve(max_heap);
        (agent.enforcement).set_mask_bytes(mask_bytes.unwrap_or(u64::MAX));
        let limited = directory
            .accounts()
            .filter_map(|(account, facts)| {
                // A library has no charges of its own to limit.
                let rule = (facts.kind != Kind::Library)
                    .then(|| policy.accounts.get(facts.rule?))
                    .flatten()?;
                let limited = Limited {
                    account: account.clone(),
                    gate: u32::from(facts.purses.first()?.get()),
                    purses: facts.tree().collect(),
                    limit_bytes: rule.limit.resolve(max_heap),
                    soft_limit_bytes: rule.soft_limit.resolve(max_heap),
                    throw: rule.throw,
                };
                (limited.limit_bytes.is_some() || limited.soft_limit_bytes.is_some())
                    .then_some(limited)
            })
            .collect();
        let representatives: Vec<_> = directory.representatives().collect();
        let aboves: HashMap<PurseId, PurseId> = directory.aboves().collect();
        drop(directory);
        let publish = || {
            for (purse, first) in representatives {
                agent.identity.set_representative(purse, first);
                let above = aboves.get(&purse).copied();
                agent.identity.set_above(purse, above);
            }
        };
        let enforcement = &agent.enforcement;
        let closed = (self.round).adopt(
            limited,
            &agent.ledger,
            &mut enforcement.docket(),
            &enforcement.gates,
            publish,
        );
        for number in closed {
            enforcement.terms.set(number, None);
        }
        let limited = self.round.limited();
        let gone: Vec<Arc<str>> = (self.names.iter())
            .filter(|(account, name)| {
                Arc::strong_count(name) == 1 && !limited.iter().any(|l| l.account == **account)
            })
            .map(|(account, _)| account.clone())
            .collect();
        for account in gone {
            if let Some(name) = self.names.remove(&account).and_then(Arc::into_inner) {
                Errors::forget_account_name(jni, name);
            }
        }
    }

    /// Logs what was refused since the last round.
    fn tell_refusals(&mut self, agent: &Agent, jni: &Jni, now: Instant) {
        while let Some(refused) = agent.enforcement.refused.pop() {
            let thread = (refused.thread.as_ref())
                .and_then(|thread| thread.upgrade(jni))
                .and_then(|thread| thread.get_named("name", "Ljava/lang/String;")?.text())
                .map(|name| naming::printable(&name));
            let frame = (refused.class.as_ref())
                .and_then(|class| class.upgrade(jni))
                .and_then(|class| study::name_of(&agent.tools, &class, refused.frame))
                .map(|name| naming::printable(&name));
            let docket = agent.enforcement.docket();
            let history = (docket.case(&refused.terms.account))
                .map(|case| case.history(now).to_string())
                .unwrap_or_default();
            drop(docket);
            self.round.logbook.refused(
                &refused,
                thread.as_deref(),
                frame.as_deref(),
                &history,
                now,
            );
            for weak in [refused.thread, refused.class].into_iter().flatten() {
                jni.release(weak);
            }
        }
    }
}

/// Publishes what a refusal says, where it has changed.
fn publish_terms(
    agent: &Agent,
    jni: &Jni,
    names: &mut Names,
    limited: &Limited,
    limit_bytes: u64,
    case: &Case,
) {
    let proof = if matches!(case.phase, Phase::Over { .. }) {
        case.covered
    } else {
        case.survived
    };
    let (live_bytes, standard_error_bytes) =
        (proof.left.bytes, proof.left.standard_error_bytes() as u64);
    let table = &agent.enforcement.terms;
    let are_the_same = table.get(limited.gate).is_some_and(|said| {
        said.as_ref().is_some_and(|said| {
            said.account == limited.account
                && (said.throw, said.limit_bytes) == (limited.throw, limit_bytes)
                && (said.live_bytes, said.standard_error_bytes)
                    == (live_bytes, standard_error_bytes)
        })
    });
    if are_the_same {
        return;
    }
    if !names.contains_key(&limited.account) {
        let Some(name) = Errors::account_name(jni, &limited.account) else {
            return;
        };
        names.insert(limited.account.clone(), Arc::new(name));
    }
    let terms = Terms {
        account: limited.account.clone(),
        name: names[&limited.account].clone(),
        throw: limited.throw,
        limit_bytes,
        live_bytes,
        standard_error_bytes,
    };
    table.set(limited.gate, Some(Arc::new(terms)));
}
