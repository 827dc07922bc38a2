//! The rows of a reading by class: what samples say, and beside it what inserted code has counted.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::counted_since::classes::{Counted as CountedOfClass, OfClasses, UNKNOWN};
use crate::holdings::Tally;
use crate::holdings::histogram::Shape;
use crate::ledger::{ClassTotals, Ledger, PurseId};
use crate::live_by_ratio::{self, Estimated, LiveByRatio};
use crate::sampling::weight::OBJECT_UNIT;
use crate::sampling::{Charge, standard_error_bytes};
use crate::snapshot::{Class, OTHER};

use super::counted::{Counted, estimated};

/// The most classes listed per account; the rest is summed.
pub(super) const MAX_CLASSES: usize = 5_000;

/// The figures of one class in one purse, or the sum of several.
#[derive(Default)]
struct OfClass {
    live_bytes: u64,
    /// In units of 2^-16.
    live_objects: u64,
    live_variance: u64,
    charged_bytes: u64,
    /// In units of 2^-16.
    charged_objects: u64,
    allocated: ClassTotals,
    shape: Shape,
    /// Of `allocated`, since counters were put in.
    allocated_since: ClassTotals,
    /// Of what is live, what was allocated since.
    live_since: Charge,
    /// The count of it by inserted code.
    counted: Option<CountedOfClass>,
}

impl OfClass {
    fn add(&mut self, other: &OfClass) {
        self.live_bytes += other.live_bytes;
        self.live_objects += other.live_objects;
        self.live_variance = self.live_variance.wrapping_add(other.live_variance);
        self.charged_bytes += other.charged_bytes;
        self.charged_objects += other.charged_objects;
        self.allocated.bytes += other.allocated.bytes;
        self.allocated.objects += other.allocated.objects;
        self.shape.add(&other.shape);
        self.allocated_since.bytes += other.allocated_since.bytes;
        self.allocated_since.objects += other.allocated_since.objects;
        self.live_since += other.live_since;
        if let Some(counted) = &other.counted {
            self.counted.get_or_insert_default().add(counted);
        }
    }

    /// Live bytes by ratio, with samples that were at the most so far apart.
    fn live_by_ratio(&self, interval_bytes: f64) -> Option<LiveByRatio> {
        let parts = live_by_ratio::Since {
            counted_bytes: self.counted?.bytes_since() as f64,
            allocated: Estimated {
                bytes: self.allocated_since.bytes as f64,
                variance_bytes2: allocated_variance_bytes2(self.allocated_since, interval_bytes),
            },
            live: estimated(self.live_since.bytes, self.live_since.variance),
            live_before: estimated(
                self.live_bytes.saturating_sub(self.live_since.bytes),
                self.live_variance.saturating_sub(self.live_since.variance),
            ),
            interval_bytes,
        };
        parts.live_by_ratio()
    }

    fn published(self, class: String, interval_bytes: Option<f64>) -> Class {
        // The charged objects are a part of the allocated ones; the two are not read at the same instant.
        let charged_objects = whole_objects(self.charged_objects);
        Class {
            class,
            exact: self.counted.as_ref().map(CountedOfClass::published),
            live_by_ratio: interval_bytes.and_then(|interval| self.live_by_ratio(interval)),
            live_bytes: self.live_bytes,
            live_objects: whole_objects(self.live_objects),
            allocated_bytes_total: self.allocated.bytes,
            live_standard_error_bytes: standard_error_bytes(self.live_variance),
            allocated_objects_total: self.allocated.objects,
            freed_bytes_total: self.allocated.bytes.saturating_sub(self.charged_bytes),
            freed_objects_total: self.allocated.objects.saturating_sub(charged_objects),
            shape: self.shape,
            ..Class::default()
        }
    }
}

pub(super) fn whole_objects(units: u64) -> u64 {
    units.saturating_add(OBJECT_UNIT / 2) / OBJECT_UNIT
}

fn classes_of_purses(
    tally: &Tally,
    allocated: HashMap<PurseId, Vec<(u32, ClassTotals)>>,
) -> HashMap<PurseId, HashMap<u32, OfClass>> {
    let mut of_purses: HashMap<PurseId, HashMap<u32, OfClass>> = HashMap::new();
    for row in &tally.rows {
        let of_class = OfClass {
            live_bytes: row.live.bytes,
            live_objects: row.live.objects,
            live_variance: row.live.variance,
            charged_bytes: row.charged.bytes,
            charged_objects: row.charged.objects,
            shape: Shape::of(row, &tally.times, tally.times.noted_ms()),
            ..OfClass::default()
        };
        let of_purse = of_purses.entry(row.key.payer).or_default();
        of_purse.entry(row.key.class).or_default().add(&of_class);
    }
    for (purse, classes) in allocated {
        let of_purse = of_purses.entry(purse).or_default();
        for (class, totals) in classes {
            of_purse.entry(class).or_default().allocated = totals;
        }
    }
    of_purses
}

