//! Tests of the text on screens of many sizes.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use super::super::model::tests::{account, answer};
use super::super::model::{Key, Poll};
use super::*;
use heapwarden_client::live::{Door, State};

/// The lines of a screen of that size.
fn screen(model: &Model, columns: u16, lines: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    terminal
        .draw(|frame| {
            draw(frame, model, Palette::new(true));
        })
        .unwrap();
    let buffer = terminal.backend().buffer().clone();
    let cells = buffer.content().chunks(usize::from(columns.max(1)));
    cells
        .map(|line| line.iter().map(|cell| cell.symbol()).collect())
        .collect()
}

fn model() -> Model {
    let mut model = Model::new(["127.0.0.1:9464".to_owned(), "app2:9464".to_owned()]);
    let mut over = account("shop", 110 << 20);
    over.state = State::Over;
    over.refusals_total = 12;
    over.admission_refusals_total = 34;
    over.door = Door::Shut;
    over.reserve_bytes = Some(12 << 20);
    model.poll(answer(0, 1, vec![over, account("cart", 10 << 20)]));
    model.poll(Poll {
        jvm: 1,
        at: std::time::Duration::from_secs(1),
        outcome: Err("nothing listens on app2:9464".into()),
    });
    model
}

#[test]
fn the_list_on_a_wide_screen() {
    let lines = screen(&model(), 160, 16);
    assert!(lines[0].starts_with("heapwarden top  1 of 2 JVMs down  2 accounts  sorted by live"));
    assert!(lines[1].starts_with("127.0.0.1:9464  heap ["), "{lines:#?}");
    assert!(lines[2].starts_with("app2:9464       DOWN: nothing listens on app2:9464"));
    assert!(lines[3].contains("LIVE ± ERROR▼"), "{lines:#?}");
    for title in [
        "JVM",
        "ACCOUNT",
        "KIND",
        "STATE",
        "ALLOC/S",
        "TREND/MIN",
        "AWAY",
        "OBJECTS",
    ] {
        assert!(lines[3].contains(title), "{title}: {lines:#?}");
    }
    let cells: Vec<&str> = lines[4].split_whitespace().collect();
    assert_eq!(
        cells[..15],
        [
            ">",
            "127.0.0.1:9464",
            "shop",
            "service",
            "110.0",
            "±",
            "11.0",
            "MiB",
            "110",
            "MiB",
            "100",
            "MiB",
            "110%",
            "over",
            "-"
        ]
    );
    assert!(
        lines[5].starts_with("  127.0.0.1:9464  cart "),
        "{lines:#?}"
    );
    assert!(lines[15].starts_with("q quit"), "{lines:#?}");
}

#[test]
fn the_age_of_live_bytes_stands_beside_the_heap() {
    let mut model = Model::new(["127.0.0.1:9464".to_owned(), "app2:9464".to_owned()]);
    let mut poll = answer(0, 1, vec![account("shop", 0)]);
    let accounts = &mut poll.outcome.as_mut().unwrap().accounts;
    accounts.heap.live_gc_epoch = Some(41);
    accounts.heap.live_age_seconds = Some(12.3);
    accounts.accounts[0].live_at_most_bytes = Some(200_000);
    model.poll(poll);
    model.poll(answer(1, 4, vec![]));
    let lines = screen(&model, 120, 16);
    assert!(
        lines[1].contains("  live as of 15 s ago (collection 41)"),
        "three seconds after it was read: {lines:#?}"
    );
    assert!(
        lines[2].contains("  collection 0"),
        "an older agent: {lines:#?}"
    );
    assert!(lines[4].contains("< 0.2 MiB"), "{lines:#?}");
}

#[test]
fn the_process_is_named_beside_the_address() {
    let mut model = Model::new(["127.0.0.1:9464".to_owned()]);
    let mut poll = answer(0, 1, vec![]);
    let accounts = &mut poll.outcome.as_mut().unwrap().accounts;
    accounts.jvm.pid = 4711;
    accounts.jvm.name = "org.apache.catalina.startup.Bootstrap".into();
    accounts.jvm.version = "21.0.5+11-LTS".into();
    model.poll(poll);
    let first = |columns| screen(&model, columns, 8).swap_remove(1);
    let wide = first(120);
    assert!(
        wide.starts_with("127.0.0.1:9464  PID 4711 Bootstrap, JDK 21.0.5  heap 0.0%"),
        "{wide}"
    );
    assert!(
        first(160).contains("JDK 21.0.5  heap [---"),
        "{}",
        first(160)
    );
    assert!(
        first(80).starts_with("127.0.0.1:9464  PID 4711  heap 0.0%"),
        "{}",
        first(80)
    );
}

