//! Limits: where an account stands against its own, the collections that prove it, and the
//! refusal of what goes beyond.
//!
//! * [`state`]: the state of an account, a pure transition function.
//! * [`overdraft`]: how far a charge may go before somebody must look, and before threads wait.
//! * [`gate`]: what allocating threads see of it; lock-free.
//! * [`docket`]: the cases, for the warden and the reports; [`terms`]: what a refusal says;
//!   [`logbook`]: what the log says.
//! * [`rounds`]: the warden's round over the accounts, by [`round`] and [`visit`]; [`evidence`]:
//!   the collections it asks for, by the [`ladder`], within a [`budget`]; [`marker`]: when G1
//!   has begun one; [`settling`]: when its refunds are in, by what is known of the
//!   [`couriers`]; [`warden`]: its thread.
//! * [`grace`]: what a refused thread may allocate, how long a thread may be kept waiting.

pub(crate) mod gate;

#[cfg(not(loom))]
pub(crate) mod budget;
#[cfg(not(loom))]
mod canaries;
#[cfg(not(loom))]
pub(crate) mod couriers;
#[cfg(not(loom))]
pub(crate) mod docket;
#[cfg(not(loom))]
pub(crate) mod evidence;
#[cfg(not(loom))]
pub(crate) mod grace;
#[cfg(not(loom))]
mod ladder;
#[cfg(not(loom))]
mod logbook;
#[cfg(not(loom))]
mod marker;
#[cfg(not(loom))]
mod overdraft;
#[cfg(not(loom))]
pub(crate) mod points;
#[cfg(all(test, not(loom)))]
mod protocol;
#[cfg(not(loom))]
pub(crate) mod refused;
#[cfg(not(loom))]
mod round;
#[cfg(not(loom))]
mod rounds;
#[cfg(not(loom))]
mod settling;
#[cfg(not(loom))]
mod state;
#[cfg(not(loom))]
pub(crate) mod terms;
#[cfg(not(loom))]
mod visit;
#[cfg(not(loom))]
pub(crate) mod warden;

#[cfg(not(loom))]
mod enforcement;
#[cfg(not(loom))]
pub(crate) use enforcement::Enforcement;
