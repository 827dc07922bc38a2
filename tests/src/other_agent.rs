//! Another Java agent in the JVM under test (`tests/java/victim/OtherAgent.java`): it has classes transformed
//! afresh, as profilers, tracers and debuggers do.

use crate::command;
use crate::fixture::built_once;
use crate::java::classes;
use crate::jdk::compiler;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const AGENT: &str = "victim/OtherAgent.class";
const MANIFEST: &str = "Agent-Class: victim.OtherAgent\nPremain-Class: victim.OtherAgent\nCan-Retransform-Classes: true\n";

/// Its archive, for `-javaagent` as well.
#[must_use]
pub fn jar() -> PathBuf {
    const NAME: &str = "other-agent.jar";
    let victims = classes().victims();
    let inputs = [
        "tests/java/victim/OtherAgent.java",
        "tests/src/other_agent.rs",
    ];
    let folder = built_once("other-agent", &inputs, |into| {
        let manifest = into.join("manifest");
        fs::write(&manifest, MANIFEST).expect("the target folder is writable");
        let made = Command::new(compiler().program("jar"))
            .arg("--create")
            .arg("--file")
            .arg(into.join(NAME))
            .arg("--manifest")
            .arg(&manifest)
            .arg("-C")
            .args([victims.as_os_str(), AGENT.as_ref()])
            .status();
        assert!(made.is_ok_and(|status| status.success()), "jar packs");
    });
    folder.join(NAME)
}

/// Has loaded classes transformed afresh in a JVM, by their names, while it runs. The JVM prints a line for
/// each, which begins with `transformed afresh`.
///
/// # Panics
/// If the JVM does not load the agent.
pub fn transform_afresh(pid: u32, names: &[&str]) {
    let loaded = command::run(
        Command::new(compiler().program("jcmd"))
            .arg(pid.to_string())
            .arg("JVMTI.agent_load")
            .arg(jar())
            .arg(names.join(",")),
        command::PATIENCE,
    );
    assert!(
        loaded.status.success() && loaded.stdout.contains("return code: 0"),
        "{loaded:?}"
    );
}
