//! The policy in force, the last good one, and the state of its file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use policy_config::{Policy, Severity};

use crate::events;
use crate::report::{Mode, PolicyStatus};

use super::notices::{Notice, Notices};
use super::watch::{Observation, observe};

/// The generation of the policy that the agent starts with.
const FIRST_GENERATION: u64 = 1;

/// The policy in force and its history in figures.
pub(crate) struct PolicyStore {
    file: Option<PathBuf>,
    /// The file as it was first read: the watching thread reports changes from there.
    first: Observation,
    in_force: ArcSwap<Policy>,
    generation: AtomicU64,
    /// Some file has been accepted.
    accepted: AtomicBool,
    /// The policy to put in force next, and when its file was read.
    incoming: Mutex<Option<(Instant, Arc<Policy>)>>,
    /// When the file of the policy taken last was read; empty once it is in force.
    taken: Mutex<Option<Instant>>,
    status: Mutex<Status>,
    change: Mutex<()>,
}

struct Status {
    last_good: bool,
    last_good_at: f64,
    last_error: Option<String>,
    notices: Notices,
}

impl PolicyStore {
    /// Reads the first policy. A missing or bad file is logged, and the defaults are in force: observe, no
    /// limits.
    pub(crate) fn open(file: Option<PathBuf>) -> PolicyStore {
        let first = file.as_deref().map_or(Observation::Missing, observe);
        let store = PolicyStore {
            file,
            first,
            in_force: ArcSwap::default(),
            generation: AtomicU64::new(FIRST_GENERATION),
            accepted: AtomicBool::new(false),
            incoming: Mutex::new(None),
            taken: Mutex::new(None),
            status: Mutex::new(Status {
                last_good: true,
                last_good_at: now(),
                last_error: None,
                notices: Notices::new(Arc::default(), FIRST_GENERATION, Instant::now()),
            }),
            change: Mutex::new(()),
        };
        if let Some(path) = &store.file {
            let unusable = |why: &str| {
                store.reject(format!(
                    "the policy file {} cannot be read ({why}); the agent observes without limits until it can",
                    path.display()
                ));
            };
            match &store.first {
                Observation::Content(text) => {
                    if let Some(policy) = store.parse(text) {
                        store.status().notices =
                            Notices::new(policy.clone(), FIRST_GENERATION, Instant::now());
                        store.in_force.store(policy);
                    }
                }
                Observation::Missing => unusable("there is no such file"),
                Observation::Unreadable(why) => unusable(why),
            }
        }
        store
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The file as it was first read.
    pub(crate) fn first(&self) -> Observation {
        self.first.clone()
    }

    /// Which policy is in force, for the log.
    pub(crate) fn described(&self) -> String {
        match &self.file {
            None => "no policy file".to_owned(),
            Some(file) if self.status().last_good => format!("policy {}", file.display()),
            Some(_) => "no usable policy file, observing without limits".to_owned(),
        }
    }

    pub(crate) fn in_force(&self) -> Arc<Policy> {
        self.in_force.load_full()
    }

    /// Parses new content of the file and leaves it for [`PolicyStore::take_incoming`] if it is good. True
    /// if there is something to put in force.
    pub(crate) fn offer(&self, text: &str) -> bool {
        let begun = Instant::now();
        let Some(policy) = self.parse(text) else {
            events::policy_rejected(begun.elapsed());
            return false;
        };
        *self.incoming.lock().unwrap_or_else(|e| e.into_inner()) = Some((begun, policy));
        true
    }

    /// The file is now as observed: its content is offered, or the last good policy stays. True if
    /// there is something to put in force.
    pub(crate) fn file_is(&self, observation: Observation) -> bool {
        match observation {
            Observation::Content(text) => return self.offer(&text),
            Observation::Missing => self.reject(
                "the policy file is gone; the last good policy stays in force until it is back"
                    .to_owned(),
            ),
            Observation::Unreadable(why) => self.reject(format!(
                "the policy file cannot be read ({why}); the last good policy stays in force"
            )),
        }
        false
    }

    /// The newest policy that waits to be put in force.
    pub(crate) fn take_incoming(&self) -> Option<Arc<Policy>> {
        let mut incoming = self.incoming.lock().unwrap_or_else(|e| e.into_inner());
        let (begun, policy) = incoming.take()?;
        *self.taken.lock().unwrap_or_else(|e| e.into_inner()) = Some(begun);
        Some(policy)
    }

    /// Held while a policy is put in force and while a reading looks up names and limits, so that no reading
    /// mixes two policies. Never on a thread of the host, except at the start, when no other thread
    /// holds it.
    pub(crate) fn unchanging(&self) -> MutexGuard<'_, ()> {
        self.change.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Makes `policy` the one in force and logs what changes.
    pub(crate) fn enact(&self, policy: Arc<Policy>) {
        let old = self.in_force();
        let differs = !Policy::diff(&old, &policy).is_empty();
        {
            // Under the lock, so that a log line sees both.
            let _status = self.status();
            self.in_force.store(policy);
            self.generation
                .fetch_add(u64::from(differs), Ordering::AcqRel);
        }
        let begun = self.taken.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let Some(begun) = begun {
            events::policy_accepted(begun.elapsed());
        }
        self.log_waiting();
    }

    /// The file could not be used: the last good policy stays. Logged once per reason.
    pub(crate) fn reject(&self, reason: String) {
        {
            let mut status = self.status();
            status.last_good = false;
            if status.last_error.as_ref() == Some(&reason) {
                return;
            }
            status.last_error = Some(reason);
            status.notices.error();
        }
        self.log_waiting();
    }

    /// Logs the lines that wait, within their quotas. Called every few seconds.
    pub(crate) fn log_waiting(&self) {
        let notices = {
            let mut status = self.status();
            let generation = self.generation.load(Ordering::Acquire);
            let Status {
                notices,
                last_error,
                ..
            } = &mut *status;
            notices.take_lines(
                &self.in_force(),
                generation,
                last_error.as_deref(),
                Instant::now(),
            )
        };
        notices.iter().for_each(Notice::write);
    }

    pub(crate) fn published(&self) -> PolicyStatus {
        let status = self.status();
        let policy = self.in_force.load();
        let enforcement = &policy.enforcement;
        PolicyStatus {
            generation: self.generation.load(Ordering::Acquire),
            mode: match enforcement.mode {
                policy_config::Mode::Observe => Mode::Observe,
                policy_config::Mode::Enforce => Mode::Enforce,
            },
            evidence_budget_ratio: enforcement.evidence_budget_percent / 100.0,
            last_reload_successful: status.last_good,
            last_reload_success_timestamp_seconds: status.last_good_at,
            last_error: status.last_error.clone(),
        }
    }

    fn parse(&self, text: &str) -> Option<Arc<Policy>> {
        let parsed = policy_config::parse(text);
        let file = self
            .file
            .as_ref()
            .map_or_else(String::new, |f| f.display().to_string());
        let warnings = parsed
            .diagnostics
            .iter()
            .filter(|d| d.severity == Severity::Warning)
            .map(|warning| warning.render(&file, text));
        let told = self.status().notices.warnings(warnings, Instant::now());
        told.iter().for_each(Notice::write);
        match parsed.policy {
            Some(policy) => {
                self.accepted.store(true, Ordering::Release);
                let mut status = self.status();
                status.last_good = true;
                status.last_good_at = now();
                status.last_error = None;
                Some(Arc::new(policy))
            }
            None => {
                let first = parsed
                    .diagnostics
                    .iter()
                    .find(|d| d.is_error())
                    .map_or_else(|| "not a policy".to_owned(), |d| d.render(&file, text));
                let errors = parsed.diagnostics.iter().filter(|d| d.is_error()).count();
                let more = if errors > 1 {
                    format!(" (and {} more)", errors - 1)
                } else {
                    String::new()
                };
                let stays = if self.accepted.load(Ordering::Acquire) {
                    "the last good policy stays in force"
                } else {
                    "the agent observes without limits until the file is right"
                };
                self.reject(format!(
                    "{first}{more}; {stays}; `heapwarden check` shows all"
                ));
                None
            }
        }
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(|e| e.into_inner())
    }
}

fn now() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[[account]]\nname = \"a\"\nservice = \"/a\"\nlimit = \"1MiB\"\n";

