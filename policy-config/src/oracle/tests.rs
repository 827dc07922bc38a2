//! The fuzz target's corpus and generated files, on the stable toolchain.

use std::path::Path;

use proptest::prelude::*;

use super::check;

#[test]
fn the_fuzz_corpus_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/corpus/policy");
    let mut inputs = 0;
    for entry in std::fs::read_dir(&corpus).expect("the committed corpus") {
        let path = entry.expect("a readable folder").path();
        check(&std::fs::read(&path).expect("a readable input"));
        inputs += 1;
    }
    assert!(inputs >= 20, "only {inputs} inputs in {}", corpus.display());
}

/// Lines that make or break a policy, so that random files get past the TOML reader.
fn line() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        r#"'(64KiB|1MiB|2MB|25%|50%|none|exact|0|9{25}GiB|self|caller|oom|full|off|auto|0%|interrupt|heap-is-short)'"#,
        r#"'(a|b|\*|a\.b|a\.b\.\*|a\*|_x|/a|h:1|tenant-\?)'"#,
        r#"\["(a|a\.b|a\.\*|\*)"(, ?"(b|a\.b\.\*)")?\]"#,
        r#"\["(a\.C#m|C\$D#m|a#m)"(, ?"(a\.C#m|a\.C#n)")?\]"#,
        r#"\["(DELETE \*|\* /a|\* \*|get /\*)"(, ?"(delete \*|GET a|X)")?\]"#,
        r#"(4096|503|429|-1|1\.5|true|2024-01-01|\[\]|\{ *\}|\{x=1\}|""|'''|"\\u202e")"#,
    ];
    let key = prop::sample::select(vec![
        "name",
        "service",
        "packages",
        "scope",
        "charge",
        "soft-limit",
        "direct-limit",
        "limit",
        "throw",
        "door",
        "refuse-with",
        "status",
        "priority",
        "tasks",
        "when",
        "admit",
        "listen",
        "listen-strict",
        "interval",
        "principals",
        "max-tracked",
        "mode",
        "evidence-budget",
        "cpu-budget",
        "mask",
        "reserve",
        "limits",
        "a.b",
        "account",
    ]);
    let header = prop::sample::select(vec![
        "[[account]]",
        "[agent]",
        "[sampling]",
        "[enforcement]",
        "[account]",
        "[x]",
        "[",
        "# ä",
    ]);
    prop_oneof![
        3 => (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
        1 => header.prop_map(str::to_owned),
    ]
}

proptest! {
    #[test]
    fn plausible_files_hold(lines in prop::collection::vec(line(), 0..24)) {
        check(lines.join("\n").as_bytes());
    }

    #[test]
    fn arbitrary_bytes_hold(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes);
    }
}
