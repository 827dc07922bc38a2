//! The message that a child sends through its pipe, and how the parent reads it: nothing is believed.
//!
//! Numbers are little-endian words of 64 bits: a magic number, a status with its detail, the counts of references
//! and objects, then paths (target and its class, root with six words, number of steps, steps of three words
//! each) or holders (tag, holders, by stacks alone), and the magic number again. What is too long, cut off or
//! out of range is an error.

use super::log::{RawRoot, RootKind, Via};
use super::memory::{Sharing, Table};
use super::recorder::Failure;
use super::request::{MAX_HOLDERS, Question};
use super::search::{MAX_STEPS, RawStep, Reached, Sink};
use super::{Answer, Held, Path, PathRoot, Step};

const MAGIC: u64 = 0x6865_6170_7761_6c6b;
const NO_ROOT: u64 = u64::MAX;

/// Words of one path at the most.
const PATH_WORDS: usize = 4 + 6 + 3 * MAX_STEPS;
const HELD_WORDS: usize = 3;
const FRAME_WORDS: usize = 8;

/// How many bytes an answer may have.
pub(super) fn most_bytes(question: Question<'_>, targets: usize) -> usize {
    let each = match question {
        Question::Paths => PATH_WORDS,
        Question::Holders { .. } => HELD_WORDS,
    };
    8 * (FRAME_WORDS + each * targets)
}

/// The answer of a child that has none. It takes no memory: there may be none.
pub(super) fn failure(failure: Failure, detail: u64) -> [u64; 6] {
    [MAGIC, failure as u64, detail, 0, 0, MAGIC].map(u64::to_le)
}

/// An answer while it is written, in a mapping of its own.
pub(super) struct Writer<'w> {
    words: Table<u64>,
    used: usize,
    roots: &'w [RawRoot],
}

impl<'w> Writer<'w> {
    pub(super) fn new(bytes: usize, roots: &'w [RawRoot]) -> Option<Writer<'w>> {
        Some(Writer {
            words: Table::new(bytes / 8, Sharing::Private)?,
            used: 0,
            roots,
        })
    }

    pub(super) fn begin(&mut self, failure: Failure, detail: u64, references: u64, objects: u64) {
        for word in [MAGIC, failure as u64, detail, references, objects] {
            self.put(word);
        }
    }

    pub(super) fn end(&mut self) {
        self.put(MAGIC);
    }

    fn put(&mut self, word: u64) {
        if let Some(place) = self.words.get_mut(self.used) {
            *place = word.to_le();
            self.used += 1;
        }
    }

    /// Returns the words that were written.
    pub(super) fn words(&self) -> &[u64] {
        &self.words[..self.used]
    }
}

impl Sink for Writer<'_> {
    fn path(&mut self, path: Reached, steps: &mut dyn Iterator<Item = RawStep>) {
        self.put(path.tag);
        self.put(path.class_tag);
        let found = path.root.and_then(|index| self.roots.get(index)).copied();
        let kind = found.map_or(NO_ROOT, |root| u64::from(root.kind));
        let root = found.unwrap_or_default();
        for word in [
            kind,
            root.thread_id,
            root.method,
            root.own_tag,
            u64::from(root.depth),
            u64::from(root.slot),
        ] {
            self.put(word);
        }
        self.put(u64::from(path.is_cut));
        let count_at = self.used;
        self.put(0);
        let mut count = 0;
        for step in steps {
            self.put(step.class_tag);
            self.put(step.own_tag);
            self.put(u64::from(step.via) << 32 | u64::from(step.repeats));
            count += 1;
        }
        if let Some(place) = self.words.get_mut(count_at) {
            *place = u64::to_le(count);
        }
    }

    fn held(&mut self, tag: u64, holders: u64, by_stacks_alone: bool) {
        self.put(tag);
        self.put(holders);
        self.put(u64::from(by_stacks_alone));
    }
}

/// The status, the counts and the answer that came through the pipe.
pub(super) struct Message {
    pub(super) failure: Failure,
    pub(super) detail: u64,
    pub(super) references: u64,
    pub(super) objects: u64,
    pub(super) answer: Answer,
}

struct Reader<'b> {
    rest: &'b [u8],
}

impl Reader<'_> {
    fn word(&mut self) -> Option<u64> {
        let (first, rest) = self.rest.split_first_chunk::<8>()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*first))
    }
}

/// Reads an answer; `None` if it is none.
pub(super) fn read(bytes: &[u8], question: Question<'_>) -> Option<Message> {
    let (body, end) = bytes.split_last_chunk::<8>()?;
    if u64::from_le_bytes(*end) != MAGIC {
        return None;
    }
    let mut reader = Reader { rest: body };
    if reader.word()? != MAGIC {
        return None;
    }
    let failure = Failure::of(u32::try_from(reader.word()?).ok()?);
    let (detail, references, objects) = (reader.word()?, reader.word()?, reader.word()?);
    let answer = match question {
        Question::Paths => Answer::Paths(paths(&mut reader)?),
        Question::Holders { .. } => Answer::Held(held(&mut reader)?),
    };
    Some(Message {
        failure,
        detail,
        references,
        objects,
        answer,
    })
}

