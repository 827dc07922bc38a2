//! The services that the core asks of the JVM: the traits that an adapter implements.
//!
//! Java objects that the core must keep are opaque [`Token`]s; other Java objects stay in the adapter.
//! The tests implement the same traits with a simulated JVM.
//!
//! They are for the agent's own threads. What enforcement asks beside them, of an allocating thread as well, is in
//! [`crate::enforce::ports`].

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::identity::loaders::LoaderId;

/// A Java object that the core keeps without knowing what it is. Only the adapter that made it can
/// open it.
pub type Token = Arc<dyn Any + Send + Sync>;

/// The time, and sleeping.
pub trait Clock {
    /// The time now.
    fn now(&self) -> Instant;
    /// Milliseconds since the agent was made.
    fn uptime_ms(&self) -> u64;
    /// Blocks the calling agent thread for at most so long.
    fn sleep(&self, longest: Duration);
    /// Whether the VM is going down. No call of these traits may block on the VM then.
    fn is_stopping(&self) -> bool;
}

/// The heap as a whole.
pub trait Heap {
    /// Bytes in use now, garbage included; `None` if the VM does not report it.
    fn used_bytes(&self) -> Option<u64>;
}

/// The kind of collector, as far as it matters for asking it for a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectorKind {
    /// Serial or Parallel: separate young collections; collecting old memory stops the world.
    StopTheWorld,
    /// G1: young collections, and concurrent cycles for old memory.
    G1,
    /// ZGC and Shenandoah without generations: only collections of the whole heap free objects.
    Whole,
    /// ZGC with generations: only collections of old memory free tagged objects, and they leave
    /// garbage that is still young.
    GenerationalZgc,
    /// Shenandoah with generations.
    GenerationalShenandoah,
    /// A runtime without `jdk.management`, or an unknown collector.
    Unknown,
}

impl CollectorKind {
    /// Whether the heap is emptier between two pauses than at the end of any.
    #[must_use]
    pub fn frees_between_pauses(self) -> bool {
        !matches!(self, CollectorKind::StopTheWorld | CollectorKind::G1)
    }
}

/// The properties of the collector, which do not change while the VM runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectorInfo {
    /// Its kind.
    pub kind: CollectorKind,
    /// The size of G1's regions in bytes; `None` with other collectors.
    pub region_bytes: Option<u64>,
    /// The size of a reference in an array, in bytes.
    pub reference_bytes: u64,
    /// Whether unreachable classes are unloaded, so that they can be canaries of old memory.
    pub unloads_classes: bool,
}

impl CollectorInfo {
    /// Whether the agent can recognise a collection of old memory.
    #[must_use]
    pub fn can_prove(&self) -> bool {
        use CollectorKind::{G1, GenerationalZgc, Whole};
        self.unloads_classes || matches!(self.kind, Whole | GenerationalZgc | G1)
    }

    /// The length of an array of references that G1 allocates outside young memory, if there is
    /// certainly room for two of them with `used_bytes` of `max_bytes` in use. An allocation that finds
    /// no free region would make G1 collect the whole heap.
    ///
    /// The bytes in use can occupy up to twice as many bytes of regions: an object that does not
    /// fit into the rest of a region may be larger than half a region.
    #[must_use]
    pub fn humongous_elements(&self, used_bytes: u64, max_bytes: u64) -> Option<i32> {
        const SPARE_REGIONS: u64 = 16;
        let region_bytes = self.region_bytes?;
        // More than half a region.
        let elements = i32::try_from(region_bytes / 2 / self.reference_bytes.max(1) + 1).ok()?;
        let taken = used_bytes
            .saturating_mul(2)
            .saturating_add(region_bytes.saturating_mul(SPARE_REGIONS));
        (taken < max_bytes).then_some(elements)
    }
}

/// A means of getting a collection that covers old memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// G1's periodic concurrent cycle, by changing a flag for a short time. Does not wait.
    Periodic,
    /// `System.gc()`, if that is concurrent. Waits for the end of the cycle.
    Explicit,
    /// `ForceGarbageCollection`, if that is concurrent. Waits for the end of the cycle.
    Forced,
    /// `ForceGarbageCollection`, if that stops the world.
    Full,
}

impl Means {
    /// All means, each at the index that is its number.
    pub const ALL: [Means; 4] = [Means::Periodic, Means::Explicit, Means::Forced, Means::Full];

    /// The label in the metrics.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Means::Periodic | Means::Explicit | Means::Forced => "concurrent",
            Means::Full => "full",
        }
    }
}

/// The kinds of collection that the collector offers now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offer {
    /// Separate young collections, which allocation causes.
    pub young: bool,
    covering: [Option<Means>; 4],
}

impl Offer {
    /// An offer of these means, the best first; `young` says whether there are young collections.
    pub fn of(young: bool, means: impl IntoIterator<Item = Means>) -> Offer {
        let mut covering = [None; 4];
        for (place, means) in covering.iter_mut().zip(means) {
            *place = Some(means);
        }
        Offer { young, covering }
    }

    /// The part of this offer that is a concurrent cycle without waiting. `System.gc()` would block
    /// the enforcer until the cycle is over, and it could not move any marks meanwhile.
    #[must_use]
    pub fn gently(&self) -> Offer {
        Offer::of(
            false,
            self.covering().filter(|means| *means == Means::Periodic),
        )
    }

    /// The part of this offer that does not stop the world.
    #[must_use]
    pub fn concurrent(&self) -> Offer {
        Offer::of(false, self.covering().filter(|means| *means != Means::Full))
    }

