//! The columns of a table of accounts.

use std::cmp::Ordering;

use policy_report::Account;

use super::{Row, amount};
use crate::printable;

/// Widest name of an account or a JVM in a table, in columns of the terminal.
const MAX_NAME_COLUMNS: usize = 40;
/// Widest kind; today's have at most eight columns.
const MAX_KIND_COLUMNS: usize = 10;

/// Where a cell's text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Names and words.
    Left,
    /// Amounts.
    Right,
}

/// A column of a table of accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Which JVM.
    Jvm,
    /// The account's name.
    Account,
    /// Service, package, library, scope or reserved.
    Kind,
    /// Live bytes and their standard error, including the scopes inside: what the limit is about.
    Live,
    /// Charged bytes, including the scopes inside.
    Charged,
    /// The limit.
    Limit,
    /// Live bytes as a share of the limit.
    Percent,
    /// Where it stands against its limit.
    State,
    /// Bytes allocated in a second.
    Allocated,
    /// Growth of live bytes in a minute.
    Trend,
    /// Requests and calls turned away at a door.
    TurnedAway,
    /// Refusals thrown.
    Refused,
    /// Refusals that `observe` did not throw.
    WouldRefuse,
    /// Refusals due where a throw was not safe.
    Deferred,
    /// The time that enforcement made its threads and requests wait, in all.
    Waited,
    /// Live objects.
    Objects,
    /// Live platform threads.
    Threads,
    /// Live native memory that Java code has taken: direct buffers, arenas, and by `Unsafe`.
    OffHeap,
}

/// The resource of that column, as the agent calls it.
const THREADS: &str = "threads";
/// Those whose sum is off the heap.
const OFF_HEAP: [&str; 2] = ["direct", "native"];

/// `None`: the agent does not see native memory.
fn off_heap_bytes(account: &Account<'_>) -> Option<u64> {
    let used = OFF_HEAP.map(|resource| account.used(resource));
    used.into_iter().flatten().reduce(u64::saturating_add)
}

impl Column {
    /// All, from left to right.
    pub const ALL: [Column; 18] = [
        Column::Jvm,
        Column::Account,
        Column::Kind,
        Column::Live,
        Column::Charged,
        Column::Limit,
        Column::Percent,
        Column::State,
        Column::Allocated,
        Column::Trend,
        Column::TurnedAway,
        Column::Refused,
        Column::WouldRefuse,
        Column::Deferred,
        Column::Waited,
        Column::Objects,
        Column::Threads,
        Column::OffHeap,
    ];

