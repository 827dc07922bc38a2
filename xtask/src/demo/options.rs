//! The options of the demo.

use std::path::PathBuf;

use clap::Args;

use super::verdict;

/// The user's choices.
#[derive(Args, Clone, Default)]
pub(crate) struct Options {
    /// Leave it running under a light load and print the addresses, until Ctrl-C
    #[arg(long)]
    pub(super) keep: bool,

    /// The same load in a third of the time
    #[arg(long)]
    pub(super) quick: bool,

    /// The JDK to run Tomcat on: its home or its `java` (the newest found, without it)
    #[arg(long, value_name = "PATH")]
    pub(super) java: Option<PathBuf>,

    /// An agent library to use instead of building one
    #[arg(long, value_name = "PATH")]
    pub(super) agent: Option<PathBuf>,

    /// How many standard errors an account may be away from the truth; three are passed by chance
    /// alone in about one run of a hundred
    #[arg(long, value_name = "STANDARD ERRORS", default_value_t = verdict::WITHIN)]
    pub(super) within: f64,
}

impl Options {
    /// The demo as one of the tests.
    ///
    /// Three standard errors are passed by chance alone in one measurement of 370, and the demo
    /// makes four: fine for a viewer, too often for a test that every change must pass. At 4.5 it
    /// is one run in 37,000, and an account that is wrong by a tenth is still far outside.
    pub(crate) fn as_a_test() -> Options {
        Options {
            quick: true,
            within: 4.5,
            ..Options::default()
        }
    }
}
