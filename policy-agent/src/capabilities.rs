//! The JVM TI capabilities that the agent asks for, and what it does without one.

use policy_jvm::{Capability, Event, JvmTi, JvmTiError};

use crate::jvm::tlab_refill;

/// Which capabilities the VM gave.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Capabilities {
    /// Allocation samples.
    pub(crate) sampling: bool,
    /// Object tags, and their return when an object is freed.
    pub(crate) refunds: bool,
    /// An event at each collection.
    pub(crate) collections: bool,
    /// Samples of virtual threads name the virtual thread, not its carrier.
    pub(crate) virtual_threads: bool,
    /// The bytecode of methods.
    pub(crate) bytecodes: bool,
    /// Rewriting the container classes that a door is fitted to.
    pub(crate) rewriting: bool,
    /// Blocks of native memory are seen ([`crate::native_memory`]).
    pub(crate) native_memory: bool,
    /// Samples are not biased by how the JVM refills allocation buffers (`crate::jvm::tlab_refill`).
    pub(crate) tlab_refill: bool,
}

/// The name of [`Capabilities::rewriting`] as published.
pub(crate) const REWRITING: &str = "retransform_classes";

impl Capabilities {
    /// Asks the VM for each group of capabilities in turn, and logs which ones it refuses.
    /// `live`: the agent is attached to a running VM.
    pub(crate) fn acquire(jvmti: &JvmTi, live: bool, tlab_refill: bool) -> Capabilities {
        let mut held = Capabilities {
            refunds: jvmti
                .acquire(&[Capability::TagObjects, Capability::GenerateObjectFreeEvents])
                .is_ok(),
            collections: jvmti
                .acquire(&[Capability::GenerateGarbageCollectionEvents])
                .is_ok(),
            bytecodes: jvmti.acquire(&[Capability::GetBytecodes]).is_ok(),
            // `crate::door` says what is missing without it, where it is missed.
            rewriting: jvmti.acquire(&[Capability::RetransformClasses]).is_ok(),
            tlab_refill,
            ..Capabilities::default()
        };
        match jvmti.acquire(&[Capability::GenerateSampledObjectAllocEvents]) {
            Ok(()) => held.sampling = true,
            Err(JvmTiError::NOT_AVAILABLE) => tracing::error!(
                "another agent holds the JVM's allocation sampling (a profiler in allocation mode?); no accounts are kept until the JVM is started without it"
            ),
            Err(failure) => {
                tracing::error!(
                    "the JVM refuses allocation sampling ({failure}); no accounts are kept"
                );
            }
        }
        if !held.refunds {
            tracing::error!("the JVM refuses object tags or their release; no accounts are kept");
        }
        if !held.collections {
            tracing::error!("the JVM does not report collections; live bytes stay zero");
        }
        // Only the log and the stacks of sites need these. Without them a frame has no line.
        let _ = jvmti.acquire(&[Capability::GetLineNumbers]);
        let _ = jvmti.acquire(&[Capability::GetSourceFileName]);
        if !held.bytecodes {
            tracing::error!(
                "the JVM does not show bytecode; no place is known to be safe, and nothing is refused"
            );
        }
        // The VM gives it at start-up only, and only if it has virtual threads. Without it their
        // samples come all the same.
        if !live {
            held.virtual_threads = jvmti.acquire(&[Capability::SupportVirtualThreads]).is_ok();
            // Later the VM has bound its own methods already.
            held.native_memory = (jvmti.acquire(&[Capability::GenerateNativeMethodBindEvents]))
                .and_then(|()| jvmti.enable(Event::NativeMethodBind))
                .inspect_err(|failure| {
                    tracing::warn!(
                        "the JVM does not show its native methods ({failure}); native memory is not counted by account"
                    );
                })
                .is_ok();
        }
        held
    }

    /// As `heapwarden_capability_enabled` shows them.
    pub(crate) fn published(&self) -> Vec<(&'static str, bool)> {
        vec![
            ("sampled_object_alloc", self.sampling),
            ("object_free", self.refunds),
            ("garbage_collection", self.collections),
            ("virtual_threads", self.virtual_threads),
            ("bytecodes", self.bytecodes),
            (REWRITING, self.rewriting),
            ("tlab_refill", self.tlab_refill && !tlab_refill::is_undone()),
        ]
    }
}
