//! Reads `/proc` of a process, for tests and benchmarks. The command reads it with code of its own, bounded,
//! because there the process chooses what is read.

use std::fs;
use std::io;

/// Reads a file of a process, such as `status`.
///
/// # Errors
/// The process has ended, or the kernel denies access.
pub fn read(process: u32, name: &str) -> io::Result<String> {
    fs::read_to_string(format!("/proc/{process}/{name}"))
}

/// The value of a field of `status`, by its whole name.
#[must_use]
pub fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let mut values = (status.lines()).filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    values.next().map(str::trim)
}

/// An amount of memory in `status`, such as `VmRSS`, in bytes.
#[must_use]
pub fn bytes(status: &str, name: &str) -> Option<u64> {
    let kib = field(status, name)?.strip_suffix(" kB")?;
    kib.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The words of `stat` behind the name, which may hold anything: the state, and numbers.
pub fn behind_name(stat: &str) -> impl Iterator<Item = &str> {
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    behind.split_whitespace()
}

/// The state of a process: `T` for one that was stopped, `Z` for one that has ended and was not reaped.
#[must_use]
pub fn state(process: u32) -> Option<char> {
    behind_name(&read(process, "stat").ok()?)
        .next()?
        .chars()
        .next()
}

/// The threads of a process that live, each by the text of one of its files, such as `comm` and `status`.
///
/// # Panics
/// If the process has ended.
#[must_use]
pub fn threads(process: u32, name: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    let tasks = tasks.expect("the process lives").flatten();
    // One that has ended meanwhile is left out.
    let texts = tasks.filter_map(|task| fs::read_to_string(task.path().join(name)).ok());
    texts.map(|text| text.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status = "VmHWM:\t  2048 kB\nVmRSS:\t    1024 kB\nRssAnon:\t  16 kB\n";
        assert_eq!(bytes(status, "VmRSS"), Some(1 << 20));
        assert_eq!(bytes(status, "RssAnon"), Some(16 << 10));
        assert_eq!(bytes(status, "Rss"), None);
    }

    #[test]
    fn numbers_are_found_behind_any_name() {
        let stat = "12 (a) b (c) S 1 2 3";
        assert_eq!(behind_name(stat).collect::<Vec<_>>(), ["S", "1", "2", "3"]);
        assert_eq!(behind_name("12 java S 1").next(), None);
    }

    #[test]
    fn this_process_runs_with_this_thread() {
        let this = std::process::id();
        assert_eq!(state(this).map(|state| "RS".contains(state)), Some(true));
        assert!(!threads(this, "comm").is_empty());
        assert!(bytes(&read(this, "status").unwrap(), "VmRSS") > Some(0));
    }
}
