//! Units of work: the methods with which a request, a job or a task begins.
//!
//! The data is `units.toml`, written for people to review. This module compiles it for look-up by class
//! and method. An account's own are named by `work` in the policy.

use std::sync::LazyLock;

use serde::Deserialize;

use super::judge::Unit;
use super::places::Places;
use crate::enforce::refused_places::Work;

/// The table that is compiled in.
const REVIEWED: &str = include_str!("units.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    unit: Vec<Row>,
    #[serde(default)]
    passes_on: Vec<Plumbing>,
}

/// One `[[passes_on]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plumbing {
    at: Vec<String>,
    why: String,
}

/// One `[[unit]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    at: Vec<String>,
    thread: Thread,
    #[serde(default)]
    shields: bool,
    why: String,
}

/// What the thread does that the unit is on.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Thread {
    Request,
    Background,
}

/// Why a table of units is invalid.
#[derive(Debug, thiserror::Error)]
pub enum UnitsError {
    /// It is not valid TOML, or has unknown keys.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// A row is invalid: the place that it names, and why.
    #[error("{0}: {1}")]
    Row(String, &'static str),
}

/// The methods with which units of work begin, compiled.
#[derive(Debug, Default)]
pub struct Units {
    rows: Places<(Unit, Work)>,
    passes_on: Places<()>,
}

impl Units {
    /// The table that is compiled in.
    pub fn reviewed() -> &'static Units {
        static PARSED: LazyLock<Units> = LazyLock::new(|| {
            Units::parse(REVIEWED).unwrap_or_else(|error| {
                // A test reads the table, so this build was never tested.
                tracing::error!(
                    "the table of units of work is unreadable ({error}); only work that the policy names is refused"
                );
                Units::default()
            })
        });
        &PARSED
    }

    fn parse(text: &str) -> Result<Units, UnitsError> {
        let file: File = toml::from_str(text)?;
        let mut rows = Places::default();
        for row in &file.unit {
            for at in &row.at {
                let bad = |why| UnitsError::Row(at.clone(), why);
                if row.why.trim().is_empty() {
                    return Err(bad("a row says why"));
                }
                if !at.contains('#') {
                    return Err(bad("a unit of work begins with a method"));
                }
                let unit = if row.shields {
                    Unit::Shields
                } else {
                    Unit::Begins
                };
                let work = match row.thread {
                    Thread::Request => Work::Request,
                    Thread::Background => Work::Background,
                };
                rows.enter(at, (unit, work)).map_err(bad)?;
            }
        }
        let mut passes_on = Places::default();
        for row in &file.passes_on {
            for at in &row.at {
                let bad = |why| UnitsError::Row(at.clone(), why);
                if row.why.trim().is_empty() {
                    return Err(bad("a row says why"));
                }
                passes_on.enter(at, ()).map_err(bad)?;
            }
        }
        Ok(Units { rows, passes_on })
    }

    /// Whether a method of a class only passes calls on to the code that does the work.
    pub fn passes_on(&self, class: &str, method: &str) -> bool {
        self.passes_on.find(class, method).is_some()
    }

