//! `[[sampling.thin]]`: fewer samples of classes that nobody asks about.

use crate::diagnostic::{Sink, quote};
use crate::glob::Glob;
use crate::tree::{Located, Section};
use crate::units::{PercentError, parse_percent_or_zero};

/// Most `[[sampling.thin]]` tables.
pub const MAX_THIN_RULES: usize = 32;
/// Smallest share of samples that can be kept, in percent: below it an account's error would be as large
/// as the account.
pub const MIN_KEEP_PERCENT: f64 = 0.1;

/// How many samples of some classes are kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Thin {
    /// `class`: a glob over Java source names, such as `java.lang.*` or `byte[]`.
    pub class: Glob,
    /// `keep`: the share of samples of small objects that is kept, in percent, from [`MIN_KEEP_PERCENT`]
    /// to 100. Samples of objects that are large against the interval are kept more often.
    pub keep_percent: f64,
}

/// The first rule that matches a class, by its Java source name.
pub fn thin_rule(rules: &[Thin], class: &str) -> Option<usize> {
    rules.iter().position(|rule| rule.class.matches(class))
}

pub(crate) fn read_all(sections: &[Section<'_, '_>], sink: &mut Sink) -> Vec<Thin> {
    let mut rules: Vec<Thin> = Vec::new();
    for section in sections {
        let class = class(section, sink);
        let keep_percent = keep(section, sink);
        let (Some(class), Some(keep_percent)) = (class, keep_percent) else {
            continue;
        };
        if let Some(first) = rules
            .iter()
            .find(|rule| rule.class == class || rule.class.matches_everything())
        {
            let message = format!(
                "{} never applies: {} stands before it, and the first that matches a class decides",
                quote(class.as_str()),
                quote(first.class.as_str())
            );
            sink.warning(section.span(), message)
                .hint("remove it, or put it first");
        }
        rules.push(Thin {
            class,
            keep_percent,
        });
    }
    rules
}

fn class(section: &Section<'_, '_>, sink: &mut Sink) -> Option<Glob> {
    const EXAMPLE: &str = "java.lang.*";
    if section.key_span("class").is_none() {
        sink.error(section.span(), "[[sampling.thin]] needs a class")
            .hint(format!("add class = \"{EXAMPLE}\""));
        return None;
    }
    let Located { value, span } = section.string("class", EXAMPLE, sink)?;
    match Glob::new(value) {
        Ok(glob) => {
            if value.contains('/') {
                sink.warning(span, format!("{} has a slash in it", quote(value)))
                    .hint("write class names with dots, as in Java source: this matches no class");
            }
            Some(glob)
        }
        Err(error) => {
            sink.error(span, error.to_string()).hint(error.hint());
            None
        }
    }
}

fn keep(section: &Section<'_, '_>, sink: &mut Sink) -> Option<f64> {
    let hint = "write the share of samples to keep, such as \"5%\"";
    if section.key_span("keep").is_none() {
        sink.error(section.span(), "[[sampling.thin]] needs a share to keep")
            .hint("add keep = \"5%\"");
        return None;
    }
    let Located { value, span } = section.string("keep", "5%", sink)?;
    let message = match parse_percent_or_zero(value) {
        Ok(percent) if percent >= MIN_KEEP_PERCENT => return Some(percent),
        Ok(_) | Err(PercentError::OutOfRange) => {
            format!("`keep` must be from {MIN_KEEP_PERCENT}% to 100%")
        }
        Err(error @ PercentError::NotANumber) => format!("{} is {error}", quote(value)),
    };
    sink.error(span, message).hint(hint);
    None
}
