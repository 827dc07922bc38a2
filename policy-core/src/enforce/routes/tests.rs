//! Routes of a service in a core without a JVM: objects are charged and freed by hand.

use super::*;
use crate::core::{Core, Setup};
use crate::enforce::door::{Answer, Request};
use crate::enforce::gate::Word;
use crate::identity::cleaning::clean;
use crate::identity::directory::LoaderIdentity;
use crate::identity::loaders::LoaderOwner;
use crate::identity::names::{Server, ServiceName};
use crate::ledger::{ObjectTag, Sample, SiteId, UNKNOWN_CLASS};
use crate::native_memory::gates::Verdict;
use crate::native_memory::{Block, Way};
use crate::ports::References;

pub(super) const INTERVAL: u64 = 16 << 10;
pub(super) const LIMIT: u64 = 64 << 20;

/// A JVM with one service and its clients.
pub(super) struct World {
    pub(super) core: Core,
    pub(super) service: PurseId,
    pub(super) loader: LoaderId,
    pub(super) now_ms: u64,
    random: fastrand::Rng,
    garbage: Vec<ObjectTag>,
    kept: Vec<ObjectTag>,
}

impl World {
    pub(super) fn new() -> World {
        let core = Core::with_purses(Setup::of_test(1 << 18), 1 << 10);
        core.ledger.intervals().set(INTERVAL).expect("in range");
        let (service, loader) = deploy(&core, "/shop");
        let gate = core.enforcement.gates.make(service.get().into());
        gate.expect("memory").set_marks(LIMIT, u64::MAX, u64::MAX);
        World {
            core,
            service,
            loader,
            now_ms: 1_000,
            random: fastrand::Rng::with_seed(1),
            garbage: Vec::new(),
            kept: Vec::new(),
        }
    }

    pub(super) fn account(&self) -> u32 {
        self.core.identity.representative(self.service)
    }

    /// The number of a route, made if need be.
    pub(super) fn route(&self, method: &str, path: &str) -> u32 {
        let routes = &self.core.enforcement.routes;
        for _ in 0..2 {
            match routes.find(self.loader, method, path) {
                Found::Known(number) | Found::Rest(number) => return number,
                Found::Later => routes.make_wanted(&self.core),
                Found::None => return 0,
            }
        }
        panic!("no route {method} {path}")
    }

    /// Allocates for a route: garbage, or what is kept.
    pub(super) fn allocate(&mut self, route: u32, bytes: u64, is_kept: bool) {
        let payer = self
            .core
            .enforcement
            .routes
            .purse(route)
            .unwrap_or(self.service);
        let size_bytes = bytes.min(1_000);
        for _ in 0..bytes / size_bytes.max(1) {
            let sampled = 1.0 - (-(size_bytes as f64) / INTERVAL as f64).exp();
            if self.random.f64() >= sampled {
                continue;
            }
            let sample = Sample {
                payer,
                agent_account: self.service,
                principal: self.service,
                class: UNKNOWN_CLASS,
                size_bytes,
                interval: self.core.ledger.intervals().current(),
                site: SiteId::NONE,
            };
            let tag = self.core.ledger.charge(&sample).expect("room");
            match is_kept {
                true => self.kept.push(tag),
                false => self.garbage.push(tag),
            }
        }
    }

    /// A request that comes in while no door is shut.
    pub(super) fn request(&mut self, route: u32, garbage: u64, kept: u64) {
        let current = self.core.ledger.epochs().current();
        self.core.enforcement.routes.came(route, current);
        self.allocate(route, garbage, false);
        self.allocate(route, kept, true);
    }

    /// A request at the shut door. Whether it came in freely.
    pub(super) fn comes_in(&mut self, route: u32, garbage: u64, kept: u64) -> bool {
        let current = self.core.ledger.epochs().current();
        self.core.enforcement.routes.came(route, current);
        let request = Request {
            method: "GET",
            path: "/",
            route,
        };
        let answer = self.core.knock(self.service, request, self.now_ms);
        if let Answer::Free(ticket) = answer {
            self.allocate(route, garbage, false);
            self.allocate(route, kept, true);
            self.core.probe_ended(self.service, ticket, self.now_ms);
        }
        matches!(answer, Answer::Free(_))
    }

