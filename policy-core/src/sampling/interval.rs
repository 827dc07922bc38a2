//! The sampling interval in force, and which interval a sample was drawn under.
//!
//! # The rule
//! The interval is global, but HotSpot reads it only when a thread draws its next
//! countdown: at the thread's creation and right after each of its events. So a sample
//! was drawn under the interval in force at that thread's *previous* event, and has to
//! be weighed with that one. Each thread therefore remembers, at every event, the
//! interval then in force ([`ThreadInterval`]) and weighs its next sample with it. No
//! settling time and no discarded window are needed: estimates stay unbiased through
//! any number of changes.
//!
//! # A thread never seen before
//! It has drawn once, at its creation, and uses the current interval. That is right for
//! threads born since the last change, which is nearly all of them: a thread older than
//! a change that had no sample since is wrong, once, for one sample, and the size of
//! that error is at most the difference of the two intervals. Nothing better is
//! knowable: JVM TI does not tell the drawn interval.
//!
//! The event is posted just after the next draw, so a change that falls into the
//! microsecond between a thread's draw and its reading of [`Intervals::current`] makes
//! one sample of that thread weigh with the wrong one of two neighbouring intervals.
//!
//! The sampler belongs to the *carrier* thread; a [`ThreadInterval`] must be kept per
//! native thread, never per virtual thread.
//!
//! # Drawn finer than kept
//! Beside many new threads ([`super::new_threads`]) the JVM draws at a part J of the interval I in force, and a sample is
//! kept with the probability `p(s, I) / p(s, J)`: then it weighs as one drawn under I. So each thread remembers the
//! interval that it *draws* under ([`Intervals::drawing`]), and its entry names the one that it *counts* under
//! ([`Intervals::counted_as`]). Whoever asks for the interval in force gets the latter.
//!
//! # The table
//! A record keeps the 2-byte name of its interval rather than the interval, so every
//! interval ever in force stays in an append-only table: reads are two loads, writers
//! take a lock that no reader knows of. The table is bounded; a value seen before is
//! found again and costs no new entry.

use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering};

use super::weight::MAX_INTERVAL_BYTES;
use super::widest::Widest;

/// HotSpot's interval before anybody sets one (`ThreadHeapSampler`): 512 KiB.
pub const HOTSPOT_DEFAULT_INTERVAL_BYTES: u64 = 512 * 1024;

/// How many distinct intervals one run can use.
#[cfg(not(loom))]
pub const MAX_INTERVALS: usize = 4096;
/// How many distinct intervals one run can use: few, because loom tracks each.
#[cfg(loom)]
pub const MAX_INTERVALS: usize = 4;

/// In an entry of the table: of thinned samples. No interval is as large.
const THINNED: u64 = 1 << 63;
/// In an entry of the table: the bits of the interval's bytes. The largest, of thinned arrays, are 2^30.
const BYTES: u64 = (1 << COUNTED_AS) - 1;
/// In an entry of the table: where the id, plus one, of the interval begins that its samples count under; 0: its own.
const COUNTED_AS: u32 = 40;
const COUNTED_BITS: u64 = (1 << 17) - 1;

/// The name of an interval that is or was in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IntervalId(u16);

impl IntervalId {
    /// The 16 bits that a record stores.
    #[must_use]
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// The inverse of [`IntervalId::to_bits`].
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
}

/// Why an interval was not put in force; the one before stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IntervalError {
    /// Larger than [`MAX_INTERVAL_BYTES`].
    #[error(
        "a sampling interval of {bytes} bytes is too large: use at most {MAX_INTERVAL_BYTES} bytes (64 MiB)"
    )]
    TooLarge {
        /// The number of bytes that was asked for.
        bytes: u64,
    },
    /// [`MAX_INTERVALS`] distinct values were used since the agent was loaded.
    #[error(
        "{MAX_INTERVALS} different sampling intervals were used since the start: go back to an earlier value or restart the JVM"
    )]
    TableFull,
}

/// Every interval that was ever in force, and the current one.
#[derive(Debug)]
pub struct Intervals {
    bytes: Box<[AtomicU64]>,
    current: AtomicU32,
    /// How many entries of `bytes` are in use; held while one is added.
    used: Mutex<usize>,
    widest: Widest,
}

impl Default for Intervals {
    fn default() -> Self {
        Self::new(HOTSPOT_DEFAULT_INTERVAL_BYTES)
    }
}

impl Intervals {
    /// A table whose first and current interval is `initial_bytes`: the one under which
    /// threads that exist already have drawn.
    #[must_use]
    pub fn new(initial_bytes: u64) -> Self {
        let bytes: Box<[AtomicU64]> = (0..MAX_INTERVALS).map(|_| AtomicU64::new(0)).collect();
        bytes[0].store(initial_bytes.min(MAX_INTERVAL_BYTES), Ordering::Relaxed);
        Self {
            bytes,
            current: AtomicU32::new(0),
            used: Mutex::new(1),
            widest: Widest::default(),
        }
    }

    /// The interval in force. Two loads; any thread.
    #[must_use]
    pub fn current(&self) -> IntervalId {
        self.counted_as(self.drawing())
    }

