//! Learns from evidence about routes: prices, dismissals and room, after each collection. On the enforcer's thread,
//! once in a turn; one pass over the records after a collection, and never in more than a hundredth of the time.
//!
//! # Which requests an object is held against
//! The objects born in the epochs from one mark up to another were allocated by the requests that came in between. A
//! mark notes the counters of an epoch's beginning; once a collection has decided on all that was born before it, the
//! price is learned up to that mark, and the next is set.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crate::core::Core;
use crate::enforce::gate::Gate;
use crate::identity::directory::RoutesOf;
use crate::ledger::{Epoch, PurseId};
use crate::sampling::standard_error_bytes;
use crate::sync::Ordering;

use super::learned::Shut;
use super::price::{Kept, Mark};
use super::room::BUDGET_SHARE;
use super::{DISMISSED_MS, Entry, KEPT_SHARE, Route, Routes};

/// The shortest time between two passes over the records, in milliseconds.
const PAUSE_MS: u64 = 250;
/// A pass that took so long is followed by a pause of as many times that.
const PAUSE_SHARE: u64 = 100;
/// If the routes that went in freely have together kept so many times what one may keep, all are dismissed.
const ALL_KEPT: u64 = 4;
/// Beside what evidence has shown to be garbage, so much of what the latest collection left free may be charged
/// until the next: the free bytes divided by this.
const HEAP_SHARE: u64 = 4;
/// Standard errors below an estimate that are exceeded in 95 % of cases.
const LOWER: f64 = 1.645;

/// A service whose evidence is there.
struct Proved {
    place: usize,
    /// The purse that stands for its account.
    account: PurseId,
    shut_from: Option<Epoch>,
    name: Arc<str>,
}

/// The survivors of a route, summed up in a pass over the records.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    at: (usize, usize),
    from: u32,
    upto: u32,
    shut_from: Option<Epoch>,
    kept: Kept,
    since_shut: Kept,
}

impl Routes {
    /// Learns from the latest collection, if there is something to learn. `now_ms` is the uptime. See the module.
    pub fn learn(&self, core: &Core, now_ms: u64) {
        if !self.in_use() {
            return;
        }
        let mut proved = self.proved(core, now_ms);
        if proved.is_empty() || now_ms < self.next_pass_ms.load(Ordering::Relaxed) {
            return;
        }
        {
            let directory = core.directory();
            for service in &mut proved {
                service.name = directory.account_name(service.account);
            }
        }
        let begun = Instant::now();
        let (found, live) = self.pass(core, &proved);
        let took_ms = begun.elapsed().as_millis() as u64;
        let pause_ms = PAUSE_MS.max(took_ms * PAUSE_SHARE);
        self.next_pass_ms
            .store(now_ms + pause_ms, Ordering::Relaxed);
        self.apply(core, &proved, &found, &live);
    }

    /// Follows the doors, sets marks, and finds the services whose marks are proved.
    fn proved(&self, core: &Core, now_ms: u64) -> Vec<Proved> {
        let epochs = core.ledger.epochs();
        let (current, boundary) = (epochs.current(), epochs.boundary());
        let mut book = self.book();
        let mut proved = Vec::new();
        for (&place, entry) in &mut book.services {
            let Some(service) = self.services[place].get() else {
                continue;
            };
            let purse = service.routes.iter().find_map(Route::purse);
            let Some(account) = purse.map(|purse| core.identity.representative(purse)) else {
                continue;
            };
            let gate = core.enforcement.gates.get(account);
            let is_shut = gate.is_some_and(|gate| gate.word().0.shut);
            if !is_shut {
                service.room.empty();
            }
            entry.follow(is_shut, current, now_ms);
            let is_decided = |epoch: u32| boundary.is_some_and(|upto| upto.get() + 1 >= epoch);
            // The mark that is waiting, unless a later one is decided already.
            if current.get() > entry.decided
                && (entry.pending.is_none() || is_decided(current.get()))
            {
                let changes = core.ledger.intervals().changes();
                let marks = service.routes.iter().map(|route| {
                    let totals = route.purse().map(|purse| core.ledger.totals(purse));
                    let totals = totals.unwrap_or_default();
                    Mark {
                        epoch: current.get(),
                        now_ms,
                        calls: route.came_in_before(current),
                        allocated_bytes: totals.allocated_bytes,
                        allocated_variance: totals.allocated_variance,
                        changes,
                    }
                });
                entry.pending = Some(marks.collect());
            }
            let marks = entry.pending.as_ref().and_then(|marks| marks.first());
            if marks.is_some_and(|mark| is_decided(mark.epoch)) {
                proved.push(Proved {
                    place,
                    account: PurseId::new(account as u16),
                    shut_from: entry.shut.map(|shut| shut.from),
                    name: "".into(),
                });
            }
        }
        proved
    }

