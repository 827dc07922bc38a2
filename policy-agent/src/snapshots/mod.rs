//! Snapshots: documents of everything that the accounts hold, for readers and as files. Profiles, for readers.
//!
//! One thread, `heapwarden-snap`, makes them all, so that neither the listener nor the program waits: it
//! scans the records, writes the JSON and compresses it. It is no Java thread and calls nothing of the VM.
//!
//! - [`desk`]: what others ask of the thread, and where readers find the document;
//! - [`document`]: from a reading to the bytes;
//! - [`files`]: the folder: names, writing, removing;
//! - [`reader`]: readings with all that is known beside them, also for the listener and programs;
//! - [`thread`]: the thread: when what is made.
//!
//! # Rules
//! 1. A snapshot that cannot be made or written is lost: one line in the log, a count in the metrics. Nothing
//!    else happens, whatever the folder or the disk does.
//! 2. A file is complete or not there: it is written under another name, synced and renamed. It replaces
//!    no file.
//! 3. The folder is bounded: a JVM keeps so many files of its own run, and of all ended runs of the same
//!    program as many again. It touches no file of another program, nor of a run that has not ended.
//! 4. Readers are bounded: one document for all who wait, the next after a pause in proportion to what it
//!    cost.
//! 5. The end of the JVM waits for the last file, but no longer than [`LONGEST_EXIT`].

pub(crate) mod desk;
mod document;
mod files;
pub(crate) mod reader;
pub(crate) mod thread;

use std::time::Duration;

/// How long the end of the JVM may wait for the last snapshot.
pub(crate) const LONGEST_EXIT: Duration = Duration::from_secs(2);
