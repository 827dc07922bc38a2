//! Finds exception handlers and allocation sites in a method's bytecode, by pure functions.
//!
//! JVM TI gives the instructions but not the exception table. An instruction that cannot be reached
//! from the first one by jumps and falling through can only be reached through that table: it
//! belongs to a catch block, or to the copy of a finally block that runs for an exception. This
//! analysis misses a finally block if the compiler shares one copy between both paths; javac has
//! written two copies since JDK 1.4.2.
//!
//! A frame below the top is at its invoke instruction, the top frame at the instruction that
//! allocates: both positions are starts of instructions.

use std::ops::Range;

/// The kind of allocation that an instruction makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Site {
    /// `new`.
    Instance,
    /// `newarray`.
    PrimitiveArray,
    /// `anewarray`.
    ReferenceArray,
    /// `multianewarray`.
    ArrayOfArrays,
    /// A call of a method; compiled code allocates here if it has inlined the callee.
    Call,
    /// Native code.
    Native,
    /// Anything else: the VM allocates on its own behalf.
    Other,
}

/// The handlers and allocation sites of a method's code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Code {
    /// Ranges that only exceptions lead to; sorted, not touching each other.
    handlers: Box<[Range<u32>]>,
    /// Instructions that are not [`Site::Other`], sorted.
    sites: Box<[(u16, Site)]>,
}

impl Code {
    /// Reads a method's instructions. If they are invalid or unknown, the whole method counts as a
    /// handler.
    pub fn read(bytes: &[u8]) -> Code {
        analyse(bytes).unwrap_or_else(Code::unknown)
    }

    /// The same code, of a method that makes an instance by a call: compiled code has that call inlined.
    pub fn with_calls_for_instances(mut self) -> Code {
        for (_, site) in &mut self.sites {
            if *site == Site::Call {
                *site = Site::Instance;
            }
        }
        self
    }

    /// Code of which nothing is known: no place in it is safe.
    pub fn unknown() -> Code {
        Code {
            handlers: std::iter::once(0..u32::MAX).collect(),
            sites: Box::default(),
        }
    }

    /// Whether the instruction at `bci` runs only after an exception.
    pub fn in_handler(&self, bci: u32) -> bool {
        let after = self.handlers.partition_point(|range| range.start <= bci);
        after > 0 && self.handlers[after - 1].contains(&bci)
    }

    /// Returns the kind of allocation that the instruction at `bci` makes; [`Site::Other`] if it makes none itself.
    pub fn site(&self, bci: u32) -> Site {
        self.sites
            .binary_search_by_key(&bci, |&(at, _)| u32::from(at))
            .map_or(Site::Other, |found| self.sites[found].1)
    }

    /// Bytes held beyond the value itself.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.handlers) + size_of_val(&*self.sites)
    }
}

/// Where control goes after an instruction.
enum Next {
    /// To the following instruction.
    On,
    /// To this index and to the following instruction: a condition, or a `jsr` that returns.
    Branch(u32),
    /// Only to this index.
    Jump(u32),
    /// To one of these.
    Switch(Vec<u32>),
    /// Nowhere: a return, a throw, or a `ret` (its `jsr` has the path back).
    End,
}

struct Instruction {
    length: u32,
    next: Next,
    site: Site,
}

fn analyse(bytes: &[u8]) -> Option<Code> {
    /// No method is longer (JVM specification, 4.7.3).
    const MAX_BYTES: usize = 65_535;
    if bytes.len() > MAX_BYTES {
        return None;
    }
    let end = bytes.len() as u32;
    let mut starts = Vec::new();
    let mut sites = Vec::new();
    let mut nexts: Vec<Option<(u32, Next)>> = Vec::new();
    nexts.resize_with(bytes.len(), || None);
    let mut bci = 0;
    while bci < end {
        let instruction = decode(bytes, bci)?;
        let following = bci.checked_add(instruction.length)?;
        if following > end {
            return None;
        }
        starts.push(bci);
        if instruction.site != Site::Other {
            sites.push((bci as u16, instruction.site));
        }
        nexts[bci as usize] = Some((following, instruction.next));
        bci = following;
    }

    let mut reached = vec![false; bytes.len()];
    let mut pending = if end > 0 { vec![0] } else { Vec::new() };
    while let Some(bci) = pending.pop() {
        if *reached.get(bci as usize)? {
            continue;
        }
        // A jump into the middle of an instruction is invalid.
        let (following, next) = nexts.get(bci as usize)?.as_ref()?;
        reached[bci as usize] = true;
        match next {
            Next::On => pending.push(*following),
            Next::Branch(target) => pending.extend([*following, *target]),
            Next::Jump(target) => pending.push(*target),
            Next::Switch(targets) => pending.extend(targets),
            Next::End => {}
        }
    }

    let mut handlers: Vec<Range<u32>> = Vec::new();
    for (index, &start) in starts.iter().enumerate() {
        if reached[start as usize] {
            continue;
        }
        let following = starts.get(index + 1).copied().unwrap_or(end);
        match handlers.last_mut() {
            Some(last) if last.end == start => last.end = following,
            _ => handlers.push(start..following),
        }
    }
    Some(Code {
        handlers: handlers.into(),
        sites: sites.into(),
    })
}

