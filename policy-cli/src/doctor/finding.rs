//! One finding of `doctor`.

use policy_report::findings::Declared;
pub(super) use policy_report::findings::{self, Severity};
use serde::Serialize;

/// A finding. Its texts may contain names that tenants chose: they are escaped where printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// A stable name, for scripts.
    pub(super) name: &'static str,
    /// The problem, in one sentence.
    pub(super) sentence: String,
    /// The figure that shows it.
    pub(super) evidence: String,
    /// The action that the user is advised to take.
    pub(super) remedy: String,
}

impl Finding {
    /// With words that depend on figures.
    pub(super) fn new(
        declared: &Declared,
        sentence: impl Into<String>,
        evidence: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            severity: declared.severity,
            name: declared.name,
            sentence: sentence.into(),
            evidence: evidence.into(),
            remedy: remedy.into(),
        }
    }

    /// With the words of its declaration.
    pub(super) fn declared(declared: &Declared, evidence: impl Into<String>) -> Finding {
        Finding::new(declared, declared.sentence, evidence, declared.advice)
    }

    /// The same of an account.
    pub(super) fn of_account(
        declared: &Declared,
        account: &str,
        evidence: impl Into<String>,
    ) -> Finding {
        Finding {
            sentence: declared.sentence_of(account),
            ..Finding::declared(declared, evidence)
        }
    }

    /// With words of its own, and as grave as this, which its declaration must allow.
    pub(super) fn as_grave_as(
        severity: Severity,
        declared: &Declared,
        sentence: impl Into<String>,
        evidence: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        debug_assert!(declared.may_be(severity), "{declared:?} {severity:?}");
        Finding {
            severity,
            ..Finding::new(declared, sentence, evidence, remedy)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where it fails: write the module again, as the message has it.
    #[test]
    fn the_page_has_the_same_declarations() {
        let page = policy_page::file("declared.js").expect("the page has it");
        let module = findings::as_module();
        assert!(
            page.bytes == module.as_bytes(),
            "policy-page/page/declared.js must be:\n{module}"
        );
    }
}
