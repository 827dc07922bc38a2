//! Recognises the collector of a HotSpot by the names of its threads, and Epsilon by its flag.

use super::arguments::Arguments;

/// HotSpot's collectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collector {
    /// `-XX:+UseG1GC`
    G1,
    /// `-XX:+UseParallelGC`
    Parallel,
    /// `-XX:+UseSerialGC`
    Serial,
    /// `-XX:+UseZGC`, one generation.
    Z,
    /// `-XX:+UseZGC`, two generations.
    GenerationalZ,
    /// `-XX:+UseShenandoahGC`
    Shenandoah,
    /// `-XX:+UseEpsilonGC`, which never collects. It has no threads of its own, so only its flag tells.
    Epsilon,
}

impl Collector {
    /// Its usual name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Collector::G1 => "G1",
            Collector::Parallel => "Parallel",
            Collector::Serial => "Serial",
            Collector::Z => "ZGC",
            Collector::GenerationalZ => "generational ZGC",
            Collector::Shenandoah => "Shenandoah",
            Collector::Epsilon => "Epsilon (never collects)",
        }
    }

    /// The collector of a JVM with these arguments and threads.
    pub(crate) fn of<'a>(
        arguments: &Arguments,
        threads: impl IntoIterator<Item = &'a str>,
    ) -> Option<Collector> {
        match arguments.flag("UseEpsilonGC") {
            Some(true) => Some(Collector::Epsilon),
            _ => Collector::of_threads(threads),
        }
    }

    /// The collector that has these threads. Flags do not suffice: without one, the JVM chooses by the
    /// size of the machine. Linux keeps 15 bytes of a thread's name.
    fn of_threads<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Collector> {
        let mut found = None;
        let mut is_hotspot = false;
        for name in names {
            let name = name.trim_end_matches('\n');
            let here = match name {
                "ZDriverMinor" | "ZDriverMajor" => Some(Collector::GenerationalZ),
                "ZDriver" => Some(Collector::Z),
                _ if name.starts_with("Shenandoah") => Some(Collector::Shenandoah),
                _ if name.starts_with("G1 ") => Some(Collector::G1),
                _ => None,
            };
            if here.is_some() {
                return here;
            }
            // G1 has threads of this name as well.
            if name.starts_with("GC Thread#") || name.starts_with("ParGC Thread#") {
                found = Some(Collector::Parallel);
            }
            is_hotspot |= name == "VM Thread";
        }
        found.or(is_hotspot.then_some(Collector::Serial))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epsilon_has_no_threads_and_is_told_by_its_flag() {
        let with = |flag: &str| {
            let command = ["java", flag, "Main"].join("\0");
            Collector::of(&Arguments::parse(command.as_bytes(), b""), ["VM Thread\n"])
        };
        let shown = with("-XX:+UseEpsilonGC").map(Collector::as_str);
        assert!(
            shown.is_some_and(|name| name.contains("Epsilon")),
            "{shown:?}"
        );
        assert_eq!(with("-XX:-UseEpsilonGC"), Some(Collector::Serial));
    }

    #[test]
    fn each_collector_has_threads_of_its_own() {
        let of = |names: &[&str]| Collector::of_threads(names.iter().copied());
        let g1 = ["java\n", "GC Thread#0\n", "G1 Main Marker\n", "VM Thread\n"];
        assert_eq!(of(&g1), Some(Collector::G1));
        assert_eq!(
            of(&["GC Thread#0\n", "VM Thread\n"]),
            Some(Collector::Parallel)
        );
        assert_eq!(of(&["java\n", "VM Thread\n"]), Some(Collector::Serial));
        assert_eq!(of(&["ZDriver\n", "ZDirector\n"]), Some(Collector::Z));
        assert_eq!(of(&["ZDriverMinor\n"]), Some(Collector::GenerationalZ));
        assert_eq!(of(&["Shenandoah Cont\n"]), Some(Collector::Shenandoah));
        assert_eq!(of(&["sleep\n"]), None);
    }
}
