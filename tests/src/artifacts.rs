//! The library and the command under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use heapwarden_harness::repository;

/// The root of the repository.
#[must_use]
pub fn repository() -> &'static Path {
    repository::root()
}

/// Absolute path of `libheapwarden.so`: `HEAPWARDEN_LIBRARY`, else the release build, brought up to
/// date once per test process so that no test runs against yesterday's agent.
///
/// # Panics
/// Where the library cannot be built or is not where the variable says.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let path = match std::env::var_os("HEAPWARDEN_LIBRARY") {
            Some(path) => PathBuf::from(path),
            None => build("policy-agent", "libheapwarden.so"),
        };
        path.canonicalize()
            .unwrap_or_else(|error| panic!("no agent library at {}: {error}", path.display()))
    })
}

/// Absolute path of the `heapwarden` command: `HEAPWARDEN_COMMAND`, else the release build, brought
/// up to date once per test process.
///
/// # Panics
/// Where the command cannot be built or is not where the variable says.
pub fn command() -> &'static Path {
    static COMMAND: OnceLock<PathBuf> = OnceLock::new();
    COMMAND.get_or_init(|| {
        let path = match std::env::var_os("HEAPWARDEN_COMMAND") {
            Some(path) => PathBuf::from(path),
            None => build("policy-cli", "heapwarden"),
        };
        path.canonicalize()
            .unwrap_or_else(|error| panic!("no command at {}: {error}", path.display()))
    })
}

/// Builds `package` and gives the path of `product` among what it made.
fn build(package: &str, product: &str) -> PathBuf {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--package", package])
        .current_dir(repository())
        .status()
        .expect("cargo that built this test can be started");
    assert!(status.success(), "{package} does not build");
    repository::target().join("release").join(product)
}