fn paths(reader: &mut Reader<'_>) -> Option<Vec<Path>> {
    let mut paths = Vec::new();
    while !reader.rest.is_empty() {
        let (target_tag, class_tag) = (reader.word()? as i64, reader.word()? as i64);
        let kind = reader.word()?;
        let (thread_id, method, own_tag) = (reader.word()?, reader.word()?, reader.word()?);
        let (depth, slot) = (reader.word()? as u32, reader.word()? as u32);
        let root = (kind != NO_ROOT).then(|| PathRoot {
            kind: RootKind::of(kind as u32),
            thread_id: thread_id as i64,
            method: method as usize,
            own_tag: own_tag as i64,
            depth,
            slot,
        });
        let is_cut = reader.word()? != 0;
        let count = reader.word()?;
        if count > MAX_STEPS as u64 {
            return None;
        }
        let mut steps = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let (class_tag, own_tag) = (reader.word()? as i64, reader.word()? as i64);
            let last = reader.word()?;
            steps.push(Step {
                class_tag,
                own_tag,
                via: Via::unpack((last >> 32) as u32),
                repeats: last as u32,
            });
        }
        paths.push(Path {
            target_tag,
            class_tag,
            root,
            steps,
            is_cut,
        });
    }
    Some(paths)
}

fn held(reader: &mut Reader<'_>) -> Option<Vec<Held>> {
    let mut held = Vec::new();
    while !reader.rest.is_empty() {
        let (tag, holders, by_stacks_alone) = (reader.word()?, reader.word()?, reader.word()?);
        if holders >> MAX_HOLDERS != 0 || by_stacks_alone > 1 {
            return None;
        }
        held.push(Held {
            tag: tag as i64,
            holders,
            by_stacks_alone: by_stacks_alone == 1,
        });
    }
    Some(held)
}

/// The bytes of words, as they are sent.
pub(super) fn bytes(words: &[u64]) -> &[u8] {
    // SAFETY: the words are initialised, and a byte may be at any address.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_was_written_and_a_damaged_one_is_none() {
        let roots = [RawRoot {
            thread_id: 5,
            kind: 3,
            ..RawRoot::default()
        }];
        let mut writer = Writer::new(1 << 16, &roots).unwrap();
        writer.begin(Failure::None, 0, 48, 20);
        let step = RawStep {
            class_tag: 7,
            own_tag: 0,
            via: Via::Field(3).pack(),
            repeats: 400,
        };
        let first = Reached {
            tag: 1,
            class_tag: 2,
            root: Some(0),
            is_cut: false,
        };
        let second = Reached {
            root: None,
            is_cut: true,
            ..first
        };
        writer.path(first, &mut [step, step].into_iter());
        writer.path(second, &mut std::iter::empty());
        writer.end();
        let sent = bytes(writer.words()).to_vec();
        let message = read(&sent, Question::Paths).unwrap();
        assert_eq!((message.failure, message.references), (Failure::None, 48));
        let Answer::Paths(paths) = message.answer else {
            panic!("paths")
        };
        assert_eq!(paths.len(), 2);
        assert_eq!(paths[0].root.map(|root| root.thread_id), Some(5));
        assert_eq!(paths[0].steps[1].repeats, 400);
        assert_eq!(paths[0].steps[1].via, Via::Field(3));
        assert!(paths[1].root.is_none() && paths[1].is_cut);
        let none = failure(Failure::Time, 7);
        let none = read(bytes(&none), Question::Paths).unwrap();
        assert_eq!((none.failure, none.detail), (Failure::Time, 7));
        for length in 0..sent.len() {
            assert!(read(&sent[..length], Question::Paths).is_none(), "{length}");
        }
        let mut many = sent.clone();
        // The number of steps of the first path.
        many[14 * 8] = 255;
        assert!(read(&many, Question::Paths).is_none());
    }

    #[test]
    fn holders_are_read_and_impossible_ones_refused() {
        let question = Question::Holders {
            holders: 3,
            owned: &[],
        };
        let mut writer = Writer::new(1 << 10, &[]).unwrap();
        writer.begin(Failure::None, 0, 1, 1);
        writer.held(9, 0b101, false);
        writer.end();
        let message = read(bytes(writer.words()), question).unwrap();
        let Answer::Held(held) = message.answer else {
            panic!("held")
        };
        assert_eq!((held[0].tag, held[0].holders), (9, 0b101));
        let mut writer = Writer::new(1 << 10, &[]).unwrap();
        writer.begin(Failure::None, 0, 1, 1);
        writer.held(9, 1 << 63, false);
        writer.end();
        assert!(read(bytes(writer.words()), question).is_none());
    }
}
