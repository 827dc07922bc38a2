//! The live records: one of 32 bytes for each tracked object.
//!
//! # States of a place
//! ```text
//!            insert: fields, then head (Release)
//!  (g, free) ------------------------------------> (g, live)
//!      ^                                               |
//!      |   remove: exchange of the head (once)         |
//!      +---------------- g + 1 <-----------------------+
//! ```
//! The head holds generation and state in one word.
//!
//! # Rules
//! 1. Only the owner of an index (from the pool) writes the fields of a free place.
//! 2. A record is removed by one exchange of its head from (g, live). A thread that loses the
//!    exchange, or has another generation, changes nothing. So an object is refunded once, however
//!    often and late its death is reported.
//! 3. A reader takes the head, the fields, and the head again; if both heads are the
//!    same live one, the fields are that record's. Fields are stored with Release and
//!    loaded with Acquire: a reader that met a field of the *next* owner has thereby
//!    synchronised with it, and sees that the head has moved on.
//! 4. The index goes back to the pool after the exchange, so the next owner comes after
//!    it.

use super::chunks::Chunks;
use super::epoch::Epoch;
use super::pool::IndexPool;
use super::purse::PurseId;
use super::tag::ObjectTag;
use crate::sampling::IntervalId;
use crate::sync::{AtomicU64, Ordering};

#[cfg(not(loom))]
const RECORDS_PER_CHUNK: usize = 1024;
#[cfg(loom)]
const RECORDS_PER_CHUNK: usize = 2;

const SIZE_BITS: u32 = 40;

/// The largest size a record can hold: above it, sizes are cut to it *before* they are
/// charged. No Java object comes near (an array has fewer than 2^31 elements of at most
/// 8 bytes); the 24 bits left hold the allocation site.
pub const MAX_OBJECT_BYTES: u64 = (1 << SIZE_BITS) - 1;

/// Where an object was allocated, by the numbering of [`crate::sites`]. The ledger keeps it and does
/// not interpret it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SiteId(u32);

impl SiteId {
    /// How many bits an id has.
    pub const BITS: u32 = u64::BITS - SIZE_BITS;
    /// No stack was taken.
    pub const NONE: SiteId = SiteId(0);

    /// The id with this number; bits beyond [`SiteId::BITS`] are cut off.
    #[must_use]
    pub const fn new(number: u32) -> SiteId {
        SiteId(number & ((1 << Self::BITS) - 1))
    }

    /// The number; 0 if no stack was taken.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// A sampled object: who pays for it, its class and size, and when and where it was allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    /// The purse that is charged.
    pub payer: PurseId,
    /// The purse of the account whose code allocated.
    pub agent_account: PurseId,
    /// The purse of the account on whose behalf it allocated.
    pub principal: PurseId,
    /// The interval under which the sample was drawn.
    pub interval: IntervalId,
    /// The class, by the caller's numbering.
    pub class: u32,
    /// The epoch in which it was charged.
    pub birth: Epoch,
    /// Its size, at most [`MAX_OBJECT_BYTES`].
    pub size_bytes: u64,
    /// Where it was allocated.
    pub site: SiteId,
}

#[derive(Debug, Default)]
struct Place {
    head: AtomicU64,
    /// payer | agent account | principal | interval, 16 bits each, from the top.
    ids: AtomicU64,
    /// class | birth, 32 bits each.
    class_birth: AtomicU64,
    /// site | size, 24 and 40 bits.
    site_size: AtomicU64,
}

const LIVE: u64 = 1;

const fn head(generation: u32, state: u64) -> u64 {
    (generation as u64) << 1 | state
}

impl Place {
    fn store(&self, record: &Record) {
        let ids = u64::from(record.payer.get()) << 48
            | u64::from(record.agent_account.get()) << 32
            | u64::from(record.principal.get()) << 16
            | u64::from(record.interval.to_bits());
        let class_birth = u64::from(record.class) << 32 | u64::from(record.birth.get());
        self.ids.store(ids, Ordering::Release);
        self.class_birth.store(class_birth, Ordering::Release);
        let site_size =
            u64::from(record.site.get()) << SIZE_BITS | record.size_bytes & MAX_OBJECT_BYTES;
        self.site_size.store(site_size, Ordering::Release);
    }

