//! Polls and keys in, rows out.

use proptest::prelude::*;

use super::*;
use heapwarden_client::live::{Account, Accounts, Class, Principal, Reading, State};
use heapwarden_terminal::printable;

/// An account with `live_bytes`, under a limit of 100 MiB.
pub(crate) fn account(name: &str, live_bytes: u64) -> Account {
    Account {
        name: name.to_owned().into(),
        kind: "service".into(),
        live_bytes,
        charged_bytes: live_bytes.saturating_add(1000),
        standard_error_bytes: live_bytes / 10,
        allocated_bytes_total: live_bytes.saturating_mul(3),
        limit_bytes: Some(100 << 20),
        state: State::Open,
        classes: (0..5)
            .map(|number| Class {
                class: format!("com.acme.Class{number}").into(),
                live_bytes: live_bytes / 5,
                live_objects: 7,
                allocated_bytes_total: live_bytes,
                ..Class::default()
            })
            .collect(),
        principals: vec![Principal {
            name: "_unaccounted".into(),
            live_bytes,
        }],
        ..Account::default()
    }
}

/// A JVM's answer `seconds` after the start.
pub(crate) fn answer(jvm: usize, seconds: u64, accounts: Vec<Account>) -> Poll {
    Poll {
        jvm,
        at: Duration::from_secs(seconds),
        outcome: Ok(Reading {
            accounts: Accounts {
                accounts,
                ..Accounts::default()
            },
            not_ready: None,
            leaks: None,
        }),
    }
}

fn failure(jvm: usize, seconds: u64) -> Poll {
    Poll {
        jvm,
        at: Duration::from_secs(seconds),
        outcome: Err("nothing listens".into()),
    }
}

fn names(model: &Model) -> Vec<String> {
    let rows = model.rows();
    rows.iter()
        .map(|row| row.account.name.to_string())
        .collect()
}

fn selected(model: &Model) -> Option<String> {
    names(model).get(model.cursor()).cloned()
}

fn two() -> Model {
    let mut model = Model::new(["a:1".to_owned(), "b:2".to_owned()]);
    model.poll(answer(0, 1, vec![account("shop", 30), account("cart", 10)]));
    model.poll(answer(1, 1, vec![account("mail", 20)]));
    model
}

fn asking(all_classes: bool, leaks: bool) -> Action {
    let wish = Wish { all_classes, leaks };
    Action::Ask { jvm: 0, wish }
}

fn press(model: &mut Model, text: &str) {
    for typed in text.chars() {
        model.key(Key::Char(typed));
    }
}

#[test]
fn accounts_of_all_jvms_are_sorted_together() {
    let mut model = two();
    assert_eq!(names(&model), ["shop", "mail", "cart"]);
    press(&mut model, "r");
    assert_eq!(names(&model), ["cart", "mail", "shop"]);
    model.key(Key::Left);
    assert_eq!(model.sort, Column::Kind);
    model.key(Key::Left);
    assert_eq!(model.sort, Column::Account);
    assert_eq!(names(&model), ["cart", "mail", "shop"], "names from A on");
    model.key(Key::Left);
    model.key(Key::Left);
    assert_eq!(
        model.sort,
        Column::OffHeap,
        "round from the first to the last"
    );
    model.key(Key::Right);
    assert_eq!(model.sort, Column::Jvm);
}

#[test]
fn the_selection_stays_with_its_account() {
    let mut model = two();
    model.poll(answer(1, 2, vec![account("mail", 40)]));
    assert_eq!(
        selected(&model).as_deref(),
        Some("mail"),
        "the first row, until the user moves"
    );
    model.poll(answer(1, 3, vec![account("mail", 20)]));
    model.key(Key::Down);
    assert_eq!(selected(&model).as_deref(), Some("mail"));
    model.poll(answer(1, 4, vec![account("mail", 99)]));
    assert_eq!(names(&model), ["mail", "shop", "cart"]);
    assert_eq!(selected(&model).as_deref(), Some("mail"));
    model.poll(answer(1, 5, vec![]));
    assert_eq!(
        selected(&model).as_deref(),
        Some("shop"),
        "what is in its place"
    );
}

#[test]
fn a_filter_is_typed_kept_and_cleared() {
    let mut model = two();
    press(&mut model, "/");
    press(&mut model, "MAq");
    assert_eq!(names(&model), Vec::<String>::new());
    model.key(Key::Backspace);
    assert_eq!(names(&model), ["mail"]);
    model.key(Key::Enter);
    assert_eq!(model.screen, Screen::List);
    assert_eq!(names(&model), ["mail"]);
    model.key(Key::Escape);
    assert_eq!(names(&model).len(), 3);
    press(&mut model, "/b:2");
    assert_eq!(names(&model), ["mail"], "by JVM");
    model.key(Key::Escape);
    assert_eq!((names(&model).len(), &model.screen), (3, &Screen::List));
}

#[test]
fn a_dead_jvm_keeps_its_rows_as_stale_and_comes_back() {
    let mut model = two();
    model.poll(answer(0, 2, vec![account("shop", 40)]));
    model.poll(failure(0, 4));
    let rows = model.rows();
    let shop = rows.iter().find(|row| row.account.name == "shop").unwrap();
    assert!(shop.is_stale);
    assert_eq!(Column::State.cell(shop), "stale");
    assert_eq!(shop.rates.allocated_bytes_per_second, None);
    assert_eq!(model.jvms[0].error.as_deref(), Some("nothing listens"));
    assert_eq!(model.jvms[0].read_at, Duration::from_secs(2));
    model.poll(answer(0, 6, vec![account("shop", 50)]));
    let rows = model.rows();
    let shop = rows.iter().find(|row| row.account.name == "shop").unwrap();
    assert!(!shop.is_stale && model.jvms[0].error.is_none());
    assert!(shop.rates.allocated_bytes_per_second.is_some());
}

