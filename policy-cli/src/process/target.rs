//! The one JVM that a subcommand is about: an address, or a process id.

use heapwarden_client::live::Address;

use super::{Process, agents_listeners};

/// Where the agent listens. A plain number is a process with the agent in it, if there is one of that id,
/// and a port otherwise.
///
/// # Errors
/// A sentence: the text is no address, or the process has no listener.
pub(crate) fn target(target: &str) -> Result<Address, String> {
    if let Ok(pid) = target.parse::<u32>()
        && let Ok(process) = Process::find(pid)
        && process.info.files.libheapwarden().is_some()
    {
        return match agents_listeners(&process).first() {
            Some(listener) => listener.to_string().parse().map_err(told(target)),
            None => Err(format!(
                "no listener of process {pid} answers like an agent; heapwarden doctor {pid} says why"
            )),
        };
    }
    target.parse().map_err(told(target))
}

fn told<E: std::fmt::Display>(target: &str) -> impl Fn(E) -> String {
    let target = heapwarden_terminal::printable::fitted(target, 100).into_owned();
    move |error| format!("{target} {error}")
}