    /// Whether a unit of work begins with a method of a class, whose name is written as in Java, and what its
    /// thread does.
    pub fn of(&self, class: &str, method: &str) -> (Unit, Work) {
        let found = self.rows.find(class, method);
        found.map_or_else(Default::default, |(row, _)| *row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_jobs_and_tasks_are_units() {
        use Unit::{Begins, None, Shields};
        let units = Units::parse(REVIEWED).unwrap();
        for (class, method, expected) in [
            ("jakarta.servlet.http.HttpServlet", "service", Begins),
            ("javax.servlet.http.HttpServlet", "service", Begins),
            ("javax.servlet.http.HttpServlet", "init", None),
            (
                "org.apache.catalina.core.StandardWrapperValve",
                "invoke",
                Begins,
            ),
            ("org.eclipse.jetty.server.Server", "handle", Begins),
            ("wiremock.org.eclipse.jetty.server.Server", "handle", Begins),
            (
                "io.undertow.server.Connectors",
                "executeRootHandler",
                Begins,
            ),
            ("org.quartz.core.JobRunShell", "run", Shields),
            (
                "reactor.core.publisher.FluxMap$MapSubscriber",
                "onNext",
                Begins,
            ),
            (
                "reactor.core.publisher.FluxMap$MapSubscriber",
                "onError",
                None,
            ),
            ("com.acme.reactor.Loop", "onNext", None),
            ("java.util.concurrent.FutureTask", "run", Shields),
            ("java.util.concurrent.FutureTask", "runAndReset", None),
            (
                "java.util.concurrent.CompletableFuture$AsyncSupply",
                "run",
                Shields,
            ),
            ("java.lang.VirtualThread", "run", Begins),
            (
                "org.springframework.scheduling.support.DelegatingErrorHandlingRunnable",
                "run",
                Shields,
            ),
            // A thread's own loop, and a pool's worker.
            ("java.lang.Thread", "run", None),
            ("java.lang.Thread", "runWith", None),
            ("java.util.concurrent.ThreadPoolExecutor", "runWorker", None),
            (
                "java.util.concurrent.ThreadPoolExecutor$Worker",
                "run",
                None,
            ),
            ("java.util.concurrent.ForkJoinPool", "runWorker", None),
            ("java.util.concurrent.ForkJoinWorkerThread", "run", None),
            ("java.util.TimerThread", "mainLoop", None),
        ] {
            assert_eq!(units.of(class, method).0, expected, "{class}#{method}");
        }
    }

    #[test]
    fn requests_are_told_from_jobs() {
        let units = Units::parse(REVIEWED).unwrap();
        for (class, method, expected) in [
            ("jakarta.servlet.http.HttpServlet", "service", Work::Request),
            ("org.eclipse.jetty.server.Server", "handle", Work::Request),
            (
                "io.undertow.server.Connectors",
                "executeRootHandler",
                Work::Request,
            ),
            (
                "org.springframework.web.servlet.FrameworkServlet",
                "service",
                Work::Request,
            ),
            ("org.quartz.core.JobRunShell", "run", Work::Background),
            ("java.util.concurrent.FutureTask", "run", Work::Background),
            ("java.lang.VirtualThread", "run", Work::Background),
        ] {
            assert_eq!(units.of(class, method).1, expected, "{class}#{method}");
        }
    }

    #[test]
    fn frameworks_are_told_from_the_work_that_they_pass_on() {
        let units = Units::parse(REVIEWED).unwrap();
        for (class, passes_on) in [
            (
                "org.springframework.scheduling.support.ScheduledMethodRunnable",
                true,
            ),
            (
                "org.springframework.aop.interceptor.AsyncExecutionInterceptor",
                true,
            ),
            ("shaded.io.netty.util.concurrent.PromiseTask", true),
            ("com.acme.jobs.Evictor", false),
            ("com.acme.scala.Evictor", false),
            ("org.springframeworks.Shop", false),
        ] {
            assert_eq!(units.passes_on(class, "run"), passes_on, "{class}");
        }
    }

    #[test]
    fn bad_rows_are_refused() {
        for (row, why) in [
            ("at = ['a.C#m']", "missing"),
            ("at = ['a.C#m']\nwhy = ' '", "says why"),
            ("at = ['a.C']\nwhy = 'x'", "begins with a method"),
            ("at = ['a.C#m', 'a.C#m']\nwhy = 'x'", "twice"),
            ("at = ['a.C#m']\nwhy = 'x'\nshield = true", "unknown"),
        ] {
            let error =
                Units::parse(&format!("[[unit]]\nthread = 'background'\n{row}")).unwrap_err();
            assert!(error.to_string().contains(why), "{row}: {error}");
        }
    }
}
