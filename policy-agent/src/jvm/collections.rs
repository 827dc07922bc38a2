//! The means to a collection: which collector this is, what can be asked of it, and asking.
//!
//! All of it runs code of the JDK and is for the warden's thread alone. Nothing is touched
//! before a collection is first wanted.

use std::time::{Duration, Instant};

use super::flags::Flags;
use super::java::{Global, Jni};
use super::tools::JvmTi;

/// The collector, by what it means for asking it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collector {
    /// Serial or Parallel: young collections apart, old memory only by stopping the world.
    StopTheWorld,
    G1,
    /// ZGC and Shenandoah without generations: objects are freed by collections of the whole
    /// heap alone.
    Whole,
    /// ZGC with generations: tagged objects are freed by collections of old memory alone, which
    /// leave garbage that is still young where it is.
    GenerationalZgc,
    /// Shenandoah with generations.
    GenerationalShenandoah,
    /// A runtime without `jdk.management`, or a collector that is not known.
    Unknown,
}

/// A way to a collection that covers old memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Means {
    /// G1's periodic concurrent cycle, by changing a flag for a moment. Does not wait.
    Periodic,
    /// `System.gc()` where that is concurrent. Waits for the end of the cycle.
    Explicit,
    /// `ForceGarbageCollection` where that is concurrent. Waits for the end of the cycle.
    Forced,
    /// `ForceGarbageCollection` where that stops the world.
    Full,
}

impl Means {
    pub(crate) const ALL: [Means; 4] =
        [Means::Periodic, Means::Explicit, Means::Forced, Means::Full];

    /// The label in the metrics.
    pub(crate) const fn kind(self) -> &'static str {
        match self {
            Means::Periodic | Means::Explicit | Means::Forced => "concurrent",
            Means::Full => "full",
        }
    }
}

/// What the collector offers now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Offer {
    /// Young collections apart, which allocating brings about.
    pub(crate) young: bool,
    covering: [Option<Means>; 4],
}

impl Offer {
    /// An offer of these means, the best first.
    pub(crate) fn of(young: bool, means: impl IntoIterator<Item = Means>) -> Offer {
        let mut covering = [None; 4];
        for (place, means) in covering.iter_mut().zip(means) {
            *place = Some(means);
        }
        Offer { young, covering }
    }

    /// Of this offer only a concurrent cycle that nobody waits for: in `System.gc()` the warden would
    /// stay until the cycle is over, and no marks move meanwhile.
    pub(crate) fn gently(&self) -> Offer {
        Offer::of(
            false,
            self.covering().filter(|means| *means == Means::Periodic),
        )
    }

    /// The ways to a collection of old memory, the best first.
    pub(crate) fn covering(&self) -> impl Iterator<Item = Means> + '_ {
        self.covering.iter().flatten().copied()
    }
}

/// The manageable flag that makes G1 start concurrent cycles: milliseconds between them, 0 for
/// none.
const PERIODIC: &str = "G1PeriodicGCInterval";
/// What it is set to. G1's service thread looks at the flag again after so many milliseconds, and
/// lets a cycle be while the last collection was less than that ago: with 100 a service that
/// churns, a young collection every 15 to 50, held the verdict up for seconds.
const PERIODIC_MS: &str = "10";
/// A periodic collection of the operator's own that comes less often is not waited for: the
/// service thread does not look at the flag in between.
const LONGEST_PERIOD_MS: f64 = 2000.0;
/// The first release in which a ZGC without the flag `ZGenerational` has generations.
const FIRST_ZGC_WITH_GENERATIONS: u32 = 24;
/// The array that is allocated again and again until a young collection begins.
const YOUNG_BYTES: usize = 64 << 10;

/// What can be asked of this VM's collector.
pub(crate) struct Collections {
    flags: Option<Flags>,
    collector: Collector,
    /// The array length from which on G1 allocates outside young memory.
    humongous_elements: Option<i32>,
    humongous_bytes: u64,
    /// Classes that nobody refers to are unloaded, and can be old canaries.
    unloads: bool,
    /// What the periodic flag was before it was changed.
    to_put_back: Option<String>,
}

