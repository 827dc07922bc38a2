//! The JDKs and collectors that tests run on.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};

use crate::fixture::built_once;
use heapwarden_harness::jdk;
pub use heapwarden_harness::jdk::Jdk;

/// Tests that do not run on every JDK: a Java runtime lacks programs that a JDK has. Each names what it
/// needs; [`every_jdk_for`] prints a line for each JDK that a test leaves out.
const NEEDS: [(&str, Needs); 7] = [
    ("a_compiler_writes_the_same_class_files", JAVAC),
    (
        "a_compiler_that_counts_its_contexts_is_verified_and_works_as_before",
        JAVAC,
    ),
    (
        "every_class_of_the_jdk_works_as_before_with_insertions_everywhere",
        JAVAC,
    ),
    (
        "programs_and_their_neighbours_survive_a_storm_of_refusals",
        JAVAC,
    ),
    (
        "the_class_files_are_what_every_compiler_makes_of_the_sources",
        JAVAC,
    ),
    (
        "tools_started_with_the_flag_print_what_they_print_without: javac",
        JAVAC,
    ),
    (
        "tools_started_with_the_flag_print_what_they_print_without: jar",
        JAR,
    ),
];

/// A program of a JDK, and the module that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    program: &'static str,
    module: &'static str,
}

/// The Java compiler.
pub const JAVAC: Needs = Needs {
    program: "javac",
    module: "jdk.compiler",
};

/// The archiver.
pub const JAR: Needs = Needs {
    program: "jar",
    module: "jdk.jartool",
};

/// A garbage collector with the flags that choose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collector {
    /// `-XX:+UseSerialGC`
    Serial,
    /// `-XX:+UseParallelGC`
    Parallel,
    /// `-XX:+UseG1GC`
    G1,
    /// `-XX:+UseZGC` as the JDK has it by default: one generation to 22, two from 23.
    Z,
    /// `-XX:+UseZGC -XX:+ZGenerational`, where that is a choice (21 to 23).
    GenerationalZ,
    /// `-XX:+UseShenandoahGC`
    Shenandoah,
}

impl Collector {
    /// All, in the order in which they are tried.
    pub const ALL: [Self; 6] = [
        Self::Serial,
        Self::Parallel,
        Self::G1,
        Self::Z,
        Self::GenerationalZ,
        Self::Shenandoah,
    ];

    /// JVM flags.
    #[must_use]
    pub const fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Serial => &["-XX:+UseSerialGC"],
            Self::Parallel => &["-XX:+UseParallelGC"],
            Self::G1 => &["-XX:+UseG1GC"],
            Self::Z => &["-XX:+UseZGC"],
            Self::GenerationalZ => &["-XX:+UseZGC", "-XX:+ZGenerational"],
            Self::Shenandoah => &["-XX:+UseShenandoahGC"],
        }
    }
}

/// A JDK with one of its collectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vm {
    /// The JDK.
    pub jdk: Jdk,
    /// The collector.
    pub collector: Collector,
}

impl fmt::Display for Vm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "JDK {} {:?}", self.jdk.feature, self.collector)
    }
}

/// Every JDK and Java runtime found, oldest first.
///
/// # Panics
/// If there is none: a run that tests nothing must not look like a success.
pub fn every_jdk() -> &'static [Jdk] {
    static JDKS: OnceLock<Vec<Jdk>> = OnceLock::new();
    JDKS.get_or_init(|| {
        let found = jdk::every().unwrap_or_else(|error| panic!("{error:#}"));
        let runtime = &jdk::RUNTIME_21;
        if !found.iter().any(|jdk| jdk.feature == 21) {
            say(&format!(
                "no JDK 21 here, nothing is tested on it: `cargo xtask test` installs {} {}",
                runtime.package, runtime.version
            ));
        }
        found
    })
}

