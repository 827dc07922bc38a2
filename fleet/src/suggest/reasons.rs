//! The reasons, as comments of the policy. Names are escaped, because a line end would end a comment.

use policy_config::{Interval, format_bytes};

use crate::history::History;
use crate::history::statistics::needed_readings;
use heapwarden_client::live::places::never_interrupt;
use heapwarden_terminal::clock::{format_duration, format_time};
use heapwarden_terminal::printable::{escaped, fitted, fitted_name};
use heapwarden_terminal::size::shown;
use heapwarden_terminal::table::amount;

use super::demand::{Demand, Finding, MAX_RELATIVE_ERROR, Settings, sufficient_interval};
use super::pool::{Pool, Pooled, Seen};

/// Widest name in a comment.
const MAX_NAME_COLUMNS: usize = 60;

/// Most places of an account that are named, and their widest names in columns.
const MAX_PLACES: usize = 8;
const MAX_METHOD_COLUMNS: usize = 80;

/// Most routes of an account that are named.
const MAX_ROUTES: usize = 5;

/// Most accounts that get no limit and are named, and most JVMs that are.
const MAX_NAMED: usize = 50;

/// The comment at the top: the period, the rule, and the accounts without a limit.
pub(super) fn preamble(
    history: &History,
    pool: &Pool,
    settings: &Settings,
    is_live: bool,
) -> Vec<String> {
    let span = history.span;
    let mut lines = vec![
        format!(
            "Suggested from {} of {}, to {}, one reading in {}.",
            format_duration(span.seconds()),
            escaped(&history.source),
            format_time(span.end_seconds()),
            format_duration(span.step_seconds()),
        ),
        format!(
            "soft-limit: the {} quantile of live bytes with its error (95 %), and room for growth of {}.",
            settings.quantile,
            format_duration(settings.horizon_seconds),
        ),
        format!("limit: {:.0} % above that.", settings.headroom * 100.0),
    ];
    if is_live {
        lines.push(
            "The period is too short to show how load varies over a day or a week: look again later."
                .into(),
        );
    }
    lines.extend(
        history
            .notes
            .iter()
            .map(|note| format!("Note: {}.", escaped(note))),
    );
    overcommit(pool, &mut lines);
    let without = pool.entries.values().filter_map(|pooled| {
        let why = no_limit(pooled, settings)?;
        let name = fitted(&pooled.account, MAX_NAME_COLUMNS);
        Some(format!("No limit for {name}: {why}."))
    });
    let left_out = pool.left_out.iter();
    let without: Vec<String> = without
        .chain(left_out.map(|(name, why)| format!("No limit for {name}: {why}.")))
        .collect();
    lines.extend(without.iter().take(MAX_NAMED).cloned());
    if let more @ 1.. = without.len().saturating_sub(MAX_NAMED) {
        lines.push(format!("And no limit for {more} more."));
    }
    for (account, found) in pool.elsewhere.iter().take(MAX_NAMED) {
        let name = fitted(account, MAX_NAME_COLUMNS);
        lines.push(format!("{name}, which gets no limit here:"));
        lines.extend(of_routes(found));
        lines.extend(of_places(found));
        if let Some(line) = never_interrupt(&found.places) {
            lines.push(format!(
                "To spare its background threads, in its section: {line}"
            ));
        }
    }
    lines
}

/// Which requests fill it.
fn of_routes(found: &Seen) -> Vec<String> {
    let routes = found.routes();
    if routes.is_empty() {
        return Vec::new();
    }
    let mut lines = vec!["Its requests hold, by route:".to_owned()];
    let (named, rest) = routes.split_at(routes.len().min(MAX_ROUTES));
    for (route, sum) in named {
        lines.push(format!(
            "  {}: {}, {} kept a call, {} calls",
            fitted(route, MAX_METHOD_COLUMNS),
            amount::estimate(sum.live_bytes, sum.standard_error_bytes()),
            shown(sum.kept_bytes_per_call as f64),
            sum.calls,
        ));
    }
    if !rest.is_empty() {
        let bytes = rest.iter().map(|(_, sum)| sum.live_bytes);
        let bytes = bytes.fold(0, u64::saturating_add);
        lines.push(format!(
            "  {} other routes: {}",
            rest.len(),
            shown(bytes as f64)
        ));
    }
    lines
}

