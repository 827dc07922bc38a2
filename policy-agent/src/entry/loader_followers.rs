//! Who works on the loader thread beside naming: both fitters of doors, the watch for threads that a refusal ended,
//! and the census of threads.

use std::time::Duration;

use policy_jvm::Jni;

use crate::door::{Fitter, MethodDoors, MethodFitter};
use crate::ground::Ground;
use crate::identity::names::Server;
use crate::naming::loader_thread::Follower;
use crate::thread_census::{CensusTurns, ThreadCensus};
use crate::uncaught::UncaughtWatch;

/// See the module. The loader thread owns it.
pub(super) struct LoaderFollowers {
    ground: &'static Ground,
    fitter: Fitter,
    method_fitter: MethodFitter,
    uncaught: UncaughtWatch,
    census: CensusTurns,
}

impl LoaderFollowers {
    /// They have looked at nothing yet.
    pub(super) fn new(
        ground: &'static Ground,
        method_doors: &'static MethodDoors,
        census: &'static ThreadCensus,
    ) -> Self {
        Self {
            ground,
            fitter: Fitter::new(method_doors),
            method_fitter: MethodFitter::new(method_doors),
            uncaught: UncaughtWatch::new(),
            census: CensusTurns::new(census),
        }
    }
}

impl Follower for LoaderFollowers {
    fn service_named(&mut self, server: Server) {
        self.fitter.service_named(server);
    }

    fn turn(&mut self, jni: &Jni) -> Duration {
        let next = self.fitter.turn(self.ground, jni);
        let next = next.min(self.method_fitter.turn(self.ground, jni));
        self.uncaught.turn(self.ground, jni);
        next.min(self.census.turn(self.ground, jni))
    }
}
