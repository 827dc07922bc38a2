//! Tags, chunks, the pool and the slab, each alone.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;

use crate::ledger::slab::{InsertError, Record, Slab};
use crate::ledger::*;
use crate::sampling::IntervalId;

fn any_tag() -> impl Strategy<Value = Tag> {
    prop_oneof![
        (0..ObjectTag::INDICES, any::<u32>())
            .prop_map(|(index, generation)| ObjectTag::new(index, generation).map(Tag::Object)),
        (0..ClassTag::INDICES, any::<u32>())
            .prop_map(|(index, generation)| ClassTag::new(index, generation).map(Tag::Class)),
        (0..LoaderTag::INDICES, any::<u32>())
            .prop_map(|(index, generation)| LoaderTag::new(index, generation).map(Tag::Loader)),
        (0..ScopeTag::INDICES, any::<u32>())
            .prop_map(|(index, generation)| ScopeTag::new(index, generation).map(Tag::Scope)),
        any::<u32>().prop_map(|epoch| Some(Tag::Canary(Epoch::new(epoch)))),
        any::<u32>().prop_map(|epoch| Some(Tag::OldCanary(Epoch::new(epoch)))),
    ]
    .prop_map(|tag| tag.expect("the index fits"))
}

proptest! {
    #[test]
    fn a_tag_survives_the_jvm(tag in any_tag()) {
        prop_assert!(tag.encode() > 0);
        prop_assert_eq!(Tag::decode(tag.encode()), Some(tag));
    }

    #[test]
    fn a_number_that_decodes_is_the_tag_of_what_it_decodes_to(
        kind in 0i64..8, payload in 0i64..1 << 60, small in any::<u32>(), sign: bool,
    ) {
        for payload in [payload, i64::from(small)] {
            let raw = kind << 60 | payload;
            let raw = if sign { raw | i64::MIN } else { raw };
            if let Some(tag) = Tag::decode(raw) {
                prop_assert_eq!(tag.encode(), raw);
            } else {
                let too_wide = match kind {
                    1 => false,
                    2 | 3 => payload >> 24 & 0xF != 0,
                    4 => payload >> 33 != 0,
                    _ => true,
                };
                prop_assert!(sign || too_wide, "{raw:#x} is a tag of ours");
            }
        }
    }

    #[test]
    fn a_record_comes_back_as_it_went_in(
        ids: [u16; 4], class: u32, birth: u32, size_bytes in 0..=MAX_OBJECT_BYTES, site: u32,
    ) {
        let record = Record {
            payer: PurseId::new(ids[0]),
            agent_account: PurseId::new(ids[1]),
            principal: PurseId::new(ids[2]),
            interval: IntervalId::from_bits(ids[3]),
            class,
            birth: Epoch::new(birth),
            size_bytes,
            site: SiteId::new(site),
        };
        let slab = Slab::new(1, 1);
        let tag = slab.insert(0, &record).expect("room");
        prop_assert_eq!(slab.read(tag.index()), Some((tag, record)));
        slab.erase_site(tag.index());
        let record = Record { site: SiteId::NONE, ..record };
        prop_assert_eq!(slab.read(tag.index()), Some((tag, record)));
        prop_assert_eq!(slab.remove(tag), Some(record));
        prop_assert_eq!(slab.read(tag.index()), None);
    }
}

#[test]
fn foreign_tags_are_not_ours() {
    for raw in [0, 1, -1, i64::MIN, i64::MAX, 7 << 60, 6 << 60 | 1 << 32] {
        assert_eq!(Tag::decode(raw), None, "{raw:#x}");
    }
    assert_eq!(ObjectTag::new(ObjectTag::INDICES, 0), None);
    assert_eq!(ClassTag::new(ClassTag::INDICES, 0), None);
}

fn record(size_bytes: u64) -> Record {
    Record {
        payer: PurseId::new(1),
        agent_account: PurseId::new(2),
        principal: PurseId::new(3),
        interval: IntervalId::from_bits(0),
        class: 4,
        birth: Epoch::new(5),
        size_bytes,
        site: SiteId::NONE,
    }
}

#[test]
fn the_slab_refuses_what_it_has_no_place_for() {
    let slab = Slab::new(2, 16);
    let first = slab.insert(3, &record(1)).expect("room");
    slab.insert(9, &record(2)).expect("room");
    assert_eq!(slab.insert(0, &record(3)), Err(InsertError::Full));
    assert_eq!(slab.remove(first), Some(record(1)));
    let again = slab.insert(0, &record(3)).expect("room again");
    assert_eq!(again.index(), first.index());
    assert_eq!(again.generation(), first.generation() + 1);
    assert_eq!(slab.remove(first), None);
    assert_eq!(slab.remove(again), Some(record(3)));
}

