//! The frames of a stack by name.

use std::sync::Arc;

use super::names::{Name, Named, Names};
use super::node::Node;
use super::trie::{Step, Trie};

/// A frame of a stack.
#[derive(Debug, Clone)]
pub struct Frame(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Method(Arc<Named>, Option<u32>),
    /// A method of which the name alone is known.
    Named(Arc<str>),
    Remark(&'static str, Stands),
}

/// Whether a remark stands in the place of a frame of the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    ForApplication,
    ForOther,
}

impl Frame {
    /// A method of which this name alone is known, from another source than samples.
    #[must_use]
    pub fn named(name: Arc<str>) -> Frame {
        Frame(Kind::Named(name))
    }

    /// Appends the method, `com.acme.Cart.add`; or a remark in its place, as `(not named yet)`.
    pub fn write_function(&self, out: &mut String) {
        match &self.0 {
            Kind::Method(named, _) => {
                out.push_str(&named.class);
                out.push('.');
                out.push_str(&named.method);
            }
            Kind::Named(name) => out.push_str(name),
            Kind::Remark(text, _) => out.push_str(text),
        }
    }

    /// The source file; empty if it is not known.
    #[must_use]
    pub fn file(&self) -> &str {
        match &self.0 {
            Kind::Method(named, _) => named.file.as_deref().unwrap_or_default(),
            Kind::Named(_) | Kind::Remark(..) => "",
        }
    }

    /// The line; 0 if it is not known.
    #[must_use]
    pub fn line(&self) -> u32 {
        match &self.0 {
            Kind::Method(named, bci) => bci.and_then(|bci| named.line(bci)).unwrap_or(0),
            Kind::Named(_) | Kind::Remark(..) => 0,
        }
    }

    /// As a stack trace shows it: `com.acme.Cart.add(Cart.java:41)`.
    pub(super) fn shown(&self) -> String {
        match &self.0 {
            Kind::Method(named, bci) => named.shown(*bci),
            Kind::Named(name) => (**name).to_owned(),
            Kind::Remark(text, _) => (*text).to_owned(),
        }
    }

    /// Whether it says something about the program, or could.
    pub(super) fn is_of_application(&self) -> bool {
        match &self.0 {
            Kind::Method(named, _) => named.is_of_application,
            Kind::Named(_) => true,
            Kind::Remark(_, stands) => *stands == Stands::ForApplication,
        }
    }
}

/// The stack of a node by name, from the allocation down. Frames that only link a call are left out; there is a remark
/// at least.
pub(super) fn frames(trie: &Trie, names: &Names, node: Node) -> Vec<Frame> {
    let remark = |text, stands| Frame(Kind::Remark(text, stands));
    if node == Node::ROOT {
        return vec![remark("(stacks that are not kept)", Stands::ForOther)];
    }
    let steps = trie.stack(node).into_iter();
    let mut frames: Vec<Frame> = steps
        .filter_map(|step| match step {
            Step::LeftOut => Some(remark("...", Stands::ForOther)),
            Step::Frame { method, bci } => match names.get(method) {
                Name::Method(named) if named.is_plumbing => None,
                Name::Method(named) => Some(Frame(Kind::Method(named, bci))),
                Name::Gone => Some(remark(
                    "(a class that was unloaded before it was named)",
                    Stands::ForApplication,
                )),
                Name::Pending => Some(remark("(not named yet)", Stands::ForApplication)),
            },
        })
        .collect();
    if frames.is_empty() {
        frames.push(remark("(a call that the JVM linked)", Stands::ForOther));
    }
    frames
}
