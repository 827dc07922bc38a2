//! The governor on simulated programs.

use super::*;
use proptest::prelude::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn wanted() -> Wanted {
    Wanted {
        interval_bytes: 64 * KIB,
        may_be_finer: false,
        budget: Some(0.01),
        most_tracked: 1_000_000,
    }
}

/// A program of two processors that allocates at this rate, whose samples take so long each.
struct Program {
    bytes_per_second: f64,
    sample: Duration,
    samples: f64,
    now: Measured,
}

impl Program {
    fn new(bytes_per_second: f64, sample_us: f64) -> Program {
        Program {
            bytes_per_second,
            sample: Duration::from_secs_f64(sample_us / 1e6),
            samples: 0.0,
            now: Measured::default(),
        }
    }

    /// A second passes; the share of the CPU time that samples took in it.
    fn second(&mut self, interval_bytes: u64) -> f64 {
        let samples = self.bytes_per_second / interval_bytes as f64;
        let took = self.sample.mul_f64(samples).min(Duration::from_secs(2));
        self.now.since_start += Duration::from_secs(1);
        self.now.process_cpu += Duration::from_secs(2);
        self.now.samples_cpu += took;
        self.samples += samples;
        self.now.timed = (self.samples / 64.0) as u64;
        took.as_secs_f64() / 2.0
    }
}

fn governor() -> Governor {
    let mut governor = Governor::default();
    assert_eq!(governor.adopt(wanted()), 64 * KIB);
    governor
}

#[test]
fn cheap_samples_are_left_alone() {
    let mut governor = governor();
    let mut program = Program::new(500e6, 1.0);
    for _ in 0..100 {
        program.second(governor.interval_bytes());
        assert_eq!(governor.look(&program.now), None);
    }
}

#[test]
fn dear_samples_are_taken_less_often_at_once_and_more_often_when_it_is_calm() {
    let mut governor = governor();
    let mut program = Program::new(1e9, 50.0);
    program.second(64 * KIB);
    let change = governor.look(&program.now).expect("38 % is more than 1");
    assert_eq!((change.interval_bytes, change.why), (4 * MIB, Why::Cost));
    program.bytes_per_second = 1e6;
    let mut narrowed = Vec::new();
    for second in 0..2000 {
        program.second(governor.interval_bytes());
        if let Some(change) = governor.look(&program.now) {
            assert_eq!(change.why, Why::Calm);
            narrowed.push((second, change.interval_bytes / KIB));
        }
    }
    let sizes: Vec<u64> = narrowed.iter().map(|(_, kib)| *kib).collect();
    assert_eq!(sizes, [2048, 1024, 512, 256, 128, 64]);
    assert!(narrowed.windows(2).all(|two| two[1].0 - two[0].0 >= 10));
}

#[test]
fn an_idle_process_and_a_single_slow_sample_widen_nothing() {
    let mut governor = governor();
    let mut now = Measured::default();
    for _ in 0..100 {
        now.since_start += Duration::from_secs(1);
        now.process_cpu += Duration::from_millis(2);
        now.samples_cpu += Duration::from_micros(500);
        now.timed += 1;
        assert_eq!(governor.look(&now), None);
    }
    // One sample was slow, and counts for 64.
    now.since_start += Duration::from_secs(20);
    now.samples_cpu += Duration::from_secs(3);
    now.timed += 2;
    assert_eq!(governor.look(&now), None);
}

#[test]
fn a_large_heap_is_sampled_wider_before_its_tags_cost_pauses() {
    let mut governor = governor();
    let mut now = Measured {
        charged_bytes: 6 << 30,
        ..Measured::default()
    };
    assert_eq!(governor.look(&now), None);
    now.charged_bytes = 20 << 30;
    let change = governor.look(&now).expect("327,680 samples are too many");
    assert_eq!((change.interval_bytes, change.why), (256 * KIB, Why::Tags));
    now.charged_bytes = 8 << 30;
    assert_eq!(governor.look(&now), None, "not at the same place");
    now.charged_bytes = 3 << 30;
    assert_eq!(
        governor.look(&now).map(|c| c.interval_bytes),
        Some(64 * KIB)
    );
}

