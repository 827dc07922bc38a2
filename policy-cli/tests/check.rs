//! `heapwarden check` as a user runs it: the real binary, its exit code, its output.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

struct Run {
    code: i32,
    out: String,
    err: String,
}

fn heapwarden(arguments: &[&str], directory: &tempfile::TempDir) -> Run {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_heapwarden"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("the binary runs");
    Run {
        code: status.code().expect("no signal"),
        out: String::from_utf8(stdout).expect("UTF-8"),
        err: String::from_utf8(stderr).expect("UTF-8"),
    }
}

fn check(text: impl AsRef<[u8]>) -> Run {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("p.toml"), text).unwrap();
    heapwarden(&["check", "p.toml"], &directory)
}

#[track_caller]
fn assert_err(text: &str, expected: &str) {
    let run = check(text);
    assert_eq!(run.err, expected);
    assert_eq!((run.code, run.out.as_str()), (1, ""));
}

/// The policies that users copy for the servers they run.
#[test]
fn the_servers_policies_are_accepted() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/policies/servers");
    let mut policies = 0;
    for entry in std::fs::read_dir(folder).expect("the policies") {
        let path = entry.expect("a readable folder").path();
        let run = check(std::fs::read(&path).expect("a readable policy"));
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", path.display());
        policies += 1;
    }
    assert!(policies >= 6, "{policies}");
}

#[test]
fn an_accepted_policy_is_summed_up() {
    let run = check(
        r#"
        [enforcement]
        mode = "enforce"
        evidence-budget = "2.5%"
        [[account]]
        name = "shop"
        service = "/shop"
        soft-limit = "200MiB"
        limit = "256MiB"
        [[account]]
        service = "*"
        limit = "25%"
        direct-limit = "1GiB"
        throw = "error"
        [[account]]
        name = "xml"
        packages = ["org.apache.xerces.*"]
        charge = "caller"
        "#,
    );
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(run.err, "");
    assert_eq!(
        run.out,
        "\
p.toml: ok
  Publishes on http://127.0.0.1:9464/metrics.
  Samples once in 64KiB on average, less often where samples take over 0.5% of the CPU time.
  Turns new work away from accounts over their limits; refuses allocations beyond a reserve that the heap can give.
  Collections that it asks for may take 2.5% of the time.

  ACCOUNT     MATCHES                       SOFT LIMIT  LIMIT   WHEN OVER
  shop        service \"/shop\"               200MiB      256MiB  503, then oom
  (one each)  service \"*\"                   none        25%     503, then error; at most 1GiB off the heap
  xml         packages org.apache.xerces.*  none        none    callers pay
"
    );
}

#[test]
fn an_empty_policy_is_accepted() {
    let run = check("");
    assert_eq!(run.code, 0);
    assert!(
        run.out.contains("every service found gets one"),
        "{}",
        run.out
    );
}

#[test]
fn an_ambiguous_unit() {
    assert_err(
        "[[account]]\nservice = \"/shop\"\nlimit = \"256MB\"\n",
        "\
\x20 x the unit `MB` is ambiguous
   ,-[p.toml:3:9]
 2 | service = \"/shop\"
 3 | limit = \"256MB\"
   :         ^^^^^^^
   `----
  help: write MiB: sizes are in powers of 1024
p.toml: rejected, 1 error
",
    );
}

#[test]
fn a_mistyped_key() {
    assert_err(
        "[[account]]\nservice = \"/shop\"\nlimits = \"256MiB\"\n",
        "\
\x20 x unknown key `limits` in [[account]]
   ,-[p.toml:3:1]
 2 | service = \"/shop\"
 3 | limits = \"256MiB\"
   : ^^^^^^
   `----
  help: did you mean `limit`?
p.toml: rejected, 1 error
",
    );
}

