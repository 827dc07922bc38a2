//! For each pressed JVM alone, with unlimited room elsewhere: the smallest set of services that
//! relieves it, and of several such sets the one that needs the fewest bytes. If all services are not
//! enough, the set of all.
//!
//! The size of the set follows from the services that free most, counted until the excess is gone.
//! A depth-first search tries the sets of that size. It drops a branch if the remaining services that
//! free most cannot reach the excess, or if a Lagrangian bound is not below the best set found: with `r` services still to take and `e` bytes still to free, for every
//! `l >= 0` they need at least `l*e` and the `r` smallest of `needs - l*frees`.

use super::fleet::Cost;
use super::problem::{Item, Problem};

/// The covers of all sources.
pub(super) struct Covers {
    /// Items of all covers.
    pub(super) items: Vec<usize>,
    /// No plan costs less.
    pub(super) bound: Cost,
}

/// The cover of each source, with at most `steps` of work.
pub(super) fn all(problem: &Problem, steps: u64) -> Covers {
    let mut covers = Covers {
        items: Vec::new(),
        bound: Cost::default(),
    };
    let share = steps / problem.sources.len().max(1) as u64;
    for source in &problem.sources {
        let items = &problem.items[source.items.clone()];
        let freed: u64 = items.iter().map(|item| item.frees).sum();
        covers.bound.unrelieved_bytes += source.excess.saturating_sub(freed);
        let (chosen, needed) = if freed <= source.excess {
            let needed = items.iter().map(|item| item.needs).sum();
            ((0..items.len()).collect(), needed)
        } else {
            Cover::of(items, source.excess, share)
        };
        covers.bound.moves += chosen.len() as u64;
        covers.bound.needed_bytes += needed;
        covers
            .items
            .extend(chosen.into_iter().map(|item| source.items.start + item));
    }
    covers
}

/// The search for one source.
struct Cover<'a> {
    items: &'a [Item],
    /// The bytes that the first `i` items free, by `i`.
    freed: Vec<u64>,
    bounds: Vec<Lagrangian>,
    chosen: Vec<usize>,
    best: Vec<usize>,
    best_needed: u64,
    steps: u64,
    exhausted: bool,
}

impl<'a> Cover<'a> {
    /// The set, and what no set that small needs less than.
    fn of(items: &'a [Item], excess: u64, steps: u64) -> (Vec<usize>, u64) {
        let mut freed = vec![0];
        for item in items {
            freed.push(freed[freed.len() - 1] + item.frees);
        }
        let count = freed.partition_point(|&sum| sum < excess);
        let best: Vec<usize> = (0..count).collect();
        let best_needed = items[..count].iter().map(|item| item.needs).sum();

        let multiplier = Lagrangian::best_multiplier(items, excess, count);
        let floor = Lagrangian::value(items, excess, count, multiplier);
        let floor = u64::try_from(floor).unwrap_or(0);
        // The tables of the bounds are that large; nobody's JVM has so many services.
        if (items.len() * count) as u64 > steps {
            return (best, floor);
        }
        let mut search = Cover {
            items,
            freed,
            bounds: vec![
                Lagrangian::of(items, count, multiplier),
                Lagrangian::of(items, count, 0),
            ],
            chosen: Vec::with_capacity(count),
            best,
            best_needed,
            steps,
            exhausted: false,
        };
        search.descend(0, count, excess, 0);
        let needed = if search.exhausted {
            floor
        } else {
            search.best_needed
        };
        (search.best, needed)
    }

    /// Takes `count` of the items from `first` on, that free at least `excess`.
    fn descend(&mut self, first: usize, count: usize, excess: u64, needed: u64) {
        if self.steps == 0 {
            self.exhausted = true;
            return;
        }
        self.steps -= 1;
        if count == 0 {
            // The check below has seen that the last one was enough.
            if needed < self.best_needed {
                self.best_needed = needed;
                self.best.clone_from(&self.chosen);
            }
            return;
        }
        if first + count > self.items.len()
            || self.freed[first + count] - self.freed[first] < excess
            || self
                .bounds
                .iter()
                .any(|bound| bound.reaches(first, count, excess, needed, self.best_needed))
        {
            return;
        }
        let item = &self.items[first];
        let left = excess.saturating_sub(item.frees);
        if count > 1 || left == 0 {
            self.chosen.push(first);
            self.descend(first + 1, count - 1, left, needed + item.needs);
            self.chosen.pop();
        }
        self.descend(first + 1, count, excess, needed);
    }
}

/// Multipliers are counted in parts of this.
const PARTS: i128 = 1024;

/// The bound of the module for one multiplier.
struct Lagrangian {
    multiplier: i128,
    /// For each first item: the sums of the 0, 1, 2… smallest reduced needs from there on.
    smallest: Vec<Vec<i128>>,
}

impl Lagrangian {
    fn of(items: &[Item], count: usize, multiplier: i128) -> Lagrangian {
        let mut smallest = Vec::with_capacity(items.len() + 1);
        let mut sorted: Vec<i128> = Vec::with_capacity(items.len());
        smallest.push(vec![0]);
        for item in items.iter().rev() {
            let reduced = reduced(item, multiplier);
            let place = sorted.partition_point(|&other| other < reduced);
            sorted.insert(place, reduced);
            sorted.truncate(count);
            let mut sums = Vec::with_capacity(sorted.len() + 1);
            let mut sum = 0;
            sums.push(sum);
            for value in &sorted {
                sum += value;
                sums.push(sum);
            }
            smallest.push(sums);
        }
        smallest.reverse();
        Lagrangian {
            multiplier,
            smallest,
        }
    }

    /// Whether nothing below `best` can come of this.
    fn reaches(&self, first: usize, count: usize, excess: u64, needed: u64, best: u64) -> bool {
        let least = self.multiplier * i128::from(excess) + self.smallest[first][count];
        i128::from(needed) * PARTS + least > (i128::from(best) - 1) * PARTS
    }

    /// Returns a lower bound on the bytes that any `count` of the items need if they free `excess`.
    fn value(items: &[Item], excess: u64, count: usize, multiplier: i128) -> i128 {
        let mut all: Vec<i128> = items.iter().map(|item| reduced(item, multiplier)).collect();
        all.sort_unstable();
        let sum: i128 = all[..count].iter().sum();
        let scaled = multiplier * i128::from(excess) + sum;
        scaled.div_euclid(PARTS) + i128::from(scaled.rem_euclid(PARTS) > 0)
    }

    /// The multiplier with the highest bound: the bound is concave in it, so thirds are cut off.
    fn best_multiplier(items: &[Item], excess: u64, count: usize) -> i128 {
        let value = |multiplier| Lagrangian::value(items, excess, count, multiplier);
        let (mut low, mut high) = (0, 64 * PARTS);
        while high - low > 2 {
            let third = (high - low) / 3;
            if value(low + third) < value(high - third) {
                low += third;
            } else {
                high -= third;
            }
        }
        (low..=high).max_by_key(|&one| value(one)).unwrap_or(0)
    }
}

fn reduced(item: &Item, multiplier: i128) -> i128 {
    i128::from(item.needs) * PARTS - multiplier * i128::from(item.frees)
}
