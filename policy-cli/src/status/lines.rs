//! Lines about a JVM: process, heap, age of the figures, remarks.

use std::time::Duration;

use heapwarden_client::live::{Accounts, Exact, Heap, Jvm, NOTICEABLE_MS, State, wait_reason};
use heapwarden_terminal::clock;
use heapwarden_terminal::printable;
use heapwarden_terminal::table::amount;

/// Widest remark, in columns.
const MAX_REMARK_COLUMNS: usize = 300;
/// Widest name of a program, in columns.
const MAX_NAME_COLUMNS: usize = 60;
/// Widest name of a virtual machine with its version, in columns.
const MAX_VM_COLUMNS: usize = 60;
/// Most accounts whose waits are told.
const MAX_WAITS: usize = 5;

/// Which process it is: `PID 4711, app.jar, OpenJDK 64-Bit Server VM 21.0.5+11-LTS`. `None`: the agent does
/// not say (an older one).
pub(crate) fn jvm_line(jvm: &Jvm) -> Option<String> {
    let mut parts = Vec::new();
    if jvm.pid > 0 {
        parts.push(format!("PID {}", jvm.pid));
    }
    parts.push(printable::fitted_name(&jvm.name, MAX_NAME_COLUMNS).into_owned());
    let machine = format!("{} {}", jvm.vm, jvm.version);
    parts.push(printable::fitted(machine.trim(), MAX_VM_COLUMNS).into_owned());
    parts.retain(|part| !part.is_empty());
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Heap, mode and sampling in one line.
pub(crate) fn heap_line(accounts: &Accounts) -> String {
    let heap = &accounts.heap;
    let mut line = format!(
        "heap {} of {} after collection {}",
        amount::bytes(heap.used_after_gc_bytes),
        amount::bytes(heap.max_bytes),
        amount::count(heap.gc_epoch)
    );
    if heap.max_bytes > 0 {
        let share = heap.used_after_gc_bytes as f64 / heap.max_bytes as f64 * 100.0;
        line.push_str(&format!(" ({})", amount::percent(share)));
    }
    if !accounts.policy.mode.is_empty() {
        let mode = printable::fitted(&accounts.policy.mode, 20);
        line.push_str(&format!(", {mode}"));
    }
    match accounts.sampling.interval_bytes {
        0 => line.push_str(", every allocation sampled"),
        interval => line.push_str(&format!(", sampled once in {}", amount::bytes(interval))),
    }
    line
}

/// Of which moment the live bytes are: `live as of 12 s ago (collection 41)`. `since` is the time
/// since they were read. `None`: the agent does not say (an older one).
pub(crate) fn live_line(heap: &Heap, since: Duration) -> Option<String> {
    match (live_age(heap, since), heap.live_gc_epoch) {
        (None, None) => None,
        (None, Some(0)) => Some("live bytes appear with the next collection".to_owned()),
        (None, Some(epoch)) => Some(format!("live as of collection {}", amount::count(epoch))),
        (Some(age), None) => Some(format!("live as of {age} ago")),
        (Some(age), Some(epoch)) => Some(format!(
            "live as of {age} ago (collection {})",
            amount::count(epoch)
        )),
    }
}

/// Exact accounts beside the JVM's own figure: `exact accounts: 4 GiB counted, the JVM says 3.9 GiB (2.5% more
/// were counted than made)`.
pub(super) fn exact_line(exact: &Exact) -> String {
    let state = if exact.counting { "" } else { " (off)" };
    let (Some(counted), Some(jvm), Some(remainder)) = (
        exact.counted_bytes_total,
        exact.jvm_allocated_bytes_total,
        exact.remainder_bytes,
    ) else {
        return format!("exact accounts{state}: the JVM's own figure is not known");
    };
    let share = match jvm {
        0 => 0.0,
        jvm => remainder.unsigned_abs() as f64 / jvm as f64 * 100.0,
    };
    let share = amount::percent(share);
    let what = match remainder {
        ..0 => format!("{share} more were counted than made"),
        _ => format!("{share} were not counted"),
    };
    format!(
        "exact accounts{state}: {} counted, the JVM says {} ({what})",
        amount::bytes(counted),
        amount::bytes(jvm)
    )
}

/// The age of the live bytes, `since` after they were read.
fn live_age(heap: &Heap, since: Duration) -> Option<String> {
    let seconds = heap.live_age_seconds? + since.as_secs_f64();
    // Saturates; what is not a number is 0.
    Some(match seconds as u64 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => clock::format_duration(seconds),
    })
}

/// Warnings about the numbers; empty if all is well.
pub(crate) fn remarks(accounts: &Accounts, not_ready: Option<&str>) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(reason) = not_ready {
        remarks.push(format!("keeps no accounts: {reason}"));
    }
    if let Some(sum) = accounts.heap.accounts.filter(|sum| sum.exceeds) {
        remarks.push(format!(
            "the figures are wrong: the accounts sum up to {} ± {} where the heap has {} ({:.2} times); nobody is refused, and \
             errors are stated {:.1} times as large",
            amount::bytes(sum.live_bytes),
            amount::bytes(sum.standard_error_bytes),
            amount::bytes(sum.heap_bytes),
            sum.over_heap_ratio,
            sum.error_factor
        ));
    }
    if let Some(error) = &accounts.policy.last_error {
        remarks.push(format!(
            "the policy file was rejected, the last good policy stays in force: {error}"
        ));
    }
    let sampling = &accounts.sampling;
    if sampling.dropped > 0 {
        let seen = sampling.samples.saturating_add(sampling.dropped);
        let share = sampling.dropped as f64 / seen as f64 * 100.0;
        remarks.push(format!(
            "{} of {} samples dropped ({}): the accounts are too low by about this share",
            amount::count(sampling.dropped),
            amount::count(seen),
            amount::percent(share)
        ));
    }
    let waiting = accounts.accounts.iter().filter(|account| {
        account.wait_milliseconds_total >= NOTICEABLE_MS && account.state == State::Suspect
    });
    for account in waiting.take(MAX_WAITS) {
        if let Some(reason) = wait_reason(account, &accounts.evidence) {
            remarks.push(format!(
                "{}: its threads and requests waited {} in all; {reason}",
                account.name,
                amount::wait(account.wait_milliseconds_total)
            ));
        }
    }
    for remark in &mut remarks {
        *remark = printable::fitted(remark, MAX_REMARK_COLUMNS).into_owned();
    }
    remarks
}