/// Every JDK that has what a test needs; the test and its need are listed in `NEEDS`. Prints a line
/// for each JDK that is left out.
///
/// # Panics
/// If the list has no such entry, or no JDK has what is needed.
pub fn every_jdk_for(test: &str, needs: Needs) -> Vec<&'static Jdk> {
    assert!(
        NEEDS.contains(&(test, needs)),
        "{test} is not listed with {needs:?}"
    );
    let (able, unable): (Vec<&Jdk>, Vec<&Jdk>) = every_jdk()
        .iter()
        .partition(|jdk| jdk.program(needs.program).exists());
    for jdk in unable {
        say(&format!("{test}: not on {jdk}: needs {}", needs.module));
    }
    assert!(!able.is_empty(), "no JDK here has {}", needs.module);
    able
}

/// The JDK that fixtures are compiled with: see [`jdk::for_builds`].
///
/// # Panics
/// If no JDK has a compiler.
#[must_use]
pub fn compiler() -> &'static Jdk {
    jdk::for_builds(every_jdk()).unwrap_or_else(|error| panic!("{error:#}"))
}

/// A JDK that compiles for this version of Java and later; `None` if there is none.
#[must_use]
pub fn compiler_for(release: u32) -> Option<&'static Jdk> {
    let mut newest_first = every_jdk().iter().rev();
    newest_first.find(|jdk| jdk.feature >= release && jdk.can_compile())
}

/// Writes a line to standard error that the test runner does not capture.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "note: {line}");
}

/// The newest JDK found.
pub fn newest() -> &'static Jdk {
    every_jdk().last().expect("every_jdk is never empty")
}

/// Every JDK with each collector that it starts with.
pub fn every_vm() -> &'static [Vm] {
    static VMS: OnceLock<Vec<Vm>> = OnceLock::new();
    VMS.get_or_init(|| {
        let is_wanted = |vm: &Vm| {
            let left_out = [
                ("HEAPWARDEN_TEST_COLLECTORS", format!("{:?}", vm.collector)),
                ("HEAPWARDEN_TEST_JDKS", vm.jdk.feature.to_string()),
            ]
            .into_iter()
            .find(|(variable, name)| {
                std::env::var(variable).is_ok_and(|list| !list.split(',').any(|word| word == name))
            });
            if let Some((variable, _)) = &left_out {
                say(&format!("{vm} is left out by {variable}"));
            }
            left_out.is_none()
        };
        let jdks = every_jdk().iter();
        jdks.flat_map(with_collectors).filter(is_wanted).collect()
    })
}

/// A few of [`every_vm`]: each collector once, and each JDK. For tests of what depends on neither alone;
/// `turn` chooses which collector meets which JDK, so that tests with different turns meet different
/// pairs. `cargo xtask test --long` runs them on every VM.
#[must_use]
pub fn some_vms(turn: usize) -> Vec<Vm> {
    if is_long() {
        return every_vm().to_vec();
    }
    some_of(every_vm(), turn)
}

fn some_of(vms: &[Vm], turn: usize) -> Vec<Vm> {
    let jdks: BTreeSet<&Jdk> = vms.iter().map(|vm| &vm.jdk).collect();
    let mut chosen: Vec<&Vm> = Vec::new();
    for (at, collector) in Collector::ALL.into_iter().enumerate() {
        let having: Vec<&Vm> = vms.iter().filter(|vm| vm.collector == collector).collect();
        if !having.is_empty() {
            chosen.push(having[(at + turn) % having.len()]);
        }
    }
    // A JDK that no collector has met yet gets one.
    for jdk in jdks {
        if !chosen.iter().any(|vm| vm.jdk == *jdk) {
            chosen.extend(vms.iter().find(|vm| vm.jdk == *jdk));
        }
    }
    chosen.into_iter().cloned().collect()
}

/// Whether `cargo xtask test --long` runs this: longer storms, and every VM in each test.
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("HEAPWARDEN_TEST_LONG").is_some()
}

/// The given collector on every JDK that has it.
#[must_use]
pub fn every_jdk_with(collector: Collector) -> Vec<Vm> {
    let vms: Vec<Vm> = every_vm()
        .iter()
        .filter(|vm| vm.collector == collector)
        .cloned()
        .collect();
    assert!(!vms.is_empty(), "no JDK here has {collector:?}");
    vms
}

