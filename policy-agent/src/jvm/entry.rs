//! The entry points that the VM looks up by name.
//!
//! Whatever happens, they answer `JNI_OK`: any other answer of `Agent_OnLoad` ends the JVM,
//! and no account is worth that.

use jvmti_bindings::sys::jni;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::agent::{Agent, acquire};
use crate::log;
use crate::options::Options;
use crate::policy::store::PolicyStore;

use super::callbacks;
use super::guard;
use super::thread::Vm;
use super::tools::JvmTi;

/// Oldest JDK whose sampling and refunds were measured.
const OLDEST_JDK: u32 = 17;

static LOADED: AtomicBool = AtomicBool::new(false);

/// Called by the VM for `-agentpath`, before it has started.
///
/// # Safety
/// For the VM alone: `vm` is its invocation interface, `options` null or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "system" fn Agent_OnLoad(
    vm: *mut jni::JavaVM,
    options: *const c_char,
    _reserved: *mut c_void,
) -> jni::jint {
    // SAFETY: by this function's own contract.
    guard::contain(|| unsafe { load(vm, options, false) });
    jni::JNI_OK
}

/// Called by the VM for a dynamic attach, while it is running.
///
/// # Safety
/// For the VM alone: `vm` is its invocation interface, `options` null or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "system" fn Agent_OnAttach(
    vm: *mut jni::JavaVM,
    options: *const c_char,
    _reserved: *mut c_void,
) -> jni::jint {
    // SAFETY: by this function's own contract.
    guard::contain(|| unsafe { load(vm, options, true) });
    jni::JNI_OK
}

/// # Safety
/// As the entry points.
unsafe fn load(vm: *mut jni::JavaVM, options: *const c_char, live: bool) {
    let text = if options.is_null() {
        String::new()
    } else {
        // SAFETY: the VM passes a terminated string.
        unsafe { CStr::from_ptr(options) }
            .to_string_lossy()
            .into_owned()
    };
    let options = Options::read(&text, |variable| std::env::var(variable).ok());
    if options.enabled == Some(false) {
        return;
    }
    // SAFETY: the VM passes its own invocation interface.
    let Ok(tools) = (unsafe { JvmTi::of(vm) }) else {
        eprintln!("[heapwarden] this JVM offers no JVM TI; the agent does nothing");
        return;
    };
    if options.enabled.is_none() && is_jdk_tool(&tools) {
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
    let release = match supported(&tools) {
        Ok(release) => release,
        Err(why) => {
            tracing::error!("{why}; the agent does nothing");
            return;
        }
    };
    let policy = PolicyStore::open(options.config.clone());
    let held = acquire(&tools, live);
    if let Err(failure) = tools.install(callbacks::table()) {
        tracing::error!("the JVM refuses event callbacks ({failure}); the agent does nothing");
        return;
    }
    let build = build(&tools);
    // SAFETY: the VM passes its own invocation interface.
    let vm = unsafe { Vm::from_raw(vm) };
    let Some(agent) = Agent::make(vm, tools, options, policy, held, release, build) else {
        return;
    };
    agent.begin(live);
}

/// Whether the JVM was started as one of the JDK's own tools, as happens to all of them
/// when the flag stands in `JAVA_TOOL_OPTIONS`.
fn is_jdk_tool(tools: &JvmTi) -> bool {
    let is_tool = |name: &str| name.starts_with("jdk.") || name.starts_with("java.");
    let module = tools.system_property("jdk.module.main").unwrap_or_default();
    let command = tools
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

/// The JDK's feature release, if the agent knows its way there.
fn supported(tools: &JvmTi) -> Result<u32, String> {
    let property = |name| tools.system_property(name).unwrap_or_default();
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
fn build(tools: &JvmTi) -> Vec<(&'static str, String)> {
    let property = |name| tools.system_property(name).unwrap_or_default();
    vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("jdk", property("java.vm.version")),
        ("vm", property("java.vm.name")),
    ]
}
