//! The setting of exact accounts: which one the policy wants, and which one loaded classes have code for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use policy_config::Exact;

use crate::wakeup::Wakeup;

/// See the module.
#[derive(Default)]
pub(crate) struct Setting {
    /// The setting that the policy in force wants.
    wanted: Mutex<Arc<Exact>>,
    /// The setting that loaded classes have code for.
    applied: Mutex<Arc<Exact>>,
    /// The thread was started.
    begun: AtomicBool,
    /// Classes are given counters whenever their code is loaded.
    inserting: AtomicBool,
    /// Ends the thread's rest.
    pub(crate) wakeup: Wakeup,
}

impl Setting {
    /// The setting of this process, static: natives and the hook are given no state. Any thread.
    pub(crate) fn get() -> &'static Setting {
        static SETTING: LazyLock<Setting> = LazyLock::new(Setting::default);
        &SETTING
    }

    /// Another setting is wanted. Returns whether the thread is to begin: at the first that wants anything.
    pub(super) fn want(&self, wanted: Arc<Exact>) -> bool {
        let begins = wanted.is_wanted();
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
        begins && !self.begun.swap(true, Ordering::AcqRel)
    }

    /// Whether loaded classes are given code at present. Any thread that loads classes: two loads.
    pub(super) fn is_inserting(&self) -> bool {
        self.inserting.load(Ordering::Acquire)
    }

    /// Says whether they are given code from now on.
    pub(super) fn insert(&self, on: bool) {
        self.inserting.store(on, Ordering::Release);
    }

    /// Returns the setting of the policy. Any thread that loads classes: the lock is held for a copy of a pointer.
    pub(super) fn wanted(&self) -> Arc<Exact> {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.clone()
    }

    /// Returns the setting that loaded classes have code for. The thread that switches, at the start or later.
    pub(super) fn applied(&self) -> Arc<Exact> {
        let applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        applied.clone()
    }

    /// Loaded classes have code for this.
    pub(super) fn was_applied(&self, exact: Arc<Exact>) {
        *self.applied.lock().unwrap_or_else(PoisonError::into_inner) = exact;
    }
}
