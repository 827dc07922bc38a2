//! Starts the agent's threads with the signals of the process blocked.

use std::io;
use std::thread::{Builder, JoinHandle};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Stack size of the agent's threads: enough to render all metrics.
const STACK_BYTES: usize = 512 * 1024;

/// Starts a thread that blocks the signals sent to the process: those are for the JVM.
///
/// The mask is set before the thread starts, so that the thread is never without it, and the caller's
/// mask is restored. Faults (`SIGSEGV` and the like) stay deliverable, so that the JVM reports a crash
/// instead of ending silently.
///
/// # Errors
/// When the mask cannot be set or the thread cannot be started.
pub(crate) fn spawn(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    start(
        Builder::new().name(name.to_owned()).stack_size(STACK_BYTES),
        body,
    )
}

/// As [`spawn`], with a builder of the caller's. Threads that the new thread starts inherit its mask.
///
/// # Errors
/// As [`spawn`].
pub(crate) fn start(
    builder: Builder,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let before = asynchronous_signals().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let thread = builder.spawn(body);
    before.thread_set_mask()?;
    thread
}

/// Blocks the signals again that the JVM lets through when it attaches a thread: those that end it
/// (`SIGHUP`, `SIGINT`, `SIGTERM`). What the JVM needs on its threads stays deliverable.
///
/// # Errors
/// When the mask cannot be set.
pub(crate) fn block_shutdown_signals() -> io::Result<()> {
    let mut signals = SigSet::empty();
    for signal in [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTERM,
    ] {
        signals.add(signal);
    }
    Ok(signals.thread_block()?)
}

/// All signals but the synchronous ones (faults).
fn asynchronous_signals() -> SigSet {
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
