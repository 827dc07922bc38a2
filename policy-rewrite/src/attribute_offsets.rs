//! How the offsets in attributes of code move.

use crate::attributes::{CodeAttribute, Kind};
use crate::error::RewriteError;
use crate::input::{Input, Output};
use crate::relocation::Relocation;
use crate::stack_map;

impl CodeAttribute<'_> {
    /// The attribute's bytes with its offsets moved.
    pub(crate) fn relocated(&self, moved: &Relocation<'_>) -> Result<Vec<u8>, RewriteError> {
        match self.kind {
            Kind::StackMapTable => stack_map::relocated(self.bytes, moved),
            Kind::LineNumbers => line_numbers(self.bytes, moved),
            Kind::LocalVariables => local_variables(self.bytes, moved),
            Kind::TypeAnnotations => type_annotations(self.bytes, moved),
        }
    }
}

fn line_numbers(bytes: &[u8], moved: &Relocation<'_>) -> Result<Vec<u8>, RewriteError> {
    let mut input = Input::new(bytes, "the line numbers");
    let mut output = Vec::with_capacity(bytes.len());
    let count = input.u2()?;
    output.put_u2(count);
    for _ in 0..count {
        output.put_u2(moved.start(input.u2()?, "a line number")?);
        output.put_u2(input.u2()?);
    }
    input.end()?;
    Ok(output)
}

fn local_variables(bytes: &[u8], moved: &Relocation<'_>) -> Result<Vec<u8>, RewriteError> {
    let mut input = Input::new(bytes, "the local variables");
    let mut output = Vec::with_capacity(bytes.len());
    let count = input.u2()?;
    output.put_u2(count);
    for _ in 0..count {
        range(&mut input, &mut output, moved)?;
        output.extend_from_slice(input.take(6)?);
    }
    input.end()?;
    Ok(output)
}

/// A start and a length.
fn range(
    input: &mut Input<'_>,
    output: &mut Vec<u8>,
    moved: &Relocation<'_>,
) -> Result<(), RewriteError> {
    const WHAT: &str = "a local variable's range";
    let (start, length) = (input.u2()?, input.u2()?);
    let beyond = RewriteError::Offset {
        what: WHAT,
        offset: i64::from(start) + i64::from(length),
    };
    let end = start.checked_add(length).ok_or(beyond)?;
    let (start, end) = (
        moved.start_or_end(start, WHAT)?,
        moved.start_or_end(end, WHAT)?,
    );
    output.put_u2(start);
    output.put_u2(end - start);
    Ok(())
}

fn type_annotations(bytes: &[u8], moved: &Relocation<'_>) -> Result<Vec<u8>, RewriteError> {
    const WHAT: &str = "a type annotation";
    let mut input = Input::new(bytes, WHAT);
    let mut output = Vec::with_capacity(bytes.len());
    let count = input.u2()?;
    output.put_u2(count);
    for _ in 0..count {
        let target = input.u1()?;
        output.put_u1(target);
        match target {
            // Local variables and resources (§4.7.20.1).
            0x40 | 0x41 => {
                let ranges = input.u2()?;
                output.put_u2(ranges);
                for _ in 0..ranges {
                    range(&mut input, &mut output, moved)?;
                    output.put_u2(input.u2()?);
                }
            }
            // A row of the exception table; no row is added or taken.
            0x42 => output.put_u2(input.u2()?),
            // An instruction; a cast or type argument has its number behind it.
            0x43..=0x46 => output.put_u2(moved.instruction(input.u2()?, WHAT)?),
            0x47..=0x4b => {
                output.put_u2(moved.instruction(input.u2()?, WHAT)?);
                output.put_u1(input.u1()?);
            }
            _ => return Err(RewriteError::Form(WHAT)),
        }
        let path = input.u1()?;
        output.put_u1(path);
        output.extend_from_slice(input.take(usize::from(path) * 2)?);
        copy_annotation(&mut input, &mut output)?;
    }
    input.end()?;
    Ok(output)
}

/// Copies an annotation behind its target (§4.7.16). Values nest; they are walked by a count of what is
/// still to come, because the nesting of hostile input has no bound.
fn copy_annotation(input: &mut Input<'_>, output: &mut Vec<u8>) -> Result<(), RewriteError> {
    /// The values of one level that are still to come.
    enum Next {
        /// So many values, each behind its name.
        Named(u16),
        /// So many values without names.
        Plain(u16),
    }
    let pairs = |input: &mut Input<'_>, output: &mut Vec<u8>| {
        output.put_u2(input.u2()?);
        let count = input.u2()?;
        output.put_u2(count);
        Ok(Next::Named(count))
    };
    let mut open = vec![pairs(input, output)?];
    while let Some(next) = open.last_mut() {
        let left = match next {
            Next::Named(0) | Next::Plain(0) => {
                open.pop();
                continue;
            }
            Next::Named(left) => {
                output.put_u2(input.u2()?);
                left
            }
            Next::Plain(left) => left,
        };
        *left -= 1;
        let tag = input.u1()?;
        output.put_u1(tag);
        match tag {
            b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' | b's' | b'c' => {
                output.put_u2(input.u2()?);
            }
            b'e' => output.put_u4(input.u4()?),
            b'@' => open.push(pairs(input, output)?),
            b'[' => {
                let count = input.u2()?;
                output.put_u2(count);
                open.push(Next::Plain(count));
            }
            _ => return Err(RewriteError::Form("an annotation's value")),
        }
    }
    Ok(())
}