#[test]
fn five_classes_of_one_package_are_told_apart_in_an_opened_account() {
    let mut shop = account("shop", 10 << 20);
    let names = [
        "Customer",
        "CustomerOrder",
        "CustomerOrderLine",
        "Invoice",
        "Product",
    ];
    shop.classes = (names.iter())
        .map(|name| heapwarden_client::live::Class {
            class: format!("com.example.commerce.application.persistence.internal.{name}").into(),
            ..heapwarden_client::live::Class::default()
        })
        .collect();
    let mut model = Model::new(["127.0.0.1:9464".to_owned()]);
    model.poll(answer(0, 1, vec![shop]));
    model.key(Key::Enter);
    let text = screen(&model, 120, 24).join("\n");
    for name in names {
        assert!(text.contains(&format!(".{name} ")), "{name}:\n{text}");
    }
}

#[test]
fn a_narrow_screen_keeps_what_matters_most() {
    let lines = screen(&model(), 44, 16);
    assert!(lines[3].contains("ACCOUNT") && lines[3].contains("LIVE ± ERROR▼"));
    assert!(lines[3].contains('%') && lines[3].contains("STATE"));
    assert!(!lines[3].contains("OBJECTS") && !lines[3].contains("JVM"));
    let mut by_objects = model();
    for _ in 0..6 {
        by_objects.key(Key::Left);
    }
    let lines = screen(&by_objects, 44, 16);
    assert!(
        lines[3].contains("OBJECTS▼"),
        "the sorted column stays: {lines:#?}"
    );
}

#[test]
fn no_size_is_too_small_for_any_screen() {
    let mut models = vec![Model::new([]), Model::new(["a:1".into()]), model()];
    let mut filtering = model();
    filtering.key(Key::Char('/'));
    let mut opened = model();
    opened.key(Key::Enter);
    let mut helping = model();
    helping.key(Key::Char('?'));
    let account_of_suspect = at_a_suspect();
    let mut suspect = at_a_suspect();
    suspect.key(Key::Enter);
    models.extend([filtering, opened, helping, account_of_suspect, suspect]);
    for model in &models {
        for columns in (0..12).chain([40, 79, 80, 99, 100, 101, 300]) {
            for lines in (0..12).chain([24, 100]) {
                screen(model, columns, lines);
            }
        }
    }
}

#[test]
fn the_cursor_stays_on_a_short_screen() {
    let mut model = Model::new(["a:1".to_owned()]);
    let accounts = (0..100).map(|n| account(&format!("n{n:02}"), 1000 - n));
    model.poll(answer(0, 1, accounts.collect()));
    for _ in 0..60 {
        model.key(Key::Down);
        let lines = screen(&model, 80, 10);
        let marked: Vec<&String> = lines.iter().filter(|line| line.starts_with("> ")).collect();
        assert_eq!(marked.len(), 1, "{lines:#?}");
    }
    assert!(
        screen(&model, 80, 10)
            .iter()
            .any(|line| line.starts_with("> n60 "))
    );
}

#[test]
fn an_opened_account() {
    let mut model = model();
    model.key(Key::Enter);
    let wide = screen(&model, 120, 20).join("\n");
    for text in [
        "shop (service) in 127.0.0.1:9464",
        "over  door shut  live 110.0 ± 11.0 MiB  limit 100 MiB  110%",
        "  reserve 12 MiB",
        "refused 12  would have been 0  deferred 0  turned away 34",
        "> CLASS",
        "com.acme.Class0",
        "  PRINCIPAL",
        "_unaccounted",
    ] {
        assert!(wide.contains(text), "{text}: {wide}");
    }
    let narrow = screen(&model, 60, 20).join("\n");
    assert!(narrow.contains("com.acme.Class0") && !narrow.contains("PRINCIPAL"));
    model.key(Key::Tab);
    let narrow = screen(&model, 60, 20).join("\n");
    assert!(narrow.contains("_unaccounted") && !narrow.contains("com.acme"));
    model.poll(answer(0, 2, vec![]));
    assert!(
        screen(&model, 60, 20)
            .join("\n")
            .contains("this account is gone")
    );
}

/// A JVM whose class 1 of `shop` is suspected to leak, opened at that class.
fn at_a_suspect() -> Model {
    let mut shop = account("shop", 110 << 20);
    let bin = |upto, live_bytes| heapwarden_client::live::Bin {
        upto,
        live_bytes,
        live_objects: 1,
    };
    shop.classes[1].ages_seconds = vec![bin(Some(600), 1 << 20), bin(None, 4 << 20)];
    shop.classes[1].ages_collections = vec![bin(Some(3), 5 << 20)];
    shop.classes[1].sizes = vec![bin(Some(4096), 5 << 20)];
    shop.classes[1].generations = Some(37);
    let mut poll = answer(0, 1, vec![shop]);
    let leaks = r#"{"at":"","horizon_seconds":600,"undecided":null,"suspects":[
        {"account":"shop","class":"com.acme.Class1","growth_bytes_per_second":100352,
         "growth_standard_error":6246,"since_seconds":290,"window_seconds":600,"with":["byte[]\u001b"],
         "sites":[{"frames":["com.acme.Cart.add(Cart.java:41)","x.\u202eY.z()"],"share":0.93}],
         "exhausts":{"what":"limit","earliest_seconds":10900,"latest_seconds":17900}}],
        "growing":[{"account":"shop","class":"com.acme.Class2","why":"turnover",
         "growth_bytes_per_second":2048}]}"#;
    poll.outcome.as_mut().unwrap().leaks = Some(serde_json::from_str(leaks).unwrap());
    let mut model = Model::new(["127.0.0.1:9464".to_owned()]);
    model.poll(poll);
    model.key(Key::Enter);
    model.key(Key::Down);
    model
}

