//! Searches the log of a walk: breadth first for the shortest paths, and once for each holder.
//!
//! Records are numbered in the order of their addresses, by a bitmap and a table of counts: that takes 1/30 of
//! the room of a hash table. All tables are mappings; nothing here calls `malloc`, because it also runs in a
//! forked child.

use super::log::{Record, RootKind, Via, record};
use super::memory::{Bits, Plain, Sharing, Table};
use super::pace::Rests;
use super::recorder::Recorder;
use super::request::{MAX_HOLDERS, Question};

/// Steps of a path at the most, after runs of equal steps were joined.
pub(super) const MAX_STEPS: usize = 200;

/// A step of a path: an object, and how it refers to the next one.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[repr(C)]
pub(super) struct RawStep {
    /// The tag of its class; 0 for an unknown one.
    pub(super) class_tag: u64,
    /// Its own tag.
    pub(super) own_tag: u64,
    /// How it refers to the next object.
    pub(super) via: u32,
    /// How many equal steps follow each other here.
    pub(super) repeats: u32,
}

// SAFETY: integers alone, without padding.
unsafe impl Plain for RawStep {}

/// A target that was reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reached {
    pub(super) tag: u64,
    /// The tag of its class; 0 for an unknown one.
    pub(super) class_tag: u64,
    /// An index into the roots; `None` if the first step is a class whose static fields count as roots.
    pub(super) root: Option<usize>,
    /// There are more steps before the first.
    pub(super) is_cut: bool,
}

/// Receives what a search found. Steps begin at the root's end.
pub(super) trait Sink {
    /// A target was reached.
    fn path(&mut self, path: Reached, steps: &mut dyn Iterator<Item = RawStep>);
    /// A target, the holders that reach it, and whether nothing but stacks does.
    fn held(&mut self, tag: u64, holders: u64, by_stacks_alone: bool);
}

/// There is no memory for the tables.
#[derive(Debug)]
pub(super) struct NoMemory;

const UNREACHED: u32 = u32::MAX;
/// Set in the parent of a record that is a source.
const SOURCE: u32 = 1 << 31;
/// The source of a class whose static fields count as roots.
const STATIC: u32 = SOURCE | (SOURCE - 2);
const BLOCK_BITS: u32 = 512;
/// Entries of a table that are filled in one step.
const FILLED: usize = 512;

/// The records of a log by number.
struct Graph<'w> {
    log: &'w [u8],
    recorded: &'w Bits,
    /// How many records there are before each block of the bitmap.
    before: Table<u32>,
    /// Where each record begins, in units of four bytes.
    positions: Table<u32>,
    records: usize,
}

impl<'w> Graph<'w> {
    fn new(walk: &'w Recorder<'_>, rests: &Rests) -> Result<Graph<'w>, NoMemory> {
        let words = walk.recorded.words();
        let per_block = BLOCK_BITS as usize / 64;
        let mut before =
            Table::<u32>::new(words.len() / per_block + 1, Sharing::Private).ok_or(NoMemory)?;
        let mut count = 0;
        // Pieces that no object is in were never touched; reading them would map pages of zeros.
        let used = walk.pieces_used_words().min(words.len());
        for (block, words) in words[..used].chunks(per_block).enumerate() {
            rests.step();
            before[block] = count;
            count += words.iter().map(|word| word.count_ones()).sum::<u32>();
        }
        let log = walk.log.written();
        let positions = Table::new(count as usize, Sharing::Private).ok_or(NoMemory)?;
        let mut graph = Graph {
            log,
            recorded: &walk.recorded,
            before,
            positions,
            records: count as usize,
        };
        let mut at = 0;
        while let Some(record) = record(log, at) {
            rests.step();
            if let Some(number) = graph.number(record.from) {
                graph.positions[number as usize] = (at / 4) as u32;
            }
            at = record.next;
        }
        Ok(graph)
    }

    /// The number of the record of an object, if it has one.
    #[inline]
    fn number(&self, at: u32) -> Option<u32> {
        if !self.recorded.contains(at) {
            return None;
        }
        let words = self.recorded.words();
        let first = (at / BLOCK_BITS * (BLOCK_BITS / 64)) as usize;
        let word = at as usize / 64;
        let whole: u32 = words[first..word]
            .iter()
            .map(|word| word.count_ones())
            .sum();
        let below = words[word] & ((1 << (at % 64)) - 1);
        Some(self.before[(at / BLOCK_BITS) as usize] + whole + below.count_ones())
    }

    #[inline]
    fn record(&self, number: u32) -> Option<Record<'w>> {
        record(self.log, *self.positions.get(number as usize)? as usize * 4)
    }
}

/// Searches the log of a walk that is complete, and rests in between.
pub(super) fn search(
    walk: &mut Recorder<'_>,
    question: Question<'_>,
    sink: &mut dyn Sink,
    rests: &Rests,
) -> Result<(), NoMemory> {
    walk.log.finish();
    let found = walk.found_count;
    walk.found[..found].sort_unstable_by_key(|target| target.at);
    match question {
        Question::Paths => paths(walk, sink, rests),
        Question::Holders { holders, owned } => self::holders(walk, holders, owned, sink, rests),
    }
}

