//! Many simulated accounts with large arrays that are thinned: do their estimates lie as far from the
//! truth as they say?

use crate::ledger::{Capacity, Epoch, Ledger, ObjectTag, Sample};
use crate::sampling::simulation::{Countdown, Rng};
use crate::sampling::thinning::{Decision, Living, Thinning};

use super::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const HEAP: u64 = 1 << 30;
const REGION: u64 = MIB;
const INTERVAL: u64 = 64 * KIB;

/// The churn, the cache, the cycles and the largest size of an account's arrays.
#[derive(Debug, Clone, Copy)]
struct Kind {
    /// Arrays that come and go before each collection that decides, and those that stay.
    churn: u64,
    cache: u64,
    /// Collections that decide.
    cycles: u64,
    largest_bytes: u64,
}

/// One account after the other, in one ledger.
struct World {
    ledger: Ledger,
    rng: Rng,
    countdown: Countdown,
}

/// An account: what it holds in truth, and its records.
struct Program {
    purse: PurseId,
    thinning: Thinning,
    records: Vec<(ObjectTag, u64, Epoch, u64, bool)>,
    cached_bytes: u64,
    /// Garbage that no collection has decided on.
    garbage_bytes: u64,
}

/// The distance of an estimate from the truth, in standard errors: as published, and as the usual rule
/// has it.
type Scores = Vec<(f64, f64)>;

#[derive(Default)]
struct Outcome {
    /// Of the charge before a collection decides.
    undecided: Scores,
    /// Of the charge, and of what is live, after it.
    charged: Scores,
    live: Scores,
}

impl World {
    fn new(seed: u64) -> World {
        let ledger = Ledger::new(Capacity {
            records: 1 << 16,
            purses: 1 << 13,
        });
        ledger.intervals().set(INTERVAL).expect("there is room");
        World {
            ledger,
            rng: Rng(seed),
            countdown: Countdown::new(seed ^ 0x5eed, INTERVAL),
        }
    }

    fn program(&self) -> Program {
        let thinning = Thinning::default();
        let table = self.ledger.intervals();
        let adopted = thinning.adopt(Some(REGION), HEAP, table);
        adopted.expect("there is room for a few intervals");
        Program {
            purse: self.ledger.open_purse().expect("there is room"),
            thinning,
            records: Vec::new(),
            cached_bytes: 0,
            garbage_bytes: 0,
        }
    }

    fn allocate(&mut self, program: &mut Program, size_bytes: u64, stays: bool) {
        if stays {
            program.cached_bytes += size_bytes;
        } else {
            program.garbage_bytes += size_bytes;
        }
        if !self.countdown.allocate(size_bytes, INTERVAL) {
            return;
        }
        let drawn = self.ledger.intervals().current();
        let rng = &mut self.rng;
        let chance = || rng.below(1 << 53) as f64 / (1u64 << 53) as f64;
        let verdict = (program.thinning).judge(
            u32::from(program.purse.get()),
            size_bytes,
            (drawn, INTERVAL),
            || u64::MAX,
            chance,
        );
        let interval = match verdict {
            Decision::Keep(wider) => {
                if wider != drawn {
                    (self.ledger).thin(program.purse, size_bytes, (drawn, wider), true);
                }
                wider
            }
            Decision::PassOver(wider) => {
                (self.ledger).thin(program.purse, size_bytes, (drawn, wider), false);
                return;
            }
        };
        let sample = Sample::of(program.purse, size_bytes, interval);
        let (tag, charge) = self.ledger.charge_weighed(&sample).expect("there is room");
        let birth = self.ledger.epochs().current();
        (program.thinning).kept(u32::from(program.purse.get()), size_bytes, charge.bytes);
        let record = (tag, size_bytes, birth, charge.bytes, stays);
        program.records.push(record);
    }

    /// A pause of young memory, which frees no large array that is tagged.
    fn young(&self) {
        let epochs = self.ledger.epochs();
        let epoch = epochs.current();
        epochs.gc_finished();
        epochs.died(epoch);
        epochs.confirm(epoch);
    }

    /// A collection that decides on all that was allocated before it.
    fn decide(&self, program: &mut Program) {
        let epochs = self.ledger.epochs();
        let epoch = epochs.current();
        epochs.gc_finished();
        program
            .records
            .retain(|&(tag, size_bytes, birth, _, stays)| {
                if !stays {
                    assert!(self.ledger.refund(tag));
                    program.thinning.died(size_bytes, birth);
                }
                stays
            });
        program.garbage_bytes = 0;
        epochs.old_died(epoch);
        epochs.confirm_cover(epoch);
        self.ledger.settle_thinned();
        epochs.decide_large(epoch);
        let account = u32::from(program.purse.get());
        program.thinning.settle(|each| {
            for &(_, size_bytes, _, charged_bytes, _) in &program.records {
                each(&Living {
                    account,
                    size_bytes,
                    charged_bytes,
                    is_decided: true,
                });
            }
        });
    }