/// Where errors were thrown, or would have been.
fn of_places(found: &Seen) -> Vec<String> {
    if found.places.is_empty() && found.other == 0 {
        return Vec::new();
    }
    let method = |name: &str| fitted_name(name, MAX_METHOD_COLUMNS).into_owned();
    let mut lines = vec!["Errors that were thrown, or in mode observe would have been:".to_owned()];
    let (named, rest) = found.places.split_at(found.places.len().min(MAX_PLACES));
    for place in named {
        lines.push(format!(
            "  {} in {}, {}: {} in {}",
            place.count,
            method(&place.frame),
            method(&place.thread),
            method(&place.entry),
            method(&place.unit),
        ));
    }
    let others = rest.iter().map(|place| place.count);
    if let others @ 1.. = others.fold(found.other, u64::saturating_add) {
        lines.push(format!("  {others} at other places"));
    }
    lines
}

/// The line of policy that would spare the background threads of an account, if one is proposed. It has a line
/// of its own in the account's section, so that it is policy without the comment's mark.
pub(super) fn sparing(pooled: &Pooled) -> Option<String> {
    never_interrupt(&pooled.seen.places)
}

fn overcommit(pool: &Pool, lines: &mut Vec<String>) {
    for one in pool.commitments.iter().take(MAX_NAMED) {
        let consequence = if one.share() > 1.0 {
            ": not all accounts can reach their limits at once, and the heap may be full before any is refused"
        } else {
            ""
        };
        lines.push(format!(
            "{}: the limits add up to {}, {:.0} % of its heap of {}{consequence}.",
            one.jvm,
            mebibytes(one.limits_bytes as f64),
            one.share() * 100.0,
            mebibytes(one.heap_max_bytes),
        ));
    }
    if let more @ 1.. = pool.commitments.len().saturating_sub(MAX_NAMED) {
        lines.push(format!("{more} more JVMs are committed less."));
    }
}

fn no_limit(pooled: &Pooled, settings: &Settings) -> Option<String> {
    Some(match pooled.finding {
        Finding::Needs(_) => return None,
        Finding::Empty => "it held nothing that was sampled".into(),
        Finding::TooFew { readings } => format!(
            "{readings} readings, where the {} quantile takes {}",
            settings.quantile,
            settings.needed_readings()
        ),
        Finding::TooVague {
            bytes,
            relative_error,
        } => {
            let remedy = match pooled.interval_bytes {
                Some(interval) if interval > 0.0 => {
                    let interval = match sufficient_interval(interval, relative_error) {
                        0 => Interval::Exact,
                        bytes => Interval::Bytes(bytes),
                    };
                    format!("interval = \"{}\" would do", interval)
                }
                _ => "a smaller interval would do".into(),
            };
            format!(
                "the standard error at its {} is {:.0} % of it, above {:.0} %; {remedy}",
                mebibytes(bytes),
                relative_error * 100.0,
                MAX_RELATIVE_ERROR * 100.0,
            )
        }
    })
}

/// The comment above the limits of one account.
pub(super) fn of_account(pooled: &Pooled, demand: &Demand, settings: &Settings) -> Vec<String> {
    let quantile = &demand.quantile;
    let mut lines = vec![format!(
        "{} of {} readings are at most {} (95 %: {} to {}); standard error {}.",
        settings.quantile,
        demand.readings,
        mebibytes(quantile.value),
        mebibytes(quantile.low),
        mebibytes(quantile.high),
        mebibytes(demand.error_bytes),
    )];
    if !quantile.is_bounded {
        lines.push(format!(
            "The upper end is the highest reading: they are worth {:.0} independent ones, a surer end takes {}.",
            quantile.effective_readings.floor(),
            needed_readings(settings.quantile),
        ));
    }
    lines.push(match &demand.growth {
        None => "No significant growth.".into(),
        Some((growth, horizon)) => {
            let daily = |slope: f64| mebibytes(slope * 86_400.0);
            let reached = growth.seconds_to(demand.limit_bytes as f64);
            let reached = reached.map_or_else(String::new, |seconds| {
                format!(
                    ", the limit is reached in about {}",
                    format_duration(seconds as u64)
                )
            });
            format!(
                "Grows by {} a day ({} to {}): room for {}{reached}.",
                daily(growth.slope),
                daily(growth.low),
                daily(growth.high),
                format_duration(*horizon),
            )
        }
    });
    lines.extend(of_routes(&pooled.seen));
    lines.extend(of_places(&pooled.seen));
    if pooled.accounts > 1 {
        lines.push(format!(
            "The largest of {} accounts: {} of {}.",
            pooled.accounts,
            fitted(&pooled.account, MAX_NAME_COLUMNS),
            pooled.jvm,
        ));
    }
    lines
}

/// A limit as the policy file has it: `208MiB`.
pub(super) fn size(bytes: u64) -> String {
    format_bytes(bytes)
}

/// A measured size.
fn mebibytes(bytes: f64) -> String {
    let mebibytes = bytes / f64::from(1 << 20);
    if mebibytes < 10.0 {
        format!("{mebibytes:.2} MiB")
    } else {
        format!("{mebibytes:.1} MiB")
    }
}
