//! Forgetting what is gone: loaders, their purses, unloaded classes, and the purses of package
//! accounts that no policy names.
//!
//! On the warden's thread, after collections. An id is given out again only when nothing can
//! refer to it.
//!
//! # Rules
//! 1. A loader's entry ends by its `ObjectFree`, or here, where its weak reference is found
//!    cleared: that is how a twin ends, whose tag no object carries (see [`super::life`]). Both
//!    say the same, that the object is gone; so the displaced tag is refunded at either.
//! 2. With a loader end the entries of its classes ([`super::classes`]), while the loader's id
//!    still means that loader.
//! 3. A dead loader is forgotten when no child of it is left in the directory and its purse can
//!    be closed ([`crate::ledger::Ledger::close_purse`]).
//! 4. The purse of a package account is closed when the policy in force does not name the
//!    account and neither side's classifier names the purse. A reload overwrites the side that
//!    is not in force, so the one after the account's removal sets its purse free: at any time
//!    there are at the most the package purses of two policies, and those that hold bytes.
//! 5. The purse of a scope is closed when the object that stood for the scope is gone.
//! 6. The directory, the table of loaders and the representatives forget the owner of a purse
//!    before its number is given back; all of that under the directory's lock, under which a
//!    reload takes the purses of package accounts that come back.
//! 7. A class entry is recycled when no record names it.

use std::collections::HashSet;

use crate::agent::Agent;
use crate::jvm::java::Jni;
use crate::ledger::{Closed, PurseId};

use super::directory::Directory;
use super::loaders::LoaderId;

/// Unloaded classes that make a pass worth while without a loader's death, and purses given
/// back that make it worth while to look again soon.
const MANY: usize = 1_000;

/// What was already gone at the last pass.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    loaders: u32,
    classes: u32,
    scopes: u32,
    /// Policies put in force.
    switches: u32,
    /// Something was left, because something of it is still held.
    left: bool,
    /// Purses that the pass gave back.
    given_back: usize,
}

impl Seen {
    /// Whether the pass was worth its while: there may be as much to do again.
    pub(crate) fn did_much(&self) -> bool {
        self.given_back >= MANY
    }

    /// Whether a pass would find something.
    pub(crate) fn is_due(&self, agent: &Agent) -> bool {
        let identity = &agent.identity;
        self.left
            || identity.loaders.deaths() != self.loaders
            || identity.scopes.deaths() != self.scopes
            || identity.switches() != self.switches
            || identity.classes.deaths().wrapping_sub(self.classes) >= MANY as u32
    }
}

/// One pass: forgets loaders, purses and classes that are gone.
pub(crate) fn clean(agent: &Agent, jni: &Jni) -> Seen {
    let identity = &agent.identity;
    let (switches, scopes) = (identity.switches(), identity.scopes.deaths());
    end_twins(agent, jni);
    let (loaders, classes) = (identity.loaders.deaths(), identity.classes.deaths());
    let dead = identity.loaders.dead();
    if !dead.is_empty() {
        bury(agent, jni, &dead);
        identity.classes.end_with_loaders(
            |loader| identity.loaders.is_dead(loader),
            |displaced| agent.freed(displaced),
        );
    }
    let (given_back, left) = close_purses(agent, &dead);
    clean_classes(agent);
    Seen {
        loaders,
        classes,
        scopes,
        switches,
        left,
        given_back,
    }
}

/// Rule 1.
fn end_twins(agent: &Agent, jni: &Jni) {
    let vanished = agent.directory().vanished(|weak| jni.is_cleared(weak));
    for id in vanished {
        if let Some(displaced) = agent.identity.loaders.vanished(id) {
            agent.freed(displaced);
        }
    }
}

