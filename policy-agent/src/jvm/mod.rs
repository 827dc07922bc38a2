//! The only unsafe room: everything that touches the JVM's C interfaces.
//!
//! # Safety contract of the room
//!
//! * Raw JVM TI and JNI pointers do not leave it. What other rooms see are ids
//!   (loader, class), plain numbers and the safe handles [`java::Local`] and
//!   [`java::Weak`].
//! * A [`java::Jni`] exists only on the thread it was made for: it is neither `Send`
//!   nor `Sync`, and a [`java::Local`] borrows it.
//! * [`tools::JvmTi`] may be used from any thread that is attached to the VM, as JVM TI
//!   says of its environment; it is never disposed, because HotSpot has raced disposal
//!   against event posting (JDK-8257140, JDK-8256830).
//! * Every function that the VM calls is a trampoline in [`callbacks`] or `natives`, which runs
//!   its work inside [`guard`]: a panic becomes a counted, dropped event, or no answer.
//! * `GarbageCollectionFinish` and `ObjectFree` run where neither JNI nor JVM TI may be
//!   called: their handlers touch atomics only.
#![allow(unsafe_code)]

pub(crate) mod bridge;
pub(crate) mod callbacks;
mod canary;
mod cells;
pub(crate) mod collections;
mod copies;
pub(crate) mod entry;
pub(crate) mod errors;
mod flags;
pub(crate) mod guard;
pub(crate) mod handles;
pub(crate) mod java;
mod natives;
pub(crate) mod point;
mod refuse;
pub(crate) mod sample;
pub(crate) mod scan;
pub(crate) mod sight;
mod stack;
pub(crate) mod study;
pub(crate) mod thread;
pub(crate) mod tools;
pub(crate) mod weak;