#[test]
fn where_collections_are_many_fewer_tags_are_affordable() {
    let mut governor = governor();
    let mut now = Measured {
        charged_bytes: 2 << 30,
        ..Measured::default()
    };
    let mut seconds = |governor: &mut Governor, seconds: u64, collections: u64| {
        for _ in 0..seconds {
            now.since_start += Duration::from_secs(1);
            now.process_cpu += Duration::from_secs(2);
            now.collections += collections;
            let change = governor.look(&now);
            assert!(change.is_none_or(|change| change.why != Why::Cost));
        }
        governor.interval_bytes() / KIB
    };
    // 32,768 tags at 1 collection a second are 3.3 ms of 2 s, well below a hundredth.
    assert_eq!(seconds(&mut governor, 60, 1), 64);
    // At 20 they are 66 ms, where 20 are allowed.
    assert_eq!(seconds(&mut governor, 20, 20), 256);
    // Not narrowed at the same place.
    assert_eq!(seconds(&mut governor, 60, 12), 256);
    assert_eq!(seconds(&mut governor, 60, 1), 64);
    // Nor is an idle program's heap, which is collected when it has allocated enough.
    assert_eq!(seconds(&mut governor, 60, 0), 64);
}

#[test]
fn a_limit_costs_no_more_than_the_budget() {
    let mut governor = governor();
    let mut program = Program::new(1e9, 50.0);
    program.now.smallest_limit_bytes = Some(256 * MIB);
    program.second(64 * KIB);
    let change = governor.look(&program.now).expect("it is dear");
    assert_eq!((change.interval_bytes, change.why), (4 * MIB, Why::Cost));
    program.now.smallest_limit_bytes = Some(16 * MIB);
    for _ in 0..100 {
        assert!(program.second(governor.interval_bytes()) <= 0.01);
        assert_eq!(governor.look(&program.now), None);
    }
}

/// A governor that chooses the interval itself.
fn free_governor() -> Governor {
    let mut governor = Governor::default();
    let may_be_finer = true;
    governor.adopt(Wanted {
        may_be_finer,
        ..wanted()
    });
    governor
}

#[test]
fn a_small_limit_is_sampled_finer_where_that_is_cheap() {
    for (limit, kib) in [
        (None, 64),
        (Some(2 << 30), 64),
        (Some(256 * MIB), 64),
        (Some(255 * MIB), 32),
        (Some(96 * MIB), 16),
        (Some(MIB), 16),
    ] {
        let mut program = Program::new(50e6, 1.0);
        program.now.smallest_limit_bytes = limit;
        let (mut governor, mut named) = (free_governor(), governor());
        for _ in 0..100 {
            program.second(governor.interval_bytes());
            governor.look(&program.now);
            named.look(&program.now);
        }
        assert_eq!(governor.interval_bytes(), kib * KIB, "{limit:?}");
        assert_eq!(named.interval_bytes(), 64 * KIB, "the policy names it");
    }
}

#[test]
fn a_finer_interval_is_widened_within_the_budget() {
    let mut governor = free_governor();
    let mut program = Program::new(1e9, 1.0);
    program.now.smallest_limit_bytes = Some(96 * MIB);
    let mut shares = Vec::new();
    for _ in 0..300 {
        shares.push(program.second(governor.interval_bytes()));
        governor.look(&program.now);
    }
    assert!(
        shares.iter().filter(|share| **share > 0.01).count() <= 5,
        "{shares:?}"
    );
    assert_eq!(governor.interval_bytes(), 64 * KIB);
    // A new small limit does not narrow what samples cost too much for already.
    let mut program = Program::new(1e9, 50.0);
    let mut governor = free_governor();
    program.second(governor.interval_bytes());
    governor.look(&program.now);
    let wide = governor.interval_bytes();
    program.now.smallest_limit_bytes = Some(8 << 30);
    governor.look(&program.now);
    assert_eq!(governor.interval_bytes(), wide);
}

/// Seconds in which samples took more than the budget, and the finest interval in them.
fn burst(governor: &mut Governor, program: &mut Program, seconds: u64) -> (usize, u64) {
    let (mut dear, mut finest) = (0, u64::MAX);
    for _ in 0..seconds {
        dear += usize::from(program.second(governor.interval_bytes()) > 0.01);
        finest = finest.min(governor.interval_bytes());
        governor.look(&program.now);
    }
    (dear, finest / KIB)
}

#[test]
fn an_account_that_fills_is_sampled_finer_until_the_credit_is_used_up() {
    let mut governor = free_governor();
    // 0.8 % at 64 KiB.
    let mut program = Program::new(100e6, 10.0);
    program.now.smallest_limit_bytes = Some(96 * MIB);
    let (dear, _) = burst(&mut governor, &mut program, 60);
    assert!(dear <= 5, "nobody fills: {dear}");
    assert_eq!(
        governor.interval_bytes(),
        64 * KIB,
        "no wider: it is a small limit"
    );
    program.now.wants.is_any_filling = true;
    let (dear, finest) = burst(&mut governor, &mut program, 20);
    assert!(dear >= 18, "{dear}");
    assert_eq!(finest, 16, "the finest: 3.1 % of the CPU time");
    let (_, finest) = burst(&mut governor, &mut program, 600);
    assert_eq!(finest, 16);
    assert_eq!(governor.interval_bytes(), 64 * KIB, "the credit is used up");
    program.now.wants.is_any_filling = false;
    program.bytes_per_second = 1e6;
    burst(&mut governor, &mut program, 120);
    program.bytes_per_second = 100e6;
    program.now.wants.is_any_filling = true;
    let (dear, _) = burst(&mut governor, &mut program, 10);
    assert!(dear >= 9, "there is credit again: {dear}");
}

