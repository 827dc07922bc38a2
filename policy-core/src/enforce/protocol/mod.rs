//! A test model of the whole protocol, without a JVM: tenants allocate, collections run, refunds come
//! late, the enforcer takes turns, and policies and deployments change, in any order.
//!
//! The model runs the product's own code: the core with its ledger, directory and gates, the admission
//! of an allocating thread, and the enforcer's turn with everything that it asks of the collector. It
//! simulates what lies behind the ports: the heap ([`heap`]), clock and collector ([`simulation`]),
//! the threads ([`threads`]), and the services, scopes and edits of the policy ([`deployments`]). The
//! [`oracle`] knows what is truly held, and panics if
//!
//! * an account is over although it held less than its limit at the snapshot of the verdict; or stays
//!   over although its limit was raised, or the purses of the verdict are no longer its own;
//! * a thread is refused without a verdict on its own account and without an object larger than
//!   the whole limit; or in mode `observe`;
//! * a request is turned away without such a verdict, or is let in as a second probe;
//! * a charge beyond the stop passes without being due; or a waiting thread goes on without a verdict;
//!   or a thread waits although its account is only observed or has no limit;
//! * a thread waits longer, or is granted more, than its grace allows;
//! * an error is thrown where no unit of work begins, or such a thread is slowed for longer than it may;
//! * an account that dropped nothing is measured as one that drops something;
//! * a count is lost.

mod deployments;
mod heap;
mod oracle;
mod simulation;
mod threads;
mod world;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};

use crate::enforce::state::Phase;
use crate::ports::CollectorKind;

use deployments::{Edit, LIMIT_BYTES};
use simulation::{Fault, MAX_HEAP_BYTES, charged};
use threads::Conduct;
use world::{Allocation, Event, Setup, World, event, setup};

/// At least so many cases; `PROPTEST_CASES` asks for more.
fn config(cases: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig {
        cases: config.cases.max(cases),
        max_shrink_iters: 20_000,
        ..config
    }
}

fn play(setup: &Setup, history: &[Event]) -> World {
    let mut world = World::new(setup);
    for event in history {
        world.play(event);
    }
    world.end();
    world
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn nobody_is_refused_without_a_verdict(
        setup in setup(Just(0)),
        history in prop::collection::vec(event(), 1..150),
    ) {
        play(&setup, &history);
    }
}

/// An exception that the policy makes for an account's code holds for a scope, too, that was opened after the policy
/// was read.
#[test]
fn a_scope_that_opens_late_has_the_exceptions_of_its_account() {
    let turn = Event::Turn {
        meanwhile: None,
        pause: false,
    };
    let setup = Setup {
        collector: CollectorKind::G1,
        interval_bytes: 0,
        threads: vec![(0, Conduct::Catch, false)],
        covering_ms: 10,
        seed: 1,
        fault: None,
    };
    let scope = Event::Scope {
        thread: 0,
        name: Some(1),
    };
    let reload = Event::Reload(Edit::ScopeLimit(Some(100)));
    // Each turn looks at the exceptions of all purses.
    play(&setup, &[reload, turn.clone(), scope, turn]);
}

/// On generational ZGC deaths are told by collections of old memory alone. Where none comes, and charges exceed the heap,
/// one is asked for; the enforcer has turns while it runs, and asks for no second one.
#[test]
fn deaths_that_go_untold_are_asked_for_while_the_enforcer_goes_on() {
    const COVERING_MS: u64 = 3000;
    let setup = Setup {
        collector: CollectorKind::GenerationalZgc,
        interval_bytes: 0,
        threads: vec![(0, Conduct::Catch, false)],
        covering_ms: COVERING_MS,
        seed: 1,
        fault: None,
    };
    let garbage = Event::Allocate(Allocation {
        thread: 0,
        objects: 8,
        bytes: (MAX_HEAP_BYTES / 8) as u32,
        kept: 0,
    });
    let turn = Event::Turn {
        meanwhile: None,
        pause: false,
    };
    let second = [garbage, Event::Young, turn.clone(), Event::Pass { ms: 500 }];
    let mut world = World::new(&setup);
    let told = |world: &World| {
        let log = world.jvm.core.evidence.read();
        let refunds = log.iter().find(|row| row.kind == "refunds");
        refunds.map_or(0, |row| row.collections)
    };
    let mut turns_while_it_ran = 0;
    for _ in 0..200 {
        if told(&world) > 0 {
            break;
        }
        second.iter().for_each(|event| world.play(event));
        turns_while_it_ran += u32::from(world.jvm.is_collecting());
    }
    assert!(told(&world) > 0, "nothing was asked for");
    assert!(turns_while_it_ran >= 3, "{turns_while_it_ran}");
    // It was asked for when the budget allowed it, which has paid for it now.
    world.play(&turn);
    let allowed_ms = world.jvm.core.enforcement.evidence_allowed_ms();
    let now_ms = world.jvm.state.borrow().now_ms;
    assert!(allowed_ms > now_ms, "at {now_ms} ms: {allowed_ms} ms");
    world.end();
}

