//! Forgets what is gone: loaders, their purses, unloaded classes, ended scopes, and the purses of
//! package accounts that no policy names.
//!
//! Runs on the enforcer's thread, after collections. A number is given out again only when nothing can
//! refer to it.
//!
//! # Rules
//! 1. A loader's entry ends at its `ObjectFree`, or here if its weak reference is cleared. A twin ends
//!    here, because no object carries its tag (see [`super::entry_state`]). Both prove that the object
//!    is gone, so either refunds the displaced tag.
//! 2. The class entries of a loader ([`super::classes`]) end with the loader, while the loader's id
//!    still names that loader.
//! 3. A dead loader is forgotten when the directory has no child of it and its purse can be closed
//!    ([`crate::ledger::Ledger::close_purse`]).
//! 4. The purse of a package account is closed when the policy in force does not name the account and
//!    the classifier of neither side names the purse. A reload overwrites the side that is not in
//!    force, so the second reload after the account's removal frees its purse. At any time there are
//!    at most the package purses of two policies, and those that hold bytes.
//! 5. The purse of a scope is closed when the object that stood for the scope is gone, and that of a route when
//!    the loader of its service is.
//! 6. The directory, the table of loaders and the representatives forget the owner of a purse before
//!    its number is given back. This happens under the directory's lock. A reload takes the same lock
//!    when package accounts that come back get their purses.
//! 7. A class entry is recycled when no record names it.
//! 8. A purse that has native memory is kept until that is given back ([`crate::native_memory`]).

use std::collections::HashSet;

use crate::core::Core;
use crate::ledger::{Closed, PurseId};
use crate::ports::References;

use super::directory::{Directory, RoutesOf};
use super::loaders::LoaderId;

/// How many unloaded classes make a pass due if no loader has died. Also: how many purses a pass must
/// give back so that another one follows soon.
const MANY: usize = 1_000;

/// The counters that the last pass has seen, and its results.
#[derive(Debug, Default)]
pub struct Seen {
    loaders: u32,
    classes: u32,
    scopes: u32,
    /// Policies put in force.
    switches: u32,
    /// Whether the pass left something because a part of it is still held.
    left: bool,
    /// How many purses the pass gave back.
    given_back: usize,
}

impl Seen {
    /// Whether the pass gave back many purses, so that as many may be due again.
    pub fn did_much(&self) -> bool {
        self.given_back >= MANY
    }

    /// Whether another pass may find something to do.
    pub fn is_due(&self, core: &Core) -> bool {
        let identity = &core.identity;
        self.left
            || identity.loaders.deaths() != self.loaders
            || identity.scopes.deaths() != self.scopes
            || identity.switches() != self.switches
            || identity.classes.deaths().wrapping_sub(self.classes) >= MANY as u32
    }
}

