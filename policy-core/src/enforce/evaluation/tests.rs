use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy_config::Throw;

use super::*;
use crate::enforce::door::{Answer, DoorRules, LIGHT_SHARE};
use crate::enforce::duress::Figures;
use crate::enforce::gate::{Due, Gate};
use crate::ledger::watched::during_scans;
use crate::ledger::{Capacity, ObjectTag, Sample};
use crate::ports::CollectorKind;
use crate::sum_against_heap::{Judged, Reading};
use crate::uncertainty::Survivors;

#[test]
fn the_statuses_are_not_locked_while_records_are_passed_over() {
    let ledger = Ledger::new(Capacity {
        records: 100,
        purses: 10,
    });
    let purse = ledger.open_purse().expect("room");
    ledger.charge_to(purse, 1 << 20);
    let epochs = ledger.epochs();
    let epoch = epochs.current();
    epochs.gc_finished();
    epochs.died(epoch);
    epochs.confirm(epoch);
    // The closure that runs inside the pass must be `'static`.
    let enforcement: &'static Enforcement = Box::leak(Box::new(Enforcement::new()));
    let account: Arc<str> = "a".into();
    let limited = LimitedAccount {
        account: account.clone(),
        gate: u32::from(purse.get()),
        purses: vec![purse],
        limit_bytes: Some(1 << 20),
        soft_limit_bytes: None,
        throw: Throw::Oom,
        door: None,
        admit: Arc::default(),
        status: 503,
        priority: 1.0,
    };
    let mut evaluation = Evaluation::default();
    evaluation.adopt(
        vec![limited],
        &ledger,
        &mut enforcement.statuses(),
        &enforcement.gates,
        || {},
    );
    let context = CheckContext {
        ledger: &ledger,
        gates: &enforcement.gates,
        free_heap_bytes: 1 << 30,
        max_heap_bytes: 1 << 30,
        duress: Figures::default(),
        only_in_duress: false,
        enforced: true,
        sum: Judged::default(),
        collector: None,
        test_refuse: None,
        now: Instant::now(),
    };
    let look = || {
        assert!(
            enforcement.try_statuses().is_some(),
            "the statuses are locked"
        )
    };
    let mut access = enforcement;
    let passes = during_scans(look, || {
        evaluation.turn(&context, &mut access, &mut |_, _, _| {});
    });
    assert_eq!(passes, 1);
    let statuses = enforcement.statuses();
    let status = statuses.status(&account).expect("it has a limit");
    assert_eq!(
        status.survived.left.bytes,
        ledger.totals(purse).charged.bytes
    );
}

/// An account with a limit of 64 MiB, and a door unless a test wants none, on which a test charges, collects
/// and looks.
struct Doored {
    ledger: Ledger,
    enforcement: Enforcement,
    purse: PurseId,
    kept: RefCell<Vec<ObjectTag>>,
    evaluation: Evaluation,
    now: Instant,
    free_heap_bytes: u64,
    enforced: bool,
    is_duress: bool,
    only_in_duress: bool,
    sum: Judged,
    collector: CollectorKind,
}

const MIB: u64 = 1 << 20;
const LIMIT_BYTES: u64 = 64 * MIB;

impl Doored {
    fn new() -> Doored {
        Doored::with(Some(DoorRules {
            reserve_share: 0.125,
        }))
    }

    fn without_door() -> Doored {
        Doored::with(None)
    }

    fn with(door: Option<DoorRules>) -> Doored {
        let ledger = Ledger::new(Capacity {
            records: 1_000,
            purses: 10,
        });
        ledger.intervals().set(0).expect("every allocation");
        let purse = ledger.open_purse().expect("room");
        let enforcement = Enforcement::new();
        let limited = LimitedAccount {
            account: "a".into(),
            gate: u32::from(purse.get()),
            purses: vec![purse],
            limit_bytes: Some(LIMIT_BYTES),
            soft_limit_bytes: None,
            throw: Throw::Oom,
            door,
            admit: Arc::default(),
            status: 503,
            priority: 1.0,
        };
        let mut evaluation = Evaluation::default();
        evaluation.adopt(
            vec![limited],
            &ledger,
            &mut enforcement.statuses(),
            &enforcement.gates,
            || {},
        );
        Doored {
            ledger,
            enforcement,
            purse,
            kept: RefCell::default(),
            evaluation,
            now: Instant::now(),
            free_heap_bytes: 1 << 29,
            enforced: true,
            is_duress: false,
            only_in_duress: false,
            sum: Judged::default(),
            collector: CollectorKind::G1,
        }
    }

