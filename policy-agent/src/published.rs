//! What the listener sees of the agent: readings, at most a moment old.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::reading;
use crate::report::{Snapshot, Source};

/// A snapshot is taken again when the last is older than this: one reading serves all who
/// ask within it, so that scrapes cannot be piled up.
const SNAPSHOT_AGE: Duration = Duration::from_millis(200);

/// What the listener sees of the agent: readings.
pub(crate) struct Published {
    agent: &'static Agent,
    last: Mutex<Option<(Instant, Arc<Snapshot>)>>,
}

impl Published {
    pub(crate) fn new(agent: &'static Agent) -> Published {
        Published {
            agent,
            last: Mutex::new(None),
        }
    }
}

impl Source for Published {
    fn snapshot(&self) -> Arc<Snapshot> {
        let mut last = self.last.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((taken, snapshot)) = last.as_ref()
            && taken.elapsed() < SNAPSHOT_AGE
        {
            return snapshot.clone();
        }
        self.agent.costs.thread_is("http");
        let snapshot = Arc::new(reading::read(self.agent));
        *last = Some((Instant::now(), snapshot.clone()));
        snapshot
    }

    fn ready(&self) -> Result<(), String> {
        if let Some(thread) = self.agent.lost() {
            Err(format!(
                "the agent's thread {thread} has failed: nothing is refused and accounts may be wrong until the JVM is started again"
            ))
        } else if self.agent.samples_are_taken() {
            Ok(())
        } else {
            Err("no accounts are kept: the JVM gave another agent the sampling capability, or refused it".to_owned())
        }
    }
}
