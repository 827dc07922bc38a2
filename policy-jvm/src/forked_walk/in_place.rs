//! In place: the world stands still while the heap is walked, all of it in one stop, or a slice of it.
//!
//! The findings of one stop are worth nothing to the next: objects move in between, and a tag for each object costs
//! more than the walk. A walk in place can therefore be cut by *roots* only: first what an account's own classes and
//! threads reach, without what belongs to others (`slice`), then the whole heap, if that is still needed and its pause
//! is accepted. A chain that a slice finds is true; that nobody holds an object only a whole walk shows.
//!
//! Measured on heaps of 300 MB: of ten services in one JVM, each service's slice took 63 to 134 ms where the whole took
//! 594 to 1254 ms (JDK 21 with G1, JDK 25 with ZGC); of one service, 991 to 1176 ms of 1076 to 1448 ms. So a slice helps
//! if many services share the JVM and the account holds its leak itself. It does not help a program that is alone, nor
//! if a holder outside is looked for: then it would come on top of the stop for the rest. Who calls decides.
//!
//! # Rules
//! 1. Each stop has a longest pause, which the caller accepts. The clock is looked at every 4096 references, and a walk
//!    that is late is given up with what it has found until then: an answer to [`Question::Paths`] is cut short, for
//!    [`Question::Holders`], which is about all of the heap, there is none.
//! 2. Giving up is cheap where the VM marks what it has visited in a table of its own (JDK-8283710, from JDK 19 on): the
//!    table is dropped. Before, it marks in the objects' headers, and has to look at every object of the heap to
//!    restore them, also after a walk that was given up. Measured with 260 MB in use and 10 ms accepted, on a busy
//!    machine: JDK 25 was stopped for 10 to 29 ms, JDK 17, once a walk had begun to mark, for 49 to 608 ms. Slices are
//!    therefore for JDK 21 and later, and on JDK 17 the pause may be longer than what was accepted.
//! 3. The VM begins a slice at one object. That is an array of the agent's own with the class objects and threads, so
//!    the slice is one stop. Nothing refers to the array once the stop is over: it must be no root of a walk to come.
//!    To begin at the VM's own roots and to turn back at what belongs to others gives the same chains, but it reports
//!    every stack and every class of the boot loader, and takes the optimised frames of *all* threads apart
//!    (`EscapeBarrier`).
//! 4. No tag is set or taken off.

use std::ptr;
use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni as sys;

use super::border::Slice;
use super::error::checked;
use super::machine::{FreeMemory, Resident};
use super::memory::Sharing;
use super::pace::Rests;
use super::recorder::{Failure, Recorder, Sizes};
use super::request::{Classes, Question, Request};
use super::{LEAST_LOG_BYTES, Outcome, State, Turn, Walk, WalkError, search, wire};
use crate::env::{Jni, call};
use crate::jvmti::JvmTi;
use crate::kinds::{Anything, Array};
use crate::refs::{Handle, Local};

/// The class objects and threads that a slice begins at, at the most.
pub const MAX_SLICE_ROOTS: usize = 1 << 16;

impl JvmTi {
    /// Walks the heap in place: the world stands still meanwhile, for `max_pause` at the most. On a thread of the
    /// agent that is attached.
    ///
    /// # Errors
    /// See [`WalkError`]; [`WalkError::TooSlow`] if the holders were asked for and the walk was not done in time.
    pub fn walk_in_place(&self, request: Request<'_>) -> Result<Walk, WalkError> {
        let _turn = Turn::take()?;
        let classes = Classes::new(request.classes.clone());
        self.in_one_stop(&request, &classes, ptr::null_mut(), None)
    }

    /// Walks a slice in place: what the static fields of the classes with a holder, and the threads with one, reach,
    /// without what belongs to somebody else. `owned` has the holder of each thread and class loader, sorted by tag;
    /// 0 is everybody else. The world stands still for `max_pause` at the most. On a thread of the agent that is
    /// attached.
    ///
    /// # Errors
    /// See [`WalkError`]; [`WalkError::TooLarge`] if there are more than [`MAX_SLICE_ROOTS`].
    pub fn walk_slice(
        &self,
        jni: &Jni,
        request: Request<'_>,
        owned: &[(i64, u8)],
    ) -> Result<Walk, WalkError> {
        let _turn = Turn::take()?;
        let classes = Classes::new(request.classes.clone());
        let start = self
            .array_of_roots(jni, &classes, owned)
            .ok_or(WalkError::TooLarge)?;
        let slice = Slice::new(owned);
        self.in_one_stop(&request, &classes, start.raw().0, Some(slice))
    }