    /// The interval under which threads draw: the one in force, or a part of it. One load; any thread.
    #[must_use]
    pub fn drawing(&self) -> IntervalId {
        // Acquire: whoever sees the id also sees the entry it names.
        IntervalId(self.current.load(Ordering::Acquire) as u16)
    }

    /// The interval under which samples count that were drawn under `drawn`, once they are thinned to it. One load; any
    /// thread.
    #[must_use]
    pub fn counted_as(&self, drawn: IntervalId) -> IntervalId {
        match self.entry(drawn) >> COUNTED_AS & COUNTED_BITS {
            0 => drawn,
            other => IntervalId((other - 1) as u16),
        }
    }

    /// The mean bytes between samples under `id`; 0 is exact. One load; any thread.
    #[must_use]
    pub fn bytes(&self, id: IntervalId) -> u64 {
        self.entry(id) & BYTES
    }

    /// Whether samples under `id` were thinned. One load; any thread.
    #[must_use]
    pub fn is_thinned(&self, id: IntervalId) -> bool {
        self.entry(id) & THINNED != 0
    }

    /// The number of the latest change of the interval. One load; any thread.
    pub fn changes(&self) -> u32 {
        self.widest.changes()
    }

    /// The widest interval that was in force since the change of that number. Takes a lock: never on
    /// an allocating thread.
    pub fn widest_since(&self, change: u32) -> u64 {
        let current = || self.bytes(self.current());
        self.widest.since(change).unwrap_or_else(current)
    }

    fn entry(&self, id: IntervalId) -> u64 {
        let entry = self.bytes.get(usize::from(id.0));
        entry.map_or(0, |entry| entry.load(Ordering::Acquire))
    }

    /// Puts an interval in force from each thread's next draw on, and returns its id.
    ///
    /// Call it right after the JVM has accepted the same value. Takes a lock against
    /// other writers: never on an allocating thread.
    ///
    /// # Errors
    /// [`IntervalError`]; the interval in force stays what it was.
    pub fn set(&self, interval_bytes: u64) -> Result<IntervalId, IntervalError> {
        self.set_drawn(interval_bytes, interval_bytes)
    }

    /// Puts an interval in force for which threads draw under `drawn_bytes`, at most as much. As [`Intervals::set`],
    /// with the JVM having accepted `drawn_bytes`.
    ///
    /// # Errors
    /// [`IntervalError`]; the interval in force stays what it was.
    pub fn set_drawn(
        &self,
        interval_bytes: u64,
        drawn_bytes: u64,
    ) -> Result<IntervalId, IntervalError> {
        if interval_bytes > MAX_INTERVAL_BYTES {
            return Err(IntervalError::TooLarge {
                bytes: interval_bytes,
            });
        }
        let id = self.name(interval_bytes, 0)?;
        let drawing = match drawn_bytes < interval_bytes {
            true => self.name(drawn_bytes, (u64::from(id.0) + 1) << COUNTED_AS)?,
            false => id,
        };
        self.current.store(u32::from(drawing.0), Ordering::Release);
        self.widest.set(interval_bytes);
        Ok(id)
    }

    /// The id of an interval, of any width, for samples that are thinned to it. As
    /// [`Intervals::set`], but nothing comes into force.
    ///
    /// # Errors
    /// [`IntervalError::TableFull`].
    pub fn thinned(&self, interval_bytes: u64) -> Result<IntervalId, IntervalError> {
        self.name(interval_bytes, THINNED)
    }

    /// The id of an interval, of any width, for samples of which fewer are kept than were drawn. As
    /// [`Intervals::set`], but nothing comes into force.
    ///
    /// # Errors
    /// [`IntervalError::TableFull`].
    pub fn named(&self, interval_bytes: u64) -> Result<IntervalId, IntervalError> {
        self.name(interval_bytes, 0)
    }

    fn name(&self, interval_bytes: u64, mark: u64) -> Result<IntervalId, IntervalError> {
        // A writer that panicked left at worst an entry that nobody names.
        let mut used = self
            .used
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let entry = interval_bytes | mark;
        let known = self.bytes[..*used]
            .iter()
            .position(|place| place.load(Ordering::Relaxed) == entry);
        let index = match known {
            Some(index) => index,
            None if *used < self.bytes.len() => {
                self.bytes[*used].store(entry, Ordering::Release);
                *used += 1;
                *used - 1
            }
            None => return Err(IntervalError::TableFull),
        };
        Ok(IntervalId(index as u16))
    }
}

/// The state that one native thread keeps between its events: the interval under which its
/// next sample is being drawn. Keep it in a thread-local.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadInterval(Option<IntervalId>);

impl ThreadInterval {
    /// A thread that had no event yet.
    pub const UNSEEN: Self = Self(None);

    /// Whether the thread had no event yet.
    #[must_use]
    pub fn is_unseen(self) -> bool {
        self.0.is_none()
    }

    /// At an event: the interval to weigh this sample with; remembers `current`, the
    /// one in force now, for the next.
    #[must_use]
    pub fn weigh_with(&mut self, current: IntervalId) -> IntervalId {
        self.0.replace(current).unwrap_or(current)
    }
}