/// A JDK with each collector that it starts with. They are tried once for all test processes.
fn with_collectors(jdk: &Jdk) -> Vec<Vm> {
    const LIST: &str = "collectors";
    let release = jdk.home.join("release").display().to_string();
    let name = format!("collectors-{}", release.replace('/', "-"));
    let folder = built_once(&name, &[&release], |into| {
        let able = Collector::ALL
            .into_iter()
            .filter(|&collector| starts(jdk, collector));
        let names: Vec<String> = able.map(|collector| format!("{collector:?}")).collect();
        std::fs::write(into.join(LIST), names.join("\n")).expect("the target folder is writable");
    });
    let able = std::fs::read_to_string(folder.join(LIST)).expect("it was written");
    Collector::ALL
        .into_iter()
        .filter(|collector| able.lines().any(|name| name == format!("{collector:?}")))
        .map(|collector| Vm {
            jdk: jdk.clone(),
            collector,
        })
        .collect()
}

/// The given collector on one JDK that has it: `turn` chooses which. For tests of what does not depend on
/// the JDK. `cargo xtask test --long` runs them on every JDK.
#[must_use]
pub fn one_jdk_with(collector: Collector, turn: usize) -> Vec<Vm> {
    let mut vms = every_jdk_with(collector);
    if !is_long() {
        vms = vec![vms.swap_remove(turn % vms.len())];
    }
    vms
}

fn starts(jdk: &Jdk, collector: Collector) -> bool {
    // Accepted and ignored with a warning from 24 on: the same as `Z` there.
    if collector == Collector::GenerationalZ && !(21..=23).contains(&jdk.feature) {
        return false;
    }
    Command::new(jdk.program("java"))
        .args(collector.flags())
        .args(["-Xmx64m", "-version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs `case` on each VM, two at a time, and reports every failure, not only the first.
///
/// # Panics
/// With the names of the VMs on which `case` panicked.
pub fn on_each(vms: &[Vm], case: impl Fn(&Vm) + Sync) {
    on_each_at_once(2, vms, case);
}

/// As [`on_each`], so many at a time.
///
/// # Panics
/// As [`on_each`].
pub fn on_each_at_once(count: usize, vms: &[Vm], case: impl Fn(&Vm) + Sync) {
    let queue = Mutex::new(vms.iter());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                loop {
                    let Some(vm) = queue.lock().expect("never held over a panic").next() else {
                        return;
                    };
                    let run = std::panic::AssertUnwindSafe(|| case(vm));
                    if let Err(panic) = std::panic::catch_unwind(run) {
                        let text = panic
                            .downcast_ref::<String>()
                            .cloned()
                            .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
                            .unwrap_or_default();
                        let line = format!("[{vm}] {text}");
                        failed.lock().expect("never held over a panic").push(line);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("never held over a panic");
    assert!(
        failed.is_empty(),
        "failed on {} of {} VMs:\n{}",
        failed.len(),
        vms.len(),
        failed.join("\n")
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn some_vms_have_every_collector_and_every_jdk() {
        let jdk = |feature: u32| Jdk {
            feature,
            version: feature.to_string(),
            vendor: String::new(),
            home: PathBuf::from(format!("/jdk-{feature}")),
        };
        let vm = |feature, collector| Vm {
            jdk: jdk(feature),
            collector,
        };
        let mut vms = Vec::new();
        for feature in [17, 21, 25] {
            vms.extend(Collector::ALL.map(|collector| vm(feature, collector)));
        }
        vms.retain(|vm| vm.collector != Collector::GenerationalZ || vm.jdk.feature == 21);
        let mut met = BTreeSet::new();
        for turn in 0..3 {
            let some = some_of(&vms, turn);
            assert_eq!(some.len(), Collector::ALL.len());
            for collector in Collector::ALL {
                assert!(some.iter().any(|vm| vm.collector == collector));
            }
            for feature in [17, 21, 25] {
                assert!(
                    some.iter().any(|vm| vm.jdk.feature == feature),
                    "{turn}: {some:?}"
                );
            }
            met.extend(some.iter().map(ToString::to_string));
        }
        assert_eq!(met.len(), vms.len(), "three turns meet every pair");

        let lonely = [vm(17, Collector::Serial), vm(21, Collector::Serial)];
        assert_eq!(
            some_of(&lonely, 0).len(),
            2,
            "a collector twice, for its JDK"
        );
    }
}
