//! The JDK that a benchmark runs on: one with a compiler and C headers.

use std::path::Path;

use anyhow::{Result, ensure};
use heapwarden_harness::jdk;

pub(crate) use heapwarden_harness::jdk::Jdk;

/// The JDK that the user names by its home or its `java`, else the newest found.
pub(crate) fn choose(named: Option<&Path>) -> Result<Jdk> {
    Ok(every(named)?.pop().expect("there is one or an error"))
}

/// The JDK that the user names, else every one found, oldest first.
pub(crate) fn every(named: Option<&Path>) -> Result<Vec<Jdk>> {
    if let Some(path) = named {
        let jdk = Jdk::at(path)?;
        ensure!(
            is_complete(&jdk),
            "{jdk}: benchmarks need javac and include/jvmti.h; {}",
            jdk::HOW_TO_INSTALL
        );
        return Ok(vec![jdk]);
    }
    let found: Vec<Jdk> = jdk::every()?.into_iter().filter(is_complete).collect();
    ensure!(
        !found.is_empty(),
        "no JDK here has javac and include/jvmti.h; {}, or name one with --java",
        jdk::HOW_TO_INSTALL
    );
    Ok(found)
}

/// The JDKs of these releases, of every one if none is named, oldest first.
pub(crate) fn of_releases(releases: &[u32]) -> Result<Vec<Jdk>> {
    let is_wanted = |jdk: &Jdk| releases.is_empty() || releases.contains(&jdk.feature);
    let found: Vec<Jdk> = jdk::every()?.into_iter().filter(is_wanted).collect();
    ensure!(
        !found.is_empty(),
        "there is no such JDK; {}",
        jdk::HOW_TO_INSTALL
    );
    Ok(found)
}

fn is_complete(jdk: &Jdk) -> bool {
    jdk.can_compile() && jdk.has_headers()
}
