//! The question that a walk is asked, and the facts about classes that it has beforehand.

use std::time::Duration;

use super::log::UNKNOWN_CLASS;

/// The facts about a class that a walk has before it begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KnownClass {
    /// The tag of the class object.
    pub tag: i64,
    /// The class is `java.lang.Class`.
    pub is_class: bool,
    /// Its static fields count as roots.
    pub is_root: bool,
    /// The boot loader defined it: an object does not keep its class alive.
    pub is_of_boot_loader: bool,
    /// Its instances have no references worth following.
    pub is_leaf: bool,
    /// The index of a field that does not keep its object alive: `referent` of a weak reference.
    pub weak_field: Option<u32>,
    /// The holder to which its static fields belong; 0 for none of those that are asked about.
    pub holder: u8,
}

const IS_CLASS: u8 = 1;
const IS_ROOT: u8 = 2;
const IS_BOOT: u8 = 4;
const IS_LEAF: u8 = 8;

/// The table of classes, by tag. Made beforehand; read without allocation.
pub(super) struct Classes {
    known: Vec<KnownClass>,
    flags: Vec<u8>,
    weak: Vec<u32>,
    /// Open addressing: the number of a class plus one.
    slots: Vec<u32>,
}

impl Classes {
    pub(super) fn new(known: Vec<KnownClass>) -> Classes {
        let count = known.len().min(UNKNOWN_CLASS as usize - 1);
        let mut classes = Classes {
            flags: known.iter().map(flags).collect(),
            weak: (known.iter())
                .map(|class| class.weak_field.unwrap_or(u32::MAX))
                .collect(),
            slots: vec![0; (2 * count + 2).next_power_of_two()],
            known,
        };
        for number in 0..count {
            let mut slot = classes.slot(classes.known[number].tag);
            while classes.slots[slot] != 0 {
                slot = (slot + 1) & (classes.slots.len() - 1);
            }
            classes.slots[slot] = number as u32 + 1;
        }
        classes
    }

