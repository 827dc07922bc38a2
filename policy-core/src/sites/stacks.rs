//! Whole stacks, with what survived and was allocated there: for profiles, which group them by themselves.
//!
//! # Rules
//! 1. The sums are those of the places ([`super::survivors`], rules 1 and 2), before grouping and scaling. They are
//!    estimates of their own; whoever publishes them beside an account makes them fit.
//! 2. What was allocated at a stack that is not kept has no stack here. Its row has it anyway.
//! 3. Stacks are bounded. The largest of survivors are kept first, then those where most was allocated.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use crate::sampling::weight::OBJECT_UNIT;

use super::names::{Name, Named, Names};
use super::survivors::{Count, Most, Sums};
use super::trie::{Node, Step, Trie};

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

/// What was allocated at a stack, or survived of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Objects.
    pub objects: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Amount {
    fn of(sums: Sums) -> Amount {
        Amount {
            objects: (sums.objects / OBJECT_UNIT as f64).round() as u64,
            bytes: sums.bytes.round() as u64,
        }
    }
}

/// A stack.
#[derive(Debug, Clone)]
pub struct Stack {
    /// From the allocation down; never empty.
    pub frames: Vec<Frame>,
    /// What survived of what was allocated here since stacks are taken.
    pub live: Amount,
    /// What was allocated here since stacks are taken.
    pub allocated: Amount,
}

impl<K: Hash + Eq + Clone> Count<K> {
    /// The largest stacks of all rows.
    pub(super) fn stacks(self, trie: &Trie, names: &Names, most: Most) -> HashMap<K, Vec<Stack>> {
        let mut all: Vec<(K, Node, Amount, Amount)> = Vec::new();
        for (row, (_, stacks)) in self.rows {
            let kept = stacks.into_iter().filter(|(node, _)| *node != Node::ROOT);
            all.extend(kept.map(|(node, of)| {
                let (live, allocated) = (Amount::of(of.sums), Amount::of(of.allocated));
                (row.clone(), node, live, allocated)
            }));
        }
        all.sort_unstable_by_key(|(_, node, live, _)| (Reverse(live.bytes), *node));
        let mut others = all.split_off(all.len().min(most.live));
        others.sort_unstable_by_key(|(_, node, _, allocated)| (Reverse(allocated.bytes), *node));
        others.truncate(most.allocated);
        all.append(&mut others);
        let mut rows: HashMap<K, Vec<Stack>> = HashMap::new();
        for (row, node, live, allocated) in all {
            rows.entry(row).or_default().push(Stack {
                frames: frames(trie, names, node),
                live,
                allocated,
            });
        }
        rows
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
