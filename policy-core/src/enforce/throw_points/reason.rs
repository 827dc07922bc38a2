//! Why a refusal that was due was deferred.

/// The reason of a deferral: a label of `heapwarden_account_deferred_refusals_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// The thread has just been refused, and its handlers run.
    Grace,
    /// The program has asked not to be interrupted here.
    Masked,
    /// A method or class on the stack is not known yet.
    Unresolved,
    /// The stack could not be walked, or is too deep.
    Stack,
    /// The VM is going down.
    Shutdown,
    /// None of the account's own frames is on the stack.
    NoOwnFrame,
    /// A static initialiser runs: a class that fails there is unusable for ever.
    Clinit,
    /// A class is being loaded or defined.
    ClassLoading,
    /// A call site, method handle or class is being linked.
    Linkage,
    /// One error would end a timer or a periodic task.
    Timer,
    /// A lock is being acquired or released.
    Locks,
    /// References, cleaners or finalizers run: errors there are swallowed.
    References,
    /// A logger runs.
    Logging,
    /// A thread ends, or its uncaught exception is being handled.
    Uncaught,
    /// A future, phase or worker is being completed: others wait for it.
    Completion,
    /// A throwable is being filled in.
    Throwable,
    /// A class is being described for serialization: the JDK caches failures.
    Serialization,
    /// Native code, which may not check for a pending error.
    Native,
    /// Code of the JDK that is not known to keep its invariants.
    Jdk,
    /// Code of the container, of a framework, or of no account, between the allocation and the account's
    /// frame.
    Container,
    /// Another account's code between the allocation and the account's frame.
    Foreign,
    /// A catch or finally block runs: a refusal would hide the first error.
    Handler,
    /// The policy says never here.
    Policy,
    /// The thread is its own loop: no unit of work begins below the account's frame.
    NoUnit,
    /// The account has doors at methods alone, and the work has not come through one of them.
    NoDoor,
}

impl Reason {
    /// All, each at the index that is its number.
    pub const ALL: [Reason; 25] = [
        Reason::Grace,
        Reason::Masked,
        Reason::Unresolved,
        Reason::Stack,
        Reason::Shutdown,
        Reason::NoOwnFrame,
        Reason::Clinit,
        Reason::ClassLoading,
        Reason::Linkage,
        Reason::Timer,
        Reason::Locks,
        Reason::References,
        Reason::Logging,
        Reason::Uncaught,
        Reason::Completion,
        Reason::Throwable,
        Reason::Serialization,
        Reason::Native,
        Reason::Jdk,
        Reason::Container,
        Reason::Foreign,
        Reason::Handler,
        Reason::Policy,
        Reason::NoUnit,
        Reason::NoDoor,
    ];

    /// The value of the metric's label.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Grace => "grace",
            Reason::Masked => "masked",
            Reason::Unresolved => "unresolved",
            Reason::Stack => "stack",
            Reason::Shutdown => "shutdown",
            Reason::NoOwnFrame => "no-own-frame",
            Reason::Clinit => "clinit",
            Reason::ClassLoading => "class-loading",
            Reason::Linkage => "linkage",
            Reason::Timer => "timer",
            Reason::Locks => "locks",
            Reason::References => "references",
            Reason::Logging => "logging",
            Reason::Uncaught => "uncaught",
            Reason::Completion => "completion",
            Reason::Throwable => "throwable",
            Reason::Serialization => "serialization",
            Reason::Native => "native",
            Reason::Jdk => "jdk",
            Reason::Container => "container",
            Reason::Foreign => "foreign",
            Reason::Handler => "handler",
            Reason::Policy => "policy",
            Reason::NoUnit => "no-unit",
            Reason::NoDoor => "no-door",
        }
    }

    /// Whether the place itself is safe, and an error is spared because it would end a thread's own loop
    /// or a timer. Such a thread goes on, and is slowed in duress.
    pub fn is_slowed(self) -> bool {
        matches!(self, Reason::NoUnit | Reason::Timer)
    }

    /// The reason of that name.
    pub fn from_name(name: &str) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use crate::enforce::gate::MAX_REASONS;

    use super::*;

    #[test]
    fn every_reason_has_its_place_and_a_name_of_its_own() {
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            assert_eq!(Reason::from_name(reason.name()), Some(reason));
        }
        assert!(Reason::ALL.len() <= MAX_REASONS);
    }
}
