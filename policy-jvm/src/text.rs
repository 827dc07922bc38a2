//! Reads strings with a bound, and makes strings and arrays.

use jni::objects::JObject;

use crate::env::{Jni, call};
use crate::kinds::{Anything, Array, JavaString, LongArray};
use crate::refs::{Handle, Local, Ref};

impl<T> Ref<'_, T> {
    /// This string's text; at most 1,024 UTF-16 units of it. `None` when the object is not a
    /// `java.lang.String`. Not on an allocating thread.
    pub fn text(&self) -> Option<String> {
        /// Longer names are cut, because tenants choose them.
        const MAX_UNITS: i32 = 1024;
        let jni = self.jni();
        let class = jni.boot_class("java/lang/String")?;
        if !self.is_a(&class) {
            return None;
        }
        let length = call!(jni, GetStringLength, self.raw().0).clamp(0, MAX_UNITS);
        let mut units = vec![0u16; length as usize];
        call!(
            jni,
            GetStringRegion,
            self.raw().0,
            0,
            length,
            units.as_mut_ptr()
        );
        (!jni.clear_exception()).then(|| String::from_utf16_lossy(&units))
    }
}

impl Jni {
    /// A new Java string. `None` if the heap has no room. Not on an allocating thread.
    pub fn new_string(&self, text: &str) -> Option<Local<'_, JavaString>> {
        // new_string returns a string.
        self.with_object(|env| Ok(env.new_string(text)?.into()))
    }

    /// A new `long[]`. `None` if the heap has no room.
    pub fn new_longs(&self, numbers: &[i64]) -> Option<Local<'_, LongArray>> {
        let length = i32::try_from(numbers.len()).ok()?;
        // new_long_array returns an array of that type.
        self.with_object(|env| {
            let array = env.new_long_array(length)?;
            env.set_long_array_region(&array, 0, numbers)?;
            Ok(array.into())
        })
    }

    /// A new array of `Object`. `None` if the heap has no room.
    pub fn new_objects(&self, objects: &[Local<'_>]) -> Option<Local<'_, Array<Anything>>> {
        let length = i32::try_from(objects.len()).ok()?;
        // new_object_array returns an array of that type.
        self.with_object(|env| {
            let array = env.new_object_array(length, "java/lang/Object", JObject::null())?;
            for (index, object) in (0..).zip(objects) {
                // SAFETY: a `Local` is a live reference of this thread; the object does not own it.
                let object = unsafe { JObject::from_raw(object.raw().0.cast()) };
                env.set_object_array_element(&array, index, &object)?;
            }
            Ok(array.into())
        })
    }
}
