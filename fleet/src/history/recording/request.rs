//! The request for a period.

use crate::history::selector::Selector;
use crate::prometheus::Span;

/// Which period of which JVMs.
pub(in crate::history) struct Request {
    pub(in crate::history) selector: Selector,
    pub(in crate::history) span: Span,
    pub(in crate::history) jvm_labels: Vec<String>,
    /// A regular expression of the accounts to read; all without one.
    pub(in crate::history) accounts: Option<String>,
    /// Whether the recording rules' series are read instead of the agents'.
    pub(in crate::history) rollups: bool,
}
