//! Writes the objects of each account by class, as text: `--classes`, and with `--ages` how old and how large they are.

use std::io::{self, Write};

use super::lines::live_line;
use super::listing::{Asked, MAX_ACCOUNTS, write_each, write_omitted};
use heapwarden_client::live::{Account, Accounts, Bin, Class};
use heapwarden_terminal::printable;
use heapwarden_terminal::table::bins::{self, Scale};
use heapwarden_terminal::table::{Align, Grid, amount};

/// Widest name of an account, and of a class, in columns.
const MAX_ACCOUNT_COLUMNS: usize = 60;
const MAX_CLASS_COLUMNS: usize = 50;
/// Most classes that are listed of one account; the rest is one line.
const MAX_CLASSES: usize = 20;
/// Most bins of a histogram: an agent has about ten.
const MAX_BINS: usize = 40;

const COLUMNS: [(&str, Align); 10] = [
    ("CLASS", Align::Left),
    ("SAMPLED", Align::Right),
    ("LIVE", Align::Right),
    ("FREED", Align::Right),
    ("TOTAL", Align::Right),
    ("BYTES EACH", Align::Right),
    ("LIVE ± ERROR", Align::Right),
    ("FREED", Align::Right),
    ("ALLOCATED", Align::Right),
    ("GENERATIONS", Align::Right),
];

/// Behind the others, where inserted code counts.
const COUNTED: [(&str, Align); 2] = [
    ("COUNTED", Align::Right),
    ("BY RATIO ± ERROR", Align::Right),
];

/// The user's options: one account instead of all, and histograms of ages and sizes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Choice<'a> {
    /// This account only.
    pub(super) account: Option<&'a str>,
    /// Also ages and sizes.
    pub(super) ages: bool,
}

