//! One thread for each JVM asks it again and again: one that hangs keeps no other from being read.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::model::Poll;
use crate::live::{Address, Classes, Client, Reading};

/// Threads that ask JVMs. They end after their current request once this is dropped.
pub(crate) struct Pollers {
    polls: Receiver<Poll>,
    wishes: Vec<Sender<Classes>>,
    threads: Vec<JoinHandle<()>>,
}

impl Pollers {
    /// Asks each JVM at once, and then again `interval` after its last answer.
    ///
    /// # Errors
    /// A thread that the system does not grant.
    pub(crate) fn start(addresses: &[Address], interval: Duration) -> std::io::Result<Self> {
        let (sender, polls) = mpsc::channel();
        let client = Client::new();
        let begun = Instant::now();
        let mut wishes = Vec::with_capacity(addresses.len());
        let mut threads = Vec::with_capacity(addresses.len());
        for (jvm, address) in addresses.iter().enumerate() {
            let (wish, wished) = mpsc::channel();
            let poller = Poller {
                jvm,
                address: address.clone(),
                client: client.clone(),
                begun,
                interval,
                polls: sender.clone(),
                wished,
            };
            let builder = thread::Builder::new().name(format!("poll {jvm}"));
            threads.push(builder.spawn(move || poller.run())?);
            wishes.push(wish);
        }
        Ok(Pollers {
            polls,
            wishes,
            threads,
        })
    }

    /// The next poll that is there within `limit`.
    pub(crate) fn next(&self, limit: Duration) -> Option<Poll> {
        self.polls.recv_timeout(limit).ok()
    }

    /// Has a JVM asked at once, and from now on for these classes.
    pub(crate) fn ask_for(&self, jvm: usize, classes: Classes) {
        if let Some(wish) = self.wishes.get(jvm) {
            // A poller that has ended is told of by `has_failed`.
            let _ = wish.send(classes);
        }
    }

    /// Whether a thread has ended, which only a fault of this command makes it do.
    pub(crate) fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }
}

struct Poller {
    jvm: usize,
    address: Address,
    client: Client,
    begun: Instant,
    interval: Duration,
    polls: Sender<Poll>,
    wished: Receiver<Classes>,
}

impl Poller {
    fn run(self) {
        let mut classes = Classes::Top;
        loop {
            let outcome = Reading::take(&self.client, &self.address, classes);
            let poll = Poll {
                jvm: self.jvm,
                at: self.begun.elapsed(),
                outcome: outcome.map_err(|error| error.to_string()),
            };
            if self.polls.send(poll).is_err() {
                return;
            }
            match self.wished.recv_timeout(self.interval) {
                Ok(wished) => classes = wished,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}
