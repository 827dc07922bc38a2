//! The policy in force: read from its file, watched, and replaced whole.
//!
//! The watcher's thread reads and parses; the clerk's thread puts in force, because
//! classifying loaded classes needs an attached thread. A file that is wrong changes
//! nothing but the status.

pub(crate) mod enact;
mod notices;
pub(crate) mod store;
pub mod watch;
