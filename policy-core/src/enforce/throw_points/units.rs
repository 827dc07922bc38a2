//! Units of work: the methods with which a request, a job or a task begins.
//!
//! The data is `units.toml`, written for people to review. This module compiles it for look-up by class
//! and method. An account's own are named by `work` in the policy.

use std::sync::LazyLock;

use serde::Deserialize;

use super::judge::Unit;
use super::places::Places;
use crate::enforce::place_name::Work;

/// The table that is compiled in.
const REVIEWED: &str = include_str!("units.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    unit: Vec<Row>,
    #[serde(default)]
    passes_on: Vec<Plumbing>,
    #[serde(default)]
    event_loop: Vec<Plumbing>,
}

/// One `[[passes_on]]` or `[[event_loop]]`.
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
    #[serde(default)]
    task: bool,
    why: String,
}

/// Whether the thread that the unit is on serves a request or works in the background.
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
    rows: Places<Begun>,
    passes_on: Places<()>,
    event_loops: Places<()>,
}

/// The unit of work that begins with a method, if one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Begun {
    /// Whether a unit of work does.
    pub unit: Unit,
    /// Whether its thread serves a request or works in the background.
    pub work: Work,
    /// It is a task of one of the JDK's pools: a unit only for accounts whose policy says `tasks = "interrupt"`.
    pub is_task: bool,
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
                let is_task = row.task;
                let begun = Begun {
                    unit,
                    work,
                    is_task,
                };
                rows.enter(at, begun).map_err(bad)?;
            }
        }
        Ok(Units {
            rows,
            passes_on: places(&file.passes_on)?,
            event_loops: places(&file.event_loop)?,
        })
    }

    /// Whether a method of a class only passes calls on to the code that does the work.
    pub fn passes_on(&self, class: &str, method: &str) -> bool {
        self.passes_on.find(class, method).is_some()
    }

    /// Whether a method is the loop of a thread that serves many, and must never be held.
    pub fn is_event_loop(&self, class: &str, method: &str) -> bool {
        self.event_loops.find(class, method).is_some()
    }

    /// Whether a unit of work begins with a method of a class, whose name is written as in Java, and what its
    /// thread does.
    pub fn of(&self, class: &str, method: &str) -> Begun {
        let found = self.rows.find(class, method);
        found.map_or_else(Default::default, |(row, _)| *row)
    }
}

/// The places of such rows.
fn places(rows: &[Plumbing]) -> Result<Places<()>, UnitsError> {
    let mut places = Places::default();
    for row in rows {
        for at in &row.at {
            let bad = |why| UnitsError::Row(at.clone(), why);
            if row.why.trim().is_empty() {
                return Err(bad("a row says why"));
            }
            places.enter(at, ()).map_err(bad)?;
        }
    }
    Ok(places)
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
            assert_eq!(units.of(class, method).unit, expected, "{class}#{method}");
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
            assert_eq!(units.of(class, method).work, expected, "{class}#{method}");
        }
    }

    #[test]
    fn tasks_of_the_jdks_pools_are_told_from_requests_and_jobs() {
        let units = Units::parse(REVIEWED).unwrap();
        for (class, method, is_task) in [
            ("java.util.concurrent.FutureTask", "run", true),
            (
                "java.util.concurrent.CompletableFuture$Completion",
                "run",
                true,
            ),
            ("java.util.concurrent.RecursiveAction", "exec", true),
            ("java.lang.VirtualThread", "run", true),
            ("org.quartz.core.JobRunShell", "run", false),
            ("jakarta.servlet.http.HttpServlet", "service", false),
        ] {
            assert_eq!(units.of(class, method).is_task, is_task, "{class}#{method}");
        }
    }

    #[test]
    fn event_loops_are_known_also_in_shaded_copies() {
        let units = Units::parse(REVIEWED).unwrap();
        for (class, method, is_loop) in [
            ("io.netty.channel.nio.NioEventLoop", "run", true),
            (
                "shaded.io.netty.util.concurrent.SingleThreadEventExecutor$4",
                "run",
                true,
            ),
            ("org.apache.tomcat.util.net.NioEndpoint$Poller", "run", true),
            ("org.xnio.nio.WorkerThread", "run", true),
            (
                "java.util.concurrent.ThreadPoolExecutor",
                "runWorker",
                false,
            ),
        ] {
            assert_eq!(
                units.is_event_loop(class, method),
                is_loop,
                "{class}#{method}"
            );
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
