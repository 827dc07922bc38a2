//! The types of all documents that the agent publishes, defined once: the agent writes them, the command reads them.
//!
//! - [`Accounts`]: the JSON of `GET /api/v1/accounts`;
//! - [`Leaks`]: the JSON of `GET /api/v1/leaks`;
//! - [`Snapshot`]: the JSON of `GET /api/v1/snapshot` and of the files of `[snapshots]`;
//! - [`Sites`]: the JSON of `GET /api/v1/sites`;
//! - [`WalkRequest`], [`WalkReply`]: what `heapwarden paths` and `holders` ask, and the answer;
//!   [`Walks`]: the JSON of `GET /api/v1/paths`;
//! - [`Instances`]: the answer to `heapwarden instances`; [`InstanceAnswers`]: the JSON of `GET /api/v1/instances`;
//! - [`History`] and [`SnapshotFiles`]: the JSON of `GET /api/v1/history` and `GET /api/v1/snapshots`;
//! - [`Contexts`]: the JSON of `GET /api/v1/contexts`;
//! - [`RunFile`]: the file that the agent's option `run-file` names;
//! - [`findings`]: what can be wrong with any of it, for doctor and the page;
//! - [`catalog`]: the metrics of `GET /metrics`; [`Metrics`]: its text, read.
//!
//! Field names, their order and the metric names are a contract with users and dashboards: extend
//! them, do not rename them.
//!
//! The agent may be older or newer than the command, so reading is tolerant. Unknown fields are
//! ignored, absent fields get defaults, an unknown state becomes [`State::Unknown`], and a number
//! may be anything that JSON calls a number. Writing is exact.
//!
//! Strings are borrowed where the agent writes them, and owned (`'static`) where they are read.
//! This crate knows neither HTTP nor the JVM.

#![forbid(unsafe_code)]

mod accounts;
pub mod catalog;
mod contexts;
mod counts;
mod figures;
pub mod findings;
mod held;
mod history;
mod instances;
mod leaks;
mod metrics_text;
mod number;
mod run_file;
mod sites;
mod snapshot;
mod walks;

pub use accounts::{
    Account, Accounts, AccountsSum, Bin, Class, Costs, Door, Enforcement, Evidence, Exact, Heap,
    Ineffective, Jvm, LeftThread, Place, Policy, Principal, Route, Sampling, State, Tree, Usage,
};
pub use contexts::{Arrays, Context, Contexts, Objects, Overflow};
pub use counts::Counts;
pub use held::Held;
pub use history::{History, HistoryAccount, HistoryPoint, SnapshotFile, SnapshotFiles};
pub use instances::{
    EqualRow, InstanceAnswers, InstanceRow, Instances, InstancesRequest, ShownValue, WastedRow,
};
pub use leaks::{Exhaustion, Growing, Leaks, Moment, Suspect};
pub use metrics_text::{Labels, Metrics};
pub use run_file::RunFile;
pub use sites::{AccountSites, ClassSites, Site, Sites};
pub use snapshot::{Cohort, Run, SNAPSHOT_VERSION, Snapshot, VARIANCE_UNIT_BYTES2};
pub use walks::{
    Chain, ChainStep, HolderRow, Holders, MadeRow, Paths, StopMade, WalkMade, WalkReply,
    WalkRequest, Walks,
};
