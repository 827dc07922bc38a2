//! The parts that the lists of accounts have in common.

use std::io::{self, Write};

use super::lines::heap_line;
use crate::targets;
use heapwarden_client::live::Accounts;
use heapwarden_terminal::table::amount;

/// The result of reading one JVM.
pub(super) type Asked = targets::Asked<Accounts>;

/// Most accounts that are listed for one JVM.
pub(super) const MAX_ACCOUNTS: usize = 200;
/// Widest name of an account in a table, in columns.
pub(super) const MAX_ACCOUNT_COLUMNS: usize = 30;

/// Has `of_one` write the accounts of each JVM to `out`, below a line about its heap. Writes to `err` why others could
/// not be read.
pub(super) fn write_each(
    found: &[Asked],
    out: &mut dyn Write,
    err: &mut dyn Write,
    of_one: impl Fn(&Accounts, &mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    targets::write_each(found, out, err, |_, address, answer, out| {
        writeln!(out, "{address}: {}", heap_line(&answer.document))?;
        of_one(&answer.document, out)
    })
}

/// Writes how many accounts are not listed, if there are any.
pub(super) fn write_omitted(omitted: u64, out: &mut dyn Write) -> io::Result<()> {
    match omitted {
        0 => Ok(()),
        omitted => writeln!(out, "  and {} more accounts", amount::count(omitted)),
    }
}

/// Returns the text that `write` makes of one JVM that answered `text`.
#[cfg(test)]
pub(super) fn written(
    text: &str,
    write: impl FnOnce(&[Asked], &mut dyn Write, &mut dyn Write) -> io::Result<()>,
) -> String {
    let found = [Asked::at("9464", Ok(targets::Answer::of(text, None)))];
    let (mut out, mut err) = (Vec::new(), Vec::new());
    write(&found, &mut out, &mut err).unwrap();
    assert!(err.is_empty());
    String::from_utf8(out).unwrap()
}
