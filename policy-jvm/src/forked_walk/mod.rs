//! Walks the whole heap along its references, in a forked child of the JVM or in place.
//!
//! `FollowReferences` runs on the VM thread while the world stands still. In its *first* callback this module forks.
//! The parent aborts the walk at once and goes on: its pause is that of one `fork`. The child is a frozen copy of
//! the heap, and finishes the walk alone.
//!
//! # Rules
//! 1. A child never returns into the VM's way out: it ends by `_exit` or by a signal. The walker returns into the
//!    VM's operation and never out of it.
//! 2. A child forgets signal handlers and blocks signals, dies with its parent, closes every descriptor but its
//!    pipe, cannot write to files (`RLIMIT_FSIZE`), leaves no core, has the lowest priority and the highest
//!    `oom_score_adj`, and is limited in processor time and address space. The walker, in which the VM's own code
//!    runs, can open nothing at all: so no error of the VM leaves a report or starts a program (`-XX:OnError`).
//! 3. What this module adds in a child allocates by `mmap` alone and takes no lock. HotSpot's walk itself calls
//!    `malloc`; so the fork is the C library's, which keeps that usable.
//! 4. The answer comes through the pipe, is bounded, and is checked word by word (`wire`).
//! 5. The parent reaps its child by its id. The JDK waits for its own children by their ids as well, so neither
//!    takes the other's. Where the host ignores `SIGCHLD` the kernel reaps.
//! 6. One walk at a time. Before it, the pause is predicted by a probe (`machine`) and compared with what the
//!    caller allows, and the memory that the child will need with what is free. While it lives, too little free
//!    memory ends it.
//! 7. Where a cgroup limits the JVM's processor time, the children take a quarter of it at the most (`pace`), and have
//!    the more time. What cannot be paced is the fork itself, twice, and the end of both processes: the kernel's work
//!    on the tables of pages.
//! 8. A heap that is mapped shared is not forked: the child would see the parent's changes.
//!
//! Where it cannot fork: `in_place`. `recorder` says how an object is recognised, `log` what is written down, `child`
//! how two processes do it.

mod answer;
mod border;
mod cgroup;
mod child;
mod error;
mod in_place;
mod log;
mod machine;
mod memory;
mod pace;
mod parent;
mod recorder;
mod request;
mod search;
mod slice;
mod system;
mod wire;

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jvmti_bindings::sys::{jni as sys, jvmti};

use crate::error::JvmTiError;
use crate::guard;
use crate::jvmti::{JvmTi, tools_call};
pub use answer::{Answer, Held, Path, PathRoot, Step, Walk};
use child::Setup;
pub use error::WalkError;
use error::checked;
pub use in_place::MAX_SLICE_ROOTS;
pub use log::{RootKind, Via};
use machine::{FreeMemory, Resident};
use pace::Share;
use parent::{ENDING, Parent};
use recorder::{Call, Failure, Recorder, Sizes};
use request::Classes;
pub use request::{Fault, KnownClass, Limits, MAX_HOLDERS, Question, Request, Targets};
use system::Pid;

/// The least room for the log, in bytes.
const LEAST_LOG_BYTES: u64 = 16 << 20;
/// The address space that the tables of a child may take besides the log and what is searched.
const TABLES_BYTES: u64 = 4 << 30;
/// How often a fork is tried, if a lock of the VM is held at its moment.
const FORKS: u32 = 4;

/// Set while a walk is under way.
static UNDER_WAY: AtomicBool = AtomicBool::new(false);

/// Taken while a walk is under way.
struct Turn;

