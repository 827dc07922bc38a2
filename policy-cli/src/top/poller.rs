//! Polls each JVM on its own thread, so that one that hangs does not delay the others.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::model::{Poll, Wish};
use heapwarden_client::live::{Address, Classes, Client, Reading};

/// The polling threads. When this is dropped, they end after their current request.
pub(crate) struct Pollers {
    polls: Receiver<Poll>,
    wishes: Vec<Sender<Wish>>,
    threads: Vec<JoinHandle<()>>,
}

impl Pollers {
    /// Polls each JVM immediately, and then `interval` after each answer.
    ///
    /// # Errors
    /// A thread could not be started.
    pub(crate) fn start(addresses: &[Address], interval: Duration) -> std::io::Result<Self> {
        let (sender, polls) = mpsc::channel();
        let client = Client::new();
        let begun = Instant::now();
        let mut wishes = Vec::with_capacity(addresses.len());
        let mut threads = Vec::with_capacity(addresses.len());
        for (jvm, address) in addresses.iter().enumerate() {
            let (request, requests) = mpsc::channel();
            let poller = Poller {
                jvm,
                address: address.clone(),
                client: client.clone(),
                begun,
                interval,
                polls: sender.clone(),
                requests,
            };
            let builder = thread::Builder::new().name(format!("poll {jvm}"));
            threads.push(builder.spawn(move || poller.run())?);
            wishes.push(request);
        }
        Ok(Pollers {
            polls,
            wishes,
            threads,
        })
    }

    /// The next poll, if one arrives within `limit`.
    pub(crate) fn next(&self, limit: Duration) -> Option<Poll> {
        self.polls.recv_timeout(limit).ok()
    }

    /// Polls a JVM immediately, and from now on for what is wished.
    pub(crate) fn ask_for(&self, jvm: usize, wish: Wish) {
        if let Some(request) = self.wishes.get(jvm) {
            // `has_failed` reports a poller that has ended.
            let _ = request.send(wish);
        }
    }

    /// Whether a thread has ended, which is a bug of this command.
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
    requests: Receiver<Wish>,
}

impl Poller {
    fn run(self) {
        let mut wish = Wish::default();
        loop {
            let classes = match wish.all_classes {
                true => Classes::All,
                false => Classes::Top,
            };
            let mut outcome = Reading::take(&self.client, &self.address, classes);
            if let (Ok(reading), true) = (&mut outcome, wish.leaks) {
                // An older agent does not know them.
                let leaks = self.client.leaks(&self.address);
                reading.leaks = leaks.ok().map(|(leaks, _)| leaks);
            }
            let poll = Poll {
                jvm: self.jvm,
                at: self.begun.elapsed(),
                outcome: outcome.map_err(|error| error.to_string()),
            };
            if self.polls.send(poll).is_err() {
                return;
            }
            match self.requests.recv_timeout(self.interval) {
                Ok(requested) => wish = requested,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}
