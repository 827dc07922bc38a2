//! The work of the heap callback: it recognises each object and writes its references to the log.
//!
//! # How an object is recognised
//! JVM TI gives no identity to an object without a tag, and a tag for each object of a heap costs more than the
//! heap. HotSpot passes the callback a pointer to the tag, which lies in a structure on its stack between the
//! object's size and the tag of its class, and before the size lies the object's address. This crate reads that
//! address, and only after it has found the two neighbours to be what the callback's arguments say, at each
//! call anew. If they are not, the walk ends with [`Failure::Layout`]. A JDK of another build could thus cost a
//! walk, and nothing else: addresses are compared, never dereferenced.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use jvmti_bindings::sys::jvmti;

use super::border::{Place, Slice};
use super::log::{Full, Log, PLACES, Pieces, RawRoot, RawTarget, UNKNOWN_CLASS, Via};
use super::memory::{Bits, Sharing, Table};
use super::request::{Classes, Targets};

/// Roots at the most; more are not followed up, and the walk fails.
const MAX_ROOTS: usize = 1 << 20;

/// How often the clock is looked at.
const CALLS_BETWEEN_LOOKS: u64 = 4096;

/// Why a walk ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Failure {
    None = 0,
    /// The structure behind the tag's pointer is not the one that is known.
    Layout = 1,
    /// Objects in too many pieces of the heap.
    Pieces = 2,
    /// The log is full.
    Log = 3,
    /// Too many roots.
    Roots = 4,
    /// No memory for the tables.
    Tables = 5,
    /// A panic.
    Panic = 6,
    /// It took too long.
    Time = 7,
    /// The walker waits for a lock that a thread of the parent held when it forked.
    Blocked = 8,
    /// The walker could not be forked.
    Fork = 9,
}

impl Failure {
    pub(super) fn of(number: u32) -> Failure {
        use Failure::{Blocked, Fork, Layout, Log, Panic, Pieces, Roots, Tables, Time};
        let all = [
            Layout, Pieces, Log, Roots, Tables, Panic, Time, Blocked, Fork,
        ];
        let mut all = all.into_iter();
        all.find(|failure| *failure as u32 == number)
            .unwrap_or(Failure::None)
    }
}

/// How large the tables may become.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) log_bytes: usize,
    pub(super) targets: usize,
}

/// The tables of a walk.
pub(super) struct Recorder<'r> {
    pub(super) classes: &'r Classes,
    targets: Targets<'r>,
    pieces: Pieces,
    pub(super) log: Log,
    /// Objects to which a visit was promised.
    pub(super) seen: Bits,
    /// Objects that have a record.
    pub(super) recorded: Bits,
    /// Objects that were looked for.
    pub(super) target_bits: Bits,
    pub(super) found: Table<RawTarget>,
    pub(super) found_count: usize,
    pub(super) roots: Table<RawRoot>,
    pub(super) root_count: usize,
    /// The class object of each class.
    pub(super) mirrors: Table<u32>,
    pub(super) references: u64,
    /// Objects that were promised a visit and have not begun, class objects aside: those may have no
    /// references to report.
    pub(super) pending: AtomicU64,
    pub(super) calls: AtomicU64,
    pub(super) failure: AtomicU32,
    last_class: (i64, u32),
    last_referrer_class: (i64, u32),
    /// When to give up, by the monotonic clock.
    pub(super) deadline: Option<std::time::Instant>,
    /// The part of the heap to which the walk keeps; `None` for a walk of the whole heap.
    pub(super) slice: Option<Slice<'r>>,
}

/// The arguments of one callback.
pub(super) struct Call {
    pub(super) kind: u32,
    pub(super) info: *const jvmti::jvmtiHeapReferenceInfo,
    pub(super) class_tag: i64,
    pub(super) referrer_class_tag: i64,
    pub(super) size: i64,
    pub(super) tag: *const i64,
    pub(super) referrer_tag: *const i64,
}

