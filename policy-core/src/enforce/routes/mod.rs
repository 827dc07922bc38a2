//! Routes: what requests of each kind cost, and which go in at a shut door because they keep nothing; and what calls of
//! methods with a door cost, for accounts of packages ([`calls`]). These go in as probes.
//!
//! A *route* of a service is the method of a request and the first segments of its path ([`fold`]). Each has
//! a purse of its own in the ledger, which belongs to the account of its service: a thread that serves a
//! request has the route's number in its cell, and what the service would pay is charged to the route's
//! purse. So who pays, and the sum of the account, are what they would be without routes, and live bytes and
//! errors come from the ledger as for everything else. [`price`] learns from them what a request keeps;
//! [`room`] is the room for requests of cheap routes while the door is shut; [`learning`] brings them together
//! after each collection.
//!
//! # Rules
//! 1. At most [`MAX_NAMED`] routes of a service have a name, the rest is one ([`REST`]); at most
//!    [`MAX_SERVICES`] services have routes, others none. A purse and its place end with their service.
//! 2. A route is made by the metadata thread, which enters its purse in the directory before any thread can be
//!    charged to it. Threads of requests ask without waiting ([`Routes::find`]).
//! 3. A request counts for its route when it comes to the door ([`Routes::came`]). What was born in an epoch is
//!    held against the requests that came before its end: the first request after a collection notes how many
//!    came before.
//! 4. A route of requests is cheap if [`price::Price::is_cheap`]. At a shut door its requests go in as [`Routes::let_in`]
//!    says. The price is learned anew at each evidence, also while the door is shut.
//! 5. A route that has kept more than 1/[`KEPT_SHARE`] of the limit since the door was shut is not cheap until the
//!    door opens, and for [`DISMISSED_MS`] at the least; if the routes of the service together have kept four times
//!    that, none is.
//!
//! # What a hostile client can do
//! Simulated in `attacks.rs`; the limit is *L*, and what is gained is held beyond what the account held when the
//! door was shut.
//! * *Many small requests to a route that grows, then large ones.* The large ones are charged more than a request
//!   of this route is known to allocate: beyond L/32 nobody goes in freely before the next evidence. That
//!   evidence finds what was kept, and the route is dismissed. Gained: L/32, what chance allows (two deviations,
//!   a few sampling intervals), and what the requests have that went in until the charges showed (as many as fit by
//!   the known peak).
//! * *Requests that keep what they threw away before.* No excess shows before the next evidence. Gained: what is left
//!   of the reserve, what the latest evidence has shown to be garbage of these routes, and a quarter of the free heap, at
//!   the most.
//! * *Requests that keep just below 1 KiB.* They are cheap, and go in: until they have kept L/64, then the route is
//!   dismissed; by all routes together L/16.
//! * *Many cheap reads that hide a growing use of the same route.* The price is a mean over at most two windows, and
//!   the dismissal looks at the sum, not at the mean: as above.
//! * *Refused requests that make a route look cheap.* They do not count for a price.
//! * *Random paths and methods.* They fill the 63 names, then all that is new is one route, which keeps what they all
//!   keep. Known routes stay as they are. What has no route yet is a probe, as without routes. A client that fills
//!   the names before the real routes come in takes the distinction away from them, no more: they are probes then.
//! * *Growing through asynchronous work on other threads.* What a thread does without a request of this service is
//!   charged to the service and to no route, and the account stays over: the route looks cheap, and each request that
//!   goes in may start more. The price sees no part of that; the errors beyond the reserve do.

pub mod calls;
pub mod fold;
mod learned;
pub mod learning;
mod making;
pub mod price;
pub mod room;

#[cfg(all(test, not(loom)))]
mod attacks;
#[cfg(all(test, not(loom)))]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};

use crossbeam_queue::ArrayQueue;
use policy_config::DoorMethod;

use crate::identity::directory::RoutesOf;
use crate::identity::loaders::LoaderId;
use crate::ledger::{Epoch, Ledger, PurseId};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

