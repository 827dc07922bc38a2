//! The accounts as text.

use std::io::{self, Write};
use std::time::Duration;

use super::lines::{exact_line, heap_line, jvm_line, live_line, remarks};
use super::listing::{Asked, write_omitted};
use crate::targets::write_each;
use heapwarden_client::live::Accounts;
use heapwarden_terminal::table::{Column, Rates, Row, write_rows};

/// Most rows for one JVM; an agent lists at most ten thousand accounts.
const MAX_ROWS: usize = 1000;
/// Spaces before the rows of a JVM.
const INDENT: usize = 2;

/// Writes each JVM's heap and accounts to `out`, and to `err` why others could not be read.
pub(super) fn write(found: &[Asked], out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
    write_each(found, out, err, |one, address, answer, out| {
        writeln!(out, "{address}: {}", heap_line(&answer.document))?;
        if let Some(line) = jvm_line(&one.jvm()) {
            writeln!(out, "  {line}")?;
        }
        if let Some(line) = live_line(&answer.document.heap, Duration::ZERO) {
            writeln!(out, "  {line}")?;
        }
        if let Some(line) = answer.document.exact.as_ref().map(exact_line) {
            writeln!(out, "  {line}")?;
        }
        for remark in remarks(&answer.document, answer.not_ready.as_deref()) {
            writeln!(out, "  {remark}")?;
        }
        write_accounts(address, &answer.document, out)?;
        Ok(())
    })
}

