//! Naming: which service a class loader belongs to, and what classes are called. On the agent's threads.

pub(crate) mod class_path;
pub(crate) mod enact;
pub(crate) mod loader_thread;
pub(crate) mod metadata_thread;
pub(crate) mod program;
mod quarkus;
pub(crate) mod rules;
pub(crate) mod spring_boot;