    /// A collection frees all garbage, and its evidence is learned from.
    pub(super) fn collect(&mut self) {
        let epochs = self.core.ledger.epochs();
        let epoch = epochs.current();
        self.core.collection_finished();
        for tag in self.garbage.drain(..) {
            self.core.ledger.refund(tag);
        }
        epochs.died(epoch);
        epochs.confirm(epoch);
        self.learn();
    }

    pub(super) fn learn(&mut self) {
        self.now_ms += 1_000;
        self.core.enforcement.routes.learn(&self.core, self.now_ms);
    }

    /// Everything that was kept is let go.
    pub(super) fn let_go(&mut self) {
        self.garbage.append(&mut self.kept);
    }

    pub(super) fn live(&self) -> u64 {
        let mut live = 0;
        self.core.ledger.scan(|record| live += record.charge.bytes);
        live
    }

    pub(super) fn shut(&self, shut: bool) {
        let gate = self.core.enforcement.gates.get(self.account());
        gate.expect("it has one").set_word(Word {
            limited: true,
            enforced: true,
            shut,
            ..Word::default()
        });
    }

    pub(super) fn row(&self, route: &str) -> Row {
        let purses: Vec<PurseId> = {
            let directory = self.core.directory();
            directory.purses_of("/shop").collect()
        };
        let rows = self.core.enforcement.routes.rows(&purses);
        let found = rows.into_iter().find(|(_, row)| row.route == route);
        found.unwrap_or_else(|| panic!("no {route}")).1
    }

    /// Requests of a route and collections, until its price is known.
    pub(super) fn train(&mut self, route: u32, garbage: u64, kept: u64) {
        for _ in 0..15 {
            for _ in 0..40 {
                self.request(route, garbage, kept);
            }
            self.collect();
        }
    }
}

pub(super) fn deploy(core: &Core, name: &str) -> (PurseId, LoaderId) {
    let purse = core.ledger.open_purse().expect("room");
    core.identity.set_representative(purse, purse);
    let loaders = &core.identity.loaders;
    let loader = loaders.open(LoaderOwner::Pending(purse), 0).expect("room");
    let mut directory = core.directory();
    directory.enter_loader(loader, purse);
    let name = ServiceName {
        name: name.to_owned(),
        aliases: vec![name.to_owned()],
        server: Server::Tomcat,
        one_loader: true,
    };
    directory.set_identity(loader, LoaderIdentity::Service(name));
    loaders.set_owner(loader, LoaderOwner::Service(purse));
    (purse, loader)
}

struct NoJava;

impl References for NoJava {
    fn account_name(&self, _: &std::sync::Arc<str>) -> Option<crate::ports::Token> {
        None
    }
    fn forget_account_names(&self, _: &dyn Fn(&str) -> bool) {}
    fn vanished_loaders(&self) -> Vec<LoaderId> {
        Vec::new()
    }
    fn forget_loader(&self, _: LoaderId) -> bool {
        false
    }
}

#[test]
fn a_route_is_a_purse_of_the_account_of_its_service() {
    let mut world = World::new();
    let (get, post) = (world.route("GET", "/a/1"), world.route("POST", "/a/2"));
    assert_ne!(get, post);
    assert_eq!(world.route("GET", "/a/3"), get);
    let routes = &world.core.enforcement.routes;
    let purse = routes.purse(post).expect("it has one");
    assert_eq!(world.core.identity.representative(purse), world.account());
    {
        let directory = world.core.directory();
        assert_eq!(&*directory.account_name(purse), "/shop");
        assert_eq!(directory.accounts().count(), 2, "no account of its own");
        assert_eq!(directory.representative(purse), world.service);
    }
    world.request(post, 0, 1 << 20);
    world.request(get, 1 << 20, 0);
    world.collect();
    world.learn();
    world.collect();
    let row = world.row("POST /a/*");
    assert_eq!((row.calls, row.refused), (1, 0));
    let charged = world.core.ledger.totals(purse).charged.bytes;
    assert!(charged > 700 << 10, "{charged}");
    assert_eq!(charged, world.live(), "the account has nothing else");
}

