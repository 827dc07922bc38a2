//! Why there is no history.

use crate::live::LiveError;
use crate::prometheus;

/// One sentence for the user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Nobody to ask.
    #[error("nothing to read from: give --prometheus URL, or --live ADDRESS for one JVM")]
    NoSource,
    /// A failed query.
    #[error(transparent)]
    Prometheus(#[from] prometheus::Error),
    /// The live JVM.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// `--match` has not the form of a selector.
    #[error("--match takes a selector of labels, such as '{{job=\"tomcat\"}}', not {text:?}")]
    Selector {
        /// As it was given.
        text: String,
    },
    /// `--jvm-label` has not the form of a label.
    #[error("{text:?} is not the name of a label")]
    Label {
        /// As it was given.
        text: String,
    },
    /// The range shows no account.
    #[error(
        "{source_name} has no metrics of Heapwarden from {from} to {to}{selector}; is the agent scraped (try the query heapwarden_account_live_bytes)?"
    )]
    Nothing {
        /// Who was asked.
        source_name: String,
        /// Start of the range.
        from: String,
        /// End of the range.
        to: String,
        /// The selector, introduced by a comma, or nothing.
        selector: String,
    },
    /// Two processes with one name.
    #[error(
        "two JVMs are both called {jvm}: they differ in {differ}; tell them apart with --jvm-label {hint}, or choose one with --match"
    )]
    Ambiguous {
        /// What both are called.
        jvm: String,
        /// The labels that differ.
        differ: String,
        /// A value for `--jvm-label` that tells them apart.
        hint: String,
    },
    /// More than we hold in memory.
    #[error(
        "{accounts} accounts in {steps} steps are too much for one reading; take --step {step} or coarser, or fewer JVMs with --match"
    )]
    TooLarge {
        /// Series of accounts.
        accounts: usize,
        /// Steps of the range.
        steps: usize,
        /// A step that would do.
        step: String,
    },
}
