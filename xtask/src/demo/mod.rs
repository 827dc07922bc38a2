//! `cargo xtask demo`: three web applications in a real Tomcat under HTTP load. Their accounts are
//! shown live, then compared with what each application itself knows it holds. At the end one of
//! them outgrows its limit and is refused, until the policy is edited.

mod accounts;
mod applications;
mod build;
mod edit;
mod load;
pub(crate) mod options;
mod story;
mod table;
mod terminal;
mod tomcat;
mod units;
mod verdict;

use std::time::Instant;

use anyhow::{Context, Result};
use heapwarden_harness::repository;

use crate::{interrupt, process};

pub(crate) use options::Options;

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
