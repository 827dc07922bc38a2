//! The instructions of a method's code (§6.5): how long each is, and where it may jump to.

use crate::error::RewriteError;
use crate::input::Input;

pub(crate) const SIPUSH: u8 = 0x11;
pub(crate) const LDC: u8 = 0x12;
pub(crate) const LDC_W: u8 = 0x13;
pub(crate) const LDC2_W: u8 = 0x14;
pub(crate) const ICONST_0: u8 = 0x03;
pub(crate) const ICONST_1: u8 = 0x04;
pub(crate) const BIPUSH: u8 = 0x10;
pub(crate) const LCONST_0: u8 = 0x09;
pub(crate) const ILOAD: u8 = 0x15;
pub(crate) const LLOAD: u8 = 0x16;
pub(crate) const ISTORE: u8 = 0x36;
pub(crate) const LSTORE: u8 = 0x37;
pub(crate) const ALOAD: u8 = 0x19;
pub(crate) const DUP: u8 = 0x59;
pub(crate) const IFEQ: u8 = 0x99;
pub(crate) const IRETURN: u8 = 0xac;
pub(crate) const RETURN: u8 = 0xb1;
pub(crate) const INVOKESTATIC: u8 = 0xb8;
const GOTO: u8 = 0xa7;
const RET: u8 = 0xa9;
pub(crate) const LADD: u8 = 0x61;
pub(crate) const IINC: u8 = 0x84;
pub(crate) const I2L: u8 = 0x85;
pub(crate) const TABLESWITCH: u8 = 0xaa;
pub(crate) const LOOKUPSWITCH: u8 = 0xab;
pub(crate) const ATHROW: u8 = 0xbf;
pub(crate) const WIDE: u8 = 0xc4;
const GOTO_W: u8 = 0xc8;

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction<'a> {
    /// Where it begins in the method's code.
    pub offset: u32,
    /// Its opcode; `wide` for a widened one.
    pub opcode: u8,
    /// The bytes behind the opcode, a switch's padding included.
    pub operands: &'a [u8],
}

/// The parts of an instruction that change when it moves: its jumps and its padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Nothing depends on where it stands.
    Fixed,
    /// One jump by a signed number of two bytes, or of four.
    Jump16,
    Jump32,
    /// Jumps of four bytes behind padding: the default, and one every `stride` bytes from `first` on.
    Switch {
        first: usize,
        stride: usize,
    },
}

impl<'a> Instruction<'a> {
    /// The index of the constant that the instruction names: of a class, field, method or value.
    #[must_use]
    pub fn constant(&self) -> Option<u16> {
        match self.opcode {
            0x12 => Some(u16::from(self.operands[0])),
            0x13 | 0x14 | 0xb2..=0xbb | 0xbd | 0xc0 | 0xc1 | 0xc5 => {
                Some(u16::from_be_bytes([self.operands[0], self.operands[1]]))
            }
            _ => None,
        }
    }

    /// Whether the method returns here.
    #[must_use]
    pub fn is_return(&self) -> bool {
        (IRETURN..=RETURN).contains(&self.opcode)
    }

    /// Whether it puts something into local variable 0.
    pub(crate) fn stores_first_local(&self) -> bool {
        match self.opcode {
            // By a number behind the opcode, wide or not; and those whose opcode has the number.
            ISTORE..=0x3a => self.operands[0] == 0,
            WIDE => (ISTORE..=0x3a).contains(&self.operands[0]) && self.operands[1..3] == [0, 0],
            0x3b | 0x3f | 0x43 | 0x47 | 0x4b => true,
            _ => false,
        }
    }

    pub(crate) fn length(&self) -> u32 {
        1 + self.operands.len() as u32
    }

    /// Whether the instruction below it runs after it.
    pub(crate) fn falls_through(&self) -> bool {
        let ends = matches!(
            self.opcode,
            GOTO | GOTO_W | RET | TABLESWITCH | LOOKUPSWITCH | IRETURN..=RETURN | ATHROW
        );
        let wide_ret = self.opcode == WIDE && self.operands[0] == RET;
        !ends && !wide_ret
    }

    pub(crate) fn shape(&self) -> Shape {
        match self.opcode {
            0x99..=0xa8 | 0xc6 | 0xc7 => Shape::Jump16,
            0xc8 | 0xc9 => Shape::Jump32,
            // Behind the padding: default, low, high, jumps.
            TABLESWITCH => Shape::Switch {
                first: padding(self.offset) + 12,
                stride: 4,
            },
            // Default, count, pairs of a key and a jump.
            LOOKUPSWITCH => Shape::Switch {
                first: padding(self.offset) + 12,
                stride: 8,
            },
            _ => Shape::Fixed,
        }
    }

