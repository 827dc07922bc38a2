//! The three applications and the library they share, by the names that `examples/demo` gives them.

/// A web application of the demo.
pub(crate) struct Application {
    /// Its account in `heapwarden.toml`; `/name` is its address, `name.war` its archive.
    pub(crate) name: &'static str,
    /// The use that it makes of memory, for the viewer.
    pub(crate) does: &'static str,
    /// Requests that the load makes of it in all.
    pub(crate) requests: u32,
}

/// All of them, in the order shown.
pub(crate) const APPLICATIONS: [Application; 3] = [
    Application {
        name: "cache",
        does: "holds a steady cache",
        requests: 2_000,
    },
    Application {
        name: "report",
        does: "churns, through the shared XML library",
        requests: 600,
    },
    Application {
        name: "grow",
        does: "holds more with every request",
        requests: 180,
    },
];

/// The application that outgrows its limit.
pub(crate) const GROWING: &str = "grow";

/// The application that calls the library.
pub(crate) const LIBRARY_CALLER: &str = "report";

/// The library's account.
pub(crate) const LIBRARY: &str = "xml";

/// The library's archive.
pub(crate) const LIBRARY_ARCHIVE: &str = "xml-lib";

impl Application {
    /// The address of one request's work.
    pub(crate) fn work(&self) -> String {
        format!("/{}/", self.name)
    }

    /// The address of what it says it holds.
    pub(crate) fn truth(&self) -> String {
        format!("/{}/truth", self.name)
    }

    /// The address that makes it let go of everything.
    pub(crate) fn release(&self) -> String {
        format!("/{}/release", self.name)
    }
}
