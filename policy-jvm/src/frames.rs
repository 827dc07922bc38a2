//! The calling thread's own stack.

use std::mem::MaybeUninit;
use std::ptr;

use jvmti_bindings::sys::{jni as sys, jvmti};

use crate::env::Jni;
use crate::error::JvmTiError;
use crate::jvmti::{JvmTi, tools_call};
use crate::kinds::Class;
use crate::methods::{HeldMethod, MethodId};
use crate::refs::Local;

/// Room for the frames of one fetch; not initialised, because most samples fetch none.
///
/// It borrows the environment of the callback or native method in which it is filled: the frames below
/// that stay on the stack for as long as it lives.
pub struct FrameBuffer<'j, const N: usize> {
    jni: &'j Jni,
    buffer: [MaybeUninit<jvmti::jvmtiFrameInfo>; N],
    filled: usize,
}

impl<'j, const N: usize> FrameBuffer<'j, N> {
    /// An empty buffer.
    pub fn new(jni: &'j Jni) -> FrameBuffer<'j, N> {
        FrameBuffer {
            jni,
            buffer: [const { MaybeUninit::uninit() }; N],
            filled: 0,
        }
    }

    /// Fetches at most `wanted` frames of the calling thread's stack from `start` on (0 is the top), and
    /// returns how many there were. Overwrites the buffer. One call; any thread.
    ///
    /// # Errors
    /// As JVM TI says.
    pub fn fetch(
        &mut self,
        tools: &JvmTi,
        start: usize,
        wanted: usize,
    ) -> Result<usize, JvmTiError> {
        self.filled = 0;
        let wanted = wanted.min(N);
        let mut count = 0;
        let start = i32::try_from(start).unwrap_or(i32::MAX);
        // A null thread means the calling one.
        let result = tools_call!(
            tools,
            GetStackTrace,
            ptr::null_mut(),
            start,
            wanted as i32,
            self.buffer.as_mut_ptr().cast(),
            &mut count
        );
        match result {
            Ok(()) => {}
            // `start` is beyond the bottom of the stack.
            Err(JvmTiError::ILLEGAL_ARGUMENT) => return Ok(0),
            Err(error) => return Err(error),
        }
        self.filled = usize::try_from(count).unwrap_or(0).min(wanted);
        Ok(self.filled)
    }

    /// The frame at `index` of the last fetch.
    #[inline]
    pub fn frame(&self, index: usize) -> Option<Frame<'j>> {
        if index >= self.filled {
            return None;
        }
        // SAFETY: GetStackTrace has written the first `filled` frames.
        let info = unsafe { self.buffer[index].assume_init_ref() };
        Some(Frame {
            jni: self.jni,
            method: MethodId(info.method as usize),
            bci: u32::try_from(info.location).ok(),
        })
    }
}

/// A frame on the calling thread's stack, which keeps the class of its method loaded.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'j> {
    jni: &'j Jni,
    method: MethodId,
    bci: Option<u32>,
}

impl<'j> Frame<'j> {
    /// The id of its method.
    #[inline]
    pub fn method(&self) -> MethodId {
        self.method
    }

    /// The index of the bytecode that it executes; `None` in native code.
    #[inline]
    pub fn bci(&self) -> Option<u32> {
        self.bci
    }

    /// The class that declares its method; `None` if JVM TI does not tell. One call; any thread.
    pub fn declaring_class(&self, tools: &JvmTi) -> Option<Local<'j, Class>> {
        let mut class = ptr::null_mut();
        let method = self.method.0 as sys::jmethodID;
        tools_call!(tools, GetMethodDeclaringClass, method, &mut class).ok()?;
        // SAFETY: JVM TI returns a fresh local reference of this thread, to a class. The id was given for a
        // frame that is on this thread's stack still, so its class is loaded.
        unsafe { Local::adopt(self.jni, class) }
    }

    /// Its method, for questions later on another thread. `None` if the VM has no memory for it.
    /// Any thread, also an allocating one.
    pub fn hold(&self, tools: &JvmTi) -> Option<HeldMethod> {
        let class = self.declaring_class(tools)?.weak()?;
        Some(HeldMethod::new(self.method, class))
    }
}
