//! The names of methods on stacks, and how a frame is written.
//!
//! A class may be unloaded while its instances' stacks are read. So a method is named as soon as an agent
//! thread comes to it, with its whole table of lines, and the VM is never asked again.
//!
//! Names come from tenants: control characters are replaced, and lengths are bounded.

use std::collections::HashMap;
use std::sync::Arc;

use crate::identity::names::printable;

/// Lines kept of one method.
const MAX_LINES: usize = 2000;
/// Bytes of all names and lines together.
const MAX_BYTES: usize = 8 << 20;

/// The name, the source and the traits of a method, as an agent thread has found them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// Its class, with dots; a hidden class without the suffix that makes it unique.
    pub class: String,
    /// Its name.
    pub method: String,
    /// The source file of the class.
    pub file: Option<String>,
    /// Where each line begins: the index of the bytecode, and the line.
    pub lines: Vec<(u32, u32)>,
    /// Whether the class is the JDK's.
    pub of_jdk: bool,
    /// Whether the class is hidden: made at run time, as those of lambdas are.
    pub is_hidden: bool,
    /// Whether the method is native.
    pub is_native: bool,
}

/// A method by name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) class: Box<str>,
    pub(super) method: Box<str>,
    pub(super) file: Option<Box<str>>,
    /// Ascending by index.
    lines: Box<[(u32, u32)]>,
    /// Whether the frame says something about the program: it is neither the JDK's nor plumbing.
    pub(super) is_of_application: bool,
    /// Whether the frame is left out: the VM or the JDK has made it to link a call.
    pub(super) is_plumbing: bool,
    is_native: bool,
}

impl Named {
    fn new(found: Found) -> Named {
        let is_plumbing = found.is_hidden || is_linkage(&found);
        let mut lines = found.lines;
        lines.sort_unstable();
        lines.truncate(MAX_LINES);
        Named {
            class: printable(&found.class).into(),
            method: printable(&found.method).into(),
            file: found.file.map(|file| printable(&file).into()),
            lines: lines.into(),
            is_of_application: !found.of_jdk && !is_plumbing,
            is_plumbing,
            is_native: found.is_native,
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Named>()
            + self.class.len()
            + self.method.len()
            + self.file.as_ref().map_or(0, |file| file.len())
            + size_of_val(&*self.lines)
    }

    pub(super) fn line(&self, bci: u32) -> Option<u32> {
        let after = self.lines.partition_point(|(start, _)| *start <= bci);
        Some(self.lines[after.checked_sub(1)?].1)
    }

    /// A frame of this method as a stack trace shows it: `com.acme.Cart.add(Cart.java:41)`.
    pub(super) fn shown(&self, bci: Option<u32>) -> String {
        let place = match (&self.file, bci.and_then(|bci| self.line(bci))) {
            _ if self.is_native => "Native Method".to_owned(),
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.to_string(),
            (None, Some(line)) => format!("line {line}"),
            (None, None) => "Unknown Source".to_owned(),
        };
        format!("{}.{}({place})", self.class, self.method)
    }
}

/// Code that stands between a call and the method that is called.
fn is_linkage(found: &Found) -> bool {
    const PACKAGES: [&str; 2] = ["java.lang.invoke.", "jdk.internal.reflect."];
    const CLASSES: [&str; 1] = ["java.lang.reflect.Method"];
    found.of_jdk
        && (PACKAGES
            .iter()
            .any(|package| found.class.starts_with(package))
            || CLASSES.contains(&&*found.class))
}

/// Names by the number of a method in the trie. Agent threads.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// `None`: its class was unloaded before it was named.
    methods: HashMap<u32, Option<Arc<Named>>>,
    bytes: usize,
}

/// The name of a frame, or the reason why it has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    /// A method.
    Method(Arc<Named>),
    /// Its class was unloaded before an agent thread could name it, or there is no room for its name.
    Gone,
    /// It is not named yet.
    Pending,
}

