//! Maven, for what the tests need built or fetched.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::command;

/// A build may fetch its dependencies first.
const LIMIT: Duration = Duration::from_secs(1800);

/// Runs `mvn package` in this folder of the repository, with further arguments.
///
/// # Panics
/// With Maven's messages, which `what` begins, if it is missing or the build fails.
pub fn package(what: &str, folder: &Path, more: &[&str]) {
    let build = command::run(
        Command::new("mvn")
            .args(["--batch-mode", "--quiet", "package"])
            .args(more)
            .current_dir(folder),
        LIMIT,
    );
    assert!(
        build.status.success(),
        "{what} (Maven is needed: apt-get install maven):\n{}\n{}",
        build.stdout,
        build.stderr
    );
}
