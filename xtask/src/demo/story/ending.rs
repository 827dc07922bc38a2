//! The ending: the growing application reaches its limit and is refused, the others go on, and an
//! edit of the policy gives it room.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use super::super::accounts::Reading;
use super::super::applications::{APPLICATIONS, GROWING};
use super::super::edit;
use super::super::load::{Answers, Load};
use super::super::units::{grouped, indented};
use super::{LOAD, Stage, endless};

/// Requests a second to the growing application: it reaches its limit in some seconds.
const GROWING_PER_SECOND: u32 = 15;
/// How long it may take until it is refused.
const REFUSED_WITHIN: Duration = Duration::from_secs(25);
/// How long the refusals are shown, and afterwards that it works again.
const REFUSED_FOR: Duration = Duration::from_secs(4);
const READMITTED_FOR: Duration = Duration::from_secs(3);
/// The limit that the operator gives it then; it holds less at the end of the demo.
const RAISED_BYTES: u32 = 160 << 20;
/// How long an edit may take to be in force; two seconds are promised.
const IN_FORCE_WITHIN: Duration = Duration::from_secs(10);
/// Characters of a line that quotes the log.
const LOG_WIDTH: usize = 96;
/// Answers that were under way when the edit was seen in force have arrived after this.
const UNDER_WAY: Duration = Duration::from_millis(500);

/// The answers of every application up to a moment, in the order of [`APPLICATIONS`].
type Tally = [Answers; APPLICATIONS.len()];

impl Stage {
    /// An error unless the growing application is refused, all others answer everything all the
    /// while, and it works again once its limit is raised.
    pub(super) fn refuse_and_readmit(&mut self) -> Result<()> {
        println!("\nThe load goes on, and {GROWING} with it: towards its limit.\n");
        let plans = APPLICATIONS
            .iter()
            .map(|application| {
                let steady = application.requests / LOAD.as_secs() as u32;
                if application.name == GROWING {
                    let mut plan = endless(application, GROWING_PER_SECOND);
                    plan.refusable = true;
                    plan
                } else {
                    endless(application, steady)
                }
            })
            .collect();
        let load = Load::start(self.tomcat.applications(), plans)?;
        self.until_refused(&load)?;
        self.while_refused(&load)?;
        self.raise_limit(&load)?;
        self.while_readmitted(&load)?;
        self.others_all_answered(&load)
    }

    fn until_refused(&mut self, load: &Load) -> Result<()> {
        let end = Instant::now() + REFUSED_WITHIN;
        self.follow("growing towards its limit", load, |_, reading| {
            if Instant::now() > end {
                bail!(
                    "{GROWING} was not refused within {} s; its account: {:?}",
                    REFUSED_WITHIN.as_secs(),
                    reading.account(GROWING)?
                );
            }
            Ok(load.answers(GROWING).refused > 0)
        })
    }

    fn while_refused(&mut self, load: &Load) -> Result<()> {
        println!("\n{GROWING} is over its limit. Its door is shut to new requests:");
        let before = tally(load);
        self.follow_for("one is turned away, the others go on", load, REFUSED_FOR)?;
        let log = fs::read_to_string(self.tomcat.log())?;
        for what in ["is over its limit", "was refused"] {
            if let Some(line) = logged(&log, GROWING, what) {
                println!("\n{}", indented(line, LOG_WIDTH, "  log: "));
            }
        }
        println!("\nAnswers in these {} s:", REFUSED_FOR.as_secs());
        let mut refused = 0;
        for (application, answers) in since(load, &before) {
            println!(
                "  /{:<8}{:>6} × 200{:>6} × 503",
                application,
                grouped(answers.ok),
                grouped(answers.refused)
            );
            ensure!(answers.all() > 0, "{application} answered nothing");
            refused += answers.refused;
        }
        ensure!(refused > 0, "{GROWING} was refused once and then no more");
        let reading = Reading::take(&self.agent)?;
        let turned_away = reading.sum("heapwarden_account_admission_refusals_total");
        ensure!(turned_away > 0.0, "nobody was turned away at the door");
        println!(
            "(200: let in one at a time, so that a request could let memory go. Errors thrown: {}.)",
            reading.sum("heapwarden_account_refusals_total")
        );
        Ok(())
    }