impl Turn {
    fn take() -> Result<Turn, WalkError> {
        match UNDER_WAY.swap(true, Ordering::AcqRel) {
            true => Err(WalkError::Busy),
            false => Ok(Turn),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        UNDER_WAY.store(false, Ordering::Release);
    }
}

/// The data that the heap callback works with.
struct State<'a, 'w> {
    /// Where the walker or a walk in place writes to; null before the fork.
    recorder: *mut Recorder<'a>,
    setup: Option<&'w Setup<'a>>,
    shared: &'w [Range<u64>],
    /// Why there will be no fork, unless the heap is shared: that is why there can never be one.
    refused: Option<WalkError>,
    outcome: Outcome,
    /// The time of the fork itself, and its processor time.
    forked_in: Duration,
    fork_time: Duration,
}

/// The result of the first callback, which forks.
enum Outcome {
    NotCalled,
    Refused(WalkError),
    Forked(Pid),
}

/// The heap callback.
///
/// # Safety
/// For the VM alone, in a walk that was begun by this module: `user_data` is the address of its `State`, which
/// lives through the walk; the other arguments are as JVM TI says.
unsafe extern "system" fn heap_reference(
    kind: jvmti::jvmtiHeapReferenceKind,
    info: *const jvmti::jvmtiHeapReferenceInfo,
    class_tag: i64,
    referrer_class_tag: i64,
    size: i64,
    tag: *mut i64,
    referrer_tag: *mut i64,
    _length: i32,
    user_data: *mut c_void,
) -> i32 {
    let done = guard::contain(|| {
        // SAFETY: by this function's own contract; callbacks of a walk come one after the other.
        let state = unsafe { &mut *user_data.cast::<State<'_, '_>>() };
        let call = Call {
            kind,
            info,
            class_tag,
            referrer_class_tag,
            size,
            tag,
            referrer_tag,
        };
        state.called(&call)
    });
    done.unwrap_or(jvmti::JVMTI_VISIT_ABORT)
}

impl State<'_, '_> {
    fn called(&mut self, call: &Call) -> i32 {
        if self.recorder.is_null() && !self.first(call) {
            return jvmti::JVMTI_VISIT_ABORT;
        }
        // SAFETY: not null: set by the walker to its tables, or by a walk in place, which keeps them through the
        // walk. Nobody else uses them meanwhile.
        let recorder = unsafe { &mut *self.recorder };
        let answer = guard::contain(|| recorder.reference(call));
        answer.unwrap_or_else(|| recorder.fail(Failure::Panic))
    }

    /// Forks; true in the walker.
    fn first(&mut self, call: &Call) -> bool {
        let (Some(setup), Outcome::NotCalled) = (self.setup, &self.outcome) else {
            return false;
        };
        let Some(object) = call.object() else {
            self.outcome = Outcome::Refused(WalkError::UnknownLayout);
            return false;
        };
        if self
            .shared
            .iter()
            .any(|range| range.contains(&object.address))
        {
            self.outcome = Outcome::Refused(WalkError::SharedHeap);
            return false;
        }
        if let Some(why) = self.refused.take() {
            self.outcome = Outcome::Refused(why);
            return false;
        }
        let (began, time_before) = (Instant::now(), system::thread_time());
        match system::fork() {
            Ok(0) => {
                self.recorder = child::begin(setup);
                true
            }
            Ok(child) => {
                self.forked_in = began.elapsed();
                self.fork_time = system::thread_time().saturating_sub(time_before);
                self.outcome = Outcome::Forked(child);
                false
            }
            Err(error) => {
                self.outcome = Outcome::Refused(WalkError::ForkRefused(error));
                false
            }
        }
    }
}

/// A request with its table of classes.
struct Asked<'a> {
    classes: &'a Classes,
    targets: Targets<'a>,
    question: Question<'a>,
    limits: Limits,
}

impl JvmTi {
    /// Follows references from an object, or from the roots if it is null.
    fn follow(
        &self,
        from: sys::jobject,
        state: &mut State<'_, '_>,
    ) -> Result<Duration, JvmTiError> {
        let callbacks = jvmti::jvmtiHeapCallbacks {
            heap_reference_callback: Some(heap_reference),
            ..Default::default()
        };
        let began = Instant::now();
        tools_call!(
            self,
            FollowReferences,
            0,
            ptr::null_mut(),
            from,
            &callbacks,
            ptr::from_mut(state).cast_const().cast::<c_void>()
        )?;
        Ok(began.elapsed())
    }

