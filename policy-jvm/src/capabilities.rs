//! JVM TI capabilities.

use jvmti_bindings::sys::jvmti::jvmtiCapabilities;

use crate::error::JvmTiError;
use crate::jvmti::JvmTi;

/// A JVM TI capability, called as in the specification, without `can_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Reading and setting objects' tags.
    TagObjects,
    /// `ObjectFree`.
    GenerateObjectFreeEvents,
    /// `GarbageCollectionStart` and `GarbageCollectionFinish`.
    GenerateGarbageCollectionEvents,
    /// `SampledObjectAlloc`. One agent in a VM has it.
    GenerateSampledObjectAllocEvents,
    /// The instructions of methods.
    GetBytecodes,
    /// The lines of methods.
    GetLineNumbers,
    /// The source files of classes.
    GetSourceFileName,
    /// Events and stacks of virtual threads. At start-up only, and from JDK 21 on.
    SupportVirtualThreads,
    /// Rewriting loaded classes. If it is acquired in a running VM, the first rewriting discards all
    /// compiled code, because the VM has not recorded what that depends on.
    RetransformClasses,
    /// An event at each binding of a native method.
    GenerateNativeMethodBindEvents,
}

impl Capability {
    fn set(self, capabilities: &mut jvmtiCapabilities) {
        match self {
            Capability::TagObjects => capabilities.set_can_tag_objects(true),
            Capability::GenerateObjectFreeEvents => {
                capabilities.set_can_generate_object_free_events(true);
            }
            Capability::GenerateGarbageCollectionEvents => {
                capabilities.set_can_generate_garbage_collection_events(true);
            }
            Capability::GenerateSampledObjectAllocEvents => {
                capabilities.set_can_generate_sampled_object_alloc_events(true);
            }
            Capability::GetBytecodes => capabilities.set_can_get_bytecodes(true),
            Capability::GetLineNumbers => capabilities.set_can_get_line_numbers(true),
            Capability::GetSourceFileName => capabilities.set_can_get_source_file_name(true),
            Capability::SupportVirtualThreads => {
                capabilities.set_can_support_virtual_threads(true);
            }
            Capability::RetransformClasses => capabilities.set_can_retransform_classes(true),
            Capability::GenerateNativeMethodBindEvents => {
                capabilities.set_can_generate_native_method_bind_events(true);
            }
        }
    }
}

impl JvmTi {
    /// Acquires capabilities: all of them, or none.
    ///
    /// # Errors
    /// [`JvmTiError::NOT_AVAILABLE`] if another agent holds one, or the VM cannot give it now.
    pub fn acquire(&self, capabilities: &[Capability]) -> Result<(), JvmTiError> {
        let mut wanted = jvmtiCapabilities::default();
        for capability in capabilities {
            capability.set(&mut wanted);
        }
        self.wrapper()
            .add_capabilities(&wanted)
            .map_err(|error| JvmTiError::of(error.raw()))
    }
}