    fn turn(&mut self) {
        self.look();
    }

    /// A turn; what is needed, and when to look again.
    fn look(&mut self) -> (Need, Duration) {
        let context = CheckContext {
            ledger: &self.ledger,
            gates: &self.enforcement.gates,
            free_heap_bytes: self.free_heap_bytes,
            max_heap_bytes: 1 << 30,
            duress: Figures {
                is_on: self.is_duress,
                free_bytes: self.free_heap_bytes,
                short_below_bytes: self.free_heap_bytes + u64::from(self.is_duress),
            },
            only_in_duress: self.only_in_duress,
            enforced: self.enforced,
            sum: self.sum,
            collector: Some(self.collector),
            test_refuse: None,
            now: self.now,
        };
        let mut access = &self.enforcement;
        (self.evaluation).turn(&context, &mut access, &mut |_, _, _| {})
    }

    fn gate(&self) -> &Gate {
        let gate = self.enforcement.gates.get(u32::from(self.purse.get()));
        gate.expect("it has a limit")
    }

    /// Charges what is kept; returns what the gate says of the last charge.
    fn keep(&self, mib: u64) -> Option<Due> {
        let mut due = None;
        for _ in 0..mib {
            let tag = self.ledger.charge_to(self.purse, MIB);
            self.kept.borrow_mut().push(tag);
            due = self.gate().pass(MIB, MIB).due;
        }
        due
    }

    /// Frees the `mib` objects of a mebibyte that were kept last.
    fn let_go(&self, mib: u64) {
        for _ in 0..mib {
            let tag = self.kept.borrow_mut().pop().expect("it was kept");
            assert!(self.ledger.refund(tag));
        }
    }

    /// A collection of all memory, in which nothing dies.
    fn collect(&self) {
        let epochs = self.ledger.epochs();
        let epoch = epochs.current();
        epochs.gc_finished();
        epochs.died(epoch);
        epochs.confirm(epoch);
        epochs.confirm_cover(epoch);
    }

    /// A pause ends, whose deaths nobody has reported.
    fn pause(&self) {
        let epochs = self.ledger.epochs();
        epochs.gc_finished();
        self.enforcement.gates.begin(epochs.current());
    }

    /// Turns and collections in turn, enough for a verdict.
    fn decide(&mut self) {
        for _ in 0..4 {
            self.now += Duration::from_secs(2);
            self.turn();
            self.collect();
        }
        self.turn();
    }

    fn word(&self) -> (bool, bool) {
        let (word, _) = self.gate().word();
        (word.shut, word.over)
    }
}

#[test]
fn the_door_shuts_at_the_limit_and_errors_begin_at_the_reserve() {
    let mut account = Doored::new();
    account.turn();
    account.keep(60);
    account.decide();
    assert_eq!(account.word(), (false, false));
    assert!(!account.enforcement.gates.is_any_asked());
    assert_eq!(account.gate().knock(0, false), Answer::In);
    // Beyond the limit nobody is stopped or waits before there is a verdict.
    assert_eq!(account.keep(8), None);
    account.turn();
    assert!(!account.enforcement.gates.is_any_asked());
    assert_eq!(account.gate().knock(0, false), Answer::In);
    account.decide();
    assert_eq!(account.word(), (true, false));
    assert!(account.enforcement.gates.is_any_asked());
    let Answer::Probe(ticket) = account.gate().knock(5, false) else {
        panic!("the first goes in as a probe");
    };
    assert!(matches!(account.gate().knock(6, true), Answer::Away { .. }));
    account.gate().probe_ended(ticket, 7);
    assert_eq!(account.keep(3), None, "the reserve is 8 MiB");
    account.decide();
    assert_eq!(account.word(), (true, false));
    assert_eq!(account.keep(3), None, "no verdict about the reserve yet");
    account.decide();
    assert_eq!(account.word(), (true, true));
    assert_eq!(account.keep(1), Some(Due::Over));
    // Errors end as soon as it is within limit and reserve.
    account.let_go(4);
    account.decide();
    assert_eq!(account.word(), (true, false));
    let counts = account.gate().drain();
    assert_eq!(counts.admission_refusals, 1);
    let statuses = account.enforcement.statuses();
    let status = statuses.status("a").expect("it has a limit");
    assert_eq!(status.counts.waited_ms, 0, "nobody waited");
}