impl Names {
    /// Names a method; `None`: its class is gone.
    pub(super) fn enter(&mut self, method: u32, found: Option<Found>) {
        let mut named = found.map(Named::new);
        let mut bytes = named.as_ref().map_or(0, Named::bytes);
        if self.bytes + bytes > MAX_BYTES {
            (named, bytes) = (None, 0);
        }
        if let Some(Some(before)) = self.methods.insert(method, named.map(Arc::new)) {
            self.bytes -= before.bytes();
        }
        self.bytes += bytes;
    }

    pub(super) fn get(&self, method: u32) -> Name {
        match self.methods.get(&method) {
            Some(Some(named)) => Name::Method(named.clone()),
            Some(None) => Name::Gone,
            None => Name::Pending,
        }
    }

    /// Forgets the methods that are not to be kept.
    pub(super) fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        let mut bytes = self.bytes;
        self.methods.retain(|&method, named| {
            let kept = keep(method);
            if !kept {
                bytes -= named.as_ref().map_or(0, |named| named.bytes());
            }
            kept
        });
        self.methods.shrink_to_fit();
        self.bytes = bytes;
    }

    pub(super) fn committed_bytes(&self) -> u64 {
        (self.methods.capacity() * size_of::<(u32, Option<Arc<Named>>)>() + self.bytes) as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn found(class: &str, method: &str) -> Found {
        Found {
            class: class.into(),
            method: method.into(),
            file: Some("Cart.java".into()),
            lines: vec![(7, 42), (0, 41), (12, 41)],
            ..Found::default()
        }
    }

    #[test]
    fn frames_read_as_in_a_stack_trace() {
        let named = Named::new(found("com.acme.Cart", "add"));
        let shown = |bci| named.shown(bci);
        assert_eq!(shown(Some(0)), "com.acme.Cart.add(Cart.java:41)");
        assert_eq!(shown(Some(11)), "com.acme.Cart.add(Cart.java:42)");
        assert_eq!(shown(Some(900)), "com.acme.Cart.add(Cart.java:41)");
        assert_eq!(shown(None), "com.acme.Cart.add(Cart.java)");
        let bare = Named::new(Found {
            file: None,
            lines: Vec::new(),
            ..found("X", "y")
        });
        assert_eq!(bare.shown(Some(3)), "X.y(Unknown Source)");
        let native = Named::new(Found {
            is_native: true,
            ..found("X", "y")
        });
        assert_eq!(native.shown(None), "X.y(Native Method)");
    }

    #[test]
    fn linkage_is_plumbing_and_an_own_class_of_that_name_is_not() {
        let named = |class: &str, of_jdk, is_hidden| {
            let found = Found {
                of_jdk,
                is_hidden,
                ..found(class, "m")
            };
            let named = Named::new(found);
            (named.is_plumbing, named.is_of_application)
        };
        assert_eq!(
            named("java.lang.invoke.DirectMethodHandle", true, false),
            (true, false)
        );
        assert_eq!(named("com.acme.Cart$$Lambda", false, true), (true, false));
        assert_eq!(
            named("java.lang.reflect.Method", true, false),
            (true, false)
        );
        assert_eq!(named("java.util.HashMap", true, false), (false, false));
        assert_eq!(named("com.acme.Cart", false, false), (false, true));
        assert_eq!(named("java.lang.invoke.Mine", false, false), (false, true));
    }

    #[test]
    fn hostile_names_are_bounded_and_printable() {
        let hostile = Found {
            file: Some("x\n".repeat(4000)),
            lines: (0..1 << 16).map(|bci| (bci, bci)).collect(),
            ..found(&"evil\u{1b}[2J".repeat(4000), &"\r\n".repeat(4000))
        };
        let mut names = Names::default();
        for method in 0..10_000 {
            names.enter(method, Some(hostile.clone()));
            assert!(names.bytes <= MAX_BYTES);
        }
        let Name::Method(named) = names.get(0) else {
            panic!("the first has room");
        };
        let shown = named.shown(Some(1));
        assert!(
            !shown.chars().any(char::is_control) && shown.len() < 1000,
            "{shown}"
        );
        assert_eq!(names.get(9_999), Name::Gone);
        assert_eq!(names.get(10_000), Name::Pending);
        names.retain(|method| method == 0);
        assert_eq!(names.bytes, named.bytes());
        names.retain(|_| false);
        assert_eq!(names.bytes, 0);
    }
}