    fn load(&self) -> Record {
        let ids = self.ids.load(Ordering::Acquire);
        let class_birth = self.class_birth.load(Ordering::Acquire);
        let site_size = self.site_size.load(Ordering::Acquire);
        Record {
            payer: PurseId::new((ids >> 48) as u16),
            agent_account: PurseId::new((ids >> 32) as u16),
            principal: PurseId::new((ids >> 16) as u16),
            interval: IntervalId::from_bits(ids as u16),
            class: (class_birth >> 32) as u32,
            birth: Epoch::new(class_birth as u32),
            size_bytes: site_size & MAX_OBJECT_BYTES,
            site: SiteId::new((site_size >> SIZE_BITS) as u32),
        }
    }

    /// Erases the site of whatever record is here. It is one step, so a record that is written
    /// meanwhile keeps its size, and at worst loses its site.
    fn erase_site(&self) {
        self.site_size.fetch_and(MAX_OBJECT_BYTES, Ordering::AcqRel);
    }
}

/// Why a record was not taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InsertError {
    /// Every place is taken.
    Full,
    /// The system has no memory for another chunk.
    NoMemory,
}

/// A bounded table of records.
#[derive(Debug)]
pub(crate) struct Slab {
    places: Chunks<Place, RECORDS_PER_CHUNK>,
    pool: IndexPool,
}

impl Slab {
    /// An empty slab of at most `capacity` records, at most 2^28.
    pub(crate) fn new(capacity: u32, stacks: usize) -> Self {
        let capacity = capacity.min(ObjectTag::INDICES);
        Self {
            places: Chunks::new(capacity),
            pool: IndexPool::new(capacity, stacks),
        }
    }

    /// Takes a record in and publishes it to [`Slab::read`] and [`Slab::remove`].
    pub(crate) fn insert(&self, hint: usize, record: &Record) -> Result<ObjectTag, InsertError> {
        let index = self.pool.pop(hint).ok_or(InsertError::Full)?;
        let Some(place) = self.places.get_or_grow(index) else {
            self.pool.push(index);
            return Err(InsertError::NoMemory);
        };
        // Rule 1: ours alone, and the pool has ordered us after the last owner.
        let generation = (place.head.load(Ordering::Relaxed) >> 1) as u32;
        place.store(record);
        place.head.store(head(generation, LIVE), Ordering::Release);
        ObjectTag::new(index, generation).ok_or(InsertError::Full)
    }

    /// Removes the record of `tag` and returns it; `None` if it was removed before.
    pub(crate) fn remove(&self, tag: ObjectTag) -> Option<Record> {
        let place = self.places.get(tag.index())?;
        let live = head(tag.generation(), LIVE);
        if place.head.load(Ordering::Acquire) != live {
            return None;
        }
        let record = place.load();
        let next = head(tag.generation().wrapping_add(1), 0);
        // Nobody was the owner but this record from the load to here, if it succeeds:
        // heads never come back (for 2^32 reuses of one place).
        place
            .head
            .compare_exchange(live, next, Ordering::AcqRel, Ordering::Relaxed)
            .ok()?;
        self.pool.push(tag.index());
        Some(record)
    }

    /// Whether the record of `tag` is still there. One load.
    pub(crate) fn is_live(&self, tag: ObjectTag) -> bool {
        let live = head(tag.generation(), LIVE);
        (self.places.get(tag.index()))
            .is_some_and(|place| place.head.load(Ordering::Acquire) == live)
    }

    /// The record at `index`, if there is a live one that stayed while it was read.
    pub(crate) fn read(&self, index: u32) -> Option<(ObjectTag, Record)> {
        let place = self.places.get(index)?;
        let before = place.head.load(Ordering::Acquire);
        if before & LIVE == 0 {
            return None;
        }
        let record = place.load();
        if place.head.load(Ordering::Relaxed) != before {
            return None;
        }
        Some((ObjectTag::new(index, (before >> 1) as u32)?, record))
    }

    /// Erases the site of the record at `index`, or of the one that has taken its place. Rule 3 holds:
    /// who loads the changed field synchronises with the thread that stored it.
    pub(crate) fn erase_site(&self, index: u32) {
        if let Some(place) = self.places.get(index) {
            place.erase_site();
        }
    }

    /// Every record ever inserted has an index below this.
    pub(crate) fn high_water(&self) -> u32 {
        self.pool.high_water()
    }

    /// Commits memory for `margin` places beyond those ever used. Background thread.
    pub(crate) fn grow_ahead(&self, margin: u32) -> bool {
        let upto = self.high_water().saturating_add(margin);
        self.pool.grow_ahead(upto) && self.places.grow_ahead(upto)
    }

    /// Native memory held, in bytes.
    pub(crate) fn committed_bytes(&self) -> u64 {
        self.places.committed_bytes() + self.pool.committed_bytes()
    }
}
