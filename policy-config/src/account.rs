//! Reads `[[account]]` tables, and checks the rules between them.

use std::collections::HashMap;
use std::ops::Range;

use crate::admit;
use crate::diagnostic::{Sink, is_invisible, quote};
use crate::door;
use crate::glob::{self, Glob};
use crate::interrupt;
use crate::limit;
use crate::pattern::PackagePattern;
use crate::schema::{
    Account, Charge, DEFAULT_PRIORITY, Limit, MAX_NAME_BYTES, MAX_PRIORITY, Matcher, Tasks,
};
use crate::tree::{Located, Section};
use crate::words::{Throw, word};

/// The keys of which an account has exactly one.
const MATCHERS: [&str; 3] = ["service", "packages", "scope"];

/// Reads every account. Accounts with errors are left out: the whole policy is then rejected
/// anyway.
pub(crate) fn read_all(sections: &[Section<'_, '_>], sink: &mut Sink) -> Vec<Account> {
    let mut rules = Rules::default();
    sections
        .iter()
        .filter_map(|section| read(section, &mut rules, sink))
        .collect()
}

fn read(section: &Section<'_, '_>, rules: &mut Rules, sink: &mut Sink) -> Option<Account> {
    let name = section.string("name", "shop", sink);
    if let Some(name) = &name {
        check_name(name, sink);
        rules.unique_name(name, sink);
    }
    let matcher = read_matcher(section, rules, sink);
    let is_packages = section.key_span("packages").is_some();
    if is_packages && section.key_span("name").is_none() {
        sink.error(section.span(), "an account with `packages` needs a name")
            .hint("add name = \"…\": it appears in the metrics");
    }
    let charge = word(section, "charge", Charge::WORDS, Charge::from_word, sink);
    if let Some(span) = section.key_span("charge")
        && !is_packages
    {
        sink.error(span, "`charge` applies only to an account with `packages`")
            .hint("remove it: a service or scope pays for itself");
    }
    let soft_limit = limit::limit(section, "soft-limit", sink);
    let limit = limit::limit(section, "limit", sink);
    check_order(soft_limit.as_ref(), limit.as_ref(), sink);
    let direct_limit = limit::limit(section, "direct-limit", sink);
    let throw = word(section, "throw", Throw::WORDS, Throw::from_word, sink);
    let doors = door::read(section, sink);
    let admit = admit::read(section, sink);
    let priority = read_priority(section, sink);
    let tasks = word(section, "tasks", Tasks::WORDS, Tasks::from_word, sink);
    let interrupts = interrupt::read(section, sink);
    if charge == Some(Charge::Caller) {
        for key in [
            "soft-limit",
            "limit",
            "direct-limit",
            "throw",
            "door",
            "refuse-with",
            "priority",
            "tasks",
            "interrupt-through",
            "never-interrupt",
            "work",
        ] {
            if let Some(span) = section.key_span(key) {
                sink.warning(span, format!("`{key}` has no effect where the callers pay"))
                    .hint("limit the callers' accounts, or use charge = \"self\"");
            }
        }
    }
    if let (Some(span), None | Some(Limit::None), Some(Charge::SelfPays) | None) = (
        section.key_span("priority"),
        limit.as_ref().map(|limit| limit.value),
        charge,
    ) {
        sink.warning(span, "`priority` has no effect without a `limit`")
            .hint("add limit = \"…\", or remove it");
    }
    Some(Account {
        name: name.map(|name| name.value.to_owned()),
        matcher: matcher?,
        charge: charge.unwrap_or_default(),
        soft_limit: soft_limit.map_or(Limit::None, |soft_limit| soft_limit.value),
        limit: limit.map_or(Limit::None, |limit| limit.value),
        direct_limit: direct_limit.map_or(Limit::None, |limit| limit.value),
        throw: throw.unwrap_or_default(),
        door: doors.door,
        refuse_with: doors.refuse_with,
        status: doors.status,
        priority: priority.unwrap_or(DEFAULT_PRIORITY),
        tasks: tasks.unwrap_or_default(),
        admit,
        interrupts,
    })
}

/// Reads `priority`.
fn read_priority(section: &Section<'_, '_>, sink: &mut Sink) -> Option<f64> {
    let hint = "write a number above 0, at most 1000: an account of 2.0 counts twice as much as one of 1.0";
    let Located { value, span } = section.number("priority", hint, sink)?;
    if value > 0.0 && value <= MAX_PRIORITY {
        return Some(value);
    }
    sink.error(span, "`priority` is out of range").hint(hint);
    None
}

fn check_name(name: &Located<&str>, sink: &mut Sink) {
    let Located { value, span } = name;
    let mut error = |message: &str, hint: &str| {
        sink.error(span.clone(), message).hint(hint);
    };
    if value.is_empty() {
        error(
            "the name is empty",
            "give it a name, or remove the key to name the account after what it matches",
        );
    } else if value.starts_with('_') {
        error(
            "names that begin with `_` are reserved",
            "choose a name without the underscore",
        );
    } else if value.len() > MAX_NAME_BYTES {
        error(
            &format!("the name is longer than {MAX_NAME_BYTES} bytes"),
            "shorten it: it is a label of every metric",
        );
    } else if value.chars().any(is_invisible) {
        error(
            "the name contains control or invisible characters",
            "remove them: it appears in logs and dashboards",
        );
    } else if value.trim() != *value {
        error("the name begins or ends with a space", "remove the space");
    }
}

