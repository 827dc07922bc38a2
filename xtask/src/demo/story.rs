//! The demo as the viewer sees it, step by step, within [`TIME_MAXIMUM`] of Tomcat's start.

mod ending;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::accounts::Reading;
use super::applications::{APPLICATIONS, Application, GROWING, LIBRARY, LIBRARY_CALLER};
use super::load::{Load, Plan};
use super::options::Options;
use super::table::{self, Line};
use super::terminal::Terminal;
use super::tomcat::Tomcat;
use super::units::{grouped, mib};
use super::verdict::{Comparison, Point, Verdict};
use crate::interrupt;
use heapwarden_harness::http::Client;
use heapwarden_harness::repository;

/// The demo ends by itself within this time.
const TIME_MAXIMUM: Duration = Duration::from_secs(90);
/// How long the load takes, and how much longer than `--quick`.
const LOAD: Duration = Duration::from_secs(30);
const QUICK: u32 = 3;
/// The warm-up makes this share of the load's requests, at the load's pace.
const WARM_UP_SHARE: u32 = 10;
/// How often the table is redrawn.
const REDRAW_EVERY: Duration = Duration::from_millis(500);
/// Refunds follow a collection within milliseconds, a published reading is up to a second old.
const SETTLE_EVERY: Duration = Duration::from_millis(1_100);
const SETTLE_MAXIMUM: Duration = Duration::from_secs(15);
/// Requests a second to each steady application while the demo is kept.
const KEPT_PER_SECOND: u32 = 5;

/// Tells the story; with `--keep` it then goes on until Ctrl-C.
pub(super) fn tell(tomcat: Tomcat, options: &Options, begun: Instant) -> Result<()> {
    let over = if options.quick { LOAD / QUICK } else { LOAD };
    let mut stage = Stage::new(tomcat, begun);
    stage.warm_up(over)?;
    let before = stage.settle()?;
    stage.load(over)?;
    let after = stage.settle()?;
    let verdict = Verdict {
        comparisons: compare(&before, &after)?,
        within: options.within,
    };
    conclude(&verdict, &after, begun)?;
    stage.refuse_and_readmit()?;
    if options.keep {
        stage.keep()?;
    }
    let id = stage.tomcat.id();
    drop(stage);
    println!("Tomcat (process {id}) has ended and its folder is removed.");
    println!("\n{}", whats_next(options.keep));
    Ok(verdict.check()?)
}

/// The last lines. Paths are as they are typed at the repository's root, where `cargo xtask` is.
fn whats_next(kept: bool) -> String {
    let command = repository::command();
    let command = command.strip_prefix(repository::root()).unwrap_or(&command);
    let command = command.display();
    let again = match kept {
        true => "this again",
        false => "this again, and then it goes on; it prints the address of the agent's page",
    };
    let lines = [
        ("cargo xtask demo --keep".to_owned(), again),
        (
            format!("{command} top"),
            "meanwhile, in another terminal: the accounts",
        ),
        (
            format!("{command} doctor PID"),
            "what is wrong in that JVM, and what to do",
        ),
        ("docs/install.md".to_owned(), "the agent in your own server"),
        ("examples/policies".to_owned(), "policies to begin with"),
    ];
    let mut text = "What to look at next:".to_owned();
    for (what, about) in lines {
        text.push_str(&format!("\n  {what:36}  {about}"));
    }
    text
}

/// The accounts and the truth at one moment, after a full collection.
struct Settled {
    reading: Reading,
    truths: Vec<Truth>,
}

/// The bytes that an application says it holds: all of them, and those that the library made.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Truth {
    held_bytes: f64,
    library_bytes: f64,
}

/// Tomcat, its callers and the terminal.
struct Stage {
    tomcat: Tomcat,
    applications: Client,
    agent: Client,
    terminal: Terminal,
    begun: Instant,
    deadline: Option<Instant>,
}

impl Stage {
    fn new(tomcat: Tomcat, begun: Instant) -> Stage {
        Stage {
            applications: Client::new(tomcat.applications()),
            agent: Client::new(tomcat.agent()),
            tomcat,
            terminal: Terminal::new(),
            begun,
            deadline: Some(begun + TIME_MAXIMUM),
        }
    }

    /// Every class loaded, every connection and pool made, and then everything let go.
    fn warm_up(&mut self, over: Duration) -> Result<()> {
        println!("Warming up; then the applications let go of everything: the baseline.");
        let plans = APPLICATIONS
            .iter()
            .map(|application| {
                plan(
                    application,
                    application.requests / WARM_UP_SHARE,
                    over / WARM_UP_SHARE,
                )
            })
            .collect();
        self.watch("warming up", plans)?;
        for application in &APPLICATIONS {
            let path = application.release();
            self.applications.post(&path)?.ok()?;
        }
        Ok(())
    }

