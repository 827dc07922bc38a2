//! Epochs, and the proof that what is left of an older one is *live*.
//!
//! # The claim
//! Charged bytes contain garbage that no collection has found yet. We call a record
//! live once its object has survived a collection. Its birth epoch tells: each pause of
//! the collector that ends (`GarbageCollectionFinish`) starts a new epoch, and each
//! record carries the epoch in which it was charged. A *boundary* c is confirmed when
//! it is known that every object born in an epoch <= c has been through a collection
//! and the frees of that collection have been taken in. Then
//!
//! ```text
//! live = the charges of the records with birth <= boundary
//! ```
//!
//! # Why not simply "the pause ended"
//! Concurrent collectors post several pauses a cycle. The end of ZGC's mark-start pause
//! has freed nothing; generational ZGC ends many young cycles without freeing one
//! tagged object; G1's remark frees what a young pause did not. After any such event,
//! "everything older has survived" would be false.
//!
//! # Canaries
//! After each such event an agent thread allocates a tiny object, tags it with the
//! epoch it reads before it drops it, and drops it. The death of a canary of epoch c
//! proves a collection that covers every epoch <= c:
//!
//! 1. A collection decides on a set of objects at the pause S that takes its snapshot
//!    (the whole collection, where it stops the world). It frees the canary, so the
//!    canary had been dropped before S. The epoch c was read before the drop, so c is at
//!    most the epoch in force when S began.
//! 2. S is a pause, and its end begins the next epoch *inside* the pause. An allocation
//!    after S is therefore charged in an epoch above c: its callback can only read the
//!    epoch after it has allocated.
//! 3. So an object born in an epoch <= c was allocated before S. A callback may still be
//!    running while S stops the world (it is native code) and read the old epoch then,
//!    or be interrupted by S before it has tagged its object. The object existed
//!    before S all the same, and is held by the callback: it does survive.
//! 4. Hence the collection that freed the canary decided on every object born <= c, and
//!    each that it found dead is reported dead, before or after the canary's own report
//!    (one batch, no order). When that batch is in, what is still charged from epochs
//!    <= c has survived it. The kernel tells when it is: the thread that reports deaths
//!    sleeps; where it does not tell, a quiet time has to do ([`QuietWindow`]).
//!
//! The death of any sampled object proves as much about its birth epoch as that of a canary, and is
//! used as such. Canaries are for epochs without sampled garbage. If the enforcer is too late to
//! allocate one before the next pause, sampled garbage replaces it.
//!
//! The rule requires only that the collector takes its snapshot in a pause that it reports. What a
//! collection *covers* is a separate question: a young collection frees young canaries, and proves that
//! the rest has survived a young collection.
//!
//! # What proves that an account is over
//! Garbage in old memory survives young collections. So the boundary can prove that an account is
//! within its limit, but not that it is over. [`Epochs::covered`] is a boundary of its own, reached when a collection is
//! known to have decided on old memory too. Two things prove one:
//!
//! * Where the collector frees no object but at collections of the whole heap (ZGC and
//!   Shenandoah, both without generations), every death does, by the argument above. The
//!   enforcer says so once it knows the collector ([`Epochs::deaths_cover_all`]).
//! * Elsewhere the death of an *old canary* of epoch e: an object, tagged and dropped
//!   after e was read, that no collection of less than all old memory can free. Not merely
//!   an old object: G1's mixed pauses free what has died in the few old regions that they
//!   evacuate. Two kinds will do, whatever their age:
//!   - a class that nobody refers to. Each young or mixed collection takes all class loader
//!     data for roots; classes are unloaded by marking all, or by a full collection.
//!   - on G1, two humongous arrays of references that refer to each other. They lie in
//!     regions of their own outside young memory, which no pause evacuates. A young pause
//!     may reclaim such a region early (an array of bytes in every release, in those after
//!     25 one of references too), but only when nothing outside it refers to it: each of
//!     the two speaks for the other until marking finds both dead.
//!
//! The death of an old canary of epoch e is then covered by the steps above, with S the
//! pause in which marking, or the full collection, took its snapshot: 1. the canary was
//! dropped before S, so e began before S; 2. and 3. what was born in an epoch <= e was
//! allocated before S; 4. of that, what was dead in young memory at S is freed by S itself
//! (on G1 a marking begins with a young collection), and what was dead in old memory by the
//! end of that marking. S may come long after the drop, never before it.
//!
//! With generational ZGC an object that was *allocated* after e was read, tagged with e and
//! dropped is an old canary too, and the only one. There a young collection frees no tagged
//! object: it keeps and ages them, dead or not. One of old memory frees what had become old
//! before its S, and leaves young garbage alone (only where it is asked for does a young
//! collection that promotes all come first). So S does not free what was dead in young memory
//! and step 4 fails for a class, which may be old when it is dropped. It fails for sampled
//! objects as well: their epoch is read after they were allocated, and a callback that was
//! set aside for some collections in between charges an old object in a new epoch. (Seen on a
//! busy machine: a service that churned was refused for 130 MB of young garbage.) For the
//! fresh canary it holds: what was born in an epoch <= e was allocated before the pause that
//! ended e, thus in the same young cycle as the canary or an earlier one; young collections
//! promote by age; the canary had become old before S, so all of that had too.
//!
//! It does *not* prove that all garbage is gone: a dead old object keeps the young ones it refers to alive through S,
//! and G1 takes what survives S in young memory, with all that it refers to, for live in this cycle. Such garbage goes
//! in the next. And an object that the program lets go after S stays charged until then.
//!
//! Nothing here blocks; [`Epochs::gc_finished`] is one atomic add, fit for a callback
//! inside the pause.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The number of pauses seen when something happened. Saturates after 2^32 - 1 pauses
/// (13 years at ten a second); from then on, charged counts as live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(u32);

