//! Makes routes, and lets requests of cheap ones in.

use super::learned::Learned;
use super::{Book, Charged, MAX_PEAK, NUMBER_BITS, Name, PEAK_UNIT_BYTES, REST, Routes, Wanted};
use crate::core::Core;
use crate::identity::directory::RoutesOf;
use crate::ledger::PurseId;
use crate::sync::Ordering;

impl Routes {
    /// Whether a request may go in at the shut door of this account because its route is cheap: the ticket for
    /// [`Routes::ended`]. Some atomics for each route of the service; on its thread.
    pub fn let_in(&self, core: &Core, number: u32, account: u32) -> Option<u64> {
        let (service, route) = self.route(number)?;
        let purse = route.purse()?;
        if route.cheap.load(Ordering::Acquire) == 0
            || core.identity.representative(purse) != account
        {
            return None;
        }
        let intervals = core.ledger.intervals();
        let interval_bytes = intervals.bytes(intervals.current());
        let mut charged = Charged::default();
        for route in &service.routes {
            if route.cheap.load(Ordering::Relaxed) != 0 {
                let more = route.charged(&core.ledger, interval_bytes);
                charged.excess_bytes = charged.excess_bytes.saturating_add(more.excess_bytes);
                charged.all_bytes = charged.all_bytes.saturating_add(more.all_bytes);
            }
        }
        let peak = route.peak_bytes.load(Ordering::Relaxed);
        let units = peak.div_ceil(PEAK_UNIT_BYTES).clamp(1, MAX_PEAK);
        (service.room)
            .enter(units * PEAK_UNIT_BYTES, charged)
            .then_some(units << NUMBER_BITS | u64::from(number))
    }

    /// Makes the routes that were asked for. The metadata thread.
    pub fn make_wanted(&self, core: &Core) {
        while let Some(wanted) = self.wanted.pop() {
            self.make(core, wanted);
        }
    }

    fn make(&self, core: &Core, wanted: Wanted) {
        let owner = match wanted.of {
            RoutesOf::Service(loader) => core.identity.loaders.owner(loader).any_purse(),
            RoutesOf::Packages(purse) => Some(purse),
        };
        let Some(owner) = owner else {
            return;
        };
        let mut directory = core.directory();
        if !directory.may_have_routes(wanted.of) {
            return;
        }
        let mut book = self.book();
        let Some(place) = book.place_of(wanted.of) else {
            return;
        };
        let routes = self.services[place].get_or_init(Box::default);
        let Book {
            services, of_purse, ..
        } = &mut *book;
        let Some(entry) = services.get_mut(&place) else {
            return;
        };
        // The rest first: there must be a place for what finds none.
        for name in [REST, wanted.route.as_str()] {
            if entry.find(place, name).is_some() {
                continue;
            }
            let at = entry.names.iter().position(Option::is_none);
            let (Some(at), Some(purse)) = (at, core.ledger.open_purse()) else {
                entry.is_full = true;
                return;
            };
            // As the enforcer will set it from the directory.
            let account = PurseId::new(core.identity.representative(owner) as u16);
            core.identity.set_representative(purse, account);
            directory.enter_route(purse, wanted.of);
            let current = core.ledger.epochs().current();
            entry.names[at] = Some(Name {
                route: name.to_owned(),
                learned: Learned::begin(current, core.ledger.intervals().changes()),
            });
            of_purse.insert(purse, (place, at));
            routes.routes[at].begin(purse);
            self.in_use.store(true, Ordering::Relaxed);
        }
    }
}
