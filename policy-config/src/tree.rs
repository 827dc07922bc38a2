//! Reads typed values from TOML's spanned tree, and reports every mismatch.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Sink, quote};
use crate::did_you_mean;
use crate::keys;

/// One table of the file, with the keys that it may have.
pub(crate) struct Section<'t, 'i> {
    table: &'t DeTable<'i>,
    /// The place to underline when something is missing: the header, or the inline table.
    span: Range<usize>,
}

/// A value with its place in the file.
#[derive(Debug, Clone)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

impl<'t, 'i> Section<'t, 'i> {
    /// Reads `table`, called `title` in messages, and reports every key that is not in `known`.
    pub(crate) fn new(
        table: &'t DeTable<'i>,
        span: Range<usize>,
        title: &str,
        known: &[&str],
        sink: &mut Sink,
    ) -> Self {
        for key in table.keys() {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let hint = if let Some(meant) = did_you_mean::closest(name, known) {
                format!("did you mean `{meant}`?")
            } else if let Some(home) = keys::home_of(name) {
                format!("it belongs below {home}")
            } else {
                format!("the keys here are {}", list(known))
            };
            sink.error(
                key.span(),
                format!("unknown key {} in {title}", quote(name)),
            )
            .hint(hint);
        }
        Section { table, span }
    }

    /// The place of the table, for messages about missing keys.
    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The place of `key` itself, if it is given.
    pub(crate) fn key_span(&self, key: &str) -> Option<Range<usize>> {
        self.table.get_key_value(key).map(|(key, _)| key.span())
    }

    /// The value of `key`, whatever its type.
    fn value(&self, key: &str) -> Option<&'t Spanned<DeValue<'i>>> {
        self.table.get(key)
    }