    /// Returns the published figures of an account: charged and live bytes, their errors, and the errors of the
    /// usual rule.
    fn published(&self, program: &Program, used_bytes: u64) -> [(u64, f64, f64); 2] {
        let purses = [program.purse];
        let survivors = Survivors::of(&self.ledger, used_bytes, |_| {});
        let uncertainty = survivors.uncertainty(&self.ledger, &purses);
        let charged = self.ledger.totals(program.purse).charged;
        let live = survivors.live(&purses);
        let usual = |charge: Charge| standard_error_bytes(charge.variance);
        [
            (
                charged.bytes,
                uncertainty.charged_error_bytes,
                usual(charged),
            ),
            (live.bytes, uncertainty.live_error_bytes, usual(live)),
        ]
    }

    fn run(&mut self, kind: Kind, beside_bytes: Option<u64>, outcome: &mut Outcome) {
        let mut program = self.program();
        for cycle in 1..=kind.cycles {
            let arrays = kind.churn + kind.cache;
            let mut cached = 0;
            for number in 0..arrays {
                let size_bytes = REGION / 2 + 8 + 8 * self.rng.below(kind.largest_bytes / 8);
                // Those that stay lie evenly among the others.
                let stays = (number + 1) * kind.cache / arrays > cached;
                cached += u64::from(stays);
                self.allocate(&mut program, size_bytes, stays);
            }
            let is_last = cycle == kind.cycles;
            if is_last {
                let truth = program.cached_bytes + program.garbage_bytes;
                let [charged, _] = self.published(&program, 0);
                outcome.undecided.push(score(charged, truth));
            }
            self.decide(&mut program);
        }
        let used_bytes = beside_bytes.map_or(0, |beside| beside + program.cached_bytes);
        let [charged, live] = self.published(&program, used_bytes);
        outcome.charged.push(score(charged, program.cached_bytes));
        outcome.live.push(score(live, program.cached_bytes));
        for (tag, ..) in program.records {
            self.ledger.refund(tag);
        }
    }
}

fn score((bytes, error, usual): (u64, f64, f64), truth: u64) -> (f64, f64) {
    let distance = bytes as f64 - truth as f64;
    let score = |error: f64| match distance == 0.0 {
        true => 0.0,
        false => distance / error.max(1.0),
    };
    (score(error), score(usual))
}

/// Mean, deviation, and the share beyond 3.
fn moments(scores: impl Iterator<Item = f64> + Clone) -> (f64, f64, f64) {
    let n = scores.clone().count() as f64;
    let mean = scores.clone().sum::<f64>() / n;
    let squares: f64 = scores.clone().map(|z| (z - mean).powi(2)).sum();
    let beyond = scores.filter(|z| z.abs() > 3.0).count() as f64;
    (mean, (squares / n).sqrt(), beyond / n)
}

fn is_honest((mean, deviation, beyond): (f64, f64, f64)) -> bool {
    mean.abs() <= 0.15 && deviation <= 1.1 && beyond < 0.01
}

/// Judges the scores of all accounts of a kind.
fn judge(what: &str, outcome: &Outcome) -> bool {
    let mut usual_is_honest = true;
    for (name, scores) in [
        ("charged, undecided", &outcome.undecided),
        ("charged", &outcome.charged),
        ("live", &outcome.live),
    ] {
        let stated = moments(scores.iter().map(|scores| scores.0));
        let usual = moments(scores.iter().map(|scores| scores.1));
        eprintln!("{what}, {name}: {stated:.3?}; by the usual rule {usual:.3?}");
        assert!(is_honest(stated), "{what}, {name}: {stated:.3?}");
        usual_is_honest &= is_honest(usual);
    }
    usual_is_honest
}

const KINDS: [(&str, Kind); 6] = [
    (
        "a cache of a few arrays",
        Kind {
            churn: 0,
            cache: 60,
            cycles: 1,
            largest_bytes: 2 * MIB,
        },
    ),
    (
        "a few arrays among much churn",
        Kind {
            churn: 300,
            cache: 8,
            cycles: 1,
            largest_bytes: MIB,
        },
    ),
    (
        "a cache that fills slowly",
        Kind {
            churn: 150,
            cache: 8,
            cycles: 4,
            largest_bytes: MIB,
        },
    ),
    (
        "half of it stays",
        Kind {
            churn: 40,
            cache: 40,
            cycles: 2,
            largest_bytes: 2 * MIB,
        },
    ),
    (
        "much of it stays",
        Kind {
            churn: 100,
            cache: 100,
            cycles: 1,
            largest_bytes: MIB,
        },
    ),
    (
        "a large array or two",
        Kind {
            churn: 200,
            cache: 2,
            cycles: 1,
            largest_bytes: 4 * MIB,
        },
    ),
];
const ACCOUNTS: usize = 1_000;

