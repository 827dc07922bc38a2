//! What makes attaching impossible, found before anything is done to the JVM.

use crate::process::{Facts, printable};

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

/// Why it cannot be attached to, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Obstacle {
    /// A zombie.
    #[error("it has ended, and only waits for its parent to notice")]
    Ended,
    /// SIGSTOP, or a debugger.
    #[error(
        "it is stopped and cannot answer; let it run (kill -CONT {pid}, or end the debugger) and try again"
    )]
    Stopped { pid: u32 },
    /// No `libjvm.so`.
    #[error(
        "it is no JVM: libjvm.so is not among its mapped files. Nothing was sent to it. \
         Name the process that jps, or pgrep java, shows"
    )]
    NoJvm,
    /// The agent is there.
    #[error(
        "Heapwarden is loaded in it already ({library}). A JVM takes it once; a changed policy file is read without attaching again"
    )]
    Loaded { library: String },
    /// OpenJ9.
    #[error(
        "its JVM is OpenJ9; Heapwarden needs HotSpot, which is what Temurin, Corretto, Zulu, Red Hat and Oracle ship"
    )]
    OpenJ9,
    /// Too old.
    #[error("it is JDK {version}; Heapwarden needs JDK {OLDEST_JDK} or later")]
    OldJdk { version: String },
    /// HotSpot takes orders of its own user and of root.
    #[error(
        "it runs as user {user}, group {group}, and you are user {own_user}, group {own_group}: HotSpot takes orders \
         of its own user and group, or of root. Run: sudo -u '#{user}' -g '#{group}' heapwarden attach {pid} …"
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
        "it was started with -XX:-EnableDynamicAgentLoading, so it takes no agent while it runs. \
         Start it without that flag, or better with -agentpath:…/libheapwarden.so"
    )]
    LoadingDisabled,
    /// `HEAPWARDEN_ENABLED=false`
    #[error(
        "HEAPWARDEN_ENABLED={value} in its environment keeps the agent inert; add --option enabled=true to overrule it"
    )]
    Inert { value: String },
}