    fn load(&mut self, over: Duration) -> Result<()> {
        println!("\nLoad for {} s:", over.as_secs());
        for application in &APPLICATIONS {
            println!(
                "  /{:<8}{}, {} requests",
                application.name,
                application.does,
                grouped(u64::from(application.requests))
            );
        }
        println!();
        let plans = APPLICATIONS
            .iter()
            .map(|application| plan(application, application.requests, over))
            .collect();
        self.watch("under load", plans)
    }

    /// Leaves the steady applications under a light load, without an end.
    fn keep(&mut self) -> Result<()> {
        self.deadline = None;
        println!("It goes on until Ctrl-C:");
        println!("  page          http://{}/", self.tomcat.agent());
        println!("  metrics       http://{}/metrics", self.tomcat.agent());
        println!(
            "  accounts      http://{}/api/v1/accounts",
            self.tomcat.agent()
        );
        for application in &APPLICATIONS {
            println!(
                "  {:<14}http://{}{}",
                application.name,
                self.tomcat.applications(),
                application.work()
            );
        }
        println!(
            "  policy        {} (edit it: it is reloaded)",
            self.tomcat.policy().display()
        );
        println!("  Tomcat's log  {}\n", self.tomcat.log().display());
        let plans = APPLICATIONS
            .iter()
            .filter(|application| application.name != GROWING)
            .map(|application| endless(application, KEPT_PER_SECOND))
            .collect();
        match self.watch("kept running; Ctrl-C ends it", plans) {
            Err(error) if error.is::<interrupt::Interrupted>() => {
                println!();
                Ok(())
            }
            other => other,
        }
    }

    /// Shows the accounts until the load ends.
    fn watch(&mut self, title: &str, plans: Vec<Plan>) -> Result<()> {
        let load = Load::start(self.tomcat.applications(), plans)?;
        self.follow(title, &load, |finished, _| Ok(finished))
    }

    /// Shows the accounts until `enough`, which is told whether the load has ended and what was
    /// shown last. An error if a request failed.
    fn follow(
        &mut self,
        title: &str,
        load: &Load,
        mut enough: impl FnMut(bool, &Reading) -> Result<bool>,
    ) -> Result<()> {
        loop {
            let finished = load.finished()?;
            let reading = self.show(title, load)?;
            if enough(finished, &reading)? {
                self.terminal.leave();
                return Ok(());
            }
            self.wait(REDRAW_EVERY)?;
        }
    }

