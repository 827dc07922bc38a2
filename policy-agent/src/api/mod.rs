//! What programs are told of their accounts, through the Java API.
//!
//! A thread of the host that asks takes no lock of the directory and passes over no record: it
//! gets the latest [`reading`], and if that is too old rings the [`herald`], a thread of the
//! agent's own, and waits for the next, bounded. The herald also tells listeners when an account
//! comes near its limits ([`pressure`]), and [`peaks`] notes the highest live bytes of accounts
//! under test.

pub(crate) mod desk;
pub(crate) mod herald;
pub(crate) mod peaks;
pub(crate) mod pressure;
pub(crate) mod reading;
