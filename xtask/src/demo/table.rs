//! The accounts as lines of text. Pure: a reading in, lines out.

use super::accounts::{Account, Reading};
use super::load::Answers;
use super::units::{grouped, mib};

/// Cells of a bar, and how much of them the limit takes: what is over it has to be seen too.
const BAR_CELLS: usize = 20;
const LIMIT_CELL: usize = 15;
/// A bar with its figure. Everything together fits a terminal of 80 columns.
const BAR_WIDTH: usize = BAR_CELLS + 8;

/// One account with what its application answered.
pub(crate) struct Line {
    /// The account's name.
    pub(crate) name: &'static str,
    /// Its figures.
    pub(crate) account: Account,
    /// Its requests.
    pub(crate) answers: Answers,
}

/// The table for a terminal.
pub(crate) fn drawn(title: &str, seconds: u64, reading: &Reading, lines: &[Line]) -> Vec<String> {
    let mut text = vec![
        format!("  {title:<70}{seconds:>4} s"),
        row(
            "account",
            "live ± 3 s.e.",
            "against its limit",
            "state",
            "requests",
        ),
    ];
    for line in lines {
        text.push(row(
            line.name,
            &live(&line.account),
            &bar(&line.account),
            state(&line.account),
            &grouped(line.answers.ok),
        ));
    }
    text.extend(refusals(lines));
    text.extend(footer(reading));
    text
}

/// Returns the answers that the clients of refused applications got, once there are any.
fn refusals(lines: &[Line]) -> Option<String> {
    let refused: Vec<String> = lines
        .iter()
        .filter(|line| line.answers.refused > 0)
        .map(|line| format!("{} {}", line.name, statuses(line.answers)))
        .collect();
    (!refused.is_empty()).then(|| format!("  answers: {}", refused.join(" · ")))
}

fn statuses(answers: Answers) -> String {
    format!(
        "{} × 200, {} × 503",
        grouped(answers.ok),
        grouped(answers.refused)
    )
}

fn row(account: &str, live: &str, bar: &str, state: &str, requests: &str) -> String {
    format!("  {account:<7} {live:>16}  {bar:<BAR_WIDTH$}  {state:<10} {requests:>8}")
}

/// The same in one line, for a log.
pub(crate) fn printed(seconds: u64, lines: &[Line]) -> String {
    let accounts: Vec<String> = lines
        .iter()
        .map(|line| {
            let mut notes = state(&line.account).to_owned();
            if line.answers.refused > 0 {
                notes = format!("{notes}, {}", statuses(line.answers));
            }
            format!("{} {} ({notes})", line.name, live(&line.account))
        })
        .collect();
    format!("{seconds:>4} s  {}", accounts.join("   "))
}

fn live(account: &Account) -> String {
    let mib = f64::from(1 << 20);
    format!(
        "{:.1} ± {:.1} MiB",
        account.live_bytes / mib,
        3.0 * account.standard_error_bytes / mib
    )
}

/// Live bytes filled in, `┊` at the soft limit, `│` and its figure at the limit.
fn bar(account: &Account) -> String {
    let Some(limit) = account.limit_bytes.filter(|limit| *limit > 0.0) else {
        return "no limit".to_owned();
    };
    let cell = |bytes: f64| (bytes / limit * LIMIT_CELL as f64).round().max(0.0) as usize;
    let filled = cell(account.live_bytes);
    let soft = account.soft_limit_bytes.map(cell);
    let mut text: String = (0..BAR_CELLS)
        .map(|index| {
            if index == LIMIT_CELL {
                '│'
            } else if Some(index) == soft {
                '┊'
            } else if index < filled {
                '█'
            } else {
                '·'
            }
        })
        .collect();
    text.push_str(&format!(" {:.0} MiB", limit / f64::from(1 << 20)));
    text
}

fn state(account: &Account) -> &'static str {
    if account.over_limit {
        "OVER LIMIT"
    } else if account
        .soft_limit_bytes
        .is_some_and(|soft| account.live_bytes > soft)
    {
        "over soft"
    } else {
        "within"
    }
}

fn footer(reading: &Reading) -> [String; 2] {
    [
        format!(
            "  heap: {} of {} held after collection {}",
            mib(reading.sum("heapwarden_heap_used_after_gc_bytes")),
            mib(reading.sum("heapwarden_heap_max_bytes")),
            grouped(reading.gc_epoch() as u64),
        ),
        format!(
            "  Heapwarden: {} samples, {:.2} s of CPU, {}",
            grouped(reading.sum("heapwarden_samples_total") as u64),
            reading.sum("heapwarden_agent_cpu_seconds_total"),
            mib(reading.sum("heapwarden_agent_memory_bytes")),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(live_mib: f64, over_limit: bool) -> Account {
        let mib = f64::from(1 << 20);
        Account {
            live_bytes: live_mib * mib,
            charged_bytes: live_mib * mib,
            standard_error_bytes: mib,
            soft_limit_bytes: Some(32.0 * mib),
            limit_bytes: Some(48.0 * mib),
            over_limit,
        }
    }

    #[test]
    fn a_bar_shows_both_limits() {
        for (live_mib, expected) in [
            (0.0, "··········┊····│···· 48 MiB"),
            (24.0, "████████··┊····│···· 48 MiB"),
            (56.0, "██████████┊████│██·· 48 MiB"),
            (500.0, "██████████┊████│████ 48 MiB"),
        ] {
            assert_eq!(bar(&account(live_mib, false)), expected);
        }
    }

    #[test]
    fn an_account_without_a_limit_has_no_bar() {
        let mut account = account(1.0, false);
        account.limit_bytes = None;
        assert_eq!(bar(&account), "no limit");
    }

    #[test]
    fn the_state_is_the_worst_that_holds() {
        assert_eq!(state(&account(1.0, false)), "within");
        assert_eq!(state(&account(33.0, false)), "over soft");
        assert_eq!(state(&account(56.0, true)), "OVER LIMIT");
    }

    #[test]
    fn the_table_fits_eighty_columns() {
        let line = Line {
            name: "report",
            account: account(1_234.5, true),
            answers: Answers {
                ok: 99_999,
                full: 0,
                refused: 9_999,
            },
        };
        for row in drawn("a title", 90, &Reading::default(), &[line]) {
            assert!(row.chars().count() < 80, "{row}");
        }
    }

    #[test]
    fn a_printed_line_names_every_account() {
        let line = Line {
            name: "grow",
            account: account(33.0, false),
            answers: Answers::default(),
        };
        assert_eq!(
            printed(7, std::slice::from_ref(&line)),
            "   7 s  grow 33.0 ± 3.0 MiB (over soft)"
        );
        let refused = Line {
            answers: Answers {
                ok: 4,
                full: 0,
                refused: 1_000,
            },
            ..line
        };
        assert_eq!(
            printed(7, &[refused]),
            "   7 s  grow 33.0 ± 3.0 MiB (over soft, 4 × 200, 1,000 × 503)"
        );
    }
}
