//! Receives the [`crate::events`] of the agent's threads and renders them.
//!
//! It is a Prometheus recorder of the crate `metrics-exporter-prometheus` that belongs to one
//! agent. It starts no thread and is never installed as the process-wide recorder.
//!
//! That crate keeps each recorded duration until it is rendered or drained. So after each
//! [`MAX_UNDRAINED`] durations the recording thread drains them into their buckets, and memory stays
//! bounded if nobody scrapes.
//!
//! Recording, draining and rendering take turns under one lock. The crate's own list of durations (version
//! 0.20 of `metrics-util`) loses some that are recorded while another thread drains: a new block is in
//! the list before the full ones are linked behind it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, SharedString, Unit};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::events;

/// Upper bounds of the buckets of every histogram, in seconds.
pub(crate) const BUCKETS: [f64; 10] = [0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 60.0];
/// Durations that are kept before they are drained; 16 bytes each.
const MAX_UNDRAINED: usize = 4096;

/// The recorder of one agent. Its first use takes a few milliseconds (200 at the most), in which the crate
/// calibrates its clock. So only the agent's threads use it.
#[derive(Default)]
pub struct EventRecorder(OnceLock<Recorder>);

impl EventRecorder {
    /// Does `work` with this as the recorder of the calling thread, which must be the agent's own.
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> R {
        metrics::with_local_recorder(self.get(), work)
    }

    /// The events recorded so far, in Prometheus text format: each family without HELP, followed by
    /// an empty line, in no particular order. Every series exists from the start.
    pub(crate) fn render(&self) -> String {
        let drain = &self.get().drain;
        let _turn = drain.turn();
        drain.handle.render()
    }

    fn get(&self) -> &Recorder {
        self.0.get_or_init(Recorder::new)
    }
}

impl fmt::Debug for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRecorder").finish_non_exhaustive()
    }
}

struct Recorder {
    inner: PrometheusRecorder,
    drain: Arc<Drain>,
}

impl Recorder {
    fn new() -> Recorder {
        let builder = PrometheusBuilder::new().set_buckets(&BUCKETS);
        let inner = builder.expect("there are buckets").build_recorder();
        let drain = Arc::new(Drain {
            handle: inner.handle(),
            undrained: Mutex::new(0),
        });
        let recorder = Recorder { inner, drain };
        metrics::with_local_recorder(&recorder, || {
            for family in events::HISTOGRAMS {
                for value in family.values {
                    let _ = family.histogram(value);
                }
            }
            for family in events::COUNTERS {
                for value in family.values {
                    let _ = family.counter(value);
                }
            }
        });
        recorder
    }
}

impl metrics::Recorder for Recorder {
    // HELP is written from the catalogue.
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        self.inner.register_counter(key, metadata)
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        self.inner.register_gauge(key, metadata)
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Drained {
            inner: self.inner.register_histogram(key, metadata),
            drain: self.drain.clone(),
        }))
    }
}

/// Drains the durations of all histograms into their buckets.
struct Drain {
    handle: PrometheusHandle,
    undrained: Mutex<usize>,
}

impl Drain {
    /// Held for a few nanoseconds by who records, for a millisecond by who drains.
    fn turn(&self) -> MutexGuard<'_, usize> {
        self.undrained
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A histogram that drains itself when it is full.
struct Drained {
    inner: Histogram,
    drain: Arc<Drain>,
}

impl HistogramFn for Drained {
    fn record(&self, seconds: f64) {
        let mut undrained = self.drain.turn();
        self.inner.record(seconds);
        *undrained += 1;
        if *undrained == MAX_UNDRAINED {
            *undrained = 0;
            self.drain.handle.run_upkeep();
        }
    }
}

#[cfg(test)]
mod tests;
