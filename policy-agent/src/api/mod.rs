//! The answers that programs get about their accounts through the Java API.
//!
//! A thread of the host that asks takes no lock of the directory and scans no records. It gets the
//! latest [`reading`]. If that is too old, it wakes the [`notifier`], a thread of the agent, and waits
//! for the next one, up to a timeout. The notifier also calls listeners when an account comes near its
//! limits ([`crate::pressure`]). [`policy_core::peaks`] keeps the highest live bytes of accounts under
//! test, and [`traced`] has stacks taken of them.

pub(crate) mod notifier;
pub(crate) mod reading;
pub(crate) mod reading_cache;
pub(crate) mod traced;
