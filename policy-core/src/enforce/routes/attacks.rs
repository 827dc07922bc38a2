//! Tests of the bytes that hostile clients gain at a shut door: see the module's list.

use super::room::BUDGET_SHARE;
use super::tests::{INTERVAL, LIMIT, World, deploy};
use super::*;

/// The bytes that sampling may add by chance: two deviations, a few samples.
const CHANCE: u64 = 12 * INTERVAL;

/// A service with a route whose requests have kept nothing so far, at a door that was shut just now.
fn cheap_route() -> (World, u32) {
    let mut world = World::new();
    let route = world.route("POST", "/notes");
    world.train(route, 30_000, 0);
    assert!(world.row("POST /notes").price.is_cheap());
    world.shut(true);
    world.learn();
    (world, route)
}

/// Requests of one kind until the route is no longer let in; what they have kept.
fn gained(world: &mut World, route: u32, kept: u64, collect_each: u32) -> u64 {
    let before = world.live();
    for n in 0..400_000u32 {
        world.comes_in(route, 1_000, kept);
        if n % collect_each == collect_each - 1 {
            world.collect();
            let refused = (0..20).all(|_| !world.comes_in(route, 0, 0));
            if refused {
                break;
            }
        }
    }
    world.collect();
    world.live().saturating_sub(before)
}

#[test]
fn large_requests_after_many_small_ones_gain_a_thirty_second_of_the_limit() {
    let (mut world, route) = cheap_route();
    let gained = gained(&mut world, route, 1 << 20, 1_000);
    let most = LIMIT / BUDGET_SHARE + LIMIT / KEPT_SHARE + (1 << 20) + CHANCE;
    assert!(gained <= most, "{gained} of at most {most}");
    assert!(!world.comes_in(route, 0, 0), "it is dismissed");
}

#[test]
fn requests_that_keep_what_they_threw_away_gain_what_is_left_of_the_reserve() {
    let (mut world, route) = cheap_route();
    let left = LIMIT - world.live();
    let gained = gained(&mut world, route, 29_000, 10_000);
    // The training showed 40 requests with 30,000 bytes each at a time.
    let most = left + 40 * 40_000 + 4 * CHANCE;
    assert!(gained <= most, "{gained} of at most {most}");
    assert!(
        gained > left / 2,
        "{gained}: nothing showed before the evidence"
    );
}

#[test]
fn requests_just_below_what_is_cheap_gain_a_sixty_fourth_of_the_limit() {
    let (mut world, route) = cheap_route();
    let gained = gained(&mut world, route, 900, 200);
    // 200 requests may come, and keep memory, before the evidence does.
    let most = LIMIT / KEPT_SHARE + 200 * 900 + 2 * CHANCE;
    assert!(gained <= most, "{gained} of at most {most}");
    assert!(gained > LIMIT / KEPT_SHARE / 2, "{gained}: they were cheap");
}

#[test]
fn many_routes_together_gain_a_sixteenth_and_a_budget() {
    let mut world = World::new();
    let routes: Vec<u32> = ('a'..='z')
        .map(|name| world.route("POST", &format!("/{name}")))
        .collect();
    for &route in &routes {
        world.train(route, 2_000, 0);
    }
    world.shut(true);
    world.learn();
    let before = world.live();
    for _ in 0..40 {
        for _ in 0..20 {
            for &route in &routes {
                world.comes_in(route, 1_000, 10_000);
            }
        }
        world.collect();
    }
    let gained = world.live() - before;
    let chance = CHANCE * routes.len() as u64;
    let most = LIMIT / 16 + LIMIT / BUDGET_SHARE + chance;
    assert!(gained <= most, "{gained} of at most {most}");
    assert!(routes.iter().all(|&route| !world.comes_in(route, 0, 0)));
}

#[test]
fn a_dismissed_route_stays_so_for_a_minute_and_until_the_door_opens() {
    let (mut world, route) = cheap_route();
    gained(&mut world, route, 1 << 20, 1_000);
    world.let_go();
    for _ in 0..70 {
        world.collect();
        assert!(!world.comes_in(route, 0, 0), "the door is still shut");
    }
    world.shut(false);
    world.train(route, 1_000, 0);
    world.shut(true);
    world.collect();
    assert!(world.comes_in(route, 1_000, 0));
}

#[test]
fn refused_requests_make_no_route_cheap() {
    let mut world = World::new();
    let route = world.route("POST", "/notes");
    world.train(route, 1_000, 20_000);
    world.shut(true);
    for _ in 0..30 {
        for _ in 0..1_000 {
            assert!(!world.comes_in(route, 0, 0));
        }
        world.collect();
    }
    // One probe came in, of all these.
    assert!(!world.row("POST /notes").price.is_cheap());
}

#[test]
fn random_paths_and_methods_leave_known_routes_as_they_are() {
    let (mut world, route) = cheap_route();
    let mut random = fastrand::Rng::with_seed(9);
    for _ in 0..5_000 {
        let path: String = (0..random.usize(1..30))
            .map(|_| random.alphabetic())
            .collect();
        let method: String = (0..random.usize(1..9))
            .map(|_| random.uppercase())
            .collect();
        let found = world
            .core
            .enforcement
            .routes
            .find(world.loader, &method, &format!("/{path}"));
        if found == Found::Later {
            world.core.enforcement.routes.make_wanted(&world.core);
        }
    }
    assert!(world.comes_in(route, 1_000, 0));
    let names = {
        let directory = world.core.directory();
        directory.purses_of("/shop").count()
    };
    assert_eq!(names, 1 + PLACES, "the service, its names and the rest");
    let rest = world.route("GET", "/zzzz");
    assert!(!world.comes_in(rest, 0, 0), "nothing is known of the rest");
}

#[test]
fn one_account_of_many_services_has_one_budget() {
    let (mut world, route) = cheap_route();
    let own = world.loader;
    let (other, loader) = deploy(&world.core, "/other");
    world.loader = loader;
    world.route("GET", "/x");
    world.loader = own;
    // As after a reload that gives both services one account.
    let account = PurseId::new(world.account() as u16);
    for purse in world
        .core
        .directory()
        .route_purses(RoutesOf::Service(loader))
    {
        world.core.identity.set_representative(purse, account);
    }
    world.core.identity.set_representative(other, account);
    world.collect();
    let before = world.live();
    while world.comes_in(route, 0, 100_000) {}
    let gained = world.live() - before;
    // Of 100,000 bytes 30,000 are expected.
    let most = (LIMIT / BUDGET_SHARE / 2 + 2 * CHANCE) * 10 / 7 + 200_000;
    assert!(gained <= most, "{gained} of at most {most}");
}
