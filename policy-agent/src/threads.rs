//! The agent's threads: the host's signal handling does not see them.

use std::io;
use std::thread::{Builder, JoinHandle};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Enough for rendering, small enough not to matter.
const STACK_BYTES: usize = 512 * 1024;

/// Starts a thread that takes no signal meant for the process: those belong to the JVM.
///
/// The mask is set before the thread exists, so that there is no moment without it, and the
/// caller's is put back. Faults (`SIGSEGV` and the like) stay deliverable, so that a crash
/// is reported by the JVM instead of ending it without a word.
///
/// # Errors
/// When the mask or the thread cannot be had.
pub(crate) fn spawn(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let before = shield().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let thread = Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES)
        .spawn(body);
    before.thread_set_mask()?;
    thread
}

/// All signals but the synchronous ones.
fn shield() -> SigSet {
    let mut signals = SigSet::all();
    for fault in [
        Signal::SIGSEGV,
        Signal::SIGBUS,
        Signal::SIGFPE,
        Signal::SIGILL,
        Signal::SIGTRAP,
    ] {
        signals.remove(fault);
    }
    signals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_thread_blocks_signals_and_the_caller_does_not() {
        let before = SigSet::thread_get_mask().unwrap();
        let (send, receive) = std::sync::mpsc::channel();
        let thread = spawn("heapwarden-test", move || {
            send.send(SigSet::thread_get_mask().unwrap()).unwrap();
        });
        thread.unwrap().join().unwrap();
        let mask = receive.recv().unwrap();
        for signal in [
            Signal::SIGTERM,
            Signal::SIGINT,
            Signal::SIGQUIT,
            Signal::SIGPROF,
        ] {
            assert!(mask.contains(signal), "{signal}");
        }
        assert!(!mask.contains(Signal::SIGSEGV));
        assert_eq!(SigSet::thread_get_mask().unwrap(), before);
    }
}
