//! The names of a place where an account's code was refused.

use std::sync::Arc;

use policy_config::PackagePattern;

#[cfg(test)]
use super::place_counts::PlaceKey;

/// Whether a thread, while a unit of work is on its stack, serves a request or works in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Work {
    /// A job, a task, a thread of its own.
    #[default]
    Background,
    /// It serves a request.
    Request,
}

impl Work {
    /// The word in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Work::Background => "background",
            Work::Request => "request",
        }
    }
}

/// A method, as the policy names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MethodName {
    /// Its class, with dots.
    pub class: Arc<str>,
    /// Its own name.
    pub method: Arc<str>,
}

impl MethodName {
    /// `com.acme.Cleaner#run`.
    pub fn shown(&self) -> String {
        format!("{}#{}", self.class, self.method)
    }

    /// `None` for the unnamed package.
    fn package(&self) -> Option<&str> {
        self.class.rsplit_once('.').map(|(package, _)| package)
    }
}

/// A place by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PlaceName {
    /// The account's method that gets the error.
    pub frame: MethodName,
    /// The account's method with which its own code begins, above the unit of work.
    pub entry: MethodName,
    /// The method with which the unit of work begins; `None` for a scope.
    pub unit: Option<MethodName>,
    /// Whether the thread serves a request or works in the background.
    pub work: Work,
    /// The entry is code that only passes calls on.
    pub passes_on: bool,
    /// The unit is one by the policy alone.
    pub is_named_by_policy: bool,
}

impl PlaceName {
    /// The line of policy that would spare the thread (rule 4). `all`: every place of the account.
    pub(super) fn never_interrupt<'a>(
        &self,
        mut all: impl Iterator<Item = &'a PlaceName>,
    ) -> Option<String> {
        let is_asked_for = self.unit.is_none() || self.is_named_by_policy;
        if self.work == Work::Request || is_asked_for || self.passes_on {
            return None;
        }
        let package = self.entry.package()?;
        let pattern = PackagePattern::new(package).ok()?;
        let is_of_request = all.any(|other| {
            let mut methods = [&other.frame, &other.entry].into_iter();
            other.work == Work::Request
                && methods.any(|method| pattern.matches(method.package().unwrap_or_default()))
        });
        (!is_of_request).then(|| format!("never-interrupt = [\"{pattern}\"]"))
    }

    /// A name for a place that has numbers only.
    #[cfg(test)]
    pub(super) fn numbered(key: PlaceKey) -> PlaceName {
        let name = |number: u64| MethodName {
            class: format!("a.C{number}").into(),
            method: "m".into(),
        };
        PlaceName {
            frame: name(key.frame),
            entry: name(key.entry),
            unit: key.unit.map(name),
            work: if key.is_request {
                Work::Request
            } else {
                Work::Background
            },
            passes_on: false,
            is_named_by_policy: false,
        }
    }
}
