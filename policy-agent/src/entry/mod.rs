//! The entry: where the VM and the Java half call in, and the agent that owns all rooms. Nothing else names it.
//!
//! Loading decides whether this JVM gets an agent, and makes it.

mod agent;
mod callbacks;
mod exports;
mod loader_followers;
mod natives;
mod published;

use std::sync::atomic::{AtomicBool, Ordering};

use policy_jvm::{Capability, JvmTi, Start};

use crate::capabilities::Capabilities;
use crate::ground::{Found, Ground};
use crate::jvm::thread::Vm;
use crate::jvm::tlab_refill;
use crate::log;
use crate::options::Options;
use crate::policy::store::PolicyStore;
use crate::thread_census::ThreadCensus;
use crate::walks;

use agent::Agent;
use callbacks::Callbacks;

/// The oldest JDK that the agent serves: sampling and refunds are measured from here on.
const OLDEST_JDK: u32 = 17;

static LOADED: AtomicBool = AtomicBool::new(false);

/// Makes the agent, unless the options or the JVM say otherwise.
fn load(start: Start) {
    let options = Options::read(&start.options, |variable| std::env::var(variable).ok());
    if let Some(folder) = options.command {
        match Agent::get() {
            Some(agent) => walks::command(agent.ground, &agent.walks, folder),
            None => eprintln!("[heapwarden] a command came, and the agent is not loaded"),
        }
        return;
    }
    if options.enabled == Some(false) {
        return;
    }
    let Ok(jvmti) = start.tools() else {
        eprintln!("[heapwarden] this JVM offers no JVM TI; the agent does nothing");
        return;
    };
    if options.enabled.is_none() && is_jdk_tool(&jvmti) {
        return;
    }
    log::install(options.log.as_deref());
    for warning in &options.warnings {
        tracing::warn!("{warning}");
    }
    if LOADED.swap(true, Ordering::AcqRel) {
        tracing::warn!("the agent is loaded already; the second load does nothing");
        return;
    }
    let release = match supported(&jvmti) {
        Ok(release) => release,
        Err(why) => {
            tracing::error!("{why}; the agent does nothing");
            return;
        }
    };
    let policy = PolicyStore::open(options.config.clone());
    let tlab_refill = tlab_refill::correct(&start, release, options.tlab_refill);
    let capabilities = Capabilities::acquire(&jvmti, start.live, tlab_refill);
    if let Err(failure) = jvmti.install(&Callbacks) {
        tracing::error!("the JVM refuses event callbacks ({failure}); the agent does nothing");
        return;
    }
    let found = Found {
        vm: Vm::new(start.vm),
        build: build(&jvmti),
        jvmti,
        capabilities,
        release,
    };
    let ground = Ground::make(found, options, policy);
    let census = ThreadCensus::new(tags_of_census(&start));
    if let Some(agent) = ground.and_then(|ground| Agent::make(ground, natives::bind, census)) {
        agent.begin(start.live);
    }
}

/// An environment whose tags are the census's.
fn tags_of_census(start: &Start) -> Option<JvmTi> {
    let tags = start.tools().ok()?;
    match tags.acquire(&[Capability::TagObjects]) {
        Ok(()) => Some(tags),
        Err(failure) => {
            tracing::warn!("the JVM refuses object tags ({failure}); threads are not counted");
            None
        }
    }
}

/// Whether this JVM runs one of the JDK's own tools. All of them load the agent if its flag is in
/// `JAVA_TOOL_OPTIONS`.
fn is_jdk_tool(jvmti: &JvmTi) -> bool {
    let is_tool = |name: &str| name.starts_with("jdk.") || name.starts_with("java.");
    let module = jvmti.system_property("jdk.module.main").unwrap_or_default();
    let command = jvmti
        .system_property("sun.java.command")
        .unwrap_or_default();
    let main = command.split([' ', '/']).next().unwrap_or_default();
    // `java Program.java` runs the program inside the compiler's launcher.
    if command.contains("com.sun.tools.javac.launcher.") {
        return false;
    }
    is_tool(&module)
        || (command.contains('/') && is_tool(main) && command.starts_with(main))
        || ["sun.tools.", "sun.security.tools.", "com.sun.tools."]
            .iter()
            .any(|package| main.starts_with(package))
}

/// The JDK's feature release.
///
/// # Errors
/// The reason why the agent does not support this JVM.
fn supported(jvmti: &JvmTi) -> Result<u32, String> {
    let property = |name| jvmti.system_property(name).unwrap_or_default();
    let version = property("java.vm.specification.version");
    let release: u32 = version.parse().unwrap_or(0);
    if release < OLDEST_JDK {
        return Err(format!(
            "JDK {OLDEST_JDK} or later is needed and this is {version:?}"
        ));
    }
    let vm = property("java.vm.name");
    if vm.contains("OpenJ9") {
        return Err(format!("HotSpot is needed and this is {vm}"));
    }
    Ok(release)
}

/// The labels of `heapwarden_build_info`.
fn build(jvmti: &JvmTi) -> Vec<(&'static str, String)> {
    let property = |name| jvmti.system_property(name).unwrap_or_default();
    vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("jdk", property("java.vm.version")),
        ("vm", property("java.vm.name")),
    ]
}
