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
//!    `oom_score_adj`, and is limited in processor time and address space.
//! 3. What this module adds in a child allocates by `mmap` alone and takes no lock. HotSpot's walk itself calls
//!    `malloc`; so the fork is the C library's, which keeps that usable.
//! 4. The answer comes through the pipe, is bounded, and is checked word by word (`wire`).
//! 5. The parent reaps its child by its id. The JDK waits for its own children by their ids as well, so neither
//!    takes the other's. Where the host ignores `SIGCHLD` the kernel reaps.
//! 6. One walk at a time. Before it, the pause is predicted from the resident memory and compared with what the
//!    caller allows, and the memory that the child will need with what is free. While it lives, too little free
//!    memory ends it.
//! 7. A heap that is mapped shared is not forked: the child would see the parent's changes.
//!
//! `recorder` says how an object is recognised, `log` what is written down, `child` how two processes do it.

mod child;
mod log;
mod machine;
mod memory;
mod recorder;
mod request;
mod search;
mod system;
mod wire;

use std::ffi::c_void;
use std::ops::Range;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jvmti;

use crate::error::JvmTiError;
use crate::guard;
use crate::jvmti::{JvmTi, tools_call};
use child::Setup;
pub use log::{RootKind, Via};
use machine::Resident;
use memory::Sharing;
use recorder::{Call, Failure, Recorder, Sizes};
use request::Classes;
pub use request::{KnownClass, Limits, MOST_HOLDERS, Question, Request, Targets};
use system::{Child, Pid};

/// The least room for the log, in bytes.
const LEAST_LOG_BYTES: u64 = 16 << 20;
/// The address space that the tables of a child may take besides the log and what is searched.
const TABLES_BYTES: u64 = 4 << 30;
/// How often the parent looks at its child's memory and time.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a child may take to end after it was asked to.
const ENDING: Duration = Duration::from_secs(2);

/// How often a fork is tried, if a lock of the VM is held at its moment.
const FORKS: u32 = 4;

/// Set while a walk is under way.
static UNDER_WAY: AtomicBool = AtomicBool::new(false);

/// A path from a root to a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The target's tag.
    pub target_tag: i64,
    /// The tag of the target's class; 0 for an unknown one.
    pub class_tag: i64,
    /// The root; `None` if the first step is a class whose static fields count as roots.
    pub root: Option<PathRoot>,
    /// The objects from the root to the target, without it.
    pub steps: Vec<Step>,
    /// There are more steps than are listed, before the first one.
    pub is_cut: bool,
}

/// The root of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathRoot {
    /// What it is.
    pub kind: RootKind,
    /// The id of the thread, of a local variable or reference.
    pub thread_id: i64,
    /// The method, of a local variable or reference; a number only.
    pub method: usize,
    /// The tag of the object that the root refers to.
    pub own_tag: i64,
    /// The frame, counted from the top.
    pub depth: u32,
    /// The local variable.
    pub slot: u32,
}

/// An object on a path, and how it refers to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The tag of its class; 0 for an unknown one.
    pub class_tag: i64,
    /// Its own tag; 0 for none.
    pub own_tag: i64,
    /// How it refers to the next object.
    pub via: Via,
    /// How many such objects follow each other.
    pub repeats: u32,
}

/// A target and its holders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The target's tag.
    pub tag: i64,
    /// A bit for each holder that reaches it.
    pub holders: u64,
    /// No holder reaches it, only stacks do.
    pub by_stacks_alone: bool,
}

/// What a walk found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To [`Question::Paths`].
    Paths(Vec<Path>),
    /// To [`Question::Holders`].
    Held(Vec<Held>),
}

/// A walk that was made.
#[derive(Debug)]
pub struct Walk {
    /// What was found.
    pub answer: Answer,
    /// How long the world stood still at the most.
    pub pause: Duration,
    /// How long that was predicted to be.
    pub predicted_pause: Duration,
    /// References that were looked at.
    pub references: u64,
    /// Objects with references.
    pub objects: u64,
}