use learned::{Learned, Shut};
use price::{Mark, Price};
use room::{Charged, Room, Spent};

/// Routes of a service that have a name.
pub const MAX_NAMED: usize = 63;
/// Services that have routes.
pub const MAX_SERVICES: usize = 256;
/// The route of all requests that have no route of their own.
pub const REST: &str = "_other";
/// A route that has kept more than the limit divided by this since the door was shut is dismissed.
pub const KEPT_SHARE: u64 = 64;
/// How long a dismissed route is not cheap at the least, in milliseconds.
pub const DISMISSED_MS: u64 = 60_000;

const PLACES: usize = MAX_NAMED + 1;
/// Routes that wait to be made.
const MAX_WANTED: usize = 256;
/// Tickets are below the tickets of probes.
const PEAK_UNIT_BYTES: u64 = 1 << 10;
const NUMBER_BITS: u32 = 16;
const MAX_PEAK: u64 = (1 << 40) - 1;

/// All routes. See the module.
pub struct Routes {
    services: Box<[OnceLock<Box<Service>>]>,
    book: Mutex<Book>,
    wanted: ArrayQueue<Wanted>,
    in_use: AtomicBool,
    /// When there may be another pass over the records, as the uptime in milliseconds.
    next_pass_ms: AtomicU64,
}

/// The routes of one service, as threads of requests see them.
#[derive(Debug)]
struct Service {
    /// The first is [`REST`].
    routes: [Route; PLACES],
    room: Room,
}

/// One route.
#[derive(Debug, Default)]
struct Route {
    /// 0: there is none.
    purse: AtomicU32,
    /// Requests that came to the door.
    calls: AtomicU64,
    /// Those of them that were turned away.
    refused: AtomicU64,
    /// The epoch of the latest request, plus one, and how many had come in before its first.
    marked: AtomicU64,
    before: AtomicU64,
    /// Whether its requests may go in at a shut door, and what the price says of them.
    cheap: AtomicU32,
    allocated_bytes: AtomicU64,
    peak_bytes: AtomicU64,
    /// The charge and the requests at the latest evidence.
    base_charged: AtomicU64,
    base_calls: AtomicU64,
    /// The bytes that it had ever allocated by then.
    base_allocated: AtomicU64,
}

/// The names, numbers and prices of all routes. Agent threads wait for its lock; threads of requests and calls do not.
#[derive(Default)]
struct Book {
    /// The place of each service, and of each account of packages.
    places: HashMap<RoutesOf, usize>,
    services: HashMap<usize, Entry>,
    /// The place of each route, by its purse.
    of_purse: HashMap<PurseId, (usize, usize)>,
}

struct Entry {
    of: RoutesOf,
    /// By place.
    names: Vec<Option<Name>>,
    /// No purse was to be had.
    is_full: bool,
    shut: Option<Shut>,
    /// Counters at the beginning of an epoch whose evidence is not there yet.
    pending: Option<Vec<Mark>>,
    /// The epoch up to which prices are learned.
    decided: u32,
}

struct Name {
    route: String,
    learned: Learned,
}

/// A request of a route that does not exist yet.
struct Wanted {
    of: RoutesOf,
    route: String,
}

/// The answer of [`Routes::find`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The number of the route, never 0.
    Known(u32),
    /// The number of the route of the rest: no more routes get a name.
    Rest(u32),
    /// Not yet. Ask again.
    Later,
    /// The service has no routes.
    None,
}

/// A route, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub route: String,
    /// Requests that came to the door.
    pub calls: u64,
    /// Those of them that were turned away.
    pub refused: u64,
    /// The measured cost of one of its requests.
    pub price: Price,
}

impl Default for Routes {
    fn default() -> Routes {
        Routes {
            services: (0..MAX_SERVICES).map(|_| OnceLock::new()).collect(),
            book: Mutex::default(),
            wanted: ArrayQueue::new(MAX_WANTED),
            in_use: AtomicBool::new(false),
            next_pass_ms: AtomicU64::new(0),
        }
    }
}

