//! Why a class or a method is left as it is.

/// Why a class or one of its methods is not rewritten. Each says what was found, none names the class: the
/// caller knows it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// The bytes end before what they announce.
    #[error("it ends within {0}")]
    Truncated(&'static str),
    /// The bytes go on after what they announce.
    #[error("{0} is longer than what it holds")]
    Overlong(&'static str),
    /// No class file, by its first four bytes.
    #[error("it is not a class file")]
    NotAClassFile,
    /// A version that this crate was not written for.
    #[error("its version {0} is not between {oldest} and {newest}", oldest = crate::class_file::OLDEST, newest = crate::class_file::NEWEST)]
    Version(u16),
    /// A constant whose tag the specification does not have.
    #[error("its constant {index} has the unknown tag {tag}")]
    ConstantTag {
        /// The constant's index.
        index: u16,
        /// Its first byte.
        tag: u8,
    },
    /// An index that names no constant, or one of another kind.
    #[error("its constant {index} is not {expected}")]
    Constant {
        /// The index that was used.
        index: u16,
        /// The kind of constant that should stand there.
        expected: &'static str,
    },
    /// An opcode that the specification does not have, or that no class file may hold.
    #[error("it has the unknown instruction {opcode:#04x} at {offset}")]
    Opcode {
        /// The byte.
        opcode: u8,
        /// Its offset in the method's code.
        offset: u32,
    },
    /// An offset that is not the start of an instruction.
    #[error("{what} names offset {offset}, where no instruction begins")]
    Offset {
        /// Who names it.
        what: &'static str,
        /// The offset in the method's code.
        offset: i64,
    },
    /// An attribute of code that may hold offsets of a form that is not known here.
    #[error("its code has the unknown attribute {0:?}")]
    Attribute(String),
    /// Two attributes where the specification allows one.
    #[error("it has {0} twice")]
    Twice(&'static str),
    /// A form that the specification does not have.
    #[error("{0} has an unknown form")]
    Form(&'static str),
    /// With the insertion the method would be longer than 65,535 bytes, or a jump than 32,767.
    #[error("it would be too long with what is inserted")]
    MethodTooLong,
    /// The constant pool, the operand stack or an attribute has no room for what is inserted.
    #[error("{0} has no room for what is inserted")]
    Full(&'static str),
    /// The caller asked for what the rules do not allow.
    #[error("this cannot be inserted: {0}")]
    Insertion(&'static str),
}
