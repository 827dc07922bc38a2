//! Reading one live JVM: where its agent listens ([`Address`]), asking it ([`Client`]), and what
//! it answers ([`Accounts`]).
//!
//! Nothing that an agent says is trusted to be small, complete or fit for a terminal: an answer
//! is bounded in bytes and time, absent fields have defaults, and names go through
//! [`printable`](crate::printable) wherever they are printed.

mod accounts;
mod address;
mod client;
mod error;
mod reading;

#[cfg(test)]
pub(crate) use accounts::Tree;
pub(crate) use accounts::{Account, Accounts, State};
#[cfg(test)]
pub(crate) use accounts::{Class, Principal};
pub(crate) use address::Address;
pub(crate) use client::{Classes, Client};
pub(crate) use error::LiveError;
pub(crate) use reading::Reading;
