//! Where things are in this repository.

use std::path::{Path, PathBuf};

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the repository's root")
}

/// What `cargo build` makes, honouring `CARGO_TARGET_DIR`.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}

/// The agent as `cargo build --release` makes it.
pub(crate) fn agent() -> PathBuf {
    target().join("release/libheapwarden.so")
}

/// The `heapwarden` command as `cargo build --release` makes it.
pub(crate) fn command() -> PathBuf {
    target().join("release/heapwarden")
}
