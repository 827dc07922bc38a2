//! The VM's allocation sampler, as the core asks for it.

use std::time::Duration;

use policy_jvm::JvmTi;

use crate::cost::{Costs, process_cpu_time};
use crate::ports::Sampler;

/// The VM's sampler, and what its samples cost.
pub(crate) struct JvmSampler<'a> {
    pub(crate) jvmti: &'a JvmTi,
    pub(crate) costs: &'a Costs,
}

impl Sampler for JvmSampler<'_> {
    fn set_interval(&self, bytes: u64) -> Result<(), String> {
        let set = self.jvmti.set_sampling_interval(bytes);
        set.map_err(|failure| failure.to_string())
    }

    fn samples_cpu(&self) -> (Duration, u64) {
        self.costs.samples()
    }

    fn process_cpu(&self) -> Duration {
        process_cpu_time()
    }
}