/// Enters the dead that the resolver has not met, and takes the weak references of all.
fn bury(agent: &Agent, jni: &Jni, dead: &[LoaderId]) {
    let loaders = &agent.identity.loaders;
    for &id in dead {
        let unmet = loaders.meet(id);
        let mut directory = agent.directory();
        if unmet.is_some() {
            let purse = loaders.verdict(id).purse();
            directory.enter_loader(id, purse.unwrap_or(PurseId::UNACCOUNTED), None);
        }
        let met = directory.bury(id);
        drop(directory);
        for weak in unmet.into_iter().chain(met) {
            jni.release(weak);
        }
    }
}

/// Rules 3 to 6. Returns how many purses were given back, and whether some were left.
fn close_purses(agent: &Agent, dead: &[LoaderId]) -> (usize, bool) {
    let mut directory = agent.directory();
    let ended = |directory: &Directory| {
        let mut purses = directory.scope_purses();
        purses.retain(|&purse| agent.identity.scopes.is_dead(purse));
        purses
    };
    if dead.is_empty() && directory.disowned_purses().is_empty() && ended(&directory).is_empty() {
        return (0, false);
    }
    drop(directory);
    let referenced = agent.ledger.referenced_purses();
    directory = agent.directory();

    let mut closed: Vec<Closed> = Vec::new();
    let mut accounts = HashSet::new();
    let mut close = |directory: &mut Directory, purse: PurseId| -> bool {
        let Some(last) = agent.ledger.close_purse(purse, &referenced) else {
            return false;
        };
        let totals = &last.totals;
        accounts.extend(directory.close_purse(
            purse,
            totals.allocated_bytes,
            totals.allocated_objects,
        ));
        // Whoever opens the number next must not find what was said of this account.
        let number = u32::from(purse.get());
        if let Some(gate) = agent.enforcement.gates.get(number) {
            gate.close();
            agent.enforcement.terms.set(number, None);
            agent.enforcement.docket().ended(number);
        }
        agent.identity.set_representative(purse, purse);
        agent.identity.set_above(purse, None);
        closed.push(last);
        true
    };
    let mut left = false;
    // Before their loaders, which they keep.
    for purse in ended(&directory) {
        let is_closed = close(&mut directory, purse);
        if is_closed {
            agent.identity.scopes.recycle(purse);
        }
        left |= !is_closed;
    }
    for &id in dead {
        // One that the resolver is just entering is for the next pass.
        let purse = directory.loader(id).map(|loader| loader.purse);
        let forgotten = match purse.filter(|_| directory.is_childless(id)) {
            None => false,
            // It found all purses in use: there is none of its own.
            Some(PurseId::UNACCOUNTED) => {
                directory.remove_loader(id);
                true
            }
            Some(purse) => close(&mut directory, purse),
        };
        if forgotten {
            agent.identity.loaders.recycle(id);
        }
        left |= !forgotten;
    }
    for purse in directory.disowned_purses() {
        // One that a class may still name waits for the next policy, which makes a pass due.
        if !agent.identity.is_claimed(purse) {
            left |= !close(&mut directory, purse);
        }
    }
    // A purse that stood for its account does so no longer.
    for account in accounts {
        for purse in directory.purses_of(&account) {
            let of_account = directory.representative(purse);
            agent.identity.set_representative(purse, of_account);
        }
    }
    let given_back = closed.len();
    for last in closed {
        agent.ledger.give_back(last);
    }
    (given_back, left)
}

/// Rule 7.
fn clean_classes(agent: &Agent) {
    let dead = agent.identity.classes.dead();
    if dead.is_empty() {
        return;
    }
    let highest = dead.iter().map(|id| id.0).max().unwrap_or(0);
    let mut named = vec![false; highest as usize + 1];
    agent.ledger.scan(|record| {
        if let Some(named) = named.get_mut(record.class as usize) {
            *named = true;
        }
    });
    let mut directory = agent.directory();
    for id in dead.into_iter().filter(|id| !named[id.0 as usize]) {
        directory.forget_class(id);
        agent.identity.classes.recycle(id);
    }
}