#[test]
fn in_duress_suspects_wait_and_the_first_to_be_refused_has_no_reserve() {
    let mut account = Doored::new();
    account.turn();
    account.keep(60);
    account.decide();
    account.is_duress = true;
    account.turn();
    assert_eq!(account.keep(8), Some(Due::Overdrawn));
    account.decide();
    assert_eq!(account.word(), (true, true), "errors at its limit");
    account.is_duress = false;
    account.decide();
    assert_eq!(account.word(), (true, false), "it has its reserve again");
}

#[test]
fn limits_that_bind_in_duress_alone_refuse_nobody_before() {
    let mut account = Doored::new();
    account.only_in_duress = true;
    account.turn();
    account.keep(90);
    account.decide();
    assert_eq!(account.word(), (false, false));
    assert_eq!(account.gate().knock(0, false), Answer::In);
    account.is_duress = true;
    account.decide();
    assert_eq!(account.word(), (true, true));
    account.is_duress = false;
    account.decide();
    assert_eq!(account.word(), (false, false));
}

/// Who is refused is looked at again sooner where a collection of old memory may not find all of its garbage.
#[test]
fn an_account_that_is_over_is_looked_at_again() {
    for (enforced, collector, again_ms) in [
        (true, CollectorKind::StopTheWorld, 4_000),
        (true, CollectorKind::G1, 1_000),
        (false, CollectorKind::G1, 4_000),
    ] {
        let mut account = Doored::new();
        (account.enforced, account.collector) = (enforced, collector);
        account.turn();
        account.keep(70);
        account.decide();
        account.turn();
        account.now += Duration::from_millis(again_ms - 1);
        assert_eq!(account.look(), (Need::None, Duration::from_millis(1)));
        account.now += Duration::from_millis(1);
        assert_eq!(account.look().0, Need::Covering);
    }
}

/// Verdicts and reports have one error for one account at one moment: with arrays that are thinned, a class of which
/// samples were passed over, and while errors are widened.
#[test]
fn a_verdict_has_the_error_that_reports_state() {
    const INTERVAL: u64 = 64 << 10;
    let mut account = Doored::new();
    let table = account.ledger.intervals();
    table.set(INTERVAL).expect("there is room");
    let drawn = table.current();
    let wider = table.named(8 * MIB).expect("there is room");
    account.turn();
    for at in 0..100 {
        account
            .ledger
            .thin(account.purse, MIB, (drawn, wider), at % 10 == 0);
        if at % 10 == 0 {
            let sample = Sample::of(account.purse, MIB, wider);
            account.ledger.charge(&sample).expect("room");
        }
    }
    account.keep(60);
    account.ledger.pass_over(account.purse, wider);
    let mut widened = Vec::new();
    for factor in [1.0, 3.0] {
        account.ledger.set_error_factor(factor);
        account.decide();
        account.ledger.settle_thinned();
        account.collect();
        account.decide();
        let used_bytes = (1 << 30) - account.free_heap_bytes;
        let survivors = Survivors::of(&account.ledger, used_bytes, |_| {});
        let stated = survivors.uncertainty(&account.ledger, &[account.purse]);
        let of_records = survivors.live(&[account.purse]).variance;
        let of_records = Estimate {
            bytes: 0,
            variance: of_records,
        };
        let statuses = account.enforcement.statuses();
        let status = statuses.status("a").expect("it has a limit");
        let of_verdicts = [status.survived.left, status.covered.left, status.charged]
            .map(Estimate::standard_error_bytes);
        let (live, charged) = (stated.live_error_bytes, stated.charged_error_bytes);
        assert_eq!(of_verdicts, [live, live, charged], "{stated:?}");
        assert!(live > 1.2 * of_records.standard_error_bytes(), "{stated:?}");
        widened.push(live);
    }
    assert!((widened[1] / widened[0] - 3.0).abs() < 1e-3, "{widened:?}");
}

