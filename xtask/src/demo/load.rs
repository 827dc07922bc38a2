//! HTTP load: paced requests from threads of our own over kept connections.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use heapwarden_harness::http::Client;

/// Connections for each application.
const CONNECTIONS: u32 = 2;
/// No wait is longer, so that a request to stop is noticed.
const WAIT_MAXIMUM: Duration = Duration::from_millis(50);
/// The status by which an application says that it gathers no more.
const FULL: u16 = 507;
/// The status of a request that was refused memory.
const REFUSED: u16 = 503;

/// The requests to make of one application.
pub(crate) struct Plan {
    /// The application, for the counts.
    pub(crate) name: &'static str,
    /// The address of one request's work.
    pub(crate) path: String,
    /// How many requests.
    pub(crate) requests: u32,
    /// Over what time, evenly.
    pub(crate) over: Duration,
    /// Whether it may be refused memory; otherwise that fails the load, as any other answer does.
    pub(crate) refusable: bool,
}

/// The numbers of an application's answers by status, while they grow.
#[derive(Default)]
struct Counts {
    ok: AtomicU64,
    full: AtomicU64,
    refused: AtomicU64,
}

/// The counts of one application at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    /// Requests answered 200.
    pub(crate) ok: u64,
    /// Requests answered 507: the application gathers no more.
    pub(crate) full: u64,
    /// Requests answered 503: the application was refused memory.
    pub(crate) refused: u64,
}

impl Answers {
    /// Returns the answers that came after `before`.
    pub(crate) fn since(self, before: Answers) -> Answers {
        Answers {
            ok: self.ok - before.ok,
            full: self.full - before.full,
            refused: self.refused - before.refused,
        }
    }

    /// Every request that was answered.
    pub(crate) fn all(self) -> u64 {
        self.ok + self.full + self.refused
    }
}

/// Load under way; stopped when dropped.
pub(crate) struct Load {
    shared: Arc<Shared>,
    counts: Vec<(&'static str, Arc<Counts>)>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    failure: Mutex<Option<anyhow::Error>>,
}

impl Load {
    /// Starts it.
    pub(crate) fn start(address: SocketAddr, plans: Vec<Plan>) -> Result<Load> {
        let mut load = Load {
            shared: Arc::default(),
            counts: Vec::new(),
            workers: Vec::new(),
        };
        let begun = Instant::now();
        for plan in plans {
            let counts = Arc::new(Counts::default());
            load.counts.push((plan.name, Arc::clone(&counts)));
            let plan = Arc::new(plan);
            for connection in 0..CONNECTIONS {
                let worker = Worker {
                    client: Client::new(address),
                    plan: Arc::clone(&plan),
                    counts: Arc::clone(&counts),
                    shared: Arc::clone(&load.shared),
                    begun,
                };
                let thread = thread::Builder::new()
                    .name(format!("load {}", plan.name))
                    .spawn(move || worker.work(connection))
                    .context("a thread for the load cannot be started")?;
                load.workers.push(thread);
            }
        }
        Ok(load)
    }

    /// Whether every request has been answered; an error if one failed.
    pub(crate) fn finished(&self) -> Result<bool> {
        let mut failure = self
            .shared
            .failure
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(error) = failure.take() {
            return Err(error);
        }
        Ok(self.workers.iter().all(JoinHandle::is_finished))
    }

