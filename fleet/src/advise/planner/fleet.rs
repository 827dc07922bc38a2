//! The planner's input and its answer.

/// A JVM.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jvm {
    /// The bytes that it may hold: above, it is pressed.
    pub(crate) capacity_bytes: u64,
    /// The bytes that it is expected to hold, all services included.
    pub(crate) held_bytes: u64,
    /// The bytes that it may turn out to hold: the headroom for others is counted from here.
    pub(crate) held_upper_bytes: u64,
    /// The names of all its accounts, also of those that cannot be moved.
    pub(crate) accounts: Vec<String>,
    /// The services that can be moved; read where the JVM is pressed.
    pub(crate) services: Vec<Service>,
}

/// A service that can be moved.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    /// Its account's name.
    pub(crate) name: String,
    /// Bytes that it frees at its JVM, at least.
    pub(crate) frees_bytes: u64,
    /// Bytes that it needs at the destination, at most; 0 counts as 1.
    pub(crate) needs_bytes: u64,
}

/// One service from one JVM to another; the numbers are places in what the planner was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Move {
    /// The pressed JVM.
    pub(crate) source: usize,
    /// Which of its services.
    pub(crate) service: usize,
    /// The JVM that takes it.
    pub(crate) destination: usize,
}

/// The figures that are minimised, in this order (see the module).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost {
    /// Excess that stays at the pressed JVMs, bytes.
    pub(crate) unrelieved_bytes: u64,
    /// Services moved.
    pub(crate) moves: u64,
    /// Bytes that they need at the destinations.
    pub(crate) needed_bytes: u64,
}

/// How much work the planner may do, in steps that each look at one service or one JVM: the same
/// input gives the same plan on every machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// For the covers of all pressed JVMs together.
    pub(crate) cover_steps: u64,
    /// For the places of the services of the covers.
    pub(crate) packing_steps: u64,
    /// For the improvement of each greedy plan.
    pub(crate) improvement_steps: u64,
    /// For branch and bound.
    pub(crate) search_steps: u64,
}

impl Default for Budget {
    /// Some seconds in all if room is scarce, else a fraction of a second.
    fn default() -> Self {
        Budget {
            cover_steps: 50_000_000,
            packing_steps: 2_000_000,
            improvement_steps: 8_000_000,
            search_steps: 60_000_000,
        }
    }
}

/// The result of the planner.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Ordered by source and service.
    pub(crate) moves: Vec<Move>,
    /// The excess that stays, the moves, and the bytes that they need.
    pub(crate) cost: Cost,
    /// No plan costs less than this; equal to the cost if the plan is proven optimal.
    pub(crate) bound: Cost,
}

impl Plan {
    /// Whether no better plan exists.
    pub(crate) fn is_optimal(&self) -> bool {
        self.cost == self.bound
    }
}
