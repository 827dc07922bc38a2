//! The policy in force: read from its file, watched, and replaced whole.
//!
//! The watching thread reads and parses the file. The metadata thread puts the policy in force, because
//! only an attached thread can classify loaded classes. A file with errors changes only the status.

mod notices;
pub(crate) mod store;
pub mod watch;
