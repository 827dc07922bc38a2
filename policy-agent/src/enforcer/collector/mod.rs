//! The collector from outside: the collections that can be asked for and who waits for them, and the kernel's view of
//! its threads (whether all refunds are in, when G1's cycles run).

use policy_jvm::Jni;

use crate::ground::Ground;
use crate::ports::Means;

use called_collection::CalledCollection;
use collections::Collections;
use refund_threads::RefundThreads;

pub(crate) mod called_collection;
pub(crate) mod collections;
pub(crate) mod collector_threads;
pub(crate) mod g1_marking;
pub(crate) mod refund_threads;

/// Shared by the enforcer and the threads that collect and refund.
#[derive(Default)]
pub(crate) struct Collecting {
    /// The collection that the enforcer has asked for and does not wait for itself.
    pub(crate) called: CalledCollection,
    /// The threads that report freed objects.
    pub(crate) refunds: RefundThreads,
}

impl Collecting {
    /// Waits for collections that the enforcer asks for, until the agent stops. On an attached thread of the agent's
    /// own.
    pub(crate) fn serve(&self, ground: &Ground, jni: &Jni) {
        self.called.serve(
            || ground.stopping(),
            |means| collect(ground, means, jni),
            || {
                ground.core.enforcer.wake();
                ground.costs.thread_is("collections");
            },
        );
    }
}

/// Asks for a collection and waits for its end. False if the VM refuses. On an attached thread of the agent's own.
pub(crate) fn collect(ground: &Ground, means: Means, jni: &Jni) -> bool {
    let runtime = ground.java().and_then(|java| java.runtime.as_ref());
    Collections::collect(means, jni, &ground.jvmti, runtime)
}