/// Forgets loaders, purses, scopes and classes that are gone, in one pass. The enforcer's thread.
pub fn clean(core: &Core, java: &(impl References + ?Sized)) -> Seen {
    let identity = &core.identity;
    let (switches, scopes) = (identity.switches(), identity.scopes.deaths());
    end_twins(core, java);
    let (loaders, classes) = (identity.loaders.deaths(), identity.classes.deaths());
    let dead = identity.loaders.dead();
    if !dead.is_empty() {
        bury(core, java, &dead);
        identity.classes.end_with_loaders(
            |loader| identity.loaders.is_dead(loader),
            |displaced| core.freed(displaced),
        );
    }
    let (given_back, left) = close_purses(core, &dead);
    clean_classes(core);
    core.directory().give_back_room();
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
fn end_twins(core: &Core, java: &(impl References + ?Sized)) {
    for id in java.vanished_loaders() {
        if let Some(displaced) = core.identity.loaders.vanished(id) {
            core.freed(displaced);
        }
    }
}

/// Marks dead loaders in the directory and drops their weak references. Enters those that the loader
/// thread has not met.
fn bury(core: &Core, java: &(impl References + ?Sized), dead: &[LoaderId]) {
    let loaders = &core.identity.loaders;
    for &id in dead {
        let is_unmet = java.forget_loader(id);
        let mut directory = core.directory();
        if is_unmet {
            let purse = loaders.owner(id).purse();
            directory.enter_loader(id, purse.unwrap_or(PurseId::UNACCOUNTED));
        }
        directory.bury(id);
    }
}

/// Rules 3 to 6 and 8. Returns how many purses were given back, and whether some were left.
fn close_purses(core: &Core, dead: &[LoaderId]) -> (usize, bool) {
    let mut directory = core.directory();
    let ended = |directory: &Directory| {
        let mut purses = directory.scope_purses();
        purses.retain(|&purse| core.identity.scopes.is_dead(purse));
        purses
    };
    if dead.is_empty() && directory.disowned_purses().is_empty() && ended(&directory).is_empty() {
        return (0, false);
    }
    // Without a pass over the records, if all that could be closed is held by native memory: a pool may keep that for good.
    let is_used = |purse: &PurseId| core.native_memory.is_used_by(*purse);
    let of_loader = |id: &LoaderId| directory.loader(*id).map(|loader| loader.purse);
    if dead
        .iter()
        .all(|id| of_loader(id).is_some_and(|purse| is_used(&purse)))
        && directory.disowned_purses().iter().all(is_used)
        && ended(&directory).iter().all(is_used)
    {
        return (0, true);
    }
    drop(directory);
    let referenced = core.ledger.referenced_purses();
    directory = core.directory();

    let mut closed: Vec<Closed> = Vec::new();
    let mut accounts = HashSet::new();
    let mut close = |directory: &mut Directory, purse: PurseId| -> bool {
        if core.native_memory.is_used_by(purse) {
            return false;
        }
        let Some(last) = core.ledger.close_purse(purse, &referenced) else {
            return false;
        };
        let totals = &last.totals;
        accounts.extend(directory.close_purse(
            purse,
            totals.allocated_bytes,
            totals.allocated_objects,
            totals.exact,
        ));
        // The next owner of the number must not find the state of this account.
        let number = u32::from(purse.get());
        if let Some(gate) = core.enforcement.gates.get(number) {
            gate.close();
            core.enforcement.details.set(number, None);
            core.enforcement.statuses().ended(number);
        }
        core.native_memory.gates.close(number);
        core.identity.set_representative(purse, purse);
        core.identity.set_above(purse, None);
        core.counted_since.closed(purse);
        core.enforcement.routes.closed(purse);
        core.usages.closed(purse);
        closed.push(last);
        true
    };
    let mut left = false;
    // Scopes and routes first, because they keep their loaders.
    for purse in ended(&directory) {
        let is_closed = close(&mut directory, purse);
        if is_closed {
            core.identity.scopes.recycle(purse);
        }
        left |= !is_closed;
    }
    for &id in dead {
        for purse in directory.route_purses(RoutesOf::Service(id)) {
            left |= !close(&mut directory, purse);
        }
    }
    for &id in dead {
        // The next pass handles a loader that the loader thread is just entering.
        let purse = directory.loader(id).map(|loader| loader.purse);
        let forgotten = match purse.filter(|_| directory.is_childless(id)) {
            None => false,
            // It has no purse of its own, because all were in use.
            Some(PurseId::UNACCOUNTED) => {
                directory.remove_loader(id);
                true
            }
            Some(purse) => close(&mut directory, purse),
        };
        if forgotten {
            core.identity.loaders.recycle(id);
        }
        left |= !forgotten;
    }
    for purse in directory.disowned_purses() {
        // A purse that a class may still name waits for the next policy, which makes a pass due.
        if core.identity.is_claimed(purse) {
            continue;
        }
        let mut has_routes = false;
        for route in directory.route_purses(RoutesOf::Packages(purse)) {
            has_routes |= !close(&mut directory, route);
        }
        left |= has_routes || !close(&mut directory, purse);
    }
    // The closed purse may have stood for its account: choose another one.
    for account in accounts {
        for purse in directory.purses_of(&account) {
            let of_account = directory.representative(purse);
            core.identity.set_representative(purse, of_account);
        }
    }
    let given_back = closed.len();
    let purses: HashSet<PurseId> = closed.iter().map(|last| last.purse).collect();
    if !purses.is_empty() {
        (core.sites).forget(|purse, _| purses.contains(&purse));
    }
    for last in closed {
        core.ledger.give_back(last);
    }
    (given_back, left)
}

/// Rule 7.
fn clean_classes(core: &Core) {
    let dead = core.identity.classes.dead();
    if dead.is_empty() {
        return;
    }
    let highest = dead.iter().map(|id| id.0).max().unwrap_or(0);
    let mut named = vec![false; highest as usize + 1];
    core.ledger.scan(|record| {
        if let Some(named) = named.get_mut(record.class as usize) {
            *named = true;
        }
    });
    let gone: HashSet<u32> = (dead.iter().map(|id| id.0))
        .filter(|&id| !named[id as usize])
        .collect();
    core.sites.forget(|_, class| gone.contains(&class));
    let mut directory = core.directory();
    for id in dead.into_iter().filter(|id| gone.contains(&id.0)) {
        directory.forget_class(id);
        core.identity.classes.recycle(id);
    }
}
