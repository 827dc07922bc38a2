//! A thread's allocation buffer, as HotSpot keeps it: whether an object was the first in it, and how much of the
//! buffers before was left over.
//!
//! The places of the fields are read from the tables that libjvm exports ([`crate::vm_flags`]), and nothing is known
//! unless each is there with the expected type. A thread's structure is found from its JNI environment, which is a part
//! of it: how far in, is told by the field `eetop` of a `java.lang.Thread`, the address of its structure. A thread reads
//! its own buffer only.

use std::ffi::c_void;

use crate::env::Jni;
use crate::kinds::Thread;
use crate::refs::{Handle, Ref};
use crate::vm_flags::{FlagKept, Library, field, read};

/// HotSpot counts buffers in words.
const WORD_BYTES: u64 = 8;
/// The words that are kept free at a buffer's end, at least: the header of an array.
const LEAST_RESERVE_WORDS: u64 = 2;
/// A thread's structure is at most this large.
const MAX_THREAD_BYTES: usize = 16 << 10;

/// Where the fields are.
#[derive(Debug, Clone, Copy)]
pub struct BufferFields {
    /// Of the buffer, in the thread.
    buffer: usize,
    start: usize,
    top: usize,
    refills: usize,
    waste: usize,
    desired: usize,
    /// The address of a number of words, set when the heap is made.
    reserve: usize,
}

/// Reads the buffer of a thread.
#[derive(Debug, Clone, Copy)]
pub struct Buffers {
    fields: BufferFields,
    /// From a thread's structure to its JNI environment.
    environment: usize,
    reserve_bytes: u64,
}

/// An object for which the thread's buffer was refilled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refill {
    /// The bytes left over of a buffer at a refill, in the mean since the latest collection. 0 if that is not known.
    pub mean_waste_bytes: f64,
    /// How large the thread's buffers are to be; `None` while it had too few for a mean.
    pub buffer_bytes: Option<u64>,
}

impl BufferFields {
    /// Finds the fields in the VM whose library contains `of_vm`.
    ///
    /// # Safety
    /// `of_vm` must be the address of a function of libjvm.
    pub(crate) unsafe fn find(of_vm: *const c_void) -> Result<BufferFields, FlagKept> {
        let library = Library::containing(of_vm)?;
        let symbols = |name: &std::ffi::CStr| library.symbol(name);
        let of_buffer =
            |name, type_of| field(&symbols, c"ThreadLocalAllocBuffer", name, type_of, false);
        let fields = BufferFields {
            buffer: field(
                &symbols,
                c"Thread",
                c"_tlab",
                c"ThreadLocalAllocBuffer",
                false,
            )?,
            start: of_buffer(c"_start", c"HeapWord*")?,
            top: of_buffer(c"_top", c"HeapWord*")?,
            refills: of_buffer(c"_number_of_refills", c"unsigned")?,
            waste: of_buffer(c"_refill_waste", c"unsigned")?,
            desired: of_buffer(c"_desired_size", c"size_t")?,
            reserve: field(
                &symbols,
                c"ThreadLocalAllocBuffer",
                c"_reserve_for_allocation_prefetch",
                c"int",
                true,
            )?,
        };
        let all = [
            fields.start,
            fields.top,
            fields.refills,
            fields.waste,
            fields.desired,
        ];
        match all.iter().all(|at| *at < 1024) && fields.buffer < MAX_THREAD_BYTES {
            true => Ok(fields),
            false => Err(FlagKept::Unknown("a buffer's field is too far away")),
        }
    }

    /// Finds out where threads have their environment. `thread` is the calling thread's object; on a Java thread that
    /// is attached for good, in the live phase. `None` if the JDK's class is not as expected.
    pub fn locate(self, jni: &Jni, thread: &Ref<'_, Thread>) -> Option<Buffers> {
        let raw = thread.raw().0;
        let structure = jni.with(|env| {
            // SAFETY: `thread` is a live reference; the object made of it does not own it.
            let thread = unsafe { jni::objects::JObject::from_raw(raw.cast()) };
            env.get_field(&thread, "eetop", "J")?.j()
        })?;
        let structure = usize::try_from(structure).ok().filter(|at| *at != 0)?;
        let environment = jni.thread_address().checked_sub(structure)?;
        let reserve = u64::try_from(read::<i32>(self.reserve)).unwrap_or(0);
        (environment.is_multiple_of(8) && environment < MAX_THREAD_BYTES).then_some(Buffers {
            fields: self,
            environment,
            reserve_bytes: reserve.max(LEAST_RESERVE_WORDS) * WORD_BYTES,
        })
    }
}

impl Buffers {
    /// Whether an object of this size, the latest that the calling thread has allocated, is the first in its buffer.
    /// The thread is that of the environment. Two loads, and for a refill three more.
    pub fn refill(&self, jni: &Jni, size_bytes: u64) -> Option<Refill> {
        let buffer = jni.thread_address() - self.environment + self.fields.buffer;
        // All of these are of the calling thread's own structure, at places that the VM's tables give, and only this
        // thread changes them, between its allocations or in a collection that waits for it.
        let start = read::<u64>(buffer + self.fields.start);
        let top = read::<u64>(buffer + self.fields.top);
        if start == 0 || top.wrapping_sub(start) != size_bytes {
            return None;
        }
        let refills = read::<u32>(buffer + self.fields.refills);
        let waste = read::<u32>(buffer + self.fields.waste);
        let desired_words = read::<u64>(buffer + self.fields.desired);
        Some(Refill {
            mean_waste_bytes: mean_waste(refills, waste, self.reserve_bytes),
            buffer_bytes: (refills > 1).then(|| desired_words.saturating_mul(WORD_BYTES)),
        })
    }
}

/// Returns the bytes left over, in the mean: of `refills` since the latest collection the first one had no buffer
/// before it.
fn mean_waste(refills: u32, waste_words: u32, reserve_bytes: u64) -> f64 {
    match refills.checked_sub(1) {
        None | Some(0) => 0.0,
        Some(before) => {
            let waste = u64::from(waste_words) * WORD_BYTES;
            (waste as f64 / f64::from(before) - reserve_bytes as f64).max(0.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::mean_waste;

    #[test]
    fn the_first_refill_after_a_collection_has_wasted_nothing() {
        assert_eq!(mean_waste(0, 0, 16), 0.0);
        assert_eq!(mean_waste(1, 40, 16), 0.0);
        assert_eq!(mean_waste(2, 40, 16), 304.0);
        assert_eq!(mean_waste(5, 40, 16), 64.0);
        assert_eq!(mean_waste(5, 1, 200), 0.0, "never less than nothing");
    }
}
