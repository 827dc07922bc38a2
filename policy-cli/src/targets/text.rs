//! Answers as text, one JVM after the other.

use std::io::{self, Write};

use super::{Answer, Asked, Document};

/// Has `of_one` write each answer to `out` with an empty line between two; it is told the JVM's name. Writes to
/// `err` why the others could not be read.
pub(crate) fn write_each<D: Document>(
    found: &[Asked<D>],
    out: &mut dyn Write,
    err: &mut dyn Write,
    mut of_one: impl FnMut(&Asked<D>, &str, &Answer<D>, &mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut is_first = true;
    for one in found {
        let name = one.name();
        let answer = match &one.answer {
            Ok(answer) => answer,
            Err(error) => {
                writeln!(err, "{name}: {error}")?;
                continue;
            }
        };
        if !is_first {
            writeln!(out)?;
        }
        is_first = false;
        of_one(one, &name, answer, out)?;
    }
    Ok(())
}
