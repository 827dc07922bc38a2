//! Checks that are made before the JVM is asked to load the agent.

use crate::process::{ProcessInfo, printable};

/// Oldest JDK that the agent works in.
const OLDEST_JDK: u32 = 17;

/// Who runs this command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Effective user id.
    pub(crate) user: u32,
    /// Effective group id.
    pub(crate) group: u32,
}

impl Caller {
    /// Of this process.
    pub(crate) fn own() -> Caller {
        Caller {
            user: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
        }
    }

    fn is_root(self) -> bool {
        self.user == 0
    }
}

/// Why the agent cannot be attached, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CannotAttach {
    /// A zombie.
    #[error("it has ended (it is a zombie)")]
    Ended,
    /// SIGSTOP, or a debugger.
    #[error(
        "it is stopped and cannot answer; resume it (kill -CONT {pid}, or end the debugger) and try again"
    )]
    Stopped { pid: u32 },
    /// No `libjvm.so`.
    #[error(
        "it is no JVM: libjvm.so is not among its mapped files. Nothing was sent to it. \
         Give the process id that jps or pgrep java shows"
    )]
    NoJvm,
    /// The agent is already loaded.
    #[error(
        "Heapwarden is loaded in it already ({library}). A JVM loads it only once; the agent reads a changed policy file by itself"
    )]
    Loaded { library: String },
    /// OpenJ9.
    #[error(
        "its JVM is OpenJ9; Heapwarden needs HotSpot (Temurin, Corretto, Zulu, Red Hat and Oracle ship it)"
    )]
    OpenJ9,
    /// Too old.
    #[error("it is JDK {version}; Heapwarden needs JDK {OLDEST_JDK} or later")]
    OldJdk { version: String },
    /// HotSpot accepts commands from its own user and group, and from root.
    #[error(
        "it runs as user {user}, group {group}, and you are user {own_user}, group {own_group}: HotSpot accepts commands \
         from its own user and group, or from root. Run: sudo -u '#{user}' -g '#{group}' heapwarden attach {pid} …"
    )]
    OtherUser {
        pid: u32,
        user: u32,
        group: u32,
        own_user: u32,
        own_group: u32,
    },
    /// `-XX:+DisableAttachMechanism`
    #[error(
        "it was started with -XX:+DisableAttachMechanism. Start it without that flag, \
         or better with -agentpath:…/libheapwarden.so"
    )]
    AttachDisabled,
    /// `-XX:-EnableDynamicAgentLoading`
    #[error(
        "it was started with -XX:-EnableDynamicAgentLoading, so it loads no agent while it runs. \
         Start it without that flag, or better with -agentpath:…/libheapwarden.so"
    )]
    LoadingDisabled,
    /// `HEAPWARDEN_ENABLED=false`
    #[error(
        "HEAPWARDEN_ENABLED={value} in its environment disables the agent; give --option enabled=true to enable it"
    )]
    Disabled { value: String },
}

/// Why the JVM cannot be attached to, if it cannot. `enabled` says whether `enabled=true` is among the
/// options.
pub(crate) fn check(info: &ProcessInfo, caller: Caller, enabled: bool) -> Option<CannotAttach> {
    let status = &info.status;
    if matches!(status.state, 'Z' | 'X' | 'x') {
        return Some(CannotAttach::Ended);
    }
    if !info.is_jvm() {
        return Some(CannotAttach::NoJvm);
    }
    if let Some(library) = info.files.libheapwarden() {
        let library = printable(library);
        return Some(CannotAttach::Loaded { library });
    }
    if info.is_openj9() {
        return Some(CannotAttach::OpenJ9);
    }
    if let (Some(release), Some(..OLDEST_JDK)) = (&info.release, info.feature()) {
        let version = printable(&release.version);
        return Some(CannotAttach::OldJdk { version });
    }
    if let Some(reason) = check_for_commands(info, caller) {
        return Some(reason);
    }
    let value = info.environment.enabled.as_deref();
    if let Some(value @ "false") = value.filter(|_| !enabled) {
        let value = value.to_owned();
        return Some(CannotAttach::Disabled { value });
    }
    None
}

