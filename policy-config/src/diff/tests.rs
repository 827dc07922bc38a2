//! Tests of the lines that a reload logs.

use crate::{Policy, parse};

fn policy(text: &str) -> Policy {
    let parsed = parse(text);
    parsed
        .policy
        .unwrap_or_else(|| panic!("{:?}", parsed.diagnostics))
}

fn diff(old: &str, new: &str) -> Vec<String> {
    Policy::diff(&policy(old), &policy(new))
}

#[test]
fn nothing_changed_says_nothing() {
    let text = "[[account]]\nservice = '*'\n[[account]]\nservice = '*'\nlimit = '1MiB'";
    assert!(diff(text, text).is_empty());
    assert!(diff("", "[agent]\nlisten = '127.0.0.1:9464'").is_empty());
}

#[test]
fn every_setting_has_its_line() {
    let lines = diff(
        "[[account]]\nname = 'shop'\nservice = '/shop'\nlimit = '256MiB'",
        "[agent]\nlisten = 'off'\nlisten-strict = true\n\
         [sampling]\ninterval = 'exact'\nprincipals = 'payer'\nmax-tracked = 2000\ncpu-budget = 'none'\n\
         [enforcement]\nmode = 'enforce'\nevidence-budget = '2.5%'\nmask = '1MiB'\nreserve = '0%'\n\
         when = 'heap-is-short'\n\
         [exact]\naccounts = true\ncontexts = ['com.acme.*', 'org.lib']\nbytecodes = true\n\
         [[account]]\nname = 'shop'\nservice = '/shop*'\nlimit = '50%'\n\
         direct-limit = '64MiB'\nsoft-limit = '1.5GiB'\nthrow = 'error'\ndoor = ['a.C#m', 'b.D#n']\nrefuse-with = 'exception'\nstatus = 429\n\
         priority = 2\ntasks = 'interrupt'\ninterrupt-through = ['a.*']\n\
         never-interrupt = ['b', 'c', 'd', 'e', 'f']\nwork = ['a.C#m', 'a.b.*']",
    );
    assert_eq!(
        lines,
        [
            "listen 127.0.0.1:9464 -> off (when the JVM is started again)",
            "listen-strict false -> true (when the JVM is started again)",
            "sampling interval 64KiB -> exact",
            "sampling principals full -> payer",
            "sampling max-tracked 1000000 -> 2000 (when the JVM is started again)",
            "sampling cpu-budget 0.5% -> none",
            "exact accounts false -> true",
            "exact contexts none -> com.acme.*, org.lib",
            "exact bytecodes false -> true",
            "enforcement mode observe -> enforce (from now on accounts over their limits are refused)",
            "enforcement when always -> heap-is-short (from now on limits hold only while the heap is short)",
            "enforcement evidence-budget 5% -> 2.5%",
            "enforcement mask 8MiB -> 1MiB",
            "enforcement reserve auto -> 0%",
            "account shop: service \"/shop\" -> service \"/shop*\"",
            "account shop: soft-limit none -> 1.5GiB (added)",
            "account shop: limit 256MiB -> 50% (of the maximum heap)",
            "account shop: direct-limit none -> 64MiB (added)",
            "account shop: throw oom -> error",
            "account shop: door auto -> a.C#m, b.D#n",
            "account shop: refuse-with as throw -> exception",
            "account shop: status 503 -> 429",
            "account shop: priority 1 -> 2",
            "account shop: tasks spare -> interrupt",
            "account shop: interrupt-through none -> a.*",
            "account shop: never-interrupt none -> b, c, d, e and 1 more",
            "account shop: work none -> a.C#m, a.b.*",
        ]
    );
}

/// The agent samples finer for small limits only where the policy names no interval: to name the default is
/// an edit that takes effect.
#[test]
fn an_interval_that_is_named_is_an_edit_even_if_it_is_the_default() {
    let named = "[sampling]\ninterval = '64KiB'";
    assert_eq!(
        diff("", named),
        ["sampling interval 64KiB, no finer for small limits"]
    );
    assert_eq!(
        diff(named, ""),
        ["sampling interval 64KiB, finer for small limits"]
    );
}

#[test]
fn sites_come_and_go_in_any_order() {
    let sites = |globs: &str| format!("[leaks]\nsites = [{globs}]");
    assert!(diff(&sites("'a', 'b'"), &sites("'b', 'a'")).is_empty());
    assert!(diff("", &sites("")).is_empty());
    assert_eq!(
        diff(&sites("'a', 'b'"), &sites("'b', 'tenant-*'")),
        [
            "sites of a: no stacks from now on",
            "sites of tenant-*: stacks are taken from now on",
        ]
    );
}

#[test]
fn acknowledged_leaks_come_and_go_in_any_order() {
    let entry = |class: &str| format!("[[leak]]\naccount = 'shop'\nclass = '{class}'\n");
    let both = entry("a.B") + &entry("c.D");
    let turned = entry("c.D") + &entry("a.B");
    assert!(diff(&both, &turned).is_empty());
    assert_eq!(
        diff(&both, &(entry("c.D") + &entry("e.*"))),
        [
            "leak a.B of account shop: no longer acknowledged",
            "leak e.* of account shop: acknowledged",
        ]
    );
}

