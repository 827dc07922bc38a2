//! Stacks from the sample to the ranking, with a ledger and without a JVM.

use std::collections::{HashMap, HashSet};
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::names::Found;
use super::*;
use crate::ledger::{Capacity, ObjectTag, Sample};

const CLASS: u32 = 7;

/// A ledger with one purse, and sites.
struct World {
    ledger: Ledger,
    sites: Sites,
    purse: PurseId,
}

impl World {
    fn new() -> World {
        let ledger = Ledger::new(Capacity {
            records: 1 << 16,
            purses: 16,
        });
        ledger.intervals().set(0).expect("exact");
        let purse = ledger.open_purse().expect("room");
        World {
            ledger,
            sites: Sites::new(),
            purse,
        }
    }

    fn row(&self, class: Option<u32>) -> Row {
        Row {
            purse: self.purse,
            class,
        }
    }

    fn want(&self, class: Option<u32>) {
        self.sites.set_wanted(Asker::Leaks, vec![self.row(class)]);
    }

    /// Allocates an object of a class with a stack, given as method and bytecode index from the top.
    fn allocate(
        &self,
        class: u32,
        size_bytes: u64,
        stack: &[(u64, u32)],
        second: u32,
    ) -> Allocated {
        let mut new_methods = Vec::new();
        let visit = self
            .sites
            .visit(self.purse, class, second)
            .map(|mut visit| {
                for &(method, bci) in stack {
                    if let Some(number) = visit.frame(method, Some(bci)) {
                        new_methods.push((number, method));
                    }
                }
                visit
            });
        let site = visit.as_ref().map_or(SiteId::NONE, Visit::site);
        let sample = Sample {
            payer: self.purse,
            agent_account: self.purse,
            principal: self.purse,
            class,
            size_bytes,
            interval: self.ledger.intervals().current(),
            site,
        };
        let (tag, charge) = self.ledger.charge_weighed(&sample).expect("room");
        if let Some(visit) = &visit {
            visit.charged(&charge);
        }
        Allocated {
            tag,
            site,
            new_methods,
        }
    }

    /// A collection has found what lives.
    fn collect(&self) {
        let epoch = self.ledger.epochs().current();
        self.ledger.epochs().gc_finished();
        self.ledger.epochs().confirm(epoch);
    }

    /// Names a method after its number: those from 100 on are the JDK's, those from 200 on link calls.
    fn name(&self, (number, method): (u32, u64)) {
        let found = Found {
            class: match method {
                200.. => format!("java.lang.invoke.Link{method}"),
                100.. => format!("java.util.Map{method}"),
                _ => format!("com.acme.Cart{method}"),
            },
            method: "add".into(),
            file: Some("Cart.java".into()),
            lines: (0..100).map(|bci| (bci * 10, bci)).collect(),
            of_jdk: method >= 100,
            ..Found::default()
        };
        self.sites.name(number, method, Some(found));
    }

    fn survivors(&self) -> RowSites {
        self.survivors_by_birth(&[])
    }

    fn survivors_by_birth(&self, cuts: &[Mark]) -> RowSites {
        let rows = |_, class| (class == CLASS).then_some(());
        let mut found = self.sites.survivors(
            &self.ledger,
            rows,
            Most {
                live: 10,
                allocated: 10,
            },
            cuts,
        );
        found.remove(&()).unwrap_or_default()
    }

    fn sites_in_records(&self) -> HashSet<SiteId> {
        let mut found = HashSet::new();
        self.ledger.scan(|record| {
            found.insert(record.site);
        });
        found
    }
}

struct Allocated {
    tag: ObjectTag,
    site: SiteId,
    new_methods: Vec<(u32, u64)>,
}

#[test]
fn nothing_is_taken_of_what_nobody_wants() {
    let world = World::new();
    assert!(!world.sites.any_wanted());
    let allocated = world.allocate(CLASS, 64, &[(1, 0)], 0);
    assert_eq!(allocated.site, SiteId::NONE);
    world.want(Some(CLASS));
    assert!(world.sites.any_wanted());
    assert_eq!(
        world.allocate(CLASS + 1, 64, &[(1, 0)], 0).site,
        SiteId::NONE
    );
    assert_ne!(world.allocate(CLASS, 64, &[(1, 0)], 0).site, SiteId::NONE);
    assert_eq!(world.sites.counts().taken, 1);
}

