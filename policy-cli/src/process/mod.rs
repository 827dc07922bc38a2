//! A JVM on this machine: what `/proc` says about a process, and HotSpot's attach protocol.
//!
//! The process chooses everything that is read here: names, command lines, files and answers. So it
//! is read within bounds, and printed through [`printable`](heapwarden_terminal::printable).

pub(crate) mod attach_protocol;

mod arguments;
mod elf;
mod info;
mod inspect;
mod listeners;
mod local_agents;
mod maps;
mod port_holder;
mod release;
mod root;
mod sockets;
mod status;
mod target;
mod threads;

#[cfg(test)]
pub(crate) use arguments::Arguments;
pub(crate) use elf::{Machine, read as read_elf};
#[cfg(test)]
pub(crate) use info::Environment;
pub(crate) use info::ProcessInfo;
pub(crate) use inspect::{InspectError, Process};
pub(crate) use listeners::{agents_listeners, option, wanted_address};
pub(crate) use local_agents::{LocalAgent, LocalAgents};
pub(crate) use maps::Libc;
#[cfg(test)]
pub(crate) use maps::MappedFiles;
pub(crate) use port_holder::{PortHolder, keeps_from, port_holder};
#[cfg(test)]
pub(crate) use release::Release;
pub(crate) use root::Folder;
#[cfg(test)]
pub(crate) use status::Status;
pub(crate) use target::target;
pub(crate) use threads::Collector;

/// Most columns of a text of another process that are shown.
const MAX_SHOWN_COLUMNS: usize = 400;

/// A text of another process, escaped and cut to a bounded length.
pub(crate) fn printable(text: &str) -> String {
    heapwarden_terminal::printable::fitted(text, MAX_SHOWN_COLUMNS).into_owned()
}