    fn store(text: &str) -> (tempfile::TempDir, PolicyStore) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("p.toml");
        std::fs::write(&file, text).unwrap();
        (folder, PolicyStore::open(Some(file)))
    }

    #[test]
    fn a_bad_reload_keeps_the_last_good_policy_and_says_so() {
        let (_folder, store) = store(GOOD);
        assert!(store.published().last_reload_successful);
        assert!(!store.offer(&GOOD.replace("limit", "limt")));
        assert!(store.take_incoming().is_none());
        let status = store.published();
        assert!(!status.last_reload_successful);
        assert!(status.last_error.unwrap().contains("p.toml:4:1"));
        assert_eq!(store.in_force().accounts.len(), 1);
        assert!(store.offer(GOOD));
        assert!(store.published().last_reload_successful);
    }

    #[test]
    fn a_reload_is_timed_once_it_is_in_force_or_rejected() {
        let recorder = crate::report::EventRecorder::default();
        let count = |outcome: &str| {
            let name = "heapwarden_policy_reload_duration_seconds_count";
            let line = format!("{name}{{outcome=\"{outcome}\"}} ");
            let text = recorder.render();
            let value = text.lines().find_map(|found| found.strip_prefix(&line));
            value.map(str::to_owned)
        };
        recorder.run(|| {
            let (_folder, store) = store(GOOD);
            store.enact(store.in_force());
            assert_eq!(
                count("accepted").as_deref(),
                Some("0"),
                "the first is no reload"
            );
            store.offer(&GOOD.replace("1MiB", "2MiB"));
            assert_eq!(count("accepted").as_deref(), Some("0"), "not yet in force");
            store.enact(store.take_incoming().unwrap());
            assert_eq!(count("accepted").as_deref(), Some("1"));
            store.offer(&GOOD.replace("limit", "limt"));
            assert_eq!(count("rejected").as_deref(), Some("1"));
        });
        assert_eq!(count("accepted").as_deref(), Some("1"));
    }

    #[test]
    fn a_missing_first_file_observes() {
        let store = PolicyStore::open(Some("/nowhere/p.toml".into()));
        assert!(!store.published().last_reload_successful);
        assert_eq!(*store.in_force(), Policy::default());
    }

    #[test]
    fn the_generation_counts_policies_that_differ() {
        let (_folder, store) = store(GOOD);
        assert_eq!(store.published().generation, 1);
        store.offer(GOOD);
        store.enact(store.take_incoming().unwrap());
        assert_eq!(store.published().generation, 1);
        store.offer(&GOOD.replace("1MiB", "2MiB"));
        store.enact(store.take_incoming().unwrap());
        assert_eq!(store.published().generation, 2);
    }
}
