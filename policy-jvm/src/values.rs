//! Objects found by their tags, and what is in them: fields, elements and text, read without calling code of theirs.

use std::time::{Duration, Instant};

use jvmti_bindings::sys::jni as sys;

use crate::env::{Jni, call};
use crate::error::JvmTiError;
use crate::fields::field_id;
use crate::jvmti::{JvmTi, tools_call};
use crate::kinds::{Anything, Class, JavaString};
use crate::refs::{Global, Handle, Local, Ref};

/// Most tags of one call: the references stay far below the capacity of their frame.
pub const MAX_TAGS: usize = 256;

impl JvmTi {
    /// Calls `look` with each live object that has one of these tags, of which at most [`MAX_TAGS`] are looked for,
    /// and returns how long the VM searched. Not on an allocating thread.
    ///
    /// The VM compares each of its tags with each of these, and holds the lock of its tags meanwhile: whoever tags
    /// an object waits so long, and so does a collection. The objects are kept alive until this returns.
    ///
    /// # Errors
    /// As JVM TI says, also if the capability is missing.
    pub fn each_tagged(
        &self,
        jni: &Jni,
        tags: &[i64],
        mut look: impl FnMut(&Jni, i64, &Ref<'_>),
    ) -> Result<Duration, JvmTiError> {
        let tags = &tags[..tags.len().min(MAX_TAGS)];
        if tags.is_empty() {
            return Ok(Duration::ZERO);
        }
        let found = jni.in_frame(|jni| {
            let begun = Instant::now();
            let found = self.wrapper().get_objects_with_tags(tags);
            let took = begun.elapsed();
            let (objects, tags) = found.map_err(|error| JvmTiError::of(error.raw()))?;
            let objects: Vec<Option<Local<'_>>> = (objects.into_iter())
                // SAFETY: JVM TI returns fresh local references of this thread.
                .map(|object| unsafe { Local::adopt(jni, object) })
                .collect();
            for (object, tag) in objects.into_iter().zip(tags) {
                if let Some(object) = object {
                    look(jni, tag, &object);
                }
            }
            Ok(took)
        });
        found.unwrap_or(Err(JvmTiError::NOT_AVAILABLE))
    }

    /// The size of an object in bytes, of itself alone. One call.
    ///
    /// # Errors
    /// As JVM TI says.
    pub fn object_size(&self, object: &impl Handle) -> Result<u64, JvmTiError> {
        let mut bytes = 0;
        tools_call!(self, GetObjectSize, object.raw().0, &mut bytes)?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }

    /// Whether a class is of the boot loader.
    pub fn is_of_boot_loader(&self, class: &Ref<'_, Class>) -> bool {
        matches!(self.loader_of(class.jni(), class), Ok(None))
    }

    /// This object as an array; `None` if it is none.
    pub fn as_array<'r, 'j>(&self, object: &'r Ref<'j>) -> Option<AnyArray<'r, 'j>> {
        let signature = self.signature_of(&*object.class()).ok()?;
        let element = Element::of(&signature)?;
        Some(AnyArray { object, element })
    }
}

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// `boolean`
    Boolean,
    /// `byte`
    Byte,
    /// `char`
    Char,
    /// `short`
    Short,
    /// `int`
    Int,
    /// `long`
    Long,
    /// `float`
    Float,
    /// `double`
    Double,
    /// References.
    Reference,
}

impl Element {
    /// By the signature of the array's class.
    fn of(signature: &str) -> Option<Element> {
        Some(match signature.strip_prefix('[')? {
            "Z" => Element::Boolean,
            "B" => Element::Byte,
            "C" => Element::Char,
            "S" => Element::Short,
            "I" => Element::Int,
            "J" => Element::Long,
            "F" => Element::Float,
            "D" => Element::Double,
            _ => Element::Reference,
        })
    }

    /// The bytes of an element; `None` for references.
    pub fn bytes(self) -> Option<usize> {
        Some(match self {
            Element::Boolean | Element::Byte => 1,
            Element::Char | Element::Short => 2,
            Element::Int | Element::Float => 4,
            Element::Long | Element::Double => 8,
            Element::Reference => return None,
        })
    }
}

/// An array, whatever its elements.
#[derive(Debug, Clone, Copy)]
pub struct AnyArray<'r, 'j> {
    object: &'r Ref<'j>,
    element: Element,
}