    /// The places of the jumps among the operands.
    pub(crate) fn jump_places(&self) -> impl Iterator<Item = usize> + use<> {
        let length = self.operands.len();
        let (one, rest) = match self.shape() {
            Shape::Fixed => (None, length..length),
            Shape::Jump16 | Shape::Jump32 => (Some(0), length..length),
            Shape::Switch { first, .. } => (Some(padding(self.offset)), first..length),
        };
        let stride = match self.shape() {
            Shape::Switch { stride, .. } => stride,
            _ => 1,
        };
        one.into_iter().chain(rest.step_by(stride))
    }

    /// The offset to which the jump at `place` among the operands leads.
    pub(crate) fn target(&self, place: usize) -> i64 {
        let bytes = &self.operands[place..];
        let distance = match self.shape() {
            Shape::Jump16 => i64::from(i16::from_be_bytes([bytes[0], bytes[1]])),
            _ => i64::from(i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
        };
        i64::from(self.offset) + distance
    }

    /// Reads the instruction at `offset` of `code`.
    pub(crate) fn parse(code: &'a [u8], offset: u32) -> Result<Instruction<'a>, RewriteError> {
        let mut input = Input::new(&code[offset as usize..], "an instruction");
        let opcode = input.u1()?;
        let unknown = RewriteError::Opcode { opcode, offset };
        match opcode {
            0x00..=0x0f | 0x1a..=0x35 | 0x3b..=0x83 | 0x85..=0x98 => {}
            IRETURN..=RETURN | 0xbe | ATHROW | 0xc2 | 0xc3 => {}
            0x10 | 0x12 | 0x15..=0x19 | 0x36..=0x3a | RET | 0xbc => drop(input.take(1)?),
            0x11
            | 0x13
            | 0x14
            | IINC
            | 0x99..=0xa8
            | 0xb2..=0xb8
            | 0xbb
            | 0xbd
            | 0xc0
            | 0xc1
            | 0xc6
            | 0xc7 => drop(input.take(2)?),
            0xc5 => drop(input.take(3)?),
            0xb9 | 0xba | 0xc8 | 0xc9 => drop(input.take(4)?),
            WIDE => match input.u1()? {
                0x15..=0x19 | 0x36..=0x3a | RET => drop(input.take(2)?),
                IINC => drop(input.take(4)?),
                _ => return Err(unknown),
            },
            TABLESWITCH => {
                input.take(padding(offset) + 4)?;
                let (low, high) = (i64::from(input.i4()?), i64::from(input.i4()?));
                let count = usize::try_from(high - low + 1);
                let count = count.ok().filter(|count| *count > 0);
                input.take(
                    count
                        .ok_or(RewriteError::Form("a switch"))?
                        .saturating_mul(4),
                )?;
            }
            LOOKUPSWITCH => {
                input.take(padding(offset) + 4)?;
                let count = usize::try_from(input.i4()?);
                let count = count.map_err(|_| RewriteError::Form("a switch"))?;
                input.take(count.saturating_mul(8))?;
            }
            _ => return Err(unknown),
        }
        let length = input.position();
        Ok(Instruction {
            offset,
            opcode,
            operands: &code[offset as usize + 1..offset as usize + length],
        })
    }
}

/// The bytes between the opcode of a switch at `offset` and its first number, which is aligned to four.
pub(crate) fn padding(offset: u32) -> usize {
    (3 - offset % 4) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_as_long_as_its_padding_and_its_jumps() {
        // A nop, then a lookupswitch at 1: two bytes of padding, default, one pair.
        let mut code = vec![0, LOOKUPSWITCH, 0, 0];
        for number in [20, 1, 77, 19] {
            code.extend_from_slice(&i32::to_be_bytes(number));
        }
        let switch = Instruction::parse(&code, 1).unwrap();
        assert_eq!(switch.length(), 19);
        let targets: Vec<i64> = switch
            .jump_places()
            .map(|place| switch.target(place))
            .collect();
        assert_eq!(targets, [21, 20]);
        assert!(!switch.falls_through());
    }

    #[test]
    fn counts_of_hostile_switches_are_not_believed() {
        for (low, high) in [(0, i32::MAX), (i32::MIN, i32::MAX), (1, 0), (5, -5)] {
            let mut code = vec![TABLESWITCH, 0, 0, 0];
            for number in [4, low, high] {
                code.extend_from_slice(&i32::to_be_bytes(number));
            }
            assert!(Instruction::parse(&code, 0).is_err(), "{low} to {high}");
        }
        let mut code = vec![LOOKUPSWITCH, 0, 0, 0, 0, 0, 0, 4];
        code.extend_from_slice(&i32::to_be_bytes(-1));
        assert_eq!(
            Instruction::parse(&code, 0),
            Err(RewriteError::Form("a switch"))
        );
    }

    #[test]
    fn opcodes_that_no_class_file_may_hold_are_refused() {
        for opcode in 0xca..=0xff {
            let code = [opcode, 0, 0, 0, 0, 0, 0];
            let unknown = RewriteError::Opcode { opcode, offset: 0 };
            assert_eq!(Instruction::parse(&code, 0), Err(unknown));
        }
    }
}
