//! Which objects are looked at, and looking at them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy_core::instances::{Draw, Drawn};
use policy_jvm::{Jni, MAX_TAGS};
use policy_report::InstancesRequest;

use super::layouts::{Readable, readable};
use super::reader::{Contents, Reader};
use crate::ground::Ground;
use crate::identity::classes::ClassId;
use crate::ledger::{LiveRecord, Tag};
use crate::sampling::Charge;

/// Objects that are drawn by lot for one answer, at the most.
const MAX_DRAWN: usize = 2_000;
/// How long objects are looked for, for one answer.
const MAX_TIME: Duration = Duration::from_secs(10);
/// After a search that took longer, no other is begun, unless the command allows more.
const MAX_SEARCH: Duration = Duration::from_millis(50);
/// A search may take so long before fewer tags are looked for in the next one...
const GOOD_SEARCH: Duration = Duration::from_millis(4);
/// ... or twice as long as one for a single tag.
const SINGLE_SEARCHES: u32 = 2;
/// Between two searches the JVM's threads have the table for so many times as long as the last one took.
const REST: u32 = 2;
const LONGEST_REST: Duration = Duration::from_millis(200);

/// A sampled object.
#[derive(Debug, Clone)]
pub(super) struct Sampled {
    pub(super) tag: i64,
    pub(super) class: Arc<str>,
    pub(super) charge: Charge,
    pub(super) size_bytes: u64,
    /// The least age in milliseconds, and the greatest.
    pub(super) ages_ms: (u64, u64),
    pub(super) collections: u32,
}

/// An object by a number.
#[derive(Debug)]
struct By<T>(T, Sampled);

impl<T: Ord> PartialEq for By<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T: Ord> Eq for By<T> {}

impl<T: Ord> PartialOrd for By<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> Ord for By<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

/// Those with the greatest numbers.
#[derive(Debug)]
struct Greatest<T> {
    most: usize,
    heap: BinaryHeap<Reverse<By<T>>>,
}

impl<T: Ord> Greatest<T> {
    fn new(most: usize) -> Greatest<T> {
        Greatest {
            most,
            heap: BinaryHeap::new(),
        }
    }

    fn offer(&mut self, number: T, object: impl FnOnce() -> Sampled) {
        if self.heap.len() >= self.most {
            match self.heap.peek() {
                Some(Reverse(least)) if number > least.0 => self.heap.pop(),
                _ => return,
            };
        }
        self.heap.push(Reverse(By(number, object())));
    }

    fn into_vec(self) -> Vec<Sampled> {
        let sorted = self.heap.into_sorted_vec();
        sorted.into_iter().map(|Reverse(By(_, one))| one).collect()
    }
}

/// The records that the question is about.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) sampled: u64,
    /// The bytes and objects that they stand for.
    pub(super) live: Charge,
    pub(super) largest: Vec<Sampled>,
    pub(super) oldest: Vec<Sampled>,
    pub(super) drawn: Drawn<Sampled>,
}

impl Found {
    /// One pass over the records.
    pub(super) fn scan(
        ground: &Ground,
        account: &str,
        class: Option<&str>,
        asked: &InstancesRequest,
        rows: usize,
    ) -> Found {
        let names = ground.core.directory().accounts_of_purses();
        let nobody: Arc<str> = crate::report::UNACCOUNTED.into();
        let times = ground.core.holdings.marks();
        let now_ms = times.noted_ms();
        let mut classes: HashMap<u32, (Arc<str>, Readable)> = HashMap::new();
        let is_drawn = asked.equal || asked.wasted || asked.elements;
        let mut largest = Greatest::new(if asked.largest { rows } else { 0 });
        let mut oldest = Greatest::new(if asked.oldest { rows } else { 0 });
        let mut draw = Draw::new(MAX_DRAWN);
        let (mut sampled, mut live) = (0, Charge::default());
        ground.core.ledger.scan(|record| {
            // An object that no collection has looked at may be garbage.
            if !record.survived || **names.get(&record.payer).unwrap_or(&nobody) != *account {
                return;
            }
            let (name, readable) = classes.entry(record.class).or_insert_with(|| {
                let name = ground.core.directory().class_name(ClassId(record.class));
                let name = name.unwrap_or_else(|| "?".into());
                let readable = readable(&name);
                (name, readable)
            });
            if class.is_some_and(|class| *class != **name) {
                return;
            }
            sampled += 1;
            live += record.live;
            let object = |record: &LiveRecord| {
                let cohort = times.cohort(record.birth);
                Sampled {
                    tag: Tag::Object(record.tag).encode(),
                    class: name.clone(),
                    charge: record.live,
                    size_bytes: record.size_bytes,
                    ages_ms: times.ages_ms(cohort, now_ms),
                    collections: times.survived(cohort),
                }
            };
            largest.offer(record.size_bytes, || object(record));
            oldest.offer(Reverse(record.birth), || object(record));
            let can_tell = match readable {
                Readable::Contents => true,
                Readable::Length => asked.elements,
                Readable::Nothing => false,
            };
            if is_drawn && can_tell {
                draw.offer(object(record), record.live.bytes, fastrand::f64());
            }
        });
        Found {
            sampled,
            live,
            largest: largest.into_vec(),
            oldest: oldest.into_vec(),
            drawn: draw.drawn(),
        }
    }
}

