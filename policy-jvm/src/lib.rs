//! Safe wrappers of JNI and JVM TI for an agent inside HotSpot: all `unsafe` code of the agent.
//!
//! The crate uses the terms of the two interfaces and does not know what the agent uses them for.
//!
//! # Safety contract
//!
//! * Raw JNI and JVM TI pointers do not leave the crate. An object is a [`Ref`] (borrowed from a
//!   callback), a [`Local`] (owned, of one thread), a [`Global`] or a [`Weak`] (of any thread). None
//!   is ever null; a null of the VM becomes `None`.
//! * A [`Jni`] is the environment of one thread and is handed out by reference only, for the time
//!   of a callback, of a native method, or of a thread's attachment. Local references borrow it, so
//!   none leaves its thread or outlives the frame that it was made in.
//! * A reference carries the Java class that its object is known to be of ([`kinds`]). A field is read
//!   only from objects of the class that declares it. The compiler checks this, or a cast asks the VM.
//! * The VM is asked about a method's id only while its class is held: by a [`Frame`] on the calling thread's
//!   stack, or by a [`LiveMethod`].
//! * [`JvmTi`] may be used from any thread that is attached to the VM, as JVM TI says of its
//!   environment; on another thread it returns an error. It is never disposed, because HotSpot has raced
//!   disposal against event posting (JDK-8257140, JDK-8256830).
//! * Every function that the VM calls is a trampoline in this crate ([`Events`], [`JvmTi::rewrite`],
//!   [`NativeMethod`], [`Jni::watch_native_memory`], [`export_agent!`]) and runs its work inside [`guard::contain`]: a
//!   panic is counted, and the event is dropped or the method returns a default.
//! * What HotSpot keeps for itself is touched in two modules: a flag, set while the VM starts (`vm_flags`), and the calling
//!   thread's allocation buffer, which is read only (`vm_buffers`). Both find it by the tables that libjvm exports.
//! * Only [`Jni::throw`] leaves a Java exception pending.
//!
//! # What the compiler refuses
//!
//! A reference stays on its thread and in its callback, a frame in the call that fetched it:
//!
//! ```
//! # use policy_jvm::{Jni, Ref, Weak, FrameBuffer, HeldMethod, JvmTi, kinds::Class};
//! fn kept(class: &Ref<'_, Class>) -> Option<Weak<Class>> {
//!     class.weak()
//! }
//! fn top(jni: &Jni, tools: &JvmTi) -> Option<HeldMethod> {
//!     let mut frames = FrameBuffer::<1>::new(jni);
//!     frames.fetch(tools, 0, 1).ok()?;
//!     frames.frame(0)?.hold(tools)
//! }
//! ```
//! ```compile_fail
//! # use policy_jvm::{Ref, kinds::Class};
//! fn kept(class: Ref<'_, Class>) -> Ref<'static, Class> {
//!     class
//! }
//! ```
//! ```compile_fail
//! # use policy_jvm::Local;
//! fn sent(local: Local<'static>) {
//!     std::thread::spawn(move || drop(local));
//! }
//! ```
//! ```compile_fail
//! # use policy_jvm::{Jni, Frame, FrameBuffer, JvmTi};
//! fn top(jni: &Jni, tools: &JvmTi) -> Option<Frame<'static>> {
//!     let mut frames = FrameBuffer::<1>::new(jni);
//!     frames.fetch(tools, 0, 1).ok()?;
//!     frames.frame(0)
//! }
//! ```
//! A field is read from an object of its class:
//!
//! ```
//! # use policy_jvm::{Field, Local, Ref, kinds::{ClassLoader, Thread}};
//! fn loader<'j>(thread: &Ref<'j, Thread>, field: Field<Thread, ClassLoader>) -> Option<Local<'j, ClassLoader>> {
//!     thread.get(field)
//! }
//! ```
//! ```compile_fail
//! # use policy_jvm::{Field, Local, Ref, kinds::{ClassLoader, Thread}};
//! fn loader<'j>(object: &Ref<'j>, field: Field<Thread, ClassLoader>) -> Option<Local<'j, ClassLoader>> {
//!     object.get(field)
//! }
//! ```
//!
//! # `jni` and raw calls
//!
//! Code on threads of the agent, at start-up and in native methods uses the crate `jni`:
//! classes looked up and defined, members found, methods called by name, strings, arrays, global
//! references, native methods bound. Raw calls remain in four places: on allocating threads
//! (`jni` costs 0.11 µs a sample there), for daemon threads with a name (`jni` attaches daemons without
//! one), for reads of bounded length (`jni` copies whole strings), and for JVM TI (`jni` has none).
//!
//! It is `jni` 0.21: after a failed call, 0.22 loads exception classes through the calling thread's
//! context class loader, which runs code of the application that the thread is in.

#![warn(missing_docs)]

mod bound_natives;
mod calls;
mod capabilities;
mod classes;
mod entry;
mod env;
mod error;
mod events;
mod fields;
mod flags;
pub mod forked_walk;
mod frames;
pub mod guard;
mod heap_names;
mod jvmti;
pub mod kinds;
mod members;
mod methods;
mod modules;
mod native_memory;
mod natives;
mod objects;
mod refs;
mod rewriting;
mod text;
mod threads;
mod values;
mod vm_buffers;
mod vm_flags;
mod weak;
mod zip;

pub use calls::{Constructor, Method, StaticMethod, Value};
pub use capabilities::Capability;
pub use classes::{ClassFile, NotDefined};
pub use entry::{Start, enter};
pub use env::Jni;
pub use error::JvmTiError;
pub use events::{Event, Events, SampledAllocation, StartedThread};
pub use fields::{BooleanField, ClassFields, Field, IntField, KnownClass, LongField, StaticField};
pub use flags::Flags;
pub use frames::{Frame, FrameBuffer};
pub use heap_names::{HeapField, SeenFrame};
pub use jvmti::JvmTi;
pub use methods::{HeldMethod, LiveMethod, MethodId};
pub use native_memory::{Asked, NativeMemory, Unwatched};
pub use natives::{NativeArgument, NativeMethod, NativeReturn};
pub use refs::{Global, Handle, Local, Ref};
pub use rewriting::ClassFiles;
pub use threads::Vm;
pub use values::{AnyArray, Element, InstanceField, MAX_TAGS, Primitive};
pub use vm_buffers::{BufferFields, Buffers, Refill};
pub use vm_flags::{ChangedFlag, FlagChange, FlagKept};
pub use weak::{Weak, WeakSlot};
