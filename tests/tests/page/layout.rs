//! The layout of each view at three widths, in light and dark, against a saved description: where the named parts are.
//!
//! Pictures would differ by fonts, figures and versions of the browser. Boxes say what a reader would notice: a part
//! that is missing, has no size, leaves the window, overlaps its neighbour, stands in another order, or is far from
//! where it was. `HEAPWARDEN_TEST_LAYOUT=write` writes the description anew.

use std::fs;

use heapwarden_tests::artifacts;
use heapwarden_tests::browser::Browser;
use serde_json::{Map, Value, json};

use crate::files::two_snapshots;
use crate::{show, ui};

const WIDTHS: [u32; 3] = [390, 820, 1440];
const HEIGHT: u32 = 900;
const REFERENCE: &str = "tests/tests/page/layout.json";

/// Views by name: what follows the address, and how the heading begins.
const VIEWS: [(&str, &str, &str); 6] = [
    ("overview", "#/overview", "Overview"),
    ("account", "#/account/shop", "Account shop"),
    (
        "class",
        "#/class/shop/com.acme.generated.Class00007",
        "Class com.acme",
    ),
    ("flames", "#/flames", "Flames"),
    (
        "history",
        "#/history?old=source%3A0&new=source%3A1",
        "History",
    ),
    (
        "difference",
        "#/flames?old=source%3A0&new=source%3A1",
        "Flames: the difference",
    ),
];

/// The named parts with their boxes: what has a role, a label or a class of its own. In whole pixels of the page.
const PARTS: &str = "\
    const names = new Map(); \
    const parts = []; \
    const add = (name, element) => { \
        const box = element.getBoundingClientRect(); \
        const nth = names.get(name) ?? 0; names.set(name, nth + 1); \
        parts.push([nth === 0 ? name : `${name} ${nth}`, [box.left + scrollX, box.top + scrollY, box.width, box.height].map(Math.round)]); \
    }; \
    for (const element of document.querySelectorAll('header, .brand, nav, #controls, h1, #told, section, .figures, .fields, .chart-room, .table, .bar-of-table, .scroll, .icicle, footer')) { \
        const label = element.getAttribute('aria-label') ?? ''; \
        add([element.id || element.classList[0] || element.tagName.toLowerCase(), label].join(' ').trim(), element); \
    } \
    return parts;";

/// Changes of the style sheet that a reader would notice.
const MUTATIONS: [(&str, &str, &str); 6] = [
    (
        "a part vanishes",
        "overview",
        ".figures { display: none !important; }",
    ),
    (
        "a part has no height",
        "flames",
        ".icicle { height: 0 !important; overflow: hidden; }",
    ),
    (
        "a part overlaps the one above",
        "overview",
        "section { margin-top: -90px; }",
    ),
    (
        "the navigation covers the heading",
        "account",
        "nav { position: relative; top: 110px; }",
    ),
    (
        "a table is half as wide",
        "account",
        ".scroll { width: 50%; }",
    ),
    (
        "a part moves far",
        "overview",
        "footer { position: relative; top: 420px; }",
    ),
];
/// Other fonts, which are no change of the layout.
const FONTS: [&str; 2] = [
    "body { font-family: monospace; }",
    "body { font-family: serif; font-size: 16px; }",
];

type Box = [f64; 4];

fn parts(browser: &Browser) -> Vec<(String, Box)> {
    let found = browser.value(PARTS);
    serde_json::from_value(found).expect("names with boxes")
}

/// Shows a view, and waits until it has drawn what it shows.
fn open(browser: &Browser, own: &str, (_, address, heading): (&str, &str, &str)) {
    browser.open("about:blank");
    show(browser, &format!("{own}/{address}"), heading);
    let drawn = match heading {
        "History" => {
            "return document.querySelector('table[aria-label=\"Changes by account\"] tbody tr') !== null"
        }
        _ if heading.starts_with("Flames") => "return document.querySelector('.frame') !== null",
        _ => "return document.querySelector('main section') !== null",
    };
    browser.until(drawn);
}

