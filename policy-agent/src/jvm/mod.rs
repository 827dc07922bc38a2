//! The agent's side of the JVM: what it does at events, what it reads of objects, and what programs ask
//! it for.
//!
//! All of it is safe code upon [`policy_jvm`], whose contract is stated there; the exported entry points
//! alone, one macro call, are an exception.

pub(crate) mod bridge;
pub(crate) mod callbacks;
pub(crate) mod collections;
mod entry;
mod error_class_copies;
pub(crate) mod error_figures;
pub(crate) mod errors;
mod exports;
pub(crate) mod handles;
pub(crate) mod method_inspection;
mod natives;
pub(crate) mod recognizer;
pub(crate) mod sample;
mod sampled_thread;
pub(crate) mod sampler;
pub(crate) mod scan;
pub(crate) mod site_stack;
pub(crate) mod stack;
pub(crate) mod stack_judge;
mod stack_walk;
pub(crate) mod thread;
mod thread_scopes;
pub(crate) mod tlab_refill;