impl Default for Service {
    fn default() -> Service {
        Service {
            routes: std::array::from_fn(|_| Route::default()),
            room: Room::default(),
        }
    }
}

impl Route {
    fn purse(&self) -> Option<PurseId> {
        let purse = self.purse.load(Ordering::Acquire);
        (purse != 0).then(|| PurseId::new(purse as u16))
    }

    /// Requests that came in.
    fn came_in(&self) -> u64 {
        let refused = self.refused.load(Ordering::Relaxed);
        self.calls.load(Ordering::Relaxed).saturating_sub(refused)
    }

    /// Requests that came in before the current epoch began.
    fn came_in_before(&self, current: Epoch) -> u64 {
        match self.marked.load(Ordering::Acquire) == marked(current) {
            true => self.before.load(Ordering::Relaxed),
            false => self.came_in(),
        }
    }

    /// Returns the charges to it since the latest evidence.
    fn charged(&self, ledger: &Ledger, interval_bytes: u64) -> Charged {
        let Some(purse) = self.purse() else {
            return Charged::default();
        };
        let charged = ledger.totals(purse).charged.bytes;
        let since = |now: u64, base: &AtomicU64| now.saturating_sub(base.load(Ordering::Relaxed));
        let spent = Spent {
            charged_bytes: since(charged, &self.base_charged),
            calls: since(self.came_in(), &self.base_calls),
            allocated_bytes: self.allocated_bytes.load(Ordering::Relaxed),
            interval_bytes,
        };
        Charged {
            excess_bytes: spent.excess_bytes(),
            all_bytes: spent.charged_bytes,
        }
    }

    /// Takes the place for a route of this purse.
    fn begin(&self, purse: PurseId) {
        let counters = [&self.calls, &self.refused, &self.marked, &self.before];
        let bases = [&self.base_charged, &self.base_calls, &self.base_allocated];
        for counter in counters.into_iter().chain(bases) {
            counter.store(0, Ordering::Relaxed);
        }
        self.cheap.store(0, Ordering::Relaxed);
        self.purse.store(purse.get().into(), Ordering::Release);
    }
}

fn marked(epoch: Epoch) -> u64 {
    u64::from(epoch.get()) + 1
}

impl Routes {
    /// Whether any route was ever made. One load; any thread.
    #[inline]
    pub fn in_use(&self) -> bool {
        self.in_use.load(Ordering::Relaxed)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn route(&self, number: u32) -> Option<(&Service, &Route)> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let service = self.services.get(index / PLACES)?.get()?;
        Some((service, service.routes.get(index % PLACES)?))
    }

    /// The purse of the route with this number. Two loads; any thread.
    #[inline]
    pub fn purse(&self, number: u32) -> Option<PurseId> {
        self.route(number)?.1.purse()
    }

