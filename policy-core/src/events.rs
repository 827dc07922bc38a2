//! Events: how long something took and how often it happened, recorded where it happens.
//!
//! These functions go through the crate `metrics` to the local recorder of the calling thread. Only
//! the agent's own threads have one (`report::EventRecorder::run` of `policy-agent` gives it to
//! them); no recorder is installed for the whole process. So on any other thread, an allocating one
//! included, a call does nothing.
//!
//! Every series is listed here, so it is published with 0 from the first scrape, and no caller
//! can add one. Units and help are in the catalogue of `policy-agent`; its tests compare the two.

use std::time::{Duration, Instant};

/// A metric family that is recorded, with its one label.
#[derive(Debug)]
pub struct Family {
    /// The name of the metric family, as it is published.
    pub name: &'static str,
    /// The name of its label.
    pub label: &'static str,
    /// All values that the label ever has.
    pub values: &'static [&'static str],
}

/// Collections that the agent asked for: from the request to the proof.
const EVIDENCE_COLLECTION: Family = Family {
    name: "heapwarden_evidence_collection_duration_seconds",
    label: "kind",
    values: &["young", "concurrent", "full", "refunds"],
};
/// Waits for the refunds of a collection that has ended.
const EVIDENCE_WAIT: Family = Family {
    name: "heapwarden_evidence_wait_duration_seconds",
    label: "reason",
    values: &["refunds", "covering_refunds"],
};
/// From the moment an account becomes suspect until it is over its limit or open again.
const VERDICT_DELAY: Family = Family {
    name: "heapwarden_verdict_delay_seconds",
    label: "outcome",
    values: &["over", "open"],
};
/// From reading a changed policy file to having it in force, or to its rejection.
const POLICY_RELOAD: Family = Family {
    name: "heapwarden_policy_reload_duration_seconds",
    label: "outcome",
    values: &["accepted", "rejected"],
};
/// Passes over the records of all sampled objects.
const READING: Family = Family {
    name: "heapwarden_reading_duration_seconds",
    label: "purpose",
    values: &["report", "verdict"],
};
/// Making the answer to an HTTP request.
const HTTP_REQUEST: Family = Family {
    name: "heapwarden_http_request_duration_seconds",
    label: "path",
    values: &[
        "/metrics",
        "/api/v1/accounts",
        "/api/v1/leaks",
        "/api/v1/sites",
        "/api/v1/snapshot",
        "/api/v1/profile",
        "/api/v1/history",
        "/api/v1/snapshots",
        "other",
    ],
};
/// Responses that the listener began to send.
pub const HTTP_RESPONSES: Family = Family {
    name: "heapwarden_http_responses_total",
    label: "code",
    values: &[
        "200", "304", "400", "403", "404", "405", "408", "413", "414", "431", "500", "503", "505",
    ],
};

/// Files of snapshots: written, or lost because they could not be.
const SNAPSHOTS: Family = Family {
    name: "heapwarden_snapshots_total",
    label: "outcome",
    values: &["written", "lost"],
};

/// The families that are histograms of seconds.
pub const HISTOGRAMS: [&Family; 6] = [
    &EVIDENCE_COLLECTION,
    &EVIDENCE_WAIT,
    &VERDICT_DELAY,
    &POLICY_RELOAD,
    &READING,
    &HTTP_REQUEST,
];
/// The families that are counters.
pub const COUNTERS: [&Family; 2] = [&HTTP_RESPONSES, &SNAPSHOTS];

impl Family {
    /// The histogram for one label value. For a value that is not listed it records nothing.
    pub fn histogram(&self, value: &str) -> metrics::Histogram {
        match self.known(value) {
            Some(value) => metrics::histogram!(self.name, self.label => value),
            None => metrics::Histogram::noop(),
        }
    }

    /// The counter for one label value. For a value that is not listed it counts nothing.
    pub fn counter(&self, value: &str) -> metrics::Counter {
        match self.known(value) {
            Some(value) => metrics::counter!(self.name, self.label => value),
            None => metrics::Counter::noop(),
        }
    }

    fn known(&self, value: &str) -> Option<&'static str> {
        (self.values.iter().copied()).find(|known| *known == value)
    }

    fn took(&self, value: &str, time: Duration) {
        self.histogram(value).record(time);
    }
}

/// Records the duration of a collection that the agent asked for.
pub fn evidence_collection(kind: &str, took: Duration) {
    EVIDENCE_COLLECTION.took(kind, took);
}

/// Records how long the enforcer waited for the refunds of a collection after its canary died.
pub fn waited_for_refunds(took: Duration) {
    EVIDENCE_WAIT.took("refunds", took);
}

/// Like [`waited_for_refunds`], for a collection that covers old memory too.
pub fn waited_for_covering_refunds(took: Duration) {
    EVIDENCE_WAIT.took("covering_refunds", took);
}

/// Records how long an account was suspect; `outcome` is its new state.
pub fn verdict(outcome: &str, delay: Duration) {
    VERDICT_DELAY.took(outcome, delay);
}

/// Records the time from reading a changed policy file until it was in force.
pub fn policy_accepted(took: Duration) {
    POLICY_RELOAD.took("accepted", took);
}

/// Records the time from reading a changed policy file until it was rejected.
pub fn policy_rejected(took: Duration) {
    POLICY_RELOAD.took("rejected", took);
}

/// Records the time that it took to make the answer to a request for `path`.
pub fn http_request(path: &str, took: Duration) {
    let path = HTTP_REQUEST.known(path).unwrap_or("other");
    HTTP_REQUEST.took(path, took);
}

/// Counts a response with this status, when the listener begins to send it.
pub fn http_response(status: u16) {
    HTTP_RESPONSES.counter(&status.to_string()).increment(1);
}

/// Counts a file of a snapshot.
pub fn snapshot_file(is_written: bool) {
    let outcome = if is_written { "written" } else { "lost" };
    SNAPSHOTS.counter(outcome).increment(1);
}

/// Times one pass over the records for a report, until it is dropped.
pub fn reading_for_report() -> Timing {
    Timing::new("report")
}

/// Times one pass over the records for verdicts, until it is dropped.
pub fn reading_for_verdict() -> Timing {
    Timing::new("verdict")
}

/// A reading in progress; records its duration when dropped.
#[must_use = "the time is recorded when this is dropped"]
pub struct Timing {
    purpose: &'static str,
    begun: Instant,
}

impl Timing {
    fn new(purpose: &'static str) -> Timing {
        let begun = Instant::now();
        Timing { purpose, begun }
    }
}

impl Drop for Timing {
    fn drop(&mut self) {
        READING.took(self.purpose, self.begun.elapsed());
    }
}