#[test]
fn names_are_bounded_and_the_rest_is_one_route() {
    let world = World::new();
    let name = |n: u32| {
        format!(
            "/{}",
            char::from(b'a' + (n / 26) as u8).to_string()
                + &char::from(b'a' + (n % 26) as u8).to_string()
        )
    };
    let numbers: Vec<u32> = (0..200).map(|n| world.route("GET", &name(n))).collect();
    let mut named = numbers[..MAX_NAMED].to_vec();
    named.sort_unstable();
    named.dedup();
    assert_eq!(named.len(), MAX_NAMED);
    assert!(
        numbers[MAX_NAMED..]
            .iter()
            .all(|&rest| rest == numbers[199])
    );
    assert!(!named.contains(&numbers[199]));
    assert_eq!(
        world.route("GET", &name(5)),
        numbers[5],
        "who has a name keeps it"
    );
}

#[test]
fn the_ends_of_services_make_room_for_others() {
    let mut world = World::new();
    let mut first = None;
    for round in 0..2 * MAX_SERVICES {
        let (_, loader) = deploy(&world.core, "/other");
        let other = World { loader, ..world };
        let route = other.route("POST", "/x");
        let purse = other
            .core
            .enforcement
            .routes
            .purse(route)
            .expect("round {round}");
        first.get_or_insert(route);
        assert_eq!(Some(route), first, "{round}: the place is used again");
        other.core.identity.loaders.vanished(loader);
        clean(&other.core, &NoJava);
        let routes = &other.core.enforcement.routes;
        assert_eq!(routes.purse(route), None);
        assert!(!other.core.ledger.is_open(purse));
        assert!(other.core.directory().loader(loader).is_none());
        world = other;
    }
}

#[test]
fn native_memory_keeps_the_purses_of_a_service_that_is_gone_until_it_is_given_back() {
    for is_of_route in [false, true] {
        let world = World::new();
        let route = world.route("POST", "/x");
        let of_route = world.core.enforcement.routes.purse(route);
        let of_service = world.core.identity.loaders.owner(world.loader).purse();
        let payer = if is_of_route { of_route } else { of_service };
        let payer = payer.expect("it has one");
        let block = Block {
            payer,
            way: Way::Unsafe,
            size_bytes: 7,
        };
        world.core.native_memory.taken(0x1000, block);
        world.core.identity.loaders.vanished(world.loader);
        for _ in 0..2 {
            clean(&world.core, &NoJava);
            assert!(world.core.ledger.is_open(payer));
        }
        assert_eq!(
            world.core.native_memory.given_back(0x1000, false),
            Some(block)
        );
        // The next owner of its number must not be refused for it.
        let gates = &world.core.native_memory.gates;
        gates.assign(payer.get().into(), &[payer], 1);
        gates.decide(payer.get().into(), Verdict::Refused);
        clean(&world.core, &NoJava);
        assert!(!gates.is_any_judged());
        for purse in [of_route, of_service].into_iter().flatten() {
            assert!(!world.core.ledger.is_open(purse));
        }
        assert!(world.core.directory().loader(world.loader).is_none());
    }
}