/// The first obstacle, if there is one. `enabled` says whether `enabled=true` is among the
/// options.
pub(crate) fn obstacle(facts: &Facts, caller: Caller, enabled: bool) -> Option<Obstacle> {
    let status = &facts.status;
    if matches!(status.state, 'Z' | 'X' | 'x') {
        return Some(Obstacle::Ended);
    }
    if !facts.is_jvm() {
        return Some(Obstacle::NoJvm);
    }
    if let Some(library) = facts.files.libheapwarden() {
        let library = printable(library);
        return Some(Obstacle::Loaded { library });
    }
    if facts.is_openj9() {
        return Some(Obstacle::OpenJ9);
    }
    if let (Some(release), Some(..OLDEST_JDK)) = (&facts.release, facts.feature()) {
        let version = printable(&release.version);
        return Some(Obstacle::OldJdk { version });
    }
    let is_same = (caller.user, caller.group) == (status.user, status.group);
    if !is_same && !caller.is_root() {
        return Some(Obstacle::OtherUser {
            pid: facts.pid,
            user: status.user,
            group: status.group,
            own_user: caller.user,
            own_group: caller.group,
        });
    }
    if !status.can_run() {
        return Some(Obstacle::Stopped { pid: facts.pid });
    }
    if facts.arguments.flag("DisableAttachMechanism") == Some(true) {
        return Some(Obstacle::AttachDisabled);
    }
    if facts.arguments.flag("EnableDynamicAgentLoading") == Some(false) {
        return Some(Obstacle::LoadingDisabled);
    }
    let value = facts.environment.enabled.as_deref();
    if let Some(value @ "false") = value.filter(|_| !enabled) {
        let value = value.to_owned();
        return Some(Obstacle::Inert { value });
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

    fn jvm() -> Facts {
        Facts {
            pid: 7,
            status: Status::parse(
                "Tgid:\t7\nState:\tS (sleeping)\nUid:\t1000\t1000\nGid:\t1000\t1000\n",
            ),
            files: MappedFiles::parse(&mapped("/opt/java/lib/server/libjvm.so")),
            release: Some(Release::parse("JAVA_VERSION=\"21.0.1\"")),
            ..Facts::default()
        }
    }

    fn with_flag(flag: &str) -> Facts {
        Facts {
            arguments: Arguments::parse(format!("java\0{flag}\0Main").as_bytes(), b""),
            ..jvm()
        }
    }

    #[test]
    fn a_hotspot_of_the_same_user_has_none_and_root_may_attach_to_all() {
        assert_eq!(obstacle(&jvm(), JAVA, false), None);
        let root = Caller { user: 0, group: 0 };
        assert_eq!(obstacle(&jvm(), root, false), None);
    }

    #[test]
    fn another_user_or_group_is_told_what_to_run() {
        for caller in [Caller { user: 1001, ..JAVA }, Caller { group: 5, ..JAVA }] {
            let found = obstacle(&jvm(), caller, false).unwrap().to_string();
            assert!(found.contains("sudo -u '#1000' -g '#1000'"), "{found}");
        }
    }

    #[test]
    fn what_is_no_jvm_is_left_alone() {
        let facts = Facts {
            files: MappedFiles::parse(&mapped("/usr/bin/sleep")),
            ..jvm()
        };
        assert_eq!(obstacle(&facts, JAVA, false), Some(Obstacle::NoJvm));
    }

    #[test]
    fn the_wrong_jvm_is_named() {
        let facts = Facts {
            release: Some(Release::parse("JAVA_VERSION=\"1.8.0_392\"")),
            ..jvm()
        };
        let found = obstacle(&facts, JAVA, false).unwrap();
        assert!(found.to_string().contains("JDK 1.8.0_392"), "{found}");
        let files = mapped("/opt/j9/lib/server/libjvm.so") + &mapped("/opt/j9/lib/libj9vm29.so");
        let facts = Facts {
            files: MappedFiles::parse(&files),
            ..jvm()
        };
        assert_eq!(obstacle(&facts, JAVA, false), Some(Obstacle::OpenJ9));
        let unknown = Facts {
            release: None,
            ..jvm()
        };
        assert_eq!(
            obstacle(&unknown, JAVA, false),
            None,
            "the agent itself refuses what is too old"
        );
    }

    #[test]
    fn loaded_once_is_enough() {
        let files =
            mapped("/opt/java/lib/server/libjvm.so") + &mapped("/o/libheapwarden.so (deleted)");
        let facts = Facts {
            files: MappedFiles::parse(&files),
            ..jvm()
        };
        let found = obstacle(&facts, JAVA, false);
        assert!(
            matches!(found, Some(Obstacle::Loaded { library }) if library == "/o/libheapwarden.so")
        );
    }

    #[test]
    fn flags_and_variables_that_forbid_it_are_named() {
        let found = |facts: &Facts| obstacle(facts, JAVA, false);
        assert_eq!(
            found(&with_flag("-XX:+DisableAttachMechanism")),
            Some(Obstacle::AttachDisabled)
        );
        assert_eq!(
            found(&with_flag("-XX:-EnableDynamicAgentLoading")),
            Some(Obstacle::LoadingDisabled)
        );
        assert_eq!(found(&with_flag("-XX:-DisableAttachMechanism")), None);
        let facts = Facts {
            environment: Environment {
                enabled: Some("false".to_owned()),
                ..Environment::default()
            },
            ..jvm()
        };
        assert!(matches!(found(&facts), Some(Obstacle::Inert { .. })));
        assert_eq!(obstacle(&facts, JAVA, true), None);
    }

    #[test]
    fn what_cannot_answer_is_said() {
        let state = |state: &str| {
            let text = format!("Tgid:\t7\nState:\t{state}\nUid:\t1000\t1000\nGid:\t1000\t1000\n");
            obstacle(
                &Facts {
                    status: Status::parse(&text),
                    ..jvm()
                },
                JAVA,
                false,
            )
        };
        assert_eq!(state("T (stopped)"), Some(Obstacle::Stopped { pid: 7 }));
        assert_eq!(state("Z (zombie)"), Some(Obstacle::Ended));
    }
}
