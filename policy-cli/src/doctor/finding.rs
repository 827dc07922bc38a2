//! One finding of `doctor`.

use serde::Serialize;

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// Accounts are not kept, or limits not enforced.
    Error,
    /// Something is missing or imprecise.
    Warning,
    /// Nothing is wrong, but the numbers are easily misread.
    Note,
}

impl Severity {
    /// As it is printed.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "ERROR",
            Severity::Warning => "WARNING",
            Severity::Note => "NOTE",
        }
    }
}

/// A finding. Its texts may contain names that tenants chose: they are escaped where printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// A stable name, for scripts.
    pub(super) name: &'static str,
    /// What is wrong, in a sentence.
    pub(super) sentence: String,
    /// The figure that shows it.
    pub(super) evidence: String,
    /// What to do.
    pub(super) remedy: String,
}

impl Finding {
    pub(super) fn new(
        severity: Severity,
        name: &'static str,
        sentence: impl Into<String>,
        evidence: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            severity,
            name,
            sentence: sentence.into(),
            evidence: evidence.into(),
            remedy: remedy.into(),
        }
    }
}
