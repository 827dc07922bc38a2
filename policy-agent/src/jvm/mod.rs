//! The agent's side of the JVM: what it charges at a sample, what it reads of threads, classes and objects, and the
//! Java half that it defines.
//!
//! All of it is safe code upon [`policy_jvm`], whose contract is stated there.

pub(crate) mod bridge;
mod error_class_copies;
pub(crate) mod error_figures;
pub(crate) mod errors;
pub(crate) mod handles;
pub(crate) mod method_inspection;
pub(crate) mod recognizer;
pub(crate) mod sample;
pub(crate) mod sampled_thread;
pub(crate) mod sampler;
pub(crate) mod scan;
pub(crate) mod site_stack;
pub(crate) mod stack;
pub(crate) mod stack_judge;
mod stack_walk;
pub(crate) mod thread;
pub(crate) mod thread_scopes;
pub(crate) mod tlab_refill;
