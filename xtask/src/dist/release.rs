//! A release.

use super::contents::Contents;
use super::elf;

/// The version that all of it has.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The only platform that there is a library for.
pub(super) const PLATFORM: &str = "linux-x86_64";

/// What the files are made from.
pub(super) struct Release {
    pub(super) contents: Contents,
    /// Seconds since 1970 that every entry carries.
    pub(super) epoch_seconds: u64,
    /// What the library and the command need of the system.
    pub(super) needs: elf::Needs,
}