    /// An array of the class objects and threads that have a holder.
    fn array_of_roots<'j>(
        &self,
        jni: &'j Jni,
        classes: &Classes,
        owned: &[(i64, u8)],
    ) -> Option<Local<'j, Array<Anything>>> {
        let of_class = |tag: i64| classes.holder(classes.number(tag)) > 0;
        let of_thread = |tag: i64| {
            let found = owned.binary_search_by_key(&tag, |owned| owned.0);
            tag != 0 && found.is_ok_and(|index| owned[index].1 > 0)
        };
        let most = classes.owned_count() + owned.iter().filter(|owned| owned.1 > 0).count();
        let length = i32::try_from(most)
            .ok()
            .filter(|_| most <= MAX_SLICE_ROOTS)?;
        let object = jni.boot_class("java/lang/Object")?;
        let array = call!(jni, NewObjectArray, length, object.raw().0, ptr::null_mut());
        jni.clear_exception();
        // SAFETY: NewObjectArray returns a fresh local reference to an array of objects, or null.
        let array = unsafe { Local::<Array<Anything>>::adopt(jni, array) }?;
        let mut next = 0;
        let mut put = |object: sys::jobject| {
            // A class that was loaded since the classes were counted has no number, so there is room for all.
            if next < length {
                call!(jni, SetObjectArrayElement, array.raw().0, next, object);
                jni.clear_exception();
                next += 1;
            }
        };
        self.each_loaded_class(jni, |_, class| {
            if self.tag(class).is_ok_and(of_class) {
                put(class.raw().0);
            }
        });
        self.each_thread(jni, |_, thread| {
            if self.tag(thread).is_ok_and(of_thread) {
                put(thread.raw().0);
            }
        });
        Some(array)
    }

    fn in_one_stop(
        &self,
        request: &Request<'_>,
        classes: &Classes,
        from: sys::jobject,
        slice: Option<Slice<'_>>,
    ) -> Result<Walk, WalkError> {
        let max_pause = request.limits.max_pause;
        let resident = Resident::read().ok_or(WalkError::NoAnswer)?;
        let free_bytes = FreeMemory::find().bytes();
        let needed_bytes = LEAST_LOG_BYTES + resident.bytes / 8;
        if free_bytes < needed_bytes {
            return Err(WalkError::TooLittleMemory {
                needed_bytes,
                free_bytes,
            });
        }
        let sizes = Sizes {
            log_bytes: (free_bytes / 2).min(resident.bytes + LEAST_LOG_BYTES) as usize,
            targets: request.targets.most(),
        };
        let recorder = Recorder::new(classes, request.targets, sizes, Sharing::Private);
        let mut recorder = recorder.ok_or(WalkError::TooLarge)?;
        recorder.slice = slice;
        recorder.deadline = Some(Instant::now() + max_pause);
        let mut state = State {
            recorder: &raw mut recorder,
            setup: None,
            shared: &[],
            refused: None,
            outcome: Outcome::NotCalled,
            forked_in: Duration::ZERO,
            fork_time: Duration::ZERO,
        };
        let pause = self.follow(from, &mut state)?;
        let is_late = recorder.failed() == Failure::Time;
        let is_cut_short = is_late && matches!(request.question, Question::Paths);
        if !is_cut_short {
            checked(recorder.failed(), 0, max_pause)?;
        }
        let most_bytes = wire::most_bytes(request.question, recorder.found_count);
        let roots = recorder.roots[..recorder.root_count].to_vec();
        let mut writer = wire::Writer::new(most_bytes, &roots).ok_or(WalkError::TooLarge)?;
        let (references, objects) = (recorder.references, u64::from(recorder.log.records));
        writer.begin(Failure::None, 0, references, objects);
        search::search(
            &mut recorder,
            request.question,
            &mut writer,
            &Rests::new(None),
        )
        .map_err(|_| WalkError::TooLarge)?;
        writer.end();
        let message =
            wire::read(wire::bytes(writer.words()), request.question).ok_or(WalkError::NoAnswer)?;
        Ok(Walk {
            answer: message.answer,
            pause,
            fork: Duration::ZERO,
            predicted_pause: max_pause,
            most_predicted_pause: max_pause,
            processor_share: None,
            references,
            objects,
            bytes: recorder.slice.as_ref().map_or(0, |slice| slice.bytes),
            is_cut_short,
        })
    }
}
