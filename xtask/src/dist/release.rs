//! A release.

use super::contents::Contents;
use super::elf;

/// The version that all of it has.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The only platform that there is a library for.
pub(super) const PLATFORM: &str = "linux-x86_64";

/// The material from which the files are made.
pub(super) struct Release {
    pub(super) contents: Contents,
    /// Seconds since 1970 that every entry carries.
    pub(super) epoch_seconds: u64,
    /// The libraries and the glibc that the library and the command need of the system.
    pub(super) needs: elf::Needs,
}