    /// Returns the survivors of each route's windows, and the live bytes of the accounts. No lock is held while the
    /// records are read.
    fn pass(&self, core: &Core, proved: &[Proved]) -> (Vec<Found>, HashMap<u32, u64>) {
        let mut found = Vec::new();
        let mut of_purse = vec![0u32; 1 << u16::BITS];
        let mut live: HashMap<u32, u64> = HashMap::new();
        {
            let book = self.book();
            for service in proved {
                live.insert(service.account.get().into(), 0);
                let entry = book.services.get(&service.place);
                let routes = self.services[service.place].get();
                let Some((entry, routes)) = entry.zip(routes) else {
                    continue;
                };
                let Some(marks) = &entry.pending else {
                    continue;
                };
                for (at, mark) in marks.iter().enumerate() {
                    let purse = routes.routes[at].purse();
                    let Some((name, purse)) = entry.names[at].as_ref().zip(purse) else {
                        continue;
                    };
                    found.push(Found {
                        at: (service.place, at),
                        from: name.learned.windows.from().epoch,
                        upto: mark.epoch,
                        shut_from: service.shut_from,
                        ..Found::default()
                    });
                    of_purse[usize::from(purse.get())] = found.len() as u32;
                }
            }
        }
        core.ledger.scan(|record| {
            if !record.survived {
                return;
            }
            let account = core.identity.representative(record.payer);
            let above = core.identity.above(record.payer);
            let above = above.map(|purse| u32::from(purse.get()));
            for account in [Some(account), above].into_iter().flatten() {
                if let Some(live) = live.get_mut(&account) {
                    *live = live.saturating_add(record.live.bytes);
                }
            }
            let index = of_purse[usize::from(record.payer.get())] as usize;
            let Some(found) = index.checked_sub(1).and_then(|at| found.get_mut(at)) else {
                return;
            };
            let birth = record.birth.get();
            let add = |kept: &mut Kept| {
                kept.bytes = kept.bytes.saturating_add(record.live.bytes);
                kept.variance = kept.variance.saturating_add(record.live.variance);
            };
            if birth >= found.from && birth < found.upto {
                add(&mut found.kept);
            }
            if found.shut_from.is_some_and(|from| record.birth >= from) {
                add(&mut found.since_shut);
            }
        });
        (found, live)
    }

