//! Searches of made-up heaps.

use super::super::memory::Sharing;
use super::super::recorder::Sizes;
use super::super::request::{Classes, KnownClass, Targets};
use super::*;

const HEAP: u64 = 0x7_0000_0000;
/// Classes of the made-up heaps, by number: `java.lang.Class`, one of the JDK, and the second of two of
/// applications.
const CLASS: u32 = 0;
const NODE: u32 = 1;
const XML: u32 = 3;

fn classes() -> Classes {
    let known = |tag, is_boot, holder| KnownClass {
        tag,
        is_of_boot_loader: is_boot,
        holder,
        ..KnownClass::default()
    };
    Classes::new(vec![
        KnownClass {
            is_class: true,
            ..known(100, true, 0)
        },
        known(101, true, 0),
        KnownClass {
            is_root: true,
            ..known(102, false, 1)
        },
        known(103, false, 2),
    ])
}

fn heap(classes: &Classes) -> Recorder<'_> {
    let sizes = Sizes {
        log_bytes: 8 << 20,
        targets: 16,
    };
    Recorder::new(classes, Targets::Tags(&[]), sizes, Sharing::Private).expect("tables")
}

fn at(number: u64) -> u64 {
    HEAP + number * 16
}

/// The target's tag, the root, the steps, and whether there are more.
type FoundPath = (u64, Option<usize>, Vec<(u64, Via, u32)>, bool);

#[derive(Default)]
struct Found {
    paths: Vec<FoundPath>,
    held: Vec<(u64, u64, bool)>,
}

impl Sink for Found {
    fn path(&mut self, path: Reached, steps: &mut dyn Iterator<Item = RawStep>) {
        let steps = steps.map(|s| (s.class_tag, Via::unpack(s.via), s.repeats));
        (self.paths).push((path.tag, path.root, steps.collect(), path.is_cut));
    }

    fn held(&mut self, tag: u64, holders: u64, by_stacks_alone: bool) {
        self.held.push((tag, holders, by_stacks_alone));
    }
}

fn searched(heap: &mut Recorder<'_>, question: Question<'_>) -> Found {
    let mut found = Found::default();
    search(heap, question, &mut found, &Rests::new(None)).expect("tables");
    found
}

#[test]
fn the_shortest_path_wins_and_a_stack_comes_last() {
    let classes = classes();
    let mut heap = heap(&classes);
    // Depth first, the long way was met first.
    heap.root_at(at(1), 0);
    heap.root_at(at(9), 3);
    heap.write(
        at(1),
        NODE,
        0,
        &[(at(2), Via::Field(0)), (at(4), Via::Field(1))],
    );
    heap.write(at(2), NODE, 0, &[(at(3), Via::Field(0))]);
    heap.write(at(3), NODE, 0, &[(at(5), Via::Field(0))]);
    heap.write(at(4), NODE, 0, &[(at(5), Via::Element(7))]);
    heap.look_for(at(5), 55);
    // A target that a stack refers to directly, and that the heap holds as well.
    heap.root_at(at(5), 3);
    // A target that a stack alone holds.
    heap.write(at(9), NODE, 0, &[(at(10), Via::Field(2))]);
    heap.look_for(at(10), 66);
    let found = searched(&mut heap, Question::Paths);
    let first = &found.paths[0];
    assert_eq!((first.0, first.1, first.3), (55, Some(0), false));
    assert_eq!(
        first.2,
        [(101, Via::Field(1), 1), (101, Via::Element(7), 1)]
    );
    let second = &found.paths[1];
    assert_eq!((second.0, second.1), (66, Some(1)));
    assert_eq!(second.2, [(101, Via::Field(2), 1)]);
}

