//! The problems that can be found, declared once: the name of each finding, how much it matters, and its words as far
//! as they do not depend on figures. `heapwarden doctor` and the page use these declarations; the page's copy is its
//! module `declared.js` ([`as_module`]).
//!
//! The names are a contract with scripts: add some, do not rename them.

use std::fmt::Write as _;

use serde::Serialize;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Accounts are not kept, or limits not enforced.
    Error,
    /// Something is missing or imprecise.
    Warning,
    /// Nothing is wrong, but the numbers are easily misread.
    Note,
}

impl Severity {
    /// As JSON and the page write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// Who can see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// The agent's documents tell it: the page and doctor both do.
    InDocuments,
    /// The process or the metrics tell it: doctor alone does.
    ByDoctor,
    /// It is about the document that the page shows.
    ByPage,
}

/// One finding.
#[derive(Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its name.
    pub name: &'static str,
    /// How much it matters, if nothing makes it worse.
    pub severity: Severity,
    /// How much it matters at the worst.
    pub worst: Severity,
    /// Who can see it.
    pub seen: Seen,
    /// The problem in words, `{account}` for the account's name; empty if it depends on figures.
    pub sentence: &'static str,
    /// The action to take; empty if it depends on figures, or there is nothing to do.
    pub advice: &'static str,
}

macro_rules! declare {
    ($($id:ident $name:literal $severity:ident $(/ $worst:ident)? $seen:ident
        $(: $sentence:literal => $advice:literal)?;)*) => {
        $(
            #[doc = concat!("`", $name, "`")]
            pub const $id: Declared = Declared {
                name: $name,
                severity: Severity::$severity,
                worst: declare!(@worst $severity $($worst)?),
                seen: Seen::$seen,
                sentence: concat!($($sentence)?),
                advice: concat!($($advice)?),
            };
        )*
        /// All of them.
        pub const ALL: &[&Declared] = &[$(&$id),*];
    };
    (@worst $severity:ident) => { Severity::$severity };
    (@worst $severity:ident $worst:ident) => { Severity::$worst };
}

