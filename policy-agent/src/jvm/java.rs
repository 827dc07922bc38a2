//! Java objects seen from native code: references that free themselves, and the few reads
//! and calls that naming a service needs.

use jvmti_bindings::sys::jni;
use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::ptr;

use super::tools::{JvmTi, MethodId};
pub(crate) use super::weak::Weak;

/// The JNI environment of the calling thread.
pub(crate) struct Jni {
    pub(super) env: *mut jni::JNIEnv,
    /// Neither `Send` nor `Sync`: an environment belongs to one thread.
    _thread: PhantomData<*mut ()>,
}

/// Calls a slot of the JNI function table.
macro_rules! call {
    ($jni:expr, $slot:ident $(, $argument:expr)*) => {{
        let jni: &Jni = $jni;
        // SAFETY: `env` is valid on this thread by `Jni::from_raw`'s contract, and the
        // references passed are live `Local`s or globals of this VM.
        unsafe { ((**jni.env).$slot)(jni.env $(, $argument)*) }
    }};
}
pub(super) use call;

impl Jni {
    /// # Safety
    /// `env` must be the JNI environment of the calling thread and stay valid for as long
    /// as the value is used on it.
    pub(crate) unsafe fn from_raw(env: *mut jni::JNIEnv) -> Jni {
        Jni {
            env,
            _thread: PhantomData,
        }
    }

    /// Forgets a pending Java exception; true when there was one.
    pub(super) fn clear_exception(&self) -> bool {
        let pending = call!(self, ExceptionCheck) != 0;
        if pending {
            call!(self, ExceptionClear);
        }
        pending
    }

