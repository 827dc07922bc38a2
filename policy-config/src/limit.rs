//! Reads a limit.

use crate::diagnostic::{Sink, quote};
use crate::did_you_mean;
use crate::schema::Limit;
use crate::tree::{Located, Section};
use crate::units::{PercentError, parse_percent, parse_size};

/// A size, a percentage or `none` at `key`.
pub(crate) fn limit(
    section: &Section<'_, '_>,
    key: &str,
    sink: &mut Sink,
) -> Option<Located<Limit>> {
    let Located { value, span } = section.quantity(key, "256MiB", sink)?;
    let found = |value| {
        Some(Located {
            value,
            span: span.clone(),
        })
    };
    if value == "none" {
        return found(Limit::None);
    }
    if value.contains('%') {
        match parse_percent(value) {
            Ok(percent) => return found(Limit::PercentOfMaxHeap(percent)),
            Err(error) => {
                let message = match error {
                    PercentError::NotANumber => format!("{} is {error}", quote(value)),
                    PercentError::OutOfRange => error.to_string(),
                };
                sink.error(span, message)
                    .hint("write a share of the maximum heap such as \"25%\"");
                return None;
            }
        }
    }
    match parse_size(value) {
        Ok(0) => {
            sink.error(span, format!("`{key}` is zero"))
                .hint("write \"none\" for no limit");
            None
        }
        Ok(bytes) => found(Limit::Bytes(bytes)),
        Err(error) => {
            let hint = match did_you_mean::closest(value, &["none"]) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => error.hint(),
            };
            sink.error(span, error.to_string()).hint(hint);
            None
        }
    }
}