    /// Walks the heap in a forked child. On a thread of the agent that is attached; returns when the child is
    /// done. `is_cancelled` is asked every now and then.
    ///
    /// # Errors
    /// See [`WalkError`].
    pub fn walk_in_child(
        &self,
        request: Request<'_>,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<Walk, WalkError> {
        let _turn = Turn::take()?;
        let classes = Classes::new(request.classes);
        let asked = Asked {
            classes: &classes,
            targets: request.targets,
            question: request.question,
            limits: request.limits,
        };
        let mut forks = 1;
        loop {
            match self.fork_once(&asked, &is_cancelled) {
                Err(WalkError::Blocked) if forks < FORKS => forks += 1,
                done => return done,
            }
        }
    }

    fn fork_once(
        &self,
        request: &Asked<'_>,
        is_cancelled: &impl Fn() -> bool,
    ) -> Result<Walk, WalkError> {
        let limits = request.limits;
        let resident = Resident::read().ok_or(WalkError::NoAnswer)?;
        let predicted = resident.predicted_pause();
        let memory = FreeMemory::find();
        let free_bytes = memory.bytes();
        let share = resident.quota.and_then(Share::of);
        let max_time = share.map_or(limits.max_time, |share| share.stretched(limits.max_time));
        let child_bytes = resident.child_bytes(limits.marks_in_heap);
        let needed_bytes = child_bytes + LEAST_LOG_BYTES + resident.bytes / 8;
        let refused = if predicted > limits.max_pause {
            Some(WalkError::PauseTooLong {
                predicted,
                allowed: limits.max_pause,
            })
        } else if free_bytes < needed_bytes {
            Some(WalkError::TooLittleMemory {
                needed_bytes,
                free_bytes,
            })
        } else {
            None
        };
        // Half of what is free: the search takes about as much again.
        let log_bytes =
            (free_bytes.saturating_sub(child_bytes) / 2).min(resident.bytes + LEAST_LOG_BYTES);
        let (read, write) = system::pipe().ok_or(WalkError::NoAnswer)?;
        let setup = Setup {
            classes: request.classes,
            targets: request.targets,
            question: request.question,
            sizes: Sizes {
                log_bytes: log_bytes as usize,
                targets: request.targets.most(),
            },
            pipe: write,
            parent: system::own_id(),
            max_time,
            processor_time: limits.max_time,
            share,
            virtual_bytes: resident.virtual_bytes + 3 * log_bytes + TABLES_BYTES,
            fault: limits.fault,
        };
        let shared = machine::shared_ranges();
        let mut state = State {
            recorder: ptr::null_mut(),
            setup: Some(&setup),
            shared: &shared,
            refused,
            outcome: Outcome::NotCalled,
            forked_in: Duration::ZERO,
            fork_time: Duration::ZERO,
        };
        let followed = self.follow(ptr::null_mut(), &mut state);
        system::close(write);
        let child = match state.outcome {
            Outcome::Forked(child) => child,
            Outcome::Refused(why) => {
                system::close(read);
                return Err(why);
            }
            Outcome::NotCalled => {
                system::close(read);
                return Err(followed.map_or_else(WalkError::JvmTi, |_| WalkError::NoAnswer));
            }
        };
        resident.forked_in(state.fork_time);
        let parent = Parent {
            child,
            pipe: read,
            most_bytes: 8 + wire::most_bytes(request.question, request.targets.most()),
            began: Instant::now(),
            // A little more than the child allows itself.
            max_time: max_time + ENDING,
            memory,
        };
        let bytes = parent.wait(is_cancelled)?;
        let message = wire::read(bytes.get(8..).unwrap_or_default(), request.question)
            .ok_or(WalkError::NoAnswer)?;
        checked(message.failure, message.detail, max_time)?;
        Ok(Walk {
            answer: message.answer,
            pause: followed.unwrap_or(state.forked_in),
            fork: state.forked_in,
            predicted_pause: predicted,
            most_predicted_pause: resident.most_predicted_pause(),
            processor_share: share.map(|share| share.of_processor),
            references: message.references,
            objects: message.objects,
            bytes: 0,
            is_cut_short: false,
        })
    }
}
