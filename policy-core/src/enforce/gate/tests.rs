use super::*;

const OPEN: Word = Word::OPEN;

#[test]
fn without_a_limit_nothing_is_counted() {
    let gate = Gate::default();
    assert_eq!(gate.pass(1 << 40, 1 << 40), Passage::default());
    assert_eq!(gate.spent(), 0);
}

#[test]
fn a_limit_is_at_rest_until_the_trip_is_crossed_or_the_account_is_over() {
    let gate = Gate::default();
    assert_eq!(gate.limit_at_rest(), None);
    gate.set_word(OPEN);
    gate.set_marks(1000, 100, 150);
    assert_eq!(gate.limit_at_rest(), Some(1000));
    gate.pass(100, 8);
    assert_eq!(gate.limit_at_rest(), Some(1000));
    gate.pass(1, 8);
    assert_eq!(gate.limit_at_rest(), Some(0));
    gate.set_marks(1000, 300, 350);
    assert_eq!(gate.limit_at_rest(), Some(1000));
    gate.set_word(Word { over: true, ..OPEN });
    assert_eq!(gate.limit_at_rest(), Some(0));
}

#[test]
fn masked_threads_share_what_they_are_spared_until_the_account_recovers() {
    let gate = Gate::default();
    assert!(!gate.spend_masked(101, 100), "and it uses nothing up");
    assert!(gate.spend_masked(60, 100) && gate.spend_masked(40, 100));
    assert!(!gate.spend_masked(1, 100) && !gate.spend_masked(1, 100));
    gate.forget_masked();
    assert!(gate.spend_masked(100, 100));
    assert!(gate.spend_masked(u64::MAX, u64::MAX));
}

#[test]
fn graces_of_all_threads_together_are_bounded_until_the_account_recovers() {
    const LIMIT: u64 = 256 << 20;
    let gate = Gate::default();
    gate.set_word(Word { over: true, ..OPEN });
    gate.set_marks(LIMIT, 0, 0);
    let spend = |times| (0..times).filter(|_| gate.spend_grace(1 << 20)).count();
    assert_eq!(spend(1000), 16, "a sixteenth of the limit");
    gate.forget_masked();
    assert_eq!(spend(1000), 16);
    gate.set_marks(1 << 20, 0, 0);
    gate.forget_masked();
    assert_eq!(spend(1000), 4, "a few threads' graces");
}

#[test]
fn one_crossing_wakes_the_enforcer_once_and_the_stop_makes_due() {
    let gate = Gate::default();
    gate.set_word(OPEN);
    assert!(!gate.set_marks(1000, 100, 150));
    let passage = |wake_enforcer, due| Passage { wake_enforcer, due };
    assert_eq!(gate.pass(100, 8), passage(false, None));
    assert_eq!(gate.pass(1, 8), passage(true, None));
    assert_eq!(gate.pass(50, 8), passage(false, None));
    gate.set_word(Word {
        duress: true,
        ..OPEN
    });
    assert_eq!(gate.pass(1, 8), passage(false, Some(Due::Overdrawn)));
    assert_eq!(gate.pass(1, 1001), passage(false, Some(Due::Alone)));
    gate.set_word(Word { over: true, ..OPEN });
    assert_eq!(gate.pass(1, 8).due, Some(Due::Over));
    assert!(gate.set_marks(1000, 100, 150));
}

#[test]
fn what_was_born_between_two_pauses_is_exact() {
    let gates = Gates::new();
    let gate = gates.make(5).unwrap();
    gate.set_word(OPEN);
    gate.set_marks(1 << 40, 1 << 40, 1 << 40);
    gates.watch([5].into_iter());
    let epoch = Epoch::new;
    for (number, charged) in [(1, 100), (2, 30), (3, 7)] {
        gate.pass(charged, 8);
        gates.begin(epoch(number));
    }
    // Born in epoch 1: charged after it began and before epoch 2 did.
    assert_eq!(gate.born_between(epoch(0), epoch(1)), Some(30));
    assert_eq!(gate.born_between(epoch(0), epoch(2)), Some(37));
    assert_eq!(gate.born_between(epoch(0), epoch(3)), None);
    for number in 4..4 + NOTES as u32 {
        gates.begin(epoch(number));
    }
    assert_eq!(gate.born_between(epoch(0), epoch(2)), None);
    gates.watch(std::iter::empty());
    gates.begin(epoch(100));
    assert_eq!(gate.spent_before(epoch(100)), None);
}

#[test]
fn a_new_word_has_a_new_serial() {
    let gate = Gate::default();
    gate.set_word(OPEN);
    let (word, serial) = gate.word();
    assert_eq!(word, OPEN);
    gate.set_word(OPEN);
    assert_eq!(gate.word().1, serial);
    gate.renew_word(OPEN);
    assert_ne!(gate.word().1, serial);
}
