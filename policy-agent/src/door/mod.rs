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
//!
//! A policy may put doors at methods of its choice as well. Such a method is put in brackets, which
//! `java.lang.HeapwardenDoor` answers ([`method_edit`]); [`method_fitter`] does it, and [`at_method`] says who is
//! turned away there, by an error of the account's kind.

mod at_method;
mod fitter;
mod fitting;
mod method_edit;
mod method_fitter;
mod points;
mod schedule;

pub(crate) use at_method::MethodDoors;
pub(crate) use fitter::Fitter;
pub(crate) use method_fitter::MethodFitter;
