//! The agent's half in the JVM: the classes that it defines there (the API's other half, the errors of a refusal), what
//! it reads of their objects, the JVM's sampler and flags, and threads that are attached.
//!
//! All of it is safe code upon [`policy_jvm`], whose contract is stated there.

pub(crate) mod bridge;
mod error_class_copies;
pub(crate) mod error_figures;
pub(crate) mod errors;
pub(crate) mod handles;
pub(crate) mod sampler;
pub(crate) mod stack_walk;
pub(crate) mod thread;
pub(crate) mod thread_scopes;
pub(crate) mod tlab_refill;
