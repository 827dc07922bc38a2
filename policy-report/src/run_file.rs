//! The run file of an agent.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// Which process an agent is in and where it listens: `{"pid":4711,"listen":"127.0.0.1:41234"}`.
///
/// The agent writes it to the file that its option `run-file` names, once its listener is bound,
/// and removes it at exit. Both fields are needed: a file without them is not a run file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFile {
    /// The process id, as the process itself sees it (in a container: the container's number).
    pub pid: u32,
    /// The address on which the agent listens.
    pub listen: SocketAddr,
}