impl<'j> AnyArray<'_, 'j> {
    /// An element of an array of references; `None` if it is null or out of bounds, and of other arrays.
    pub fn reference(&self, index: u64) -> Option<Local<'j>> {
        if self.element != Element::Reference || index >= self.length() {
            return None;
        }
        let jni = self.object.jni();
        // It fits, because a length does.
        let index = index as i32;
        let value = call!(jni, GetObjectArrayElement, self.object.raw().0, index);
        // SAFETY: GetObjectArrayElement returns a fresh local reference or null.
        unsafe { Local::adopt(jni, value) }
    }

    /// Returns the type of the elements.
    pub fn element(&self) -> Element {
        self.element
    }

    /// The number of elements.
    pub fn length(&self) -> u64 {
        let length = call!(self.object.jni(), GetArrayLength, self.object.raw().0);
        u64::try_from(length).unwrap_or(0)
    }

    /// Appends elements to `into`, in the order of bytes of the machine: at most `count` from `from` on. Nothing
    /// of an array of references.
    pub fn read(&self, from: u64, count: u64, into: &mut Vec<u8>) {
        let length = self.length();
        let from = from.min(length);
        let count = count.min(length - from);
        let Some(width) = self.element.bytes() else {
            return;
        };
        // Both fit, because a length does.
        let (first, count) = (from as i32, count as i32);
        let place = into.len();
        into.resize(place + count as usize * width, 0);
        let mut buffer = vec![0u64; (count as usize * width).div_ceil(8)];
        let jni = self.object.jni();
        let raw = self.object.raw().0;
        // The buffer is aligned for every element and has room for `count` of them, and the array's class has
        // told what its elements are.
        let to = buffer.as_mut_ptr();
        match self.element {
            Element::Boolean => call!(jni, GetBooleanArrayRegion, raw, first, count, to.cast()),
            Element::Byte => call!(jni, GetByteArrayRegion, raw, first, count, to.cast()),
            Element::Char => call!(jni, GetCharArrayRegion, raw, first, count, to.cast()),
            Element::Short => call!(jni, GetShortArrayRegion, raw, first, count, to.cast()),
            Element::Int => call!(jni, GetIntArrayRegion, raw, first, count, to.cast()),
            Element::Long => call!(jni, GetLongArrayRegion, raw, first, count, to.cast()),
            Element::Float => call!(jni, GetFloatArrayRegion, raw, first, count, to.cast()),
            Element::Double => call!(jni, GetDoubleArrayRegion, raw, first, count, to.cast()),
            Element::Reference => {}
        }
        jni.clear_exception();
        let bytes = buffer.iter().flat_map(|word| word.to_ne_bytes());
        for (to, from) in into[place..].iter_mut().zip(bytes) {
            *to = from;
        }
    }
}

impl Ref<'_, JavaString> {
    /// The number of UTF-16 units of this string.
    pub fn units_length(&self) -> u64 {
        let length = call!(self.jni(), GetStringLength, self.raw().0);
        u64::try_from(length).unwrap_or(0)
    }

    /// Some units of this string: at most `count` from `from` on.
    pub fn units(&self, from: u64, count: u64) -> Vec<u16> {
        let length = self.units_length();
        let from = from.min(length);
        let count = count.min(length - from);
        let mut units = vec![0u16; count as usize];
        // Both fit, because a length does.
        let (first, count) = (from as i32, count as i32);
        call!(
            self.jni(),
            GetStringRegion,
            self.raw().0,
            first,
            count,
            units.as_mut_ptr()
        );
        self.jni().clear_exception();
        units
    }
}

/// A primitive value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Primitive {
    /// `boolean`
    Boolean(bool),
    /// `char`
    Char(u16),
    /// `byte`, `short`, `int` or `long`
    Whole(i64),
    /// `float` or `double`
    Fraction(f64),
}

/// An instance field of a class found at run time, to be read. Keeps its class loaded.
#[derive(Debug)]
pub struct InstanceField {
    class: Global<Class>,
    id: usize,
    descriptor: &'static str,
}

impl InstanceField {
    /// The field of this name and descriptor of a class or its super classes; `None` if there is none.
    pub fn find(
        class: &Ref<'_, Class>,
        name: &str,
        descriptor: &'static str,
    ) -> Option<InstanceField> {
        let id = field_id(class, name, descriptor)?;
        Some(InstanceField {
            class: class.global()?,
            id,
            descriptor,
        })
    }

    /// The primitive value in this field of an object; `None` if the field holds a reference, or the object is no
    /// instance of the field's class.
    pub fn primitive<T>(&self, object: &Ref<'_, T>) -> Option<Primitive> {
        if !object.is_a(&self.class) {
            return None;
        }
        let (jni, raw, id) = (object.jni(), object.raw().0, self.id as sys::jfieldID);
        // The object is an instance of the class whose field the id was found as, by this descriptor.
        Some(match self.descriptor {
            "Z" => Primitive::Boolean(call!(jni, GetBooleanField, raw, id) != 0),
            "C" => Primitive::Char(call!(jni, GetCharField, raw, id)),
            "B" => Primitive::Whole(i64::from(call!(jni, GetByteField, raw, id))),
            "S" => Primitive::Whole(i64::from(call!(jni, GetShortField, raw, id))),
            "I" => Primitive::Whole(i64::from(call!(jni, GetIntField, raw, id))),
            "J" => Primitive::Whole(call!(jni, GetLongField, raw, id)),
            "F" => Primitive::Fraction(f64::from(call!(jni, GetFloatField, raw, id))),
            "D" => Primitive::Fraction(call!(jni, GetDoubleField, raw, id)),
            _ => return None,
        })
    }

    /// The object in this field of an object; `None` for null, if the field holds no reference, or if the object is
    /// no instance of the field's class.
    pub fn object<'j, T>(&self, object: &Ref<'j, T>) -> Option<Local<'j, Anything>> {
        if !self.descriptor.starts_with(['L', '[']) || !object.is_a(&self.class) {
            return None;
        }
        let id = self.id as sys::jfieldID;
        let value = call!(object.jni(), GetObjectField, object.raw().0, id);
        // SAFETY: GetObjectField returns a fresh local reference or null. The object is an instance of the class
        // whose field the id was found as, with the descriptor of a reference type.
        unsafe { Local::adopt(object.jni(), value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_known_by_their_signatures() {
        assert_eq!(Element::of("[J"), Some(Element::Long));
        assert_eq!(Element::of("[[J"), Some(Element::Reference));
        assert_eq!(Element::of("[Ljava/lang/String;"), Some(Element::Reference));
        assert_eq!(Element::of("Ljava/lang/String;"), None);
        assert_eq!(Element::of("J"), None);
    }
}