#[test]
fn survivors_are_ranked_by_the_line_that_allocated_them_and_garbage_is_not() {
    let world = World::new();
    world.want(Some(CLASS));
    let mut garbage = Vec::new();
    // Method 1 at bytecode 20 (line 2) keeps, below two frames of the JDK; line 3 keeps half as much;
    // method 2 makes garbage, 20 times as much.
    for round in 0..30 {
        for caller in [30, 31] {
            let kept = world.allocate(
                CLASS,
                100,
                &[(100, 0), (101, 5), (1, 20), (caller, 0)],
                round,
            );
            kept.new_methods
                .into_iter()
                .for_each(|method| world.name(method));
        }
        let other = world.allocate(CLASS, 100, &[(200, 0), (1, 30), (30, 0)], round);
        other
            .new_methods
            .into_iter()
            .for_each(|method| world.name(method));
        let dead = world.allocate(CLASS, 6_000, &[(2, 0), (30, 0)], round);
        dead.new_methods
            .iter()
            .for_each(|&method| world.name(method));
        garbage.push(dead.tag);
    }
    garbage
        .into_iter()
        .for_each(|tag| assert!(world.ledger.refund(tag)));
    assert_eq!(world.survivors().stacks, 0, "no collection yet");
    world.collect();
    let found = world.survivors();
    assert_eq!(
        (found.live_bytes, found.with_stack_bytes, found.stacks),
        (9_000, 9_000, 90)
    );
    let [first, second, third] = &found.sites[..] else {
        panic!("three places: {found:?}")
    };
    assert_eq!(first.frames[0], "com.acme.Cart1.add(Cart.java:2)");
    assert_eq!(
        first.through,
        [
            "java.util.Map100.add(Cart.java:0)",
            "java.util.Map101.add(Cart.java:0)"
        ]
    );
    assert_eq!(first.frames.len(), 2);
    assert_eq!(second.frames[0], "com.acme.Cart1.add(Cart.java:3)");
    assert!(second.through.is_empty(), "linkage is left out");
    assert!((first.share - 2.0 / 3.0).abs() < 1e-9);
    assert_eq!((first.live_bytes, first.live_objects), (6_000, 60));
    // As of 90 draws with one of two outcomes.
    let expected = (2.0 / 9.0 / 90.0f64).sqrt();
    assert!((first.share_standard_error - expected).abs() < 1e-9);
    // The garbage is known as what was allocated, and has no part in what lives.
    assert_eq!(third.frames[0], "com.acme.Cart2.add(Cart.java:0)");
    assert_eq!((third.stacks, third.share, third.live_bytes), (0, 0.0, 0));
    assert_eq!(
        (found.allocated_bytes, found.allocated_stacks),
        (189_000, 120)
    );
    let of_third = third.allocated;
    assert_eq!(
        (of_third.bytes, of_third.objects, of_third.stacks),
        (180_000, 30, 30)
    );
    assert!((of_third.share - 180.0 / 189.0).abs() < 1e-9);
    // 30 equal draws.
    assert!((of_third.standard_error_bytes - 6_000.0 * 30.0_f64.sqrt()).abs() < 1e-6);
    assert_eq!(first.allocated.bytes, first.live_bytes, "all of it lives");
}

#[test]
fn whole_stacks_have_what_survived_and_was_allocated_there() {
    let world = World::new();
    world.want(None);
    let stacks = |live, allocated| {
        let rows = |_, class| Some(class);
        let most = Most { live, allocated };
        world.sites.stacks(&world.ledger, rows, most)
    };
    assert!(stacks(9, 9).is_empty());
    // Two ways to one line, and one more frame that only links; then garbage of another class.
    let (way, other) = ([(1, 10), (2, 0)], [(1, 10), (200, 0), (3, 0)]);
    let allocated: Vec<Allocated> = (0..5)
        .map(|number| world.allocate(CLASS, 100, if number < 2 { &way } else { &other }, 0))
        .collect();
    let garbage = world.allocate(CLASS + 1, 700, &way, 0);
    for one in allocated.iter().chain([&garbage]) {
        (one.new_methods.iter()).for_each(|&method| world.name(method));
    }
    world.ledger.refund(garbage.tag);
    world.ledger.refund(allocated[0].tag);
    world.collect();
    let found = stacks(9, 9);
    let told = |class| -> Vec<(Vec<String>, u64, u64, u64)> {
        (found[&class].iter())
            .map(|stack| {
                let frame = |frame: &stacks::Frame| {
                    let mut text = String::new();
                    frame.write_function(&mut text);
                    format!("{text} {} {}", frame.file(), frame.line())
                };
                let frames = stack.frames.iter().map(frame).collect();
                let (live, allocated) = (stack.live, stack.allocated);
                assert_eq!(
                    allocated.objects,
                    allocated.bytes / if class == CLASS { 100 } else { 700 }
                );
                (frames, live.bytes, live.objects, allocated.bytes)
            })
            .collect()
    };
    let frames = |second: &str| {
        let second = format!("com.acme.{second}.add Cart.java 0");
        vec!["com.acme.Cart1.add Cart.java 1".to_owned(), second]
    };
    assert_eq!(
        told(CLASS),
        [
            (frames("Cart3"), 300, 3, 300),
            (frames("Cart2"), 100, 1, 200)
        ]
    );
    assert_eq!(told(CLASS + 1), [(frames("Cart2"), 0, 0, 700)]);
    // The largest of survivors come first, then those where most was allocated.
    let few = stacks(1, 1);
    assert_eq!(few[&CLASS].len(), 1);
    assert_eq!(few[&CLASS][0].live.bytes, 300);
    assert_eq!(few[&(CLASS + 1)][0].allocated.bytes, 700);
}

