//! The table of the JVMs of this machine.

use std::io::{self, Write};

use super::listing::Asked;
use heapwarden_client::live::State;
use heapwarden_terminal::printable;
use heapwarden_terminal::table::{Align, Grid, amount};

/// Widest name of a program or a version, in columns.
const MAX_NAME_COLUMNS: usize = 40;
const TITLES: [&str; 8] = [
    "PID", "JVM", "JDK", "ADDRESS", "HEAP", "MODE", "ACCOUNTS", "OVER",
];

/// One line for each JVM.
pub(super) fn write(found: &[Asked], out: &mut dyn Write) -> io::Result<()> {
    let mut grid = Grid::new(TITLES.map(|title| (title, Align::Left)));
    found.iter().for_each(|one| grid.row(cells(one)));
    grid.write(0, out)
}

fn cells(one: &Asked) -> [String; TITLES.len()] {
    let none = || "-".to_owned();
    let pid = one.pid().map_or_else(none, |pid| pid.to_string());
    let address = (one.target.address.as_ref()).map_or_else(none, ToString::to_string);
    let given = |text: &str| match text {
        "" => none(),
        text => printable::fitted_name(text, MAX_NAME_COLUMNS).into_owned(),
    };
    let jvm = one.jvm();
    let (name, version) = (given(&jvm.name), given(&jvm.version));
    let Ok(answer) = &one.answer else {
        let unread = "not read".to_owned();
        return [pid, name, version, address, unread, none(), none(), none()];
    };
    let accounts = &answer.document;
    let heap = &accounts.heap;
    let all = accounts.accounts.len() as u64 + accounts.accounts_omitted;
    let over = (accounts.accounts.iter()).filter(|account| account.state == State::Over);
    [
        pid,
        name,
        version,
        address,
        format!(
            "{} of {}",
            amount::bytes(heap.used_after_gc_bytes),
            amount::bytes(heap.max_bytes)
        ),
        given(&accounts.policy.mode),
        amount::count(all),
        amount::count(over.count() as u64),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::LocalAgent;
    use crate::targets::{Answer, Target};

    fn local(pid: u32, program: &str) -> LocalAgent {
        LocalAgent {
            pid,
            address: None,
            program: program.to_owned(),
            version: "17.0.15".to_owned(),
        }
    }

    #[test]
    fn each_jvm_has_a_line_whether_it_answers_or_not() {
        let text = r#"{"jvm":{"pid":1,"name":"com.acme.Shop","version":"21.0.5+11"},
            "heap":{"used_after_gc_bytes":67108864,"max_bytes":268435456},
            "policy":{"mode":"enforce"},
            "accounts":[{"name":"a","state":"over"},{"name":"b","state":"open"}]}"#;
        let mut contained = Asked::at("127.0.0.1:9464", Ok(Answer::of(text, None)));
        contained.target.local = Some(local(4711, "java"));
        let older = Asked::at("9465", Ok(Answer::of(r#"{"accounts":[]}"#, None)));
        let silent = Asked {
            target: Target {
                address: None,
                local: Some(local(12, "\u{1b}.Main")),
            },
            answer: Err("x".into()),
        };
        let mut out = Vec::new();
        write(&[contained, older, silent], &mut out).unwrap();
        let expected = "\
PID   JVM            JDK        ADDRESS         HEAP               MODE     ACCOUNTS  OVER
4711  com.acme.Shop  21.0.5+11  127.0.0.1:9464  64 MiB of 256 MiB  enforce  2         1
-     -              -          127.0.0.1:9465  0 B of 0 B         -        0         0
12    \\u{1b}.Main    17.0.15    -               not read           -        -         -
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