/// How long may be looked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    search: Duration,
    time: Duration,
}

impl Limits {
    pub(super) fn of(max_pause_ms: Option<u64>) -> Limits {
        Limits {
            search: max_pause_ms.map_or(MAX_SEARCH, Duration::from_millis),
            time: MAX_TIME,
        }
    }
}

/// The contents found in the objects, and the cost of the searches.
#[derive(Debug, Default)]
pub(super) struct Looked {
    pub(super) contents: HashMap<i64, Contents>,
    /// So many of the drawn objects, in their order, were looked for.
    pub(super) drawn: usize,
    pub(super) gone: u64,
    pub(super) cut_short: Option<String>,
    pub(super) not_readable: Vec<String>,
    pub(super) searches: u64,
    pub(super) longest_search: Duration,
    pub(super) all_searches: Duration,
}

/// How many tags the next search is for.
#[derive(Debug)]
struct Pace {
    tags: usize,
    single: Option<Duration>,
}

impl Pace {
    fn new() -> Pace {
        Pace {
            tags: 1,
            single: None,
        }
    }

    fn took(&mut self, time: Duration) {
        let single = *self.single.get_or_insert(time);
        let good = GOOD_SEARCH.max(single * SINGLE_SEARCHES);
        self.tags = if time <= good {
            (self.tags * 2).min(MAX_TAGS)
        } else {
            (self.tags / 2).max(1)
        };
    }
}

/// Looks for the objects and reads them.
///
/// # Errors
/// A sentence, if nothing can be looked for.
pub(super) fn look(
    ground: &Ground,
    jni: &Jni,
    found: &Found,
    limits: &Limits,
    shows_values: bool,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Looked, String> {
    let mut looked = Looked::default();
    let mut reader = Reader::new(&ground.jvmti, shows_values);
    let first: Vec<i64> = (found.largest.iter().chain(&found.oldest))
        .map(|one| one.tag)
        .collect();
    let drawn: Vec<i64> = found.drawn.items().map(|one| one.tag).collect();
    let all: Vec<i64> = first.iter().chain(&drawn).copied().collect();
    let begun = Instant::now();
    let mut pace = Pace::new();
    let mut at = 0;
    while at < all.len() {
        if is_cancelled() {
            return Err("the command has ended, or the JVM ends".to_owned());
        }
        if begun.elapsed() >= limits.time {
            looked.cut_short = Some(format!("{} s were over", limits.time.as_secs()));
            break;
        }
        if looked.longest_search > limits.search {
            looked.cut_short = Some(format!(
                "a search took {:.1} ms, longer than the {} ms that are allowed",
                looked.longest_search.as_secs_f64() * 1e3,
                limits.search.as_millis()
            ));
            break;
        }
        let piece = &all[at..all.len().min(at + pace.tags)];
        let mut contents: Vec<(i64, Contents)> = Vec::with_capacity(piece.len());
        let took = ground.jvmti.each_tagged(jni, piece, |_, tag, object| {
            contents.push((tag, reader.read(object)));
        });
        let took = took.map_err(|error| format!("the JVM finds no objects by tags ({error})"))?;
        at += piece.len();
        looked.contents.extend(contents);
        looked.searches += 1;
        looked.longest_search = looked.longest_search.max(took);
        looked.all_searches += took;
        pace.took(took);
        if at < all.len() {
            std::thread::sleep((took * REST).min(LONGEST_REST));
        }
    }
    looked.drawn = at.saturating_sub(first.len());
    let mut tags = all[..at].to_vec();
    tags.sort_unstable();
    tags.dedup();
    looked.gone = (tags.len() as u64).saturating_sub(looked.contents.len() as u64);
    looked.not_readable = reader.not_readable.into_iter().collect();
    Ok(looked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tag: i64) -> Sampled {
        Sampled {
            tag,
            class: "x".into(),
            charge: Charge::default(),
            size_bytes: 0,
            ages_ms: (0, 0),
            collections: 0,
        }
    }

    #[test]
    fn the_greatest_are_kept_in_order() {
        let mut greatest = Greatest::new(3);
        for number in [5, 1, 9, 7, 3] {
            greatest.offer(number, || of(number));
        }
        let tags: Vec<i64> = greatest.into_vec().iter().map(|one| one.tag).collect();
        assert_eq!(tags, [9, 7, 5]);
        let mut none = Greatest::new(0);
        none.offer(1, || unreachable!("nothing is kept"));
        assert!(none.into_vec().is_empty());
    }

    #[test]
    fn a_search_grows_while_it_is_short_and_shrinks_again() {
        let mut pace = Pace::new();
        for expected in [2, 4, 8, 16, 32, 64, 128, 256, 256] {
            pace.took(Duration::from_millis(1));
            assert_eq!(pace.tags, expected);
        }
        pace.took(Duration::from_millis(5));
        assert_eq!(pace.tags, 128);
        // In a large table a single tag takes long, and many little more.
        let mut pace = Pace::new();
        pace.took(Duration::from_millis(20));
        pace.took(Duration::from_millis(30));
        assert_eq!(pace.tags, 4);
        pace.took(Duration::from_millis(41));
        assert_eq!(pace.tags, 2);
    }
}
