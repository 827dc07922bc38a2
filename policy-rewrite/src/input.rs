//! Reading and writing of big-endian numbers, with every bound checked.

use crate::error::RewriteError;

/// The unread rest of some bytes; `what` names them in errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    bytes: &'a [u8],
    position: usize,
    what: &'static str,
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8], what: &'static str) -> Input<'a> {
        Input {
            bytes,
            position: 0,
            what,
        }
    }

    /// Bytes that were read.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], RewriteError> {
        let rest = &self.bytes[self.position..];
        let taken = rest
            .get(..count)
            .ok_or(RewriteError::Truncated(self.what))?;
        self.position += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RewriteError> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("so many were taken"))
    }

    pub(crate) fn u1(&mut self) -> Result<u8, RewriteError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u2(&mut self) -> Result<u16, RewriteError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(crate) fn u4(&mut self) -> Result<u32, RewriteError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(crate) fn i4(&mut self) -> Result<i32, RewriteError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// An error unless everything was read.
    pub(crate) fn end(self) -> Result<(), RewriteError> {
        match self.position == self.bytes.len() {
            true => Ok(()),
            false => Err(RewriteError::Overlong(self.what)),
        }
    }
}

/// Appends big-endian numbers.
pub(crate) trait Output {
    fn put_u1(&mut self, value: u8);
    fn put_u2(&mut self, value: u16);
    fn put_u4(&mut self, value: u32);
}

impl Output for Vec<u8> {
    fn put_u1(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u2(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u4(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }
}
