//! Writes a class file with what was inserted.

use std::collections::BTreeMap;

use crate::class_file::{ClassFile, FIRST_WITH_FRAMES, Method};
use crate::code::{Code, MAX_CODE_BYTES};
use crate::error::RewriteError;
use crate::escape;
use crate::input::Output;
use crate::insertion::MethodEdit;
use crate::insertions::Insertions;
use crate::pool::AppendedConstants;
use crate::relocation::Relocation;
use crate::stack_map::{self, NewFrames};

/// The most bytes of stack maps that are written in full for one class, and more for each byte of its class file. A
/// frame in full names all local variables of its method, of which a few bytes may announce 65,535.
pub(crate) const MAX_FRAME_BYTES: usize = 1 << 20;
pub(crate) const MAX_FRAME_BYTES_BY_BYTE: usize = 16;

/// Gathers the edits of one class's methods and writes the class.
#[derive(Debug)]
pub struct Rewriter<'c, 'a> {
    class: &'c ClassFile<'a>,
    pub(crate) constants: AppendedConstants,
    /// By the place of the method: its new attribute `Code`, name and length included.
    codes: BTreeMap<usize, Vec<u8>>,
    /// Bytes of stack maps that may still be written in full, also for methods that are refused in the end.
    frame_bytes_left: usize,
}

impl<'c, 'a> Rewriter<'c, 'a> {
    /// Begins without an edit.
    #[must_use]
    pub fn new(class: &'c ClassFile<'a>) -> Rewriter<'c, 'a> {
        Rewriter {
            class,
            constants: AppendedConstants::after(class.pool()),
            codes: BTreeMap::new(),
            frame_bytes_left: MAX_FRAME_BYTES + MAX_FRAME_BYTES_BY_BYTE * class.bytes.len(),
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

    /// Writes the attribute `Code` of the edited method, from behind its length on.
    fn written(
        &mut self,
        method: &Method<'_>,
        code: &Code<'_>,
        edit: &MethodEdit,
    ) -> Result<Vec<u8>, RewriteError> {
        let constants = &mut self.constants;
        let room = &mut self.frame_bytes_left;
        let insertions = &edit.assemble(method, code, constants)?;
        let moved = Relocation::of(code, insertions)?;
        let pool = self.class.pool();
        let (escape, throwable) = insertions.escape().unwrap_or_default();
        let initialised = match method.name() {
            b"<init>" => escape::initialised_at(self.class, code)?,
            _ => None,
        };
        let mut handlers = match escape {
            [] => Vec::new(),
            _ => escape::handlers(self.class, method, code, &moved, initialised, escape.len())?,
        };
        let added = &insertions.new_locals[..];
        let mut attributes = Vec::new();
        let mut has_map = false;
        for attribute in code.attributes(|index| pool.text(index))? {
            has_map |= attribute.is_stack_map();
            let bytes = match attribute.is_stack_map() && !added.is_empty() {
                // The frames name the local variables of brackets.
                true => {
                    let new = NewFrames {
                        first: stack_map::first_locals(self.class, method, constants, room)?,
                        most: code.max_locals,
                        added,
                        initialised,
                        throwable,
                    };
                    let map =
                        stack_map::with_locals(attribute.bytes, &moved, &new, &handlers, room)?;
                    match map {
                        Some(map) => map,
                        None => {
                            handlers.clear();
                            stack_map::with_locals(attribute.bytes, &moved, &new, &[], room)?
                                .unwrap_or_default()
                        }
                    }
                }
                false => attribute.relocated(&moved)?,
            };
            attributes.push((attribute.name, bytes));
        }
        let needs_map = moved.guarded || !handlers.is_empty();
        if needs_map && self.class.version() >= FIRST_WITH_FRAMES && !has_map {
            let name = constants.text("StackMapTable")?;
            let map = match moved.guarded {
                true => stack_map::of_guard(&moved)?,
                false => {
                    let new = NewFrames {
                        first: Vec::new(),
                        most: code.max_locals,
                        added,
                        initialised,
                        throwable,
                    };
                    let map = stack_map::with_locals(&[0, 0], &moved, &new, &handlers, room)?;
                    map.unwrap_or_default()
                }
            };
            attributes.push((name, map));
        }
        let length_with_escapes = moved.length + handlers.len() * escape.len();
        if length_with_escapes > MAX_CODE_BYTES {
            return Err(RewriteError::MethodTooLong);
        }
        let mut body = Vec::new();
        body.put_u2(insertions.max_stack);
        body.put_u2(insertions.max_locals);
        body.put_u4(length_with_escapes as u32);
        body.extend_from_slice(&bytecode(code, insertions, &moved)?);
        body.extend_from_slice(&escape.repeat(handlers.len()));
        let rows = code.handlers.len() + handlers.len();
        let full = RewriteError::Full("the table of handlers");
        body.put_u2(u16::try_from(rows).map_err(|_| full)?);
        for row in &code.handlers {
            const WHAT: &str = "a handler";
            body.put_u2(moved.start(row.start, WHAT)?);
            body.put_u2(moved.start_or_end(row.end, WHAT)?);
            body.put_u2(moved.start(row.handler, WHAT)?);
            body.put_u2(row.class);
        }
        for row in &handlers {
            body.put_u2(row.start);
            body.put_u2(row.end);
            body.put_u2(row.handler);
            // Of everything that is thrown.
            body.put_u2(0);
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
