//! Counted contexts as stacks, for profiles: what each account has allocated of each class, by the calls that led
//! there.
//!
//! # Rules
//! 1. A context's account is that of its method's code, as a frame of it has in the rule of samples; code of nobody
//!    and of libraries counts for its caller. Scopes are not seen.
//! 2. Only `new` and arrays of numbers have a class. An array of references is counted without one, and has no stack.
//! 3. Bytes of arrays are computed from their elements, each array as long as the mean of its context and with the
//!    least header; those of objects are left 0: their size is in no count.
//! 4. Nothing is known of what is alive.
//! 5. Stacks are bounded, in number and in frames. Those of most objects are kept.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use policy_core::sites::stacks::{Amount, Frame, Stack};
use policy_core::snapshot::UNACCOUNTED;
use policy_exact::{CALLS, ELEMENTS};

use crate::report::profile::Stacks;

use super::{Contexts, Numbered, Tree, locked};

/// Most stacks in one profile.
const MAX_STACKS: usize = 5_000;
/// Frames of a stack, from the allocation down.
const MAX_FRAMES: usize = 200;
/// The header of an array of numbers, and the unit of object sizes, in bytes.
const HEADER_BYTES: u64 = 16;
const UNIT_BYTES: u64 = 8;

/// A context, as the others need it.
struct Known {
    caller: usize,
    method: Arc<str>,
    account: Option<Arc<str>>,
}

impl Contexts {
    /// See the module. `account`: the name of the account that code of this number belongs to. On an agent thread, which takes the locks that threads take which load classes.
    pub(in crate::exact) fn stacks(&self, account: impl Fn(i32) -> Option<Arc<str>>) -> Stacks {
        let accounts = self.accounts(account);
        let methods = locked(&self.methods);
        let types = locked(&self.types);
        of(&locked(&self.tree), &methods, &types, &accounts)
    }
}

fn of(
    tree: &Tree,
    methods: &Numbered,
    types: &Numbered,
    accounts: &HashMap<i32, Arc<str>>,
) -> Stacks {
    let mut known: HashMap<usize, Known> = HashMap::new();
    for (node, (caller, method)) in tree.known() {
        let caller = usize::from(caller);
        let own = methods.code(method).and_then(|code| accounts.get(&code));
        let inherited = || known.get(&caller).and_then(|caller| caller.account.clone());
        let account = own.cloned().or_else(inherited);
        // As stacks of samples name it, without the types of its arguments.
        let method = methods.name(method).split('(').next().unwrap_or_default();
        let method = method.into();
        let context = Known {
            caller,
            method,
            account,
        };
        known.insert(node, context);
    }
    let mut cells: Vec<_> = tree
        .cells
        .iter()
        .map(|(at, counts)| (*at, *counts))
        .collect();
    cells.sort_unstable_by_key(|&(at, (objects, _))| (Reverse(objects), at));
    let unaccounted: Arc<str> = UNACCOUNTED.into();
    let mut stacks = Stacks::new();
    let mut count = 0;
    for ((node, kind), (objects, elements)) in cells {
        let node = usize::from(node);
        let (Some(context), Some(class)) = (known.get(&node), class(types, kind)) else {
            continue;
        };
        if count == MAX_STACKS {
            break;
        }
        count += 1;
        let account = context.account.as_ref().unwrap_or(&unaccounted).clone();
        let bytes = match ELEMENTS.get(usize::from(kind).wrapping_sub(1)) {
            Some(_) => bytes_of_arrays(&class, objects, elements),
            None => 0,
        };
        stacks.entry((account, class)).or_default().push(Stack {
            frames: frames(&known, node),
            live: Amount::default(),
            allocated: Amount { objects, bytes },
        });
    }
    stacks
}

/// The class of a type, as rows of accounts name it; `None`: it has no stack.
fn class(types: &Numbered, kind: u16) -> Option<Arc<str>> {
    if i32::from(kind) == CALLS {
        return None;
    }
    match ELEMENTS.get(usize::from(kind).wrapping_sub(1)) {
        Some(&"reference") => None,
        Some(element) => Some(format!("{element}[]").into()),
        None => Some(types.name(kind).into()),
    }
}