    /// The columns that a single reading of one JVM can fill.
    pub const OF_ONE_READING: [Column; 15] = [
        Column::Account,
        Column::Kind,
        Column::Live,
        Column::Charged,
        Column::Limit,
        Column::Percent,
        Column::State,
        Column::TurnedAway,
        Column::Refused,
        Column::WouldRefuse,
        Column::Deferred,
        Column::Waited,
        Column::Objects,
        Column::Threads,
        Column::OffHeap,
    ];

    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Column::Jvm => "JVM",
            Column::Account => "ACCOUNT",
            Column::Kind => "KIND",
            Column::Live => "LIVE ± ERROR",
            Column::Charged => "CHARGED",
            Column::Limit => "LIMIT",
            Column::Percent => "%",
            Column::State => "STATE",
            Column::Allocated => "ALLOC/S",
            Column::Trend => "TREND/MIN",
            Column::TurnedAway => "AWAY",
            Column::Refused => "REFUSED",
            Column::WouldRefuse => "WOULD",
            Column::Deferred => "DEFERRED",
            Column::Waited => "WAITED",
            Column::Objects => "OBJECTS",
            Column::Threads => "THREADS",
            Column::OffHeap => "OFF-HEAP",
        }
    }

    /// Returns the words that follow "sorted by".
    pub fn name(self) -> &'static str {
        match self {
            Column::Jvm => "JVM",
            Column::Account => "account",
            Column::Kind => "kind",
            Column::Live => "live",
            Column::Charged => "charged",
            Column::Limit => "limit",
            Column::Percent => "percent",
            Column::State => "state",
            Column::Allocated => "allocation",
            Column::Trend => "trend",
            Column::TurnedAway => "turned away",
            Column::Refused => "refused",
            Column::WouldRefuse => "would refuse",
            Column::Deferred => "deferred",
            Column::Waited => "waited",
            Column::Objects => "objects",
            Column::Threads => "threads",
            Column::OffHeap => "off the heap",
        }
    }

    /// Where its texts stand.
    pub fn align(self) -> Align {
        match self {
            Column::Jvm | Column::Account | Column::Kind | Column::State => Align::Left,
            _ => Align::Right,
        }
    }

    /// The text of a cell: printable and of bounded width; `-` if there is no value.
    pub fn cell(self, row: &Row<'_>) -> String {
        let account = row.account;
        let none = || "-".to_owned();
        match self {
            Column::Jvm => printable::fitted(row.address, MAX_NAME_COLUMNS).into_owned(),
            Column::Account => printable::fitted_name(&account.name, MAX_NAME_COLUMNS).into_owned(),
            Column::Kind => printable::fitted(&account.kind, MAX_KIND_COLUMNS).into_owned(),
            Column::Live => {
                let whole = account.whole();
                whole.live_at_most().map_or_else(
                    || amount::estimate(whole.live_bytes, whole.live_error_bytes()),
                    amount::less_than,
                )
            }
            Column::Charged => amount::bytes(account.whole().charged_bytes),
            Column::Limit => account.limit_bytes.map_or_else(none, amount::bytes),
            Column::Percent => account
                .percent_of_limit()
                .map_or_else(none, amount::percent),
            Column::State if row.is_stale => "stale".into(),
            Column::State => account.state.as_str().into(),
            Column::Allocated => {
                let rate = row.rates.allocated_bytes_per_second;
                rate.map_or_else(none, amount::rate)
            }
            Column::Trend => {
                let change = row.rates.live_bytes_per_minute;
                change.map_or_else(none, amount::change)
            }
            Column::TurnedAway => amount::count(account.admission_refusals_total),
            Column::Refused => amount::count(account.refusals_total),
            Column::WouldRefuse => amount::count(account.would_refuse_total),
            Column::Deferred => amount::count(account.deferred_total),
            Column::Waited => amount::wait(account.wait_milliseconds_total),
            Column::Objects => amount::count(account.live_objects),
            Column::Threads => account.used(THREADS).map_or_else(none, amount::count),
            Column::OffHeap => off_heap_bytes(account).map_or_else(none, amount::bytes),
        }
    }

    /// Which of two rows comes first: names in ascending order, amounts and states in descending
    /// order, rows without an amount last in either direction.
    pub fn compare(self, a: &Row<'_>, b: &Row<'_>, is_reversed: bool) -> Ordering {
        let turned = |order: Ordering| if is_reversed { order.reverse() } else { order };
        let most_first = |amount: fn(&Row<'_>) -> u64| turned(amount(b).cmp(&amount(a)));
        let optional = |amount: fn(&Row<'_>) -> Option<f64>| match (amount(a), amount(b)) {
            (Some(a), Some(b)) => turned(b.total_cmp(&a)),
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
        let order = match self {
            Column::Jvm => turned(a.jvm.cmp(&b.jvm)),
            Column::Account => turned(a.account.name.cmp(&b.account.name)),
            Column::Kind => turned(a.account.kind.cmp(&b.account.kind)),
            Column::State => turned(b.account.state.cmp(&a.account.state)),
            Column::Live => most_first(|row| row.account.whole().live_bytes),
            Column::Charged => most_first(|row| row.account.whole().charged_bytes),
            Column::TurnedAway => most_first(|row| row.account.admission_refusals_total),
            Column::Refused => most_first(|row| row.account.refusals_total),
            Column::WouldRefuse => most_first(|row| row.account.would_refuse_total),
            Column::Deferred => most_first(|row| row.account.deferred_total),
            Column::Waited => most_first(|row| row.account.wait_milliseconds_total),
            Column::Objects => most_first(|row| row.account.live_objects),
            Column::Limit => optional(|row| row.account.limit_bytes.map(|bytes| bytes as f64)),
            Column::Percent => optional(|row| row.account.percent_of_limit()),
            Column::Allocated => optional(|row| row.rates.allocated_bytes_per_second),
            Column::Trend => optional(|row| row.rates.live_bytes_per_minute),
            Column::Threads => {
                optional(|row| row.account.used(THREADS).map(|threads| threads as f64))
            }
            Column::OffHeap => {
                optional(|row| off_heap_bytes(row.account).map(|bytes| bytes as f64))
            }
        };
        // Equal rows have a fixed order, so that they do not swap at each poll.
        order
            .then_with(|| a.jvm.cmp(&b.jvm))
            .then_with(|| a.account.name.cmp(&b.account.name))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rates;
    use super::*;
    use policy_report::{State, Tree, Usage};

    type Account = policy_report::Account<'static>;

    fn row(account: &Account) -> Row<'_> {
        Row {
            jvm: 0,
            address: "a:1",
            account,
            rates: Rates::default(),
            is_stale: false,
        }
    }

    fn account(name: &str, live_bytes: u64, limit_bytes: Option<u64>) -> Account {
        Account {
            name: name.to_owned().into(),
            kind: "service".into(),
            live_bytes,
            limit_bytes,
            state: State::Open,
            ..Account::default()
        }
    }

    fn sorted(accounts: &[Account], column: Column, is_reversed: bool) -> Vec<&str> {
        let mut rows: Vec<Row<'_>> = accounts.iter().map(row).collect();
        rows.sort_by(|a, b| column.compare(a, b, is_reversed));
        rows.iter().map(|row| row.account.name.as_ref()).collect()
    }

    #[test]
    fn rows_without_an_amount_are_last_both_ways() {
        let accounts = [
            account("a", 10, None),
            account("b", 10, Some(20)),
            account("c", 30, Some(40)),
        ];
        assert_eq!(sorted(&accounts, Column::Percent, false), ["c", "b", "a"]);
        assert_eq!(sorted(&accounts, Column::Percent, true), ["b", "c", "a"]);
        assert_eq!(sorted(&accounts, Column::Live, false), ["c", "a", "b"]);
        assert_eq!(sorted(&accounts, Column::Account, true), ["c", "b", "a"]);
    }

    #[test]
    fn a_service_stands_for_the_scopes_beneath_it() {
        let mut shop = account("shop", 10, Some(100));
        shop.tree = Some(Tree {
            live_bytes: 50,
            charged_bytes: 60,
            standard_error_bytes: 9,
            live_standard_error_bytes: Some(3),
            ..Tree::default()
        });
        let accounts = [account("shop/tenant-42", 40, Some(50)), shop];
        let cell = |at: usize, column: Column| column.cell(&row(&accounts[at]));
        assert_eq!(cell(1, Column::Live), "50 ± 3 B");
        assert_eq!(cell(1, Column::Charged), "60 B");
        assert_eq!(cell(1, Column::Percent), "50%");
        assert_eq!(cell(0, Column::Account), "shop/tenant-42");
        assert_eq!(cell(0, Column::Live), "40 ± 0 B");
        assert_eq!(cell(0, Column::Percent), "80%");
        let by = |column| sorted(&accounts, column, false);
        assert_eq!(by(Column::Live), ["shop", "shop/tenant-42"]);
        assert_eq!(by(Column::Percent), ["shop/tenant-42", "shop"]);
    }

    #[test]
    fn live_bytes_have_their_own_error() {
        let cell = |account: &Account| Column::Live.cell(&row(account));
        let mut shop = account("shop", 50, None);
        shop.standard_error_bytes = 8;
        assert_eq!(
            cell(&shop),
            "50 ± 8 B",
            "an older agent's: the charged error"
        );
        shop.live_standard_error_bytes = Some(2);
        assert_eq!(cell(&shop), "50 ± 2 B");
        shop.live_standard_error_bytes = Some(0);
        assert_eq!(cell(&shop), "50 ± 0 B", "every allocation sampled");
    }

    #[test]
    fn an_account_without_a_live_sample_says_how_much_it_may_hold() {
        let cell = |account: &Account| Column::Live.cell(&row(account));
        let mut shop = account("shop", 0, None);
        shop.live_standard_error_bytes = Some(0);
        shop.live_at_most_bytes = Some(196_608);
        assert_eq!(cell(&shop), "< 0.2 MiB");
        shop.tree = Some(Tree {
            live_bytes: 50,
            ..Tree::default()
        });
        assert_eq!(cell(&shop), "50 ± 0 B", "its scopes hold something");
        shop.tree = Some(Tree {
            live_at_most_bytes: Some(300_000),
            ..Tree::default()
        });
        assert_eq!(cell(&shop), "< 0.3 MiB", "and its scopes hold nothing");
        shop.tree = None;
        shop.live_at_most_bytes = None;
        assert_eq!(cell(&shop), "0 ± 0 B", "an older agent's");
    }

    #[test]
    fn threads_are_shown_where_the_agent_counts_them() {
        let used = |threads| {
            let usage = |resource: &'static str, used| Usage {
                resource: resource.into(),
                used,
                ..Usage::default()
            };
            Account {
                usage: vec![usage("heap", 7), usage("threads", threads)],
                ..account("shop", 0, None)
            }
        };
        let accounts = [account("old", 0, None), used(3), used(12)];
        let cells = accounts
            .each_ref()
            .map(|one| Column::Threads.cell(&row(one)));
        assert_eq!(cells, ["-", "3", "12"]);
        let mut rows: Vec<Row<'_>> = accounts.iter().map(row).collect();
        rows.sort_by(|a, b| Column::Threads.compare(a, b, false));
        let cells: Vec<String> = rows.iter().map(|row| Column::Threads.cell(row)).collect();
        assert_eq!(cells, ["12", "3", "-"]);
    }

    #[test]
    fn the_worst_state_comes_first() {
        let mut accounts = [
            account("a", 0, None),
            account("b", 0, None),
            account("c", 0, None),
        ];
        accounts[1].state = State::Over;
        accounts[2].state = State::Suspect;
        assert_eq!(sorted(&accounts, Column::State, false), ["b", "c", "a"]);
    }

    #[test]
    fn no_cell_is_wide_or_drives_the_terminal() {
        let name = "\u{1b}]0;x\u{7}\u{202e}".repeat(1000);
        let hostile = Account {
            name: name.clone().into(),
            kind: name.clone().into(),
            live_bytes: u64::MAX,
            charged_bytes: u64::MAX,
            standard_error_bytes: u64::MAX,
            live_objects: u64::MAX,
            refusals_total: u64::MAX,
            admission_refusals_total: u64::MAX,
            limit_bytes: Some(1),
            ..Account::default()
        };
        let mut row = row(&hostile);
        row.address = &name;
        row.rates = Rates {
            allocated_bytes_per_second: Some(f64::INFINITY),
            live_bytes_per_minute: Some(f64::NEG_INFINITY),
        };
        for column in Column::ALL {
            let cell = column.cell(&row);
            assert!(printable::columns(&cell) <= 40, "{column:?}: {cell}");
            assert!(!cell.chars().any(char::is_control), "{column:?}: {cell}");
        }
    }
}