#[test]
fn a_route_that_holds_bytes_lives_on_without_its_service() {
    let mut world = World::new();
    let route = world.route("POST", "/x");
    let purse = world
        .core
        .enforcement
        .routes
        .purse(route)
        .expect("it has one");
    world.request(route, 0, 1 << 20);
    world.core.identity.loaders.vanished(world.loader);
    clean(&world.core, &NoJava);
    assert!(world.core.ledger.is_open(purse));
    {
        let directory = world.core.directory();
        let (_, account) = directory
            .accounts()
            .find(|(name, _)| &***name == "/shop")
            .expect("held");
        assert_eq!(directory.left_purses(account).collect::<Vec<_>>().len(), 2);
    }
    world.let_go();
    world.collect();
    clean(&world.core, &NoJava);
    assert!(!world.core.ledger.is_open(purse));
}

#[test]
fn prices_are_learned() {
    let mut world = World::new();
    let (get, post) = (world.route("GET", "/a"), world.route("POST", "/a"));
    world.train(get, 30_000, 0);
    world.train(post, 3_000, 20_000);
    let (get, post) = (world.row("GET /a").price, world.row("POST /a").price);
    assert!(get.is_cheap() && !post.is_cheap(), "{get:?} {post:?}");
    assert!((25_000..35_000).contains(&get.allocated_bytes), "{get:?}");
    assert_eq!(get.kept_bytes, 0);
    assert!((17_000..23_000).contains(&post.kept_bytes), "{post:?}");
    assert!(post.most_kept_bytes > post.kept_bytes);
}

#[test]
fn at_a_shut_door_cheap_routes_go_in_and_growing_and_new_ones_do_not() {
    let mut world = World::new();
    let (get, post) = (world.route("GET", "/a"), world.route("POST", "/a"));
    world.train(get, 30_000, 0);
    world.train(post, 3_000, 20_000);
    world.shut(true);
    let new = world.route("GET", "/new");
    let mut came_in = [0u32; 3];
    for _ in 0..30 {
        for _ in 0..100 {
            for (count, route) in came_in.iter_mut().zip([get, post, new]) {
                *count += u32::from(world.comes_in(route, 30_000, 0));
            }
        }
        world.collect();
    }
    assert!(came_in[0] >= 2_970, "{came_in:?}");
    assert_eq!(came_in[1..], [0, 0]);
    let row = world.row("GET /a");
    assert_eq!(u64::from(came_in[0]) + 600, row.calls - row.refused);
    assert!(world.row("POST /a").refused > 2_900);
}

/// Of the account of packages in the policy of [`with_packages`].
const PACKAGES: &str =
    "[[account]]\nname = \"/shop\"\npackages = [\"com.acme\"]\nlimit = \"64MiB\"\n";

/// A world whose account is one of packages.
fn with_packages() -> World {
    let world = World::new();
    let purse = world.core.ledger.open_purse().expect("room");
    adopt(&world, PACKAGES);
    world.core.directory().enter_packages(purse, 0);
    world.core.identity.set_representative(purse, purse);
    let gate = world.core.enforcement.gates.make(purse.get().into());
    gate.expect("memory").set_marks(LIMIT, u64::MAX, u64::MAX);
    World {
        service: purse,
        ..world
    }
}

fn adopt(world: &World, policy: &str) {
    let policy = policy_config::parse(policy).policy.expect("a valid policy");
    world.core.directory().adopt(policy.into());
}

/// The route of a method of the account of packages.
fn method(world: &World, name: &str) -> u32 {
    find(world, name);
    world.core.enforcement.routes.make_wanted(&world.core);
    match find(world, name) {
        Found::Known(number) => number,
        other => panic!("{name}: {other:?}"),
    }
}

fn find(world: &World, name: &str) -> Found {
    let method = DoorMethod {
        class: "com.acme.Desk".to_owned(),
        method: name.to_owned(),
    };
    (world.core.enforcement.routes).find_method(world.service, &method)
}