#[test]
fn estimates_of_thinned_arrays_are_as_far_off_as_they_say() {
    for (number, (what, kind)) in KINDS.iter().enumerate() {
        let mut world = World::new(7 + number as u64);
        let mut outcome = Outcome::default();
        for _ in 0..ACCOUNTS {
            world.run(*kind, None, &mut outcome);
        }
        let usual_is_honest = judge(what, &outcome);
        assert!(
            !usual_is_honest,
            "{what}: this finds no fault in the usual rule"
        );
    }
}

/// The heap has no room for what the error would allow: it is smaller for it, and still the real one.
#[test]
fn the_room_in_the_heap_bounds_the_error_of_live_bytes() {
    for (number, (what, kind)) in KINDS.iter().enumerate() {
        let mut outcomes = [Outcome::default(), Outcome::default()];
        for (outcome, beside_bytes) in outcomes.iter_mut().zip([None, Some(MIB)]) {
            let mut world = World::new(70 + number as u64);
            for _ in 0..ACCOUNTS {
                world.run(*kind, beside_bytes, outcome);
            }
        }
        let [unbounded, bounded] =
            outcomes.map(|outcome| moments(outcome.live.into_iter().map(|scores| scores.0)));
        eprintln!("{what}: {unbounded:.3?}, with the room known {bounded:.3?}");
        assert!(bounded.2 < 0.015, "{what}: {bounded:.3?}");
        assert!(bounded.1 >= unbounded.1, "{what}: {bounded:.3?}");
    }
}

/// Until a collection decides, what was passed over is missing from live bytes: within their error.
#[test]
fn what_is_undecided_is_within_the_error_of_live_bytes() {
    let mut world = World::new(3);
    let (mut outermost, mut sum) = (0.0f64, 0.0);
    for _ in 0..ACCOUNTS {
        let mut program = world.program();
        for _ in 0..150 {
            world.allocate(&mut program, MIB, true);
        }
        world.young();
        let [_, (live_bytes, error, usual)] = world.published(&program, 0);
        assert!(usual < MIB as f64, "the usual rule knows nothing of it");
        let z = (live_bytes as f64 - program.cached_bytes as f64) / error;
        outermost = outermost.max(z.abs());
        sum += z;
        world.decide(&mut program);
        for (tag, ..) in program.records {
            world.ledger.refund(tag);
        }
    }
    let mean = sum / ACCOUNTS as f64;
    assert!(outermost < 2.0, "{outermost}");
    assert!(
        mean < -1.0,
        "all of it lives, and most of it is missing: {mean}"
    );
}

#[test]
fn an_account_without_a_live_sample_may_hold_what_goes_unseen() {
    let mut world = World::new(5);
    let bound = |world: &World, program: &Program, used_bytes| {
        let survivors = Survivors::of(&world.ledger, used_bytes, |_| {});
        let purses = [program.purse];
        let uncertainty = survivors.uncertainty(&world.ledger, &purses);
        uncertainty.live_at_most_bytes
    };
    let mut program = world.program();
    let of_interval = unseen_at_most_bytes(INTERVAL);
    assert_eq!(bound(&world, &program, 0), Some(of_interval));
    for _ in 0..400 {
        world.allocate(&mut program, MIB, false);
    }
    world.decide(&mut program);
    let wide = bound(&world, &program, 0).expect("nothing is live");
    assert!(wide > unseen_at_most_bytes(16 * MIB), "{wide}");
    assert_eq!(bound(&world, &program, 10 * MIB), Some(10 * MIB));
    assert_eq!(bound(&world, &program, 1), Some(of_interval));
    world.countdown = Countdown::new(1, 0);
    while program.records.is_empty() {
        world.allocate(&mut program, 2 * MIB, true);
    }
    world.young();
    assert_eq!(bound(&world, &program, 0), None, "one is live");
}

/// Many threads draw, keep and refund while the enforcer settles: what is left is what is held.
#[test]
fn threads_that_draw_while_the_enforcer_settles_lose_nothing() {
    const ROUNDS: u64 = 500;
    let ledger = Ledger::new(Capacity {
        records: 1 << 14,
        purses: 2,
    });
    ledger.intervals().set(INTERVAL).expect("there is room");
    let wider = ledger.intervals().thinned(16 * MIB).expect("there is room");
    let purse = ledger.open_purse().expect("there is room");
    let (ledger, drawn) = (&ledger, ledger.intervals().current());
    let work = || {
        for _ in 0..ROUNDS {
            ledger.thin(purse, MIB, (drawn, wider), true);
            ledger.thin(purse, MIB, (drawn, wider), false);
            let sample = Sample::of(purse, MIB, wider);
            let tag = ledger.charge(&sample).expect("there is room");
            assert!(ledger.refund(tag));
        }
    };
    std::thread::scope(|scope| {
        (0..4).for_each(|_| _ = scope.spawn(work));
        for _ in 0..100 {
            ledger.settle_thinned();
            std::thread::yield_now();
        }
    });
    ledger.settle_thinned();
    let left = ledger.thinned(purse);
    assert_eq!((left.held, left.kept, left.passed_bytes), (0.0, 0.0, 0.0));
    assert!(left.drawn.is_finite() && left.drawn >= 0.0, "{left:?}");
}