/// The accounts sum up to twice the heap, or fit into it.
fn reading(accounts_bytes: u64) -> Reading {
    Reading::of_mib(accounts_bytes / MIB, 1.0, 100)
}

#[test]
fn no_verdict_rests_on_accounts_that_exceed_the_heap() {
    let mut account = Doored::new();
    account.turn();
    account.keep(90);
    // The first reading beyond it is not a finding yet, but no verdict begins on it.
    account.sum = account.sum.next(reading(200 * MIB));
    account.decide();
    assert_eq!(account.word(), (false, false));
    account.sum = account.sum.next(reading(90 * MIB));
    account.decide();
    assert_eq!(
        account.word(),
        (true, true),
        "late refunds, and then they were in"
    );
    // A reading by itself leaves verdicts in force; the finding lifts them.
    account.sum = account.sum.next(reading(200 * MIB));
    account.turn();
    assert_eq!(account.word(), (true, true));
    account.sum = account.sum.next(reading(200 * MIB));
    account.turn();
    assert_eq!(account.word(), (false, false));
    assert_eq!(account.keep(1), None, "nobody is refused, and nobody waits");
    account.is_duress = true;
    account.decide();
    assert_eq!(account.word(), (false, false));
    assert_eq!(account.keep(1), None, "nor where the heap is short");
    account.is_duress = false;
    // It fits again.
    for _ in 0..2 {
        account.sum = account.sum.next(reading(95 * MIB));
    }
    account.decide();
    assert_eq!(account.word(), (true, true));
}

/// A load that passes limit and reserve before there is a verdict: the door comes first, and only a collection
/// that begins after it can show that what is inside does not end.
#[test]
fn however_fast_it_grows_the_door_shuts_before_an_error_is_thrown() {
    let mut account = Doored::new();
    account.turn();
    account.keep(90);
    account.turn();
    account.collect();
    account.turn();
    assert_eq!(account.word(), (true, false), "the door alone");
    // The work that was inside ends.
    account.let_go(25);
    account.decide();
    assert_eq!(account.word(), (true, false));
    account.keep(25);
    account.turn();
    assert_eq!(account.word(), (true, false), "a charge proves nothing");
    account.collect();
    account.turn();
    assert_eq!(account.word(), (true, true));
}

#[test]
fn what_is_observed_has_no_reserve_and_no_shut_door() {
    let mut account = Doored::new();
    account.enforced = false;
    account.is_duress = true;
    account.turn();
    assert_eq!(account.keep(68), None, "nobody waits, in duress neither");
    account.decide();
    assert_eq!(account.word(), (false, true), "counted, not refused");
    assert!(!account.enforcement.gates.is_any_asked());
    assert_eq!(account.gate().knock(0, false), Answer::In);
}