    /// The means of collecting old memory, the best first.
    pub fn covering(&self) -> impl Iterator<Item = Means> + '_ {
        self.covering.iter().flatten().copied()
    }
}

/// Whether refunds are being delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Every batch of refunds of which a report was seen is complete.
    Complete,
    /// A thread that reports deaths is running, or may be.
    UnderWay,
    /// The kernel does not show it.
    Unknown,
}

/// The end of a collection that was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Whether the VM ran it; otherwise it refused.
    pub has_run: bool,
    /// When the call returned.
    pub at: Instant,
}

/// The collector, and how to ask it for collections. On one thread of the agent, the enforcer's.
pub trait Collector {
    /// Its properties. The first call runs code of the JDK and allocates strings, so it must not come
    /// at a full heap.
    fn info(&self) -> CollectorInfo;
    /// Returns the collections that can be asked for now; they depend on flags that may change while the VM runs.
    fn offer(&self) -> Offer;
    /// Keeps G1 ready to start a cycle at once when it is requested; `wanted`: false ends that. Returns whether a flag of
    /// its differs from the operator's setting; to be called in each turn while it does, or while it is wanted, but not
    /// while a requested cycle is awaited. Nothing happens where the operator's settings or the kernel do not allow it.
    /// Like [`Collector::info`] not at a full heap.
    fn stay_ready(&self, wanted: bool) -> bool;
    /// Makes G1 start a concurrent cycle within about a second, or at once if it is kept ready. False if the VM
    /// refuses.
    fn request_cycle(&self) -> bool;
    /// Restores G1's flags, unless somebody else has changed them since. False if the VM refuses; then try
    /// again later.
    fn put_flag_back(&self) -> bool;
    /// A number that grows when a cycle of G1 begins and while it runs, and is constant otherwise;
    /// `None` if the kernel does not show it.
    fn cycle_activity(&self) -> Option<u64>;
    /// Finds the collector's threads for [`Collector::collector_time`]; it starts some of them late.
    fn find_collector_threads(&self);
    /// How long all processors together would have worked so far on what the collector's threads and the
    /// calling thread have done; a pause counts as long as it lasts. `None` if the kernel does not show it.
    fn collector_time(&self) -> Option<Duration>;
    /// Has another thread of the agent ask for a collection, by means that wait for its end. One at a time: the next
    /// once [`Collector::collection_ended`] has told of this one.
    fn begin_collection(&self, means: Means);
    /// Returns how the collection that was begun has ended; `None` while it runs. Told once.
    fn collection_ended(&self) -> Option<Ended>;
    /// Whether the threads that have reported deaths so far are done.
    fn delivery(&self) -> Delivery;
    /// Allocates and drops `bytes` on the calling thread; false if there is no memory for it.
    fn allocate_garbage(&self, bytes: usize) -> bool;
}

/// Objects whose deaths prove collections. They belong to the agent and are not charged. Callers make
/// none at a full heap, where the allocation could fail. Each call returns whether it succeeded.
///
/// Tags are those of [`crate::ledger::Tag`], encoded.
pub trait Canaries {
    /// Allocates an object with this tag and drops it.
    fn plant(&self, tag: i64) -> bool;
    /// Makes a class that is unloaded once it is unreachable, and keeps it in stock.
    fn stock_class(&self) -> bool;
    /// Tags the oldest class in stock and an instance of it, and drops both.
    fn drop_stocked_class(&self, class_tag: i64, instance_tag: i64) -> bool;
    /// Makes a class, tags it and an instance of it, and drops both.
    fn plant_class(&self, class_tag: i64, instance_tag: i64) -> bool;
    /// Makes two arrays of references, with `elements` elements each, that refer to each other, and
    /// keeps them in stock.
    fn stock_arrays(&self, elements: i32) -> bool;
    /// Tags the arrays in stock and drops them.
    fn drop_stocked_arrays(&self, tag: i64) -> bool;
    /// Makes two such arrays, tags them and drops them.
    fn plant_arrays(&self, elements: i32, tag: i64) -> bool;
    /// Drops everything in stock, without tags.
    fn release_stock(&self);
}

/// The VM's allocation sampler, and the cost of samples.
pub trait Sampler {
    /// Sets the mean distance between samples in bytes; each thread uses it from its next sample on.
    ///
    /// # Errors
    /// Why the VM refuses.
    fn set_interval(&self, bytes: u64) -> Result<(), String>;
    /// CPU time of all samples and their refunds, and how many samples were timed for that estimate.
    fn samples_cpu(&self) -> (Duration, u64);
    /// CPU time of the process.
    fn process_cpu(&self) -> Duration;
}

/// The Java objects that the agent refers to on the core's behalf.
pub trait References {
    /// An account's name as a Java string, for the error of a refusal; made once and kept. `None` if the
    /// heap has no room. Called for each account with a limit in each turn of the enforcer.
    fn account_name(&self, name: &Arc<str>) -> Option<Token>;
    /// Releases the names for which `is_limited` is false, once no thread can be using them.
    fn forget_account_names(&self, is_limited: &dyn Fn(&str) -> bool);
    /// The loaders whose weak reference is cleared.
    fn vanished_loaders(&self) -> Vec<LoaderId>;
    /// Releases the weak reference to a loader that is gone. True if the directory did not know the
    /// loader yet.
    fn forget_loader(&self, loader: LoaderId) -> bool;
}
