//! Native memory of one tracked sample: a program holds half a million small objects, all tracked.

use anyhow::{Result, ensure};

use super::cases::Policy;
use super::rig::{Job, Rig, Who};

/// Objects held, each a sample.
pub(crate) const OBJECTS: u64 = 500_000;

/// The heap is committed and touched at the start, so that what becomes resident later is native.
const FLAGS: [&str; 4] = [
    "-XX:+UseSerialGC",
    "-Xms256m",
    "-Xmx256m",
    "-XX:+AlwaysPreTouch",
];
const LEDGER: &str = "heapwarden_agent_memory_bytes{part=\"ledger\"}";

/// Bytes for each tracked sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PerSample {
    /// Growth of the agent's ledger, as it says; none for the bare agent.
    pub(crate) ledger_bytes: Option<f64>,
    /// Growth of the process.
    pub(crate) resident_bytes: f64,
}

/// One run. `accounts` package accounts are in the policy.
pub(crate) fn measure(rig: &Rig, who: Who, accounts: usize) -> Result<PerSample> {
    let job = Job {
        policy: Policy::NothingFound,
        accounts,
        cold: false,
        program: vec!["micro.Hold".to_owned(), OBJECTS.to_string()],
    };
    let mut jvm = rig.start(who, &job, 0, false, &FLAGS)?;
    jvm.until("empty")?;
    let listener = match who {
        Who::Ours => Some(jvm.listener(&rig.run_file())?),
        Who::Bare => None,
    };
    let ledger = || listener.as_ref().map(|l| l.metric(LEDGER)).transpose();
    // The first answer makes room for answers; the second finds it there.
    ledger()?;
    let ledger_before = ledger()?;
    let resident_before = jvm.resident_bytes()?;
    jvm.go_on()?;
    jvm.until("full")?;
    let resident_after = jvm.resident_bytes()?;
    let ledger_after = ledger()?;
    if let Some(listener) = &listener {
        let accounts = listener.accounts()?;
        let dropped = accounts["sampling"]["dropped"].as_u64();
        ensure!(
            dropped.is_some_and(|dropped| dropped < OBJECTS / 100),
            "{dropped:?} samples were dropped: this is no measurement"
        );
    }
    jvm.go_on()?;
    jvm.until("done")?;
    jvm.finish()?;
    let each = |growth: f64| growth / OBJECTS as f64;
    Ok(PerSample {
        ledger_bytes: ledger_after.zip(ledger_before).map(|(a, b)| each(a - b)),
        resident_bytes: each(resident_after as f64 - resident_before as f64),
    })
}