// ---- paths -------------------------------------------------------------------------

struct Paths<'w, 'r> {
    walk: &'w Recorder<'r>,
    rests: &'w Rests,
    graph: Graph<'w>,
    /// The record over which each record was reached.
    parents: Table<u32>,
    /// The same for each target.
    reached: Table<u32>,
    queue: Table<u32>,
    head: usize,
    tail: usize,
    missing: usize,
}

fn paths(walk: &Recorder<'_>, sink: &mut dyn Sink, rests: &Rests) -> Result<(), NoMemory> {
    let graph = Graph::new(walk, rests)?;
    let records = graph.records;
    let table = |length| Table::new(length, Sharing::Private).ok_or(NoMemory);
    let mut search = Paths {
        walk,
        rests,
        graph,
        parents: table(records)?,
        reached: table(walk.found_count)?,
        queue: table(records)?,
        head: 0,
        tail: 0,
        missing: walk.found_count,
    };
    for entries in search.parents.chunks_mut(FILLED) {
        rests.step();
        entries.fill(UNREACHED);
    }
    search.reached.fill(UNREACHED);
    // Objects that only a stack holds come last: a request that is under way explains no leak.
    search.static_fields();
    search.roots(|kind| !kind.is_of_a_stack() && kind != RootKind::System);
    search.run();
    search.roots(|kind| kind == RootKind::System);
    search.run();
    search.roots(RootKind::is_of_a_stack);
    search.run();
    search.tell(sink)
}

impl Paths<'_, '_> {
    /// Begins at the classes whose static fields count as roots.
    fn static_fields(&mut self) {
        let classes = self.walk.classes();
        let mut at = 0;
        while let Some(record) = record(self.graph.log, at) {
            self.rests.step();
            at = record.next;
            if !classes.is_mirror(record.class) || !classes.is_root(classes.number(record.own_tag))
            {
                continue;
            }
            self.reach(record.from, STATIC);
        }
    }

    fn roots(&mut self, is_wanted: impl Fn(RootKind) -> bool) {
        for index in 0..self.walk.root_count {
            let root = self.walk.roots[index];
            if is_wanted(RootKind::of(root.kind)) {
                self.reach(root.to, SOURCE | index as u32);
            }
        }
    }

    #[inline]
    fn reach(&mut self, to: u32, over: u32) {
        if let Some(number) = self.graph.number(to)
            && self.parents[number as usize] == UNREACHED
        {
            self.parents[number as usize] = over;
            self.queue[self.tail] = number;
            self.tail += 1;
        }
        if self.walk.target_bits.contains(to) {
            let targets = &self.walk.found[..self.walk.found_count];
            if let Ok(target) = targets.binary_search_by_key(&to, |target| target.at)
                && self.reached[target] == UNREACHED
            {
                self.reached[target] = over;
                self.missing -= 1;
            }
        }
    }

    fn run(&mut self) {
        while self.head < self.tail && self.missing > 0 {
            let number = self.queue[self.head];
            self.head += 1;
            let Some(record) = self.graph.record(number) else {
                continue;
            };
            for (to, _) in record.references() {
                self.rests.step();
                self.reach(to, number);
            }
            if self.walk.classes().holds_its_class(record.class) {
                self.reach(self.walk.mirrors[record.class as usize], number);
            }
        }
    }

    /// How the object of a record refers to another.
    fn via(&self, record: &Record<'_>, to: u32) -> Via {
        let found = record.references().find(|&(other, _)| other == to);
        found.map_or(Via::Class, |(_, via)| via)
    }

    fn tell(&self, sink: &mut dyn Sink) -> Result<(), NoMemory> {
        let mut steps = Table::<RawStep>::new(MAX_STEPS, Sharing::Private).ok_or(NoMemory)?;
        let classes = self.walk.classes();
        for (index, target) in self.walk.found[..self.walk.found_count].iter().enumerate() {
            let mut over = self.reached[index];
            if over == UNREACHED {
                continue;
            }
            let (mut count, mut child, mut is_cut) = (0usize, target.at, false);
            while over & SOURCE == 0 {
                let Some(record) = self.graph.record(over) else {
                    break;
                };
                let step = RawStep {
                    class_tag: classes.tag(record.class) as u64,
                    own_tag: record.own_tag as u64,
                    via: self.via(&record, child).pack(),
                    repeats: 1,
                };
                let last = count.checked_sub(1).map(|last| &mut steps[last]);
                match last {
                    Some(last) if is_alike(last, &step, classes.is_mirror(record.class)) => {
                        last.repeats = last.repeats.saturating_add(1)
                    }
                    _ if count < MAX_STEPS => {
                        steps[count] = step;
                        count += 1;
                    }
                    // The end at the root matters more than what is before it.
                    _ => {
                        steps[MAX_STEPS - 1] = step;
                        is_cut = true;
                    }
                }
                child = record.from;
                over = self.parents[over as usize];
            }
            let root = (over != STATIC).then_some((over & !SOURCE) as usize);
            let reached = Reached {
                tag: target.tag,
                class_tag: classes.tag(target.class) as u64,
                root,
                is_cut,
            };
            sink.path(reached, &mut steps[..count].iter().rev().copied());
        }
        Ok(())
    }
}

