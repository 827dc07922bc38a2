//! Paths as people read them: named, and equal ones merged.

use std::collections::BTreeMap;

use policy_jvm::forked_walk::{Path, PathRoot, RootKind, Step, Via};
use policy_report::{Chain, ChainStep};

use crate::identity::names::java_name;

use super::survey::Names;
use super::targets::{Group, Wanted};

/// The class of class objects.
const CLASS: &str = "java.lang.Class";
/// A class that was unloaded, or loaded while the walk was prepared.
const UNKNOWN: &str = "?";
/// Longest name, in bytes: programs choose them.
const MAX_NAME_BYTES: usize = 200;

/// The properties that two paths must have in common to be one chain.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    group: Group,
    root: String,
    /// Class and field of each step, elements of arrays being alike.
    steps: Vec<(String, String)>,
    is_cut: bool,
}

struct Merged {
    objects: u64,
    /// The fields and elements of each step, and how often it is repeated.
    steps: Vec<(String, u64)>,
}

/// Merges equal paths. Chains are sorted by length, then by what they keep.
pub(super) fn merged(paths: &[Path], wanted: &Wanted, names: &Names) -> Vec<Chain<'static>> {
    let mut chains: BTreeMap<Key, Merged> = BTreeMap::new();
    for path in paths {
        let Some((group, _)) = wanted.group_of(path.target_tag) else {
            continue;
        };
        let (root, steps) = named(path, names);
        let key = Key {
            group: group.clone(),
            root,
            steps: (steps.iter())
                .map(|step| (step.class.clone(), generic(&step.via)))
                .collect(),
            is_cut: path.is_cut,
        };
        let own: Vec<(String, u64)> = (steps.iter())
            .map(|step| (step.via.clone(), step.repeats))
            .collect();
        match chains.entry(key) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(Merged {
                    objects: 1,
                    steps: own,
                });
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                let merged = entry.get_mut();
                merged.objects += 1;
                for (one, other) in merged.steps.iter_mut().zip(own) {
                    if one.0 != other.0 {
                        one.0 = generic(&one.0);
                    }
                    one.1 = one.1.max(other.1);
                }
            }
        }
    }
    let mut chains: Vec<Chain<'static>> = (chains.into_iter())
        .map(|(key, merged)| chain(key, merged, wanted))
        .collect();
    chains.sort_by_key(|chain| (chain.steps.len(), std::cmp::Reverse(chain.objects)));
    chains
}

fn chain(key: Key, merged: Merged, wanted: &Wanted) -> Chain<'static> {
    let looked = wanted.groups.get(&key.group);
    let bytes = looked.map_or(0, |looked| {
        let share = merged.objects as f64 / looked.tags.len().max(1) as f64;
        (looked.bytes as f64 * share) as u64
    });
    let steps = key.steps.into_iter().zip(merged.steps);
    Chain {
        account: key.group.account.to_string().into(),
        class: key.group.class.to_string().into(),
        objects: merged.objects,
        bytes,
        root: key.root.into(),
        steps: steps
            .map(|((class, _), (via, repeats))| ChainStep {
                class: class.into(),
                via: via.into(),
                repeats,
            })
            .collect(),
        is_cut: key.is_cut,
    }
}

struct NamedStep {
    class: String,
    via: String,
    repeats: u64,
}

/// An element of an array, without its index.
fn generic(via: &str) -> String {
    if via.starts_with('[') {
        "[*]".to_owned()
    } else {
        via.to_owned()
    }
}

fn named(path: &Path, names: &Names) -> (String, Vec<NamedStep>) {
    let mut steps = path.steps.as_slice();
    let root = match path.root {
        Some(root) => root_name(&root, names),
        None => match steps.split_first() {
            Some((first, rest)) if matches!(first.via, Via::Static(_)) => {
                steps = rest;
                via(first, names)
            }
            Some((first, _)) => step_class(first, names),
            None => UNKNOWN.to_owned(),
        },
    };
    let steps = steps.iter().map(|step| NamedStep {
        class: step_class(step, names),
        via: via(step, names),
        repeats: u64::from(step.repeats),
    });
    (root, steps.collect())
}

fn class(tag: i64, names: &Names) -> String {
    let found = names.classes.get(&tag);
    found.map_or_else(|| UNKNOWN.to_owned(), |class| clipped(&class.name))
}

/// `com.acme.Cache`; `class com.acme.Cache` for the class object; a thread with its name.
fn step_class(step: &Step, names: &Names) -> String {
    let name = class(step.class_tag, names);
    if name == CLASS {
        return format!("class {}", class(step.own_tag, names));
    }
    match names.threads.get(&step.own_tag) {
        Some(thread) if step.own_tag != 0 => format!("{name} \"{}\"", clipped(thread)),
        _ => name,
    }
}

fn via(step: &Step, names: &Names) -> String {
    let field = |tag: i64, index: u32| {
        let class = names.classes.get(&tag)?;
        class.fields.get(index as usize)
    };
    match step.via {
        Via::Field(index) => field(step.class_tag, index)
            .map_or_else(|| format!("field {index}"), |field| clipped(&field.name)),
        Via::Static(index) => field(step.own_tag, index).map_or_else(
            || format!("static field {index} of {}", class(step.own_tag, names)),
            |field| {
                let declared_by = java_name(&field.declared_by);
                format!("static {}.{}", clipped(&declared_by), clipped(&field.name))
            },
        ),
        Via::Element(index) => format!("[{index}]"),
        Via::Loader => "(class loader)".to_owned(),
        Via::SuperClass => "(super class)".to_owned(),
        Via::ConstantPool => "(constant pool)".to_owned(),
        Via::OfClass => "(interface, signer or protection domain)".to_owned(),
        Via::Class => "(class)".to_owned(),
    }
}

fn root_name(root: &PathRoot, names: &Names) -> String {
    let thread = || match names.threads_by_id.get(&root.thread_id) {
        Some(name) => format!("thread \"{}\"", clipped(name)),
        None => format!("thread {}", root.thread_id),
    };
    match root.kind {
        RootKind::Thread => match names.threads.get(&root.own_tag) {
            Some(name) => format!("thread \"{}\"", clipped(name)),
            None => "a thread".to_owned(),
        },
        RootKind::StackLocal => match names.methods.get(&root.method) {
            Some(method) => format!(
                "local variable {} of {} in {}",
                root.slot,
                clipped(method),
                thread()
            ),
            None => format!("a local variable in {}", thread()),
        },
        RootKind::JniLocal => format!("a local reference of native code in {}", thread()),
        RootKind::JniGlobal => "a global reference of native code".to_owned(),
        RootKind::System => "a class that the JVM keeps".to_owned(),
        RootKind::Monitor => "a lock that is held".to_owned(),
        RootKind::Other => "the JVM".to_owned(),
    }
}

fn clipped(name: &str) -> String {
    let mut end = name.len().min(MAX_NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}
