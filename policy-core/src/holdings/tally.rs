//! The pass: sums of records by payer and class, and by cohort of births within that.

use std::collections::HashMap;

use crate::ledger::{LiveRecord, PurseId, UNKNOWN_CLASS};

use super::times::EpochTimes;

/// The most rows; records beyond them count in rows of [`UNKNOWN_CLASS`], one a purse.
pub const MAX_ROWS: usize = 50_000;
/// Sizes are told apart by their power of two.
pub const SIZE_CLASSES: u32 = 40;

/// The amounts that a set of records stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sums {
    /// How many records: samples.
    pub records: u64,
    /// Bytes that they stand for.
    pub bytes: u64,
    /// Objects that they stand for, in units of [`crate::sampling::weight::OBJECT_UNIT`].
    pub objects: u64,
    /// The variance of `bytes` by sampling, in units of [`crate::sampling::weight::VARIANCE_UNIT_BYTES2`].
    pub variance: u64,
    /// The sum of the squares of the bytes that each record stands for: the variance of `bytes` if the
    /// allocations themselves come by chance. In bytes².
    pub squares_bytes2: f64,
}

impl Sums {
    fn add(&mut self, charge: &crate::sampling::Charge) {
        self.records += 1;
        self.bytes = self.bytes.wrapping_add(charge.bytes);
        self.objects = self.objects.wrapping_add(charge.objects);
        self.variance = self.variance.wrapping_add(charge.variance);
        self.squares_bytes2 += (charge.bytes as f64).powi(2);
    }
}

impl std::ops::AddAssign<&Sums> for Sums {
    fn add_assign(&mut self, other: &Sums) {
        self.records += other.records;
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.objects = self.objects.wrapping_add(other.objects);
        self.variance = self.variance.wrapping_add(other.variance);
        self.squares_bytes2 += other.squares_bytes2;
    }
}

/// The payer and the class of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowKey {
    /// The purse that is charged.
    pub payer: PurseId,
    /// The class, by the caller's numbering.
    pub class: u32,
}

/// The births between two marks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cohort {
    /// The index of the mark at its end; the number of marks for the youngest.
    pub cohort: u16,
    /// The sums of those that are live.
    pub live: Sums,
}

/// The records of one class and payer.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Payer and class.
    pub key: RowKey,
    /// All records, those included that no collection has decided on.
    pub charged: Sums,
    /// The records that have survived a collection.
    pub live: Sums,
    /// `live` by birth, in ascending order; cohorts of which nothing lives are left out.
    pub cohorts: Vec<Cohort>,
    /// `live` by size: the power of two below which the sizes are, and the sums. Ascending.
    pub sizes: Vec<(u8, Sums)>,
}

/// The rows of one pass, and the marks that their cohorts are about.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// The marks.
    pub times: EpochTimes,
    /// The rows, in no particular order.
    pub rows: Vec<Row>,
    /// How many records were folded into rows of [`UNKNOWN_CLASS`] because there were too many rows.
    pub folded_records: u64,
    places: HashMap<RowKey, usize>,
}

impl Tally {
    /// An empty tally by these marks.
    #[must_use]
    pub fn new(times: EpochTimes) -> Tally {
        Tally {
            times,
            ..Tally::default()
        }
    }

    /// Counts one record.
    pub fn add(&mut self, record: &LiveRecord) {
        let cohort = self.times.cohort(record.birth) as u16;
        let row = self.row(RowKey {
            payer: record.payer,
            class: record.class,
        });
        row.charged.add(&record.charge);
        if !record.survived {
            return;
        }
        row.live.add(&record.live);
        let at = row.cohorts.partition_point(|one| one.cohort < cohort);
        if row.cohorts.get(at).is_none_or(|one| one.cohort != cohort) {
            let live = Sums::default();
            row.cohorts.insert(at, Cohort { cohort, live });
        }
        row.cohorts[at].live.add(&record.live);
        let size = size_class(record.size_bytes);
        let at = row.sizes.partition_point(|one| one.0 < size);
        if row.sizes.get(at).is_none_or(|one| one.0 != size) {
            row.sizes.insert(at, (size, Sums::default()));
        }
        row.sizes[at].1.add(&record.live);
    }

    fn row(&mut self, mut key: RowKey) -> &mut Row {
        if self.rows.len() >= MAX_ROWS && !self.places.contains_key(&key) {
            key.class = UNKNOWN_CLASS;
            self.folded_records += 1;
        }
        let rows = &mut self.rows;
        let place = *self.places.entry(key).or_insert_with(|| {
            rows.push(Row {
                key,
                charged: Sums::default(),
                live: Sums::default(),
                cohorts: Vec::new(),
                sizes: Vec::new(),
            });
            rows.len() - 1
        });
        &mut self.rows[place]
    }

    /// Drops the rows that are not to be kept.
    pub fn retain(&mut self, keep: impl Fn(RowKey) -> bool) {
        self.rows.retain(|row| keep(row.key));
        let places = self.rows.iter().enumerate();
        self.places = places.map(|(place, row)| (row.key, place)).collect();
    }

    /// The row of a payer and class, if there is a record of it.
    #[must_use]
    pub fn get(&self, key: RowKey) -> Option<&Row> {
        self.places.get(&key).map(|&place| &self.rows[place])
    }

    /// Native bytes held, about.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let of_row = |row: &Row| {
            row.cohorts.capacity() * size_of::<Cohort>()
                + row.sizes.capacity() * size_of::<(u8, Sums)>()
        };
        let rows: usize = self.rows.iter().map(of_row).sum();
        (rows
            + self.rows.capacity() * size_of::<Row>()
            + self.places.capacity() * (size_of::<(RowKey, usize)>() + 1)) as u64
            + super::times::MEMORY_BYTES
    }
}

/// The power of two below or at which a size lies: 0 for 0 and 1, 4 for 9 to 16.
fn size_class(size_bytes: u64) -> u8 {
    let bits = u64::BITS - size_bytes.saturating_sub(1).leading_zeros();
    bits.min(SIZE_CLASSES) as u8
}