    fn slot(&self, tag: i64) -> usize {
        let mixed = (tag as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        mixed as usize & (self.slots.len() - 1)
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// The number of the class with this tag.
    #[inline]
    pub(super) fn number(&self, tag: i64) -> u32 {
        if tag == 0 {
            return UNKNOWN_CLASS;
        }
        let mut slot = self.slot(tag);
        loop {
            match self.slots[slot] {
                0 => return UNKNOWN_CLASS,
                number if self.known[number as usize - 1].tag == tag => return number - 1,
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }

    #[inline]
    fn has(&self, class: u32, flag: u8) -> bool {
        self.flags
            .get(class as usize)
            .is_some_and(|f| f & flag != 0)
    }

    #[inline]
    pub(super) fn is_skipped(&self, class: u32) -> bool {
        self.has(class, IS_LEAF)
    }

    #[inline]
    pub(super) fn is_mirror(&self, class: u32) -> bool {
        self.has(class, IS_CLASS)
    }

    #[inline]
    pub(super) fn is_weak(&self, class: u32, field: u32) -> bool {
        self.weak.get(class as usize) == Some(&field)
    }

    /// Whether an object of the class keeps its class alive in a way worth telling.
    #[inline]
    pub(super) fn holds_its_class(&self, class: u32) -> bool {
        (class as usize) < self.flags.len() && !self.has(class, IS_BOOT)
    }

    pub(super) fn is_root(&self, class: u32) -> bool {
        self.has(class, IS_ROOT)
    }

    pub(super) fn holder(&self, class: u32) -> u8 {
        self.known
            .get(class as usize)
            .map_or(0, |class| class.holder)
    }

    /// How many classes have a holder.
    pub(super) fn owned_count(&self) -> usize {
        self.known.iter().filter(|class| class.holder > 0).count()
    }

    /// The tag of a class; 0 for an unknown one.
    pub(super) fn tag(&self, class: u32) -> i64 {
        self.known.get(class as usize).map_or(0, |class| class.tag)
    }
}

fn flags(class: &KnownClass) -> u8 {
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    flag(class.is_class, IS_CLASS)
        | flag(class.is_root, IS_ROOT)
        | flag(class.is_of_boot_loader, IS_BOOT)
        | flag(class.is_leaf, IS_LEAF)
}

/// Which objects are looked for, by their tags.
#[derive(Debug, Clone, Copy)]
pub enum Targets<'a> {
    /// These tags, sorted.
    Tags(&'a [i64]),
    /// All tags whose bits under the mask are these; so many at the most.
    Masked {
        /// Which bits count.
        mask: i64,
        /// The pattern that those bits must have.
        value: i64,
        /// How many there are at the most.
        most: usize,
    },
}

impl Targets<'_> {
    #[inline]
    pub(super) fn contain(&self, tag: i64) -> bool {
        match *self {
            Targets::Tags(tags) => tags.binary_search(&tag).is_ok(),
            Targets::Masked { mask, value, .. } => tag & mask == value,
        }
    }

    /// How many objects are looked for at the most.
    pub fn most(&self) -> usize {
        match *self {
            Targets::Tags(tags) => tags.len(),
            Targets::Masked { most, .. } => most,
        }
    }
}

/// The result that is wanted of a walk: paths to its targets, or who holds them.
#[derive(Debug, Clone, Copy)]
pub enum Question<'a> {
    /// The shortest path from a root to each target.
    Paths,
    /// Which holders reach each target.
    Holders {
        /// How many holders there are, at most [`MAX_HOLDERS`]; holder 0 is everybody else.
        holders: u8,
        /// Objects that belong to a holder, by their tags: threads and class loaders. Sorted by tag.
        owned: &'a [(i64, u8)],
    },
}

/// Holders of a question at the most, with holder 0.
pub const MAX_HOLDERS: u8 = 62;

/// Where a walk may run, and within which limits.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest pause of the VM. A forked walk that is predicted to need a longer one is not begun; one in
    /// place is ended there.
    pub max_pause: Duration,
    /// The longest life of a child, with its search.
    pub max_time: Duration,
    /// The VM marks visited objects in the heap itself (before JDK 21): the child copies every page that it visits.
    pub marks_in_heap: bool,
    /// The failure that a test brings about, if it wants one.
    pub fault: Option<Fault>,
}

/// A failure in a child that a test brings about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The watcher is killed before it isolates itself.
    Forked,
    /// The watcher is killed before its tables are made.
    Isolated,
    /// There is no memory for the tables.
    NoRoom,
    /// The walker is killed before it enters the walk.
    Entered,
    /// The walker is killed in the middle of the walk.
    Walking,
    /// The walker gets no more memory, so the VM's part of the walk fails.
    Starved,
    /// The walker uses up its processor time.
    Spinning,
    /// There is hardly any time.
    Late,
    /// The watcher is killed after the walk.
    Searching,
    /// The watcher is killed in the middle of its answer.
    Answering,
}

impl Fault {
    /// All, in the order in which tests meet them.
    pub const ALL: [Fault; 10] = [
        Fault::Forked,
        Fault::Isolated,
        Fault::NoRoom,
        Fault::Entered,
        Fault::Walking,
        Fault::Starved,
        Fault::Spinning,
        Fault::Late,
        Fault::Searching,
        Fault::Answering,
    ];
}

/// A walk to be made.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The loaded classes.
    pub classes: Vec<KnownClass>,
    /// The objects that are looked for.
    pub targets: Targets<'a>,
    /// Whether paths to them are wanted, or their holders.
    pub question: Question<'a>,
    /// The limits.
    pub limits: Limits,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_found_by_their_tags() {
        let known = (1..500).map(|tag| KnownClass {
            tag: tag << 28,
            is_leaf: tag % 2 == 0,
            weak_field: (tag == 3).then_some(4),
            ..KnownClass::default()
        });
        let classes = Classes::new(known.collect());
        for tag in 1..500i64 {
            let number = classes.number(tag << 28);
            assert_eq!(classes.tag(number), tag << 28);
            assert_eq!(classes.is_skipped(number), tag % 2 == 0);
            assert_eq!(classes.is_weak(number, 4), tag == 3);
        }
        for unknown in [0, 5, 600 << 28] {
            assert_eq!(classes.number(unknown), UNKNOWN_CLASS);
        }
        assert!(!classes.holds_its_class(UNKNOWN_CLASS));
    }

    #[test]
    fn targets_are_told_by_tag_or_by_kind() {
        let tags = [-4, 9, 12];
        assert!(Targets::Tags(&tags).contain(9) && !Targets::Tags(&tags).contain(10));
        let kind = Targets::Masked {
            mask: 7 << 60,
            value: 1 << 60,
            most: 3,
        };
        assert!(kind.contain(1 << 60 | 5) && !kind.contain(2 << 60 | 5) && !kind.contain(0));
    }
}