    /// The string at `key`; `None` if it is absent or, with an error, another type.
    pub(crate) fn string(
        &self,
        key: &str,
        example: &str,
        sink: &mut Sink,
    ) -> Option<Located<&'t str>> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::String(text) => Some(Located {
                value: text,
                span: value.span(),
            }),
            other => {
                wrong_type(key, "a string", other, value.span(), sink)
                    .hint(format!("write {key} = \"{example}\""));
                None
            }
        }
    }

    /// The size, word or percentage at `key`: a string, but a bare number is so likely
    /// that its hint spells the string.
    pub(crate) fn quantity(
        &self,
        key: &str,
        example: &str,
        sink: &mut Sink,
    ) -> Option<Located<&'t str>> {
        let value = self.value(key)?;
        if let DeValue::Integer(number) = value.get_ref()
            && let Ok(bytes) = u64::from_str_radix(number.as_str(), number.radix())
        {
            wrong_type(
                key,
                "a string with a unit",
                value.get_ref(),
                value.span(),
                sink,
            )
            .hint(format!("write {key} = \"{bytes}B\" for that many bytes"));
            return None;
        }
        self.string(key, example, sink)
    }

    /// The `true` or `false` at `key`.
    pub(crate) fn switch(&self, key: &str, sink: &mut Sink) -> Option<bool> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Boolean(switch) => Some(*switch),
            other => {
                wrong_type(key, "true or false", other, value.span(), sink).hint(format!(
                    "write {key} = true or {key} = false, without quotes"
                ));
                None
            }
        }
    }

    /// The whole number at `key`, from `least` to `most`.
    pub(crate) fn integer(&self, key: &str, least: u32, most: u32, sink: &mut Sink) -> Option<u32> {
        let hint = format!("write a whole number from {least} to {most}");
        let Located { value, span } = self.whole_number(key, &hint, sink)?;
        let value = value.filter(|number| (least..=most).contains(number));
        if value.is_none() {
            sink.error(span, format!("`{key}` is out of range"))
                .hint(hint);
        }
        value
    }

    /// Whether an array stands at `key`.
    pub(crate) fn is_array(&self, key: &str) -> bool {
        let value = self.value(key);
        value.is_some_and(|value| matches!(value.get_ref(), DeValue::Array(_)))
    }

    /// The whole number at `key`, `None` in it if it does not fit; `None` if it is absent or, with an error
    /// that has this hint, another type.
    pub(crate) fn whole_number(
        &self,
        key: &str,
        hint: &str,
        sink: &mut Sink,
    ) -> Option<Located<Option<u32>>> {
        let value = self.value(key)?;
        let DeValue::Integer(number) = value.get_ref() else {
            wrong_type(key, "a whole number", value.get_ref(), value.span(), sink).hint(hint);
            return None;
        };
        Some(Located {
            value: u32::from_str_radix(number.as_str(), number.radix()).ok(),
            span: value.span(),
        })
    }

    /// The number at `key`, with a fraction or without one; `None` if it is absent or, with an error that has
    /// this hint, another type.
    pub(crate) fn number(&self, key: &str, hint: &str, sink: &mut Sink) -> Option<Located<f64>> {
        let value = self.value(key)?;
        let number = match value.get_ref() {
            DeValue::Float(number) => number.as_str().parse().unwrap_or(f64::NAN),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or(f64::INFINITY, |number| number as f64),
            other => {
                wrong_type(key, "a number", other, value.span(), sink).hint(hint);
                return None;
            }
        };
        Some(Located {
            value: number,
            span: value.span(),
        })
    }

    /// The strings of the array at `key`; `None` if it is absent or, with an error,
    /// anything else than an array with strings in it.
    pub(crate) fn strings(
        &self,
        key: &str,
        example: &str,
        sink: &mut Sink,
    ) -> Option<Vec<Located<&'t str>>> {
        let value = self.value(key)?;
        if matches!(value.get_ref(), DeValue::Array(array) if array.is_empty()) {
            sink.error(value.span(), format!("`{key}` is empty"))
                .hint(format!("write {key} = [\"{example}\"]"));
            return None;
        }
        let strings = self.strings_or_none(key, example, sink);
        (!strings.is_empty()).then_some(strings)
    }

    /// The strings of the array at `key`, which may be empty or absent. Anything else in it is an error.
    pub(crate) fn strings_or_none(
        &self,
        key: &str,
        example: &str,
        sink: &mut Sink,
    ) -> Vec<Located<&'t str>> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let DeValue::Array(array) = value.get_ref() else {
            wrong_type(
                key,
                "an array of strings",
                value.get_ref(),
                value.span(),
                sink,
            )
            .hint(format!("write {key} = [\"{example}\"]"));
            return Vec::new();
        };
        let mut strings = Vec::new();
        for element in array.iter() {
            match element.get_ref() {
                DeValue::String(text) => strings.push(Located {
                    value: text.as_ref(),
                    span: element.span(),
                }),
                other => {
                    let message = format!("`{key}` must hold strings, not {}", type_name(other));
                    sink.error(element.span(), message)
                        .hint(format!("write {key} = [\"{example}\"]"));
                }
            }
        }
        strings
    }

    /// The table `[key]`; `None` if it is absent or, with an error, something else.
    pub(crate) fn section(
        &self,
        key: &str,
        known: &[&str],
        sink: &mut Sink,
    ) -> Option<Section<'t, 'i>> {
        let value = self.value(key)?;
        let title = format!("[{key}]");
        match value.get_ref() {
            DeValue::Table(table) => Some(Section::new(table, value.span(), &title, known, sink)),
            DeValue::Array(_) => {
                sink.error(
                    value.span(),
                    format!("`{key}` must be one table, not an array"),
                )
                .hint(format!("write {title} in single brackets, once"));
                None
            }
            other => {
                wrong_type(key, "a table", other, value.span(), sink).hint(format!(
                    "write {title} on a line of its own, its keys below"
                ));
                None
            }
        }
    }

    /// The tables `[[key]]`, in file order; none if it is absent or, with an error,
    /// something else.
    pub(crate) fn sections(
        &self,
        key: &str,
        known: &[&str],
        most: usize,
        sink: &mut Sink,
    ) -> Vec<Section<'t, 'i>> {
        let title = format!("[[{key}]]");
        self.sections_called(key, &title, known, most, sink)
    }

    /// As [`Section::sections`], of tables that messages call `title`.
    pub(crate) fn sections_called(
        &self,
        key: &str,
        title: &str,
        known: &[&str],
        most: usize,
        sink: &mut Sink,
    ) -> Vec<Section<'t, 'i>> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let hint = format!("write {title} in double brackets before each");
        let DeValue::Array(array) = value.get_ref() else {
            wrong_type(
                key,
                "an array of tables",
                value.get_ref(),
                value.span(),
                sink,
            )
            .hint(hint);
            return Vec::new();
        };
        if let Some(first_beyond) = array.get(most) {
            sink.error(
                first_beyond.span(),
                format!(
                    "{} {title} tables are more than the {most} allowed",
                    array.len()
                ),
            )
            .hint("use globs and package patterns that cover several at once");
        }
        let mut sections = Vec::new();
        for element in array.iter().take(most) {
            match element.get_ref() {
                DeValue::Table(table) => {
                    sections.push(Section::new(table, element.span(), title, known, sink));
                }
                other => {
                    let message = format!("`{key}` must hold tables, not {}", type_name(other));
                    sink.error(element.span(), message).hint(hint.clone());
                }
            }
        }
        sections
    }
}

/// The root of a file; messages call its keys tables.
pub(crate) fn root<'t, 'i>(
    table: &'t DeTable<'i>,
    known: &[&str],
    sink: &mut Sink,
) -> Section<'t, 'i> {
    Section::new(table, 0..0, "the policy file", known, sink)
}

fn wrong_type<'s>(
    key: &str,
    wanted: &str,
    given: &DeValue<'_>,
    span: Range<usize>,
    sink: &'s mut Sink,
) -> &'s mut Diagnostic {
    let message = format!("`{key}` must be {wanted}, not {}", type_name(given));
    sink.error(span, message)
}

fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// `a, b and c`, each in backticks.
pub(crate) fn list(words: &[&str]) -> String {
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        let separator = match index {
            0 => "",
            _ if index + 1 == words.len() => " and ",
            _ => ", ",
        };
        text.push_str(separator);
        text.push('`');
        text.push_str(word);
        text.push('`');
    }
    text
}
