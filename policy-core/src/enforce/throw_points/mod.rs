//! Safe throw points: places where a refusal breaks nothing but the work that it refuses.
//!
//! * [`judge_frames()`](judge::judge_frames): whether a throw is safe on a given stack, a pure function; [`Reason`]: why it is not.
//! * [`rules`]: the reviewed table of the JDK's methods (`reviewed.toml`), compiled;
//!   [`method_info`]: what the rules need to know of a method.
//! * [`units`]: the reviewed table of methods with which a unit of work begins (`units.toml`), compiled.
//! * [`bytecode`]: whether an instruction belongs to an exception handler, and what it allocates.
//! * [`exceptions`]: the policy's exceptions for the packages of single accounts.
//! * [`methods`]: the result for each method, which the metadata thread finds out and allocating
//!   threads read without a lock.

pub mod bytecode;
pub mod exceptions;
pub mod judge;
pub mod method_info;
pub mod methods;
mod places;
mod reason;
pub mod rules;
pub mod units;

use std::sync::Arc;

use arc_swap::ArcSwap;
use policy_config::Policy;

use crate::identity::directory::Directory;

use exceptions::Exceptions;
use methods::Methods;
use rules::Rules;
use units::Units;

pub use reason::Reason;

/// Everything that is known of throw points. Shared by all threads.
pub struct ThrowPoints {
    /// The reviewed rules for the JDK's methods.
    pub rules: &'static Rules,
    /// The reviewed methods with which units of work begin.
    pub units: &'static Units,
    /// The table of the methods that were looked up so far. Lock-free for readers.
    pub methods: Methods,
    /// The policy's exceptions for single accounts. Lock-free for readers.
    pub exceptions: ArcSwap<Exceptions>,
}

impl ThrowPoints {
    /// The reviewed rules, no methods and no exceptions.
    pub fn new() -> ThrowPoints {
        ThrowPoints {
            rules: Rules::reviewed(),
            units: Units::reviewed(),
            methods: Methods::new(),
            exceptions: ArcSwap::default(),
        }
    }

    /// Takes over the exceptions of a policy, whose accounts the directory knows already. The caller
    /// holds the directory's lock, so that the last of two writers has the newest data.
    pub fn adopt(&self, policy: &Policy, directory: &Directory) {
        let before = self.exceptions.load_full();
        let Some(exceptions) = before.follow(policy) else {
            self.know_payers(directory);
            return;
        };
        self.exceptions
            .store(Arc::new(exceptions.with_payers(directory)));
        self.methods.start_over();
    }

    /// Updates the purses of the accounts that have exceptions. The caller holds the directory's lock. The enforcer
    /// does it before it publishes which purse stands for which account: so there is no refusal for an account
    /// without its exceptions, whenever a scope or a route of it was opened.
    pub fn know_payers(&self, directory: &Directory) {
        let exceptions = self.exceptions.load_full();
        if !exceptions.is_empty() {
            self.exceptions
                .store(Arc::new(exceptions.with_payers(directory)));
        }
    }
}
