//! JSON on one line that is safe to print: names come from tenants.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

use crate::printable;

/// Writes `value` and the end of the line.
///
/// # Errors
/// Output that cannot be written.
pub fn write(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut *out, Printable))?;
    writeln!(out)
}

/// Escapes characters that JSON allows in a string, but that could control a terminal.
struct Printable;

impl Formatter for Printable {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(printable::is_hidden) {
            let (before, from) = rest.split_at(at);
            CompactFormatter.write_string_fragment(writer, before)?;
            let mut characters = from.chars();
            if let Some(hidden) = characters.next() {
                for unit in hidden.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
            rest = characters.as_str();
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}