    /// A class of the boot loader, by internal name (`java/lang/Object`).
    pub(crate) fn boot_class(&self, name: &str) -> Option<Local<'_>> {
        let name = CString::new(name).ok()?;
        let class = call!(self, FindClass, name.as_ptr());
        self.clear_exception();
        // SAFETY: FindClass returns a fresh local reference or null.
        unsafe { Local::adopt(self, class) }
    }

    /// The id of an instance field; it stays valid while its class is loaded.
    pub(crate) fn field(&self, class: &Local<'_>, name: &str, descriptor: &str) -> Option<FieldId> {
        let (name, descriptor) = (CString::new(name).ok()?, CString::new(descriptor).ok()?);
        let id = call!(
            self,
            GetFieldID,
            class.raw,
            name.as_ptr(),
            descriptor.as_ptr()
        );
        (!self.clear_exception() && !id.is_null()).then_some(FieldId(id as usize))
    }

    /// The id of a static field, whose class is initialised by this.
    pub(crate) fn static_field(
        &self,
        class: &Local<'_>,
        name: &str,
        descriptor: &str,
    ) -> Option<StaticField> {
        let (name, descriptor) = (CString::new(name).ok()?, CString::new(descriptor).ok()?);
        let id = call!(
            self,
            GetStaticFieldID,
            class.raw,
            name.as_ptr(),
            descriptor.as_ptr()
        );
        if self.clear_exception() || id.is_null() {
            return None;
        }
        Some(StaticField {
            class: class.global()?,
            id: id as usize,
        })
    }

    /// The object in a static field.
    pub(crate) fn static_value(&self, field: &StaticField) -> Option<Local<'_>> {
        let id = field.id as jni::jfieldID;
        let value = call!(self, GetStaticObjectField, field.class.raw, id);
        // SAFETY: GetStaticObjectField returns a fresh local reference or null.
        unsafe { Local::adopt(self, value) }
    }

    /// The object in an instance field.
    ///
    /// # Safety
    /// `object` must be a valid reference on this thread, of a class that has `field`.
    pub(crate) unsafe fn object_field(
        &self,
        object: jni::jobject,
        field: FieldId,
    ) -> Option<Local<'_>> {
        let value = call!(self, GetObjectField, object, field.0 as jni::jfieldID);
        // SAFETY: GetObjectField returns a fresh local reference or null.
        unsafe { Local::adopt(self, value) }
    }

    /// Allocates an instance without running a constructor.
    pub(crate) fn allocate(&self, class: &Global) -> Option<Local<'_>> {
        let object = call!(self, AllocObject, class.raw);
        self.clear_exception();
        // SAFETY: AllocObject returns a fresh local reference or null.
        unsafe { Local::adopt(self, object) }
    }

    /// Allocates an array of bytes and drops it; false when there is no memory for it.
    pub(crate) fn allocate_bytes(&self, bytes: usize) -> bool {
        let array = call!(self, NewByteArray, i32::try_from(bytes).unwrap_or(i32::MAX));
        let failed = self.clear_exception();
        // SAFETY: NewByteArray returns a fresh local reference or null.
        unsafe { Local::adopt(self, array) }.is_some() && !failed
    }

    /// Calls a static method without arguments that returns an object.
    pub(crate) fn static_object(
        &self,
        class: &Local<'_>,
        name: &str,
        descriptor: &str,
    ) -> Option<Local<'_>> {
        let (name, descriptor) = (CString::new(name).ok()?, CString::new(descriptor).ok()?);
        let method = call!(
            self,
            GetStaticMethodID,
            class.raw,
            name.as_ptr(),
            descriptor.as_ptr()
        );
        if self.clear_exception() || method.is_null() {
            return None;
        }
        let value = call!(
            self,
            CallStaticObjectMethodA,
            class.raw,
            method,
            ptr::null()
        );
        if self.clear_exception() {
            return None;
        }
        // SAFETY: a call that did not throw returns a fresh local reference or null.
        unsafe { Local::adopt(self, value) }
    }

    /// Calls a method without arguments that returns a `long`.
    pub(crate) fn call_long(&self, object: &Local<'_>, name: &str) -> Option<i64> {
        let class = object.class();
        let (name, descriptor) = (CString::new(name).ok()?, c"()J");
        let method = call!(
            self,
            GetMethodID,
            class.raw,
            name.as_ptr(),
            descriptor.as_ptr()
        );
        if self.clear_exception() || method.is_null() {
            return None;
        }
        let value = call!(self, CallLongMethodA, object.raw, method, ptr::null());
        (!self.clear_exception()).then_some(value)
    }

    /// Calls a method found by name and descriptor that returns an object. Exceptions are
    /// swallowed.
    pub(super) fn call_object(
        &self,
        object: &Local<'_>,
        name: &CStr,
        descriptor: &CStr,
        arguments: &[jni::jvalue],
    ) -> Option<Local<'_>> {
        let class = object.class();
        let method = call!(
            self,
            GetMethodID,
            class.raw,
            name.as_ptr(),
            descriptor.as_ptr()
        );
        if self.clear_exception() || method.is_null() {
            return None;
        }
        let value = call!(
            self,
            CallObjectMethodA,
            object.raw,
            method,
            arguments.as_ptr()
        );
        if self.clear_exception() {
            return None;
        }
        // SAFETY: a call that did not throw returns a fresh local reference or null.
        unsafe { Local::adopt(self, value) }
    }

    /// The text of an entry of a zip file, read with the JDK's own reader; at most
    /// `MOST_BYTES` of it. Runs JDK code: only on the resolver's thread.
    pub(crate) fn zip_entry(&self, file: &str, entry: &str) -> Option<String> {
        /// A configuration file larger than this is not one.
        const MOST_BYTES: i32 = 256 * 1024;
        let class = self.boot_class("java/util/zip/ZipFile")?;
        let path = self.string(file)?;
        let constructor = call!(
            self,
            GetMethodID,
            class.raw,
            c"<init>".as_ptr(),
            c"(Ljava/lang/String;)V".as_ptr()
        );
        if self.clear_exception() || constructor.is_null() {
            return None;
        }
        let arguments = [jni::jvalue { l: path.raw }];
        let zip = call!(self, NewObjectA, class.raw, constructor, arguments.as_ptr());
        if self.clear_exception() {
            return None;
        }
        // SAFETY: a constructor that did not throw returns a fresh local reference.
        let zip = unsafe { Local::adopt(self, zip) }?;
        let text = self.entry_text(&zip, entry, MOST_BYTES);
        let close = call!(
            self,
            GetMethodID,
            class.raw,
            c"close".as_ptr(),
            c"()V".as_ptr()
        );
        if !self.clear_exception() && !close.is_null() {
            call!(self, CallVoidMethodA, zip.raw, close, ptr::null());
            self.clear_exception();
        }
        text
    }

    fn entry_text(&self, zip: &Local<'_>, entry: &str, most_bytes: i32) -> Option<String> {
        let name = self.string(entry)?;
        let entry = self.call_object(
            zip,
            c"getEntry",
            c"(Ljava/lang/String;)Ljava/util/zip/ZipEntry;",
            &[jni::jvalue { l: name.raw }],
        )?;
        let stream = self.call_object(
            zip,
            c"getInputStream",
            c"(Ljava/util/zip/ZipEntry;)Ljava/io/InputStream;",
            &[jni::jvalue { l: entry.raw }],
        )?;
        let bytes = self.call_object(
            &stream,
            c"readNBytes",
            c"(I)[B",
            &[jni::jvalue { i: most_bytes }],
        )?;
        let length = call!(self, GetArrayLength, bytes.raw).clamp(0, most_bytes);
        let mut text = vec![0i8; length as usize];
        call!(
            self,
            GetByteArrayRegion,
            bytes.raw,
            0,
            length,
            text.as_mut_ptr()
        );
        if self.clear_exception() {
            return None;
        }
        let text: Vec<u8> = text.into_iter().map(|byte| byte as u8).collect();
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// A new Java string.
    pub(crate) fn string(&self, text: &str) -> Option<Local<'_>> {
        let text = CString::new(text).ok()?;
        let string = call!(self, NewStringUTF, text.as_ptr());
        self.clear_exception();
        // SAFETY: NewStringUTF returns a fresh local reference or null.
        unsafe { Local::adopt(self, string) }
    }

    /// A new Java string of any text. `None` where the heap has no room.
    pub(super) fn new_string(&self, text: &str) -> Option<Local<'_>> {
        let units: Vec<u16> = text.encode_utf16().collect();
        let length = i32::try_from(units.len()).ok()?;
        let string = call!(self, NewString, units.as_ptr(), length);
        self.clear_exception();
        // SAFETY: NewString returns a fresh local reference or null.
        unsafe { Local::adopt(self, string) }
    }

    /// A reference of our own to what `raw` refers to; `None` for null.
    ///
    /// # Safety
    /// `raw` must be null or a valid reference on this thread.
    pub(super) unsafe fn borrow(&self, raw: jni::jobject) -> Option<Local<'_>> {
        let own = call!(self, NewLocalRef, raw);
        // SAFETY: NewLocalRef returns a fresh local reference or null.
        unsafe { Local::adopt(self, own) }
    }

    /// The id of a static method; its class is initialised by this.
    pub(super) fn static_method(
        &self,
        class: &Local<'_>,
        name: &CStr,
        descriptor: &CStr,
    ) -> Option<usize> {
        let id = call!(
            self,
            GetStaticMethodID,
            class.raw,
            name.as_ptr(),
            descriptor.as_ptr()
        );
        (!self.clear_exception() && !id.is_null()).then_some(id as usize)
    }

    /// Runs `work` in a frame of local references of its own; `None`, and nothing run, where the
    /// VM has no memory for one. No reference that `work` makes may outlive it.
    pub(crate) fn in_frame<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        const CAPACITY: i32 = 1024;
        if call!(self, PushLocalFrame, CAPACITY) != 0 {
            self.clear_exception();
            return None;
        }
        let result = work();
        call!(self, PopLocalFrame, ptr::null_mut());
        Some(result)
    }

    /// Whether a thread is a virtual one. No exception may be pending.
    ///
    /// # Safety
    /// `thread` must be a valid `java.lang.Thread` reference on this thread, and `release` the
    /// feature release of the VM: before 21 its function table has no such entry.
    pub(crate) unsafe fn is_virtual(&self, thread: jni::jthread, release: u32) -> bool {
        release >= 21 && !thread.is_null() && call!(self, IsVirtualThread, thread) != 0
    }
}

