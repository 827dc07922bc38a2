//! Directory events, if the system has them.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::links;
use super::signal::{Signal, Touch};

/// The watches of the directories that decide about one path.
pub(super) struct Sources {
    /// `None` if the system has no events; then only the poll remains.
    watcher: Option<RecommendedWatcher>,
    /// By directory, with its identity: another directory may get the same name.
    watched: HashMap<PathBuf, Identity>,
}

/// Device and inode.
type Identity = (u64, u64);

impl Sources {
    /// Events, if the system has them.
    pub(super) fn events(signal: &Arc<Signal>) -> Self {
        let signal = Arc::clone(signal);
        let watcher = notify::recommended_watcher(move |event| on_event(&signal, event));
        Sources {
            watcher: watcher.ok(),
            watched: HashMap::new(),
        }
    }

    /// No events, as on a system that refuses them.
    #[cfg(test)]
    pub(super) fn none(_: &Arc<Signal>) -> Self {
        Sources {
            watcher: None,
            watched: HashMap::new(),
        }
    }

    /// Watches the directories that decide about `path` now, and no others.
    ///
    /// A directory whose watch the system refuses is not tried again before it is replaced: the system's
    /// limits rarely change within hours.
    pub(super) fn follow(&mut self, path: &Path, signal: &Signal) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        let trail = links::follow(path);
        let current: HashMap<PathBuf, Identity> = trail
            .directories
            .into_iter()
            .filter_map(|directory| {
                let metadata = fs::metadata(&directory).ok()?;
                Some((directory, (metadata.dev(), metadata.ino())))
            })
            .collect();
        let relevant = trail.entries.into_iter().chain(current.keys().cloned());
        signal.set_relevant(relevant.collect());
        if current == self.watched {
            return;
        }
        self.watched.retain(|directory, identity| {
            let stays = current.get(directory) == Some(identity);
            if !stays {
                // It fails if the directory is gone, and its watch with it.
                let _ = watcher.unwatch(directory);
            }
            stays
        });
        for (directory, identity) in current {
            if self.watched.insert(directory.clone(), identity).is_none() {
                let _ = watcher.watch(&directory, RecursiveMode::NonRecursive);
            }
        }
    }
}

/// Runs on the thread of the event source.
fn on_event(signal: &Signal, event: notify::Result<Event>) {
    match event {
        Ok(event) if event.need_rescan() => signal.lost_track(),
        Ok(event) => {
            if let Some(how) = touch(&event) {
                signal.touched(&event.paths, how);
            }
        }
        Err(_) => signal.lost_track(),
    }
}

/// Returns the meaning of an event; `None` for our own reads of the file, which are events too and must not cause
/// another read.
fn touch(event: &Event) -> Option<Touch> {
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(Touch::Done),
        EventKind::Access(_) => None,
        EventKind::Modify(ModifyKind::Data(_)) => Some(Touch::Begun),
        EventKind::Create(_) if event.paths.iter().any(|path| is_new_file(path)) => {
            Some(Touch::Begun)
        }
        EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => {
            Some(Touch::Done)
        }
        _ => Some(Touch::Aside),
    }
}

/// Whether the program that made this entry will still write to it. Links are complete when made.
fn is_new_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.nlink() == 1)
}
