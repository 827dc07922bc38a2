//! The agent's own threads: attached as daemons, with the process's signals blocked, never charged.

use std::io;
use std::thread::JoinHandle;

use policy_jvm::{Jni, guard};

use crate::threads;

/// The VM, for threads to attach to.
#[derive(Clone, Copy)]
pub(crate) struct Vm(policy_jvm::Vm);

impl Vm {
    pub(crate) fn new(vm: policy_jvm::Vm) -> Vm {
        Vm(vm)
    }

    /// Runs `work` with the JNI environment of the calling thread, if it is attached.
    pub(crate) fn here<T>(&self, work: impl FnOnce(&Jni) -> T) -> Option<T> {
        self.0.here(work)
    }

    /// Runs `work` on a new thread that is attached as a daemon (it never keeps the JVM from
    /// ending) under `name`, and detached when `work` ends.
    pub(crate) fn spawn(
        self,
        name: &'static str,
        work: impl FnOnce(&Jni) + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        threads::spawn(name, move || {
            guard::contain(|| {
                self.0.attached_as_daemon(name, |jni| {
                    // The VM changed the mask when it attached the thread.
                    if let Err(error) = threads::block_shutdown_signals() {
                        tracing::warn!(
                            "a thread of the agent cannot block the signals of the process ({error})"
                        );
                    }
                    work(jni);
                })
            });
        })
    }
}
