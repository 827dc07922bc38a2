//! Names for what a walk of the heap finds: fields by the index that JVM TI gives them, threads, and methods on
//! the stacks of other threads.

use jvmti_bindings::sys::{jni as sys, jvmti::jvmtiFrameInfo};

use crate::env::Jni;
use crate::jvmti::JvmTi;
use crate::kinds::{Class, Thread};
use crate::methods::{LiveMethod, MethodId};
use crate::refs::{Handle, Local, Ref};

/// Frames of a stack that are looked through for a method.
const MAX_FRAMES: i32 = 512;
/// Threads that are looked at.
const MAX_THREADS: usize = 20_000;
/// Super classes and interfaces of one class that are looked at.
const MAX_SUPERS: usize = 256;

/// A field as heap walks count them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapField {
    /// Its name.
    pub name: String,
    /// The signature of the class that declares it.
    pub declared_by: String,
}

/// A frame on the stack of another thread, a moment ago.
#[derive(Debug)]
pub struct SeenFrame<'j> {
    /// Its method.
    pub method: LiveMethod<'j>,
    /// The index of the bytecode that it executed; `None` in native code.
    pub bci: Option<u32>,
}

impl JvmTi {
    /// The fields of a class in the order in which heap walks count them: those of all its interfaces, then of its
    /// super classes from `Object` on, then its own. Empty while it is not prepared. Not for allocating threads.
    pub fn heap_fields(&self, jni: &Jni, class: &Ref<'_, Class>) -> Vec<HeapField> {
        let mut supers: Vec<Local<'_, Class>> = Vec::new();
        let mut interfaces: Vec<Local<'_, Class>> = Vec::new();
        self.add_interfaces(jni, class, &mut interfaces);
        let mut next = class.super_class();
        while let Some(above) = next
            && supers.len() < MAX_SUPERS
        {
            self.add_interfaces(jni, &above, &mut interfaces);
            next = above.super_class();
            supers.push(above);
        }
        let mut fields = Vec::new();
        for interface in &interfaces {
            self.add_fields(interface, &mut fields);
        }
        for above in supers.iter().rev() {
            self.add_fields(above, &mut fields);
        }
        self.add_fields(class, &mut fields);
        fields
    }

