//! Parses a policy file into a policy or a list of problems.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::str::FromStr as _;

use toml::de::DeTable;

use crate::account;
use crate::diagnostic::{Diagnostic, Sink, quote};
use crate::did_you_mean;
use crate::exact::{self, Exact};
use crate::keys;
use crate::leak::{self, MAX_LEAKS};
use crate::limit::limit;
use crate::listen::Listen;
use crate::nesting;
use crate::schema::{
    AgentSection, Enforcement, Interval, LeakPaths, LeakSettings, MAX_CPU_BUDGET_PERCENT,
    MAX_EVIDENCE_BUDGET_PERCENT, MAX_INTERVAL_BYTES, MAX_PATHS_PER_DAY, MAX_RESERVE_PERCENT,
    MAX_TRACKED, MIN_CPU_BUDGET_PERCENT, MIN_EVIDENCE_BUDGET_PERCENT, MIN_INTERVAL_BYTES,
    MIN_RESERVE_PERCENT, MIN_TRACKED, Mode, Policy, Principals, Privacy, Reserve, Sampling, When,
};
use crate::snapshots;
use crate::thin::{self, MAX_THIN_RULES};
use crate::tree::{self, Located, Section};
use crate::units::{PercentError, format_bytes, parse_percent_or_zero, parse_size};
use crate::words::word;

/// Largest policy file, in bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;
/// Most `[[account]]` tables.
pub const MAX_ACCOUNTS: usize = 10_000;
/// Most diagnostics that [`parse`] returns; one more counts the rest.
pub const MAX_DIAGNOSTICS: usize = 100;

/// The result of [`parse`].
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The policy, exactly if no diagnostic is an error.
    pub policy: Option<Policy>,
    /// Every problem, in file order, at most [`MAX_DIAGNOSTICS`] and one that counts
    /// the rest.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// The first error, if the file is rejected.
    pub fn first_error(&self) -> Option<&Diagnostic> {
        self.diagnostics.iter().find(|one| one.is_error())
    }
}

/// Reads a whole policy file.
///
/// The text may be hostile: `parse` never panics, takes time and memory in proportion to the text,
/// and rejects a text larger than [`MAX_FILE_BYTES`] without reading it. An empty text gives the
/// default policy.
pub fn parse(text: &str) -> Parsed {
    let mut sink = Sink::default();
    let policy = read(text, &mut sink);
    Parsed {
        policy: policy.filter(|_| !sink.has_errors()),
        diagnostics: sink.finish(text, MAX_DIAGNOSTICS),
    }
}

/// Reads the bytes of a whole policy file, as [`parse`] does its text; bytes that are
/// not UTF-8 are one error.
///
/// Also gives the text that the spans refer to, in which each bad sequence is replaced.
pub fn parse_bytes(bytes: &[u8]) -> (Cow<'_, str>, Parsed) {
    if bytes.len() > MAX_FILE_BYTES {
        let mut sink = Sink::default();
        too_large(&mut sink);
        return (Cow::Borrowed(""), rejected("", sink));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => (Cow::Borrowed(text), parse(text)),
        Err(error) => {
            let text = String::from_utf8_lossy(bytes);
            let start = error.valid_up_to();
            let span = start..start + char::REPLACEMENT_CHARACTER.len_utf8();
            let mut sink = Sink::default();
            sink.error(span, "the file is not UTF-8 text")
                .hint("save it as UTF-8");
            let parsed = rejected(&text, sink);
            (text, parsed)
        }
    }
}

fn rejected(text: &str, sink: Sink) -> Parsed {
    Parsed {
        policy: None,
        diagnostics: sink.finish(text, MAX_DIAGNOSTICS),
    }
}

fn too_large(sink: &mut Sink) {
    let most = format_bytes(MAX_FILE_BYTES as u64);
    sink.error(0..0, format!("the file is larger than {most}"))
        .hint("use globs and package patterns that cover several at once");
}