impl Epoch {
    /// The epoch of this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// The current epoch and the two boundaries, each reached and confirmed: of any collection,
/// and of those that cover old memory too.
#[derive(Debug, Default)]
pub struct Epochs {
    pauses: AtomicU64,
    any: Boundary,
    old: Boundary,
    /// Epoch + 1 up to which large arrays are decided on; 0 before the first.
    large: AtomicU64,
    /// When the boundary moved to where it was last seen: epoch + 1, and milliseconds. The enforcer
    /// writes, `seen` last.
    seen: AtomicU64,
    moved_ms: AtomicU64,
    /// 1 where every death is reported by a collection of the whole heap.
    deaths_cover_all: AtomicU32,
}

/// How far proofs reach.
#[derive(Debug, Default)]
struct Boundary {
    /// Epoch + 1 of the youngest witness that died; 0 before the first.
    reached: AtomicU64,
    /// Epoch + 1 of what is confirmed; 0 before the first.
    confirmed: AtomicU64,
}

const fn stored(epoch: Epoch) -> u64 {
    epoch.0 as u64 + 1
}

const fn loaded(stored: u64) -> Option<Epoch> {
    match stored.checked_sub(1) {
        Some(epoch) => Some(Epoch(epoch as u32)),
        None => None,
    }
}

impl Boundary {
    fn reach(&self, epoch: Epoch) {
        if self.reached.load(Ordering::Relaxed) < stored(epoch) {
            self.reached.fetch_max(stored(epoch), Ordering::AcqRel);
        }
    }

    fn pending(&self) -> Option<Epoch> {
        let reached = self.reached.load(Ordering::Acquire);
        (reached > self.confirmed.load(Ordering::Acquire))
            .then(|| loaded(reached))
            .flatten()
    }

    fn confirm(&self, epoch: Epoch) -> Epoch {
        let before = self.confirmed.fetch_max(stored(epoch), Ordering::AcqRel);
        loaded(before).map_or(epoch, |before| before.max(epoch))
    }

    fn confirmed(&self) -> Option<Epoch> {
        loaded(self.confirmed.load(Ordering::Acquire))
    }
}

impl Epochs {
    /// A pause has ended: gives the epoch that begins. One atomic add; inside
    /// `GarbageCollectionFinish`.
    pub fn gc_finished(&self) -> Epoch {
        let pauses = self.pauses.fetch_add(1, Ordering::Release).wrapping_add(1);
        Epoch(u32::try_from(pauses).unwrap_or(u32::MAX))
    }

    /// The epoch now. One load; any thread.
    #[must_use]
    pub fn current(&self) -> Epoch {
        let pauses = self.pauses.load(Ordering::Acquire);
        Epoch(u32::try_from(pauses).unwrap_or(u32::MAX))
    }

    /// A canary of `epoch`, or any other object born in it, was freed. Two loads, and an
    /// atomic or two at the first of an epoch; inside `ObjectFree`.
    pub fn died(&self, epoch: Epoch) {
        self.any.reach(epoch);
        if self.deaths_cover_all.load(Ordering::Relaxed) != 0 {
            self.old.reach(epoch);
        }
    }

    /// An old canary of `epoch` was freed. As [`Epochs::died`].
    pub fn old_died(&self, epoch: Epoch) {
        self.any.reach(epoch);
        self.old.reach(epoch);
    }

    /// From now on every death counts as that of an old canary: the collector frees tagged
    /// objects only when it has decided on the whole heap.
    pub fn deaths_cover_all(&self) {
        self.deaths_cover_all.store(1, Ordering::Relaxed);
    }

    /// The boundary that can be confirmed once frees are quiet; `None` when there is no
    /// newer one than the confirmed.
    #[must_use]
    pub fn pending(&self) -> Option<Epoch> {
        self.any.pending()
    }

    /// The frees of the collection that reached `epoch` (as [`Epochs::pending`] gave it)
    /// have been taken in: makes it the boundary, unless a later one is confirmed
    /// already, and returns the boundary.
    pub fn confirm(&self, epoch: Epoch) -> Epoch {
        self.any.confirm(epoch)
    }

    /// The confirmed boundary: records born at or before it are live. `None` until the
    /// first collection is confirmed: then nothing is known to be live.
    #[must_use]
    pub fn boundary(&self) -> Option<Epoch> {
        self.any.confirmed()
    }

