//! The collector from outside: the kernel's view of its threads (whether all refunds are in, when G1's cycles run), and
//! who waits for a collection that was asked for.

pub(crate) mod called_collection;
pub(crate) mod collector_threads;
pub(crate) mod g1_marking;
pub(crate) mod refund_threads;