fn read(text: &str, sink: &mut Sink) -> Option<Policy> {
    if text.len() > MAX_FILE_BYTES {
        too_large(sink);
        return None;
    }
    if let Some(span) = nesting::too_deep(text) {
        sink.error(span, "the file is nested too deeply").hint(
            "a policy needs no table within [agent], [sampling], [enforcement], [leaks], [[account]] or [[leak]]",
        );
        return None;
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // The tree of a broken file lacks parts; complaints about it would mislead.
        for error in errors {
            let span = error.span().unwrap_or(text.len()..text.len());
            sink.error(span, one_line(error.message()));
        }
        return None;
    }
    Some(read_policy(table.get_ref(), sink))
}

/// A message of the TOML reader as one printable line.
fn one_line(message: &str) -> String {
    message
        .chars()
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .collect()
}

fn read_policy(table: &DeTable<'_>, sink: &mut Sink) -> Policy {
    let root = tree::root(table, keys::ROOT, sink);
    let agent = root.section("agent", keys::AGENT, sink);
    let sampling = root.section("sampling", keys::SAMPLING, sink);
    let enforcement = root.section("enforcement", keys::ENFORCEMENT, sink);
    let snapshots = root.section("snapshots", keys::SNAPSHOTS, sink);
    let exact_section = root.section("exact", keys::EXACT, sink);
    let leak_settings = root.section("leaks", keys::LEAKS, sink);
    let privacy = root.section("privacy", keys::PRIVACY, sink);
    let accounts = root.sections("account", keys::ACCOUNT, MAX_ACCOUNTS, sink);
    let leaks = root.sections("leak", keys::LEAK, MAX_LEAKS, sink);
    Policy {
        agent: agent.map_or_else(AgentSection::default, |section| AgentSection {
            listen: listen(&section, sink).unwrap_or_default(),
            listen_strict: section.switch("listen-strict", sink).unwrap_or_default(),
        }),
        sampling: sampling.map_or_else(Sampling::default, |section| read_sampling(&section, sink)),
        enforcement: enforcement.map_or_else(Enforcement::default, |section| {
            read_enforcement(&section, sink)
        }),
        snapshots: snapshots.and_then(|section| snapshots::read(&section, sink)),
        exact: exact_section.map_or_else(Exact::default, |section| exact::read(&section, sink)),
        leak_settings: leak_settings.map_or_else(LeakSettings::default, |section| {
            let default = LeakSettings::default();
            let paths = word(
                &section,
                "paths",
                LeakPaths::WORDS,
                LeakPaths::from_word,
                sink,
            );
            let per_day = section.integer("paths-per-day", 1, MAX_PATHS_PER_DAY, sink);
            LeakSettings {
                sites: leak::read_sites(&section, sink),
                paths: paths.unwrap_or(default.paths),
                paths_per_day: per_day.unwrap_or(default.paths_per_day),
            }
        }),
        privacy: privacy.map_or_else(Privacy::default, |section| Privacy {
            values: section.switch("values", sink).unwrap_or_default(),
        }),
        accounts: account::read_all(&accounts, sink),
        leaks: leak::read_all(&leaks, sink),
    }
}

fn listen(section: &Section<'_, '_>, sink: &mut Sink) -> Option<Listen> {
    let Located { value, span } = section.string("listen", "127.0.0.1:9464", sink)?;
    match Listen::from_str(value) {
        Ok(listen) => Some(listen),
        Err(error) => {
            sink.error(span, error.to_string()).hint(error.hint());
            None
        }
    }
}

fn read_sampling(section: &Section<'_, '_>, sink: &mut Sink) -> Sampling {
    let default = Sampling::default();
    let interval = interval(section, sink);
    let thin = section.sections_called(
        "thin",
        "[[sampling.thin]]",
        keys::THIN,
        MAX_THIN_RULES,
        sink,
    );
    Sampling {
        interval: interval.unwrap_or(default.interval),
        interval_is_default: interval.is_none(),
        principals: word(
            section,
            "principals",
            Principals::WORDS,
            Principals::from_word,
            sink,
        )
        .unwrap_or(default.principals),
        max_tracked: section
            .integer("max-tracked", MIN_TRACKED, MAX_TRACKED, sink)
            .unwrap_or(default.max_tracked),
        cpu_budget_percent: cpu_budget(section, sink).unwrap_or(default.cpu_budget_percent),
        thin: thin::read_all(&thin, sink),
    }
}

