//! A model of the whole protocol, without a JVM: tenants that allocate, collections, refunds
//! that come late, the warden, reloads and deployments, in any order.
//!
//! What decides is the real thing: the ledger and its epochs, gates, graces, the round with
//! docket, states and marks, the ladder with its budget, the settling of refunds. Simulated are
//! the heap ([`heap`]), clock and collector ([`jvm`]), the way of a charge past the gate
//! ([`threads`], as `jvm::refuse`), the warden's turn ([`warden`]), accounts and their edits
//! ([`directory`]). The [`oracle`] knows what is truly held, and panics when
//!
//! * an account is over though less was held, at the snapshot that convicted it, than the limit
//!   in force; or stays so though its limit was raised, or what was convicted is no longer its;
//! * a thread is refused by anything but a verdict on its own account, or an object larger than
//!   the whole limit; or in mode observe;
//! * a charge passes without being due beyond the stop, or a waiting thread is let go without
//!   a verdict; or one is kept waiting by an account that is observed or without limit;
//! * a thread waits, or is granted, more than its grace allows;
//! * an account that dropped nothing is taken for one that does;
//! * a count is lost.

mod directory;
mod heap;
mod jvm;
mod oracle;
mod threads;
mod warden;
mod world;

use proptest::prelude::*;

use world::{Event, Setup, World, event, setup};

/// More are played by way of `PROPTEST_CASES`.
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