/// Without a door the breaker begins with the errors, and its pauses begin anew each time.
#[test]
fn a_program_asks_for_an_account_without_a_door() {
    let mut account = Doored::without_door();
    account.turn();
    account.keep(60);
    account.decide();
    assert_eq!(account.gate().ask(0, false), Answer::In);
    account.keep(8);
    account.turn();
    assert_eq!(account.gate().ask(0, false), Answer::In, "no verdict yet");
    account.decide();
    assert_eq!(account.word(), (false, true));
    assert!(!account.enforcement.gates.is_any_asked());
    assert_eq!(account.gate().knock(5, false), Answer::In, "it has no door");
    // The charges while a probe was inside: the last one was light, a thousandth of the limit.
    let probes = [
        (5, LIMIT_BYTES / 512, 100),
        (1_005, LIMIT_BYTES / 512, 200),
        (2_005, LIMIT_BYTES / 512, 400),
        (3_005, LIMIT_BYTES / LIGHT_SHARE + 1, 800),
        (4_005, LIMIT_BYTES / LIGHT_SHARE, 400),
    ];
    for (now_ms, charged_bytes, pause_ms) in probes {
        let Answer::Probe(ticket) = account.gate().ask(now_ms, false) else {
            panic!("the first goes in as a probe");
        };
        let busy = account.gate().ask(now_ms + 1, true);
        assert!(matches!(busy, Answer::Away { .. }), "{busy:?}");
        account.gate().pass(charged_bytes, 8);
        account.gate().probe_ended(ticket, now_ms + 2);
        let retry_after_ms = pause_ms;
        let pausing = account.gate().ask(now_ms + 2, false);
        assert_eq!(pausing, Answer::Away { retry_after_ms });
    }
    account.let_go(60);
    account.decide();
    assert_eq!(account.word(), (false, false));
    assert_eq!(account.gate().ask(6_000, false), Answer::In);
    account.keep(60);
    account.decide();
    assert_eq!(account.word(), (false, true));
    let again = account.gate().ask(6_001, false);
    let Answer::Probe(ticket) = again else {
        panic!("without a pause: {again:?}");
    };
    // The charges of its own thread make it heavy, and who is turned away meanwhile is told of the pause.
    account.gate().charge_probe(LIMIT_BYTES / 16);
    let retry_after_ms = 3_200;
    let busy = account.gate().ask(6_002, false);
    assert_eq!(busy, Answer::Away { retry_after_ms });
    account.gate().pass(LIMIT_BYTES, 8);
    account.gate().probe_ended(ticket, 6_003);
    let pausing = account.gate().ask(6_003, false);
    assert_eq!(pausing, Answer::Away { retry_after_ms });
    // The pause is forgotten when what was let in has let go of much, and the account is over still.
    account.keep(40);
    account.decide();
    account.let_go(7);
    account.decide();
    assert_eq!(account.gate().ask(6_003, false), pausing);
    account.let_go(9);
    account.decide();
    assert_eq!(account.word(), (false, true));
    let after = account.gate().ask(6_003, false);
    assert!(matches!(after, Answer::Probe(_)), "{after:?}");
    let turned_away = 2 * probes.len() as u64 + 3;
    assert_eq!(account.gate().drain().admission_refusals, turned_away);
}

#[test]
fn the_reserve_shrinks_with_the_free_heap() {
    let rules = DoorRules {
        reserve_share: 0.125,
    };
    assert_eq!(rules.reserve_bytes(64 * MIB, 512 * MIB), 8 * MIB);
    assert_eq!(rules.reserve_bytes(64 * MIB, 10 * MIB), 5 * MIB);
    assert_eq!(rules.reserve_bytes(64 * MIB, 0), 0);
    let mut account = Doored::new();
    account.free_heap_bytes = 0;
    account.turn();
    account.keep(68);
    account.decide();
    account.decide();
    assert_eq!(account.word(), (true, true), "there is no room for it");
}