#[test]
fn static_fields_of_chosen_classes_are_roots_and_a_class_holds_its_loader() {
    let classes = classes();
    let mut heap = heap(&classes);
    let (shop, xml, loader, instance) = (at(1), at(2), at(3), at(4));
    heap.write(shop, CLASS, 102, &[(instance, Via::Static(5))]);
    heap.write(instance, XML, 0, &[]);
    heap.mirror_at(XML as usize, xml);
    heap.write(xml, CLASS, 103, &[(loader, Via::Loader)]);
    heap.write(loader, NODE, 7, &[]);
    heap.look_for(loader, 7);
    let found = searched(&mut heap, Question::Paths);
    let (_, root, steps, _) = &found.paths[0];
    assert_eq!(*root, None);
    assert_eq!(
        steps[..],
        [
            (100, Via::Static(5), 1),
            (103, Via::Class, 1),
            (100, Via::Loader, 1)
        ]
    );
}

#[test]
fn a_long_list_is_one_step_and_what_is_longer_still_keeps_its_root() {
    let classes = classes();
    let mut heap = heap(&classes);
    heap.root_at(at(0), 5);
    for node in 0..100_000 {
        // Some nodes have tags of their own.
        let own_tag = i64::from(node % 50 == 0) * (node as i64 + 1000);
        heap.write(at(node), NODE, own_tag, &[(at(node + 1), Via::Field(1))]);
    }
    heap.look_for(at(100_000), 1);
    // Another one whose steps differ: fields in turn.
    let far = 200_000;
    heap.root_at(at(far), 0);
    for node in 0..1000 {
        let via = Via::Field(node as u32 % 2);
        heap.write(at(far + node), NODE, 0, &[(at(far + node + 1), via)]);
    }
    heap.look_for(at(far + 1000), 2);
    let found = searched(&mut heap, Question::Paths);
    assert_eq!(found.paths[0].2, [(101, Via::Field(1), 100_000)]);
    let (_, root, steps, is_cut) = &found.paths[1];
    assert_eq!((*root, steps.len(), *is_cut), (Some(1), MAX_STEPS, true));
}

#[test]
fn what_nothing_reaches_has_no_path() {
    let classes = classes();
    let mut heap = heap(&classes);
    heap.root_at(at(1), 0);
    heap.write(at(1), NODE, 0, &[]);
    heap.write(at(2), NODE, 0, &[(at(3), Via::Field(0))]);
    heap.look_for(at(3), 1);
    assert!(searched(&mut heap, Question::Paths).paths.is_empty());
}

#[test]
fn holders_are_told_apart_and_do_not_reach_through_each_other() {
    let classes = classes();
    let mut heap = heap(&classes);
    let (shop, xml, thread, own, shared, by_thread, by_stack, by_vm) =
        (at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8));
    heap.write(
        shop,
        CLASS,
        102,
        &[
            (own, Via::Static(0)),
            (at(20), Via::Static(1)),
            (xml, Via::ConstantPool),
        ],
    );
    heap.write(
        at(20),
        NODE,
        0,
        &[(shared, Via::Element(0)), (xml, Via::Element(1))],
    );
    heap.write(xml, CLASS, 103, &[(at(21), Via::Static(0))]);
    heap.write(at(21), NODE, 0, &[(shared, Via::Field(0))]);
    // A thread of the second holder; the first refers to it.
    heap.write(thread, NODE, 900, &[(by_thread, Via::Field(0))]);
    heap.write(at(22), NODE, 0, &[(thread, Via::Field(0))]);
    heap.root_at(at(7), 3);
    heap.root_at(at(23), 0);
    heap.write(
        at(23),
        NODE,
        0,
        &[(by_vm, Via::Field(0)), (thread, Via::Field(1))],
    );
    for (object, tag) in [
        (own, 4),
        (shared, 5),
        (by_thread, 6),
        (by_stack, 7),
        (by_vm, 8),
    ] {
        heap.look_for(object, tag);
    }
    let owned = [(900, 2)];
    let question = Question::Holders {
        holders: 3,
        owned: &owned,
    };
    let mut found = searched(&mut heap, question).held;
    found.sort_unstable();
    assert_eq!(
        found,
        [
            (4, 0b010, false),
            (5, 0b110, false),
            (6, 0b100, false),
            (7, 0, true),
            (8, 0b001, false)
        ]
    );
}
