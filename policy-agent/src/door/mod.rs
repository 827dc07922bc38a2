//! The door: where a container hands a request to a service, a service over its limit turns new requests
//! away before any of its code runs.
//!
//! Nothing but the fitting is here. A method of each container is given a question at its entry
//! ([`points`]):
//!
//! ```text
//! if (Guard.isShut(this, request, response)) return;
//! ```
//!
//! `Guard` is defined in the class loader of the container, which need not find any class of ours. It asks
//! the Java half in the boot loader (`policy-agent/java`), which asks the natives, which ask the core
//! whom to let in. While no account's door is shut, that ends at the first native call.

mod fitter;
mod points;
mod schedule;

pub(crate) use fitter::Fitter;