/// Checks the parts of a view by themselves and against the saved ones, and returns a sentence for each fault.
fn faults(parts: &[(String, Box)], saved: &[(String, Box)], width: u32) -> Vec<String> {
    let mut faults = Vec::new();
    let width = f64::from(width);
    let names =
        |of: &[(String, Box)]| -> Vec<String> { of.iter().map(|one| one.0.clone()).collect() };
    if names(parts) != names(saved) {
        faults.push(format!("parts {:?}, not {:?}", names(parts), names(saved)));
        return faults;
    }
    // Other fonts change heights, and so where all that follows begins.
    let height = |of: &[(String, Box)]| {
        of.iter()
            .fold(1.0, |most: f64, (_, [_, y, _, h])| most.max(y + h))
    };
    let (page, saved_page) = (height(parts), height(saved));
    if (page / saved_page - 1.0).abs() > 0.3 {
        faults.push(format!("the page is {page} high, not {saved_page}"));
    }
    for ((name, [x, y, w, h]), (_, [saved_x, saved_y, saved_w, saved_h])) in parts.iter().zip(saved)
    {
        if (*w < 1.0 || *h < 1.0) && *saved_w >= 1.0 && *saved_h >= 1.0 {
            faults.push(format!("{name} is not to be seen"));
        }
        // Texts that wrap make a part higher, but not by so much.
        if *saved_h > 40.0 && !(0.4..2.5).contains(&(h / saved_h)) {
            faults.push(format!("{name} is {h} high, not {saved_h}"));
        }
        if *x < -1.0 || x + w > width + 1.0 {
            faults.push(format!("{name} leaves the window: {x} + {w}"));
        }
        // The head's parts are as wide as their texts.
        let is_block = !["brand", "nav", "controls"]
            .iter()
            .any(|of| name.starts_with(of));
        if is_block && ((x - saved_x).abs() > 0.06 * width || (w - saved_w).abs() > 0.1 * width) {
            faults.push(format!(
                "{name} is at {x}, {w} wide, not at {saved_x}, {saved_w} wide"
            ));
        }
        if (y / page - saved_y / saved_page).abs() > 0.08 {
            faults.push(format!(
                "{name} is at {y} of {page}, not at {saved_y} of {saved_page}"
            ));
        }
    }
    let overlap = |[x, y, w, h]: Box, [u, v, s, t]: Box| {
        let across = (x + w).min(u + s) - x.max(u);
        let down = (y + h).min(v + t) - y.max(v);
        (across > 2.0 && down > 2.0).then_some(across * down)
    };
    for (at, (name, one)) in parts.iter().enumerate() {
        for (place, (other_name, other)) in parts.iter().enumerate().skip(at + 1) {
            let did = overlap(saved[at].1, saved[place].1);
            if let Some(area) = overlap(*one, *other).filter(|_| did.is_none()) {
                faults.push(format!("{name} and {other_name} overlap by {area} pixels"));
            }
        }
    }
    faults
}

fn saved(reference: &Value, view: &str, width: u32) -> Vec<(String, Box)> {
    let found = reference[view][width.to_string()].clone();
    serde_json::from_value(found).unwrap_or_else(|error| panic!("{view}, {width}: {error}"))
}

/// Adds a rule to the style sheet.
fn restyle(browser: &Browser, rules: &str) {
    let rules: Vec<&str> = rules.split_inclusive('}').map(str::trim).collect();
    for rule in rules {
        let rule = json!(rule);
        browser.value(&format!(
            "const sheet = document.styleSheets[0]; sheet.insertRule({rule}, sheet.cssRules.length); dispatchEvent(new Event('resize')); return null"
        ));
    }
}

#[test]
fn each_view_keeps_its_layout_at_three_widths_in_light_and_dark() {
    let (_folder, files) = two_snapshots();
    let (_process, own) = ui(&[&files[0], &files[1]]);
    let browser = Browser::start();
    let path = artifacts::repository().join(REFERENCE);
    let writes = std::env::var_os("HEAPWARDEN_TEST_LAYOUT").is_some_and(|what| what == "write");
    let mut reference: Value = match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).expect("JSON"),
        Err(_) if writes => json!({}),
        Err(error) => panic!("{}: {error}", path.display()),
    };
    if writes {
        let mut all = Map::new();
        for view in VIEWS {
            let mut widths = Map::new();
            for width in WIDTHS {
                browser.resize(width, HEIGHT);
                open(&browser, &own, view);
                widths.insert(width.to_string(), json!(parts(&browser)));
            }
            all.insert(view.0.to_owned(), widths.into());
        }
        reference = all.into();
        let text = serde_json::to_string(&reference).expect("JSON");
        // A part in each line.
        let text = text.replace("]],[", "]],\n[").replace("\":[[", "\":[\n[");
        fs::write(&path, text + "\n").expect("writable");
    }
    for view in VIEWS {
        for width in WIDTHS {
            browser.resize(width, HEIGHT);
            open(&browser, &own, view);
            let mut grounds = Vec::new();
            for scheme in ["light", "dark"] {
                browser.prefer(scheme);
                let faults = faults(&parts(&browser), &saved(&reference, view.0, width), width);
                assert!(
                    faults.is_empty(),
                    "{}, {width}, {scheme}: {faults:#?}",
                    view.0
                );
                grounds.push(browser.value("const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]"));
            }
            assert_ne!(grounds[0], grounds[1], "dark is not light");
        }
    }
    browser.prefer("light");
    let of = |name: &str| *VIEWS.iter().find(|view| view.0 == name).expect("a view");
    for (at, (what, view, rules)) in MUTATIONS.into_iter().enumerate() {
        let width = WIDTHS[at % WIDTHS.len()];
        browser.resize(width, HEIGHT);
        open(&browser, &own, of(view));
        restyle(&browser, rules);
        let faults = faults(&parts(&browser), &saved(&reference, view, width), width);
        assert!(!faults.is_empty(), "{what} at {width} is not noticed");
        println!("{what} at {width}: {}", faults[0]);
    }
    for (at, rules) in FONTS.into_iter().enumerate() {
        for (place, view) in VIEWS.into_iter().enumerate() {
            let width = WIDTHS[(at + place) % WIDTHS.len()];
            browser.resize(width, HEIGHT);
            open(&browser, &own, view);
            restyle(&browser, rules);
            let faults = faults(&parts(&browser), &saved(&reference, view.0, width), width);
            assert!(
                faults.is_empty(),
                "{rules}, {}, {width}: {faults:#?}",
                view.0
            );
        }
    }
}
