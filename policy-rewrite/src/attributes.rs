//! The attributes of code: those that are known.

use crate::error::RewriteError;

/// An attribute of code, with the index of its name and its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeAttribute<'a> {
    pub(crate) name: u16,
    pub(crate) kind: Kind,
    pub(crate) bytes: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// §4.7.4.
    StackMapTable,
    /// §4.7.12.
    LineNumbers,
    /// §4.7.13 and §4.7.14, of one form.
    LocalVariables,
    /// §4.7.20 and §4.7.21, of one form.
    TypeAnnotations,
}

pub(crate) fn parse_attributes<'a>(
    attributes: &[(u16, &'a [u8])],
    name: impl Fn(u16) -> Result<&'a [u8], RewriteError>,
) -> Result<Vec<CodeAttribute<'a>>, RewriteError> {
    let mut parsed: Vec<CodeAttribute<'a>> = Vec::with_capacity(attributes.len());
    for &(index, bytes) in attributes {
        let kind = match name(index)? {
            b"StackMapTable" => Kind::StackMapTable,
            b"LineNumberTable" => Kind::LineNumbers,
            b"LocalVariableTable" | b"LocalVariableTypeTable" => Kind::LocalVariables,
            b"RuntimeVisibleTypeAnnotations" | b"RuntimeInvisibleTypeAnnotations" => {
                Kind::TypeAnnotations
            }
            other => {
                let shown = String::from_utf8_lossy(&other[..other.len().min(100)]);
                return Err(RewriteError::Attribute(shown.into_owned()));
            }
        };
        let map = Kind::StackMapTable;
        if kind == map && parsed.iter().any(|earlier| earlier.kind == map) {
            return Err(RewriteError::Twice("a stack map"));
        }
        parsed.push(CodeAttribute {
            name: index,
            kind,
            bytes,
        });
    }
    Ok(parsed)
}

impl CodeAttribute<'_> {
    pub(crate) fn is_stack_map(&self) -> bool {
        self.kind == Kind::StackMapTable
    }
}