impl Collections {
    /// Finds out which collector this is.
    pub(crate) fn find(jni: &Jni, release: u32) -> Collections {
        let flags = Flags::open(jni);
        let on = |name| flags.as_ref().is_some_and(|flags| flags.is_on(jni, name));
        let collector = if on("UseG1GC") {
            Collector::G1
        } else if on("UseSerialGC") || on("UseParallelGC") {
            Collector::StopTheWorld
        } else if on("UseZGC") {
            // The flag came with generations, and went with the other kind in JDK 24.
            let flag = (flags.as_ref()).and_then(|flags| flags.read(jni, "ZGenerational"));
            match flag.as_deref() {
                Some("true") => Collector::GenerationalZgc,
                None if release >= FIRST_ZGC_WITH_GENERATIONS => Collector::GenerationalZgc,
                _ => Collector::Whole,
            }
        } else if on("UseShenandoahGC") {
            let mode = flags
                .as_ref()
                .and_then(|flags| flags.read(jni, "ShenandoahGCMode"));
            if mode.as_deref() == Some("generational") {
                Collector::GenerationalShenandoah
            } else {
                Collector::Whole
            }
        } else {
            Collector::Unknown
        };
        let region_bytes = flags
            .as_ref()
            .filter(|_| collector == Collector::G1)
            .and_then(|flags| flags.number(jni, "G1HeapRegionSize"));
        let reference_bytes = if on("UseCompressedOops") { 4.0 } else { 8.0 };
        Collections {
            collector,
            // More than half a region.
            humongous_elements: region_bytes.map(|r| (r / 2.0 / reference_bytes) as i32 + 1),
            humongous_bytes: region_bytes.map_or(0, |r| r as u64),
            to_put_back: None,
            unloads: flags.is_none() || on("ClassUnloading"),
            flags,
        }
    }

    pub(crate) fn collector(&self) -> Collector {
        self.collector
    }

    /// The size of G1's regions; `None` with other collectors.
    pub(crate) fn region_bytes(&self) -> Option<u64> {
        Some(self.humongous_bytes).filter(|bytes| *bytes > 0)
    }

    /// Whether a collection of old memory can be told from any other.
    pub(crate) fn can_prove(&self) -> bool {
        use Collector::{G1, GenerationalZgc, Whole};
        self.unloads || matches!(self.collector, Whole | GenerationalZgc | G1)
    }

    /// What can be asked for now: the flags that decide may be changed while the VM runs.
    pub(crate) fn offer(&self, jni: &Jni) -> Offer {
        let Some(flags) = &self.flags else {
            return Offer::of(false, [Means::Full]);
        };
        let young = matches!(self.collector, Collector::StopTheWorld | Collector::G1);
        if !self.can_prove() {
            return Offer::of(young, []);
        }
        match self.collector {
            Collector::StopTheWorld => Offer::of(true, [Means::Full]),
            Collector::G1 => {
                let periodic = self
                    .periodic_would_run(jni, flags)
                    .then_some(Means::Periodic);
                let explicit = (flags.is_on(jni, "ExplicitGCInvokesConcurrent")
                    && !flags.is_on(jni, "DisableExplicitGC"))
                .then_some(Means::Explicit);
                let ways = [periodic, explicit, Some(Means::Full)];
                Offer::of(true, ways.into_iter().flatten())
            }
            Collector::Whole | Collector::GenerationalZgc | Collector::GenerationalShenandoah => {
                // Shenandoah alone heeds the flag; ZGC has no other way than the concurrent.
                let stops = flags.is_on(jni, "UseShenandoahGC")
                    && !flags.is_on(jni, "ExplicitGCInvokesConcurrent");
                Offer::of(false, [if stops { Means::Full } else { Means::Forced }])
            }
            Collector::Unknown => Offer::of(false, [Means::Full]),
        }
    }