#[test]
fn a_held_display_goes_on_with_the_latest() {
    let mut model = two();
    press(&mut model, "p");
    assert!(model.is_paused());
    model.poll(answer(1, 2, vec![account("mail", 50)]));
    model.poll(answer(1, 3, vec![account("mail", 60)]));
    assert_eq!(names(&model), ["shop", "mail", "cart"]);
    press(&mut model, "p");
    assert_eq!(names(&model), ["mail", "shop", "cart"]);
    assert_eq!(model.rows()[0].account.live_bytes, 60);
    let rates = model.rows()[0].rates;
    assert_eq!(
        rates.allocated_bytes_per_second,
        Some(60.0),
        "(180 - 60) / 2 s"
    );
}

#[test]
fn an_account_is_opened_and_left() {
    let mut model = two();
    assert_eq!(model.key(Key::Enter), asking(false, true));
    let Screen::Account { of, .. } = model.screen.clone() else {
        panic!("{:?}", model.screen);
    };
    assert_eq!((of.jvm, of.name.as_str()), (0, "shop"));
    assert_eq!(model.key(Key::Char('a')), asking(true, true));
    model.key(Key::End);
    assert!(
        matches!(model.screen, Screen::Account { scroll: 4, .. }),
        "five classes"
    );
    model.key(Key::Tab);
    model.key(Key::Down);
    assert!(matches!(
        model.screen,
        Screen::Account {
            scroll: 0,
            part: Part::Principals,
            ..
        }
    ));
    let back = model.key(Key::Escape);
    assert_eq!(back, asking(false, false), "no longer needed");
    assert_eq!(model.screen, Screen::List);
}

#[test]
fn a_class_is_opened_its_neighbours_are_reached_and_it_is_left() {
    let mut model = two();
    model.key(Key::Enter);
    model.key(Key::Down);
    model.key(Key::Enter);
    let class = |model: &Model| match &model.screen {
        Screen::Class { class, from, .. } => (class.clone(), *from),
        other => panic!("{other:?}"),
    };
    assert_eq!(class(&model), ("com.acme.Class1".to_owned(), 1));
    model.key(Key::Down);
    assert_eq!(class(&model).1, 2);
    for _ in 0..9 {
        model.key(Key::Down);
    }
    assert_eq!(class(&model), ("com.acme.Class4".to_owned(), 4), "the last");
    model.poll(answer(0, 2, vec![]));
    assert_eq!(class(&model).0, "com.acme.Class4", "it may come again");
    model.key(Key::Up);
    model.poll(answer(0, 3, vec![account("shop", 30)]));
    model.key(Key::Up);
    assert_eq!(class(&model).1, 3);
    assert_eq!(model.key(Key::Escape), Action::Draw);
    assert!(matches!(model.screen, Screen::Account { scroll: 3, .. }));
    // Principals cannot be opened.
    model.key(Key::Tab);
    model.key(Key::Enter);
    assert!(matches!(model.screen, Screen::Account { .. }));
}

#[test]
fn help_goes_with_any_key_and_q_ends() {
    let mut model = two();
    press(&mut model, "?");
    assert!(model.shows_help);
    assert_eq!(model.key(Key::Down), Action::Draw);
    assert!(!model.shows_help);
    assert_eq!(
        model.cursor(),
        0,
        "the key that closes it does nothing else"
    );
    assert_eq!(model.key(Key::Char('q')), Action::Quit);
    press(&mut model, "/");
    assert_eq!(
        model.key(Key::Char('q')),
        Action::Draw,
        "a letter of the filter"
    );
}

fn any_key() -> impl Strategy<Value = Key> {
    prop_oneof![
        3 => prop::sample::select("qpr/<>s?hjkgGa x\u{202e}".chars().collect::<Vec<_>>())
            .prop_map(Key::Char),
        1 => any::<char>().prop_map(Key::Char),
        4 => prop::sample::select(vec![
            Key::Backspace, Key::Enter, Key::Escape, Key::Tab, Key::Up, Key::Down, Key::PageUp,
            Key::PageDown, Key::Home, Key::End, Key::Left, Key::Right,
        ]),
    ]
}

fn any_poll() -> impl Strategy<Value = Poll> {
    let accounts = prop::collection::vec(("[abc]{0,2}", any::<u64>()), 0..6);
    (0_usize..4, any::<u32>(), prop::option::of(accounts)).prop_map(|(jvm, at, accounts)| {
        let at = u64::from(at);
        match accounts {
            None => failure(jvm, at),
            Some(list) => {
                let made = list.iter().map(|(name, live)| account(name, live / 3));
                answer(jvm, at, made.collect())
            }
        }
    })
}

proptest! {
    /// Whatever is pressed and polled in whatever order: the cursor is on a row that exists, and
    /// what is opened and scrolled to can be shown.
    #[test]
    fn keys_and_polls_in_any_order(
        steps in prop::collection::vec(
            prop_oneof![any_key().prop_map(Ok), any_poll().prop_map(Err)], 0..60)
    ) {
        let mut model = Model::new((0..3).map(|n| format!("jvm{n}:1")));
        for step in steps {
            match step {
                Ok(key) => { model.key(key); }
                Err(poll) => model.poll(poll),
            }
            let rows = model.rows();
            prop_assert!(model.cursor() < rows.len().max(1));
            prop_assert!(model.columns().contains(&model.sort));
            prop_assert!(!model.filter.chars().any(printable::is_hidden));
            if let Screen::Account { of, scroll, .. } = &model.screen {
                prop_assert!(of.jvm < 3 && *scroll < 5);
            }
        }
    }
}