    fn raise_limit(&mut self, load: &Load) -> Result<()> {
        let limit = format!("{}MiB", RAISED_BYTES >> 20);
        let edit = edit::set_limit(self.tomcat.policy(), GROWING, &limit)?;
        let begun = Instant::now();
        println!(
            "\nThe operator edits line {} of heapwarden.toml:\n\n  - {}\n  + {}\n",
            edit.number, edit.before, edit.after
        );
        self.follow("the policy was edited", load, |_, reading| {
            if begun.elapsed() > IN_FORCE_WITHIN {
                bail!(
                    "the edited limit was not in force within {} s",
                    IN_FORCE_WITHIN.as_secs()
                );
            }
            let account = reading.account(GROWING)?;
            Ok(account.limit_bytes == Some(f64::from(RAISED_BYTES)) && !account.over_limit)
        })?;
        println!(
            "\nIn force {:.1} s later, without a restart.",
            begun.elapsed().as_secs_f64()
        );
        self.wait(UNDER_WAY)
    }

    fn while_readmitted(&mut self, load: &Load) -> Result<()> {
        let before = tally(load);
        self.follow_for("with room again", load, READMITTED_FOR)?;
        for (application, answers) in since(load, &before) {
            ensure!(answers.ok > 0, "{application} answered nothing");
            ensure!(
                answers.refused == 0,
                "{application} was refused {} times under its raised limit",
                answers.refused
            );
            if application == GROWING {
                println!(
                    "\n{GROWING} works again: {} requests in {} s, all of them 200.",
                    answers.ok,
                    READMITTED_FOR.as_secs()
                );
            }
        }
        Ok(())
    }

    /// The load fails with the first request of theirs that is answered otherwise.
    fn others_all_answered(&mut self, load: &Load) -> Result<()> {
        load.finished()?;
        let others: Vec<String> = APPLICATIONS
            .iter()
            .filter(|application| application.name != GROWING)
            .map(|application| {
                let answers = load.answers(application.name);
                format!("{} {}", application.name, grouped(answers.ok))
            })
            .collect();
        println!(
            "Its neighbours' answers since it began to grow: {}, all of them 200.\n",
            others.join(", ")
        );
        Ok(())
    }

    fn follow_for(&mut self, title: &str, load: &Load, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        self.follow(title, load, |_, _| Ok(Instant::now() >= end))
    }
}

fn tally(load: &Load) -> Tally {
    APPLICATIONS
        .each_ref()
        .map(|application| load.answers(application.name))
}

fn since(load: &Load, before: &Tally) -> impl Iterator<Item = (&'static str, Answers)> {
    let names = APPLICATIONS.each_ref().map(|application| application.name);
    let after = tally(load);
    names
        .into_iter()
        .zip(after)
        .zip(*before)
        .map(|((name, after), before)| (name, after.since(before)))
}

/// The latest line of the agent about an account, without what stands before its message.
fn logged<'a>(log: &'a str, account: &str, what: &str) -> Option<&'a str> {
    let subject = [
        format!("account {account}: "),
        format!("account {account} "),
    ];
    log.lines().rev().find_map(|line| {
        let start = subject.iter().find_map(|subject| line.find(subject))?;
        line[start..].contains(what).then_some(&line[start..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_agent_s_log_is_found_by_its_account() {
        let log = "\
x WARN heapwarden: account grown is over its limit: 1
x WARN heapwarden: account grow is over its limit: 2
x WARN heapwarden: account grow: 3B was refused in a
";
        assert_eq!(
            logged(log, "grow", "is over its limit"),
            Some("account grow is over its limit: 2")
        );
        assert_eq!(
            logged(log, "grow", "was refused"),
            Some("account grow: 3B was refused in a")
        );
        assert_eq!(logged(log, "grow", "is admitted"), None);
    }
}