    fn apply(&self, core: &Core, proved: &[Proved], found: &[Found], live: &HashMap<u32, u64>) {
        let terms: Vec<Terms> = proved
            .iter()
            .map(|one| Terms::of(core, one, live))
            .collect();
        let mut book = self.book();
        for (service, terms) in proved.iter().zip(terms) {
            let Some(routes) = self.services[service.place].get() else {
                continue;
            };
            let of_account = (self.services.iter().filter_map(|other| other.get()))
                .filter_map(|other| other.routes.iter().find_map(Route::purse))
                .filter(|&purse| {
                    core.identity.representative(purse) == u32::from(service.account.get())
                })
                .count()
                .max(1) as u64;
            let Some(entry) = book.services.get_mut(&service.place) else {
                continue;
            };
            let Some(marks) = entry.pending.take() else {
                continue;
            };
            entry.decided = marks.first().map_or(0, |mark| mark.epoch);
            let most_inside = routes.room.take_most_inside();
            let of_service = found.iter().filter(|found| found.at.0 == service.place);
            let mut all_kept = 0u64;
            for found in of_service.clone() {
                let at = found.at.1;
                let route = &routes.routes[at];
                let Some((name, purse)) = entry.names[at].as_mut().zip(route.purse()) else {
                    continue;
                };
                let mark = marks[at];
                let learned = &mut name.learned;
                if mark.epoch < learned.windows.from().epoch {
                    continue;
                }
                let widest = (core.ledger.intervals()).widest_since(learned.windows.from().changes);
                let interval = widest.max(core.ledger.passed_over_bytes(purse));
                learned.price = learned.windows.price(mark, found.kept, interval);
                learned.windows.turn(mark, interval);
                if entry.shut.is_some() && learned.was_free {
                    let kept = at_least(found.since_shut).saturating_sub(most_inside);
                    all_kept = all_kept.saturating_add(kept);
                    learned.dismissed |= kept > terms.limit_bytes / KEPT_SHARE;
                }
            }
            // Rule 4 of the calls.
            let may_be_cheap = matches!(entry.of, RoutesOf::Service(_));
            let mut shown = 0u64;
            let none_is_cheap = all_kept > ALL_KEPT * (terms.limit_bytes / KEPT_SHARE);
            for found in of_service {
                let at = found.at.1;
                let route = &routes.routes[at];
                let Some((name, purse)) = entry.names[at].as_mut().zip(route.purse()) else {
                    continue;
                };
                let learned = &mut name.learned;
                learned.dismissed |= none_is_cheap && learned.was_free;
                let cheap = may_be_cheap && learned.price.is_cheap() && !learned.dismissed;
                learned.was_free |= cheap;
                let price = learned.price;
                route
                    .allocated_bytes
                    .store(price.allocated_bytes, Ordering::Relaxed);
                route.peak_bytes.store(price.peak_bytes, Ordering::Relaxed);
                let totals = core.ledger.totals(purse);
                let charged_before = route
                    .base_charged
                    .swap(totals.charged.bytes, Ordering::Relaxed);
                let allocated_before =
                    (route.base_allocated).swap(totals.allocated_bytes, Ordering::Relaxed);
                if cheap {
                    let allocated = totals.allocated_bytes.saturating_sub(allocated_before);
                    let freed = (allocated + charged_before).saturating_sub(totals.charged.bytes);
                    shown = shown.saturating_add(freed);
                }
                route.base_calls.store(route.came_in(), Ordering::Relaxed);
                route.cheap.store(cheap.into(), Ordering::Release);
            }
            let budget = terms.limit_bytes / BUDGET_SHARE / of_account;
            // Collections may be seconds apart, and each frees what came since the one before.
            let shown =
                shown.saturating_add(core.heap.free_after_gc_bytes() / HEAP_SHARE / of_account);
            let left = terms.left_bytes / of_account;
            routes.room.set(left, budget, shown);
        }
    }
}

/// The limit of an account, and the part of limit and reserve that is left for requests that go in freely.
struct Terms {
    limit_bytes: u64,
    left_bytes: u64,
}

impl Terms {
    fn of(core: &Core, service: &Proved, live: &HashMap<u32, u64>) -> Terms {
        let account = u32::from(service.account.get());
        let gate = core.enforcement.gates.get(account);
        let limit_bytes = gate.map_or(0, Gate::limit_bytes);
        let reserve = core.enforcement.status(&service.name).reserve_bytes;
        let live = live.get(&account).copied().unwrap_or(0);
        let most = limit_bytes.saturating_add(reserve.unwrap_or(0));
        Terms {
            limit_bytes,
            left_bytes: most.saturating_sub(live),
        }
    }
}

/// The least that was kept, with 95 % confidence.
fn at_least(kept: Kept) -> u64 {
    (kept.bytes as f64 - LOWER * standard_error_bytes(kept.variance)).max(0.0) as u64
}

impl Entry {
    /// The door of the service is shut, or open. What was dismissed is so for a while after the door opens.
    fn follow(&mut self, is_shut: bool, current: Epoch, now_ms: u64) {
        match self.shut {
            None if is_shut => {
                self.shut = Some(Shut {
                    since_ms: now_ms,
                    from: current,
                });
            }
            Some(shut) if !is_shut && now_ms >= shut.since_ms + DISMISSED_MS => {
                self.shut = None;
                for name in self.names.iter_mut().flatten() {
                    name.learned.dismissed = false;
                    name.learned.was_free = false;
                }
            }
            _ => {}
        }
    }
}
