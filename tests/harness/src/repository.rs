//! Where things are in this repository.

use std::path::{Path, PathBuf};

/// The root of the repository.
///
/// # Panics
/// Never: this crate lies two folders below the root.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("this crate lies two folders below the root")
}

/// The folder that Cargo builds into: `CARGO_TARGET_DIR`, else `target` in the repository.
#[must_use]
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// The agent library, as `cargo build --release` makes it.
#[must_use]
pub fn agent() -> PathBuf {
    target().join("release/libheapwarden.so")
}

/// The `heapwarden` command, as `cargo build --release` makes it.
#[must_use]
pub fn command() -> PathBuf {
    target().join("release/heapwarden")
}

/// The folder for programs that `cargo xtask test` installs without the system's package manager.
#[must_use]
pub fn tools() -> PathBuf {
    target().join("tools")
}
