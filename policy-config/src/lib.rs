//! The `heapwarden.toml` policy file: schema, parsing, diagnostics, sizes and patterns.
//!
//! [`parse()`] reads a whole file in one pass and reports every problem it finds, each
//! with its place in the text and a hint. It knows no JVM: [`Limit::resolve`] turns a
//! percentage into bytes of a given maximum heap, and patterns are matched against plain
//! strings.
//!
//! ```
//! let parsed = policy_config::parse(
//!     r#"
//!     [[account]]
//!     name = "shop"
//!     service = "/shop"
//!     limit = "256MiB"
//!     "#,
//! );
//! let policy = parsed.policy.expect("no errors");
//! assert_eq!(policy.accounts[0].limit.resolve(1 << 30), Some(256 << 20));
//! ```
//!
//! Invariant: [`parse()`] returns a [`Policy`] exactly when no diagnostic is an error, so
//! a `Policy` always obeys every rule of the contract.

mod account;
mod admit;
mod agent_options;
mod diagnostic;
mod did_you_mean;
mod diff;
mod door;
mod exact;
mod glob;
mod interrupt;
mod keys;
mod leak;
mod limit;
mod listen;
mod nesting;
#[cfg(any(test, fuzzing))]
pub mod oracle;
mod parse;
mod pattern;
mod schema;
mod snapshots;
mod thin;
mod tree;
mod units;
mod words;
mod work;

pub use admit::{Admit, AdmitError, MAX_METHOD_BYTES};
pub use agent_options::{AGENT_OPTIONS, AgentOption};
pub use diagnostic::{Diagnostic, Label, Position, Severity};
pub use door::{DEFAULT_DOOR_STATUS, Door, DoorError, DoorMethod, MAX_DOOR_METHODS};
pub use exact::{Exact, MAX_CONTEXTS};
pub use glob::{Glob, GlobError, MAX_GLOB_BYTES};
pub use interrupt::{Interrupt, InterruptTable, Interrupts, NEVER_INTERRUPTED};
pub use leak::{AcknowledgedLeak, MAX_LEAKS, MAX_SITES};
pub use listen::{Listen, ListenError};
pub use parse::{MAX_ACCOUNTS, MAX_DIAGNOSTICS, MAX_FILE_BYTES, Parsed, parse, parse_bytes};
pub use pattern::{MAX_PATTERN_BYTES, PackagePattern, PackageTable, PatternError};
pub use schema::{
    Account, AgentSection, Charge, DEFAULT_MASK_BYTES, DEFAULT_PRIORITY, Enforcement,
    FINEST_DEFAULT_INTERVAL_BYTES, Interval, LeakPaths, LeakSettings, Limit,
    MAX_CPU_BUDGET_PERCENT, MAX_EVIDENCE_BUDGET_PERCENT, MAX_INTERVAL_BYTES,
    MAX_INTERVAL_DOUBLINGS, MAX_NAME_BYTES, MAX_PATHS_PER_DAY, MAX_PRIORITY, MAX_RESERVE_PERCENT,
    MAX_TRACKED, MIN_CPU_BUDGET_PERCENT, MIN_EVIDENCE_BUDGET_PERCENT, MIN_INTERVAL_BYTES,
    MIN_RESERVE_PERCENT, MIN_TRACKED, Matcher, Mode, Policy, Principals, Privacy, Reserve,
    Sampling, Tasks, When,
};
pub use snapshots::{MAX_SNAPSHOT_EVERY, MAX_SNAPSHOTS_KEPT, MIN_SNAPSHOT_EVERY, Snapshots};
pub use thin::{MAX_THIN_RULES, MIN_KEEP_PERCENT, Thin, thin_rule};
pub use units::{
    DurationError, PercentError, SizeError, format_bytes, format_duration, format_rounded_bytes,
    parse_duration, parse_percent, parse_size,
};
pub use words::Throw;
pub use work::{WorkError, WorkPattern, WorkTable};