/// Beside a busy neighbour a process gets little, and a few samples that were interrupted look dear: a burst goes by a
/// whole processor at the least.
#[test]
fn a_burst_takes_its_share_of_a_whole_processor() {
    let share = |in_use, budget| {
        let credit = Credit {
            in_use,
            is_burst: true,
            ..Credit::default()
        };
        (credit.share(budget) * 1e4).round()
    };
    assert_eq!(share(0.2, 0.005), 4_000.0);
    assert_eq!(share(2.0, 0.005), 800.0);
    assert_eq!(share(2.0, 0.05), 1_000.0, "no more than a tenth");
    assert_eq!(share(2.0, 0.2), 2_000.0, "unless the budget is more");
}

#[test]
fn in_a_quiet_process_one_that_fills_is_sampled_within_the_budget_of_a_processor() {
    let mut governor = free_governor();
    let mut now = Measured {
        smallest_limit_bytes: Some(96 * MIB),
        ..Measured::default()
    };
    let mut seconds = |governor: &mut Governor, seconds: u32, fills: bool| {
        now.wants.is_any_filling = fills;
        let mut finest = u64::MAX;
        for _ in 0..seconds {
            let interval = governor.interval_bytes();
            finest = finest.min(interval / KIB);
            let samples = 10 * MIB / interval;
            now.since_start += Duration::from_secs(1);
            now.process_cpu += Duration::from_millis(50);
            now.samples_cpu += Duration::from_micros(10) * samples as u32;
            now.timed += samples;
            governor.look(&now);
        }
        (finest, governor.interval_bytes() / KIB)
    };
    // A tenth of a processor: 1 ms a second, which 100 samples take.
    assert_eq!(seconds(&mut governor, 60, false).1, 128);
    assert_eq!(seconds(&mut governor, 20, true), (16, 16));
    assert_eq!(seconds(&mut governor, 600, true).1, 128, "it is used up");
}

/// An error is thrown at a sample alone: in a quiet process the budget of a tenth of a processor lets most of a leak by.
#[test]
fn while_an_account_is_refused_a_quiet_process_counts_as_a_processor() {
    let mut governor = free_governor();
    let mut now = Measured {
        smallest_limit_bytes: Some(96 * MIB),
        ..Measured::default()
    };
    let mut took = Duration::ZERO;
    let mut seconds = |governor: &mut Governor, seconds: u32, is_refused: bool| {
        now.wants.is_any_refused = is_refused;
        took = Duration::ZERO;
        for _ in 0..seconds {
            let samples = 30 * MIB / governor.interval_bytes();
            now.since_start += Duration::from_secs(1);
            now.process_cpu += Duration::from_millis(50);
            now.samples_cpu += Duration::from_micros(10) * samples as u32;
            took += Duration::from_micros(10) * samples as u32;
            now.timed += samples;
            governor.look(&now);
        }
        (governor.interval_bytes() / KIB, took)
    };
    assert_eq!(seconds(&mut governor, 60, false).0, 512);
    assert!(seconds(&mut governor, 3, true).0 <= 32, "at once");
    // Its credit is used up by then: a hundredth of a processor.
    seconds(&mut governor, 600, true);
    let (interval_kib, took) = seconds(&mut governor, 100, true);
    assert_eq!(interval_kib, 32);
    assert!(took <= Duration::from_secs(1), "{took:?}");
    assert_eq!(seconds(&mut governor, 100, false).0, 512);
}

#[test]
fn limits_that_come_and_go_do_not_make_it_swing() {
    let mut governor = free_governor();
    let mut program = Program::new(10e6, 1.0);
    let mut changes = 0;
    for second in 0..200 {
        program.now.smallest_limit_bytes = (second % 20 < 10).then_some(64 * MIB);
        program.second(governor.interval_bytes());
        changes += u32::from(governor.look(&program.now).is_some());
    }
    assert_eq!((changes, governor.interval_bytes()), (1, 16 * KIB));
    program.now.smallest_limit_bytes = None;
    for _ in 0..70 {
        program.second(governor.interval_bytes());
        governor.look(&program.now);
    }
    assert_eq!(governor.interval_bytes(), 64 * KIB);
}

