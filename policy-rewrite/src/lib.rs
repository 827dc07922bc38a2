//! Reads class files and inserts code into their methods (The Java Virtual Machine Specification, Java SE
//! 25 edition, chapter 4; "§" in this crate means a section of it).
//!
//! The code that may be inserted is chosen so that no stack map has to be computed:
//!
//! * A [`Snippet`] is straight-line code, before or after one instruction. It leaves the stack as it found
//!   it and writes no local variable. So every frame of the method stays true and only offsets move.
//! * A [`Guard`] stands at the entry of a method: it asks, and leaves the method or lets the call go on. It
//!   branches once. At its target the stack is empty and the local variables are the arguments: one `same`
//!   frame says so.
//!
//! * A [`Bracket`] stands around a method: its number is in a new local variable, behind all others, from the
//!   entry on. So each frame gains that one variable, and nothing has to be computed of the method itself. If it is
//!   to end with exceptions too, a handler stands behind the code, for all of it and after all other handlers. Its
//!   frame has these numbers and nothing of the method; a constructor has two (the module `escape`).
//!
//! The rules:
//!
//! 1. A class into which nothing was inserted is not written at all: [`Rewriter::finish`] gives `None`.
//! 2. What is not touched keeps its bytes. The constant pool only grows at its end, so no index changes.
//! 3. A jump to an instruction runs what was inserted before it, and not what was inserted after the one
//!    above it. So a snippet after an instruction runs exactly when that instruction has completed.
//! 4. What is not understood is refused with a [`RewriteError`] that says what it was: a class by
//!    [`ClassFile::parse`], one method by [`Rewriter::edit`], which leaves that method and all others as
//!    they are.
//! 5. Input may be hostile. Time and memory are linear in the length of the class file; nothing recurses
//!    into the input, and no count of it is believed before its bytes are there.
//!
//! ```no_run
//! use policy_rewrite::{ClassFile, MethodEdit, Rewriter, Snippet};
//!
//! # fn main() -> Result<(), policy_rewrite::RewriteError> {
//! # let bytes: Vec<u8> = Vec::new();
//! const NEW: u8 = 0xbb;
//! let class = ClassFile::parse(&bytes)?;
//! let mut rewriter = Rewriter::new(&class);
//! let count = Snippet::new().invoke_static("com/acme/Counter", "count", "()V")?;
//! for method in class.methods() {
//!     let Some(code) = method.code()? else { continue };
//!     let mut edit = MethodEdit::default();
//!     for instruction in code.instructions().filter(|found| found.opcode == NEW) {
//!         edit.after(instruction.offset, count.clone());
//!     }
//!     rewriter.edit(method, &edit)?;
//! }
//! let rewritten: Option<Vec<u8>> = rewriter.finish();
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod attribute_offsets;
mod attributes;
mod blocks;
mod class_file;
mod code;
mod error;
mod escape;
mod input;
mod insertion;
mod insertions;
mod instructions;
pub mod oracle;
mod pool;
mod relocation;
mod rewriter;
mod snippet;
mod stack_map;
mod tally;
#[cfg(test)]
mod tests;

pub use class_file::{ClassFile, Method};
pub use code::Code;
pub use error::RewriteError;
pub use insertion::{Again, Bracket, Guard, Leave, MethodEdit};
pub use instructions::Instruction;
pub use pool::{ConstantPool, Member};
pub use rewriter::Rewriter;
pub use snippet::Snippet;
