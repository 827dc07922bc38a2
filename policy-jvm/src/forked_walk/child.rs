//! The two processes of a forked walk.
//!
//! The parent forks the *watcher* in the first callback of its walk. The watcher isolates itself, makes the tables
//! in shared memory, and forks the *walker*: that one returns into the VM's operation and finishes the walk. Nothing
//! tells a callback that the walk is over, so the watcher looks at the walker: every object that was promised a
//! visit has begun, no callback comes, and its thread sleeps, waiting for threads that a child does not have. Then
//! the watcher ends the walker, searches the log, sends the answer and exits. If the walker crashes, the watcher
//! says so. If it sleeps in the middle of its work, it waits for a lock of the VM that some thread of the parent held
//! at the moment of the fork (HotSpot's walk takes one for the memory of its stack frames): the watcher says that,
//! and the parent forks again.
//!
//! Where a cgroup limits the JVM's processor time, the watcher also stops the walker and lets it go on, by the rule of
//! `pace`: the walker runs the VM's code, and nothing else can make that rest wherever it is.

use std::os::fd::RawFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::memory::{Sharing, Table};
use super::pace::{Pace, Rests, Share};
use super::recorder::{Failure, Recorder, Sizes};
use super::request::{Classes, Fault, Question, Targets};
use super::search;
use super::system::{self, Child, Pid};
use super::wire::{self, Writer};

/// How often the watcher looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How many looks in a row must find the walker asleep.
const SLEEPING_LOOKS: u32 = 3;
/// How many looks in a row find a walker asleep in the middle of its work before it counts as blocked: half a second.
const BLOCKED_LOOKS: u32 = 100;
/// Processor time, in ticks of 10 ms, that a walker may use without a callback after its last one: the VM then
/// waits in a loop for threads that are not there.
const IDLE_TICKS: u64 = 200;
/// The longest time without a look at a walker that is stopped.
const LONGEST_REST: Duration = Duration::from_millis(50);
/// Room for the list of mappings.
const MAPS_BYTES: usize = 4 << 20;

/// The request, the limits and the pipe of the children. Made before the fork.
pub(super) struct Setup<'a> {
    pub(super) classes: &'a Classes,
    pub(super) targets: Targets<'a>,
    pub(super) question: Question<'a>,
    pub(super) sizes: Sizes,
    pub(super) pipe: RawFd,
    pub(super) parent: Pid,
    pub(super) max_time: Duration,
    /// The most processor time of each process.
    pub(super) processor_time: Duration,
    /// The part of a processor that both may take, where that is limited.
    pub(super) share: Option<Share>,
    pub(super) virtual_bytes: u64,
    pub(super) fault: Option<Fault>,
}

impl Setup<'_> {
    fn dies_if(&self, fault: Fault) {
        if self.fault == Some(fault) {
            system::kill(system::own_id());
        }
    }
}

/// Runs in the process that was just forked. Returns in the walker alone, with the tables to write to.
pub(super) fn begin<'a>(setup: &Setup<'a>) -> &'a mut Recorder<'a> {
    setup.dies_if(Fault::Forked);
    system::forget_signals();
    if !system::die_with(setup.parent) {
        system::exit_now(1);
    }
    let Some(pipe) = system::close_all_but(setup.pipe) else {
        system::exit_now(1);
    };
    system::stand_back(setup.processor_time, setup.virtual_bytes);
    setup.dies_if(Fault::Isolated);
    if setup.fault == Some(Fault::NoRoom) {
        system::map_nothing_more();
    }
    let began = Instant::now();
    let Some(recorder) = shared_recorder(setup) else {
        // The walker's id.
        system::send(pipe, &0u64.to_le_bytes());
        fail(pipe, Failure::Tables, 0);
    };
    let watcher = system::own_id();
    match system::fork() {
        Ok(0) => {
            system::close(pipe);
            if !system::die_with(watcher) {
                system::exit_now(1);
            }
            if let Some(mut maps) = Table::<u8>::new(MAPS_BYTES, Sharing::Private) {
                system::unshare_counters(&mut maps);
            }
            system::open_nothing_more();
            setup.dies_if(Fault::Entered);
            match setup.fault {
                Some(Fault::Starved) => system::map_nothing_more(),
                Some(Fault::Spinning) => system::spin(),
                _ => {}
            }
            // SAFETY: the mapping holds the recorder, lives as long as the process, and the watcher does not
            // write to it.
            unsafe { &mut *recorder }
        }
        Ok(walker) => {
            system::send(pipe, &(walker as u64).to_le_bytes());
            watch(pipe, setup, recorder, walker, began)
        }
        Err(error) => {
            system::send(pipe, &0u64.to_le_bytes());
            fail(pipe, Failure::Fork, error as u64)
        }
    }
}

/// Makes the tables in memory that watcher and walker share.
fn shared_recorder<'a>(setup: &Setup<'a>) -> Option<*mut Recorder<'a>> {
    let room = Table::<u64>::new(size_of::<Recorder<'_>>().div_ceil(8), Sharing::Shared)?;
    let recorder = Recorder::new(setup.classes, setup.targets, setup.sizes, Sharing::Shared)?;
    // The mapping stays until the process ends.
    let room = std::mem::ManuallyDrop::new(room);
    let at = room.as_ptr().cast_mut().cast::<Recorder<'a>>();
    // SAFETY: the mapping is large enough, aligned to a page, writable, and used for nothing else.
    unsafe { at.write(recorder) };
    Some(at)
}

