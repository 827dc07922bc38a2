//! Safe throw points: where a refusal breaks nothing but the work it refuses.
//!
//! * [`judge`]: the rule over a stack, a pure function; [`Reason`]: why not.
//! * [`rules`]: the reviewed table of the JDK's methods (`reviewed.toml`), compiled;
//!   [`facts`]: what it is asked with.
//! * [`bytecode`]: what a place in a method is: a handler, an allocation.
//! * [`exceptions`]: what single accounts say of packages.
//! * [`methods`]: what all of these say of each method, found out by the clerk, for allocating
//!   threads to read.

pub(crate) mod bytecode;
pub(crate) mod exceptions;
pub(crate) mod facts;
pub(crate) mod judge;
pub(crate) mod methods;
mod reason;
pub(crate) mod rules;

use std::sync::Arc;

use arc_swap::ArcSwap;
use policy_config::Policy;

use crate::identity::directory::Directory;

use exceptions::Exceptions;
use methods::Methods;
use rules::Rules;

pub(crate) use reason::Reason;

/// Everything that is known of places where threads may be refused.
pub(crate) struct Points {
    pub(crate) rules: Rules,
    pub(crate) methods: Methods,
    pub(crate) exceptions: ArcSwap<Exceptions>,
}

impl Points {
    pub(crate) fn new() -> Points {
        Points {
            rules: Rules::reviewed(),
            methods: Methods::new(),
            exceptions: ArcSwap::default(),
        }
    }

    /// Takes over what a policy says, whose accounts the directory knows already. The caller
    /// holds the directory's lock, so that of two writers the later knows more.
    pub(crate) fn adopt(&self, policy: &Policy, directory: &Directory) {
        let before = self.exceptions.load_full();
        let Some(exceptions) = before.follow(policy) else {
            self.know_payers(directory);
            return;
        };
        self.exceptions
            .store(Arc::new(exceptions.with_payers(directory)));
        self.methods.start_over();
    }

    /// Takes note of accounts that have other purses now. The caller holds the directory's
    /// lock.
    pub(crate) fn know_payers(&self, directory: &Directory) {
        let exceptions = self.exceptions.load_full();
        if !exceptions.is_empty() {
            self.exceptions
                .store(Arc::new(exceptions.with_payers(directory)));
        }
    }
}
