//! The reasons for which refusals are deferred, for people.

/// Returns an explanation of a reason, worded to follow "because".
pub(super) fn meaning(reason: &str) -> &'static str {
    match reason {
        "masked" => "the program asked for no interruption",
        "unresolved" => "the agent did not know a method on the stack yet",
        "stack" => "the stack was too deep, or could not be walked",
        "shutdown" => "the JVM was shutting down",
        "no-own-frame" => "no code of the account was on the stack",
        "clinit" => "a class was being initialised",
        "class-loading" => "a class was being loaded or defined",
        "linkage" => "a call site or class was being linked",
        "timer" => "one error would end a timer or a periodic task",
        "locks" => "a lock was being taken or released",
        "references" => "a cleaner or finalizer was running",
        "logging" => "a logger was running",
        "uncaught" => "the end of a thread was being handled",
        "completion" => "a future was being completed, and other threads wait for it",
        "throwable" => "an exception was being created",
        "serialization" => "a class was being described for serialization",
        "native" => "native code on the stack may not check for an error",
        "jdk" => "JDK code on the stack is not known to survive an error",
        "container" => "code of the container, or of no account, is on the stack",
        "foreign" => "code of another account is on the stack",
        "handler" => "a catch or finally block was running",
        "policy" => "never-interrupt in the policy covers the place",
        "no-unit" => {
            "an error would end a thread's own loop, so the thread goes on, and is slowed where the heap is short"
        }
        "no-door" => {
            "the work has not come through the account's doors, so it goes on while the heap has room"
        }
        _ => "this command does not know the reason",
    }
}

/// Returns advice on deferrals for a reason.
pub(super) fn remedy(reason: &str) -> &'static str {
    match reason {
        "jdk" | "container" => {
            "if that code survives an error, list its packages in the account's interrupt-through"
        }
        "no-own-frame" => {
            "give the account packages, or list the packages that allocate for it in its interrupt-through"
        }
        "foreign" => "if the other account is a library, give it charge = \"caller\"",
        "policy" => "narrow the account's never-interrupt",
        "no-unit" => {
            "if a method of the account handles one piece of work and its caller catches every error, name it in the account's work"
        }
        "no-door" => {
            "nothing, if that work lets memory go or keeps nothing; otherwise add the method with which it begins to the account's door"
        }
        "timer" => {
            "run the work of the task on a thread of a pool, where a refusal ends one request only"
        }
        "clinit" | "handler" => {
            "move the large allocation out of the static initialiser or the handler"
        }
        "unresolved" => {
            "nothing: the agent looks such methods up, so the next sample can be refused"
        }
        "stack" => "look for endless recursion; the agent does not refuse on stacks of that depth",
        _ => {
            "nothing, if it is refused elsewhere: the agent decides anew at the thread's next sample"
        }
    }
}
