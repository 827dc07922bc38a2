//! The readings of the accounts that the listener publishes; it shares them with the Java API.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::api::notifier::{self, Api};
use crate::exact;
use crate::ground::Ground;
use crate::report::{Requested, SitesReading, Snapshot, Source, Wanted};
use crate::sites;
use crate::snapshots::desk::Desk;
use crate::snapshots::reader::Reader;
use crate::walks::Walks;

/// The listener takes a new reading when the last is older than this. Scrapes within this time share one
/// reading, so that many scrapes cost no more than a few.
const SNAPSHOT_AGE: Duration = Duration::from_millis(200);

/// The same for sites, which change slowly.
const SITES_AGE: Duration = Duration::from_secs(1);

/// The source of the listener's answers.
pub(super) struct Published {
    ground: &'static Ground,
    reader: Reader,
    api: &'static Api,
    desk: &'static Desk,
    walks: &'static Walks,
    /// The last reading of sites, and when it ended.
    sites: Mutex<Option<(Instant, Arc<SitesReading>)>>,
}

impl Published {
    /// The listener's answers from these rooms.
    pub(super) fn new(
        ground: &'static Ground,
        reader: Reader,
        api: &'static Api,
        desk: &'static Desk,
        walks: &'static Walks,
    ) -> Published {
        Published {
            ground,
            reader,
            api,
            desk,
            walks,
            sites: Mutex::default(),
        }
    }
}

impl Source for Published {
    fn snapshot(&self) -> Arc<Snapshot> {
        let reading = self.api.reading_cache.latest_or(SNAPSHOT_AGE, || {
            self.ground.costs.thread_is("http");
            notifier::read(self.api, &self.reader)
        });
        reading.snapshot().clone()
    }

    fn requested(&self, wanted: &Wanted, asked: Instant) -> Requested {
        self.desk.requested(wanted, asked)
    }

    fn sites(&self) -> Arc<SitesReading> {
        let mut last = self.sites.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((ended, reading)) = &*last
            && ended.elapsed() < SITES_AGE
        {
            return reading.clone();
        }
        let reading = Arc::new(sites::reading::read(&self.ground.core));
        self.ground.costs.thread_is("http");
        *last = Some((Instant::now(), reading.clone()));
        reading
    }

    fn remembers(&self, bytes: u64) {
        self.ground.remembered_bytes.store(bytes, Ordering::Relaxed);
    }

    fn walks(&self) -> Vec<u8> {
        self.walks.document()
    }

    fn contexts(&self) -> Vec<u8> {
        exact::contexts_document(self.ground)
    }

    fn instances(&self) -> Vec<u8> {
        let values_allowed = self.ground.policy.in_force().privacy.values;
        self.walks.instances.document(values_allowed)
    }

    fn ready(&self) -> Result<(), String> {
        if let Some(thread) = self.ground.failed_thread() {
            Err(format!(
                "the agent's thread {thread} has failed: nothing is refused and accounts may be wrong until the JVM is started again"
            ))
        } else if self.ground.core.samples_are_taken() {
            Ok(())
        } else {
            Err("no accounts are kept: the JVM gave another agent the sampling capability, or refused it".to_owned())
        }
    }
}
