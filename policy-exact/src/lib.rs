//! Exact accounts: the code that counts every allocation of a class.
//!
//! # What is inserted
//!
//! | behind | code | counts |
//! | --- | --- | --- |
//! | `new C` | `ldc C; sipush n; made(Class, int)` | the size of `C`, which the counter keeps under the number *n* of (class loader, name) and measures at its first use |
//! | `newarray` | `dup; made(array)` | the size by the length |
//! | `anewarray` | `dup; sipush n; made(array, int)` | the size by the length; *n* is the number of the array's class |
//! | `multianewarray` | `dup; sipush dimensions; madeNested(array, int)` | all arrays that it makes |
//! | a call of native code that allocates (the module `sites`) | `dup; madeObject(Object)` | the object that comes back |
//!
//! Java methods that the compiler may replace by code of its own (`Arrays.copyOf`) count where they are
//! called, because inserted code in their bodies does not run then; where their bodies run, they take back what
//! they counted.
//!
//! # Whose it is
//!
//! The counter keeps a *current account* for each thread. A thread that has none asks the agent, which applies
//! the rule of samples to its stack: scopes and services first, then the closest frame. From then on:
//!
//! * Methods of classes that belong to an account stand in a bracket: at the entry the thread's account becomes
//!   theirs, at the return it becomes what it was. Code of no account and of libraries has no bracket, so it
//!   counts for its caller.
//! * A handler in such a method makes the account its own again, because the code that threw had no time to.
//! * A scope that is opened or closed, and another context class loader, make the thread ask again. While a
//!   scope decides, or a service without package accounts in the policy, brackets change nothing.
//!
//! # What this gets wrong
//!
//! * If code of no account catches an exception that passed through an account's method, what it allocates
//!   counts for that account until the next bracket.
//! * A library (`charge = "caller"`) counts for the account that called it, also where the rule of samples would
//!   name the service of the context class loader instead.
//!
//! # What it cannot see
//!
//! The allocations of the JVM itself, of native code and of hidden classes. Left alone, and told by reason: classes
//! older than Java 5, what the rewriter does not understand, methods that would become too long, and the JDK's
//! machinery of virtual threads, where a thread is between two threads and may call nothing.
//!
//! The module `contexts` inserts brackets of another kind, which count by the path of calls; with or without the
//! accounts. Profiles by site are to be a number more at each `made`.

#![forbid(unsafe_code)]

mod contexts;
pub mod oracle;
mod quiet;
mod sites;

use policy_rewrite::{
    Bracket, ClassFile, Code, Method, MethodEdit, RewriteError, Rewriter, Snippet,
};

pub use sites::COUNTER;
use sites::Site;

pub use contexts::{CALLS, CONTEXTS, Contexts, ELEMENTS};

/// The number of all classes that have none of their own.
pub const OTHER_CLASSES: i32 = 1;
/// The names of array classes that the counter knows without asking, by their numbers.
pub const KNOWN_CLASSES: [(i32, &[u8]); 9] = [
    (2, b"[Z"),
    (3, b"[B"),
    (4, b"[S"),
    (5, b"[C"),
    (6, b"[I"),
    (7, b"[F"),
    (8, b"[J"),
    (9, b"[D"),
    (10, b"[Ljava/lang/Object;"),
];
/// The first number of a class that the counter does not know without asking.
pub const FIRST_CLASS: i32 = 16;
/// The first major version whose code can push a class.
const FIRST_WITH_CLASS_CONSTANTS: u16 = 49;

/// The numbers and choices on which the code of one class depends beside its class file.
pub struct Plan<'p> {
    /// The number by which the counter finds the account of the class; `None`: it belongs to no account.
    pub account: Option<i32>,
    /// The number of a class that this class makes instances of, by its internal name (of an array, its descriptor);
    /// `None` if there are too many.
    pub number: &'p mut dyn FnMut(&[u8]) -> Option<i32>,
    /// Whether each allocation is counted to its account.
    pub accounts: bool,
    /// The numbers for contexts; `None`: the class has none.
    pub contexts: Option<Contexts<'p>>,
}

/// Why something of a class has no counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// The whole class but for contexts: it is older than Java 5.
    Old,
    /// The whole class: it is a part of the machinery of virtual threads.
    ThreadMachinery,
    /// A class that it instantiates has no number.
    NoNumber,
    /// A method, or the whole class.
    Refused(RewriteError),
}

/// The outcome for one class.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The new class file; `None` if nothing was inserted.
    pub bytes: Option<Vec<u8>>,
    /// The reasons why parts of the class have no counters, for each method once.
    pub left: Vec<Left>,
}