    /// A request came to the door of its service. Some atomics; on its thread.
    pub fn came(&self, number: u32, current: Epoch) {
        let Some((_, route)) = self.route(number) else {
            return;
        };
        if route.marked.load(Ordering::Relaxed) != marked(current) {
            let before = route.came_in();
            route.before.store(before, Ordering::Relaxed);
            route.marked.store(marked(current), Ordering::Release);
        }
        route.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// A request that came was turned away. On its thread.
    pub fn turned_away(&self, number: u32) {
        if let Some((_, route)) = self.route(number) {
            route.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number of a route of the service with this loader; asks for one that does not exist. Waits for
    /// nobody. On the thread of a request.
    pub fn find(&self, loader: LoaderId, method: &str, path: &str) -> Found {
        self.find_named(RoutesOf::Service(loader), || fold::fold(method, path))
    }

    /// The number of the route of calls that come through a door at this method, of the account of packages with
    /// this purse; asks for one that does not exist. Waits for nobody. On the thread of a call.
    pub fn find_method(&self, packages: PurseId, method: &DoorMethod) -> Found {
        self.find_named(RoutesOf::Packages(packages), || method.to_string())
    }

    fn find_named(&self, of: RoutesOf, route: impl FnOnce() -> String) -> Found {
        let book = match self.book.try_lock() {
            Ok(book) => book,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Found::Later,
        };
        let route = route();
        if let Some(&place) = book.places.get(&of) {
            if let Some(found) = book
                .services
                .get(&place)
                .and_then(|entry| entry.find(place, &route))
            {
                return found;
            }
        } else if book.services.len() >= MAX_SERVICES {
            return Found::None;
        }
        // If there is no room, the next request asks again.
        let _ = self.wanted.push(Wanted { of, route });
        Found::Later
    }

    /// The request that went in with this ticket has ended. Any thread.
    pub fn ended(&self, ticket: u64) {
        let number = (ticket & ((1 << NUMBER_BITS) - 1)) as u32;
        if let Some((service, _)) = self.route(number) {
            service
                .room
                .leave((ticket >> NUMBER_BITS) * PEAK_UNIT_BYTES);
        }
    }

    /// A purse was closed: if it was a route's, its place is free. Under the directory's lock; the enforcer's
    /// thread.
    pub fn closed(&self, purse: PurseId) {
        let mut book = self.book();
        let Some((place, at)) = book.of_purse.remove(&purse) else {
            return;
        };
        if let Some(route) = self.services[place].get() {
            route.routes[at].purse.store(0, Ordering::Release);
        }
        let Some(entry) = book.services.get_mut(&place) else {
            return;
        };
        entry.names[at] = None;
        if entry.names.iter().all(Option::is_none) {
            let of = entry.of;
            book.services.remove(&place);
            book.places.remove(&of);
        }
    }

    /// The routes of these purses, each with its purse. Agent threads.
    pub fn rows(&self, purses: &[PurseId]) -> Vec<(PurseId, Row)> {
        if !self.in_use() {
            return Vec::new();
        }
        let book = self.book();
        let row = |&purse: &PurseId| {
            let &(place, at) = book.of_purse.get(&purse)?;
            let name = book.services.get(&place)?.names[at].as_ref()?;
            let route = &self.services[place].get()?.routes[at];
            let row = Row {
                route: name.route.clone(),
                calls: route.calls.load(Ordering::Relaxed),
                refused: route.refused.load(Ordering::Relaxed),
                price: name.learned.price,
            };
            Some((purse, row))
        };
        purses.iter().filter_map(row).collect()
    }

    /// Native bytes held.
    pub fn committed_bytes(&self) -> u64 {
        let made = self
            .services
            .iter()
            .filter(|service| service.get().is_some());
        let places = MAX_SERVICES * size_of::<OnceLock<Box<Service>>>();
        let queue = MAX_WANTED * size_of::<Wanted>();
        (made.count() * size_of::<Service>() + places + queue) as u64
    }
}

impl Book {
    /// The place of a service, a new one if it has none; `None` if all are taken.
    fn place_of(&mut self, of: RoutesOf) -> Option<usize> {
        if let Some(&place) = self.places.get(&of) {
            return Some(place);
        }
        let place = (0..MAX_SERVICES).find(|place| !self.services.contains_key(place))?;
        self.places.insert(of, place);
        let entry = Entry {
            of,
            names: (0..PLACES).map(|_| None).collect(),
            is_full: false,
            shut: None,
            pending: None,
            decided: 0,
        };
        self.services.insert(place, entry);
        Some(place)
    }
}

impl Entry {
    fn find(&self, place: usize, route: &str) -> Option<Found> {
        let number = |at: usize| (place * PLACES + at + 1) as u32;
        let is_it = |name: &Option<Name>| name.as_ref().is_some_and(|name| name.route == route);
        if let Some(at) = self.names.iter().position(is_it) {
            return Some(Found::Known(number(at)));
        }
        let is_full = self.is_full || self.names.iter().all(Option::is_some);
        is_full.then(|| match self.names[0] {
            Some(_) => Found::Rest(number(0)),
            None => Found::None,
        })
    }
}