/// Why a walk was not made, or gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WalkError {
    /// Another one is under way.
    #[error("another walk of the heap is under way")]
    Busy,
    /// The heap is mapped shared.
    #[error(
        "the heap is shared memory (ZGC, or a heap on a file), so a forked child would not see a frozen copy"
    )]
    SharedHeap,
    /// The pause would be too long.
    #[error("a fork would stop the JVM for about {} ms, and {} ms are allowed", .predicted.as_millis(), .allowed.as_millis())]
    PauseTooLong {
        /// The prediction.
        predicted: Duration,
        /// What is allowed.
        allowed: Duration,
    },
    /// There is too little memory.
    #[error("a forked child may need {} MiB of memory, and {} MiB are free", .needed_bytes >> 20, .free_bytes >> 20)]
    TooLittleMemory {
        /// The estimate.
        needed_bytes: u64,
        /// What is free.
        free_bytes: u64,
    },
    /// `fork` failed.
    #[error("the system does not let the JVM fork ({})", std::io::Error::from_raw_os_error(*.0))]
    ForkRefused(i32),
    /// The structure behind the tag's pointer is not the one that is known.
    #[error(
        "this build of the JVM keeps objects' tags in a way that is not known, so objects cannot be told apart"
    )]
    UnknownLayout,
    /// It took too long.
    #[error("the walk was not done within {} s", .0.as_secs_f64())]
    TooSlow(Duration),
    /// A lock of the VM was held at the moment of each fork.
    #[error(
        "threads of the JVM held one of its locks at the moment of the fork, {FORKS} times one after the other; try again"
    )]
    Blocked,
    /// Memory ran short while the child lived.
    #[error("memory ran short while the walk's child process lived, so the child was ended")]
    MemoryRanShort,
    /// The heap has more references than there is room for.
    #[error("the heap has more references or roots than the walk has room for")]
    TooLarge,
    /// The child ended without an answer.
    #[error("the walk's child process was ended by signal {0}")]
    Killed(i32),
    /// Something else.
    #[error("the walk's child process gave no answer")]
    NoAnswer,
    /// The caller has no more use for it.
    #[error("the walk was cancelled")]
    Cancelled,
    /// JVM TI refused.
    #[error("{0}")]
    JvmTi(#[from] JvmTiError),
}

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

/// What the callback works with.
struct State<'a, 'w> {
    /// Where the walker or a walk in place writes to; null before the fork.
    recorder: *mut Recorder<'a>,
    setup: Option<&'w Setup<'a>>,
    shared: &'w [Range<u64>],
    outcome: Outcome,
    /// What the fork itself took.
    forked_in: Duration,
}

/// What came of the first callback.
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
        let began = Instant::now();
        match system::fork() {
            Ok(0) => {
                self.recorder = child::begin(setup);
                true
            }
            Ok(child) => {
                self.forked_in = began.elapsed();
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
    fn follow(&self, state: &mut State<'_, '_>) -> Result<Duration, JvmTiError> {
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
            ptr::null_mut(),
            &callbacks,
            ptr::from_mut(state).cast_const().cast::<c_void>()
        )?;
        Ok(began.elapsed())
    }

    /// How long a forked walk would stop the world now, by prediction. On a thread of the agent.
    pub fn predicted_fork_pause(&self) -> Option<Duration> {
        Resident::read().map(|resident| resident.predicted_pause())
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
        if predicted > limits.max_pause {
            return Err(WalkError::PauseTooLong {
                predicted,
                allowed: limits.max_pause,
            });
        }
        let free_bytes = machine::free_bytes();
        let child_bytes = resident.child_bytes(limits.marks_in_heap);
        let needed_bytes = child_bytes + LEAST_LOG_BYTES + resident.bytes / 8;
        if free_bytes < needed_bytes {
            return Err(WalkError::TooLittleMemory {
                needed_bytes,
                free_bytes,
            });
        }
        // Half of what is free: the search takes about as much again.
        let log_bytes = ((free_bytes - child_bytes) / 2).min(resident.bytes + LEAST_LOG_BYTES);
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
            max_time: limits.max_time,
            virtual_bytes: resident.virtual_bytes + 3 * log_bytes + TABLES_BYTES,
        };
        let shared = machine::shared_ranges();
        let mut state = State {
            recorder: ptr::null_mut(),
            setup: Some(&setup),
            shared: &shared,
            outcome: Outcome::NotCalled,
            forked_in: Duration::ZERO,
        };
        let followed = self.follow(&mut state);
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
        resident.forked_in(state.forked_in);
        let parent = Parent {
            child,
            pipe: read,
            most_bytes: 8 + wire::most_bytes(request.question, request.targets.most()),
            began: Instant::now(),
            // A little more than the child allows itself.
            max_time: limits.max_time + ENDING,
        };
        let bytes = parent.wait(is_cancelled)?;
        let message = wire::read(bytes.get(8..).unwrap_or_default(), request.question)
            .ok_or(WalkError::NoAnswer)?;
        checked(message.failure, message.detail, limits.max_time)?;
        Ok(Walk {
            answer: message.answer,
            pause: followed.unwrap_or(state.forked_in),
            predicted_pause: predicted,
            references: message.references,
            objects: message.objects,
        })
    }

    /// Walks the heap in place: the world stands still meanwhile, for `max_pause` at the most. On a thread of the
    /// agent that is attached.
    ///
    /// # Errors
    /// See [`WalkError`]; [`WalkError::TooSlow`] if the walk was not done in time.
    pub fn walk_in_place(&self, request: Request<'_>) -> Result<Walk, WalkError> {
        let _turn = Turn::take()?;
        let max_pause = request.limits.max_pause;
        let resident = Resident::read().ok_or(WalkError::NoAnswer)?;
        let free_bytes = machine::free_bytes();
        let needed_bytes = LEAST_LOG_BYTES + resident.bytes / 8;
        if free_bytes < needed_bytes {
            return Err(WalkError::TooLittleMemory {
                needed_bytes,
                free_bytes,
            });
        }
        let classes = Classes::new(request.classes);
        let sizes = Sizes {
            log_bytes: (free_bytes / 2).min(resident.bytes + LEAST_LOG_BYTES) as usize,
            targets: request.targets.most(),
        };
        let recorder = Recorder::new(&classes, request.targets, sizes, Sharing::Private);
        let mut recorder = recorder.ok_or(WalkError::TooLarge)?;
        recorder.deadline = Some(Instant::now() + max_pause);
        let mut state = State {
            recorder: &raw mut recorder,
            setup: None,
            shared: &[],
            outcome: Outcome::NotCalled,
            forked_in: Duration::ZERO,
        };
        let pause = self.follow(&mut state)?;
        checked(recorder.failed(), 0, max_pause)?;
        let most_bytes = wire::most_bytes(request.question, recorder.found_count);
        let roots = recorder.roots[..recorder.root_count].to_vec();
        let mut writer = wire::Writer::new(most_bytes, &roots).ok_or(WalkError::TooLarge)?;
        let (references, objects) = (recorder.references, u64::from(recorder.log.records));
        writer.begin(Failure::None, 0, references, objects);
        search::search(&mut recorder, request.question, &mut writer)
            .map_err(|_| WalkError::TooLarge)?;
        writer.end();
        let message =
            wire::read(wire::bytes(writer.words()), request.question).ok_or(WalkError::NoAnswer)?;
        Ok(Walk {
            answer: message.answer,
            pause,
            predicted_pause: max_pause,
            references,
            objects,
        })
    }
}

