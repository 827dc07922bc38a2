//! Reads one running JVM: where its agent listens ([`Address`]), the requests ([`Client`]), and the
//! answers ([`Accounts`], [`Leaks`], [`Sites`]).
//!
//! An answer need not be small, complete or fit for a terminal: it is bounded in bytes and time,
//! absent fields have defaults, and names go through [`printable`](crate::printable) when printed.

mod address;
mod client;
mod error;
mod limits;
pub(crate) mod places;
mod reading;
mod target;
mod waits;

pub(crate) use address::{Address, MAX_RUN_FILE_BYTES};
pub(crate) use client::{Classes, Client};
pub(crate) use error::LiveError;
#[cfg(test)]
pub(crate) use policy_report::Tree;
pub(crate) use policy_report::{Bin, Door, Evidence, Exhaustion, Heap, State};
pub(crate) use reading::Reading;
pub(crate) use target::target;
pub(crate) use waits::{NOTICEABLE_MS, wait_reason};

/// The answer of an agent, with owned strings.
pub(crate) type Accounts = policy_report::Accounts<'static>;
/// The leak suspects of a JVM and its growing classes, as the agent judges.
pub(crate) type Leaks = policy_report::Leaks<'static>;
/// A class of an account that is suspected to leak.
pub(crate) type Suspect = policy_report::Suspect<'static>;
/// A class of an account that grows and is not called a leak.
pub(crate) type Growing = policy_report::Growing<'static>;
/// Where survivors were allocated in a JVM.
pub(crate) type Sites = policy_report::Sites<'static>;
/// The allocations of a JVM, by calling context.
pub(crate) type Contexts = policy_report::Contexts<'static>;
/// One of them.
pub(crate) type Context = policy_report::Context<'static>;
/// The sites of one account.
pub(crate) type AccountSites = policy_report::AccountSites<'static>;
/// The sites of a class in an account.
pub(crate) type ClassSites = policy_report::ClassSites<'static>;
/// Exact accounts as a whole.
pub(crate) type Exact = policy_report::Exact<'static>;
/// The process that it is about.
pub(crate) type Jvm = policy_report::Jvm<'static>;
/// One account of the answer.
pub(crate) type Account = policy_report::Account<'static>;
/// A place where errors were thrown in an account, or would have been.
pub(crate) type Place = policy_report::Place<'static>;
/// A route of an account: what begins its work, and what that allocates and keeps.
pub(crate) type Route = policy_report::Route<'static>;
/// The objects of one class in one account.
pub(crate) type Class = policy_report::Class<'static>;
#[cfg(test)]
pub(crate) type Principal = policy_report::Principal<'static>;
