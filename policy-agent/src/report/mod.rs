//! The agent's reports: renderers for a [`Snapshot`] and for the events that
//! an [`EventRecorder`] received.
//!
//! Invariant: nothing here sees more of the agent than these two, so a scrape can neither change nor
//! delay the charging of samples. Nothing here knows HTTP.

pub mod exposition;
mod families;
pub mod fold;
pub mod history;
pub mod json;
pub mod leaks;
pub mod profile;
mod recorder;
pub mod sites_json;

pub use policy_core::sites::reading::SitesReading;
pub use policy_core::snapshot::{
    Account, Class, DoorState, Evidence, Heap, Ineffective, Kind, Mode, OTHER, Place, PolicyStatus,
    Principal, Process, Requested, Route, Sampling, Snapshot, Source, State, Tree, UNACCOUNTED,
    Wanted,
};
pub use policy_core::usage::LeftThread;
pub use recorder::EventRecorder;

/// A sum that exceeds the heap, for golden texts.
#[cfg(test)]
fn accounts_sum_of_a_test() -> policy_core::snapshot::AccountsSum {
    policy_core::snapshot::AccountsSum {
        reading: policy_core::sum_against_heap::Reading {
            accounts_bytes: 9,
            standard_error_bytes: 0.5,
            heap_bytes: 4,
        },
        exceeds: true,
        error_factor: 10.0,
    }
}
