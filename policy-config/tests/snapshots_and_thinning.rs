//! `[snapshots]` and `[[sampling.thin]]`: what is accepted, and what a user reads about mistakes.

use std::path::Path;
use std::time::Duration;

use policy_config::{Policy, parse, thin_rule};

fn lines(text: &str) -> Vec<String> {
    let parsed = parse(text);
    let rejected = parsed.diagnostics.iter().any(|one| one.is_error());
    assert_eq!(parsed.policy.is_none(), rejected, "{text}");
    let lines = parsed.diagnostics.iter().map(|one| one.render("p", text));
    lines.collect()
}

#[track_caller]
fn assert_lines(text: &str, expected: &[&str]) {
    assert_eq!(lines(text), expected, "{text}");
}

fn policy(text: &str) -> Policy {
    let parsed = parse(text);
    assert_eq!(parsed.diagnostics, [], "{text}");
    parsed.policy.expect("no diagnostics")
}

const CONTRACT: &str = "[sampling]\ninterval = \"64KiB\"\n\n[[sampling.thin]]\nclass = \"java.lang.*\"\n\
    keep = \"5%\"\n\n[snapshots]\ndirectory = \"/var/lib/heapwarden\"\nevery = \"1h\"\nkeep = 48\n\
    at-exit = true\n";

#[test]
fn the_contract_example_is_read_and_what_it_leaves_out_has_the_same_defaults() {
    let whole = policy(CONTRACT);
    let snapshots = whole.snapshots.clone().expect("it is there");
    assert_eq!(snapshots.directory, Path::new("/var/lib/heapwarden"));
    assert_eq!(snapshots.every, Some(Duration::from_secs(3600)));
    assert_eq!((snapshots.keep, snapshots.at_exit), (48, true));
    assert_eq!(whole.sampling.thin.len(), 1);
    assert_eq!(whole.sampling.thin[0].keep_percent, 5.0);
    let short = policy("snapshots.directory = \"/var/lib/heapwarden\"");
    assert_eq!(short.snapshots, whole.snapshots);
    assert_eq!(policy("").snapshots, None);
    assert_eq!(policy("").sampling.thin, []);
    let off = policy("snapshots = { directory = \"/a\", every = \"off\" }");
    assert_eq!(off.snapshots.map(|one| one.every), Some(None));
}

#[test]
fn the_first_rule_that_matches_a_class_decides() {
    let thin = policy(
        "[[sampling.thin]]\nclass = \"java.lang.String\"\nkeep = \"50%\"\n\
         [[sampling.thin]]\nclass = \"java.lang.*\"\nkeep = \"5%\"\n\
         [[sampling.thin]]\nclass = \"byte[]\"\nkeep = \"0.1%\"\n",
    );
    let rules = &thin.sampling.thin;
    for (class, rule) in [
        ("java.lang.String", Some(0)),
        ("java.lang.String[]", Some(1)),
        ("java.lang.ref.WeakReference", Some(1)),
        ("byte[]", Some(2)),
        ("byte[][]", None),
        ("com.acme.Shop", None),
    ] {
        assert_eq!(thin_rule(rules, class), rule, "{class}");
    }
}

#[test]
fn mistakes_in_snapshots_have_a_place_and_a_hint() {
    assert_lines(
        "[snapshots]\nevery = \"1h\"\n",
        &[
            "p:1:1: [snapshots] needs a directory (add directory = \"/var/lib/heapwarden\": a folder that \
           the JVM's user may write to)",
        ],
    );
    assert_lines(
        "[snapshots]\ndirectory = \"snapshots\"\n",
        &[
            "p:2:13: `snapshots` is not an absolute path (begin it with /: the agent does not change the \
           JVM's working folder, but its start scripts may)",
        ],
    );
    assert_lines(
        "[snapshots]\ndirectory = \"/a\"\nevery = \"hourly\"\nkeep = 0\nat-exit = \"yes\"\n",
        &[
            "p:3:9: `hourly` is not a duration (write a number and a unit, such as \"10m\", \"1h\" or \
             \"1d\", or \"off\")",
            "p:4:8: `keep` is out of range (write a whole number from 1 to 1000)",
            "p:5:11: `at-exit` must be true or false, not a string (write at-exit = true or at-exit = \
             false, without quotes)",
        ],
    );
    assert_lines(
        "[snapshots]\ndirectory = \"/a\"\nevery = \"40d\"\n",
        &[
            "p:3:9: `every` must be from 1s to 31d (write a number and a unit, such as \"10m\", \"1h\" or \
             \"1d\", or \"off\")",
        ],
    );
    assert_lines(
        "[snapshots]\ndirectory = \"/a\"\nevery = \"off\"\nat-exit = false\n",
        &[
            "p:1:1: warning: with every = \"off\" and at-exit = false no snapshot is ever written (remove \
           the table, or one of the two)",
        ],
    );
    assert_lines(
        "[snapshots]\ndirectory = \"/a\"\nevry = \"1h\"\n",
        &["p:3:1: unknown key `evry` in [snapshots] (did you mean `every`?)"],
    );
}

