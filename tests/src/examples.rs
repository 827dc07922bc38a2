//! The examples that use the Java API, as Maven builds them.

use crate::fixture::up_to_date;
use crate::{artifacts, command};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// The folder `examples`, with `tenants` and `spring-boot` built once per test process.
///
/// # Panics
/// If Maven is missing or the build fails.
#[must_use]
pub fn built() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = artifacts::repository().join("examples");
        let made = folder.join("spring-boot/target/shop.jar");
        up_to_date("examples", &["examples", "java-api"], &[&made], || {
            let build = command::run(
                Command::new("mvn")
                    // The API's own tests are run where it lies.
                    .args([
                        "--batch-mode",
                        "--quiet",
                        "-Dmaven.test.skip=true",
                        "package",
                    ])
                    .current_dir(&folder),
                Duration::from_secs(600),
            );
            assert!(
                build.status.success(),
                "the examples do not build (Maven is needed: apt-get install maven):\n{}\n{}",
                build.stdout,
                build.stderr
            );
        });
        folder
    })
}