/// An object's address and tag.
#[derive(Clone, Copy)]
pub(super) struct Object {
    pub(super) address: u64,
    pub(super) tag: i64,
}

impl Call {
    /// The object that is referred to; `None` if the structure is unknown.
    #[inline]
    pub(super) fn object(&self) -> Option<Object> {
        // SAFETY: the VM's tag pointer leads to a field of a structure on its stack, of which two words before
        // and one behind the field are part of the same stack, which is mapped on both sides of it: the
        // callback's own frames are below, the VM's above. What they hold is checked before it is believed.
        let (address, size, tag, class_tag) = unsafe {
            let at = self.tag;
            (
                at.sub(2).read(),
                at.sub(1).read(),
                at.read(),
                at.add(1).read(),
            )
        };
        let is_known =
            size == self.size && class_tag == self.class_tag && address > 0 && address & 7 == 0;
        is_known.then_some(Object {
            address: address as u64,
            tag,
        })
    }

    /// The object that refers, `None` if the structure is unknown; null for a root is not asked.
    #[inline]
    fn referrer(&self, object: Object) -> Option<Object> {
        if std::ptr::eq(self.referrer_tag, self.tag) {
            return Some(object);
        }
        // SAFETY: as in `object`; here the word before the field is the address, and behind it are the tag of the
        // class and a pointer to the field itself.
        let (address, tag, class_tag, own) = unsafe {
            let at = self.referrer_tag;
            (
                at.sub(1).read(),
                at.read(),
                at.add(1).read(),
                at.add(2).read(),
            )
        };
        let is_known = class_tag == self.referrer_class_tag
            && own == self.referrer_tag as i64
            && address > 0
            && address & 7 == 0;
        is_known.then_some(Object {
            address: address as u64,
            tag,
        })
    }

    /// The index of a field or element.
    #[inline]
    fn index(&self) -> u32 {
        if self.info.is_null() {
            return 0;
        }
        // SAFETY: for fields, elements and the constant pool the VM passes a structure that begins with the index.
        unsafe { (*self.info).field.index as u32 }
    }
}

