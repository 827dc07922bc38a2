//! The kernel's view of the VM's threads: whether all refunds are in, and when G1's cycles run.

pub(crate) mod collector_threads;
pub(crate) mod g1_marking;
pub(crate) mod refund_threads;
