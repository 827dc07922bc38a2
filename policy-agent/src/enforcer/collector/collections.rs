//! Asks for collections: which collector this is, which requests it offers, and the requests.
//!
//! All of it runs code of the JDK, on the enforcer alone but for the call that waits for a collection
//! ([`Collections::collect`]), and only once a collection is needed.

use crate::ports::{CollectorInfo, CollectorKind as Collector, Means, Offer};

use policy_jvm::{Flags, Global, Jni, JvmTi};

/// The manageable flag that makes G1 start concurrent cycles: milliseconds between them, 0 for
/// none.
const PERIODIC: &str = "G1PeriodicGCInterval";
/// The value that it is set to. G1's service thread looks at the flag again after so many milliseconds, and
/// lets a cycle be while the last collection was less than that ago: with 100 a service that
/// churns, a young collection every 15 to 50, held the verdict up for seconds.
const PERIODIC_MS: &str = "10";
/// The manageable flag of the system's load above which G1 lets a periodic cycle be, 0 for none.
const LOAD: &str = "G1PeriodicGCSystemLoadThreshold";
/// Whether periodic collections are concurrent cycles; otherwise they are full ones.
const INVOKES_CONCURRENT: &str = "G1PeriodicGCInvokesConcurrent";
/// A threshold that any load is above: the kernel states loads with two decimals.
const ANY_LOAD: &str = "0.001";
const ANY_LOAD_NUMBER: f64 = 0.001;
/// With so much load, which is a mean over a minute, there will be some at the next turn of the enforcer as well.
const LEAST_LOAD: f64 = 0.05;
/// A periodic collection of the operator's own that comes less often is not waited for: the
/// service thread does not look at the flag in between.
const LONGEST_PERIOD_MS: f64 = 2000.0;
/// The first release in which a ZGC without the flag `ZGenerational` has generations.
const FIRST_ZGC_WITH_GENERATIONS: u32 = 24;

/// The collections that this VM's collector can be asked for, and the flags for them.
pub(crate) struct Collections {
    flags: Option<Flags>,
    info: CollectorInfo,
    /// The value of the periodic flag before it was changed.
    to_put_back: Option<String>,
    /// While G1 is kept ready: the value of the load's threshold before it was changed.
    load_to_put_back: Option<String>,
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
        let reference_bytes = if on("UseCompressedOops") { 4 } else { 8 };
        Collections {
            info: CollectorInfo {
                kind: collector,
                region_bytes: region_bytes.map(|r| r as u64).filter(|r| *r > 0),
                reference_bytes,
                unloads_classes: flags.is_none() || on("ClassUnloading"),
            },
            to_put_back: None,
            load_to_put_back: None,
            flags,
        }
    }

    pub(crate) fn info(&self) -> CollectorInfo {
        self.info
    }

    /// Returns the collections that can be asked for now: the flags that decide may be changed while the VM runs.
    pub(crate) fn offer(&self, jni: &Jni) -> Offer {
        let Some(flags) = &self.flags else {
            return Offer::of(false, [Means::Full]);
        };
        let young = matches!(self.info.kind, Collector::StopTheWorld | Collector::G1);
        if !self.info.can_prove() {
            return Offer::of(young, []);
        }
        match self.info.kind {
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
        // G1 is kept ready only where the operator has no threshold.
        let threshold = match self.load_to_put_back {
            Some(_) => 0.0,
            None => flags.number(jni, LOAD).unwrap_or(0.0),
        };
        in_reach
            && flags.is_on(jni, INVOKES_CONCURRENT)
            && (threshold <= 0.0 || load_average().is_some_and(|load| load <= threshold))
    }

    /// Keeps G1 ready to begin a cycle within `PERIODIC_MS` of a request, instead of within a second: its service thread
    /// looks at the flags so often, and the load's threshold has it let every cycle be until
    /// [`Collections::request_cycle`] takes it away. `wanted`: false ends that. To be called in each turn while it is
    /// wanted: if the load falls to nothing, the threshold would hold no cycle back.
    ///
    /// It is left out where the operator has a value of one of the two flags, or has G1's periodic collections stop the
    /// program.
    pub(crate) fn stay_ready(&mut self, jni: &Jni, wanted: bool) {
        if self.info.kind != Collector::G1 {
            return;
        }
        let is_loaded = || load_average().is_some_and(|load| load >= LEAST_LOAD);
        match (self.load_to_put_back.is_some(), wanted) {
            (false, true) if self.to_put_back.is_none() && is_loaded() => self.get_ready(jni),
            (true, wanted) if !wanted || !is_loaded() => {
                self.put_back(jni);
            }
            _ => {}
        }
    }

    fn get_ready(&mut self, jni: &Jni) {
        let Some(flags) = &self.flags else { return };
        let is_zero = |name| flags.number(jni, name) == Some(0.0);
        if !is_zero(PERIODIC) || !is_zero(LOAD) || !flags.is_on(jni, INVOKES_CONCURRENT) {
            return;
        }
        let (Some(periodic), Some(load)) = (flags.read(jni, PERIODIC), flags.read(jni, LOAD))
        else {
            return;
        };
        // In this order: no cycle may begin in between.
        if flags.write(jni, LOAD, ANY_LOAD) {
            self.load_to_put_back = Some(load);
            if flags.write(jni, PERIODIC, PERIODIC_MS) {
                self.to_put_back = Some(periodic);
            } else {
                self.put_load_back(jni);
            }
        }
    }

    /// Takes the threshold away, unless somebody else has changed it since. False when the VM refuses.
    fn put_load_back(&mut self, jni: &Jni) -> bool {
        let (Some(flags), Some(before)) = (&self.flags, &self.load_to_put_back) else {
            return true;
        };
        let still_ours = flags.number(jni, LOAD) == Some(ANY_LOAD_NUMBER);
        if still_ours && !flags.write(jni, LOAD, before) {
            return false;
        }
        self.load_to_put_back = None;
        true
    }

    /// Has G1 start a concurrent cycle, at once if it is [ready](Collections::stay_ready) and otherwise within about a
    /// second. False when the VM refuses.
    pub(crate) fn request_cycle(&mut self, jni: &Jni) -> bool {
        if !self.put_load_back(jni) {
            return false;
        }
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

    /// Puts the flags back, unless somebody else has changed them since. False when the VM
    /// refuses: to be tried again.
    pub(crate) fn put_back(&mut self, jni: &Jni) -> bool {
        if let (Some(flags), Some(before)) = (&self.flags, &self.to_put_back) {
            let still_ours = flags.read(jni, PERIODIC).as_deref() == Some(PERIODIC_MS);
            if still_ours && !flags.write(jni, PERIODIC, before) {
                return false;
            }
            self.to_put_back = None;
        }
        // After the other: no cycle may begin in between.
        self.put_load_back(jni)
    }

    /// Asks for a collection in a way that waits for its end. False when the VM refuses.
    pub(crate) fn collect(
        means: Means,
        jni: &Jni,
        jvmti: &JvmTi,
        runtime: Option<&Global>,
    ) -> bool {
        match means {
            Means::Periodic => false,
            Means::Explicit => runtime
                .and_then(|runtime| runtime.local(jni))
                .is_some_and(|runtime| jni.call_void(&runtime, "gc")),
            Means::Forced | Means::Full => jvmti.collect().is_ok(),
        }
    }
}

/// The system's load over the last minute, as G1 compares it.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}
