//! Writes a class file with what was inserted.

use std::collections::BTreeMap;

use crate::class_file::{ClassFile, FIRST_WITH_FRAMES, Method};
use crate::code::Code;
use crate::error::RewriteError;
use crate::input::Output;
use crate::insertion::{Insertions, MethodEdit};
use crate::pool::AppendedConstants;
use crate::relocation::Relocation;
use crate::stack_map;

/// Gathers the edits of one class's methods and writes the class.
#[derive(Debug)]
pub struct Rewriter<'c, 'a> {
    class: &'c ClassFile<'a>,
    pub(crate) constants: AppendedConstants,
    /// By the place of the method: its new attribute `Code`, name and length included.
    codes: BTreeMap<usize, Vec<u8>>,
}

impl<'c, 'a> Rewriter<'c, 'a> {
    /// Begins without an edit.
    #[must_use]
    pub fn new(class: &'c ClassFile<'a>) -> Rewriter<'c, 'a> {
        Rewriter {
            class,
            constants: AppendedConstants::after(class.pool()),
            codes: BTreeMap::new(),
        }
    }

    /// Edits one of the class's methods; a later edit of the same method replaces an earlier one.
    ///
    /// # Errors
    /// If something of the method is not understood, or it has no room. Then it stays as it was before the
    /// call, and the other methods with it.
    pub fn edit(&mut self, method: &Method<'a>, edit: &MethodEdit) -> Result<(), RewriteError> {
        if edit.is_empty() {
            return Ok(());
        }
        let (Some(code), Some(range)) = (method.code()?, method.code_range()) else {
            return Err(RewriteError::Insertion("code into a method that has none"));
        };
        let mark = self.constants.mark();
        let written = self.written(method, &code, edit);
        let body = written.inspect_err(|_| self.constants.take_back(mark))?;
        let mut attribute = self.class.bytes[range.start..range.start + 2].to_vec();
        attribute.put_u4(body.len() as u32);
        attribute.extend_from_slice(&body);
        self.codes.insert(method.index, attribute);
        Ok(())
    }

    /// The class file with all edits; `None` if there was none, and the old bytes are right.
    #[must_use]
    pub fn finish(self) -> Option<Vec<u8>> {
        if self.codes.is_empty() {
            return None;
        }
        let bytes = self.class.bytes;
        let (count, appended) = self.constants.written();
        let pool = self.class.pool_range.clone();
        let grown = appended.len() + self.codes.values().map(Vec::len).sum::<usize>();
        let mut output = Vec::with_capacity(bytes.len() + grown);
        output.extend_from_slice(&bytes[..pool.start]);
        output.put_u2(count);
        output.extend_from_slice(&bytes[pool.start + 2..pool.end]);
        output.extend_from_slice(appended);
        let mut copied = pool.end;
        for (index, attribute) in &self.codes {
            let range = self.class.methods()[*index].code_range();
            let range = range.expect("a method with code was edited");
            output.extend_from_slice(&bytes[copied..range.start]);
            output.extend_from_slice(attribute);
            copied = range.end;
        }
        output.extend_from_slice(&bytes[copied..]);
        Some(output)
    }

    /// What the attribute `Code` of the edited method holds behind its length.
    fn written(
        &mut self,
        method: &Method<'_>,
        code: &Code<'_>,
        edit: &MethodEdit,
    ) -> Result<Vec<u8>, RewriteError> {
        let constants = &mut self.constants;
        let insertions = &edit.assemble(method, code, constants)?;
        let moved = Relocation::of(code, insertions)?;
        let pool = self.class.pool();
        let mut attributes = Vec::new();
        let mut has_map = false;
        for attribute in code.attributes(|index| pool.text(index))? {
            has_map |= attribute.is_stack_map();
            let bytes = match attribute.is_stack_map() && insertions.max_locals > code.max_locals {
                // The frames name the local variable of the bracket.
                true => {
                    let first = stack_map::first_locals(self.class, method, constants)?;
                    stack_map::with_local(attribute.bytes, &moved, first, code.max_locals)?
                }
                false => attribute.relocated(&moved)?,
            };
            attributes.push((attribute.name, bytes));
        }
        let needs_map = moved.guarded && self.class.version() >= FIRST_WITH_FRAMES;
        if needs_map && !has_map {
            let name = constants.text("StackMapTable")?;
            attributes.push((name, stack_map::of_guard(&moved)?));
        }
        let mut body = Vec::new();
        body.put_u2(insertions.max_stack);
        body.put_u2(insertions.max_locals);
        body.put_u4(moved.length as u32);
        body.extend_from_slice(&bytecode(code, insertions, &moved)?);
        body.put_u2(code.handlers.len() as u16);
        for row in &code.handlers {
            const WHAT: &str = "a handler";
            body.put_u2(moved.start(row.start, WHAT)?);
            body.put_u2(moved.start_or_end(row.end, WHAT)?);
            body.put_u2(moved.start(row.handler, WHAT)?);
            body.put_u2(row.class);
        }
        let full = RewriteError::Full("the table of attributes");
        body.put_u2(u16::try_from(attributes.len()).map_err(|_| full)?);
        for (name, bytes) in attributes {
            body.put_u2(name);
            body.put_u4(length(&bytes)?);
            body.extend_from_slice(&bytes);
        }
        // The attribute's own length has four bytes too.
        length(&body)?;
        Ok(body)
    }
}

fn length(bytes: &[u8]) -> Result<u32, RewriteError> {
    u32::try_from(bytes.len()).map_err(|_| RewriteError::Full("an attribute"))
}

fn bytecode(
    code: &Code<'_>,
    insertions: &Insertions,
    moved: &Relocation<'_>,
) -> Result<Vec<u8>, RewriteError> {
    let mut output = Vec::with_capacity(moved.length);
    output.extend_from_slice(insertions.entry().unwrap_or_default());
    for instruction in code.instructions() {
        output.extend_from_slice(insertions.before(instruction.offset));
        moved.write(&instruction, &mut output)?;
        output.extend_from_slice(insertions.after(instruction.offset));
    }
    debug_assert_eq!(output.len(), moved.length);
    Ok(output)
}