/// An instance field of a class that stays loaded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldId(usize);

/// A static field of an object type; holds its class.
pub(crate) struct StaticField {
    class: Global,
    id: usize,
}

/// A local reference of this thread, deleted on drop.
pub(crate) struct Local<'j> {
    jni: &'j Jni,
    raw: jni::jobject,
}

impl<'j> Local<'j> {
    /// Takes ownership of a local reference; `None` for null.
    ///
    /// # Safety
    /// `raw` must be null or a local reference of this thread that nobody else deletes.
    pub(crate) unsafe fn adopt(jni: &'j Jni, raw: jni::jobject) -> Option<Local<'j>> {
        if raw.is_null() {
            None
        } else {
            Some(Local { jni, raw })
        }
    }

    pub(super) fn raw(&self) -> jni::jobject {
        self.raw
    }

    /// The object's class.
    pub(crate) fn class(&self) -> Local<'j> {
        let raw = call!(self.jni, GetObjectClass, self.raw);
        Local { jni: self.jni, raw }
    }

    /// The super class of this class; `None` for `Object` and interfaces.
    pub(crate) fn super_class(&self) -> Option<Local<'j>> {
        let raw = call!(self.jni, GetSuperclass, self.raw);
        // SAFETY: GetSuperclass returns a fresh local reference or null.
        unsafe { Local::adopt(self.jni, raw) }
    }

    /// Whether this class is `class` or one of its super classes or interfaces.
    pub(crate) fn is_super_of(&self, class: &Local<'_>) -> bool {
        call!(self.jni, IsAssignableFrom, class.raw, self.raw) != 0
    }

    /// The object in a field of this object.
    pub(crate) fn get(&self, field: FieldId) -> Option<Local<'j>> {
        // SAFETY: `self` is a live reference; the naming rules pass fields of its class.
        unsafe { self.jni.object_field(self.raw, field) }
    }

    /// The number in an `int` field of this object.
    pub(crate) fn int(&self, field: FieldId) -> i32 {
        call!(self.jni, GetIntField, self.raw, field.0 as jni::jfieldID)
    }

    /// Puts an object into a field of this object.
    pub(super) fn set(&self, field: FieldId, value: &Global) {
        call!(
            self.jni,
            SetObjectField,
            self.raw,
            field.0 as jni::jfieldID,
            value.raw
        );
    }

    /// Puts a number into a `long` field of this object.
    pub(super) fn set_long(&self, field: FieldId, value: i64) {
        call!(
            self.jni,
            SetLongField,
            self.raw,
            field.0 as jni::jfieldID,
            value
        );
    }

    /// Whether both refer to one object.
    pub(super) fn is_same(&self, other: &Local<'_>) -> bool {
        call!(self.jni, IsSameObject, self.raw, other.raw) != 0
    }

    /// As [`Local::is_same`].
    pub(super) fn is_same_as(&self, other: &Global) -> bool {
        call!(self.jni, IsSameObject, self.raw, other.raw) != 0
    }

    /// The length of this array.
    pub(super) fn array_length(&self) -> i32 {
        call!(self.jni, GetArrayLength, self.raw)
    }

    /// An element of this array of objects; `index` must be within it.
    pub(super) fn element(&self, index: i32) -> Option<Local<'j>> {
        let value = call!(self.jni, GetObjectArrayElement, self.raw, index);
        // SAFETY: GetObjectArrayElement returns a fresh local reference or null.
        unsafe { Local::adopt(self.jni, value) }
    }

    /// Whether this object is an instance of `class`.
    pub(super) fn is_a(&self, class: &Global) -> bool {
        call!(self.jni, IsInstanceOf, self.raw, class.raw) != 0
    }

    /// The object in the field of this name and descriptor, found through its class.
    pub(crate) fn get_named(&self, name: &str, descriptor: &str) -> Option<Local<'j>> {
        let field = self.jni.field(&self.class(), name, descriptor)?;
        self.get(field)
    }

    /// Calls a getter (no arguments, returns an object), whatever its declared return type,
    /// found by name along the super classes. Exceptions are swallowed.
    ///
    /// Runs Java code: only on the resolver's thread, and only where `trusted` says of the
    /// class that declares it that it is not an application's.
    pub(crate) fn getter(
        &self,
        tools: &JvmTi,
        name: &str,
        trusted: impl Fn(&Local<'j>) -> bool,
    ) -> Option<Local<'j>> {
        let mut class = Some(self.class());
        while let Some(current) = class {
            let found = tools
                .instance_methods(&current)
                .into_iter()
                .find(|(_, n, descriptor)| n == name && descriptor.starts_with("()L"));
            if let Some((MethodId(id), _, _)) = found {
                if !trusted(&current) {
                    return None;
                }
                let value = call!(
                    self.jni,
                    CallObjectMethodA,
                    self.raw,
                    id as jni::jmethodID,
                    ptr::null()
                );
                if self.jni.clear_exception() {
                    return None;
                }
                // SAFETY: a call that did not throw returns a fresh local reference or null.
                return unsafe { Local::adopt(self.jni, value) };
            }
            class = current.super_class();
        }
        None
    }

    /// This string's text; at most `MOST_UNITS` UTF-16 units of it. `None` when the object is
    /// not a `java.lang.String`.
    pub(crate) fn text(&self) -> Option<String> {
        /// Names longer than this are cut: they come from tenants.
        const MOST_UNITS: i32 = 1024;
        let class = self.jni.boot_class("java/lang/String")?;
        if call!(self.jni, IsInstanceOf, self.raw, class.raw) == 0 {
            return None;
        }
        let length = call!(self.jni, GetStringLength, self.raw).clamp(0, MOST_UNITS);
        let mut units = vec![0u16; length as usize];
        call!(
            self.jni,
            GetStringRegion,
            self.raw,
            0,
            length,
            units.as_mut_ptr()
        );
        (!self.jni.clear_exception()).then(|| String::from_utf16_lossy(&units))
    }

    /// A weak reference to the same object, good on every thread. `None` when the VM has no
    /// memory for it.
    pub(crate) fn weak(&self) -> Option<Weak> {
        // SAFETY: `self` is a live reference of this thread.
        unsafe { Weak::to(self.jni, self.raw) }
    }

    /// A strong global reference, for objects of the JDK that live as long as the VM.
    pub(crate) fn global(&self) -> Option<Global> {
        let raw = call!(self.jni, NewGlobalRef, self.raw);
        (!raw.is_null()).then_some(Global { raw })
    }
}

impl Drop for Local<'_> {
    fn drop(&mut self) {
        call!(self.jni, DeleteLocalRef, self.raw);
    }
}

/// A strong reference held until the VM ends.
pub(crate) struct Global {
    raw: jni::jobject,
}

// SAFETY: JNI global references are valid on every thread of their VM.
unsafe impl Send for Global {}
// SAFETY: as above; the reference itself is never changed.
unsafe impl Sync for Global {}

impl Global {
    pub(super) fn raw(&self) -> jni::jobject {
        self.raw
    }

    /// The object, as a reference of this thread.
    pub(crate) fn local<'j>(&self, jni: &'j Jni) -> Option<Local<'j>> {
        let raw = call!(jni, NewLocalRef, self.raw);
        // SAFETY: NewLocalRef returns a fresh local reference.
        unsafe { Local::adopt(jni, raw) }
    }
}