fn check_order(soft: Option<&Located<Limit>>, hard: Option<&Located<Limit>>, sink: &mut Sink) {
    let (Some(soft), Some(hard)) = (soft, hard) else {
        return;
    };
    if hard.value.is_below(soft.value) == Some(true) {
        let message = format!(
            "the limit of {} is below the soft limit of {}",
            hard.value, soft.value
        );
        sink.error(hard.span.clone(), message)
            .hint("the soft limit warns before the limit refuses: exchange the two")
            .related(soft.span.clone(), "the soft limit");
    }
}

fn read_matcher(section: &Section<'_, '_>, rules: &mut Rules, sink: &mut Sink) -> Option<Matcher> {
    let given: Vec<(&str, Range<usize>)> = MATCHERS
        .iter()
        .filter_map(|key| Some((*key, section.key_span(key)?)))
        .collect();
    match given.as_slice() {
        [] => {
            sink.error(
                section.span(),
                "the account does not say what belongs to it",
            )
            .hint("add one of service = \"/path\", packages = [\"a.b.*\"] or scope = \"name\"");
        }
        [_] => {}
        [(first, first_span), rest @ ..] => {
            for (key, span) in rest {
                sink.error(
                    span.clone(),
                    format!("`{key}` and `{first}` exclude each other"),
                )
                .hint("write an [[account]] for each")
                .related(first_span.clone(), "already given here");
            }
        }
    }
    // All are read, so that mistakes in each are found in the same pass.
    let service = glob::read(section, "service", "/shop", sink);
    let packages = read_packages(section, rules, sink);
    let scope = glob::read(section, "scope", "tenant-*", sink);
    if let Some(glob) = &service {
        rules.reachable("service", glob, sink);
    }
    if let Some(glob) = &scope {
        rules.reachable("scope", glob, sink);
    }
    service
        .map(|glob| Matcher::Service(glob.value))
        .or(packages.map(Matcher::Packages))
        .or(scope.map(|glob| Matcher::Scope(glob.value)))
}

fn read_packages(
    section: &Section<'_, '_>,
    rules: &mut Rules,
    sink: &mut Sink,
) -> Option<Vec<PackagePattern>> {
    let texts = section.strings("packages", "com.acme.orders.*", sink)?;
    let account = rules.next_packages();
    let mut patterns = Vec::with_capacity(texts.len());
    for Located { value, span } in texts {
        match PackagePattern::new(value) {
            Ok(pattern) => {
                if pattern.looks_like_a_class() {
                    sink.warning(span.clone(), format!("{} looks like a class", quote(value)))
                        .hint("patterns name packages; a class has no account of its own");
                }
                if rules.unique_pattern(account, value, &span, sink) {
                    patterns.push(pattern);
                }
            }
            Err(error) => {
                sink.error(span, error.to_string()).hint(error.hint());
            }
        }
    }
    (!patterns.is_empty()).then_some(patterns)
}

/// Names and patterns of earlier accounts, to be compared with later ones.
#[derive(Default)]
struct Rules {
    names: HashMap<String, Range<usize>>,
    /// By pattern: the number of the account, and where it stands.
    patterns: HashMap<String, (usize, Range<usize>)>,
    packages_accounts: usize,
    /// By kind: the globs so far.
    globs: HashMap<(&'static str, String), Range<usize>>,
    /// By kind: the first glob that matches everything.
    catch_all: HashMap<&'static str, Range<usize>>,
}

impl Rules {
    fn unique_name(&mut self, name: &Located<&str>, sink: &mut Sink) {
        if let Some(first) = self.names.get(name.value) {
            sink.error(
                name.span.clone(),
                format!("the name {} is already taken", quote(name.value)),
            )
            .hint("choose another, or merge the two accounts")
            .related(first.clone(), "first given here");
        } else {
            self.names.insert(name.value.to_owned(), name.span.clone());
        }
    }

    fn next_packages(&mut self) -> usize {
        self.packages_accounts += 1;
        self.packages_accounts
    }

    /// True if the pattern is new.
    fn unique_pattern(
        &mut self,
        account: usize,
        pattern: &str,
        span: &Range<usize>,
        sink: &mut Sink,
    ) -> bool {
        let Some((owner, first)) = self.patterns.get(pattern) else {
            self.patterns
                .insert(pattern.to_owned(), (account, span.clone()));
            return true;
        };
        if *owner == account {
            sink.warning(span.clone(), format!("{} is given twice", quote(pattern)))
                .hint("remove one")
                .related(first.clone(), "first given here");
        } else {
            sink.error(
                span.clone(),
                format!("{} already belongs to another account", quote(pattern)),
            )
            .hint("leave it to one of them, or name a package below")
            .related(first.clone(), "first given here");
        }
        false
    }

    /// Warns about a glob that is never used, because the first match in file order wins.
    fn reachable(&mut self, kind: &'static str, glob: &Located<Glob>, sink: &mut Sink) {
        let same = (kind, glob.value.as_str().to_owned());
        let earlier = self.catch_all.get(kind).or_else(|| self.globs.get(&same));
        if let Some(earlier) = earlier {
            sink.warning(
                glob.span.clone(),
                format!("no {kind} ever gets to this account"),
            )
            .hint("the first match in file order wins: move this account up")
            .related(earlier.clone(), "all that match are taken here");
            return;
        }
        if glob.value.matches_everything() {
            self.catch_all.insert(kind, glob.span.clone());
        }
        self.globs.insert(same, glob.span.clone());
    }
}
