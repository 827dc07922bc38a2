//! The entry points that the VM looks up by name.

use std::ffi::{CStr, c_char};

use jvmti_bindings::sys::jni;

use crate::error::JvmTiError;
use crate::guard;
use crate::jvmti::JvmTi;
use crate::threads::Vm;
use crate::vm_buffers::BufferFields;
use crate::vm_flags::{ChangedFlag, FlagChange, FlagKept};

/// How the agent was loaded.
#[derive(Debug)]
pub struct Start {
    /// The VM.
    pub vm: Vm,
    /// The options behind the library's path. Bytes that are not UTF-8 are replaced.
    pub options: String,
    /// Loaded into a running VM, instead of at its start.
    pub live: bool,
}

impl Start {
    /// A new environment of the VM's tools interface. It is never disposed, so this is to be called once in the life
    /// of a VM, not at each load: the VM looks at all environments at each event.
    ///
    /// # Errors
    /// If the VM has none to give.
    pub fn tools(&self) -> Result<JvmTi, JvmTiError> {
        self.vm.tools()
    }

    /// Changes a flag of the VM that nobody has set, if `wanted` and the VM is only starting; else reads it. Call it
    /// inside the agent's entry point.
    ///
    /// # Errors
    /// Why the flag is as it was.
    pub fn change_flag(&self, change: &FlagChange, wanted: bool) -> Result<ChangedFlag, FlagKept> {
        self.vm.change_flag(change, wanted && !self.live)
    }

    /// Where this VM keeps a thread's allocation buffer.
    ///
    /// # Errors
    /// If the VM does not describe itself as expected.
    pub fn buffer_fields(&self) -> Result<BufferFields, FlagKept> {
        self.vm.buffer_fields()
    }
}

/// Runs `load`, and answers `JNI_OK` whatever happens: any other answer of `Agent_OnLoad` ends the JVM.
/// For [`export_agent!`](crate::export_agent) alone.
///
/// # Safety
/// `vm` must be the `JavaVM*` that the VM passed to an agent entry point, `options` null or a terminated
/// string.
#[doc(hidden)]
pub unsafe fn enter(
    vm: *mut std::ffi::c_void,
    options: *const c_char,
    live: bool,
    load: fn(Start),
) -> i32 {
    guard::contain(|| {
        let vm: *mut jni::JavaVM = vm.cast();
        let text = if options.is_null() {
            String::new()
        } else {
            // SAFETY: by this function's own contract.
            unsafe { CStr::from_ptr(options) }
                .to_string_lossy()
                .into_owned()
        };
        // SAFETY: by this function's own contract.
        let vm = unsafe { Vm::from_raw(vm) };
        load(Start {
            vm,
            options: text,
            live,
        });
    });
    jni::JNI_OK
}

/// Exports the agent's entry points from a library; they call a function `fn(Start)`.
#[macro_export]
macro_rules! export_agent {
    ($load:path) => {
        /// Called by the VM for `-agentpath`, before it has started.
        ///
        /// # Safety
        /// For the VM alone: `vm` is its invocation interface, `options` null or a C string.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "system" fn Agent_OnLoad(
            vm: *mut ::std::ffi::c_void,
            options: *const ::std::ffi::c_char,
            _reserved: *mut ::std::ffi::c_void,
        ) -> i32 {
            // SAFETY: by this function's own contract.
            unsafe { $crate::enter(vm, options, false, $load) }
        }

        /// Called by the VM for a dynamic attach, while it is running.
        ///
        /// # Safety
        /// As `Agent_OnLoad`.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "system" fn Agent_OnAttach(
            vm: *mut ::std::ffi::c_void,
            options: *const ::std::ffi::c_char,
            _reserved: *mut ::std::ffi::c_void,
        ) -> i32 {
            // SAFETY: by this function's own contract.
            unsafe { $crate::enter(vm, options, true, $load) }
        }
    };
}
