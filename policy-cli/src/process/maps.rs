//! `/proc/PID/maps`: the files that a process has mapped.

use std::collections::BTreeSet;

/// The files that are mapped, each path once, as the process sees them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct MappedFiles(BTreeSet<String>);

/// A C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Libc {
    /// GNU's, of most distributions.
    Glibc,
    /// musl, of Alpine.
    Musl,
}

impl Libc {
    /// Its usual name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Libc::Glibc => "glibc",
            Libc::Musl => "musl",
        }
    }
}

impl MappedFiles {
    /// Reads the text. A file that was deleted or replaced since keeps its old path.
    pub(crate) fn parse(text: &str) -> MappedFiles {
        let paths = text.lines().filter_map(path);
        MappedFiles(paths.map(str::to_owned).collect())
    }

    /// The first path whose file name begins with this.
    fn named(&self, start: &str) -> Option<&str> {
        let mut paths = self.0.iter();
        paths
            .find(|path| file_name(path).starts_with(start))
            .map(String::as_str)
    }

    /// The JVM's library, if there is one.
    pub(crate) fn libjvm(&self) -> Option<&str> {
        let mut paths = self.0.iter();
        paths
            .find(|path| file_name(path) == "libjvm.so")
            .map(String::as_str)
    }

    /// Whether the JVM is OpenJ9, whose `libjvm.so` only leads to its own libraries.
    pub(crate) fn has_openj9(&self) -> bool {
        self.named("libj9vm").is_some() || self.named("libj9jvm").is_some()
    }

    /// The agent's library, if it is mapped.
    pub(crate) fn libheapwarden(&self) -> Option<&str> {
        self.named("libheapwarden")
    }

    /// The C library. `None` for a static executable.
    pub(crate) fn libc(&self) -> Option<Libc> {
        // musl's loader is its C library; Alpine's glibc shim maps both, and is musl.
        if self.named("ld-musl-").is_some() || self.named("libc.musl-").is_some() {
            Some(Libc::Musl)
        } else if self.named("libc.so.6").is_some() || self.named("libc-2.").is_some() {
            Some(Libc::Glibc)
        } else {
            None
        }
    }

    /// Libraries of profilers that are known to use the JVM's allocation sampling, or may.
    pub(crate) fn profilers(&self) -> Vec<&str> {
        const KNOWN: [&str; 6] = [
            "libasyncProfiler",
            "libjavaProfiler",
            "libyjpagent",
            "libjprofilerti",
            "libpyroscope",
            "liblagent",
        ];
        let paths = self.0.iter().map(String::as_str);
        paths
            .filter(|path| {
                let name = file_name(path);
                KNOWN.iter().any(|known| name.starts_with(known))
            })
            .collect()
    }
}

/// The path of one line: the sixth field, which may itself contain blanks.
fn path(line: &str) -> Option<&str> {
    let mut rest = line;
    for _ in 0..5 {
        rest = rest.trim_start_matches(' ');
        rest = &rest[rest.find(' ')?..];
    }
    let path = rest.trim_start_matches(' ');
    path.starts_with('/')
        .then(|| path.strip_suffix(" (deleted)").unwrap_or(path))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `java` of Debian, shortened.
    const JAVA: &str = "\
c0000000-100000000 rw-p 00000000 00:00 0 
55d0e0a00000-55d0e0a01000 r--p 00000000 fe:00 1835 /usr/lib/jvm/java-17-openjdk-amd64/bin/java
7f1a3c000000-7f1a3c021000 rw-p 00000000 00:00 0 
7f1a5a600000-7f1a5a8a5000 r--p 00000000 fe:00 1902                       /usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so
7f1a5a8a5000-7f1a5b5e4000 r-xp 002a5000 fe:00 1902                       /usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so
7f1a5ba00000-7f1a5ba26000 r--p 00000000 fe:00 3321                       /usr/lib/x86_64-linux-gnu/libc.so.6
7f1a5bc00000-7f1a5bc01000 r--p 00000000 fe:00 77                         /opt/my agents/libasyncProfiler.so (deleted)
7f1a5c1f2000-7f1a5c1f4000 r-xp 00000000 00:00 0                          [vdso]
";

    #[test]
    fn a_java_process_is_read() {
        let files = MappedFiles::parse(JAVA);
        assert_eq!(
            files.libjvm(),
            Some("/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so")
        );
        assert_eq!(files.libc(), Some(Libc::Glibc));
        assert_eq!(files.profilers(), ["/opt/my agents/libasyncProfiler.so"]);
        assert_eq!(files.libheapwarden(), None);
        assert!(!files.has_openj9());
    }

    #[test]
    fn alpine_and_openj9_are_recognised() {
        let line = |path: &str| format!("7f00-7f01 r-xp 00000000 fe:00 1 {path}\n");
        let alpine = MappedFiles::parse(&line("/lib/ld-musl-x86_64.so.1"));
        assert_eq!(alpine.libc(), Some(Libc::Musl));
        let openj9 = MappedFiles::parse(&line("/opt/java/lib/default/libj9vm29.so"));
        assert!(openj9.has_openj9());
    }

    #[test]
    fn an_application_that_only_names_itself_so_is_no_jvm() {
        let text = "7f00-7f01 r-xp 00000000 fe:00 1 /tmp/libjvm.so.txt\n\
                    7f00-7f01 rw-p 00000000 00:00 0 [anon:libjvm.so]\n\
                    7f00-7f01 r-xp 0 0 0 relative/libjvm.so\nshort\n";
        assert_eq!(
            MappedFiles::parse(text),
            MappedFiles(["/tmp/libjvm.so.txt".to_owned()].into())
        );
        assert_eq!(MappedFiles::parse(text).libjvm(), None);
    }

    #[test]
    fn the_agent_is_found_also_after_its_file_was_replaced() {
        let text = "7f00-7f01 r-xp 00000000 fe:00 1   /opt/heapwarden/libheapwarden.so (deleted)\n";
        assert_eq!(
            MappedFiles::parse(text).libheapwarden(),
            Some("/opt/heapwarden/libheapwarden.so")
        );
    }
}