#[test]
fn a_limit_says_which_way_it_went() {
    let account =
        |limit: &str| format!("[[account]]\nname = 'a'\nservice = '/a'\nlimit = '{limit}'");
    for (old, new, line) in [
        ("2MiB", "1MiB", "limit 2MiB -> 1MiB (lowered)"),
        ("1MiB", "1.5MiB", "limit 1MiB -> 1.5MiB (raised)"),
        ("10%", "5%", "limit 10% -> 5% (lowered)"),
        ("10%", "12.5%", "limit 10% -> 12.5% (raised)"),
        ("1MiB", "none", "limit 1MiB -> none (removed)"),
        ("10%", "none", "limit 10% -> none (removed)"),
        ("none", "1MiB", "limit none -> 1MiB (added)"),
        (
            "none",
            "5%",
            "limit none -> 5% (added, of the maximum heap)",
        ),
        ("1MiB", "5%", "limit 1MiB -> 5% (of the maximum heap)"),
        (
            "5%",
            "1MiB",
            "limit 5% -> 1MiB (no longer a share of the heap)",
        ),
    ] {
        let lines = diff(&account(old), &account(new));
        assert_eq!(lines, [format!("account a: {line}")]);
    }
    // The same figure written otherwise, or left out, is no change.
    assert!(diff(&account("1MiB"), &account("1024KiB")).is_empty());
    let without = "[[account]]\nname = 'a'\nservice = '/a'";
    assert!(diff(&account("none"), without).is_empty());
}

#[test]
fn the_brake_is_said_to_be_one() {
    assert_eq!(
        diff("[enforcement]\nmode = 'enforce'", ""),
        ["enforcement mode enforce -> observe (from now on nothing is refused)"]
    );
}

#[test]
fn a_new_name_for_the_same_is_a_renaming() {
    let account = |name: &str, limit: &str| {
        format!("[[account]]\nname = '{name}'\nservice = '/shop'\nlimit = '{limit}'\n")
    };
    assert_eq!(
        diff(&account("shop", "1MiB"), &account("store", "2MiB")),
        [
            "account shop renamed to store",
            "account store: limit 1MiB -> 2MiB (raised)"
        ]
    );
    // Which of two became the third?
    let packages = |name: &str, package: &str| {
        format!("[[account]]\nname = '{name}'\npackages = ['{package}']\n")
    };
    let two = account("a", "1MiB") + &account("b", "1MiB");
    let parsed = crate::parse(&two);
    assert!(parsed.policy.is_some(), "a warning, no error");
    assert_eq!(
        diff(&two, &account("c", "1MiB")),
        [
            "account a removed",
            "account b removed",
            "account c added (service \"/shop\", limit 1MiB)"
        ]
    );
    // Two names exchanged: each account stays, and what it matches changes.
    let exchanged = diff(
        &(packages("x", "a") + &packages("y", "b")),
        &(packages("y", "a") + &packages("x", "b")),
    );
    assert_eq!(
        exchanged,
        [
            "account y: packages b -> packages a",
            "account x: packages a -> packages b",
            "the order of the accounts changed"
        ]
    );
}

#[test]
fn accounts_come_and_go() {
    let lines = diff(
        "[[account]]\nservice = '/old'",
        "[[account]]\nname = 'xml'\npackages = ['a.b']\ncharge = 'caller'\n\
         [[account]]\nscope = 't-*'\nlimit = '64MiB'",
    );
    assert_eq!(
        lines,
        [
            "account service \"/old\" removed",
            "account xml added (packages a.b, callers pay)",
            "account scope \"t-*\" added (limit 64MiB)",
        ]
    );
}

#[test]
fn the_order_matters() {
    let one = "[[account]]\nservice = '/a'\n[[account]]\nservice = '/*'";
    let other = "[[account]]\nservice = '/*'\n[[account]]\nservice = '/a'";
    assert_eq!(diff(one, other), ["the order of the accounts changed"]);
    let more = format!("[[account]]\nservice = '/b'\n{one}");
    assert_eq!(diff(one, &more), ["account service \"/b\" added"]);
}

#[test]
fn a_name_is_not_taken_for_a_matcher() {
    let lines = diff(
        "[[account]]\nservice = '/a'",
        "[[account]]\nname = 'service \"/a\"'\nservice = '/a'",
    );
    assert_eq!(lines.len(), 2, "{lines:?}");
}

#[test]
fn packages_that_differ_beyond_the_cut_are_noticed() {
    let text =
        |last: &str| format!("[[account]]\nname = 'x'\npackages = ['a', 'b', 'c', 'd', '{last}']");
    assert_eq!(
        diff(&text("e"), &text("f")),
        ["account x: packages changed"]
    );
}

#[test]
fn what_the_door_lets_in_is_listed() {
    let text = |admit: &str| format!("[[account]]\nname = 'x'\nservice = '*'\n{admit}");
    let lines = diff(&text(""), &text("admit = ['delete *', '* /logout']"));
    assert_eq!(lines, ["account x: admit none -> DELETE *, * /logout"]);
    let same = diff(
        &text("admit = ['DELETE *']"),
        &text("admit = ['delete  *']"),
    );
    assert!(same.is_empty(), "{same:?}");
    let five = |last: &str| {
        text(&format!(
            "admit = ['* /a', '* /b', '* /c', '* /d', '* /{last}']"
        ))
    };
    assert_eq!(diff(&five("e"), &five("f")), ["account x: admit changed"]);
}

#[test]
fn a_flood_is_cut() {
    let many: String = (0..150)
        .map(|index| format!("[[account]]\nservice = '/{index}'\n"))
        .collect();
    let lines = diff("", &many);
    assert_eq!(lines.len(), 101);
    assert_eq!(lines[100], "50 more changes are not shown");
}
