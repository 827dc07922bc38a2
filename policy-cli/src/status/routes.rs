//! Writes the routes of each account as text, `--routes`: the requests or methods that begin its work, and the bytes
//! that this work allocates and keeps.

use std::io::{self, Write};

use super::listing::{Asked, MAX_ACCOUNT_COLUMNS, MAX_ACCOUNTS, write_each, write_omitted};
use heapwarden_client::live::{Account, Accounts};
use heapwarden_terminal::printable;
use heapwarden_terminal::size;
use heapwarden_terminal::table::{Align, Grid, amount};

/// Widest name of a route, in columns.
const MAX_ROUTE_COLUMNS: usize = 60;
const COLUMNS: [(&str, Align); 8] = [
    ("ACCOUNT", Align::Left),
    ("ROUTE", Align::Left),
    ("CALLS", Align::Right),
    ("REFUSED", Align::Right),
    ("ALLOCATES/CALL", Align::Right),
    ("KEEPS/CALL", Align::Right),
    ("PEAK/CALL", Align::Right),
    ("LIVE ± ERROR", Align::Right),
];

/// Writes the routes of each JVM's accounts to `out`, and to `err` why others could not be read.
pub(super) fn write(found: &[Asked], out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
    write_each(found, out, err, write_routes)
}

fn write_routes(accounts: &Accounts, out: &mut dyn Write) -> io::Result<()> {
    let with: Vec<&Account> = (accounts.accounts.iter())
        .filter(|account| !account.routes.is_empty())
        .collect();
    if with.is_empty() {
        return writeln!(
            out,
            "  no routes: no account with a limit has a door that work has come to"
        );
    }
    let mut grid = Grid::new(COLUMNS);
    for account in with.iter().take(MAX_ACCOUNTS) {
        let name = printable::fitted_name(&account.name, MAX_ACCOUNT_COLUMNS);
        let mut routes: Vec<_> = account.routes.iter().collect();
        routes.sort_by_key(|route| std::cmp::Reverse(route.live_bytes));
        for route in routes {
            // The packages of a method are shortened; a path loses its end.
            let shown = match route.route.contains(' ') {
                true => printable::fitted(&route.route, MAX_ROUTE_COLUMNS),
                false => printable::fitted_name(&route.route, MAX_ROUTE_COLUMNS),
            };
            grid.row([
                name.clone().into_owned(),
                shown.into_owned(),
                amount::count(route.calls_total),
                amount::count(route.refused_total),
                size::shown(route.allocated_bytes_per_call as f64),
                size::shown(route.kept_bytes_per_call as f64),
                size::shown(route.peak_bytes_per_call as f64),
                amount::estimate(route.live_bytes, route.standard_error_bytes),
            ]);
        }
    }
    grid.write(2, out)?;
    write_omitted(with.len().saturating_sub(MAX_ACCOUNTS) as u64, out)
}

#[cfg(test)]
mod tests {
    use super::super::listing;
    use super::*;

    fn written(text: &str) -> String {
        let out = listing::written(text, write);
        out.split_once('\n').unwrap().1.to_owned()
    }

    #[test]
    fn each_route_has_a_line_the_largest_first() {
        let text = r#"{"accounts":[{"name":"quiet"},{"name":"store","routes":[
            {"route":"GET /statements","calls_total":120000,"allocated_bytes_per_call":2097152,"peak_bytes_per_call":524288},
            {"route":"POST /statements","calls_total":9000,"refused_total":1200,"live_bytes":220200960,
             "standard_error_bytes":4194304,"kept_bytes_per_call":24576,"allocated_bytes_per_call":1048576,
             "peak_bytes_per_call":131072},
            {"route":"org.h2.command.Command\u001b#executeUpdate","calls_total":1}]}]}"#;
        let expected = "  \
  ACCOUNT  ROUTE                                        CALLS  REFUSED  ALLOCATES/CALL  KEEPS/CALL  PEAK/CALL     LIVE ± ERROR
  store    POST /statements                              9000     1200         1.0 MiB    24.0 KiB    128 KiB  210.0 ± 4.0 MiB
  store    GET /statements                             120000        0         2.0 MiB         0 B    512 KiB          0 ± 0 B
  store    org.h2.command.Command\\u{1b}#executeUpdate       1        0             0 B         0 B        0 B          0 ± 0 B
";
        assert_eq!(written(text), expected);
    }

    #[test]
    fn an_agent_without_routes_is_said() {
        let out = written(r#"{"accounts":[{"name":"quiet"}]}"#);
        assert!(out.starts_with("  no routes"), "{out}");
    }
}