/// Whether two steps after each other are the same but for the element of an array. Class objects differ by the class
/// that they stand for; what other objects are tagged with tells nothing.
fn is_alike(one: &RawStep, other: &RawStep, is_class: bool) -> bool {
    let kind = |step: &RawStep| match Via::unpack(step.via) {
        Via::Element(_) => Via::Element(0),
        via => via,
    };
    one.class_tag == other.class_tag
        && kind(one) == kind(other)
        && !(is_class && one.own_tag != other.own_tag)
}

// ---- holders -----------------------------------------------------------------------

/// The bit of what stacks reach.
const BY_STACKS: u64 = 1 << 63;

struct Held<'w, 'r> {
    walk: &'w Recorder<'r>,
    rests: &'w Rests,
    graph: Graph<'w>,
    owned: &'w [(i64, u8)],
    visited: Bits,
    stack: Table<u32>,
    depth: usize,
    masks: Table<u64>,
}

fn holders(
    walk: &Recorder<'_>,
    holders: u8,
    owned: &[(i64, u8)],
    sink: &mut dyn Sink,
    rests: &Rests,
) -> Result<(), NoMemory> {
    let graph = Graph::new(walk, rests)?;
    let records = graph.records;
    let mut search = Held {
        walk,
        rests,
        graph,
        owned,
        visited: Bits::new(records, Sharing::Private).ok_or(NoMemory)?,
        stack: Table::new(records, Sharing::Private).ok_or(NoMemory)?,
        depth: 0,
        masks: Table::new(walk.found_count, Sharing::Private).ok_or(NoMemory)?,
    };
    for holder in 0..holders.min(MAX_HOLDERS) {
        search.walk_holder(holder);
    }
    search.walk_stacks();
    for (target, mask) in walk.found[..walk.found_count]
        .iter()
        .zip(search.masks.iter())
    {
        let by_others = mask & !BY_STACKS;
        sink.held(
            target.tag,
            by_others,
            by_others == 0 && mask & BY_STACKS != 0,
        );
    }
    Ok(())
}

impl Held<'_, '_> {
    /// Whose an object is that belongs to somebody: a class object, a thread or a class loader.
    fn owner(&self, record: &Record<'_>) -> Option<u8> {
        let classes = self.walk.classes();
        if classes.is_mirror(record.class) {
            return Some(classes.holder(classes.number(record.own_tag)));
        }
        if record.own_tag == 0 {
            return None;
        }
        let found = self
            .owned
            .binary_search_by_key(&record.own_tag, |owned| owned.0);
        found.ok().map(|index| self.owned[index].1)
    }

    /// Marks what a holder reaches from its static fields, its threads and its loader, and holder 0 also from
    /// everything of the VM.
    fn walk_holder(&mut self, holder: u8) {
        self.visited.clear();
        let mut at = 0;
        while let Some(record) = record(self.graph.log, at) {
            self.rests.step();
            at = record.next;
            if self.owner(&record) == Some(holder) {
                self.reach(record.from, 1 << holder);
            }
        }
        if holder == 0 {
            for index in 0..self.walk.root_count {
                let root = self.walk.roots[index];
                if !RootKind::of(root.kind).is_of_a_stack() {
                    self.reach(root.to, 1);
                }
            }
        }
        self.run(Some(holder), 1 << holder);
    }

    fn walk_stacks(&mut self) {
        self.visited.clear();
        for index in 0..self.walk.root_count {
            let root = self.walk.roots[index];
            if RootKind::of(root.kind).is_of_a_stack() {
                self.reach(root.to, BY_STACKS);
            }
        }
        self.run(None, BY_STACKS);
    }

    fn reach(&mut self, to: u32, bit: u64) {
        if self.walk.target_bits.contains(to) {
            let targets = &self.walk.found[..self.walk.found_count];
            if let Ok(target) = targets.binary_search_by_key(&to, |target| target.at) {
                self.masks[target] |= bit;
            }
        }
        if let Some(number) = self.graph.number(to)
            && self.visited.insert(number)
        {
            self.stack[self.depth] = number;
            self.depth += 1;
        }
    }

    /// Follows references, but not into what belongs to another holder.
    fn run(&mut self, holder: Option<u8>, bit: u64) {
        while self.depth > 0 {
            self.depth -= 1;
            let number = self.stack[self.depth];
            let Some(record) = self.graph.record(number) else {
                continue;
            };
            let owner = self.owner(&record);
            if owner.is_some() && owner != holder {
                continue;
            }
            let is_class = self.walk.classes().is_mirror(record.class);
            for (to, via) in record.references() {
                self.rests.step();
                // Of a class its static fields are held, and what else it has is the VM's.
                if !is_class || matches!(via, Via::Static(_)) {
                    self.reach(to, bit);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