fn interval(section: &Section<'_, '_>, sink: &mut Sink) -> Option<Interval> {
    let Located { value, span } = section.quantity("interval", "64KiB", sink)?;
    if value == "exact" {
        return Some(Interval::Exact);
    }
    let bytes = match parse_size(value) {
        Ok(bytes) => bytes,
        Err(error) => {
            let hint = match did_you_mean::closest(value, &["exact"]) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => error.hint(),
            };
            sink.error(span, error.to_string()).hint(hint);
            return None;
        }
    };
    if (MIN_INTERVAL_BYTES..=MAX_INTERVAL_BYTES).contains(&bytes) {
        return Some(Interval::Bytes(bytes));
    }
    let message = format!(
        "the interval must be from {} to {}",
        format_bytes(MIN_INTERVAL_BYTES),
        format_bytes(MAX_INTERVAL_BYTES)
    );
    sink.error(span, message)
        .hint("\"64KiB\" suits most; \"exact\" takes every allocation");
    None
}

fn read_enforcement(section: &Section<'_, '_>, sink: &mut Sink) -> Enforcement {
    let default = Enforcement::default();
    Enforcement {
        mode: word(section, "mode", Mode::WORDS, Mode::from_word, sink).unwrap_or(default.mode),
        evidence_budget_percent: evidence_budget(section, sink)
            .unwrap_or(default.evidence_budget_percent),
        mask: limit(section, "mask", sink).map_or(default.mask, |mask| mask.value),
        when: word(section, "when", When::WORDS, When::from_word, sink).unwrap_or(default.when),
        reserve: reserve(section, sink).unwrap_or(default.reserve),
    }
}

fn evidence_budget(section: &Section<'_, '_>, sink: &mut Sink) -> Option<f64> {
    const ALLOWED: RangeInclusive<f64> = MIN_EVIDENCE_BUDGET_PERCENT..=MAX_EVIDENCE_BUDGET_PERCENT;
    let value = section.string("evidence-budget", "5%", sink)?;
    let hint =
        "write the share of wall time that collections for evidence may take, such as \"5%\"";
    percent("evidence-budget", &value, ALLOWED, hint, sink)
}

fn reserve(section: &Section<'_, '_>, sink: &mut Sink) -> Option<Reserve> {
    const ALLOWED: RangeInclusive<f64> = MIN_RESERVE_PERCENT..=MAX_RESERVE_PERCENT;
    let value = section.string("reserve", "auto", sink)?;
    if value.value == "auto" {
        return Some(Reserve::Auto);
    }
    let hint = "write the share of a limit that an account may use beyond it while its door is shut, \
                such as \"12.5%\", or \"auto\" for what the heap can give";
    percent("reserve", &value, ALLOWED, hint, sink).map(|percent| Reserve::Share(percent / 100.0))
}

/// The inner `None` is `none`.
fn cpu_budget(section: &Section<'_, '_>, sink: &mut Sink) -> Option<Option<f64>> {
    const ALLOWED: RangeInclusive<f64> = MIN_CPU_BUDGET_PERCENT..=MAX_CPU_BUDGET_PERCENT;
    let value = section.string("cpu-budget", "0.5%", sink)?;
    if value.value == "none" {
        return Some(None);
    }
    let hint = "write the share of the process's CPU time that samples may take, such as \"0.5%\", \
                or \"none\" to keep the interval as it is";
    percent("cpu-budget", &value, ALLOWED, hint, sink).map(Some)
}

fn percent(
    key: &str,
    written: &Located<&str>,
    allowed: RangeInclusive<f64>,
    hint: &str,
    sink: &mut Sink,
) -> Option<f64> {
    let message = match parse_percent_or_zero(written.value) {
        Ok(percent) if allowed.contains(&percent) => return Some(percent),
        Ok(_) | Err(PercentError::OutOfRange) => format!(
            "`{key}` must be from {}% to {}%",
            allowed.start(),
            allowed.end()
        ),
        Err(error @ PercentError::NotANumber) => format!("{} is {error}", quote(written.value)),
    };
    sink.error(written.span.clone(), message).hint(hint);
    None
}
