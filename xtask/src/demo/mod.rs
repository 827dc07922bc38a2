//! `cargo xtask demo`: three web applications in a real Tomcat under HTTP load. Their accounts are
//! shown live, then compared with what each application itself knows it holds. At the end one of
//! them outgrows its limit and is refused, until the policy is edited.

mod accounts;
mod applications;
mod build;
mod edit;
mod load;
mod story;
mod table;
mod terminal;
mod tomcat;
mod units;
mod verdict;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use heapwarden_harness::repository;

use crate::{interrupt, process};

/// What the user may choose.
#[derive(Args, Clone, Default)]
pub(crate) struct Options {
    /// Leave it running under a light load and print the addresses, until Ctrl-C
    #[arg(long)]
    keep: bool,

    /// The same load in a third of the time
    #[arg(long)]
    quick: bool,

    /// The JDK to run Tomcat on: its home or its `java` (the newest found, without it)
    #[arg(long, value_name = "PATH")]
    java: Option<PathBuf>,

    /// An agent library to use instead of building one
    #[arg(long, value_name = "PATH")]
    agent: Option<PathBuf>,

    /// How many standard errors an account may be away from the truth; three are passed by chance
    /// alone in about one run of a hundred
    #[arg(long, value_name = "STANDARD ERRORS", default_value_t = verdict::WITHIN)]
    within: f64,
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

/// Runs the demo to its end.
///
/// # Errors
/// A tool that is missing, a part that does not work, an account too far from the truth.
pub(crate) fn run(options: &Options) -> Result<()> {
    let tools = build::Tools::find(options.java.as_deref())?;
    let agent = match &options.agent {
        Some(path) => path
            .canonicalize()
            .with_context(|| format!("{} is not there", path.display()))?,
        None => repository::agent(),
    };
    let built = build::everything(&tools, options.agent.is_none())?;

    let folder = tempfile::Builder::new()
        .prefix("run-")
        .tempdir_in(build::folder())
        .context("target/demo cannot be written")?;
    let begun = Instant::now();
    println!(
        "Starting Tomcat {} on {} ...",
        built.tomcat_version, tools.java
    );
    let tomcat = tomcat::Tomcat::start(&tools.java, &agent, &built, folder.path(), begun)?;
    println!(
        "It runs as process {} with the agent; ready in {:.1} s.\n",
        tomcat.id(),
        begun.elapsed().as_secs_f64()
    );
    let log = tomcat.log().to_owned();
    story::tell(tomcat, options, begun).map_err(|error| {
        if error.is::<interrupt::Interrupted>() || error.is::<verdict::TooFar>() {
            return error;
        }
        // The folder is about to go, and the log with it.
        error.context(format!(
            "Tomcat's log ended with:\n{}",
            process::last_lines(&log, 15)
        ))
    })
}

/// Fails early where the demo cannot run.
pub(crate) fn check_tools() -> Result<()> {
    build::Tools::find(None).map(|_| ())
}