fn write_accounts(address: &str, accounts: &Accounts, out: &mut dyn Write) -> io::Result<()> {
    let mut rows: Vec<Row<'_>> = accounts
        .accounts
        .iter()
        .map(|account| Row {
            jvm: 0,
            address,
            account,
            rates: Rates::default(),
            is_stale: false,
        })
        .collect();
    rows.sort_by(|a, b| Column::Live.compare(a, b, false));
    let omitted = accounts.accounts_omitted + rows.len().saturating_sub(MAX_ROWS) as u64;
    rows.truncate(MAX_ROWS);
    if !rows.is_empty() {
        write_rows(&Column::OF_ONE_READING, &rows, INDENT, out)?;
    }
    write_omitted(omitted, out)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::targets::Answer;
    use heapwarden_client::live::{Heap, Jvm};

    fn written(found: &[Asked]) -> (String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        write(found, &mut out, &mut err).unwrap();
        (
            String::from_utf8(out).unwrap(),
            String::from_utf8(err).unwrap(),
        )
    }

    const TEXT: &str = r#"{"heap":{"used_after_gc_bytes":67108864,"max_bytes":268435456,
        "gc_epoch":9},"sampling":{"interval_bytes":65536,"samples":90,"dropped":10},
        "policy":{"mode":"observe","last_error":"p.toml:1:1: unknown key `\u001b`"},
        "accounts":[{"name":"b","live_bytes":1},{"name":"a\u202e","kind":"service",
        "live_bytes":10485760,"standard_error_bytes":1048576,"charged_bytes":12582912,
        "limit_bytes":20971520,"state":"open","would_refuse_total":3,
        "admission_refusals_total":7,"live_objects":12,
        "usage":[{"resource":"heap","used":10485760},{"resource":"threads","used":5},{"resource":"direct","used":1024},{"resource":"native","used":2048}]}],
        "accounts_omitted":4}"#;

    #[test]
    fn a_jvm_with_everything_to_say() {
        let found = [Asked::at(
            "9464",
            Ok(Answer::of(TEXT, Some("no sampling\ncapability"))),
        )];
        let (out, err) = written(&found);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(
            lines[0],
            "127.0.0.1:9464: heap 64 MiB of 256 MiB after collection 9 (25%), observe, sampled \
             once in 64 KiB"
        );
        assert_eq!(lines[1], r"  keeps no accounts: no sampling\u{a}capability");
        assert!(
            lines[2].ends_with(r"p.toml:1:1: unknown key `\u{1b}`"),
            "{out}"
        );
        assert!(lines[3].starts_with("  10 of 100 samples dropped (10%)"));
        assert!(lines[4].starts_with("  ACCOUNT"), "{out}");
        let cells: Vec<&str> = lines[5].split_whitespace().collect();
        assert_eq!(
            cells,
            [
                r"a\u{202e}",
                "service",
                "10.0",
                "±",
                "1.0",
                "MiB",
                "12",
                "MiB",
                "20",
                "MiB",
                "50%",
                "open",
                "7",
                "0",
                "3",
                "0",
                "0",
                "s",
                "12",
                "5",
                "3",
                "KiB"
            ]
        );
        assert!(lines[6].starts_with("  b "), "{out}");
        assert_eq!(lines[7], "  and 4 more accounts");
        assert_eq!(err, "");
    }

    #[test]
    fn accounts_that_sum_up_to_more_than_the_heap_are_remarked_on() {
        let of = |exceeds| {
            let text = format!(
                r#"{{"heap":{{"accounts":{{"live_bytes":220200960,"standard_error_bytes":5242880,
                    "heap_bytes":104857600,"over_heap_ratio":2.1,"exceeds":{exceeds},"error_factor":22}}}},
                    "accounts":[]}}"#
            );
            remarks(&serde_json::from_str(&text).expect("a document"), None)
        };
        assert_eq!(of(false), [""; 0]);
        let told = of(true);
        assert!(
            told[0].starts_with(
                "the figures are wrong: the accounts sum up to 210 MiB ± 5 MiB where the heap has 100 MiB (2.10 times)"
            ),
            "{told:?}"
        );
    }

    #[test]
    fn the_age_of_live_bytes_is_shown_where_the_agent_tells_it() {
        let of = |epoch, age, since| {
            let heap = Heap {
                live_gc_epoch: epoch,
                live_age_seconds: age,
                ..Heap::default()
            };
            live_line(&heap, Duration::from_secs(since))
        };
        let expected = Some("live as of 12 s ago (collection 41)".to_owned());
        assert_eq!(of(Some(41), Some(10.4), 2), expected);
        let expected = Some("live as of 1h 2m ago (collection 41)".to_owned());
        assert_eq!(of(Some(41), Some(3720.0), 0), expected);
        let expected = Some("live bytes appear with the next collection".to_owned());
        assert_eq!(of(Some(0), None, 5), expected);
        assert_eq!(of(None, None, 5), None, "an older agent");
        assert!(of(Some(1), Some(-1.0), 0).unwrap().contains("of 0 s ago"));
        assert!(of(Some(1), Some(f64::MAX), 0).is_some());

        let text = r#"{"heap":{"gc_epoch":43,"live_gc_epoch":41,"live_age_seconds":12},
            "accounts":[{"name":"a","live_at_most_bytes":200000}]}"#;
        let found = [Asked::at("9464", Ok(Answer::of(text, None)))];
        let (out, _) = written(&found);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[1], "  live as of 12 s ago (collection 41)");
        assert!(lines[3].contains("< 0.2 MiB"), "{out}");
    }

    #[test]
    fn exact_accounts_have_a_line_beside_the_jvms_figure() {
        let written = |exact: &str| {
            let text = format!(r#"{{"exact":{exact},"accounts":[]}}"#);
            let (out, _) = written(&[Asked::at("9464", Ok(Answer::of(&text, None)))]);
            out.lines().nth(1).unwrap().to_owned()
        };
        let more = r#"{"counting":true,"counted_bytes_total":2097152,"jvm_allocated_bytes_total":1048576,"remainder_bytes":-1048576}"#;
        let expected = "  exact accounts: 2 MiB counted, the JVM says 1 MiB (100% more were counted than made)";
        assert_eq!(written(more), expected);
        let less = r#"{"counting":false,"counted_bytes_total":524288,"jvm_allocated_bytes_total":1048576,"remainder_bytes":524288}"#;
        let expected =
            "  exact accounts (off): 512 KiB counted, the JVM says 1 MiB (50% were not counted)";
        assert_eq!(written(less), expected);
        let unknown = r#"{"counting":true}"#;
        let expected = "  exact accounts: the JVM's own figure is not known";
        assert_eq!(written(unknown), expected);
    }

    #[test]
    fn one_that_cannot_be_read_does_not_hide_the_others() {
        let found = [
            Asked::at("9464", Err("nothing listens on 127.0.0.1:9464".into())),
            Asked::at("9464", Ok(Answer::of(r#"{"accounts":[]}"#, None))),
        ];
        let (out, err) = written(&found);
        assert!(err.contains("nothing listens on 127.0.0.1:9464"), "{err}");
        assert!(
            out.starts_with("127.0.0.1:9464: heap 0 B of 0 B after collection 0, "),
            "{out}"
        );
    }

    #[test]
    fn the_process_is_named_as_far_as_it_is_known() {
        let jvm = Jvm {
            pid: 4711,
            name: "app.jar".into(),
            vm: "OpenJDK 64-Bit Server VM".into(),
            version: "21.0.5+11\u{1b}".into(),
            loaded_at_start: Some(true),
        };
        let line = jvm_line(&jvm).unwrap();
        let expected = r"PID 4711, app.jar, OpenJDK 64-Bit Server VM 21.0.5+11\u{1b}";
        assert_eq!(line, expected);
        assert_eq!(jvm_line(&Jvm::default()), None, "an older agent");
    }

    #[test]
    fn an_account_that_waits_is_told_with_the_reason() {
        let text = r#"{"evidence":{"budget_used_up_seconds":12.5},"accounts":[
            {"name":"shop","state":"suspect","wait_milliseconds_total":31700},
            {"name":"cart","state":"suspect","wait_milliseconds_total":100}]}"#;
        let told = remarks(&serde_json::from_str(text).unwrap(), None);
        let expected = "shop: its threads and requests waited 31 s in all; evidence about it is awaited, and \
                        the evidence budget is used up for another 12 s";
        assert_eq!(told, [expected]);
    }

    #[test]
    fn rows_are_bounded() {
        let rows: Vec<String> = (0..3000).map(|n| format!(r#"{{"name":"{n}"}}"#)).collect();
        let text = format!(r#"{{"accounts":[{}]}}"#, rows.join(","));
        let found = [Asked::at("9464", Ok(Answer::of(&text, None)))];
        let (out, _) = written(&found);
        assert!(out.ends_with("  and 2000 more accounts\n"));
        assert_eq!(out.lines().count(), MAX_ROWS + 3);
    }
}