#[test]
fn what_was_allocated_ends_with_the_wish_for_it_and_with_its_owner() {
    let world = World::new();
    let allocated = |class| {
        let rows = |_, of| (of == class).then_some(());
        let most = Most {
            live: 0,
            allocated: 1,
        };
        let mut found = world.sites.survivors(&world.ledger, rows, most, &[]);
        found.remove(&()).map_or(0, |row| row.allocated_bytes)
    };
    world.want(None);
    world.allocate(CLASS, 100, &[(1, 0)], 0);
    world.allocate(CLASS + 1, 300, &[(1, 0)], 0);
    assert_eq!((allocated(CLASS), allocated(CLASS + 1)), (100, 300));
    // The class's number is given to another one.
    world.sites.forget(|_, class| class == CLASS);
    assert_eq!((allocated(CLASS), allocated(CLASS + 1)), (0, 300));
    world.allocate(CLASS, 50, &[(1, 0)], 1);
    assert_eq!(allocated(CLASS), 50);
    world
        .sites
        .set_wanted(Asker::Leaks, vec![world.row(Some(CLASS))]);
    world.sites.tend(&world.ledger, 0);
    assert_eq!((allocated(CLASS), allocated(CLASS + 1)), (50, 0));
}

#[test]
fn no_more_has_a_stack_than_lives() {
    let world = World::new();
    world.want(None);
    // So many in one second that each of the last stacks stands for many; then all but those die.
    let all: Vec<Allocated> = (0..20_000)
        .map(|_| world.allocate(CLASS, 100, &[(1, 0)], 0))
        .collect();
    let mut with_stack = all.iter().filter(|one| one.site != SiteId::NONE);
    let last = with_stack.next_back().expect("some have one").tag;
    for one in &all {
        if one.tag != last {
            world.ledger.refund(one.tag);
        }
    }
    world.collect();
    let found = world.survivors();
    assert_eq!((found.live_bytes, found.stacks), (100, 1));
    assert_eq!(
        (found.with_stack_bytes, found.sites[0].live_objects),
        (100, 1)
    );
}

#[test]
fn the_survivors_of_a_place_are_summed_by_birth_and_what_stays_is_the_same_each_time() {
    let world = World::new();
    world.want(None);
    let mark = || Mark {
        epoch: world.ledger.epochs().boundary().expect("a collection"),
        at: std::time::SystemTime::UNIX_EPOCH,
    };
    // So many in one second that stacks stand for several, of two lines.
    let many = |second| -> Vec<Allocated> {
        (0..500)
            .map(|number| world.allocate(CLASS, 100, &[(1, number % 2 * 10)], second))
            .collect()
    };
    let old = many(0);
    old[0]
        .new_methods
        .iter()
        .for_each(|&method| world.name(method));
    world.collect();
    let first = mark();
    let before = world.survivors_by_birth(&[first]);
    assert_eq!(before.sites.len(), 2);
    for site in &before.sites {
        assert_eq!((site.cohorts.len(), site.cohorts[0].upto), (1, first.epoch));
        let held = site.cohorts[0].held;
        assert_eq!(held.records, site.stacks);
        // Every allocation is sampled, so all variance is that of the lot.
        assert!(held.variance > 0, "{held:?}");
    }
    assert_eq!(
        world.survivors_by_birth(&[first]),
        before,
        "nothing changed"
    );
    many(100);
    world.collect();
    let after = world.survivors_by_birth(&[first, mark()]);
    for site in &after.sites {
        let mut then = before.sites.iter();
        let then = then.find(|one| one.frames[0] == site.frames[0]);
        let then = then.expect("the same two lines");
        assert_eq!(site.cohorts.len(), 2);
        assert_eq!(site.cohorts[0], then.cohorts[0], "what stays cancels");
    }
    // An object that was born after the last cut is no part of that snapshot.
    let live = |of: RowSites| {
        let sites = of.sites.into_iter();
        sites
            .map(|site| (site.frames, site.share, site.live_bytes, site.cohorts))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        live(world.survivors_by_birth(&[first])),
        live(before.clone())
    );
    // One dies: its place has lost just what it stood for.
    let gone = old
        .iter()
        .find(|one| one.site != SiteId::NONE)
        .expect("some have a stack");
    let (level, _) = unpack(gone.site);
    assert!(world.ledger.refund(gone.tag));
    let left = world.survivors_by_birth(&[first]);
    let bytes = |sites: &RowSites| -> u64 {
        let cohorts = sites.sites.iter().flat_map(|site| &site.cohorts);
        cohorts.map(|one| one.held.bytes).sum()
    };
    assert_eq!(bytes(&before) - bytes(&left), 100 << level);
}

