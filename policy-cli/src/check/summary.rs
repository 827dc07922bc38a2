//! A summary of an accepted policy in a few lines.

use std::io::{self, Write};

use policy_config::{
    Account, Charge, Door, Interval, LeakPaths, Limit, Listen, Matcher, Mode, Policy, Principals,
    Reserve, Snapshots, When, format_duration,
};

/// Most accounts that are listed.
const MAX_LISTED: usize = 20;

/// Widest text of a column, in characters.
const MAX_CELL_CHARS: usize = 40;

/// Writes the settings in sentences and the accounts as a table.
pub(crate) fn write(policy: &Policy, out: &mut dyn Write) -> io::Result<()> {
    match &policy.agent.listen {
        Listen::Off => writeln!(out, "  Publishes nothing over HTTP.")?,
        address => {
            let wanted = matches!(address, Listen::Address { port: 1.., .. });
            let strictly = match policy.agent.listen_strict && wanted {
                true => ", and waits for the port if another process has it",
                false => "",
            };
            writeln!(out, "  Publishes on http://{address}/metrics{strictly}.")?;
        }
    }
    match policy.sampling.interval {
        Interval::Exact => write!(out, "  Samples every allocation")?,
        interval => write!(out, "  Samples once in {interval} on average")?,
    }
    if let (Interval::Bytes(_), Some(percent)) =
        (policy.sampling.interval, policy.sampling.cpu_budget_percent)
    {
        write!(
            out,
            ", less often where samples take over {percent}% of the CPU time"
        )?;
    }
    match policy.sampling.principals {
        Principals::Full => writeln!(out, ".")?,
        Principals::Payer => writeln!(out, ", without principals beyond the payer.")?,
    }
    for rule in &policy.sampling.thin {
        writeln!(
            out,
            "  Keeps {}% of the samples of classes \"{}\".",
            rule.keep_percent, rule.class
        )?;
    }
    if let Some(snapshots) = &policy.snapshots {
        write_snapshots(snapshots, out)?;
    }
    match policy.enforcement.mode {
        Mode::Observe => writeln!(out, "  Refuses nothing, and counts what it would refuse.")?,
        Mode::Enforce => writeln!(
            out,
            "  Turns new work away from accounts over their limits; refuses allocations beyond a reserve {}.",
            match policy.enforcement.reserve {
                Reserve::Auto => "that the heap can give".to_owned(),
                share @ Reserve::Share(_) => format!("of {share}"),
            }
        )?,
    }
    if policy.enforcement.when == When::HeapIsShort {
        writeln!(out, "  Limits bind only while the heap is short.")?;
    }
    writeln!(
        out,
        "  Collections that it asks for may take {}% of the time.",
        policy.enforcement.evidence_budget_percent
    )?;
    if !policy.leak_settings.sites.is_empty() {
        let globs: Vec<_> = policy.leak_settings.sites.iter().take(MAX_LISTED).collect();
        let globs: Vec<String> = globs.into_iter().map(|glob| glob.to_string()).collect();
        writeln!(out, "  Takes stacks of samples of {}.", globs.join(", "))?;
    }
    if policy.leak_settings.paths == LeakPaths::Forked {
        writeln!(
            out,
            "  Finds out what keeps a suspect alive, in a forked child, at most {} times a day.",
            policy.leak_settings.paths_per_day
        )?;
    }
    if policy.privacy.values {
        writeln!(
            out,
            "  Shows values of objects, which may be secrets, to whoever asks for instances or reads the page."
        )?;
    }
    match policy.leaks.len() {
        0 => {}
        1 => writeln!(out, "  Does not report 1 leak that it acknowledges.")?,
        count => writeln!(out, "  Does not report {count} leaks that it acknowledges.")?,
    }
    if policy.accounts.is_empty() {
        return writeln!(
            out,
            "  No accounts: every service found gets one of its own, without a limit."
        );
    }
    writeln!(out)?;
    write_table(&policy.accounts, out)
}

fn write_snapshots(snapshots: &Snapshots, out: &mut dyn Write) -> io::Result<()> {
    let every = match snapshots.every {
        Some(every) => format!(" every {}", format_duration(every)),
        None => String::new(),
    };
    let at_exit = match (snapshots.every, snapshots.at_exit) {
        (Some(_), true) => " and at the end",
        (None, true) => " at the end",
        (_, false) => "",
    };
    writeln!(
        out,
        "  Writes a snapshot to {}{every}{at_exit}, and keeps {}.",
        snapshots.directory.display(),
        snapshots.keep
    )
}

fn write_table(accounts: &[Account], out: &mut dyn Write) -> io::Result<()> {
    let header = ["ACCOUNT", "MATCHES", "SOFT LIMIT", "LIMIT", "WHEN OVER"];
    let mut rows = vec![header.map(String::from)];
    rows.extend(accounts.iter().take(MAX_LISTED).map(row));
    let widths: [usize; 5] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    });
    for row in &rows {
        let mut line = String::from(" ");
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&format!(" {cell:width$} "));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    if let more @ 1.. = accounts.len().saturating_sub(MAX_LISTED) {
        writeln!(out, "  and {more} more")?;
    }
    Ok(())
}

fn row(account: &Account) -> [String; 5] {
    let name = match &account.name {
        Some(name) => name.clone(),
        None => "(one each)".into(),
    };
    let when_over = match (account.charge, account.limit) {
        (Charge::Caller, _) => "callers pay".to_owned(),
        (Charge::SelfPays, Limit::None) => "-".to_owned(),
        (Charge::SelfPays, _) => when_over(account),
    };
    let when_over = match (account.direct_limit, when_over.as_str()) {
        (Limit::None, _) => when_over,
        (direct_limit, "-") => format!("at most {direct_limit} off the heap"),
        (direct_limit, _) => format!("{when_over}; at most {direct_limit} off the heap"),
    };
    [
        cut(&name),
        cut(&account.matcher.to_string()),
        account.soft_limit.to_string(),
        account.limit.to_string(),
        when_over,
    ]
}

/// Returns the status that a request gets, the error that leaves the methods of the door, and the error that a refused
/// allocation gets.
fn when_over(account: &Account) -> String {
    let status = (matches!(account.matcher, Matcher::Service(_)) && account.door != Door::Off)
        .then(|| account.status.to_string());
    let at_methods = match account.door.methods().len() {
        0 => None,
        count => {
            let refusal = account.refuse_with.unwrap_or(account.throw);
            let methods = if count == 1 { "method" } else { "methods" };
            Some(format!("{refusal} at {count} {methods}"))
        }
    };
    let turned_away: Vec<String> = [status, at_methods].into_iter().flatten().collect();
    match turned_away.is_empty() {
        true => account.throw.to_string(),
        false => format!("{}, then {}", turned_away.join(" and "), account.throw),
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_CELL_CHARS {
        return text.into();
    }
    let kept = text.chars().take(MAX_CELL_CHARS - 1);
    kept.chain(['…']).collect()
}