/// The variance of what samples say was allocated of a class, by the mean size of its objects: a table of classes
/// keeps no variances, because each costs memory in every JVM. A sample of an object of `s` bytes, taken with the
/// probability `p = 1 − e^(−s / interval)`, stands for `s / p`, and has the variance `(s / p) (s / p − s)`. Of objects of
/// several sizes the mean is the smaller ones', so that the variance is rather too large.
fn allocated_variance_bytes2(allocated: ClassTotals, interval_bytes: f64) -> f64 {
    if allocated.objects == 0 || interval_bytes <= 0.0 {
        return 0.0;
    }
    let bytes = allocated.bytes as f64;
    let size = bytes / allocated.objects as f64;
    let probability = -(-size / interval_bytes).exp_m1();
    bytes * (size / probability - size)
}

/// The figures of classes, by the purse that pays.
pub(super) struct OfPurses {
    /// By number.
    classes: HashMap<PurseId, HashMap<u32, OfClass>>,
    /// The exact counts of classes, by name.
    counted: HashMap<PurseId, HashMap<Arc<str>, CountedOfClass>>,
    /// The widest interval since counters were put in; `None` if they are not.
    interval_bytes: Option<f64>,
    /// By what each stated error is multiplied.
    error_factor: f64,
}

impl OfPurses {
    pub(super) fn of(ledger: &Ledger, counted: &mut Counted) -> OfPurses {
        let allocated = std::mem::take(&mut counted.allocated);
        let mut classes = classes_of_purses(&counted.tally, allocated);
        let OfClasses {
            counted: by_name,
            sampled,
        } = std::mem::take(&mut counted.of_classes);
        for (purse, sampled) in sampled {
            let of_purse = classes.entry(purse).or_default();
            for (class, since) in sampled {
                of_purse.entry(class).or_default().allocated_since = since;
            }
        }
        let live = (counted.since.iter()).flat_map(|since| &since.live_of_classes);
        for (&(purse, class), live) in live {
            let of_class = classes.entry(purse).or_default().entry(class);
            of_class.or_default().live_since = *live;
        }
        let interval = (counted.since.as_ref()).map(|since| since.base.interval_bytes(ledger));
        OfPurses {
            classes,
            counted: by_name,
            interval_bytes: interval.map(|bytes| bytes as f64),
            error_factor: ledger.error_factor(),
        }
    }

    /// The rows of an account with these purses.
    pub(super) fn take(
        &mut self,
        purses: &[PurseId],
        names: &HashMap<u32, Arc<str>>,
    ) -> Vec<Class> {
        // Two loaders may define classes of one name; they are published as one.
        let mut by_name: BTreeMap<Arc<str>, OfClass> = BTreeMap::new();
        let classes = purses.iter().filter_map(|purse| self.classes.remove(purse));
        for (id, of_class) in classes.flatten() {
            let name = names.get(&id).cloned().unwrap_or_else(|| UNKNOWN.into());
            by_name.entry(name).or_default().add(&of_class);
        }
        let counted = purses.iter().filter_map(|purse| self.counted.remove(purse));
        for (name, counted) in counted.flatten() {
            let of_class = by_name.entry(name).or_default();
            of_class.counted.get_or_insert_default().add(&counted);
        }
        let mut classes = published(by_name, self.interval_bytes);
        for class in &mut classes {
            let stated = |error: f64| (error * self.error_factor).ceil();
            class.live_standard_error_bytes = stated(class.live_standard_error_bytes);
            if let Some(by_ratio) = &mut class.live_by_ratio {
                by_ratio.standard_error_bytes = stated(by_ratio.standard_error_bytes);
            }
        }
        classes
    }
}

fn published(by_name: BTreeMap<Arc<str>, OfClass>, interval_bytes: Option<f64>) -> Vec<Class> {
    let mut classes: Vec<(Arc<str>, OfClass)> = by_name.into_iter().collect();
    classes.sort_by(|(a_name, a), (b_name, b)| {
        (b.live_bytes, b.allocated.bytes, a_name).cmp(&(a.live_bytes, a.allocated.bytes, b_name))
    });
    let mut rest = OfClass::default();
    let beyond = classes.split_off(classes.len().min(MAX_CLASSES));
    for (_, of_class) in &beyond {
        rest.add(of_class);
    }
    let mut published: Vec<Class> = (classes.into_iter())
        .map(|(name, of_class)| of_class.published(name.to_string(), interval_bytes))
        .collect();
    if !beyond.is_empty() {
        published.push(rest.published(OTHER.to_owned(), None));
    }
    published
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variance_of_a_class_is_that_of_its_samples() {
        let of = |bytes, objects| allocated_variance_bytes2(ClassTotals { bytes, objects }, 1000.0);
        // Small objects: each sample stands for an interval. Of large ones nothing is unknown.
        assert!((of(1_000_000, 100_000) / 1e9 - 0.995).abs() < 0.001);
        assert!(of(1_000_000, 50) < 100.0);
        assert_eq!(of(0, 0), 0.0);
        // Half of the bytes in small objects, half in large ones: rather too large.
        let mixed = of(1_000_000, 50_025);
        assert!(mixed > of(500_000, 50_000) + of(500_000, 25));
    }
}
