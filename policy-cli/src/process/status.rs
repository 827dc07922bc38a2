//! `/proc/PID/status`: ids and names of a process, and the signals that it catches.

/// The number of SIGQUIT on every Linux that HotSpot runs on.
const SIGQUIT: u32 = 3;

/// The fields of `/proc/PID/status`; absent ones are empty or zero.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Status {
    /// The first 15 bytes of the command's name, as the process itself has set it.
    pub(crate) name: String,
    /// One letter: `S` sleeps, `R` runs, `T` is stopped, `Z` has ended.
    pub(crate) state: char,
    /// The process that the id belongs to: another number if the id is a thread's.
    pub(crate) process: u32,
    /// Effective user id.
    pub(crate) user: u32,
    /// Effective group id.
    pub(crate) group: u32,
    /// Supplementary groups.
    pub(crate) groups: Vec<u32>,
    /// The id in each PID namespace, the outermost first.
    pub(crate) namespace_ids: Vec<u32>,
    /// The signals that it catches: bit n - 1 for signal n.
    pub(crate) caught_signals: u64,
    /// The process that traces it; 0 for none.
    pub(crate) tracer: u32,
}

impl Status {
    /// Reads the text; lines that are not understood are left out.
    pub(crate) fn parse(text: &str) -> Status {
        let mut status = Status::default();
        for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            let number = |at: usize| {
                let word = value.split_whitespace().nth(at);
                word.and_then(|word| word.parse().ok())
            };
            match key {
                "Name" => status.name = value.to_owned(),
                "State" => status.state = value.chars().next().unwrap_or_default(),
                "Tgid" => status.process = number(0).unwrap_or_default(),
                "TracerPid" => status.tracer = number(0).unwrap_or_default(),
                // Real, effective, saved, file system: HotSpot compares the effective one.
                "Uid" => status.user = number(1).unwrap_or(u32::MAX),
                "Gid" => status.group = number(1).unwrap_or(u32::MAX),
                "Groups" => status.groups = numbers(value),
                "NSpid" => status.namespace_ids = numbers(value),
                "SigCgt" => {
                    status.caught_signals = u64::from_str_radix(value, 16).unwrap_or_default();
                }
                _ => {}
            }
        }
        status
    }

    /// Whether SIGQUIT runs a handler; if not, the signal ends the process.
    pub(crate) fn catches_quit(&self) -> bool {
        self.caught_signals & (1 << (SIGQUIT - 1)) != 0
    }

    /// The id that the process itself sees.
    pub(crate) fn own_id(&self) -> u32 {
        self.namespace_ids.last().copied().unwrap_or(self.process)
    }

    /// Whether it can answer: it is neither stopped nor ended.
    pub(crate) fn can_run(&self) -> bool {
        !matches!(self.state, 'T' | 't' | 'Z' | 'X' | 'x')
    }
}

fn numbers(text: &str) -> Vec<u32> {
    text.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `java` of OpenJDK 17 in a container, shortened.
    const JAVA: &str = "Name:\tjava\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t14261\nNgid:\t0\n\
        Pid:\t14261\nPPid:\t1\nTracerPid:\t0\nUid:\t1000\t1001\t1000\t1000\nGid:\t1000\t1002\t1000\t1000\n\
        FDSize:\t256\nGroups:\t4 27 1000 \nNSpid:\t14261\t7\nSigQ:\t0/96365\n\
        SigIgn:\t0000000000000002\nSigCgt:\t2000000101005ccd\n";

    #[test]
    fn a_java_process_is_read() {
        let status = Status::parse(JAVA);
        assert_eq!((status.name.as_str(), status.state), ("java", 'S'));
        assert_eq!((status.user, status.group), (1001, 1002));
        assert_eq!(status.groups, [4, 27, 1000]);
        assert_eq!((status.process, status.own_id()), (14261, 7));
        assert!(status.catches_quit() && status.can_run());
    }

    #[test]
    fn a_process_without_handlers_does_not_catch_quit() {
        let sleep = "Name:\tsleep\nState:\tS (sleeping)\nTgid:\t9\nSigCgt:\t0000000000000000\n";
        let status = Status::parse(sleep);
        assert!(!status.catches_quit());
        assert_eq!(status.own_id(), 9, "kernels before 4.1 have no NSpid");
        // All but SIGQUIT.
        let status = Status::parse("SigCgt:\tfffffffffffffffb\n");
        assert!(!status.catches_quit());
    }

    #[test]
    fn nonsense_is_nothing_rather_than_a_panic() {
        let status = Status::parse("Uid:\tx y\nSigCgt:\t-1\nNSpid:\nTgid:\t99999999999\n:\n\u{0}");
        assert_eq!(status.user, u32::MAX, "nobody's");
        assert_eq!((status.caught_signals, status.own_id()), (0, 0));
        assert!(!Status::parse("State:\tT (stopped)\n").can_run());
    }
}
