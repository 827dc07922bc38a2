//! A JVM of this machine: what `/proc` tells of a process, and the door that HotSpot opens to
//! tools.
//!
//! All that is read here is the process's own to choose: names, command lines, files and
//! answers. It is read within bounds, and shown through [`printable`](crate::printable).

pub(crate) mod attach;

mod arguments;
mod elf;
mod facts;
mod listeners;
mod maps;

mod release;
mod root;
mod sockets;
mod status;
mod threads;

#[cfg(test)]
pub(crate) use arguments::Arguments;
pub(crate) use elf::{Machine, read as read_elf};
#[cfg(test)]
pub(crate) use facts::Environment;
pub(crate) use facts::{Facts, Process};
pub(crate) use listeners::{agents_listeners, option};
pub(crate) use maps::Libc;
#[cfg(test)]
pub(crate) use maps::MappedFiles;
#[cfg(test)]
pub(crate) use release::Release;
pub(crate) use root::Folder;
#[cfg(test)]
pub(crate) use status::Status;
pub(crate) use threads::Collector;

/// Most columns of a text of another process that are shown.
const MAX_SHOWN_COLUMNS: usize = 400;

/// A text of another process, escaped, and cut where it grows long.
pub(crate) fn printable(text: &str) -> String {
    crate::printable::fitted(text, MAX_SHOWN_COLUMNS).into_owned()
}