    fn show(&mut self, title: &str, load: &Load) -> Result<Reading> {
        let reading = Reading::take(&self.agent)?;
        let lines = APPLICATIONS
            .iter()
            .map(|application| {
                Ok(Line {
                    name: application.name,
                    account: reading.account(application.name)?,
                    answers: load.answers(application.name),
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let seconds = self.begun.elapsed().as_secs();
        if self.terminal.is_terminal() {
            self.terminal
                .redraw(&table::drawn(title, seconds, &reading, &lines));
        } else {
            self.terminal
                .print_now_and_then(|| table::printed(seconds, &lines));
        }
        Ok(reading)
    }

    /// A full collection, its refunds, and then both sides of the comparison.
    ///
    /// Nothing runs meanwhile: what the accounts and the applications say must have come to rest.
    fn settle(&mut self) -> Result<Settled> {
        let truths = self.truths()?;
        let epoch = Reading::take(&self.agent)?.gc_epoch();
        // The second finds what the first left to reference processing.
        self.tomcat.collect()?;
        self.tomcat.collect()?;
        let end = Instant::now() + SETTLE_MAXIMUM;
        let mut previous = None;
        loop {
            self.wait(SETTLE_EVERY)?;
            let reading = Reading::take(&self.agent)?;
            let live = APPLICATIONS
                .iter()
                .map(|application| Ok(reading.account(application.name)?.live_bytes))
                .collect::<Result<Vec<_>>>()?;
            if reading.gc_epoch() > epoch && previous.as_ref() == Some(&live) {
                if self.truths()? != truths {
                    bail!("an application's truth changed while nobody asked anything of it");
                }
                return Ok(Settled { reading, truths });
            }
            if Instant::now() > end {
                bail!("the accounts do not come to rest after a full collection: {live:?}");
            }
            previous = Some(live);
        }
    }

    fn truths(&mut self) -> Result<Vec<Truth>> {
        APPLICATIONS
            .iter()
            .map(|application| {
                let path = application.truth();
                let text = self.applications.get(&path)?.ok()?;
                truth(&text).with_context(|| format!("{path} answered {text:?}"))
            })
            .collect()
    }

    /// Sleeps, unless the user, Tomcat or the clock ends the demo.
    fn wait(&mut self, duration: Duration) -> Result<()> {
        self.tomcat.check()?;
        if self
            .deadline
            .is_some_and(|deadline| Instant::now() > deadline)
        {
            bail!("the demo did not end within {} s", TIME_MAXIMUM.as_secs());
        }
        interrupt::sleep(duration)
    }
}

fn plan(application: &Application, requests: u32, over: Duration) -> Plan {
    Plan {
        name: application.name,
        path: application.work(),
        requests,
        over,
        refusable: false,
    }
}

/// As many requests a second, without an end.
fn endless(application: &Application, per_second: u32) -> Plan {
    plan(
        application,
        u32::MAX,
        Duration::from_secs(1) / per_second * u32::MAX,
    )
}

fn truth(json: &str) -> Option<Truth> {
    let json: serde_json::Value = serde_json::from_str(json).ok()?;
    Some(Truth {
        held_bytes: json.get("held_bytes")?.as_f64()?,
        library_bytes: json.get("library_bytes")?.as_f64()?,
    })
}

/// The accounts, and the library's part in its caller's account.
fn compare(before: &Settled, after: &Settled) -> Result<Vec<Comparison>> {
    let mut comparisons = Vec::new();
    for (index, application) in APPLICATIONS.iter().enumerate() {
        let point = |settled: &Settled| -> Result<Point> {
            let account = settled.reading.account(application.name)?;
            Ok(Point {
                live_bytes: account.live_bytes,
                standard_error_bytes: account.standard_error_bytes,
                truth_bytes: settled.truths[index].held_bytes,
            })
        };
        comparisons.push(Comparison {
            name: application.name.to_owned(),
            before: point(before)?,
            after: point(after)?,
        });
        if application.name == LIBRARY_CALLER {
            // A part of an account has no standard error of its own. The whole account's is an
            // upper bound; the part is nearly all of it here.
            let part = |settled: &Settled| -> Result<Point> {
                Ok(Point {
                    live_bytes: settled.reading.principal_bytes(LIBRARY_CALLER, LIBRARY),
                    truth_bytes: settled.truths[index].library_bytes,
                    ..point(settled)?
                })
            };
            comparisons.push(Comparison {
                name: format!("  by {LIBRARY}"),
                before: part(before)?,
                after: part(after)?,
            });
        }
    }
    Ok(comparisons)
}

/// Prints the verdict.
fn conclude(verdict: &Verdict, after: &Settled, begun: Instant) -> Result<()> {
    println!("\nAccount against truth, after a full collection\n\n{verdict}");
    println!(
        "added: between baseline and end, by the account; truth: the same, by the application.\n\
         directly: the account at the end against the whole truth, with what the container made\n\
         for the application counted as error.\n"
    );
    let library = after.reading.account(LIBRARY)?;
    println!(
        "Whose is the library's memory? {} holds {} itself: {} pays the {} that {} made for it.",
        LIBRARY,
        mib(library.live_bytes),
        LIBRARY_CALLER,
        mib(after.reading.principal_bytes(LIBRARY_CALLER, LIBRARY)),
        LIBRARY,
    );
    println!(
        "Heapwarden itself: {:.2} s of CPU and {} in {} s; {} samples.\n",
        after.reading.sum("heapwarden_agent_cpu_seconds_total"),
        mib(after.reading.sum("heapwarden_agent_memory_bytes")),
        begun.elapsed().as_secs(),
        grouped(after.reading.sum("heapwarden_samples_total") as u64),
    );
    match verdict.check() {
        Ok(()) => println!("All within {} standard errors.", verdict.within),
        Err(too_far) => println!("{too_far}"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_next_is_there() {
        let text = whats_next(false);
        assert!(text.contains("/heapwarden top"), "{text}");
        for path in ["docs/install.md", "examples/policies"] {
            assert!(text.contains(path), "{text}");
            assert!(repository::root().join(path).exists(), "{path}");
        }
    }

    #[test]
    fn a_truth_is_read_whole_or_not_at_all() {
        assert_eq!(
            truth("{\"held_bytes\":3,\"own_bytes\":1,\"library_bytes\":2,\"entries\":9}\n"),
            Some(Truth {
                held_bytes: 3.0,
                library_bytes: 2.0
            })
        );
        assert_eq!(truth("{\"held_bytes\":3}"), None);
        assert_eq!(truth("<html>"), None);
    }
}