    /// Notes the time if the boundary has moved, by the caller's clock. The enforcer, after each
    /// confirmation.
    pub fn note_time(&self, now_ms: u64) {
        let boundary = self.boundary().map_or(0, stored);
        if boundary != self.seen.load(Ordering::Relaxed) {
            self.moved_ms.store(now_ms, Ordering::Release);
            self.seen.store(boundary, Ordering::Release);
        }
    }

    /// When the boundary moved last, as [`Epochs::note_time`] was told; `None` before the first
    /// confirmation. Any thread.
    #[must_use]
    pub fn confirmed_ms(&self) -> Option<u64> {
        let is_known = self.seen.load(Ordering::Acquire) > 0;
        is_known.then(|| self.moved_ms.load(Ordering::Acquire))
    }

    /// As [`Epochs::pending`], for [`Epochs::covered`].
    #[must_use]
    pub fn pending_cover(&self) -> Option<Epoch> {
        self.old.pending()
    }

    /// As [`Epochs::confirm`], for [`Epochs::covered`]: *all* frees of that collection are in.
    pub fn confirm_cover(&self, epoch: Epoch) -> Epoch {
        self.any.confirm(epoch);
        self.old.confirm(epoch)
    }

    /// The newest epoch such that everything born at or before it has been through a
    /// collection that covers old memory too, whose frees are taken in. What is still
    /// charged from there was reachable then. `None` before the first proof.
    #[must_use]
    pub fn covered(&self) -> Option<Epoch> {
        self.old.confirmed()
    }
}

impl Epochs {
    /// A collection has decided on all large arrays that were born up to `epoch` (see
    /// `sampling::thinning`).
    pub fn decide_large(&self, epoch: Epoch) {
        self.large.fetch_max(stored(epoch), Ordering::AcqRel);
    }

    /// Whether [`Epochs::decide_large`] was told of all that [`Epochs::large_decided`] gives: a
    /// collection that covers old memory decides from the moment that it is confirmed.
    #[must_use]
    pub fn is_large_settled(&self) -> bool {
        loaded(self.large.load(Ordering::Acquire)) >= self.covered()
    }

    /// The newest epoch such that a collection that frees large arrays has decided on all that were
    /// born at or before it: one known by their deaths, or one that covers old memory.
    #[must_use]
    pub fn large_decided(&self) -> Option<Epoch> {
        loaded(self.large.load(Ordering::Acquire)).max(self.covered())
    }
}

/// The answer of [`QuietWindow::observe`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quiet {
    /// Look again.
    Wait,
    /// No free came for the quiet time: the batch is in.
    Settled,
    /// Frees came without a stop until the longest wait was over.
    TimedOut,
}

/// Waits until the frees of a collection have been taken in: pure, fed by its caller
/// with a clock and the running count of frees.
///
/// Frees come in a batch within milliseconds of a collection (`ObjectFree` is posted by
/// one thread), so a short quiet spell is the end of the batch, or a busy machine's pause in
/// the middle of it: for an estimate, not for a verdict. The longest wait bounds
/// it where collections follow one another without a gap; a confirmation then counts
/// what is in, and what is still to come keeps the estimate high for a moment, never
/// low.
#[derive(Debug, Clone, Copy)]
pub struct QuietWindow {
    quiet_ms: u64,
    longest_ms: u64,
    started_ms: u64,
    changed_ms: u64,
    frees: u64,
}

impl QuietWindow {
    /// Frees are settled after 3 ms without one.
    pub const DEFAULT_QUIET_MS: u64 = 3;
    /// Never wait longer than 100 ms.
    pub const DEFAULT_LONGEST_MS: u64 = 100;

    /// A window that opens now, with the usual bounds.
    #[must_use]
    pub const fn new(now_ms: u64, frees_total: u64) -> Self {
        Self::with_bounds(
            now_ms,
            frees_total,
            Self::DEFAULT_QUIET_MS,
            Self::DEFAULT_LONGEST_MS,
        )
    }

    /// A window with bounds of its own, in milliseconds.
    #[must_use]
    pub const fn with_bounds(
        now_ms: u64,
        frees_total: u64,
        quiet_ms: u64,
        longest_ms: u64,
    ) -> Self {
        Self {
            quiet_ms,
            longest_ms,
            started_ms: now_ms,
            changed_ms: now_ms,
            frees: frees_total,
        }
    }

    /// Feeds one look at a monotonic clock and at the count of frees.
    pub fn observe(&mut self, now_ms: u64, frees_total: u64) -> Quiet {
        if frees_total != self.frees {
            self.frees = frees_total;
            self.changed_ms = now_ms;
        }
        if now_ms.saturating_sub(self.changed_ms) >= self.quiet_ms {
            Quiet::Settled
        } else if now_ms.saturating_sub(self.started_ms) >= self.longest_ms {
            Quiet::TimedOut
        } else {
            Quiet::Wait
        }
    }
}