declare! {
    ACCOUNTS_EXCEED_HEAP "accounts-exceed-heap" Error InDocuments;
    // Where an account stands against its limit: one of these for each.
    INEFFECTIVE "ineffective" Error InDocuments;
    OVER_LIMIT "over-limit" Warning InDocuments;
    NEVER_REFUSED "never-refused" Warning / Error InDocuments;
    SUSPECT "suspect" Note / Warning InDocuments;
    THREADS_KILLED "threads-killed" Warning InDocuments;
    REFUSED_BEFORE "refused-before" Note / Warning InDocuments;
    WAITED_BEFORE "waited-before" Note / Warning InDocuments;
    OVER_SOFT_LIMIT "over-soft-limit" Warning InDocuments:
        "account {account} is over its soft limit"
        => "see what it holds (heapwarden top); if it needs that, raise its soft limit in the policy";
    OVER_DIRECT_LIMIT "over-direct-limit" Warning InDocuments:
        "account {account} has more off the heap than its direct-limit"
        => "in mode enforce it is given no more until it lets go: close what it keeps open, or raise its direct-limit in the policy";
    HEAP_IS_SHORT "heap-is-short" Warning InDocuments:
        "the heap is short: the latest collection left less free than accounts near their limits can take before the next"
        => "give the JVM a larger heap (-Xmx), or lower the limits until their sum fits into it; meanwhile the account that is furthest beyond its limit, weighed by its priority, is refused first";
    LEAK_SUSPECTED "leak-suspected" Warning InDocuments:
        "account {account} is suspected to leak"
        => "see where it is allocated (heapwarden leaks); growth that is intended can be acknowledged in the policy: [[leak]] with its account and class";
    RETIRED_LOADER "retired-loader" Warning InDocuments:
        "the class loader of an undeployed version of {account} still lives"
        => "run a collection (jcmd PID GC.run); if this stays, the class loader leaks, and heapwarden paths PID --retired shows the thread, thread local, driver or listener that keeps it alive";
    THREADS_LEFT "threads-left" Warning InDocuments:
        "threads of an undeployed version of {account} still run"
        => "have the application end them when it stops: shut its executors down, cancel its timers, interrupt its threads; until then each keeps the old class loader and all that it refers to";
    LEFT_BEHIND "left-behind" Note InDocuments:
        "{account} holds memory that was left by an undeployed version; its class loader is gone"
        => "other code keeps objects that this version made, such as a shared cache or session store; they go when it drops them, and count for the account until then";
    LIMIT_ABOVE_HEAP "limit-above-heap" Warning InDocuments:
        "account {account} cannot reach its limit: the JVM runs out of memory first"
        => "lower the limit, or raise -Xmx";
    LIMITS_OVERCOMMITTED "limits-overcommitted" Note InDocuments:
        "the limits together exceed the maximum heap: the JVM can run out of memory before any account is over its limit"
        => "fine if services do not peak together; else lower limits or raise -Xmx";
    INTERVAL_TOO_COARSE "interval-too-coarse" Warning InDocuments:
        "the sampling interval is too coarse for the limit of account {account}: it is refused only at three standard errors above the limit"
        => "";
    POLICY_REJECTED "policy-rejected" Error InDocuments:
        "the agent has rejected the policy file; the last good policy stays in force (without one, the agent observes)"
        => "";
    NO_SAMPLES "no-samples" Note InDocuments:
        "nothing was sampled yet, so all accounts are empty"
        => "put load on the application; after attach, the first allocation buffer of each thread is not sampled";
    NOTHING_LIVE_YET "nothing-live-yet" Note InDocuments:
        "" => "wait for a collection, or run one (jcmd PID GC.run); charged bytes count from the first sample on";
    SAMPLES_DROPPED "samples-dropped" Warning InDocuments:
        "accounts are too small: samples were dropped" => "";
    EVIDENCE_BUDGET_SPENT "evidence-budget-spent" Warning InDocuments:
        "the collections that the agent asks for have used up their budget, so accounts over their limit are found late"
        => "raise [enforcement] evidence-budget, or the limit of the account that is near it all the time";
    OBSERVES "observes" Note InDocuments:
        "the policy only observes: nothing is refused"
        => "set [enforcement] mode = \"enforce\" once you agree with what would be refused";
    ACCOUNTS_OMITTED "accounts-omitted" Note ByPage;
    // The process and the metrics.
    NO_JVM "no-jvm" Error ByDoctor;
    NOT_LOADED "not-loaded" Error ByDoctor;
    DISABLED "disabled" Error ByDoctor;
    UNREAD "unread" Error ByDoctor;
    UNKNOWN_OPTION "unknown-option" Warning ByDoctor;
    JAVA_AGENT_FIRST "java-agent-first" Note ByDoctor;
    PORT_TAKEN "port-taken" Note / Warning ByDoctor;
    SAMPLING_HELD "sampling-held" Error ByDoctor;
    CAPABILITY_MISSING "capability-missing" Note / Error ByDoctor;
    BUFFERS_NOT_REFILLED "buffers-not-refilled" Note ByDoctor;
    REPEATED_SAMPLES "repeated-samples" Warning ByDoctor;
    NEVER_COLLECTS "never-collects" Warning ByDoctor;
    LARGE_ARRAYS_THINNED "large-arrays-thinned" Note ByDoctor;
    MAJOR_COLLECTIONS "major-collections" Note ByDoctor;
    NOTHING_PROVABLE "nothing-provable" Error ByDoctor;
    ACCOUNTS_FOLDED "accounts-folded" Note ByDoctor;
    POLICY_FILE "policy-file" Error ByDoctor;
    POLICY_NOT_IN_FORCE "policy-not-in-force" Warning ByDoctor;
    INTERVAL_WIDENED "interval-widened" Note ByDoctor;
    MATCHES_NOTHING "matches-nothing" Warning ByDoctor;
    SERVICES_NOT_RECOGNISED "services-not-recognised" Warning ByDoctor;
    NO_DOOR "no-door" Note ByDoctor;
}

impl Declared {
    /// Its sentence of an account.
    #[must_use]
    pub fn sentence_of(&self, account: &str) -> String {
        self.sentence.replace("{account}", account)
    }

    /// Whether it may matter so much.
    #[must_use]
    pub fn may_be(&self, severity: Severity) -> bool {
        (self.worst..=self.severity).contains(&severity)
    }
}

/// The text of the page's module: the findings that it shows.
#[must_use]
pub fn as_module() -> String {
    let mut out = String::from(
        "// The findings, as policy-report/src/findings.rs declares them: a test writes down what is missing here.\n\n\
         export const DECLARED = {\n",
    );
    for one in ALL.iter().filter(|one| one.seen != Seen::ByDoctor) {
        let severities = [one.severity, one.worst];
        let severities = &severities[..1 + usize::from(one.severity != one.worst)];
        let severities: Vec<String> = severities
            .iter()
            .map(|one| format!("{:?}", one.as_str()))
            .collect();
        let written = writeln!(
            out,
            "  {:?}: {{\n    severities: [{}],\n    sentence: {:?},\n    advice: {:?},\n  }},",
            one.name,
            severities.join(", "),
            one.sentence,
            one.advice
        );
        written.expect("writing to a String does not fail");
    }
    out.push_str("};\n");
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_severities_ordered() {
        let names: BTreeSet<&str> = ALL.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), ALL.len());
        for one in ALL {
            assert!(one.worst <= one.severity, "{one:?}");
            assert!(one.may_be(one.severity) && one.may_be(one.worst), "{one:?}");
            assert_eq!(one.name, one.name.to_lowercase());
        }
        assert!(!OVER_LIMIT.may_be(Severity::Error));
        assert_eq!(
            OVER_SOFT_LIMIT.sentence_of("shop"),
            "account shop is over its soft limit"
        );
    }
}