fn checked(failure: Failure, detail: u64, max_time: Duration) -> Result<(), WalkError> {
    match failure {
        Failure::None => Ok(()),
        Failure::Layout => Err(WalkError::UnknownLayout),
        Failure::Pieces | Failure::Log | Failure::Roots | Failure::Tables => {
            Err(WalkError::TooLarge)
        }
        Failure::Panic if detail == 0 => Err(WalkError::NoAnswer),
        Failure::Panic => Err(WalkError::Killed(detail as i32)),
        Failure::Time => Err(WalkError::TooSlow(max_time)),
        Failure::Blocked => Err(WalkError::Blocked),
    }
}

/// The parent's side of a forked walk.
struct Parent {
    child: Pid,
    pipe: RawFd,
    most_bytes: usize,
    began: Instant,
    max_time: Duration,
}

impl Parent {
    /// Reads the answer to its end and reaps the child, or ends it.
    fn wait(&self, is_cancelled: &impl Fn() -> bool) -> Result<Vec<u8>, WalkError> {
        let mut answer = Vec::new();
        let mut piece = vec![0; 64 << 10];
        let failed = loop {
            match system::receive(self.pipe, &mut piece, LOOK_EVERY) {
                Some(0) => break None,
                Some(count) => answer.extend_from_slice(&piece[..count]),
                None => {}
            }
            if answer.len() > self.most_bytes {
                break Some(WalkError::NoAnswer);
            }
            if self.began.elapsed() > self.max_time {
                break Some(WalkError::TooSlow(self.max_time));
            }
            if machine::free_bytes() == 0 {
                break Some(WalkError::MemoryRanShort);
            }
            if is_cancelled() {
                break Some(WalkError::Cancelled);
            }
        };
        // The child sees that its reader is gone, ends the walker, and exits.
        system::close(self.pipe);
        let status = self.reap();
        self.reap_walker(&answer);
        match (failed, status) {
            (Some(why), _) => Err(why),
            (None, Child::Ended(status)) if system::signal_of(status) != 0 => {
                Err(WalkError::Killed(system::signal_of(status)))
            }
            _ => Ok(answer),
        }
    }

    /// Waits until the child has ended, and kills it if that takes too long.
    fn reap(&self) -> Child {
        let end = Instant::now() + ENDING;
        loop {
            match system::look_at(self.child) {
                Child::Runs if Instant::now() < end => system::sleep(Duration::from_millis(1)),
                Child::Runs => system::end(self.child),
                ended => return ended,
            }
        }
    }

    /// Where this process adopts orphans, as the first one of a container does, it also has to reap the walker of
    /// a watcher that was killed.
    fn reap_walker(&self, answer: &[u8]) {
        let Some(id) = answer.first_chunk::<8>().map(|id| u64::from_le_bytes(*id)) else {
            return;
        };
        let Some(walker) = Pid::try_from(id).ok().filter(|&id| id > 0) else {
            return;
        };
        let end = Instant::now() + ENDING;
        while system::look_at(walker) == Child::Runs && Instant::now() < end {
            system::sleep(Duration::from_millis(1));
        }
    }
}
