//! The settings that are compared: no agent, samples, every allocation.

/// The agent that the JVM runs with, if any, by its sampling interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) enum Setting {
    /// No agent.
    Absent,
    /// The agent, a sample in 64 KiB.
    Sampled,
    /// The agent, every allocation.
    Exact,
}

impl Setting {
    /// As the tables have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Setting::Absent => "no agent",
            Setting::Sampled => "64KiB",
            Setting::Exact => "exact",
        }
    }
}