#[test]
fn sites_end_with_the_wish_for_them_and_their_memory_too() {
    let world = World::new();
    let nothing_bytes = world.sites.committed_bytes();
    world.want(Some(CLASS));
    let kept = world.allocate(CLASS, 100, &[(1, 0), (2, 0)], 0);
    kept.new_methods
        .into_iter()
        .for_each(|method| world.name(method));
    world.collect();
    assert!(world.sites.committed_bytes() > nothing_bytes + (1 << 20));
    world.sites.set_wanted(Asker::Leaks, Vec::new());
    world.sites.tend(&world.ledger, 0);
    assert_eq!(world.sites_in_records(), HashSet::from([SiteId::NONE]));
    assert!(world.sites.committed_bytes() < nothing_bytes + (1 << 15));
    let found = world.survivors();
    assert_eq!((found.live_bytes, found.stacks), (100, 0));
    assert!(found.sites.is_empty());
    // A row that is wanted again begins anew.
    world.want(Some(CLASS));
    let site = world.allocate(CLASS, 100, &[(1, 0)], 1).site;
    assert_eq!(
        world.sites_in_records(),
        HashSet::from([SiteId::NONE, site])
    );
}

#[test]
fn a_class_that_is_gone_is_said_to_be() {
    let world = World::new();
    world.want(None);
    let kept = world.allocate(CLASS, 100, &[(1, 0)], 0);
    world.collect();
    assert_eq!(world.survivors().sites[0].frames, ["(not named yet)"]);
    let (number, method) = kept.new_methods[0];
    world.sites.name(number, method + 1, Some(Found::default()));
    assert_eq!(
        world.survivors().sites[0].frames,
        ["(not named yet)"],
        "another method's name"
    );
    world.sites.name(number, method, None);
    let gone = "(a class that was unloaded before it was named)";
    assert_eq!(world.survivors().sites[0].frames, [gone]);
}

#[test]
fn a_trie_without_room_cuts_stacks_and_counts_it() {
    let world = World::new();
    world.want(None);
    let mut taken = 0;
    for number in 0..200_000u64 {
        let stack = [(1, 0), (number % 9_000 + 2, (number % 60_000) as u32)];
        // So many seconds that the budget does not matter.
        let allocated = world.allocate(CLASS, 16, &stack, number as u32);
        taken += u64::from(allocated.site != SiteId::NONE);
        world.ledger.refund(allocated.tag);
    }
    let counts = world.sites.counts();
    assert_eq!(
        (taken, counts.taken),
        (200_000, 200_000),
        "the top frame has room"
    );
    assert!(counts.skipped[Skip::Full as usize] > 10_000);
    assert!(counts.frames <= 1 << 17);
    // No record has any of it any more, so a clearing makes room. What was allocated stays the same in all.
    let allocated = |world: &World| {
        let found = world.survivors();
        (found.allocated_bytes, found.allocated_stacks)
    };
    let before = allocated(&world);
    assert_eq!(before, (16 * 200_000, 200_000));
    world.sites.tend(&world.ledger, 40_000);
    let frames = world.sites.counts().frames;
    assert!(frames > 100 && frames <= 1_001, "{frames}");
    assert_eq!(allocated(&world), before);
    world.allocate(CLASS, 16, &[(3, 3)], 500_000);
    assert_eq!(world.sites.counts().frames, frames + 1);
}

