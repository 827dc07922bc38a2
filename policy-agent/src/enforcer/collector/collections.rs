//! Asks for collections: which collector this is, which requests it offers, and the requests.
//!
//! All of it runs code of the JDK, on the enforcer alone but for the call that waits for a collection
//! ([`Collections::collect`]), and only once a collection is needed.

use crate::ports::{CollectorInfo, CollectorKind as Collector, Means, Offer};

use std::time::{Duration, Instant};

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
/// With so much load, which is a mean over a minute, there will be some at the next turn of the enforcer as well.
const LEAST_LOAD: f64 = 0.05;
/// How often the flags are looked at while G1 is kept ready.
const LOOK_READY: Duration = Duration::from_millis(100);
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
    /// When the flags were last looked at to keep it so.
    looked_ready: Option<Instant>,
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
            looked_ready: None,
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
        let in_reach = flags
            .number(jni, PERIODIC)
            .is_some_and(|ms| ms <= LONGEST_PERIOD_MS);
        // G1 is kept ready only where the operator has no threshold.
        let threshold = match self.is_load_ours(jni, flags) {
            true => 0.0,
            false => flags.number(jni, LOAD).unwrap_or(0.0),
        };
        in_reach
            && flags.is_on(jni, INVOKES_CONCURRENT)
            && (threshold <= 0.0 || load_average().is_some_and(|load| load <= threshold))
    }

    fn is_load_ours(&self, jni: &Jni, flags: &Flags) -> bool {
        self.load_to_put_back.is_some() && flags.read(jni, LOAD).as_deref() == Some(ANY_LOAD)
    }

    /// Keeps G1 ready to begin a cycle within `PERIODIC_MS` of a request, instead of within a second: its service thread
    /// looks at the flags so often, and the load's threshold has it let every cycle be until
    /// [`Collections::request_cycle`] takes it away. `wanted`: false ends that. To be called in each turn while it is
    /// wanted, and while it returns true: a flag differs from the operator's value. If the load falls to nothing, or
    /// somebody else changes a flag, nothing would hold cycles back, or something would hold back those asked for.
    ///
    /// It is left out where the operator has a value of one of the two flags, or has G1's periodic collections stop the
    /// program. Not to be called between a request and [`Collections::put_back`].
    pub(crate) fn stay_ready(&mut self, jni: &Jni, wanted: bool) -> bool {
        if self.info.kind != Collector::G1 {
            return false;
        }
        let now = Instant::now();
        let is_ready = self.load_to_put_back.is_some();
        let is_due = (self.looked_ready).is_none_or(|then| now.duration_since(then) >= LOOK_READY);
        if is_due || !wanted {
            self.looked_ready = Some(now);
            let is_loaded = load_average().is_some_and(|load| load >= LEAST_LOAD);
            if is_ready && !(wanted && is_loaded && self.is_as_left(jni)) {
                self.put_back(jni);
            } else if !is_ready && self.to_put_back.is_some() {
                // A request's, which could not be put back.
                self.put_back(jni);
            } else if !is_ready && wanted && is_loaded {
                self.get_ready(jni);
            }
        }
        self.to_put_back.is_some() || self.load_to_put_back.is_some()
    }

    fn is_as_left(&self, jni: &Jni) -> bool {
        (self.flags.as_ref()).is_some_and(|flags| {
            self.is_load_ours(jni, flags)
                && flags.read(jni, PERIODIC).as_deref() == Some(PERIODIC_MS)
        })
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
                self.put_back(jni);
            }
        }
    }

    /// Has G1 start a concurrent cycle, at once if it is [ready](Collections::stay_ready) and otherwise within about a
    /// second. False when the VM refuses.
    pub(crate) fn request_cycle(&mut self, jni: &Jni) -> bool {
        let is_asked = self.ask(jni);
        if !is_asked {
            // Cycles would begin one after another with one flag left changed.
            self.put_back(jni);
        }
        is_asked
    }

    fn ask(&mut self, jni: &Jni) -> bool {
        let Some(flags) = &self.flags else {
            return false;
        };
        let Some(before) = flags.read(jni, PERIODIC) else {
            return false;
        };
        if before != PERIODIC_MS {
            if !flags.write(jni, PERIODIC, PERIODIC_MS) {
                return false;
            }
            // The operator's, also if he has changed it while it was ours.
            self.to_put_back = Some(before);
        } else if self.to_put_back.is_none() {
            self.to_put_back = Some(before);
        }
        Self::restore(flags, jni, LOAD, ANY_LOAD, &mut self.load_to_put_back)
    }

    /// Puts the flags back, unless somebody else has changed them since. False when the VM
    /// refuses: to be tried again.
    pub(crate) fn put_back(&mut self, jni: &Jni) -> bool {
        let Some(flags) = &self.flags else {
            return true;
        };
        // In this order: no cycle may begin in between.
        Self::restore(flags, jni, PERIODIC, PERIODIC_MS, &mut self.to_put_back)
            && Self::restore(flags, jni, LOAD, ANY_LOAD, &mut self.load_to_put_back)
    }

    /// Gives a flag the value that it had `before` it was set to `ours`. False when the VM refuses, or does not tell it.
    fn restore(
        flags: &Flags,
        jni: &Jni,
        name: &str,
        ours: &str,
        before: &mut Option<String>,
    ) -> bool {
        let Some(value) = before.as_deref() else {
            return true;
        };
        let Some(now) = flags.read(jni, name) else {
            return false;
        };
        if now == ours && !flags.write(jni, name, value) {
            return false;
        }
        *before = None;
        true
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
