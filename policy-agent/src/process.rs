//! The facts that the JVM gives about the agent's process, for reports.

use policy_core::snapshot::Process;
use policy_jvm::JvmTi;

/// Longest name of a program, in bytes: a class name may have 65,535.
const MAX_PROGRAM_BYTES: usize = 200;

/// Describes this process. From `Agent_OnLoad` on.
pub(crate) fn describe(jvmti: &JvmTi, loaded_at_start: bool) -> Process {
    let property = |name| jvmti.system_property(name).unwrap_or_default();
    Process {
        id: std::process::id(),
        program: program(&property("sun.java.command")),
        vm: property("java.vm.name"),
        version: property("java.vm.version"),
        loaded_at_start,
    }
}

/// The program in the launcher's command: its main class, `module/class`, or the file name of its jar. Its
/// arguments are left out, because they may be secret.
fn program(command: &str) -> String {
    let first_word = || command.split(' ').next().unwrap_or_default();
    // The folder of a jar may contain blanks.
    let jar = (command
        .match_indices(".jar")
        .map(|(at, suffix)| at + suffix.len()))
    .find(|&end| matches!(command.as_bytes().get(end), None | Some(b' ')))
    .map(|end| command[..end].rsplit('/').next().unwrap_or_default());
    // `Main /data/some.jar` is a class with an argument.
    let is_class = |word: &str| !word.contains('/') && !word.ends_with(".jar");
    let program = match jar {
        Some(jar) if !is_class(first_word()) => jar,
        _ => first_word(),
    };
    let mut end = program.len().min(MAX_PROGRAM_BYTES);
    while !program.is_char_boundary(end) {
        end -= 1;
    }
    program[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_as_jps_names_it_without_arguments() {
        for (command, expected) in [
            (
                "org.apache.catalina.startup.Bootstrap start",
                "org.apache.catalina.startup.Bootstrap",
            ),
            (
                "/opt/my apps/shop-1.2.jar --password=secret",
                "shop-1.2.jar",
            ),
            ("app.jar", "app.jar"),
            ("com.acme.Main /data/library.jar", "com.acme.Main"),
            (
                "com.acme.module/com.acme.Main x",
                "com.acme.module/com.acme.Main",
            ),
            ("", ""),
        ] {
            assert_eq!(program(command), expected, "{command}");
        }
        assert_eq!(program(&"ä".repeat(300)).len(), MAX_PROGRAM_BYTES);
    }
}