#[test]
fn a_thread_that_takes_a_stack_keeps_the_trie_from_being_cleared() {
    let world = World::new();
    world.want(None);
    let mut visit = world.sites.visit(world.purse, CLASS, 0).expect("wanted");
    visit.frame(1, Some(0));
    world.sites.set_wanted(Asker::Leaks, Vec::new());
    world.sites.tend(&world.ledger, 0);
    assert_eq!(world.sites.counts().frames, 1, "it gave up");
    drop(visit);
    world.sites.tend(&world.ledger, 1);
    assert_eq!(world.sites.counts().frames, 0);
}

/// Threads allocate and free with stacks that follow from the size, while another one changes what is wanted
/// and clears. Whatever stack a record has at any time is its own.
#[test]
fn records_have_their_own_stacks_whatever_is_cleared() {
    let world = World::new();
    let turns = if cfg!(debug_assertions) { 100 } else { 1_000 };
    let barrier = Barrier::new(3);
    let is_over = AtomicBool::new(false);
    let classes = 8;
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let (world, barrier, is_over) = (&world, &barrier, &is_over);
            scope.spawn(move || {
                barrier.wait();
                let mut held = Vec::new();
                for round in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let size = 16 + (round * 31 + thread * 17) % 4_000;
                    let stack = [(size, size as u32), (size / 7 + 5_000, 1), (9_000, 2)];
                    let class = (size % classes) as u32;
                    held.push(world.allocate(class, size, &stack, round as u32));
                    if held.len() > 300 {
                        let old = held.swap_remove((round % 300) as usize);
                        assert!(world.ledger.refund(old.tag));
                    }
                }
            });
        }
        barrier.wait();
        let mut checked = 0;
        for turn in 0..turns {
            let wanted = (0..classes as u32)
                .filter(|class| turn % 10 != 0 && !(class + turn as u32).is_multiple_of(3));
            let rows = wanted.map(|class| world.row(Some(class))).collect();
            world.sites.set_wanted(Asker::Leaks, rows);
            world.sites.tend(&world.ledger, turn);
            std::thread::sleep(Duration::from_millis(1));
            let _no_clearing = world.sites.tended();
            let Some(trie) = world.sites.trie.load_full() else {
                continue;
            };
            world.ledger.scan(|record| {
                if record.site == SiteId::NONE {
                    return;
                }
                let stack = trie.stack(unpack(record.site).1);
                let Some(Step::Frame { method, bci }) = stack.first() else {
                    panic!("a site without a stack");
                };
                assert_eq!(trie.method_key(*method), Some(record.size_bytes));
                assert_eq!(*bci, Some(record.size_bytes as u32));
                checked += 1;
            });
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(checked > 0, "{:?}", world.sites.counts());
    });
}

proptest! {
    /// Whatever stacks come: each comes out as it went in, and equal ones have one number.
    #[test]
    fn stacks_come_back_as_they_went_in(stacks in proptest::collection::vec(
        proptest::collection::vec((0u64..40, 0u32..70_000, any::<bool>()), 0..20), 1..60,
    )) {
        let trie = Trie::new();
        let mut numbers = HashMap::new();
        for stack in &stacks {
            let mut node = Node::ROOT;
            let mut steps = Vec::new();
            for &(method, bci, is_native) in stack {
                let method = trie.method(method).expect("room");
                let bci = (!is_native).then_some(bci.min(65_534));
                let step = if bci == Some(0) { Step::LeftOut } else { Step::Frame { method, bci } };
                node = trie.node(node, step).expect("room");
                steps.push(step);
            }
            prop_assert_eq!(&trie.stack(node), &steps);
            prop_assert_eq!(*numbers.entry(steps).or_insert(node), node);
            prop_assert_eq!(unpack(pack(15, node)), if node == Node::ROOT { (0, node) } else { (15, node) });
        }
        // Clearing keeps what is used, under its own number.
        let (used, unused): (Vec<_>, Vec<_>) = numbers.iter().partition(|(_, node)| node.0 % 2 == 0);
        trie.clear_unused(used.iter().map(|(_, node)| **node));
        for (steps, node) in used {
            prop_assert_eq!(&trie.stack(*node), steps);
        }
        for (_, node) in unused {
            if trie.stack(*node).is_empty() {
                continue;
            }
            let is_part = numbers.iter().any(|(other, number)| {
                number.0 % 2 == 0 && other.starts_with(&trie.stack(*node))
            });
            prop_assert!(is_part, "an unused stack was kept");
        }
    }
}
