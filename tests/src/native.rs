//! Native libraries that tests put beside the agent.

use crate::{agent, jdk};
use std::path::PathBuf;
use std::process::Command;

/// The other profiler: an agent that holds the sampling capability, compiled by the machine's C
/// compiler.
///
/// # Panics
/// If there is none, or it does not compile.
#[must_use]
pub fn capability_holder() -> PathBuf {
    let folder = tempfile::tempdir()
        .expect("a temporary folder can be made")
        .keep();
    let library = folder.join("libcapability_holder.so");
    let include = jdk::newest().home.join("include");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Werror", "-shared", "-fPIC", "-I"])
        .arg(&include)
        .arg("-I")
        .arg(include.join("linux"))
        .arg("-o")
        .arg(&library)
        .arg(agent::repository().join("tests/native/capability_holder.c"))
        .output()
        .expect("a C compiler is needed: apt-get install gcc libc6-dev");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    library
}