impl<'r> Recorder<'r> {
    /// Makes the tables; `None` if the kernel has no room for them. System calls alone.
    pub(super) fn new(
        classes: &'r Classes,
        targets: Targets<'r>,
        sizes: Sizes,
        sharing: Sharing,
    ) -> Option<Recorder<'r>> {
        let mut mirrors = Table::new(classes.len(), sharing)?;
        mirrors.fill(u32::MAX);
        Some(Recorder {
            classes,
            targets,
            pieces: Pieces::new(sharing)?,
            log: Log::new(sizes.log_bytes, sharing)?,
            seen: Bits::new(PLACES, sharing)?,
            recorded: Bits::new(PLACES, sharing)?,
            target_bits: Bits::new(PLACES, sharing)?,
            found: Table::new(sizes.targets, sharing)?,
            found_count: 0,
            roots: Table::new(MAX_ROOTS, sharing)?,
            root_count: 0,
            mirrors,
            references: 0,
            pending: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            failure: AtomicU32::new(0),
            last_class: (0, UNKNOWN_CLASS),
            last_referrer_class: (0, UNKNOWN_CLASS),
            deadline: None,
            slice: None,
        })
    }

    /// How many words of a set of compact addresses may be other than zero.
    pub(super) fn pieces_used_words(&self) -> usize {
        self.pieces.used_places() / 64
    }

    pub(super) fn classes(&self) -> &'r Classes {
        self.classes
    }

    pub(super) fn fail(&self, failure: Failure) -> i32 {
        self.failure.store(failure as u32, Ordering::Release);
        jvmti::JVMTI_VISIT_ABORT
    }

    pub(super) fn failed(&self) -> Failure {
        Failure::of(self.failure.load(Ordering::Acquire))
    }

    /// Takes note of a reference; returns what the VM is to do. No allocation, no system call, no lock.
    pub(super) fn reference(&mut self, call: &Call) -> i32 {
        let calls = self.calls.load(Ordering::Relaxed);
        self.calls.store(calls + 1, Ordering::Relaxed);
        if calls.is_multiple_of(CALLS_BETWEEN_LOOKS)
            && self
                .deadline
                .is_some_and(|end| std::time::Instant::now() >= end)
        {
            return self.fail(Failure::Time);
        }
        match self.noted(call) {
            Ok(true) => jvmti::JVMTI_VISIT_OBJECTS,
            Ok(false) => 0,
            Err(failure) => self.fail(failure),
        }
    }

    fn noted(&mut self, call: &Call) -> Result<bool, Failure> {
        let object = call.object().ok_or(Failure::Layout)?;
        let to = self.compact(object.address)?;
        self.references += 1;
        if call.class_tag != self.last_class.0 {
            self.last_class = (call.class_tag, self.classes.number(call.class_tag));
        }
        let class = self.last_class.1;
        let is_target = object.tag != 0 && self.targets.contain(object.tag);
        if is_target && self.target_bits.insert(to) {
            self.found(RawTarget {
                tag: object.tag as u64,
                at: to,
                class,
            });
        }
        let is_skipped = self.classes.is_skipped(class);
        let mut ends = false;
        if call.referrer_tag.is_null() {
            self.root(call, object, to)?;
        } else {
            let referrer = call.referrer(object).ok_or(Failure::Layout)?;
            let from = self.compact(referrer.address)?;
            match self.place(call, (from, to), class, object.tag) {
                Place::Inside => {}
                Place::Start => return self.start(to, class, object.tag),
                // A target is found also where the walk ends.
                Place::Border if is_target => ends = true,
                Place::Border => return Ok(false),
            }
            if !self.log.is_of(from) {
                self.begin(call, referrer, from)?;
            }
            let referrer_class = self.last_referrer_class.1;
            let via = match call.kind {
                jvmti::JVMTI_HEAP_REFERENCE_CLASS => {
                    if let Some(mirror) = self.mirrors.get_mut(referrer_class as usize) {
                        *mirror = to;
                    }
                    return Ok(self.visit(to, class));
                }
                jvmti::JVMTI_HEAP_REFERENCE_FIELD => {
                    if self.classes.is_weak(referrer_class, call.index()) {
                        return Ok(false);
                    }
                    Via::Field(call.index())
                }
                jvmti::JVMTI_HEAP_REFERENCE_ARRAY_ELEMENT => Via::Element(call.index()),
                jvmti::JVMTI_HEAP_REFERENCE_STATIC_FIELD => Via::Static(call.index()),
                jvmti::JVMTI_HEAP_REFERENCE_CLASS_LOADER => Via::Loader,
                jvmti::JVMTI_HEAP_REFERENCE_SUPERCLASS => Via::SuperClass,
                jvmti::JVMTI_HEAP_REFERENCE_CONSTANT_POOL => Via::ConstantPool,
                _ => Via::OfClass,
            };
            if is_skipped && !is_target {
                return Ok(false);
            }
            self.log.refer(to, via).map_err(|Full| Failure::Log)?;
        }
        // An object without references of its own needs no visit.
        Ok(!is_skipped && !ends && self.visit(to, class))
    }

    /// Whether to visit an object: always, but it is promised once.
    #[inline]
    pub(super) fn visit(&mut self, to: u32, class: u32) -> bool {
        if self.seen.insert(to) && !self.classes.is_mirror(class) {
            let pending = self.pending.load(Ordering::Relaxed);
            self.pending.store(pending + 1, Ordering::Relaxed);
        }
        true
    }

    fn begin(&mut self, call: &Call, referrer: Object, from: u32) -> Result<(), Failure> {
        if call.referrer_class_tag != self.last_referrer_class.0 {
            let class = self.classes.number(call.referrer_class_tag);
            self.last_referrer_class = (call.referrer_class_tag, class);
        }
        let class = self.last_referrer_class.1;
        if self.recorded.insert(from) && !self.classes.is_mirror(class) {
            let pending = self.pending.load(Ordering::Relaxed);
            self.pending
                .store(pending.saturating_sub(1), Ordering::Relaxed);
        }
        (self.log.begin(from, class, referrer.tag)).map_err(|Full| Failure::Log)
    }

    #[inline]
    fn compact(&mut self, address: u64) -> Result<u32, Failure> {
        self.pieces.compact(address).ok_or(Failure::Pieces)
    }

    fn found(&mut self, target: RawTarget) {
        if let Some(place) = self.found.get_mut(self.found_count) {
            *place = target;
            self.found_count += 1;
        }
    }

    fn root(&mut self, call: &Call, object: Object, to: u32) -> Result<(), Failure> {
        let mut root = RawRoot {
            to,
            own_tag: object.tag as u64,
            kind: match call.kind {
                jvmti::JVMTI_HEAP_REFERENCE_JNI_GLOBAL => 0,
                jvmti::JVMTI_HEAP_REFERENCE_SYSTEM_CLASS => 1,
                jvmti::JVMTI_HEAP_REFERENCE_MONITOR => 2,
                jvmti::JVMTI_HEAP_REFERENCE_STACK_LOCAL => 3,
                jvmti::JVMTI_HEAP_REFERENCE_JNI_LOCAL => 4,
                jvmti::JVMTI_HEAP_REFERENCE_THREAD => 5,
                _ => 6,
            },
            ..RawRoot::default()
        };
        if !call.info.is_null() {
            if root.kind == 3 {
                // SAFETY: for a stack local the VM passes this structure.
                let local = unsafe { (*call.info).stack_local };
                root.thread_id = local.thread_id as u64;
                root.method = local.method as u64;
                root.depth = local.depth as u32;
                root.slot = local.slot as u32;
            } else if root.kind == 4 {
                // SAFETY: for a JNI local the VM passes this structure.
                let local = unsafe { (*call.info).jni_local };
                root.thread_id = local.thread_id as u64;
                root.method = local.method as u64;
                root.depth = local.depth as u32;
            }
        }
        self.add_root(root)
    }

    pub(super) fn add_root(&mut self, root: RawRoot) -> Result<(), Failure> {
        let place = self.roots.get_mut(self.root_count);
        *place.ok_or(Failure::Roots)? = root;
        self.root_count += 1;
        Ok(())
    }
}

#[cfg(test)]
impl Recorder<'_> {
    /// Writes an object of a made-up heap.
    pub(super) fn write(&mut self, from: u64, class: u32, own_tag: i64, to: &[(u64, Via)]) {
        let at = self.compact(from).expect("room");
        self.recorded.insert(at);
        self.log.begin(at, class, own_tag).expect("room");
        for &(to, via) in to {
            let to = self.compact(to).expect("room");
            self.log.refer(to, via).expect("room");
        }
    }

    /// Marks an object of a made-up heap as looked for.
    pub(super) fn look_for(&mut self, object: u64, tag: u64) {
        let at = self.compact(object).expect("room");
        self.target_bits.insert(at);
        self.found(RawTarget { tag, at, class: 0 });
    }

    /// Adds a root of a made-up heap.
    pub(super) fn root_at(&mut self, object: u64, kind: u32) {
        let to = self.compact(object).expect("room");
        self.roots[self.root_count] = RawRoot {
            to,
            kind,
            ..RawRoot::default()
        };
        self.root_count += 1;
    }

    /// Sets the class object of a class of a made-up heap.
    pub(super) fn mirror_at(&mut self, class: usize, object: u64) {
        self.mirrors[class] = self.compact(object).expect("room");
    }
}