    fn add_interfaces<'j>(
        &self,
        jni: &'j Jni,
        class: &Ref<'_, Class>,
        found: &mut Vec<Local<'j, Class>>,
    ) {
        // SAFETY: `class` is a live reference to a class.
        let direct = unsafe { self.wrapper().get_implemented_interfaces(class.raw().0) };
        for interface in direct.unwrap_or_default() {
            // SAFETY: JVM TI returns fresh local references of this thread, to classes.
            let Some(interface) = (unsafe { Local::<Class>::adopt(jni, interface) }) else {
                continue;
            };
            let is_known = found.iter().any(|known| known.is_same(&interface));
            if is_known || found.len() >= MAX_SUPERS {
                continue;
            }
            let at = found.len();
            found.push(interface);
            // A second reference, because the list grows meanwhile.
            // SAFETY: the reference stays in the list, which only grows, and is deleted with it.
            if let Some(again) = unsafe { Ref::<Class>::borrow(jni, found[at].raw().0) } {
                self.add_interfaces(jni, &again, found);
            }
        }
    }

    fn add_fields(&self, class: &Ref<'_, Class>, fields: &mut Vec<HeapField>) {
        // SAFETY: `class` is a live reference to a class.
        let Ok(ids) = (unsafe { self.wrapper().get_class_fields(class.raw().0) }) else {
            return;
        };
        let declared_by = self.signature_of(class).unwrap_or_default();
        for id in ids {
            // SAFETY: the id was just returned for this class, which is held.
            let name = unsafe { self.wrapper().get_field_name(class.raw().0, id) };
            fields.push(HeapField {
                name: name.map(|(name, _, _)| name).unwrap_or_default(),
                declared_by: declared_by.clone(),
            });
        }
    }

    /// Looks at every live platform thread. Not for allocating threads. `look` works in a frame of its own, as that of
    /// [`JvmTi::each_loaded_class`]. False: the VM does not list them now.
    ///
    /// No property of a thread is read: tenants choose names of any length, and to find a field by the class of a thread
    /// would wait for a static initialiser that has not ended.
    pub fn each_thread(&self, jni: &Jni, mut look: impl FnMut(&Jni, &Ref<'_, Thread>)) -> bool {
        let mut has_looked = false;
        jni.in_frame(|jni| {
            let Ok(threads) = self.wrapper().get_all_threads() else {
                return;
            };
            let threads: Vec<Local<'_, Thread>> = (threads.into_iter())
                // SAFETY: JVM TI returns fresh local references of this thread, to threads.
                .filter_map(|thread| unsafe { Local::adopt(jni, thread) })
                .collect();
            jni.in_frame(|jni| {
                has_looked = true;
                for owned in threads.into_iter().take(MAX_THREADS) {
                    // SAFETY: the reference is live until `owned` is dropped, after `look`.
                    if let Some(thread) = unsafe { Ref::<Thread>::borrow(jni, owned.raw().0) } {
                        look(jni, &thread);
                    }
                }
            });
        });
        has_looked
    }

    /// The uppermost frames of a thread's stack, at most so many 512. The thread is stopped for as long
    /// as its stack is read. Not for allocating threads.
    pub fn frames_of<'j>(
        &self,
        jni: &'j Jni,
        thread: &Ref<'_, Thread>,
        most: i32,
    ) -> Vec<SeenFrame<'j>> {
        let most = most.min(MAX_FRAMES);
        // SAFETY: `thread` is a live reference to a thread.
        let frames = unsafe { self.wrapper().get_stack_trace(thread.raw().0, 0, most) };
        let seen = |frame: jvmtiFrameInfo| {
            // SAFETY: the method was on a stack a moment ago, so its class is loaded; HotSpot answers with an error for
            // the id of a method that has been unloaded since.
            let class = unsafe { self.wrapper().get_method_declaring_class(frame.method) }.ok()?;
            // SAFETY: JVM TI returns a fresh local reference of this thread, to a class.
            let class = unsafe { Local::<Class>::adopt(jni, class) }?;
            Some(SeenFrame {
                method: LiveMethod::new(*self, MethodId(frame.method as usize), class),
                bci: u32::try_from(frame.location).ok(),
            })
        };
        (frames.unwrap_or_default().into_iter())
            .filter_map(seen)
            .collect()
    }

    /// Class and name of a method, by its number, if it is on the stack of this thread now. The number may be that
    /// of a method which is unloaded meanwhile; the VM is asked about it only after it was found on a stack, which
    /// keeps its class loaded.
    pub fn method_on_stack(
        &self,
        jni: &Jni,
        thread: &Ref<'_, Thread>,
        method: usize,
    ) -> Option<(String, String)> {
        let id = method as sys::jmethodID;
        // SAFETY: `thread` is a live reference to a thread.
        let frames = unsafe {
            self.wrapper()
                .get_stack_trace(thread.raw().0, 0, MAX_FRAMES)
        };
        let frames = frames.ok()?;
        if !frames.iter().any(|frame| frame.method == id) {
            return None;
        }
        // SAFETY: the method was on a stack a moment ago, so its class is loaded; HotSpot answers with an error
        // for the id of a method that has been unloaded since.
        let class = unsafe { self.wrapper().get_method_declaring_class(id) }.ok()?;
        // SAFETY: JVM TI returns a fresh local reference of this thread, to a class.
        let class = unsafe { Local::<Class>::adopt(jni, class) }?;
        let signature = self.signature_of(&class).ok()?;
        // SAFETY: `class` holds the class that declares the method.
        let (name, _, _) = unsafe { self.wrapper().get_method_name(id) }.ok()?;
        Some((signature, name))
    }
}