/// Inserts counters into a class.
pub fn rewrite(bytes: &[u8], plan: &mut Plan<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let class = match ClassFile::parse(bytes) {
        Ok(class) => class,
        Err(why) => {
            outcome.left.push(Left::Refused(why));
            return outcome;
        }
    };
    if is_ours(class.name()) {
        return outcome;
    }
    let machinery = is_thread_machinery(class.name());
    let is_old = class.version() < FIRST_WITH_CLASS_CONSTANTS;
    if plan.accounts && machinery {
        outcome.left.push(Left::ThreadMachinery);
    } else if plan.accounts && is_old {
        outcome.left.push(Left::Old);
    }
    let has_counters = plan.accounts && !machinery && !is_old && !is_scopes(class.name());
    let mut rewriter = Rewriter::new(&class);
    let has_bytecodes = (plan.contexts.as_ref()).is_some_and(|contexts| contexts.bytecodes);
    let mut quiet = match plan.contexts {
        Some(_) => quiet::methods(&class),
        None => Vec::new(),
    };
    if has_bytecodes {
        quiet = quiet::small(&class, &quiet);
    }
    for (at, method) in class.methods().iter().enumerate() {
        let mut edit = |has_bytecodes: bool| {
            let Some(code) = method.code()? else {
                return Ok(());
            };
            let mut edit = MethodEdit::default();
            sites::of_the_jdk(&class, method, &code, &mut edit)?;
            if let Some(contexts) = &mut plan.contexts
                && !quiet[at]
            {
                contexts.bytecodes = has_bytecodes;
                contexts::count(&class, method, &code, contexts, &mut edit)?;
            }
            if has_counters {
                count(&class, method, &code, plan, &mut edit, &mut outcome.left)?;
            }
            rewriter.edit(method, &edit)
        };
        let edited = match edit(has_bytecodes) {
            // It may have room for the rest.
            Err(RewriteError::MethodTooLong | RewriteError::Full(_)) if has_bytecodes => {
                edit(false)
            }
            edited => edited,
        };
        if let Err(why) = edited {
            outcome.left.push(Left::Refused(why));
        }
    }
    outcome.bytes = rewriter.finish();
    outcome
}

/// Counters behind the allocations of a method, and its bracket.
fn count(
    class: &ClassFile<'_>,
    method: &Method<'_>,
    code: &Code<'_>,
    plan: &mut Plan<'_>,
    edit: &mut MethodEdit,
    left: &mut Vec<Left>,
) -> Result<(), RewriteError> {
    let mut does_anything = false;
    for instruction in code.instructions() {
        does_anything |= sites::may_allocate(instruction.opcode);
        let Some(site) = Site::of(class.pool(), &instruction)? else {
            continue;
        };
        let snippet = match site {
            Site::Instance { constant, name } => match (plan.number)(name) {
                Some(number) => Snippet::new()
                    .push_own_constant(constant)
                    .push_int(number)
                    .invoke_static(COUNTER, "made", "(Ljava/lang/Class;I)V")?,
                None => {
                    if !left.contains(&Left::NoNumber) {
                        left.push(Left::NoNumber);
                    }
                    continue;
                }
            },
            Site::Array(descriptor) => Snippet::new()
                .duplicate()
                .invoke_static(COUNTER, "made", descriptor)?,
            Site::References { element } => {
                let number = (plan.number)(&sites::array_of_references(element));
                Snippet::new()
                    .duplicate()
                    .push_int(number.unwrap_or(OTHER_CLASSES))
                    .invoke_static(COUNTER, "made", "([Ljava/lang/Object;I)V")?
            }
            Site::Arrays { dimensions } => Snippet::new()
                .duplicate()
                .push_int(dimensions)
                .invoke_static(COUNTER, "madeNested", "([Ljava/lang/Object;I)V")?,
            Site::Object => Snippet::new().duplicate().invoke_static(
                COUNTER,
                "madeObject",
                "(Ljava/lang/Object;)V",
            )?,
        };
        edit.after(instruction.offset, snippet);
    }
    if sites::is_replaceable(class.name(), method) {
        for instruction in code.instructions().filter(|found| found.is_return()) {
            let take_back = Snippet::new().duplicate();
            let take_back =
                take_back.invoke_static(COUNTER, "takeBack", "(Ljava/lang/Object;)V")?;
            edit.before(instruction.offset, take_back);
        }
    }
    if let Some(account) = plan.account
        && does_anything
    {
        let enter = Snippet::new().push_int(account);
        edit.bracket(Bracket {
            enter: enter.invoke_static(COUNTER, "enter", "(I)I")?,
            leave: (COUNTER, "leave"),
            counts_instructions: false,
            again: None,
            escapes: false,
        });
        let again = Snippet::new().push_int(account);
        let again = again.invoke_static(COUNTER, "again", "(I)V")?;
        for handler in code.handler_offsets() {
            edit.before(handler, again.clone());
        }
    }
    Ok(())
}

/// The counter itself, and what the agent has in the boot loader.
fn is_ours(name: &[u8]) -> bool {
    name.starts_with(b"java/lang/Heapwarden")
        || name.starts_with(b"dev/heapwarden/agent/") && !is_scopes(name)
        || name.starts_with(b"dev/heapwarden/door/")
}

/// Where the Java API keeps the scopes of a thread.
fn is_scopes(name: &[u8]) -> bool {
    name == b"dev/heapwarden/agent/Cell"
}

/// Whether the class says which thread runs, and so needs code where no account is counted.
#[must_use]
pub fn follows_threads(name: &[u8]) -> bool {
    matches!(name, b"java/lang/Thread" | b"java/lang/VirtualThread")
}

/// Here the JVM takes one thread for another.
fn is_thread_machinery(name: &[u8]) -> bool {
    name == b"java/lang/VirtualThread" || name.starts_with(b"jdk/internal/vm/Continuation")
}

#[cfg(test)]
mod tests;
