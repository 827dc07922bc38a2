//! Why a period could not be read.

use crate::prometheus;
use heapwarden_client::live::LiveError;

/// One sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No source was given.
    #[error("no source is given: give --prometheus URL, or --live ADDRESS for one JVM")]
    NoSource,
    /// A failed query.
    #[error(transparent)]
    Prometheus(#[from] prometheus::Error),
    /// The running JVM.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// `--match` is not a selector.
    #[error("--match takes a selector of labels, such as '{{job=\"tomcat\"}}', not {text:?}")]
    Selector {
        /// As it was given.
        text: String,
    },
    /// `--jvm-label` is not a label.
    #[error("{text:?} is not the name of a label; give names such as job,instance")]
    Label {
        /// As it was given.
        text: String,
    },
    /// The range has no account.
    #[error(
        "{source_name} has no metrics of Heapwarden from {from} to {to}{selector}; check that Prometheus scrapes the agent (query {metric})"
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
        /// The name of the series that the user should query.
        metric: String,
    },
    /// Two JVMs with the same labels.
    #[error(
        "two JVMs are both called {jvm}: they differ in {differ}; distinguish them with --jvm-label {hint}, or choose one with --match"
    )]
    Ambiguous {
        /// The name that both have.
        jvm: String,
        /// The labels that differ.
        differ: String,
        /// A value for `--jvm-label` that tells them apart.
        hint: String,
    },
    /// `--step` is finer than what the rules record.
    #[error("with --rollups a step has at least 5m, not {step}; give a coarser --step")]
    FineStep {
        /// As it was given.
        step: String,
    },
    /// More readings than fit into memory.
    #[error(
        "{accounts} accounts in {steps} steps are too many; give --step {step} or coarser, or fewer JVMs with --match"
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