#[test]
fn no_interval_is_wider_than_the_vm_may_be_told() {
    let mut governor = Governor::default();
    governor.adopt(Wanted {
        interval_bytes: 24 * MIB,
        ..wanted()
    });
    let mut program = Program::new(20e9, 5000.0);
    program.now.charged_bytes = 1 << 50;
    for _ in 0..100 {
        program.second(governor.interval_bytes());
        governor.look(&program.now);
    }
    assert_eq!(governor.interval_bytes(), 48 * MIB);
}

#[test]
fn exact_mode_and_no_budget_are_left_alone() {
    for (interval_bytes, budget) in [(0, Some(0.01)), (64 * KIB, None)] {
        let mut governor = Governor::default();
        governor.adopt(Wanted {
            interval_bytes,
            budget,
            ..wanted()
        });
        let mut program = Program::new(1e9, 50.0);
        program.now.charged_bytes = 1 << 40;
        program.second(64 * KIB);
        assert_eq!(governor.look(&program.now), None);
    }
}

#[test]
fn another_policy_begins_anew_and_the_same_one_does_not() {
    let mut governor = governor();
    let mut program = Program::new(1e9, 50.0);
    program.second(64 * KIB);
    governor.look(&program.now);
    assert_eq!(governor.adopt(wanted()), 4 * MIB);
    let finer = Wanted {
        interval_bytes: 16 * KIB,
        ..wanted()
    };
    assert_eq!(governor.adopt(finer), 16 * KIB);
}

proptest! {
    /// Whatever the program does steadily, sampling comes within its budget in a moment, or
    /// is as wide as may be, and does not swing.
    #[test]
    fn it_settles(rate in 1e5f64..2e10, sample_us in 0.1f64..500.0) {
        let mut governor = governor();
        let mut program = Program::new(rate, sample_us);
        let mut changes = 0;
        for second in 0..300 {
            let share = program.second(governor.interval_bytes());
            changes += u32::from(governor.look(&program.now).is_some());
            let widest = governor.interval_bytes() == (64 * KIB) << MAX_INTERVAL_DOUBLINGS;
            prop_assert!(second < 15 || share <= 0.01 || widest, "{share} in second {second}");
        }
        prop_assert!(changes <= 3, "{changes}");
    }

    /// Whatever fills when, samples take no more than the budget of all the time, of what may be saved,
    /// and of the windows in which it is noticed: one at each change.
    #[test]
    fn the_budget_holds_on_average(
        phases in proptest::collection::vec((1u64..200, 1e5f64..2e9, any::<bool>()), 1..20),
        sample_us in 0.1f64..20.0,
    ) {
        let mut governor = free_governor();
        let mut program = Program::new(0.0, sample_us);
        program.now.smallest_limit_bytes = Some(512 * MIB);
        let mut beyond = 0.0;
        for (seconds, rate, fills) in &phases {
            program.bytes_per_second = *rate;
            program.now.wants.is_any_filling = *fills;
            for second in 0..*seconds {
                let finest = governor.interval_bytes() == governor.finest_bytes();
                let widest = governor.interval_bytes()
                    == governor.finest_bytes() << governor.most_level();
                let share = program.second(governor.interval_bytes());
                prop_assert!(
                    second < 15 || share <= MAX_IN_BURST || widest,
                    "{share} in second {second}, finest: {finest}"
                );
                // No rule can help in the first seconds of a phase, or at the widest interval.
                if second < 15 || widest {
                    beyond += share * 2.0;
                }
                governor.look(&program.now);
            }
        }
        let all = program.now.process_cpu.as_secs_f64();
        let took = program.now.samples_cpu.as_secs_f64();
        prop_assert!(took <= 0.01 * (all + 2.0 * SAVED.as_secs_f64()) + beyond + 0.5, "{took} of {all}");
    }

    /// The same where the agent chooses the interval for a limit, which it then begins with.
    #[test]
    fn it_settles_with_a_limit(
        rate in 1e5f64..2e10, sample_us in 0.1f64..500.0, limit_log in 20f64..40.0,
    ) {
        let mut governor = free_governor();
        let mut program = Program::new(rate, sample_us);
        let limit = Some(limit_log.exp2() as u64);
        program.now.smallest_limit_bytes = limit;
        let mut changes = 0;
        for second in 0..300 {
            let share = program.second(governor.interval_bytes());
            changes += u32::from(governor.look(&program.now).is_some());
            let widest = governor.finest_bytes() << governor.most_level();
            let is_widest = governor.interval_bytes() == widest;
            prop_assert!(second < 15 || share <= 0.01 || is_widest, "{share} in second {second}");
        }
        prop_assert!(changes <= 4, "{changes}");
    }
}