fn byte(bytes: &[u8], at: u32) -> Option<u8> {
    bytes.get(at as usize).copied()
}

fn short(bytes: &[u8], at: u32) -> Option<i16> {
    let raw = bytes.get(at as usize..)?.first_chunk()?;
    Some(i16::from_be_bytes(*raw))
}

fn int(bytes: &[u8], at: u32) -> Option<i32> {
    let raw = bytes.get(at as usize..)?.first_chunk()?;
    Some(i32::from_be_bytes(*raw))
}

/// The instruction at `bci`; numbers are those of the JVM specification, chapter 6.
fn decode(bytes: &[u8], bci: u32) -> Option<Instruction> {
    let near = || bci.checked_add_signed(i32::from(short(bytes, bci + 1)?));
    let far = || bci.checked_add_signed(int(bytes, bci + 1)?);
    let plain = |length, next| {
        Some(Instruction {
            length,
            next,
            site: Site::Other,
        })
    };
    let allocates = |length, site| {
        Some(Instruction {
            length,
            next: Next::On,
            site,
        })
    };
    match byte(bytes, bci)? {
        // goto, jsr; goto_w, jsr_w
        0xa7 => plain(3, Next::Jump(near()?)),
        0xa8 => plain(3, Next::Branch(near()?)),
        0xc8 => plain(5, Next::Jump(far()?)),
        0xc9 => plain(5, Next::Branch(far()?)),
        // if…, ifnull, ifnonnull
        0x99..=0xa6 | 0xc6 | 0xc7 => plain(3, Next::Branch(near()?)),
        // ret; …return, athrow
        0xa9 => plain(2, Next::End),
        0xac..=0xb1 | 0xbf => plain(1, Next::End),
        0xaa | 0xab => switch(bytes, bci),
        // invokevirtual, invokespecial, invokestatic; invokeinterface; invokedynamic
        0xb6..=0xb8 => allocates(3, Site::Call),
        0xb9 => allocates(5, Site::Call),
        0xba => plain(5, Next::On),
        0xbb => allocates(3, Site::Instance),
        0xbc => allocates(2, Site::PrimitiveArray),
        0xbd => allocates(3, Site::ReferenceArray),
        0xc5 => allocates(4, Site::ArrayOfArrays),
        // wide: iinc, ret, or a load or store
        0xc4 => match byte(bytes, bci + 1)? {
            0x84 => plain(6, Next::On),
            0xa9 => plain(4, Next::End),
            0x15..=0x19 | 0x36..=0x3a => plain(4, Next::On),
            _ => None,
        },
        // bipush, ldc, loads and stores with an index
        0x10 | 0x12 | 0x15..=0x19 | 0x36..=0x3a => plain(2, Next::On),
        // sipush, ldc_w, ldc2_w, iinc, fields, checkcast, instanceof
        0x11 | 0x13 | 0x14 | 0x84 | 0xb2..=0xb5 | 0xc0 | 0xc1 => plain(3, Next::On),
        0x00..=0x0f | 0x1a..=0x35 | 0x3b..=0x83 | 0x85..=0x98 | 0xbe | 0xc2 | 0xc3 => {
            plain(1, Next::On)
        }
        0xca..=0xff => None,
    }
}

fn switch(bytes: &[u8], bci: u32) -> Option<Instruction> {
    let table = bci + 4 - bci % 4;
    let to = |offset: i32| bci.checked_add_signed(offset);
    let mut targets = vec![to(int(bytes, table)?)?];
    // The number of entries, the index of the first offset, the distance between offsets.
    let (count, first, step) = if byte(bytes, bci)? == 0xaa {
        let low = i64::from(int(bytes, table + 4)?);
        let high = i64::from(int(bytes, table + 8)?);
        (high - low + 1, table + 12, 4)
    } else {
        (i64::from(int(bytes, table + 4)?), table + 12, 8)
    };
    let start = if step == 4 { first } else { first - 4 };
    let most = (bytes.len() as i64 - i64::from(start)) / i64::from(step);
    if !(0..=most).contains(&count) {
        return None;
    }
    let count = count as u32;
    for index in 0..count {
        targets.push(to(int(bytes, first + index * step)?)?);
    }
    Some(Instruction {
        length: start + count * step - bci,
        next: Next::Switch(targets),
        site: Site::Other,
    })
}

#[cfg(test)]
mod tests;
