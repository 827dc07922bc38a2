//! A slice of the heap: what some accounts' own classes and threads reach, without what belongs to others.
//!
//! The walk begins at an array of the agent's own, whose elements are the class objects and threads of these accounts.
//! So it looks at no stack and at no root of the VM. It ends wherever it comes to something that belongs to somebody
//! else or to nobody: a class object, a thread or a class loader. An object that is no such thing belongs to whom it is
//! reached by.
//!
//! # Rules
//! 1. A path that a slice finds is true: each of its references was there in the one stop of the slice.
//! 2. That a slice does not find an object shows nothing.
//! 3. A stack holds nothing in a slice: what is held by a stack alone is found in the walk from the roots.

use jvmti_bindings::sys::jvmti;

use super::border::Place;
use super::log::RawRoot;
use super::recorder::{Call, Failure, Recorder};

/// The kind of a root that is a thread.
const THREAD: u32 = 5;

impl Recorder<'_> {
    /// Where a reference leads: always inside in a walk of the whole heap.
    #[inline]
    pub(super) fn place(&mut self, call: &Call, ends: (u32, u32), class: u32, tag: i64) -> Place {
        let Some(slice) = &mut self.slice else {
            return Place::Inside;
        };
        let (from, to) = ends;
        if *slice.start.get_or_insert(from) == from {
            return match call.kind {
                jvmti::JVMTI_HEAP_REFERENCE_ARRAY_ELEMENT => Place::Start,
                _ => Place::Border,
            };
        }
        let classes = self.classes;
        let holder = match classes.is_mirror(class) {
            true => Some(classes.holder(classes.number(tag))),
            false => slice.holder(tag),
        };
        if holder == Some(0) {
            return Place::Border;
        }
        if !self.seen.contains(to) {
            slice.bytes += call.size.unsigned_abs();
            if classes.is_skipped(class) {
                self.seen.insert(to);
            }
        }
        Place::Inside
    }

    /// Takes note of what a slice begins with: a thread is a root, and of a class object its static fields are.
    pub(super) fn start(&mut self, to: u32, class: u32, tag: i64) -> Result<bool, Failure> {
        if !self.classes.is_mirror(class) {
            self.add_root(RawRoot {
                to,
                own_tag: tag as u64,
                kind: THREAD,
                ..RawRoot::default()
            })?;
        }
        Ok(self.visit(to, class))
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::super::border::Slice;
    use super::super::log::Via;
    use super::super::memory::Sharing;
    use super::super::pace::Rests;
    use super::super::recorder::Sizes;
    use super::super::request::{Classes, KnownClass, Question, Targets};
    use super::super::search::{RawStep, Reached, Sink, search};
    use super::*;

    /// An object of a made-up heap: its address, the tag of its class, and its own tag.
    type Made = (i64, i64, i64);

    const CLASS: i64 = 100;
    const NODE: i64 = 101;
    const ARRAY: Made = (0x1000, 0, 0);
    const ARRAY_CLASS: Made = (0x2000, CLASS, 104);
    const SHOP: Made = (0x3000, CLASS, 102);
    const OTHER: Made = (0x4000, CLASS, 103);
    const OWN_THREAD: Made = (0x5000, NODE, 900);
    const OTHERS_THREAD: Made = (0x6000, NODE, 901);
    const MAP: Made = (0x7000, NODE, 0);
    const LOOKED_FOR: Made = (0x8000, NODE, 7);

    fn classes() -> Classes {
        let known = |tag, holder| KnownClass {
            tag,
            holder,
            is_root: true,
            is_class: tag == CLASS,
            is_of_boot_loader: tag < 102,
            ..KnownClass::default()
        };
        let all = [
            (CLASS, 0),
            (NODE, 0),
            (SHOP.2, 1),
            (OTHER.2, 0),
            (ARRAY_CLASS.2, 0),
        ];
        Classes::new(all.map(|(tag, holder)| known(tag, holder)).to_vec())
    }

    /// Tells the recorder of a reference, as the VM does; returns whether the object is to be visited.
    fn refer(recorder: &mut Recorder<'_>, from: Made, kind: u32, to: Made) -> bool {
        let object = [to.0, 16, to.2, to.1];
        let mut referrer = [from.0, from.2, from.1, 0];
        let own = &raw const referrer[1];
        referrer[3] = own as i64;
        let call = Call {
            kind,
            info: ptr::null(),
            class_tag: to.1,
            referrer_class_tag: from.1,
            size: 16,
            tag: &raw const object[2],
            referrer_tag: &raw const referrer[1],
        };
        recorder.reference(&call) == jvmti::JVMTI_VISIT_OBJECTS
    }

    /// The target's tag, the root, and how each step leads on.
    #[derive(Default)]
    struct Found(Vec<(u64, Option<usize>, Vec<Via>)>);

    impl Sink for Found {
        fn path(&mut self, path: Reached, steps: &mut dyn Iterator<Item = RawStep>) {
            let steps = steps.map(|step| Via::unpack(step.via)).collect();
            self.0.push((path.tag, path.root, steps));
        }

        fn held(&mut self, _: u64, _: u64, _: bool) {}
    }

    #[test]
    fn a_slice_begins_at_its_array_and_turns_back_at_what_belongs_to_others() {
        let classes = classes();
        let sizes = Sizes {
            log_bytes: 1 << 20,
            targets: 4,
        };
        let wanted = [LOOKED_FOR.2, OTHERS_THREAD.2];
        let owned = [(OWN_THREAD.2, 1), (OTHERS_THREAD.2, 0)];
        let mut recorder =
            Recorder::new(&classes, Targets::Tags(&wanted), sizes, Sharing::Private).unwrap();
        recorder.slice = Some(Slice::new(&owned));
        let recorder = &mut recorder;
        let element = jvmti::JVMTI_HEAP_REFERENCE_ARRAY_ELEMENT;
        let (field, fixed) = (
            jvmti::JVMTI_HEAP_REFERENCE_FIELD,
            jvmti::JVMTI_HEAP_REFERENCE_STATIC_FIELD,
        );
        let (class, pool) = (
            jvmti::JVMTI_HEAP_REFERENCE_CLASS,
            jvmti::JVMTI_HEAP_REFERENCE_CONSTANT_POOL,
        );
        assert!(!refer(recorder, ARRAY, class, ARRAY_CLASS));
        assert!(refer(recorder, ARRAY, element, SHOP));
        assert!(refer(recorder, ARRAY, element, OWN_THREAD));
        assert!(refer(recorder, SHOP, fixed, MAP));
        assert!(!refer(recorder, SHOP, pool, OTHER));
        assert!(
            !refer(recorder, MAP, class, ARRAY_CLASS),
            "a class of nobody"
        );
        assert!(refer(recorder, MAP, field, LOOKED_FOR));
        // Found, but not looked into.
        assert!(!refer(recorder, MAP, field, OTHERS_THREAD));
        assert!(refer(recorder, OWN_THREAD, field, MAP));
        let bytes = recorder.slice.as_ref().map(|slice| slice.bytes);
        assert_eq!(bytes, Some(32), "the map and what is looked for");
        let mut found = Found::default();
        search(recorder, Question::Paths, &mut found, &Rests::new(None)).unwrap();
        found.0.sort();
        let both = [Via::Static(0), Via::Field(0)].to_vec();
        assert_eq!(
            found.0,
            [
                (7, None, both.clone()),
                (OTHERS_THREAD.2 as u64, None, both)
            ]
        );
        assert_eq!((recorder.root_count, recorder.roots[0].kind), (1, THREAD));
    }

    #[test]
    fn what_was_found_before_a_slice_was_given_up_is_a_path() {
        let classes = classes();
        let sizes = Sizes {
            log_bytes: 1 << 20,
            targets: 4,
        };
        let wanted = [LOOKED_FOR.2];
        let mut recorder =
            Recorder::new(&classes, Targets::Tags(&wanted), sizes, Sharing::Private).unwrap();
        recorder.slice = Some(Slice::new(&[]));
        let element = jvmti::JVMTI_HEAP_REFERENCE_ARRAY_ELEMENT;
        let fixed = jvmti::JVMTI_HEAP_REFERENCE_STATIC_FIELD;
        assert!(refer(&mut recorder, ARRAY, element, SHOP));
        assert!(refer(&mut recorder, SHOP, fixed, LOOKED_FOR));
        assert_eq!(recorder.fail(Failure::Time), jvmti::JVMTI_VISIT_ABORT);
        let mut found = Found::default();
        search(
            &mut recorder,
            Question::Paths,
            &mut found,
            &Rests::new(None),
        )
        .unwrap();
        assert_eq!(found.0, [(7, None, [Via::Static(0)].to_vec())]);
    }
}