/// Writes the classes of each JVM's accounts to `out`, and to `err` why others could not be read.
pub(super) fn write(
    found: &[Asked],
    choice: Choice<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<()> {
    write_each(found, out, err, |accounts, out| {
        if let Some(line) = live_line(&accounts.heap, std::time::Duration::ZERO) {
            writeln!(out, "  {line}")?;
        }
        write_accounts(accounts, choice, out)
    })
}

fn write_accounts(accounts: &Accounts, choice: Choice<'_>, out: &mut dyn Write) -> io::Result<()> {
    let is_chosen = |account: &&Account| match choice.account {
        Some(name) => account.name == name,
        None => !account.classes.is_empty(),
    };
    let mut chosen: Vec<&Account> = accounts.accounts.iter().filter(is_chosen).collect();
    chosen.sort_by_key(|account| std::cmp::Reverse(account.live_bytes));
    if chosen.is_empty() {
        return writeln!(
            out,
            "  {}",
            match choice.account {
                Some(_) => "no account of this name",
                None => "no classes yet",
            }
        );
    }
    for account in chosen.iter().take(MAX_ACCOUNTS) {
        write_account(account, out)?;
        if choice.ages {
            write_histograms(account, out)?;
        }
    }
    let more = chosen.len().saturating_sub(MAX_ACCOUNTS) as u64;
    write_omitted(more + accounts.accounts_omitted, out)
}

fn write_account(account: &Account, out: &mut dyn Write) -> io::Result<()> {
    let name = printable::fitted_name(&account.name, MAX_ACCOUNT_COLUMNS);
    writeln!(
        out,
        "\n  {name}: {}",
        match &account.tree {
            Some(_) => "without the scopes inside it",
            None => "objects and bytes by class",
        }
    )?;
    let is_counted = account.exact_allocated_bytes_total.is_some();
    let counting = COUNTED.into_iter().filter(|_| is_counted);
    let mut grid = Grid::new(COLUMNS.into_iter().chain(counting));
    let mut largest: Vec<&Class> = account.classes.iter().collect();
    largest.sort_by_key(|class| std::cmp::Reverse(class.live_bytes));
    let (listed, others) = largest.split_at(largest.len().min(MAX_CLASSES));
    for class in listed {
        let name = printable::fitted_name(&class.class, MAX_CLASS_COLUMNS).into_owned();
        let mut cells = Figures::of(class).cells(name, class.sample_share, class.generations);
        if is_counted {
            cells.extend(counted(
                class.exact_allocated_bytes_total,
                class.live_by_ratio_bytes,
                class.live_by_ratio_standard_error_bytes,
            ));
        }
        grid.row(cells);
    }
    if !others.is_empty() {
        let name = match others.len() {
            1 => "1 other class".to_owned(),
            count => format!("{} other classes", amount::count(count as u64)),
        };
        let mut cells = Figures::sum(others).cells(name, None, None);
        if is_counted {
            let bytes = others
                .iter()
                .filter_map(|class| class.exact_allocated_bytes_total);
            let bytes = bytes.reduce(u64::saturating_add);
            cells.extend(counted(bytes, None, None));
        }
        grid.row(cells);
    }
    let mut sum = Figures::sum(&largest).cells("sum".to_owned(), None, None);
    if is_counted {
        // The account's own: classes that are not listed are in it.
        sum.extend(counted(
            account.exact_allocated_bytes_total,
            account.live_by_ratio_bytes,
            account.live_by_ratio_standard_error_bytes,
        ));
    }
    grid.row(sum);
    grid.write(4, out)?;
    match account.classes_omitted {
        0 => Ok(()),
        more => writeln!(
            out,
            "    and {} more classes that the agent does not list",
            amount::count(more)
        ),
    }
}

/// Returns the cells of the counted bytes, and of the live bytes by ratio with their error; `-` where they are not
/// known.
fn counted(bytes: Option<u64>, live: Option<u64>, error: Option<u64>) -> [String; 2] {
    let none = || "-".to_owned();
    let live = live.zip(error);
    [
        bytes.map_or_else(none, amount::bytes),
        live.map_or_else(none, |(live, error)| amount::estimate(live, error)),
    ]
}

/// The figures of a class, or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Figures {
    live_objects: u64,
    live_bytes: u64,
    /// The sum of the squares of the standard errors. `None`: an agent that does not say.
    live_variance: Option<f64>,
    freed_objects: Option<u64>,
    freed_bytes: Option<u64>,
    allocated_objects: Option<u64>,
    allocated_bytes: u64,
}

impl Figures {
    fn of(class: &Class) -> Figures {
        Figures {
            live_objects: class.live_objects,
            live_bytes: class.live_bytes,
            live_variance: (class.live_standard_error_bytes).map(|error| (error as f64).powi(2)),
            freed_objects: class.freed_objects_total,
            freed_bytes: class.freed_bytes_total,
            allocated_objects: class.allocated_objects_total,
            allocated_bytes: class.allocated_bytes_total,
        }
    }

    /// Of all of them; the errors of two classes are independent, because no object is of both.
    fn sum(classes: &[&Class]) -> Figures {
        let both = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        let figures = classes.iter().map(|class| Figures::of(class));
        let sum = figures.reduce(|a, b| Figures {
            live_objects: a.live_objects.saturating_add(b.live_objects),
            live_bytes: a.live_bytes.saturating_add(b.live_bytes),
            live_variance: a.live_variance.zip(b.live_variance).map(|(a, b)| a + b),
            freed_objects: both(a.freed_objects, b.freed_objects),
            freed_bytes: both(a.freed_bytes, b.freed_bytes),
            allocated_objects: both(a.allocated_objects, b.allocated_objects),
            allocated_bytes: a.allocated_bytes.saturating_add(b.allocated_bytes),
        });
        sum.unwrap_or_default()
    }