#[test]
fn methods_of_packages_have_routes_that_end_with_their_account() {
    let mut world = with_packages();
    let (write, read) = (method(&world, "write"), method(&world, "read"));
    world.train(write, 0, 30_000);
    world.train(read, 30_000, 0);
    let price = world.row("com.acme.Desk#write").price;
    assert!((25_000..35_000).contains(&price.kept_bytes), "{price:?}");
    assert!(world.row("com.acme.Desk#read").price.is_cheap());
    world.shut(true);
    world.learn();
    // Its arguments are not in the price of a call.
    assert!(!world.comes_in(read, 30_000, 0) && !world.comes_in(write, 0, 0));
    let routes = &world.core.enforcement.routes;
    let purses = [read, write].map(|number| routes.purse(number).expect("it has one"));
    for purse in purses {
        let account = world.core.identity.representative(purse);
        assert_eq!(account, u32::from(world.service.get()));
    }

    // No policy names it any more: what holds bytes stays, and the account's own purse with it.
    adopt(&world, "");
    clean(&world.core, &NoJava);
    let open = |purse| world.core.ledger.is_open(purse);
    assert!(!open(purses[0]) && open(purses[1]) && open(world.service));
    assert_eq!(find(&world, "late"), Found::Later);
    world.core.enforcement.routes.make_wanted(&world.core);
    let of = RoutesOf::Packages(world.service);
    assert!(world.core.directory().route_purses(of).contains(&purses[1]));
    world.let_go();
    world.collect();
    clean(&world.core, &NoJava);
    let open = |purse| world.core.ledger.is_open(purse);
    assert!(!open(purses[1]) && !open(world.service));
    assert!(world.core.directory().route_purses(of).is_empty());
}

/// A call of a method with a door, on a thread: it counts if it begins. What its work allocates is charged to the
/// thread's route.
fn call(
    world: &mut World,
    cell: &mut calls::model::Cell,
    route: u32,
    work: impl FnOnce(&mut World, &mut calls::model::Cell, u32),
) {
    let level = cell.begin(route);
    if level.is_some() {
        let current = world.core.ledger.epochs().current();
        world.core.enforcement.routes.came(route, current);
    }
    let charged = cell.inside().charged(Some).unwrap_or(0);
    work(world, cell, charged);
    if let Some(level) = level {
        cell.end(level);
    }
}

#[test]
fn a_method_that_grows_through_another_door_is_the_dear_one() {
    let mut world = with_packages();
    let (outer, inner) = (method(&world, "outer"), method(&world, "inner"));
    let mut cell = calls::model::Cell::default();
    for _ in 0..15 {
        for _ in 0..40 {
            call(&mut world, &mut cell, outer, |world, cell, charged| {
                call(world, cell, inner, |world, _, charged| {
                    world.allocate(charged, 20_000, true);
                });
                world.allocate(charged, 3_000, false);
            });
            call(&mut world, &mut cell, inner, |world, _, charged| {
                world.allocate(charged, 3_000, false);
            });
        }
        world.collect();
    }
    let (outer, inner) = (
        world.row("com.acme.Desk#outer"),
        world.row("com.acme.Desk#inner"),
    );
    assert_eq!((outer.calls, inner.calls), (600, 600));
    assert!(!outer.price.is_cheap() && inner.price.is_cheap());
    assert!(outer.price.kept_bytes > 15_000, "{outer:?}");
}

#[test]
fn a_method_that_keeps_is_not_cheap_for_being_called_inside_others() {
    let mut world = with_packages();
    let (outer, inner) = (method(&world, "outer"), method(&world, "inner"));
    let mut cell = calls::model::Cell::default();
    for _ in 0..15 {
        for _ in 0..10 {
            call(&mut world, &mut cell, outer, |world, cell, _| {
                for _ in 0..99 {
                    call(world, cell, inner, |_, _, _| {});
                }
            });
            call(&mut world, &mut cell, inner, |world, _, charged| {
                world.allocate(charged, 20_000, true);
            });
        }
        world.collect();
    }
    let inner = world.row("com.acme.Desk#inner");
    assert_eq!(inner.calls, 150);
    assert!(
        !inner.price.is_cheap() && inner.price.kept_bytes > 15_000,
        "{inner:?}"
    );
}
