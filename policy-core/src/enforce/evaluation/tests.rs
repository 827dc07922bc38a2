use std::sync::Arc;
use std::time::Instant;

use policy_config::Throw;

use super::*;
use crate::ledger::watched::during_scans;
use crate::ledger::{Capacity, Sample, UNKNOWN_CLASS};

#[test]
fn the_statuses_are_not_locked_while_records_are_passed_over() {
    let ledger = Ledger::new(Capacity {
        records: 100,
        purses: 10,
    });
    let purse = ledger.open_purse().expect("room");
    let sample = Sample {
        payer: purse,
        agent_account: purse,
        principal: purse,
        class: UNKNOWN_CLASS,
        size_bytes: 1 << 20,
        interval: ledger.intervals().current(),
    };
    ledger.charge(&sample).expect("room");
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
        starved: false,
        enforced: true,
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