    fn cells(self, name: String, share: Option<f64>, generations: Option<u64>) -> Vec<String> {
        let none = || "-".to_owned();
        let each = match self.live_objects {
            0 => none(),
            objects => amount::bytes(self.live_bytes / objects),
        };
        let live = match self.live_variance {
            // Saturates.
            Some(variance) => amount::estimate(self.live_bytes, variance.sqrt().ceil() as u64),
            None => amount::bytes(self.live_bytes),
        };
        vec![
            name,
            share.map_or_else(none, |share| amount::percent(share * 100.0)),
            amount::count(self.live_objects),
            self.freed_objects.map_or_else(none, amount::count),
            self.allocated_objects.map_or_else(none, amount::count),
            each,
            live,
            self.freed_bytes.map_or_else(none, amount::bytes),
            amount::bytes(self.allocated_bytes),
            generations.map_or_else(none, amount::count),
        ]
    }
}

/// How old and how large what is live is: a table each, if the agent says so.
fn write_histograms(account: &Account, out: &mut dyn Write) -> io::Result<()> {
    type Histogram = fn(&Class) -> &[Bin];
    let kinds: [(&str, Scale, Histogram); 3] = [
        ("live bytes by age, up to", Scale::Seconds, |class| {
            &class.ages_seconds
        }),
        (
            "live bytes by collections of all memory survived, up to",
            Scale::Collections,
            |class| &class.ages_collections,
        ),
        (
            "live bytes by size of one object, up to",
            Scale::Bytes,
            |class| &class.sizes,
        ),
    ];
    let mut largest: Vec<&Class> = account.classes.iter().collect();
    largest.sort_by_key(|class| std::cmp::Reverse(class.live_bytes));
    largest.truncate(MAX_CLASSES);
    let mut are_any = false;
    for (title, scale, histogram) in kinds {
        let mut edges = bins::edges(largest.iter().map(|class| histogram(class)));
        if edges.is_empty() {
            continue;
        }
        are_any = true;
        edges.truncate(MAX_BINS);
        writeln!(out, "    {title}")?;
        let titles: Vec<String> = edges.iter().map(|&edge| scale.edge(edge)).collect();
        let amounts = titles.iter().map(|title| (title.as_str(), Align::Right));
        let mut grid = Grid::new([("CLASS", Align::Left)].into_iter().chain(amounts));
        for class in &largest {
            let name = printable::fitted_name(&class.class, MAX_CLASS_COLUMNS).into_owned();
            let cells = edges
                .iter()
                .map(|&edge| match bins::live_bytes(histogram(class), edge) {
                    0 => "-".to_owned(),
                    bytes => amount::bytes(bytes),
                });
            grid.row(std::iter::once(name).chain(cells));
        }
        grid.write(6, out)?;
    }
    match are_any {
        true => Ok(()),
        false => writeln!(
            out,
            "    ages and sizes are known from the next collection of all memory on"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::listing;
    use super::*;

    fn written(text: &str, choice: Choice<'_>) -> String {
        listing::written(text, |found, out, err| write(found, choice, out, err))
    }

    const TEXT: &str = r#"{"accounts":[{"name":"quiet"},{"name":"shop","live_bytes":5242880,"classes":[
        {"class":"byte[]","live_bytes":1048576,"live_objects":1024,"allocated_bytes_total":10485760,
         "live_standard_error_bytes":262144,"allocated_objects_total":10240,"freed_bytes_total":9437184,
         "freed_objects_total":9216,"generations":2,"sample_share":0.05,
         "ages_seconds":[{"upto":10,"live_bytes":524288},{"upto":600,"live_bytes":524288}],
         "sizes":[{"upto":1024,"live_bytes":1048576}]},
        {"class":"com.acme.Session","live_bytes":4194304,"live_objects":2048,"allocated_bytes_total":4194304,
         "live_standard_error_bytes":349526,"allocated_objects_total":2048,"freed_bytes_total":0,
         "freed_objects_total":0,"generations":37,
         "ages_seconds":[{"upto":600,"live_bytes":1048576},{"upto":null,"live_bytes":3145728}],
         "sizes":[{"upto":2048,"live_bytes":4194304}]}]}]}"#;

    #[test]
    fn the_profilers_table_with_its_sum() {
        let out = written(TEXT, Choice::default());
        let expected = "\
  shop: objects and bytes by class
    CLASS             SAMPLED  LIVE  FREED  TOTAL  BYTES EACH   LIVE ± ERROR  FREED  ALLOCATED  GENERATIONS
    com.acme.Session        -  2048      0   2048       2 KiB  4.0 ± 0.3 MiB    0 B      4 MiB           37
    byte[]               5.0%  1024   9216  10240       1 KiB  1.0 ± 0.2 MiB  9 MiB     10 MiB            2
    sum                     -  3072   9216  12288     1.7 KiB  5.0 ± 0.4 MiB  9 MiB     14 MiB            -
";
        let (_, table) = out.split_once("\n\n").unwrap();
        assert_eq!(table.trim_start(), expected, "{out}");
    }

    #[test]
    fn where_code_counts_there_are_two_columns_more() {
        let text = r#"{"accounts":[{"name":"shop","exact_allocated_bytes_total":3145728,
            "live_by_ratio_bytes":2097152,"live_by_ratio_standard_error_bytes":104858,"classes":[
            {"class":"a.A","live_bytes":2097152,"live_objects":1024,"exact_allocated_bytes_total":3145000,
             "live_by_ratio_bytes":2097152,"live_by_ratio_standard_error_bytes":104858},
            {"class":"a.B","exact_allocated_bytes_total":728},
            {"class":"a.C"}]}]}"#;
        let out = written(text, Choice::default());
        let last = |name: &str| {
            let line = out.lines().find(|line| line.trim_start().starts_with(name));
            let (_, last) = line.expect("listed").split_once(" - ").expect("a dash");
            last.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty() && *cell != "-")
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert!(out.contains("COUNTED  BY RATIO ± ERROR"), "{out}");
        assert!(
            last("a.A").ends_with(&["3.0 MiB".into(), "2.0 ± 0.1 MiB".into()]),
            "{out}"
        );
        assert!(last("a.B").ends_with(&["728 B".into()]), "{out}");
        assert!(
            last("sum").ends_with(&["3 MiB".into(), "2.0 ± 0.1 MiB".into()]),
            "{out}"
        );
        assert!(!written(TEXT, Choice::default()).contains("COUNTED"));
    }

    #[test]
    fn ages_and_sizes_stand_under_each_other() {
        let choice = Choice {
            account: Some("shop"),
            ages: true,
        };
        let out = written(TEXT, choice);
        let expected = "\
    live bytes by age, up to
      CLASS                10 s   10 min   more
      com.acme.Session        -    1 MiB  3 MiB
      byte[]            512 KiB  512 KiB      -
    live bytes by size of one object, up to
      CLASS             1 KiB  2 KiB
      com.acme.Session      -  4 MiB
      byte[]            1 MiB      -
";
        assert!(out.ends_with(expected), "{out}");
        let nobody = Choice {
            account: Some("nobody"),
            ages: true,
        };
        assert!(written(TEXT, nobody).ends_with("  no account of this name\n"));
    }

    #[test]
    fn an_older_agent_and_many_classes() {
        let classes: Vec<String> = (0..50)
            .map(|n| {
                format!(
                    r#"{{"class":"C{n}\u001b","live_bytes":{},"live_objects":1}}"#,
                    100 - n
                )
            })
            .collect();
        let text = format!(
            r#"{{"accounts":[{{"name":"a\u202e","classes":[{}],"classes_omitted":7}}]}}"#,
            classes.join(",")
        );
        let choice = Choice {
            account: None,
            ages: true,
        };
        let out = written(&text, choice);
        assert!(
            out.contains(r"a\u{202e}: objects") && out.contains(r"C0\u{1b}"),
            "{out}"
        );
        assert!(
            out.contains("\n    30 other classes        -    30      -      -"),
            "{out}"
        );
        assert!(
            out.contains("and 7 more classes that the agent does not list"),
            "{out}"
        );
        assert!(
            out.contains("ages and sizes are known from the next collection"),
            "{out}"
        );
        assert!(out.lines().count() < 40, "{out}");
    }
}
