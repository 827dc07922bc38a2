//! The ports of enforcement, beside [`crate::ports`]: the thread that allocates, and reports for the log.

use std::sync::Arc;
use std::time::Duration;

use crate::ledger::{ObjectTag, PurseId};
use crate::ports::{Canaries, Clock, Collector, Heap, References, Sampler};

use super::grace::Grace;
use super::place_counts::{PlaceCounts, PlaceKey};
use super::place_name::PlaceName;
use super::refusal_details::RefusalDetails;
use super::throw_points::Reason;

/// Everything that the enforcer asks of the JVM.
pub trait Jvm: Clock + Heap + Collector + Canaries + Sampler + References + RefusalReports {}

impl<T: Clock + Heap + Collector + Canaries + Sampler + References + RefusalReports> Jvm for T {}

/// The notes of allocating threads about refusals, with names. On the enforcer's thread.
pub trait RefusalReports {
    /// The next refusal that the log must report, with the names of its thread and method.
    fn take_refusal(&self) -> Option<LoggedRefusal>;
    /// The next frame that barred a refusal, of those that were asked for.
    fn take_barring_frame(&self) -> Option<BarringFrame>;
    /// The next place at which a thread was refused for the first time, with its name.
    fn take_new_place(&self) -> Option<NewPlace>;
}

/// A frame that barred a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BarringFrame {
    /// The number of the account's gate.
    pub gate: u32,
    /// Why.
    pub reason: Reason,
    /// Its method, made safe for a log; `None` if that is gone.
    pub frame: Option<String>,
}

/// A place at which a thread was refused for the first time.
pub struct NewPlace {
    /// The counts of its account.
    pub counts: Arc<PlaceCounts>,
    /// Its slot in them.
    pub slot: u32,
    /// Its name; `None` if a method of it is gone.
    pub name: Option<PlaceName>,
}

/// A refusal as the log reports it.
pub struct LoggedRefusal {
    /// The account, the limit and the figures that the error stated.
    pub details: Arc<RefusalDetails>,
    /// Whether the error was thrown; otherwise it was only counted.
    pub thrown: bool,
    /// The size of the object that was refused, in bytes.
    pub requested_bytes: u64,
    /// The name of the thread, made safe for a log; `None` if it is gone.
    pub thread: Option<String>,
    /// The account's own frame that was refused, made safe for a log; `None` if its method is gone.
    pub frame: Option<String>,
}

/// An account that a charge counts for: the payer's own, or that of the service around a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// The purse that was charged.
    pub payer: PurseId,
    /// The purse that stands for the account, which is also the number of its gate.
    pub account: u32,
    /// Whether the account is the service's around the payer's scope.
    pub above: bool,
    /// The outermost account, which graces are counted by: a thread that was just refused for one of
    /// the two accounts is not refused for the other.
    pub(super) outermost: u32,
}

/// Why no error may be thrown here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Barred {
    /// The reason, which the gate counts.
    pub reason: Reason,
    /// The stack is not known *yet*: a method is being looked up, and a later try may succeed.
    pub passing: bool,
}

impl From<Reason> for Barred {
    fn from(reason: Reason) -> Barred {
        Barred {
            reason,
            passing: false,
        }
    }
}

/// Whether a thread runs what a shut door has let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LetIn {
    /// It does not.
    #[default]
    No,
    /// A request that runs on this thread from its beginning to its end.
    OnThread,
    /// Work that was let in as a probe for the program that asked, on whatever threads: the account's door knows
    /// its mark.
    Work(u32),
}

/// The thread that allocates, while its sample is being delivered. Nothing here may take a lock,
/// look up a name or format anything.
pub trait CallingThread {
    /// A place on the stack: what is needed to name it later.
    type Place: Copy;

    /// Milliseconds since the agent was made.
    fn uptime_ms(&self) -> u64;
    /// Whether the VM is going down.
    fn is_stopping(&self) -> bool;
    /// CPU time of the native thread. A system call.
    fn cpu_time(&mut self) -> Duration;
    /// Whether this is a virtual thread, which holds a carrier that other threads need.
    fn is_virtual(&mut self) -> bool;
    /// Whether its stack, judged last, has an event loop in it, which others need.
    fn is_event_loop(&mut self) -> bool;
    /// The record of the sample; `None` if it found no room.
    fn record(&self) -> Option<ObjectTag>;
    /// Whether it runs what a shut door has let in.
    fn let_in(&mut self) -> LetIn;
    /// Judges the stack, and returns the place at which this account may be refused. `needs_entrance`: only work
    /// that has come through a door at a method may be.
    ///
    /// # Errors
    /// Why no error may be thrown here.
    fn judge(&mut self, level: Level, needs_entrance: bool) -> Result<Self::Place, Barred>;
    /// Whether the program has asked not to be refused here.
    fn is_masked(&mut self) -> bool;
    /// Returns the native thread's memory of its refusals.
    fn grace(&mut self) -> Grace;
    /// Stores it for the native thread.
    fn remember(&mut self, grace: Grace);
    /// Notes what the log needs: the thread is about to be refused at this place. This comes before
    /// [`CallingThread::throw`], because JNI allows very few calls while an exception is pending.
    fn note_refusal(&mut self, details: &Arc<RefusalDetails>, place: Self::Place);
    /// The numbers of a place that [`CallingThread::judge`] has returned.
    fn place_key(&self, place: Self::Place) -> PlaceKey;
    /// Hands the methods of such a place over, so that the enforcer names that slot. False if there is no room
    /// or memory for it now. Before [`CallingThread::throw`], too.
    fn name_place(&mut self, counts: &Arc<PlaceCounts>, slot: u32, place: Self::Place) -> bool;
    /// Throws the error, which stays pending until the thread runs Java code; false if it could not be
    /// made.
    fn throw(&mut self, details: &RefusalDetails) -> bool;
    /// Hands what was noted to the log. `thrown` says whether the error was thrown.
    fn log_refusal(&mut self, thrown: bool);
}
