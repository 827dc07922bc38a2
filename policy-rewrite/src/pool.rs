//! The constant pool (§4.4): reading it, and what is appended to it.

use std::collections::HashMap;
use std::ops::Range;

use crate::error::RewriteError;
use crate::input::{Input, Output};

const UTF8: u8 = 1;
const INTEGER: u8 = 3;
const FLOAT: u8 = 4;
const LONG: u8 = 5;
const DOUBLE: u8 = 6;
const CLASS: u8 = 7;
const STRING: u8 = 8;
const FIELD: u8 = 9;
const METHOD: u8 = 10;
const INTERFACE_METHOD: u8 = 11;
const NAME_AND_TYPE: u8 = 12;
const METHOD_HANDLE: u8 = 15;
const METHOD_TYPE: u8 = 16;
const DYNAMIC: u8 = 17;
const INVOKE_DYNAMIC: u8 = 18;
const MODULE: u8 = 19;
const PACKAGE: u8 = 20;

/// The constants of one class file.
#[derive(Debug)]
pub struct ConstantPool<'a> {
    bytes: &'a [u8],
    /// Where each constant's tag stands in `bytes`; 0 for index 0 and the second half of a long.
    starts: Vec<u32>,
}

/// A field or method that a constant names; the names as a class file writes them (`java/lang/Object`,
/// modified UTF-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its class.
    pub class: &'a [u8],
    /// Its name.
    pub name: &'a [u8],
    /// Its descriptor.
    pub descriptor: &'a [u8],
}

impl<'a> ConstantPool<'a> {
    /// Reads the pool that follows, its count included. `bytes` is the whole class file.
    pub(crate) fn parse(
        bytes: &'a [u8],
        input: &mut Input<'a>,
    ) -> Result<ConstantPool<'a>, RewriteError> {
        let count = input.u2()?;
        let mut starts = vec![0];
        while starts.len() < usize::from(count) {
            let index = starts.len() as u16;
            starts.push(input.position() as u32);
            let tag = input.u1()?;
            let length = match tag {
                UTF8 => usize::from(input.u2()?),
                INTEGER | FLOAT | FIELD | METHOD | INTERFACE_METHOD | NAME_AND_TYPE | DYNAMIC
                | INVOKE_DYNAMIC => 4,
                LONG | DOUBLE => {
                    starts.push(0);
                    8
                }
                CLASS | STRING | METHOD_TYPE | MODULE | PACKAGE => 2,
                METHOD_HANDLE => 3,
                _ => return Err(RewriteError::ConstantTag { index, tag }),
            };
            input.take(length)?;
        }
        // A long at the very end takes an index that the count does not have.
        match starts.len() == usize::from(count).max(1) {
            true => Ok(ConstantPool { bytes, starts }),
            false => Err(RewriteError::Form("the constant pool")),
        }
    }

    /// The number of indexes in use, index 0 included.
    pub(crate) fn count(&self) -> u16 {
        self.starts.len() as u16
    }

    fn find(
        &self,
        index: u16,
        tags: &[u8],
        expected: &'static str,
    ) -> Result<Input<'a>, RewriteError> {
        let wrong = RewriteError::Constant { index, expected };
        let start = match self.starts.get(usize::from(index)) {
            None | Some(0) => return Err(wrong),
            Some(start) => *start as usize,
        };
        let mut input = Input::new(&self.bytes[start..], "the constant pool");
        match tags.contains(&input.u1()?) {
            true => Ok(input),
            false => Err(wrong),
        }
    }

    /// The text at `index`, in modified UTF-8 (§4.4.7).
    ///
    /// # Errors
    /// If there is no text.
    pub fn text(&self, index: u16) -> Result<&'a [u8], RewriteError> {
        let mut found = self.find(index, &[UTF8], "a text")?;
        let length = found.u2()?;
        found.take(usize::from(length))
    }

    /// The name of the class at `index`, as `java/lang/Object` or `[I`.
    ///
    /// # Errors
    /// If there is no class.
    pub fn class(&self, index: u16) -> Result<&'a [u8], RewriteError> {
        self.text(self.find(index, &[CLASS], "a class")?.u2()?)
    }

    /// Where in the class file the name of the class at `index` stands, its length in front included.
    pub(crate) fn class_range(&self, index: u16) -> Result<Range<usize>, RewriteError> {
        let text = self.find(index, &[CLASS], "a class")?.u2()?;
        let length = self.text(text)?.len();
        let start = self.starts[usize::from(text)] as usize + 1;
        Ok(start..start + 2 + length)
    }

    /// The field or method at `index`.
    ///
    /// # Errors
    /// If there is neither.
    pub fn member(&self, index: u16) -> Result<Member<'a>, RewriteError> {
        let members = [FIELD, METHOD, INTERFACE_METHOD];
        let mut found = self.find(index, &members, "a field or method")?;
        let class = self.class(found.u2()?)?;
        let mut pair = self.find(found.u2()?, &[NAME_AND_TYPE], "a name and type")?;
        Ok(Member {
            class,
            name: self.text(pair.u2()?)?,
            descriptor: self.text(pair.u2()?)?,
        })
    }
}