    /// Returns the answers of an application so far; none of one that is not under load.
    pub(crate) fn answers(&self, application: &str) -> Answers {
        self.counts
            .iter()
            .find(|(name, _)| *name == application)
            .map(|(_, counts)| Answers {
                ok: counts.ok.load(Ordering::Relaxed),
                full: counts.full.load(Ordering::Relaxed),
                refused: counts.refused.load(Ordering::Relaxed),
            })
            .unwrap_or_default()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

struct Worker {
    client: Client,
    plan: Arc<Plan>,
    counts: Arc<Counts>,
    shared: Arc<Shared>,
    begun: Instant,
}

impl Worker {
    /// Makes every `CONNECTIONS`-th request of the plan, each no earlier than it is due.
    fn work(mut self, first: u32) {
        let share = self.plan.over / self.plan.requests.max(1);
        let mut index = first;
        while index < self.plan.requests {
            let due = self.begun + share * index;
            loop {
                if self.shared.stop.load(Ordering::Relaxed) {
                    return;
                }
                let rest = due.saturating_duration_since(Instant::now());
                if rest.is_zero() {
                    break;
                }
                thread::sleep(rest.min(WAIT_MAXIMUM));
            }
            if let Err(error) = self.ask() {
                let mut failure = self
                    .shared
                    .failure
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                failure.get_or_insert(error);
                self.shared.stop.store(true, Ordering::Relaxed);
                return;
            }
            index = index.saturating_add(CONNECTIONS);
        }
    }

    fn ask(&mut self) -> Result<()> {
        match self.client.get(&self.plan.path)?.status {
            200 => self.counts.ok.fetch_add(1, Ordering::Relaxed),
            FULL => self.counts.full.fetch_add(1, Ordering::Relaxed),
            REFUSED if self.plan.refusable => self.counts.refused.fetch_add(1, Ordering::Relaxed),
            status => bail!("{} answered {status}", self.plan.path),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    /// A server that answers each request on each connection with one status.
    fn server(status: u16) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                thread::spawn(move || {
                    let requests = BufReader::new(stream.try_clone().unwrap()).lines();
                    for line in requests.map_while(Result::ok) {
                        if line.is_empty() {
                            let answer =
                                format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n");
                            stream.write_all(answer.as_bytes()).unwrap();
                        }
                    }
                });
            }
        });
        address
    }

    fn plan(requests: u32, over: Duration) -> Plan {
        Plan {
            name: "it",
            path: "/it/".into(),
            requests,
            over,
            refusable: false,
        }
    }

    fn wait(load: &Load) -> Result<()> {
        let end = Instant::now() + Duration::from_secs(20);
        while !load.finished()? {
            assert!(Instant::now() < end, "the load does not end");
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    #[test]
    fn every_request_is_made_once_and_not_before_it_is_due() {
        let begun = Instant::now();
        let over = Duration::from_millis(300);
        let load = Load::start(server(200), vec![plan(31, over)]).unwrap();
        wait(&load).unwrap();
        let answers = Answers {
            ok: 31,
            ..Answers::default()
        };
        assert_eq!(load.answers("it"), answers);
        assert_eq!(load.answers("other"), Answers::default());
        assert!(begun.elapsed() >= over * 30 / 31);
    }

    #[test]
    fn a_full_application_is_counted_apart() {
        let load = Load::start(server(507), vec![plan(4, Duration::ZERO)]).unwrap();
        wait(&load).unwrap();
        let answers = Answers {
            full: 4,
            ..Answers::default()
        };
        assert_eq!(load.answers("it"), answers);
    }

    #[test]
    fn a_refusal_is_counted_where_it_may_come() {
        let mut refusable = plan(4, Duration::ZERO);
        refusable.refusable = true;
        let load = Load::start(server(503), vec![refusable]).unwrap();
        wait(&load).unwrap();
        assert_eq!(load.answers("it").refused, 4);
        let load = Load::start(server(503), vec![plan(4, Duration::ZERO)]).unwrap();
        let error = wait(&load).unwrap_err().to_string();
        assert!(error.contains("/it/ answered 503"), "{error}");
    }

    #[test]
    fn an_unexpected_answer_fails_the_load() {
        let load = Load::start(server(500), vec![plan(4, Duration::ZERO)]).unwrap();
        let error = wait(&load).unwrap_err().to_string();
        assert!(error.contains("/it/ answered 500"), "{error}");
    }

    #[test]
    fn dropping_it_ends_it() {
        let begun = Instant::now();
        drop(
            Load::start(
                server(200),
                vec![plan(u32::MAX, Duration::from_secs(1 << 30))],
            )
            .unwrap(),
        );
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
