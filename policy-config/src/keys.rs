//! The keys that each table of the file may have.

/// The tables themselves.
pub(crate) const ROOT: &[&str] = &[
    "agent",
    "sampling",
    "enforcement",
    "leaks",
    "snapshots",
    "privacy",
    "exact",
    "account",
    "leak",
];
/// `[agent]`
pub(crate) const AGENT: &[&str] = &["listen", "listen-strict"];
/// `[sampling]`
pub(crate) const SAMPLING: &[&str] = &[
    "interval",
    "principals",
    "max-tracked",
    "cpu-budget",
    "thin",
];
/// `[[sampling.thin]]`
pub(crate) const THIN: &[&str] = &["class", "keep"];
/// `[snapshots]`; `keep` is there as well.
pub(crate) const SNAPSHOTS: &[&str] = &["directory", "every", "keep", "at-exit"];
/// `[exact]`
pub(crate) const EXACT: &[&str] = &["accounts", "contexts", "bytecodes"];
/// `[enforcement]`
pub(crate) const ENFORCEMENT: &[&str] = &["mode", "when", "evidence-budget", "mask", "reserve"];
/// `[leaks]`
pub(crate) const LEAKS: &[&str] = &["sites", "paths", "paths-per-day"];
/// `[privacy]`
pub(crate) const PRIVACY: &[&str] = &["values"];
/// `[[account]]`
pub(crate) const ACCOUNT: &[&str] = &[
    "name",
    "service",
    "packages",
    "scope",
    "charge",
    "soft-limit",
    "limit",
    "direct-limit",
    "throw",
    "door",
    "refuse-with",
    "status",
    "admit",
    "priority",
    "tasks",
    "interrupt-through",
    "never-interrupt",
    "work",
];
/// `[[leak]]`
pub(crate) const LEAK: &[&str] = &["account", "class"];

/// The header that `key` belongs under, for the hint about a misplaced key.
pub(crate) fn home_of(key: &str) -> Option<&'static str> {
    [
        ("[agent]", AGENT),
        ("[sampling]", SAMPLING),
        ("[enforcement]", ENFORCEMENT),
        ("[snapshots]", SNAPSHOTS),
        ("[exact]", EXACT),
        ("[leaks]", LEAKS),
        ("[privacy]", PRIVACY),
        ("[[account]]", ACCOUNT),
        ("[[leak]]", LEAK),
    ]
    .into_iter()
    .find_map(|(header, keys)| keys.contains(&key).then_some(header))
}