    /// Whether G1 would start a *concurrent* cycle if the flag were set now, and soon.
    fn periodic_would_run(&self, jni: &Jni, flags: &Flags) -> bool {
        let in_reach = self.to_put_back.is_some()
            || flags
                .number(jni, PERIODIC)
                .is_some_and(|ms| ms <= LONGEST_PERIOD_MS);
        let threshold = flags
            .number(jni, "G1PeriodicGCSystemLoadThreshold")
            .unwrap_or(0.0);
        in_reach
            && flags.is_on(jni, "G1PeriodicGCInvokesConcurrent")
            && (threshold <= 0.0 || load_average().is_some_and(|load| load <= threshold))
    }

    /// Has G1 start a concurrent cycle, within about a second. False when the VM refuses.
    pub(crate) fn request_cycle(&mut self, jni: &Jni) -> bool {
        let Some(flags) = &self.flags else {
            return false;
        };
        let Some(before) = flags.read(jni, PERIODIC) else {
            return false;
        };
        if !flags.write(jni, PERIODIC, PERIODIC_MS) {
            return false;
        }
        // A second request before the first was put back must not take ours for the operator's.
        self.to_put_back.get_or_insert(before);
        true
    }

    /// Puts the flag back, unless somebody else has changed it since. False when the VM
    /// refuses: to be tried again.
    pub(crate) fn put_back(&mut self, jni: &Jni) -> bool {
        let (Some(flags), Some(before)) = (&self.flags, &self.to_put_back) else {
            return true;
        };
        let still_ours = flags.read(jni, PERIODIC).as_deref() == Some(PERIODIC_MS);
        if still_ours && !flags.write(jni, PERIODIC, before) {
            return false;
        }
        self.to_put_back = None;
        true
    }

    /// Asks for a collection in a way that waits for its end. False when the VM refuses.
    pub(crate) fn collect(&self, means: Means, jni: &Jni, tools: &JvmTi, runtime: &Global) -> bool {
        match means {
            Means::Periodic => false,
            Means::Explicit => runtime
                .local(jni)
                .is_some_and(|runtime| jni.call_void(&runtime, c"gc", c"()V", &[])),
            Means::Forced | Means::Full => tools.collect().is_ok(),
        }
    }

    /// The length of an array of references that G1 allocates outside young memory, if there
    /// certainly is room for two with `used` of `max` bytes in use. An allocation that finds no
    /// region would have G1 collect everything.
    ///
    /// Bytes in use can lie in twice as many bytes of regions: what does not fit into the rest
    /// of a region is more than half of one.
    pub(crate) fn humongous_elements(&self, used_bytes: u64, max_bytes: u64) -> Option<i32> {
        const SPARE_REGIONS: u64 = 16;
        let elements = self.humongous_elements?;
        let taken = used_bytes
            .saturating_mul(2)
            .saturating_add(self.humongous_bytes.saturating_mul(SPARE_REGIONS));
        (taken < max_bytes).then_some(elements)
    }
}

/// What allocating towards a young collection came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provoked {
    /// A pause has ended.
    Begun,
    /// The time for this turn is over.
    NotYet,
    /// There is no memory for it.
    NoRoom,
}

/// Allocates and drops arrays on this thread until `begun` says that a pause has ended, or for
/// `longest`, or `most_bytes`; adds what it allocated to `allocated`.
pub(crate) fn provoke_young(
    jni: &Jni,
    begun: impl Fn() -> bool,
    longest: Duration,
    most_bytes: u64,
    allocated: &mut u64,
) -> Provoked {
    let started = Instant::now();
    while !begun() {
        if *allocated >= most_bytes {
            return Provoked::NoRoom;
        }
        if started.elapsed() >= longest {
            return Provoked::NotYet;
        }
        if !jni.allocate_bytes(YOUNG_BYTES) {
            return Provoked::NoRoom;
        }
        *allocated += YOUNG_BYTES as u64;
    }
    Provoked::Begun
}

/// The system's load over the last minute, as G1 compares it.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}