#[test]
fn a_suspect_is_marked_in_its_account_and_explained_when_it_is_opened() {
    let mut model = at_a_suspect();
    let account = screen(&model, 80, 24).join("\n");
    assert!(account.contains("\n>!com.acme.Class1 "), "{account}");
    model.key(Key::Up);
    let account = screen(&model, 80, 24).join("\n");
    assert!(account.contains("\n !com.acme.Class1 "), "{account}");
    assert!(account.contains("\n> com.acme.Class0 "), "{account}");
    model.key(Key::Down);
    model.key(Key::Enter);
    for columns in [80, 120] {
        let text = screen(&model, columns, 24).join("\n");
        for expected in [
            "com.acme.Class1 of shop in 127.0.0.1:9464",
            "  generations 37",
            "suspected to leak for 4 min: grows by 98.0 ± 6.1 KiB/s over 10 min",
            "limit full in 3 h to 5 h",
            r"with it grow byte[]\u{1b}",
            " 93%  com.acme.Cart.add(Cart.java:41)",
            r"      x.\u{202e}Y.z()",
            "LIVE BY AGE",
            "  to    10 min     1 MiB  ###",
            "         more     4 MiB  ############",
            "LIVE BY SIZE OF AN OBJECT",
            "  to     4 KiB     5 MiB  ",
            "LIVE BY COLLECTIONS SURVIVED",
        ] {
            assert!(text.contains(expected), "{expected}:\n{text}");
        }
    }
    model.key(Key::Down);
    let text = screen(&model, 80, 24).join("\n");
    assert!(
        text.contains("grows by +2 KiB/s: turnover: old instances die too"),
        "{text}"
    );
    assert!(
        text.contains("ages and sizes are known from the next collection"),
        "{text}"
    );
    model.key(Key::Down);
    assert!(
        screen(&model, 80, 24)
            .join("\n")
            .contains("not suspected to leak")
    );
    model.poll(answer(0, 2, vec![]));
    let text = screen(&model, 80, 24).join("\n");
    assert!(text.contains("this class is not listed now"), "{text}");
}

#[test]
fn many_jvms_leave_room_for_accounts() {
    let mut model = Model::new((0..40).map(|n| format!("app{n}:9464")));
    model.poll(answer(0, 1, vec![account("shop", 5)]));
    let lines = screen(&model, 100, 24);
    assert!(
        lines[6].starts_with("and 35 more JVMs, 0 of them down"),
        "{lines:#?}"
    );
    assert!(lines[8].contains("shop"), "{lines:#?}");
}

#[test]
fn hostile_names_drive_nothing() {
    let mut model = Model::new(["a:1".to_owned()]);
    let name = "\u{1b}[2J\u{202e}価".repeat(50);
    let mut hostile = account(&name, u64::MAX);
    hostile.kind = name.clone().into();
    hostile.classes[0].class = name.clone().into();
    hostile.principals[0].name = name.clone().into();
    model.poll(answer(0, 1, vec![hostile]));
    for opened in [false, true] {
        if opened {
            model.key(Key::Enter);
        }
        for columns in [20, 80, 200] {
            let text = screen(&model, columns, 24).join("\n");
            assert!(
                !text
                    .chars()
                    .any(|one| one != '\n' && heapwarden_terminal::printable::is_hidden(one)),
                "{text}"
            );
        }
    }
}

#[test]
fn without_colours_the_state_is_still_told() {
    let model = model();
    let mut terminal = Terminal::new(TestBackend::new(120, 16)).unwrap();
    for is_coloured in [true, false] {
        terminal.clear().unwrap();
        terminal
            .draw(|frame| {
                draw(frame, &model, Palette::new(is_coloured));
            })
            .unwrap();
        let cells = terminal.backend().buffer().content();
        let any = cells
            .iter()
            .any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
        assert_eq!(any, is_coloured);
        let text: String = cells.iter().map(|cell| cell.symbol()).collect();
        assert!(text.contains(" over ") && text.contains("DOWN"));
    }
}