fn bytes_of_arrays(class: &str, arrays: u64, elements: u64) -> u64 {
    let element_bytes = match class {
        "long[]" | "double[]" => 8,
        "int[]" | "float[]" => 4,
        "short[]" | "char[]" => 2,
        _ => 1,
    };
    let mean = (elements * element_bytes).div_ceil(arrays.max(1)) + HEADER_BYTES;
    mean.next_multiple_of(UNIT_BYTES) * arrays
}

/// From the allocation down.
fn frames(known: &HashMap<usize, Known>, mut node: usize) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some(context) = known.get(&node) {
        if frames.len() == MAX_FRAMES {
            frames.push(Frame::named("(callers left out)".into()));
            break;
        }
        frames.push(Frame::named(context.method.clone()));
        node = context.caller;
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_counts_for_its_code_and_a_librarys_for_its_caller() {
        let contexts = Contexts::new();
        let shop = contexts.method(Some(3), (b"shop/Cart", b"add", b"(I)V"));
        let library = contexts.method(None, (b"lib/Copy", b"of", b"()V"));
        let other = contexts.method(Some(4), (b"shop/Cart", b"add", b"(I)V"));
        assert_ne!(shop, other, "one name in two services");
        let item = contexts.class(b"shop/Item") as u16;
        let bytes = 1 + ELEMENTS
            .iter()
            .position(|element| *element == "byte")
            .unwrap() as u16;
        let references = ELEMENTS
            .iter()
            .position(|element| *element == "reference")
            .unwrap();
        let mut tree = locked(&contexts.tree);
        tree.nodes = vec![
            None,
            Some((0, shop as u16)),
            Some((1, library as u16)),
            Some((0, library as u16)),
            Some((0, other as u16)),
        ];
        tree.cells = HashMap::from([
            ((1, item), (7, 0)),
            ((2, bytes), (2, 30)),
            ((3, item), (5, 0)),
            ((4, item), (1, 0)),
            ((4, references as u16 + 1), (9, 90)),
            ((4, CALLS as u16), (1, 700)),
        ]);
        drop(tree);
        let accounts = contexts.accounts(|code| Some(format!("account {code}").into()));
        let (methods, types) = (locked(&contexts.methods), locked(&contexts.types));
        let stacks = of(&locked(&contexts.tree), &methods, &types, &accounts);
        let shown: Vec<String> = {
            let mut rows: Vec<String> = Vec::new();
            for ((account, class), stacks) in &stacks {
                for stack in stacks {
                    let mut row = format!("{account}, {class}: {:?}", stack.allocated);
                    for frame in &stack.frames {
                        row.push_str(" < ");
                        frame.write_function(&mut row);
                    }
                    rows.push(row);
                }
            }
            rows.sort();
            rows
        };
        assert_eq!(
            shown,
            [
                "_unaccounted, shop.Item: Amount { objects: 5, bytes: 0 } < lib.Copy.of",
                "account 3, byte[]: Amount { objects: 2, bytes: 64 } < lib.Copy.of < shop.Cart.add",
                "account 3, shop.Item: Amount { objects: 7, bytes: 0 } < shop.Cart.add",
                "account 4, shop.Item: Amount { objects: 1, bytes: 0 } < shop.Cart.add",
            ]
        );
    }

    #[test]
    fn a_deep_stack_keeps_its_upper_frames() {
        let contexts = Contexts::new();
        let method = contexts.method(Some(3), (b"shop/Cart", b"add", b"()V")) as u16;
        let item = contexts.class(b"shop/Item") as u16;
        let called = (0..1_000_u16).map(|node| Some((node, method)));
        let tree = Tree {
            nodes: [None].into_iter().chain(called).collect(),
            cells: HashMap::from([((1_000, item), (1, 0))]),
            ..Tree::default()
        };
        let (methods, types) = (locked(&contexts.methods), locked(&contexts.types));
        let stacks = of(&tree, &methods, &types, &HashMap::new());
        let stack = &stacks[&(UNACCOUNTED.into(), "shop.Item".into())][0];
        assert_eq!(stack.frames.len(), MAX_FRAMES + 1);
    }
}
