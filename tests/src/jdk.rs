//! Which JDKs and collectors there are on this machine.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// One JDK, by its real path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Jdk {
    /// Feature release: 17, 21, 25.
    pub feature: u32,
    /// Home folder, symbolic links resolved.
    pub home: PathBuf,
}

impl Jdk {
    /// Path of one of its commands, for example `java`.
    #[must_use]
    pub fn tool(&self, name: &str) -> PathBuf {
        self.home.join("bin").join(name)
    }

    fn at(home: &Path) -> Option<Self> {
        let home = home.canonicalize().ok()?;
        if !home.join("bin/javac").exists() {
            return None;
        }
        let release = std::fs::read_to_string(home.join("release")).ok()?;
        let version = release
            .lines()
            .find_map(|line| line.strip_prefix("JAVA_VERSION=\""))?;
        let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
        let feature = digits.parse().ok()?;
        Some(Self { feature, home })
    }
}

impl fmt::Display for Jdk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "JDK {}", self.feature)
    }
}

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
        write!(out, "{} {:?}", self.jdk, self.collector)
    }
}

/// Every JDK found in `JAVA_HOME` and `/usr/lib/jvm`, oldest first, each real path once.
///
/// # Panics
/// If there is none: a run that tests nothing must not look like a success.
pub fn every_jdk() -> &'static [Jdk] {
    static JDKS: OnceLock<Vec<Jdk>> = OnceLock::new();
    JDKS.get_or_init(|| {
        let installed = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten();
        let homes = std::env::var_os("JAVA_HOME")
            .map(PathBuf::from)
            .into_iter()
            .chain(installed.flatten().map(|entry| entry.path()));
        let found: BTreeSet<Jdk> = homes
            .filter_map(|home| Jdk::at(&home))
            .filter(|jdk| jdk.feature >= 17)
            .collect();
        assert!(
            !found.is_empty(),
            "no JDK of release 17 or later in JAVA_HOME or /usr/lib/jvm: \
             apt-get install openjdk-17-jdk-headless"
        );
        for jdk in &found {
            eprintln!("testing on {jdk}: {}", jdk.home.display());
        }
        found.into_iter().collect()
    })
}

/// The newest JDK found.
pub fn newest() -> &'static Jdk {
    every_jdk().last().expect("every_jdk is never empty")
}

/// Every JDK with each collector that it starts with.
pub fn every_vm() -> &'static [Vm] {
    static VMS: OnceLock<Vec<Vm>> = OnceLock::new();
    VMS.get_or_init(|| {
        let wanted = std::env::var("HEAPWARDEN_TEST_COLLECTORS").ok();
        let mut vms = Vec::new();
        for jdk in every_jdk() {
            for collector in Collector::ALL {
                let name = format!("{collector:?}");
                if wanted
                    .as_ref()
                    .is_some_and(|list| !list.split(',').any(|word| word == name))
                {
                    eprintln!("left out by HEAPWARDEN_TEST_COLLECTORS: {jdk} {name}");
                } else if starts(jdk, collector) {
                    vms.push(Vm {
                        jdk: jdk.clone(),
                        collector,
                    });
                } else {
                    eprintln!("not in this build: {jdk} {name}");
                }
            }
        }
        vms
    })
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

fn starts(jdk: &Jdk, collector: Collector) -> bool {
    // Accepted and ignored with a warning from 24 on: the same as `Z` there.
    if collector == Collector::GenerationalZ && !(21..=23).contains(&jdk.feature) {
        return false;
    }
    Command::new(jdk.tool("java"))
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
