//! Native libraries that tests put beside the agent.

use crate::fixture::built_once;
use crate::{artifacts, jdk};
use std::path::PathBuf;
use std::process::Command;

/// The other profiler: an agent that holds the sampling capability, compiled by the machine's C
/// compiler.
///
/// # Panics
/// If there is none, or it does not compile.
#[must_use]
pub fn capability_holder() -> PathBuf {
    const NAME: &str = "libcapability_holder.so";
    built_once("capability-holder", &["tests/native"], |into| {
        let [include, of_linux] = jdk::compiler().includes();
        let compiled = Command::new("cc")
            .args(["-std=c11", "-Wall", "-Werror", "-shared", "-fPIC", "-I"])
            .arg(&include)
            .arg("-I")
            .arg(of_linux)
            .arg("-o")
            .arg(into.join(NAME))
            .arg(artifacts::repository().join("tests/native/capability_holder.c"))
            .output()
            .expect("a C compiler is needed: apt-get install gcc libc6-dev");
        assert!(
            compiled.status.success(),
            "{}",
            String::from_utf8_lossy(&compiled.stderr)
        );
    })
    .join(NAME)
}
