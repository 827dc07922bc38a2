//! Who listens on a port.

use std::fs;
use std::net::SocketAddr;

use super::inspect::{read, socket_inodes};
use super::{printable, sockets};

/// The process that listens on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PortHolder {
    /// Found, with its command line.
    Process {
        /// Its id, as we see it.
        pid: u32,
        /// Printable.
        command_line: String,
    },
    /// Only its user is known: the open files of others are hidden from this user.
    OfUser(u32),
}

impl std::fmt::Display for PortHolder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PortHolder::Process { pid, command_line } => {
                write!(formatter, "process {pid}: {command_line}")
            }
            PortHolder::OfUser(user) => write!(
                formatter,
                "a process of user {user} (run this as that user, or as root, to see which)"
            ),
        }
    }
}

/// Who keeps others from listening on `address`, in the network of process `of`: this very address, or all
/// addresses with this port. Processes in `except` are not meant. `None`: nobody.
pub(crate) fn port_holder(of: u32, address: SocketAddr, except: &[u32]) -> Option<PortHolder> {
    let tables = ["net/tcp", "net/tcp6"].map(|table| {
        let text = read(of, table).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    });
    let listeners = tables
        .iter()
        .flat_map(|text| sockets::listening_of_users(text));
    let mut unknown = None;
    for (listening, inode, user) in listeners {
        if !keeps_from(listening, address) {
            continue;
        }
        match owner(inode) {
            Some(pid) if except.contains(&pid) => {}
            Some(pid) => {
                let command_line = command_line(pid);
                return Some(PortHolder::Process { pid, command_line });
            }
            None => unknown = Some(PortHolder::OfUser(user)),
        }
    }
    unknown
}

/// Whether a listener at `taken` keeps another from `wanted`.
pub(crate) fn keeps_from(taken: SocketAddr, wanted: SocketAddr) -> bool {
    let is_for_all = taken.ip().is_unspecified() || wanted.ip().is_unspecified();
    taken.port() == wanted.port() && (is_for_all || taken.ip() == wanted.ip())
}

/// The process that has this socket open, as far as this user may see.
fn owner(inode: u64) -> Option<u32> {
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let mut ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|&pid| socket_inodes(pid).is_ok_and(|inodes| inodes.contains(&inode)))
}

fn command_line(pid: u32) -> String {
    let bytes = read(pid, "cmdline").unwrap_or_default();
    let words: Vec<_> = bytes
        .split(|byte| *byte == 0)
        .map(String::from_utf8_lossy)
        .collect();
    printable(words.join(" ").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_holds_the_port_that_it_listens_on() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let own = std::process::id();
        let Some(PortHolder::Process { pid, command_line }) = port_holder(own, address, &[]) else {
            panic!("nobody holds {address}");
        };
        let program = std::env::args().next().unwrap();
        assert_eq!(pid, own);
        assert!(command_line.starts_with(&program), "{command_line}");
        assert_eq!(port_holder(own, address, &[own]), None);
        drop(listener);
        assert_eq!(port_holder(own, address, &[]), None);
    }

    #[test]
    fn a_listener_for_all_addresses_is_in_the_way_of_each() {
        let of =
            |taken: &str, wanted: &str| keeps_from(taken.parse().unwrap(), wanted.parse().unwrap());
        assert!(of("127.0.0.1:1", "127.0.0.1:1"));
        assert!(of("0.0.0.0:1", "127.0.0.1:1") && of("127.0.0.1:1", "0.0.0.0:1"));
        assert!(of("[::]:1", "127.0.0.1:1"));
        assert!(!of("127.0.0.2:1", "127.0.0.1:1") && !of("127.0.0.1:2", "127.0.0.1:1"));
    }
}