/// Constants to append; each is appended once.
#[derive(Debug)]
pub(crate) struct AppendedConstants {
    next: u16,
    bytes: Vec<u8>,
    known: HashMap<Vec<u8>, u16>,
    /// The index of each, and where it begins among the bytes.
    places: Vec<(u16, usize)>,
}

impl AppendedConstants {
    pub(crate) fn after(pool: &ConstantPool<'_>) -> AppendedConstants {
        AppendedConstants {
            next: pool.count(),
            bytes: Vec::new(),
            known: HashMap::new(),
            places: Vec::new(),
        }
    }

    /// Where they end now, for [`AppendedConstants::take_back`].
    pub(crate) fn mark(&self) -> (u16, usize) {
        (self.next, self.bytes.len())
    }

    /// Takes back what was appended since `mark`.
    pub(crate) fn take_back(&mut self, mark: (u16, usize)) {
        // From the end: a search through all of them for each method would not be linear.
        while let Some((_, start)) = self.places.pop_if(|(index, _)| *index >= mark.0) {
            self.known.remove(&self.bytes[start..]);
            self.bytes.truncate(start);
        }
        self.next = mark.0;
    }

    /// The pool's count with these, and their bytes.
    pub(crate) fn written(&self) -> (u16, &[u8]) {
        (self.next, &self.bytes)
    }

    fn append(&mut self, constant: Vec<u8>, indexes: u16) -> Result<u16, RewriteError> {
        if let Some(index) = self.known.get(&constant) {
            return Ok(*index);
        }
        let index = self.next;
        let full = RewriteError::Full("the constant pool");
        self.next = index.checked_add(indexes).ok_or(full)?;
        self.places.push((index, self.bytes.len()));
        self.bytes.extend_from_slice(&constant);
        self.known.insert(constant, index);
        Ok(index)
    }

    /// `text` must be ASCII without NUL, of which modified UTF-8 makes nothing else.
    pub(crate) fn text(&mut self, text: &str) -> Result<u16, RewriteError> {
        if !text.bytes().all(|byte| (1..0x80).contains(&byte)) {
            return Err(RewriteError::Insertion("a name that is not ASCII"));
        }
        self.modified_utf8(text.as_bytes())
    }

    /// A text as a class file has it, of which nothing is to be known.
    fn modified_utf8(&mut self, text: &[u8]) -> Result<u16, RewriteError> {
        let length = u16::try_from(text.len())
            .map_err(|_| RewriteError::Insertion("a name of more than 65,535 bytes"))?;
        let mut constant = vec![UTF8];
        constant.put_u2(length);
        constant.extend_from_slice(text);
        self.append(constant, 1)
    }

    fn pair(&mut self, tag: u8, first: u16, second: u16) -> Result<u16, RewriteError> {
        let mut constant = vec![tag];
        constant.put_u2(first);
        constant.put_u2(second);
        self.append(constant, 1)
    }

    pub(crate) fn method(
        &mut self,
        class: &str,
        name: &str,
        descriptor: &str,
    ) -> Result<u16, RewriteError> {
        let class = self.class(class.as_bytes())?;
        let (name, descriptor) = (self.text(name)?, self.text(descriptor)?);
        let pair = self.pair(NAME_AND_TYPE, name, descriptor)?;
        self.pair(METHOD, class, pair)
    }

    /// The class of this name, as `java/lang/Object` or `[I`, in modified UTF-8.
    pub(crate) fn class(&mut self, name: &[u8]) -> Result<u16, RewriteError> {
        let mut constant = vec![CLASS];
        constant.put_u2(self.modified_utf8(name)?);
        self.append(constant, 1)
    }

    pub(crate) fn integer(&mut self, value: i32) -> Result<u16, RewriteError> {
        let mut constant = vec![INTEGER];
        constant.extend_from_slice(&value.to_be_bytes());
        self.append(constant, 1)
    }

    pub(crate) fn long(&mut self, value: i64) -> Result<u16, RewriteError> {
        let mut constant = vec![LONG];
        constant.extend_from_slice(&value.to_be_bytes());
        self.append(constant, 2)
    }
}
