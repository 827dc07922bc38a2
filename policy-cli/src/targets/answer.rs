//! The answer of a JVM to a command, or why there is none.

use super::Target;
use heapwarden_client::live::{Accounts, Contexts, Jvm, Leaks, Sites};

/// An agent's document that a command asks for.
pub(crate) trait Document {
    /// The process that it is about, if it says so.
    fn jvm(&self) -> Option<&Jvm> {
        None
    }
}

impl Document for Accounts {
    fn jvm(&self) -> Option<&Jvm> {
        Some(&self.jvm)
    }
}

impl Document for Leaks {}

impl Document for Sites {}

impl Document for Contexts {}

/// The answer of one JVM.
#[derive(Debug)]
pub(crate) struct Answer<D> {
    /// The agent's JSON, parsed.
    pub(crate) document: D,
    /// The agent's JSON, unchanged.
    pub(crate) json: Vec<u8>,
    /// Why the agent keeps no accounts, if it says so; as it came.
    pub(crate) not_ready: Option<String>,
}

/// The result of reading one JVM.
#[derive(Debug)]
pub(crate) struct Asked<D> {
    /// Which.
    pub(crate) target: Target,
    /// Or why it cannot be read.
    pub(crate) answer: Result<Answer<D>, String>,
}

impl<D: Document> Asked<D> {
    /// Returns the text that stands for the JVM in the output: its address, else `process` and its id.
    pub(crate) fn name(&self) -> String {
        match &self.target.address {
            Some(address) => address.to_string(),
            None => format!("process {}", self.pid().unwrap_or_default()),
        }
    }

    /// Its process id: as this machine sees it, else as the agent says.
    pub(crate) fn pid(&self) -> Option<u64> {
        Some(self.jvm().pid).filter(|&pid| pid > 0)
    }

    /// The process: its id as this machine sees it, its name as the agent says; each as the other says if it
    /// is not known.
    pub(crate) fn jvm(&self) -> Jvm {
        let answer = self.answer.as_ref().ok();
        let mut jvm = (answer.and_then(|answer| answer.document.jvm()))
            .cloned()
            .unwrap_or_default();
        if let Some(local) = &self.target.local {
            jvm.pid = local.pid.into();
            if jvm.name.is_empty() {
                jvm.name = local.program.clone().into();
            }
            if jvm.version.is_empty() {
                jvm.version = local.version.clone().into();
            }
        }
        jvm
    }
}

#[cfg(test)]
impl<D: Document> Asked<D> {
    /// At this address, with this answer.
    pub(crate) fn at(address: &str, answer: Result<Answer<D>, String>) -> Asked<D> {
        Asked {
            target: Target::at(&address.parse().unwrap()),
            answer,
        }
    }
}

#[cfg(test)]
impl<D: serde::de::DeserializeOwned> Answer<D> {
    pub(crate) fn of(text: &str, not_ready: Option<&str>) -> Answer<D> {
        Answer {
            document: serde_json::from_str(text).unwrap(),
            json: text.into(),
            not_ready: not_ready.map(str::to_owned),
        }
    }
}
