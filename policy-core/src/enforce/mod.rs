//! Limits: the state of each limited account, the collections that prove it, and the refusals.
//!
//! Rules, without threads or JVM:
//! * [`state`]: the state of an account (open, suspect, over), as a pure transition function.
//! * [`duress`]: whether the heap itself is short, and who is refused first then.
//! * [`overdraft`]: at which charge the enforcer must look, and at which charge threads wait in duress.
//! * [`collection_planner`]: which collection to ask for next, within a [`budget`] of time.
//! * [`back_off`]: how long an account that was acquitted is left alone.
//! * [`grace`]: what a refused thread may allocate, and how long a thread may be kept waiting.
//! * [`latest_samples`]: whether a thread without a unit of work keeps anything of what it makes.
//! * [`throw_points`]: where a throw is safe; [`effect`]: whether throws stop an account at all.
//!
//! On allocating threads, without locks:
//! * [`gate`]: what they see of an account's limit.
//! * [`door`]: what a new request is answered where it would enter a service.
//! * [`routes`]: what requests of each kind cost, and which go in at a shut door because they keep nothing.
//! * [`admission`]: the path of one charge past its gates: admitted, delayed, deferred or refused.
//! * [`refusal_details`]: what a refusal's error says, made ready by the enforcer.
//! * [`place_counts`]: refusals by the place of the throw; [`refused_places`]: the same by name, for reports.
//!
//! On threads that end: [`killed_threads`], what the log says of those that a refusal ended.
//!
//! On the enforcer's thread:
//! * [`enforcer`]: one turn of that thread.
//! * [`limited_accounts`]: the accounts that have limits; [`evaluation`] goes through all of them
//!   once in a turn, [`account_check`] looks at one.
//! * [`evidence`]: asks the collector for collections that prove what is held, with [`canaries`];
//!   [`refund_wait`]: waits until the refunds of such a collection are in.
//! * [`limit_status`]: what is known of each limited account; reports read it under a lock.
//! * [`direct_limits`]: the accounts that have limits on native memory.
//! * [`heap_check`]: holds the sum of all accounts against the heap.
//! * [`enforcement_log`]: what the log says, rate-limited; [`coverage`]: what it says of limits that bind
//!   nobody.

pub mod account_check;
pub mod admission;
pub mod back_off;
pub mod budget;
pub mod canaries;
pub mod collection_planner;
pub mod coverage;
pub mod direct_limits;
pub mod door;
pub mod duress;
pub mod effect;
mod enforcement;
pub mod enforcement_log;
pub mod enforcer;
pub mod evaluation;
pub mod evidence;
pub mod evidence_log;
pub mod filling;
pub mod gate;
pub mod grace;
pub mod heap_check;
pub mod killed_threads;
mod knocking;
pub mod latest_samples;
pub mod limit_status;
pub mod limited_accounts;
mod natural_work;
pub mod overdraft;
pub mod place_counts;
pub mod place_name;
pub mod ports;
#[cfg(test)]
mod protocol;
pub mod refund_wait;
pub mod refusal_details;
pub mod refused_places;
pub mod routes;
mod second_look;
pub mod state;
pub mod throw_points;

pub use enforcement::{Enforcement, Status};

/// Refuses without evidence, to show what that would break. For tests; never for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestRefuse {
    /// At any sample of an account that has a limit, wherever its thread is.
    Naive,
    /// At every sample of such an account where a throw is safe, without a grace.
    Storm,
}