/// Why commands cannot be sent to the JVM through the attach protocol, if they cannot.
pub(crate) fn check_for_commands(info: &ProcessInfo, caller: Caller) -> Option<CannotAttach> {
    let status = &info.status;
    if matches!(status.state, 'Z' | 'X' | 'x') {
        return Some(CannotAttach::Ended);
    }
    if !info.is_jvm() {
        return Some(CannotAttach::NoJvm);
    }
    let is_same = (caller.user, caller.group) == (status.user, status.group);
    if !is_same && !caller.is_root() {
        return Some(CannotAttach::OtherUser {
            pid: info.pid,
            user: status.user,
            group: status.group,
            own_user: caller.user,
            own_group: caller.group,
        });
    }
    if !status.can_run() {
        return Some(CannotAttach::Stopped { pid: info.pid });
    }
    if info.arguments.flag("DisableAttachMechanism") == Some(true) {
        return Some(CannotAttach::AttachDisabled);
    }
    if info.arguments.flag("EnableDynamicAgentLoading") == Some(false) {
        return Some(CannotAttach::LoadingDisabled);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Arguments, Environment, MappedFiles, Release, Status};

    const JAVA: Caller = Caller {
        user: 1000,
        group: 1000,
    };

    fn mapped(path: &str) -> String {
        format!("7f00-7f01 r-xp 00000000 fe:00 1 {path}\n")
    }

    fn jvm() -> ProcessInfo {
        ProcessInfo {
            pid: 7,
            status: Status::parse(
                "Tgid:\t7\nState:\tS (sleeping)\nUid:\t1000\t1000\nGid:\t1000\t1000\n",
            ),
            files: MappedFiles::parse(&mapped("/opt/java/lib/server/libjvm.so")),
            release: Some(Release::parse("JAVA_VERSION=\"21.0.1\"")),
            ..ProcessInfo::default()
        }
    }

    fn with_flag(flag: &str) -> ProcessInfo {
        ProcessInfo {
            arguments: Arguments::parse(format!("java\0{flag}\0Main").as_bytes(), b""),
            ..jvm()
        }
    }

    #[test]
    fn a_hotspot_of_the_same_user_has_none_and_root_may_attach_to_all() {
        assert_eq!(check(&jvm(), JAVA, false), None);
        let root = Caller { user: 0, group: 0 };
        assert_eq!(check(&jvm(), root, false), None);
    }

    #[test]
    fn another_user_or_group_is_told_what_to_run() {
        for caller in [Caller { user: 1001, ..JAVA }, Caller { group: 5, ..JAVA }] {
            let found = check(&jvm(), caller, false).unwrap().to_string();
            assert!(found.contains("sudo -u '#1000' -g '#1000'"), "{found}");
        }
    }

    #[test]
    fn what_is_no_jvm_is_left_alone() {
        let info = ProcessInfo {
            files: MappedFiles::parse(&mapped("/usr/bin/sleep")),
            ..jvm()
        };
        assert_eq!(check(&info, JAVA, false), Some(CannotAttach::NoJvm));
    }

    #[test]
    fn the_wrong_jvm_is_named() {
        let info = ProcessInfo {
            release: Some(Release::parse("JAVA_VERSION=\"1.8.0_392\"")),
            ..jvm()
        };
        let found = check(&info, JAVA, false).unwrap();
        assert!(found.to_string().contains("JDK 1.8.0_392"), "{found}");
        let files = mapped("/opt/j9/lib/server/libjvm.so") + &mapped("/opt/j9/lib/libj9vm29.so");
        let info = ProcessInfo {
            files: MappedFiles::parse(&files),
            ..jvm()
        };
        assert_eq!(check(&info, JAVA, false), Some(CannotAttach::OpenJ9));
        let unknown = ProcessInfo {
            release: None,
            ..jvm()
        };
        assert_eq!(
            check(&unknown, JAVA, false),
            None,
            "the agent itself refuses what is too old"
        );
    }

    #[test]
    fn loaded_once_is_enough() {
        let files =
            mapped("/opt/java/lib/server/libjvm.so") + &mapped("/o/libheapwarden.so (deleted)");
        let info = ProcessInfo {
            files: MappedFiles::parse(&files),
            ..jvm()
        };
        let found = check(&info, JAVA, false);
        assert!(
            matches!(found, Some(CannotAttach::Loaded { library }) if library == "/o/libheapwarden.so")
        );
    }

    #[test]
    fn flags_and_variables_that_forbid_it_are_named() {
        let found = |info: &ProcessInfo| check(info, JAVA, false);
        assert_eq!(
            found(&with_flag("-XX:+DisableAttachMechanism")),
            Some(CannotAttach::AttachDisabled)
        );
        assert_eq!(
            found(&with_flag("-XX:-EnableDynamicAgentLoading")),
            Some(CannotAttach::LoadingDisabled)
        );
        assert_eq!(found(&with_flag("-XX:-DisableAttachMechanism")), None);
        let info = ProcessInfo {
            environment: Environment {
                enabled: Some("false".to_owned()),
                ..Environment::default()
            },
            ..jvm()
        };
        assert!(matches!(found(&info), Some(CannotAttach::Disabled { .. })));
        assert_eq!(check(&info, JAVA, true), None);
    }

    #[test]
    fn what_cannot_answer_is_said() {
        let state = |state: &str| {
            let text = format!("Tgid:\t7\nState:\t{state}\nUid:\t1000\t1000\nGid:\t1000\t1000\n");
            check(
                &ProcessInfo {
                    status: Status::parse(&text),
                    ..jvm()
                },
                JAVA,
                false,
            )
        };
        assert_eq!(state("T (stopped)"), Some(CannotAttach::Stopped { pid: 7 }));
        assert_eq!(state("Z (zombie)"), Some(CannotAttach::Ended));
    }
}