/// Passes over the records pause while what is near its limit makes garbage, but not for a covering collection, in
/// duress, or where survival is not known.
#[test]
fn passes_pause_only_where_no_verdict_waits_for_them() {
    let mut account = Doored::new();
    account.turn();
    account.keep(50);
    let passes = |account: &mut Doored, covers: bool| {
        let epochs = account.ledger.epochs();
        let epoch = epochs.current();
        epochs.gc_finished();
        epochs.died(epoch);
        epochs.confirm(epoch);
        if covers {
            epochs.confirm_cover(epoch);
        }
        during_scans(|| (), || account.turn())
    };
    assert_eq!(passes(&mut account, false), 1, "it was never read");
    assert_eq!(passes(&mut account, false), 1, "it may be a leak");
    for _ in 0..4 {
        let mut statuses = account.enforcement.statuses();
        let status = statuses.status_mut(&Arc::from("a"));
        status.survival.observe(100 * MIB, 0, 1);
    }
    account.keep(10);
    passes(&mut account, false);
    assert_eq!(passes(&mut account, false), 1, "it has grown lately");
    account.now += Duration::from_secs(20);
    assert_eq!(passes(&mut account, false), 1, "it was read long ago");
    assert_eq!(passes(&mut account, false), 0, "it makes garbage");
    assert_eq!(passes(&mut account, true), 1, "a covering collection");
    assert_eq!(passes(&mut account, false), 0);
    account.is_duress = true;
    assert_eq!(passes(&mut account, false), 1, "duress");
    account.is_duress = false;
    assert_eq!(passes(&mut account, false), 0);
    account.now += LONGEST_PAUSE;
    let late = during_scans(|| (), || account.turn());
    assert_eq!(late, 1, "what was passed over is read later");
}

/// An account is charged for more than the survivors of a collection by the time its deaths are known: the allocations
/// since, at full speed, are no growth.
#[test]
fn garbage_since_the_collection_is_no_growth() {
    let mut account = Doored::new();
    account.turn();
    account.keep(50);
    let mut collected = |since: u64, misses_a_pause: bool| {
        let epoch = account.ledger.epochs().current();
        account.pause();
        if misses_a_pause {
            account.pause();
        }
        account.keep(since);
        let epochs = account.ledger.epochs();
        epochs.died(epoch);
        epochs.confirm(epoch);
        account.now += Duration::from_secs(10);
        account.turn();
        let statuses = account.enforcement.statuses();
        let status = statuses.status("a").expect("it has a limit");
        status
            .filling
            .grew_within(Duration::from_secs(1), account.now)
    };
    assert!(!collected(0, false), "what it had is no growth");
    assert!(!collected(8, false), "garbage since then");
    assert!(!collected(8, true), "deaths may be known in part");
    assert!(collected(0, false), "it is held");
}

/// A heap that was full of garbage once does not leave an account without a reserve for ever.
#[test]
fn the_reserve_follows_what_collections_of_all_memory_leave_free() {
    let mut account = Doored::new();
    account.free_heap_bytes = 0;
    account.turn();
    account.keep(68);
    account.decide();
    assert_eq!(account.word(), (true, true));
    account.free_heap_bytes = 1 << 29;
    account.turn();
    assert_eq!(account.word(), (true, true), "nothing has proved it");
    account.collect();
    account.turn();
    assert_eq!(account.word(), (true, false), "there is room again");
    account.free_heap_bytes = 0;
    account.turn();
    account.free_heap_bytes = 1 << 29;
    account.decide();
    assert_eq!(account.word(), (true, false), "it was garbage");
}

/// Its evidence is the verdict's: a look of its own would be asked for beside it.
#[test]
fn the_figure_of_a_suspect_is_not_looked_at_again() {
    let mut account = Doored::without_door();
    account.turn();
    account.keep(LIMIT_BYTES / MIB + 4);
    for _ in 0..20 {
        account.now += Duration::from_secs(1);
        account.turn();
        assert!(!account.evaluation.looks_again());
    }
    let statuses = account.enforcement.statuses();
    let status = statuses.status("a").expect("it has a limit");
    assert!(matches!(status.phase, Phase::Suspect { .. }));
}

/// Only who grows and has not far to go needs a covering collection soon.
#[test]
fn an_account_is_close_to_its_limit_while_it_grows_there() {
    let mut account = Doored::new();
    account.turn();
    account.keep(LIMIT_BYTES / MIB / 8);
    let mut grown_by = |mib: u64, after: u64| {
        account.keep(mib);
        account.pause();
        account.collect();
        account.now += Duration::from_secs(after);
        account.turn();
        account.evaluation.is_any_close()
    };
    assert!(!grown_by(0, 1) && !grown_by(16, 1), "it has far to go");
    assert!(!grown_by(23, 1), "a little less");
    assert!(grown_by(8, 1));
    assert!(!grown_by(0, 60), "it stands");
}
