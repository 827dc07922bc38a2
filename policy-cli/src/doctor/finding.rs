//! One thing that the doctor found.

use serde::Serialize;

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// Accounts are not kept, or limits not enforced.
    Error,
    /// Something is missing or vague.
    Warning,
    /// As it is meant to be, but easily misread.
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

/// What was found. Texts may contain names that others chose: they are escaped where printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// A stable name, for scripts.
    pub(super) name: &'static str,
    /// What is the matter, in a sentence.
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