/// An account a little above its limit is not suspect. If it lets go of everything, and nobody allocates any more, a
/// concurrent collection is asked for; where only a full one would free it, nothing is, and the request is not kept.
#[test]
fn an_idle_account_that_has_let_go_is_looked_at_where_no_pause_is_needed() {
    const ACCOUNT: &str = "account 0";
    const INTERVAL_BYTES: u64 = 4096;
    let keep_one = Event::Allocate(Allocation {
        thread: 0,
        objects: 1,
        bytes: 512,
        kept: 4,
    });
    let let_go = Event::Drop {
        thread: 0,
        quarters: 4,
    };
    let turn = Event::Turn {
        meanwhile: None,
        pause: false,
    };
    for collector in [
        CollectorKind::G1,
        CollectorKind::Whole,
        CollectorKind::StopTheWorld,
    ] {
        let mut world = World::new(&Setup {
            collector,
            interval_bytes: INTERVAL_BYTES,
            threads: vec![(0, Conduct::Catch, false)],
            covering_ms: 50,
            seed: 1,
            fault: None,
        });
        let figures = |world: &World| {
            let statuses = world.jvm.core.enforcement.statuses();
            let status = statuses.status(ACCOUNT).expect("it has a limit");
            (status.charged.bytes, status.phase)
        };
        world.play(&turn);
        // The first turn has set an interval of its own.
        let ledger = &world.jvm.core.ledger;
        ledger.intervals().set(INTERVAL_BYTES).expect("an interval");
        let purse = world.jvm.state.borrow().deployments.purse(0);
        while charged(&world.jvm.core, &[purse]) <= LIMIT_BYTES {
            world.play(&keep_one);
        }
        world.play(&let_go);
        let mut seen_empty_s = None;
        for second in 0..120 {
            for _ in 0..2 {
                world.play(&turn);
                world.play(&Event::Pass { ms: 500 });
            }
            if figures(&world).0 > LIMIT_BYTES {
                assert_eq!(figures(&world).1, Phase::Open, "{collector:?}");
            } else {
                seen_empty_s = seen_empty_s.or(Some(second));
            }
        }
        let requests = world.jvm.requests_begun();
        if collector == CollectorKind::StopTheWorld {
            assert_eq!((seen_empty_s, requests), (None, 0));
        } else {
            let seen_empty_s = seen_empty_s.expect("it is looked at");
            assert!((4..12).contains(&seen_empty_s), "{seen_empty_s} s");
            assert_eq!((figures(&world).0, requests), (0, 1), "{collector:?}");
        }
        world.end();
    }
}

/// The oracle notices each rule that is broken around the core, within `MAX_HISTORIES` histories.
#[test]
fn broken_rules_are_noticed() {
    const MAX_HISTORIES: u32 = 4000;
    for fault in [
        Fault::YoungConvicts,
        Fault::Hasty,
        Fault::ByQuiet,
        Fault::LateNotes,
        Fault::GatesAtOnce,
    ] {
        let config = ProptestConfig {
            cases: MAX_HISTORIES,
            max_shrink_iters: 0,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut runner = TestRunner::new_with_rng(config, rng);
        let histories = (setup(Just(0)), prop::collection::vec(event(), 1..150));
        let played = runner.run(&histories, |(setup, history)| {
            let fault = Some(fault);
            play(&Setup { fault, ..setup }, &history);
            Ok(())
        });
        assert!(
            matches!(played, Err(TestError::Fail(..))),
            "{fault:?} was not noticed: {played:?}"
        );
    }
}
