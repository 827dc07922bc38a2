//! The functions that the VM binds to its native methods while it starts: what is behind them, for who puts another
//! function in front.
//!
//! JVM TI names no method before the VM has started, and the functions of libjvm are not exported. So each binding is
//! noted with the id of its method until then, and looked up by the id afterwards. Notes are taken without a lock, in
//! a table of fixed size: a JDK 25 binds 214 before it has started.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use jvmti_bindings::sys::{jni, jvmti};

use crate::methods::MethodId;

const MAX_NOTES: usize = 1024;

struct Note {
    /// 0 until `function` is there.
    method: AtomicUsize,
    function: AtomicPtr<c_void>,
}

static NOTES: [Note; MAX_NOTES] = [const {
    Note {
        method: AtomicUsize::new(0),
        function: AtomicPtr::new(ptr::null_mut()),
    }
}; MAX_NOTES];
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Notes a binding. Beyond the bound it is forgotten: the method then has no known function.
fn note(method: usize, function: *mut c_void) {
    if let Some(note) = NOTES.get(TAKEN.fetch_add(1, Ordering::Relaxed)) {
        note.function.store(function, Ordering::Relaxed);
        note.method.store(method, Ordering::Release);
    }
}

/// The function that was bound to a method last, if that was noted. Any thread.
pub(crate) fn function_of(method: MethodId) -> Option<*mut c_void> {
    let taken = TAKEN.load(Ordering::Relaxed).min(MAX_NOTES);
    let mut latest_first = NOTES[..taken].iter().rev();
    let note = latest_first.find(|note| note.method.load(Ordering::Acquire) == method.key())?;
    Some(note.function.load(Ordering::Relaxed)).filter(|function| !function.is_null())
}

/// The event. Before the VM has started it has no environment.
pub(crate) unsafe extern "system" fn native_method_bound(
    _: *mut jvmti::jvmtiEnv,
    _: *mut jni::JNIEnv,
    _: jni::jthread,
    method: jni::jmethodID,
    function: *mut c_void,
    _: *mut *mut c_void,
) {
    // It cannot panic: the index is bounded, and nothing is allocated.
    note(method as usize, function);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_binding_of_a_method_counts_and_more_than_there_is_room_for_are_forgotten() {
        let (first, second) = (0x10 as *mut c_void, 0x20 as *mut c_void);
        note(7, first);
        note(8, second);
        assert_eq!(function_of(MethodId(7)), Some(first));
        note(7, second);
        assert_eq!(function_of(MethodId(7)), Some(second));
        assert_eq!(function_of(MethodId(9)), None);
        note(10, ptr::null_mut());
        assert_eq!(function_of(MethodId(10)), None);
        for _ in 0..MAX_NOTES {
            note(11, first);
        }
        note(12, first);
        assert_eq!(function_of(MethodId(12)), None);
        assert_eq!(function_of(MethodId(8)), Some(second));
    }
}
