//! The difference as JSON and as CSV.

use std::io::{self, Write};

use policy_report::Snapshot;
use serde::Serialize;

use super::difference::{Change, Difference};
use super::sites::SiteChanges;
use heapwarden_terminal::json_line;
use heapwarden_terminal::printable;

#[derive(Serialize)]
struct Document<'a> {
    old: About<'a>,
    new: About<'a>,
    /// Both are of one run of the JVM.
    same_run: bool,
    /// The live bytes that both hold have cancelled.
    cancels: bool,
    /// A change of this size may have no sample.
    unseen_at_most_bytes: u64,
    total: Row,
    accounts: Vec<Account<'a>>,
    sites: Vec<Place<'a>>,
    /// Places that cannot be compared.
    sites_unknown: usize,
}

#[derive(Serialize)]
struct Place<'a> {
    account: &'a str,
    class: &'a str,
    frames: &'a [String],
    #[serde(flatten)]
    row: Row,
}

#[derive(Serialize)]
struct About<'a> {
    at: &'a str,
    why: &'a str,
    run: &'a str,
    jvm: &'a str,
    pid: u64,
    used_after_gc_bytes: u64,
    accounts_omitted: u64,
}

#[derive(Serialize)]
struct Account<'a> {
    account: &'a str,
    kind: &'a str,
    in_old: bool,
    in_new: bool,
    #[serde(flatten)]
    row: Row,
    classes: Vec<Class<'a>>,
    births: Vec<Birth<'a>>,
}

#[derive(Serialize)]
struct Class<'a> {
    class: &'a str,
    #[serde(flatten)]
    row: Row,
}

#[derive(Serialize)]
struct Birth<'a> {
    born_upto_epoch: u64,
    born_before: &'a str,
    #[serde(flatten)]
    row: Row,
}

#[derive(Serialize)]
struct Row {
    change_bytes: i64,
    standard_error_bytes: u64,
    significant: bool,
    came_bytes: u64,
    went_bytes: u64,
    old_bytes: u64,
    new_bytes: u64,
    change_objects: i64,
    came_objects: u64,
    went_objects: u64,
}

impl From<&Change> for Row {
    fn from(change: &Change) -> Row {
        Row {
            change_bytes: change.bytes(),
            standard_error_bytes: change.standard_error().ceil() as u64,
            significant: change.is_significant(),
            came_bytes: change.came_bytes,
            went_bytes: change.went_bytes,
            old_bytes: change.old_bytes,
            new_bytes: change.new_bytes,
            change_objects: change.objects(),
            came_objects: change.came_objects,
            went_objects: change.went_objects,
        }
    }
}

fn about<'a>(of: &'a Snapshot<'_>) -> About<'a> {
    About {
        at: &of.at,
        why: &of.why,
        run: &of.run.id,
        jvm: &of.jvm.name,
        pid: of.jvm.pid,
        used_after_gc_bytes: of.heap.used_after_gc_bytes,
        accounts_omitted: of.accounts_omitted,
    }
}

/// Writes one document in one line.
pub(super) fn json(
    found: &Difference,
    sites: &SiteChanges,
    [old, new]: [&Snapshot<'_>; 2],
    out: &mut dyn Write,
) -> io::Result<()> {
    let accounts = found.accounts.iter().map(|account| Account {
        account: &account.name,
        kind: &account.kind,
        in_old: account.is_in[0],
        in_new: account.is_in[1],
        row: (&account.change).into(),
        classes: (account.classes.iter())
            .map(|class| Class {
                class: &class.class,
                row: (&class.change).into(),
            })
            .collect(),
        births: (account.births.iter())
            .map(|birth| Birth {
                born_upto_epoch: birth.upto_epoch,
                born_before: &birth.at,
                row: (&birth.change).into(),
            })
            .collect(),
    });
    let document = Document {
        old: about(old),
        new: about(new),
        same_run: found.is_same_run,
        cancels: found.is_cut,
        unseen_at_most_bytes: found.unseen_bytes,
        total: (&found.total).into(),
        accounts: accounts.collect(),
        sites: (sites.changes.iter())
            .map(|site| Place {
                account: &site.account,
                class: &site.class,
                frames: &site.frames,
                row: (&site.change).into(),
            })
            .collect(),
        sites_unknown: sites.unknown,
    };
    json_line::write(&document, out)
}

/// The subject of each line of CSV: a class, a period of birth, or a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Lines {
    /// Each class of each account: together they are the whole change
    Classes,
    /// Each account by when its objects were born: together the whole change, of one run
    Births,
    /// Each place, of the accounts and classes of which stacks are taken
    Sites,
}

/// The columns after the names.
const COLUMNS: &str = "change_bytes,standard_error_bytes,significant,came_bytes,went_bytes,old_bytes,new_bytes,\
                       change_objects";

/// Writes a line for each of these that changed, with a head.
pub(super) fn csv(
    lines: Lines,
    found: &Difference,
    sites: &SiteChanges,
    out: &mut dyn Write,
) -> io::Result<()> {
    let names = match lines {
        Lines::Classes => "account,class",
        Lines::Births => "account,born_upto_epoch,born_before",
        Lines::Sites => "account,class,place",
    };
    writeln!(out, "{names},{COLUMNS}")?;
    match lines {
        Lines::Classes => {
            for account in &found.accounts {
                for one in &account.classes {
                    line(&[&account.name, &one.class], &one.change, out)?;
                }
            }
        }
        Lines::Births => {
            for account in &found.accounts {
                for one in &account.births {
                    let epoch = one.upto_epoch.to_string();
                    line(&[&account.name, &epoch, &one.at], &one.change, out)?;
                }
            }
        }
        Lines::Sites => {
            for one in &sites.changes {
                line(&[&one.account, &one.class, one.place()], &one.change, out)?;
            }
        }
    }
    Ok(())
}

fn line(names: &[&str], change: &Change, out: &mut dyn Write) -> io::Result<()> {
    for name in names {
        write!(out, "{},", quoted(name))?;
    }
    let row = Row::from(change);
    writeln!(
        out,
        "{},{},{},{},{},{},{},{}",
        row.change_bytes,
        row.standard_error_bytes,
        row.significant,
        row.came_bytes,
        row.went_bytes,
        row.old_bytes,
        row.new_bytes,
        row.change_objects
    )
}

/// A name as a field of CSV. Names come from tenants: what a spreadsheet would take for a formula gets an
/// apostrophe before it.
fn quoted(name: &str) -> String {
    let name = printable::escaped(name);
    let apostrophe = if name.starts_with(['=', '+', '-', '@']) {
        "'"
    } else {
        ""
    };
    format!("\"{apostrophe}{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_a_line_or_begin_a_formula() {
        assert_eq!(quoted("shop"), "\"shop\"");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
        assert_eq!(quoted("=cmd()"), "\"'=cmd()\"");
        assert!(!quoted("a\nb,c").contains('\n'));
    }
}