fn fail(pipe: RawFd, failure: Failure, detail: u64) -> ! {
    system::send(pipe, wire::bytes(&wire::failure(failure, detail)));
    system::exit_now(2);
}

/// The watcher's work.
fn watch(
    pipe: RawFd,
    setup: &Setup<'_>,
    recorder: *mut Recorder<'_>,
    walker: Pid,
    began: Instant,
) -> ! {
    let mut last_calls = 0;
    let mut sleeping = 0;
    let mut ticks_at_last_call = 0;
    let mut stops = Stops::new(setup.share, walker, began);
    loop {
        match system::look_at(walker) {
            Child::Runs => {}
            Child::Ended(status) => fail(pipe, Failure::Panic, system::signal_of(status) as u64),
            Child::Unknown => fail(pipe, Failure::Panic, 0),
        }
        // SAFETY: the recorder lives in a mapping of this process; these three fields are atomics, and nothing else
        // is read while the walker runs.
        let (calls, pending, failure) = unsafe {
            (
                (*recorder).calls.load(Ordering::Acquire),
                (*recorder).pending.load(Ordering::Acquire),
                (*recorder).failure.load(Ordering::Acquire),
            )
        };
        let give_up = |failure, detail| {
            system::end(walker);
            fail(pipe, failure, detail)
        };
        if failure != 0 {
            give_up(Failure::of(failure), 0);
        }
        if setup.fault == Some(Fault::Walking) && calls > 0 {
            system::kill(walker);
        }
        if system::is_unread(pipe) || began.elapsed() >= setup.max_time {
            give_up(Failure::Time, 0);
        }
        let (state, ticks) = system::state(walker).unwrap_or((b'?', 0));
        if calls != last_calls {
            last_calls = calls;
            ticks_at_last_call = ticks;
            sleeping = 0;
        } else {
            // One that waits for a processor or for a page does not sleep.
            sleeping = if state == b'S' { sleeping + 1 } else { 0 };
            let is_idle = ticks > ticks_at_last_call + IDLE_TICKS;
            if calls > 0 && pending == 0 && (sleeping >= SLEEPING_LOOKS || is_idle) {
                break;
            }
            if sleeping >= BLOCKED_LOOKS {
                give_up(Failure::Blocked, 0);
            }
        }
        stops.rest(state == b'S', calls > 0);
    }
    system::end(walker);
    setup.dies_if(Fault::Searching);
    // SAFETY: the walker is gone, so nobody else uses the mapping.
    let recorder = unsafe { &mut *recorder };
    answer(pipe, setup, recorder)
}

/// Stops the walker and lets it go on, where its processor time is limited.
struct Stops {
    walker: Pid,
    began: Instant,
    /// How long the walker runs before it is looked at again.
    run: Duration,
    pace: Option<Pace>,
    is_stopped: bool,
}

impl Stops {
    fn new(share: Option<Share>, walker: Pid, began: Instant) -> Stops {
        Stops {
            walker,
            began,
            run: share.map_or(LOOK_EVERY, |share| share.run),
            // The watcher's work until now counts as well: its clock has begun with it.
            pace: share.map(|share| Pace::new(share, Duration::ZERO, Duration::ZERO)),
            is_stopped: false,
        }
    }

    /// Lets time pass until the next look: while the walker runs, or rests. One that sleeps by itself is not stopped,
    /// so that it is seen to sleep. Nor is one that has not begun to walk: until it has asked the kernel to end it with
    /// the watcher, it would stay stopped for ever if the watcher was killed, and keep the pipe open.
    fn rest(&mut self, is_asleep: bool, has_begun: bool) {
        let rest = self.pace.as_mut().map_or(Duration::ZERO, |pace| {
            let used = system::thread_time() + system::process_time(self.walker);
            pace.rest(used, self.began.elapsed())
        });
        if !rest.is_zero() && has_begun {
            if !is_asleep && !self.is_stopped {
                system::stop(self.walker);
                self.is_stopped = true;
            }
            // The rest of a long one follows after a look at the pipe and the time.
            return system::sleep(rest.min(LONGEST_REST));
        }
        if self.is_stopped {
            system::go_on(self.walker);
            self.is_stopped = false;
        }
        system::sleep(if is_asleep { LOOK_EVERY } else { self.run });
    }
}

fn answer(pipe: RawFd, setup: &Setup<'_>, recorder: &mut Recorder<'_>) -> ! {
    let most_bytes = wire::most_bytes(setup.question, recorder.found_count);
    let roots = Table::new(recorder.root_count, Sharing::Private).map(|mut copy| {
        copy.copy_from_slice(&recorder.roots[..recorder.root_count]);
        copy
    });
    let writer = roots
        .as_ref()
        .and_then(|roots| Writer::new(most_bytes, roots));
    let Some(mut writer) = writer else {
        fail(pipe, Failure::Tables, 0);
    };
    let objects = u64::from(recorder.log.records);
    writer.begin(Failure::None, 0, recorder.references, objects);
    if search::search(
        recorder,
        setup.question,
        &mut writer,
        &Rests::new(setup.share),
    )
    .is_err()
    {
        fail(pipe, Failure::Tables, 0);
    }
    writer.end();
    let bytes = wire::bytes(writer.words());
    if setup.fault == Some(Fault::Answering) {
        system::send(pipe, &bytes[..bytes.len() / 2]);
        system::kill(system::own_id());
    }
    let is_sent = system::send(pipe, bytes);
    system::exit_now(if is_sent { 0 } else { 3 });
}