#[test]
fn a_budget_beyond_its_bounds() {
    assert_err(
        "[enforcement]\nevidence-budget = \"60%\"\n",
        "\
\x20 x `evidence-budget` must be from 0.01% to 50%
   ,-[p.toml:2:19]
 1 | [enforcement]
 2 | evidence-budget = \"60%\"
   :                   ^^^^^
   `----
  help: write the share of wall time that collections for evidence may take, such as \"5%\"
p.toml: rejected, 1 error
",
    );
}

#[test]
fn a_duplicate_name_shows_both_places() {
    assert_err(
        "[[account]]\nname = \"a\"\nservice = \"/a\"\n[[account]]\nname = \"a\"\nservice = \"/b\"\n",
        "\
\x20 x the name `a` is already taken
   ,-[p.toml:5:8]
 1 | [[account]]
 2 | name = \"a\"
   :        ^|^
   :         `-- first given here
 3 | service = \"/a\"
 4 | [[account]]
 5 | name = \"a\"
   :        ^^^
 6 | service = \"/b\"
   `----
  help: choose another, or merge the two accounts
p.toml: rejected, 1 error
",
    );
}

#[test]
fn a_syntax_error_at_the_end_of_the_file() {
    assert_err(
        "[agent",
        "\
\x20 x unclosed table, expected `]`
   ,-[p.toml:1:7]
 1 | [agent
   :       ^
   `----
p.toml: rejected, 1 error
",
    );
}

#[test]
fn characters_are_counted_not_bytes() {
    assert_err(
        "[[account]]\nname = \"Bücher\" # ä\nservice = \"/ü\"\nlimit = \"ünf\"\n",
        "\
\x20 x `ünf` is not a size
   ,-[p.toml:4:9]
 3 | service = \"/ü\"
 4 | limit = \"ünf\"
   :         ^^^^^
   `----
  help: write a number and a unit, such as \"256MiB\", \"1.5GiB\" or \"4096B\"
p.toml: rejected, 1 error
",
    );
}

#[test]
fn a_warning_is_shown_and_accepted() {
    let run = check("[[account]]\nservice = '*'\n[[account]]\nservice = '/shop'\n");
    assert_eq!(run.code, 0);
    assert!(
        run.out.starts_with("p.toml: ok, 1 warning\n"),
        "{}",
        run.out
    );
    assert!(
        run.err.contains("no service ever gets to this account"),
        "{}",
        run.err
    );
}

#[test]
fn every_file_is_checked() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).unwrap();
    };
    file("bad.toml", "x = 1");
    file("good.toml", "");
    let run = heapwarden(
        &["check", "bad.toml", "missing.toml", "good.toml"],
        &directory,
    );
    assert_eq!(run.code, 1);
    assert!(
        run.err.contains("bad.toml: rejected, 1 error\n"),
        "{}",
        run.err
    );
    assert!(
        run.err.contains("missing.toml: cannot be read: "),
        "{}",
        run.err
    );
    assert!(run.out.starts_with("good.toml: ok\n"), "{}", run.out);
    let run = heapwarden(&["check", "--quiet", "good.toml"], &directory);
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "", ""));
}

#[test]
fn what_is_no_text_is_rejected() {
    let run = check(b"[agent]\nlisten = '\xff\xfe'\n");
    assert_eq!(run.code, 1);
    assert!(
        run.err.contains("the file is not UTF-8 text"),
        "{}",
        run.err
    );
    assert!(run.err.contains("p.toml:2:11"), "{}", run.err);
}

#[test]
fn nothing_in_a_file_drives_the_terminal() {
    let run = check("[agent]\nlisten = '\u{1b}[31mred'\n\"k\\u001b[2J\" = 1\n");
    assert_eq!(run.code, 1);
    assert!(!run.err.contains('\u{1b}'), "{:?}", run.err);
}

#[test]
fn an_endless_file_is_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let run = heapwarden(&["check", "/dev/zero"], &directory);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("larger than 1MiB"), "{}", run.err);
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [&["check"][..], &["chekc"], &["check", "--nope", "x"], &[]] {
        let run = heapwarden(arguments, &directory);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{arguments:?}");
        assert!(run.err.contains("Usage: heapwarden"), "{}", run.err);
    }
    let run = heapwarden(&["--version"], &directory);
    assert_eq!(run.code, 0);
    assert_eq!(
        run.out,
        format!("heapwarden {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("p.toml");
    std::fs::write(&path, "[[account]]\nservice = '*'\n").unwrap();
    // Far more output than a pipe holds.
    let mut child = Command::new(env!("CARGO_BIN_EXE_heapwarden"))
        .arg("check")
        .args(vec![&path; 2000])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}
