//! Reads one running JVM: where its agent listens ([`Address`]), the requests ([`Client`]), and the
//! answers ([`Accounts`], [`Leaks`], [`Sites`]).
//!
//! An answer need not be small, complete or fit for a terminal: it is bounded in bytes and time,
//! absent fields have defaults, and names go through [`printable`](heapwarden_terminal::printable) when printed.

mod address;
mod client;
mod error;
mod limits;
pub mod places;
mod reading;
mod waits;

pub use address::{Address, MAX_RUN_FILE_BYTES};
pub use client::{Classes, Client};
pub use error::LiveError;
pub use policy_report::Tree;
pub use policy_report::{Bin, Door, Evidence, Exhaustion, Heap, State};
pub use reading::Reading;
pub use waits::{NOTICEABLE_MS, wait_reason};

/// The answer of an agent, with owned strings.
pub type Accounts = policy_report::Accounts<'static>;
/// The leak suspects of a JVM and its growing classes, as the agent judges.
pub type Leaks = policy_report::Leaks<'static>;
/// A class of an account that is suspected to leak.
pub type Suspect = policy_report::Suspect<'static>;
/// A class of an account that grows and is not called a leak.
pub type Growing = policy_report::Growing<'static>;
/// Where survivors were allocated in a JVM.
pub type Sites = policy_report::Sites<'static>;
/// The allocations of a JVM, by calling context.
pub type Contexts = policy_report::Contexts<'static>;
/// One of them.
pub type Context = policy_report::Context<'static>;
/// The sites of one account.
pub type AccountSites = policy_report::AccountSites<'static>;
/// The sites of a class in an account.
pub type ClassSites = policy_report::ClassSites<'static>;
/// Exact accounts as a whole.
pub type Exact = policy_report::Exact<'static>;
/// The process that it is about.
pub type Jvm = policy_report::Jvm<'static>;
/// One account of the answer.
pub type Account = policy_report::Account<'static>;
/// A place where errors were thrown in an account, or would have been.
pub type Place = policy_report::Place<'static>;
/// A route of an account: what begins its work, and what that allocates and keeps.
pub type Route = policy_report::Route<'static>;
/// The objects of one class in one account.
pub type Class = policy_report::Class<'static>;
/// An account on whose behalf was allocated.
pub type Principal = policy_report::Principal<'static>;
