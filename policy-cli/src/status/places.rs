//! Where errors were thrown, or would have been, as text: `--places`.

use std::io::{self, Write};

use super::listing::{Asked, MAX_ACCOUNT_COLUMNS, MAX_ACCOUNTS, write_each, write_omitted};
use heapwarden_client::live::{Account, Accounts, Place, places};
use heapwarden_terminal::printable;
use heapwarden_terminal::table::{Align, Grid, amount};

/// Widest name of a method, in columns.
const MAX_METHOD_COLUMNS: usize = 50;
/// Most reasons that are told of an account.
const MAX_REASONS: usize = 8;
const COLUMNS: [(&str, Align); 6] = [
    ("ACCOUNT", Align::Left),
    ("COUNT", Align::Right),
    ("THREAD", Align::Left),
    ("IN", Align::Left),
    ("BEGINS WITH", Align::Left),
    ("UNIT OF WORK", Align::Left),
];

/// Writes the places of each JVM's accounts to `out`, and to `err` why others could not be read.
pub(super) fn write(found: &[Asked], out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
    write_each(found, out, err, write_places)
}

fn write_places(accounts: &Accounts, out: &mut dyn Write) -> io::Result<()> {
    let happened = places::happened(&accounts.policy.mode);
    let mut with: Vec<&Account> = (accounts.accounts.iter())
        .filter(|account| places::counted(account) > 0)
        .collect();
    if with.is_empty() {
        return writeln!(out, "  no errors {happened}, since the mode last changed");
    }
    with.sort_by_key(|account| std::cmp::Reverse(places::counted(account)));
    let omitted = with.len().saturating_sub(MAX_ACCOUNTS);
    with.truncate(MAX_ACCOUNTS);
    writeln!(out, "  errors {happened}, since the mode last changed:")?;
    let mut grid = Grid::new(COLUMNS);
    for account in &with {
        let name = printable::fitted_name(&account.name, MAX_ACCOUNT_COLUMNS);
        for place in &account.places {
            grid.row(cells(&name, place));
        }
        if account.places_other > 0 {
            let (count, at) = (amount::count(account.places_other), "at other places");
            grid.row([name.into_owned(), count, String::new(), at.to_owned()]);
        }
    }
    grid.write(2, out)?;
    write_omitted(omitted as u64, out)?;
    for account in &with {
        if let Some(reasons) = put_off(account) {
            let name = printable::fitted_name(&account.name, MAX_ACCOUNT_COLUMNS);
            writeln!(
                out,
                "  put off in {name} since the start, by reason: {reasons}"
            )?;
        }
    }
    for account in with {
        if let Some(line) = places::never_interrupt(&account.places) {
            let name = printable::fitted_name(&account.name, MAX_ACCOUNT_COLUMNS);
            writeln!(out, "  to spare background threads of {name}: {line}")?;
        }
    }
    Ok(())
}

/// Errors that were due where none is thrown, the most frequent reasons first.
fn put_off(account: &Account) -> Option<String> {
    let counts = account.deferred_by_reason.0.iter();
    let mut reasons: Vec<(&str, u64)> = counts.map(|(reason, count)| (&**reason, *count)).collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let told = reasons.iter().take(MAX_REASONS);
    let told: Vec<String> = told
        .map(|(reason, count)| {
            let reason = printable::fitted(reason, MAX_ACCOUNT_COLUMNS);
            format!("{reason} {}", amount::count(*count))
        })
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn cells(account: &str, place: &Place) -> [String; COLUMNS.len()] {
    let method = |name: &str| printable::fitted_name(name, MAX_METHOD_COLUMNS).into_owned();
    [
        account.to_owned(),
        amount::count(place.count),
        printable::fitted(&place.thread, MAX_ACCOUNT_COLUMNS).into_owned(),
        method(&place.frame),
        method(&place.entry),
        method(&place.unit),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::listing::written;
    use super::*;

    #[test]
    fn each_place_has_a_line_and_each_account_one_proposal() {
        let text = r#"{"policy":{"mode":"observe"},"accounts":[{"name":"quiet"},
            {"name":"shop","places_other":7,"deferred_by_reason":{"jdk":2,"timer":3000},"places":[
            {"frame":"com.acme.store.Entries#put","entry":"com.acme.jobs.Evictor#run",
             "thread":"background","unit":"java.util.concurrent.FutureTask#run","count":1200,
             "never_interrupt":"never-interrupt = [\"com.acme.jobs\"]"},
            {"frame":"com.acme.store.Entries#put","entry":"com.acme.web.Cart\u001b#doPost",
             "thread":"request","unit":"jakarta.servlet.http.HttpServlet#service","count":30,
             "never_interrupt":null}]}]}"#;
        let out = written(text, write);
        let expected = "\
  errors that would have been thrown, since the mode last changed:
  ACCOUNT  COUNT  THREAD      IN                          BEGINS WITH                     UNIT OF WORK
  shop      1200  background  com.acme.store.Entries#put  com.acme.jobs.Evictor#run       java.util.concurrent.FutureTask#run
  shop        30  request     com.acme.store.Entries#put  com.acme.web.Cart\\u{1b}#doPost  jakarta.servlet.http.HttpServlet#service
  shop         7              at other places
  put off in shop since the start, by reason: timer 3000, jdk 2
  to spare background threads of shop: never-interrupt = [\"com.acme.jobs\"]
";
        let (_, places) = out.split_once('\n').unwrap();
        assert_eq!(places.trim_start(), expected, "{out}");
    }

    #[test]
    fn nothing_to_list_is_said() {
        let out = written(
            r#"{"policy":{"mode":"enforce"},"accounts":[{"name":"quiet"}]}"#,
            write,
        );
        assert!(
            out.ends_with("  no errors thrown, since the mode last changed\n"),
            "{out}"
        );
    }
}