#[test]
fn mistakes_in_thinning_have_a_place_and_a_hint() {
    assert_lines(
        "[[sampling.thin]]\nkeep = \"5%\"\n[[sampling.thin]]\nclass = \"java.lang.*\"\n",
        &[
            "p:1:1: [[sampling.thin]] needs a class (add class = \"java.lang.*\")",
            "p:3:1: [[sampling.thin]] needs a share to keep (add keep = \"5%\")",
        ],
    );
    assert_lines(
        "[[sampling.thin]]\nclass = \"\"\nkeep = \"0%\"\n",
        &[
            "p:2:9: the glob is empty (\"*\" matches every name)",
            "p:3:8: `keep` must be from 0.1% to 100% (write the share of samples to keep, such as \"5%\")",
        ],
    );
    assert_lines(
        "[[sampling.thin]]\nclass = \"java/lang/*\"\nkeep = \"5\"\n",
        &[
            "p:2:9: warning: `java/lang/*` has a slash in it (write class names with dots, as in Java \
             source: this matches no class)",
            "p:3:8: `5` is not a percentage (write the share of samples to keep, such as \"5%\")",
        ],
    );
    assert_lines(
        "[[sampling.thin]]\nclass = \"*\"\nkeep = \"5%\"\n[[sampling.thin]]\nclass = \"a\"\nkeep = \"9%\"\n",
        &[
            "p:4:1: warning: `a` never applies: `*` stands before it, and the first that matches a class \
           decides (remove it, or put it first)",
        ],
    );
    let many = "[[sampling.thin]]\nclass = \"a\"\nkeep = \"5%\"\n".repeat(33);
    let told = "33 [[sampling.thin]] tables are more than the 32 allowed";
    assert!(lines(&many).iter().any(|line| line.contains(told)));
}

#[test]
fn a_reload_tells_what_changed() {
    let old = policy(CONTRACT);
    let new = policy(
        &CONTRACT
            .replace("5%", "10%")
            .replace("\"1h\"", "\"10m\"")
            .replace("keep = 48", "keep = 9"),
    );
    assert_eq!(
        Policy::diff(&old, &new),
        [
            "samples kept of class \"java.lang.*\" 5% -> 10%",
            "snapshots every 1h -> 10m",
            "snapshots keep 48 -> 9"
        ]
    );
    assert_eq!(
        Policy::diff(&old, &policy("[sampling]\ninterval = \"64KiB\"")),
        [
            "samples kept of class \"java.lang.*\" 5% -> all",
            "snapshots removed"
        ]
    );
    assert_eq!(
        Policy::diff(&policy(""), &policy("snapshots.directory = \"/a\"")),
        ["snapshots added (every 1h, in /a)"]
    );
    let two = "[[sampling.thin]]\nclass = \"a\"\nkeep = \"5%\"\n[[sampling.thin]]\nclass = \"b*\"\n\
               keep = \"5%\"\n";
    let turned = two
        .replace("\"a\"", "\"b*\"")
        .replacen("\"b*\"\nkeep = \"5%\"\n", "@", 1);
    let turned = turned
        .replace("\"b*\"", "\"a\"")
        .replace('@', "\"b*\"\nkeep = \"5%\"\n");
    assert_eq!(
        Policy::diff(&policy(two), &policy(&turned)),
        ["the order of the [[sampling.thin]] tables changed"]
    );
}