#[test]
fn a_pool_hands_out_each_index_once() {
    for (capacity, stacks) in [
        (0, 1),
        (1, 1),
        (2, 3),
        (63, 1),
        (64, 2),
        (65, 16),
        (5000, 16),
    ] {
        let pool = IndexPool::new(capacity, stacks);
        let taken: HashSet<u32> = (0..capacity)
            .map(|turn| pool.pop(turn as usize).expect("some are left"))
            .collect();
        assert_eq!(taken.len(), capacity as usize);
        assert!(taken.iter().all(|&index| index < capacity));
        assert_eq!(pool.pop(0), None);
        assert_eq!(pool.high_water(), capacity);
        for &index in &taken {
            pool.push(index);
        }
        let again: HashSet<u32> = std::iter::from_fn(|| pool.pop(7)).collect();
        assert_eq!(again, taken);
    }
}

#[test]
fn a_pool_uses_freed_indices_before_fresh_ones() {
    let pool = IndexPool::new(100_000, 16);
    for evaluation in 0..1000 {
        let taken: Vec<u32> = (0..100)
            .map(|turn| pool.pop(evaluation + turn).expect("plenty"))
            .collect();
        for index in taken {
            pool.push(index);
        }
    }
    // 100 at a time need two blocks of 64.
    assert!(pool.high_water() <= 128, "{}", pool.high_water());
}

#[test]
fn a_pool_ignores_an_index_it_never_had() {
    let pool = IndexPool::new(10, 2);
    pool.push(5);
    pool.push(1 << 30);
    let taken: HashSet<u32> = std::iter::from_fn(|| pool.pop(0)).collect();
    assert_eq!(taken.len(), 10);
}

#[test]
fn threads_share_a_pool_without_sharing_an_index() {
    const CAPACITY: u32 = 300;
    let pool = IndexPool::new(CAPACITY, 4);
    let owners: Vec<AtomicU32> = (0..CAPACITY).map(|_| AtomicU32::new(0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..8usize {
            let (pool, owners) = (&pool, &owners);
            scope.spawn(move || {
                let mut mine = Vec::new();
                for turn in 0..50_000usize {
                    if (turn * 7 + thread) % 13 < 7 {
                        if let Some(index) = pool.pop(thread) {
                            let before = owners[index as usize].swap(1, Ordering::AcqRel);
                            assert_eq!(before, 0, "{index} has two owners");
                            mine.push(index);
                        }
                    } else if let Some(index) = mine.pop() {
                        owners[index as usize].store(0, Ordering::Release);
                        pool.push(index);
                    }
                }
                for index in mine {
                    owners[index as usize].store(0, Ordering::Release);
                    pool.push(index);
                }
            });
        }
    });
    let left: HashSet<u32> = std::iter::from_fn(|| pool.pop(0)).collect();
    assert_eq!(left.len(), CAPACITY as usize, "indices were lost");
}

#[test]
fn chunks_commit_what_is_touched() {
    let chunks: Chunks<AtomicU32, 1024> = Chunks::new(10_000);
    let empty = chunks.committed_bytes();
    assert!(chunks.get(0).is_none());
    assert!(chunks.get_or_grow(10_000).is_none());
    assert!(chunks.get_or_grow(9_999).is_some());
    assert_eq!(chunks.committed_bytes() - empty, 4096);
    assert!(chunks.get(9_999).is_some());
    assert!(
        chunks.get(10_000).is_none(),
        "within the chunk, beyond the capacity"
    );
    assert!(chunks.get(0).is_none());
    assert!(chunks.grow_ahead(2000));
    assert_eq!(chunks.committed_bytes() - empty, 3 * 4096);
    assert!(chunks.grow_ahead(u32::MAX));
    assert_eq!(chunks.committed_bytes() - empty, 10 * 4096);
}

#[test]
fn racing_first_touches_meet_in_one_place() {
    for _ in 0..200 {
        let chunks: Chunks<AtomicU32, 64> = Chunks::new(64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let place = chunks.get_or_grow(7).expect("memory");
                    place.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        let place = chunks.get(7).expect("touched");
        assert_eq!(place.load(Ordering::Relaxed), 4);
        assert_eq!(chunks.committed_bytes(), 8 + 256);
    }
}
