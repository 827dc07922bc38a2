//! Estimates from a few of the sampled objects: what the drawn ones stand for, and how far off that may be.
//!
//! An answer about single objects looks at some of the records only. Which ones is decided by *priority sampling*
//! (Duffield, Lund and Thorup, "Priority sampling for estimation of arbitrary subset sums", 2007): a record that
//! stands for w bytes gets the priority w/u, with u uniform in (0, 1], and those with the highest priorities are
//! drawn. With the highest priority that was *not* drawn, the threshold t, each drawn record stands for max(w, t)
//! bytes. Any sum of these is unbiased, and t·max(0, t − w), summed over the drawn ones, is an unbiased estimate of
//! the variance that the draw adds.
//!
//! The draws are nested: if only the first k records in the order of their priorities could be looked at, the
//! priority of the next one is the threshold. So an answer that was cut short is as sound as a whole one, with a
//! larger error.
//!
//! The sample that the records are is one more draw before this one. Its variance is the sum over all records of
//! their own variances, estimated from the drawn ones, each counted w/max(w, t) as often.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::sampling::Charge;
use crate::sampling::weight::{OBJECT_UNIT, VARIANCE_UNIT_BYTES2};

/// A record with its priority; ordered so that the least priority is the greatest.
#[derive(Debug)]
struct Prioritised<T> {
    priority: f64,
    item: T,
}

impl<T> PartialEq for Prioritised<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Prioritised<T> {}

impl<T> PartialOrd for Prioritised<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Prioritised<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.priority.total_cmp(&self.priority)
    }
}

/// A draw that goes on.
#[derive(Debug)]
pub struct Draw<T> {
    most: usize,
    /// The highest priorities, one more than are drawn.
    highest: BinaryHeap<Prioritised<T>>,
}

impl<T> Draw<T> {
    /// A draw of at most this many.
    #[must_use]
    pub fn new(most: usize) -> Draw<T> {
        Draw {
            most,
            highest: BinaryHeap::new(),
        }
    }

    /// Offers one that stands for `weight_bytes`; `chance` is uniform in [0, 1).
    pub fn offer(&mut self, item: T, weight_bytes: u64, chance: f64) {
        let priority = weight_bytes as f64 / (1.0 - chance);
        if self.highest.len() > self.most {
            match self.highest.peek() {
                Some(least) if least.priority >= priority => return,
                _ => self.highest.pop(),
            };
        }
        self.highest.push(Prioritised { priority, item });
    }

    /// Ends the draw.
    #[must_use]
    pub fn drawn(self) -> Drawn<T> {
        let mut items = self.highest.into_sorted_vec();
        let beyond = items.split_off(self.most.min(items.len()));
        Drawn {
            next: beyond.first().map(|one| one.priority),
            items,
        }
    }
}

/// The items that were drawn, the highest priority first.
#[derive(Debug)]
pub struct Drawn<T> {
    items: Vec<Prioritised<T>>,
    next: Option<f64>,
}

impl<T> Drawn<T> {
    /// Returns the items that were drawn, in the order in which they are to be looked at.
    pub fn items(&self) -> impl ExactSizeIterator<Item = &T> {
        self.items.iter().map(|one| &one.item)
    }

    /// The threshold if only the first `looked_at` are used: 0 if these are all that there are.
    #[must_use]
    pub fn threshold(&self, looked_at: usize) -> Threshold {
        let next = self.items.get(looked_at).map(|one| one.priority);
        Threshold(next.or(self.next).unwrap_or(0.0))
    }
}

/// The bytes that a drawn record stands for at least.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold(f64);

/// The sum of what drawn records stand for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// Records.
    pub samples: u64,
    objects: f64,
    bytes: f64,
    variance: f64,
}

impl Estimate {
    /// Adds a drawn record of an object of `size_bytes`: `each_bytes` are counted for each object that it stands
    /// for, which may be its size, or what hangs on it, or what of that is wasted.
    pub fn add(&mut self, threshold: Threshold, charge: &Charge, size_bytes: u64, each_bytes: f64) {
        let (weight, threshold) = (charge.bytes as f64, threshold.0);
        if weight <= 0.0 || size_bytes == 0 {
            return;
        }
        let stands_for = weight.max(threshold);
        let often = stands_for / weight;
        let share = each_bytes / size_bytes as f64;
        self.samples += 1;
        self.objects += charge.objects as f64 / OBJECT_UNIT as f64 * often;
        self.bytes += stands_for * share;
        let of_sample = charge.variance as f64 * VARIANCE_UNIT_BYTES2 as f64 * often;
        let of_draw = threshold * (threshold - weight).max(0.0);
        self.variance += (of_sample + of_draw) * share * share;
    }

    /// Objects.
    #[must_use]
    pub fn objects(&self) -> u64 {
        self.objects.round() as u64
    }

    /// Bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.round() as u64
    }

    /// The standard error of the bytes, rounded up.
    #[must_use]
    pub fn error_bytes(&self) -> u64 {
        self.variance.sqrt().ceil() as u64
    }
}

/// How many slots a container needs for its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slots {
    /// One for each.
    One,
    /// A power of two of which three quarters may be used.
    Hashed,
}

impl Slots {
    /// How many of `capacity` slots a container made for these elements would not have.
    #[must_use]
    pub fn spare(self, elements: u64, capacity: u64) -> u64 {
        let needed = match self {
            Slots::One => elements,
            Slots::Hashed if elements == 0 => 0,
            Slots::Hashed => elements
                .saturating_mul(4)
                .div_ceil(3)
                .checked_next_power_of_two()
                .unwrap_or(u64::MAX),
        };
        capacity.saturating_sub(needed)
    }
}

#[cfg(test)]
mod tests;
