//! Loom models of the lock-free parts; see [`crate::ledger`]'s for how they are run and what they play.

use std::sync::Arc;

use loom::thread;

use super::entrance::Entrance;
use super::keys::Keys;
use super::node::Node;
use super::trie::{Step, Trie};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Two threads enter the same key while a third enters another one of the same bucket: the key has one index,
/// and the other one another, or no room.
#[test]
fn a_key_has_one_index() {
    loom::model(|| {
        // One bucket of two places, of which one was filled and cleared: the key may be behind a free one.
        let keys = Arc::new(Keys::new(2));
        let enter = |key| {
            let keys = keys.clone();
            thread::spawn(move || keys.index(key))
        };
        let threads = [enter(5), enter(9)];
        let own = keys.index(5);
        let [same, other] = threads.map(|thread| thread.join().expect("no panic"));
        assert!(own.is_some() && own == same);
        assert!(other.is_some() && other != own);
        assert_eq!(own.map(|index| keys.key(index)), Some(5));
    });
}

/// A key that stands behind a place which a clearing has freed is found there, while others fill the place.
#[test]
fn a_key_behind_a_freed_place_keeps_its_index() {
    loom::model(|| {
        let keys = Arc::new(Keys::new(2));
        let first = keys.index(5).expect("room");
        let second = keys.index(9).expect("room");
        keys.retain(|index| index == second);
        assert_ne!(first, second);
        let other = {
            let keys = keys.clone();
            thread::spawn(move || keys.index(7))
        };
        assert_eq!(keys.index(9), Some(second));
        assert_eq!(other.join().expect("no panic"), Some(first));
    });
}

/// Two threads that take the same stack get the same node, and one of them hands the method over.
#[test]
fn equal_stacks_have_one_node_and_a_method_one_messenger() {
    loom::model(|| {
        let trie = Arc::new(Trie::new());
        let take = |trie: &Trie| {
            let method = trie.method(3).expect("room");
            let step = Step::Frame {
                method,
                bci: Some(1),
            };
            (trie.node(Node::ROOT, step), trie.hands_over(method))
        };
        let other = {
            let trie = trie.clone();
            thread::spawn(move || take(&trie))
        };
        let (node, hands_over) = take(&trie);
        let (same, other_hands_over) = other.join().expect("no panic");
        assert_eq!(node, same);
        assert!(hands_over != other_hands_over);
    });
}

/// A thread that is inside and publishes what it uses, and one that clears what nobody has published.
#[test]
fn nobody_is_inside_while_the_tables_are_cleared() {
    loom::model(|| {
        let entrance = Arc::new(Entrance::new());
        // A place of a table, and a record that names it.
        let place = Arc::new(AtomicU64::new(0));
        let record = Arc::new(AtomicU32::new(0));
        let visitor = {
            let (entrance, place, record) = (entrance.clone(), place.clone(), record.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    if let Some(_inside) = entrance.enter() {
                        let filled =
                            place.compare_exchange(0, 7, Ordering::Relaxed, Ordering::Relaxed);
                        assert!(filled.is_ok() || filled == Err(7));
                        record.store(1, Ordering::Release);
                    }
                }
            })
        };
        entrance.close();
        if entrance.is_empty() {
            if record.load(Ordering::Acquire) == 0 {
                place.store(0, Ordering::Relaxed);
            }
            // Nobody has come meanwhile.
            assert_eq!(
                record.load(Ordering::Acquire) == 1,
                place.load(Ordering::Relaxed) == 7
            );
        }
        entrance.open();
        visitor.join().expect("no panic");
        if record.load(Ordering::Acquire) == 1 {
            assert_eq!(
                place.load(Ordering::Relaxed),
                7,
                "a record names a free place"
            );
        }
    });
}
