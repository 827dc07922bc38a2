//! Numbers that inserted code carries: of classes that are instantiated, and of code that belongs to accounts.
//!
//! They are given in `ClassFileLoadHook`, on threads that load classes, under a lock that is held for one look
//! into a table. Both sorts end at 65,535: the counter has a place for each.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use policy_exact::{FIRST_CLASS, KNOWN_CLASSES};

use crate::identity::Identity;
use crate::identity::attribution::Claim;
use crate::identity::loaders::{LoaderId, LoaderOwner};
use crate::identity::names::{java_name, printable};
use crate::ledger::{LoaderTag, PurseId, Tag};

/// As many as `HeapwardenCounter.CLASSES`.
const MOST: usize = 1 << 16;
/// Classes with longer names have no number: names are kept, and a class file can name many that nobody loads.
const MAX_NAME_BYTES: usize = 1_000;

/// A class loader, which is never taken for a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Loader {
    Boot,
    Numbered(i64),
}

impl Loader {
    /// Its number now; `None` if it is gone.
    pub(super) fn id(self, identity: &Identity) -> Option<LoaderId> {
        match self {
            Loader::Boot => Some(LoaderId::BOOT),
            Loader::Numbered(tag) => match Tag::decode(tag) {
                Some(Tag::Loader(handle)) => live(identity, handle),
                _ => None,
            },
        }
    }
}

fn live(identity: &Identity, handle: LoaderTag) -> Option<LoaderId> {
    identity.loaders.of_tag(handle)
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    classes: HashMap<(Loader, Arc<[u8]>), u16>,
    /// By number, from [`FIRST_CLASS`] on.
    names: Vec<Arc<[u8]>>,
    /// By loader and package, as a descriptor of a class in it begins.
    packages: HashMap<(Loader, Box<str>), u16>,
    code: Vec<CodeOfAccount>,
}

/// The classes of one package and loader, which belong to one account.
#[derive(Debug, Clone)]
struct CodeOfAccount {
    loader: Loader,
    /// Any class of the package, as a descriptor.
    signature: Box<str>,
    /// The answer that the counter got; 0: it has not asked.
    told: i32,
}

impl Numbers {
    /// The numbers of this process, static: natives and the hook are given no state. Any thread.
    pub(super) fn get() -> &'static Numbers {
        static NUMBERS: LazyLock<Numbers> = LazyLock::new(Numbers::default);
        &NUMBERS
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a class as code of this loader names it; of an array by its descriptor.
    pub(super) fn class(&self, loader: Loader, name: &[u8]) -> Option<i32> {
        self.class_below(MOST, loader, name)
    }

    /// The number of a class of which there is an object. Hidden classes are among them, any number of which a program
    /// may make: half of the numbers are left for those that code names, whose objects would not be counted without.
    pub(super) fn class_of_object(&self, loader: Loader, name: &[u8]) -> Option<i32> {
        self.class_below(MOST / 2, loader, name)
    }

    fn class_below(&self, most: usize, loader: Loader, name: &[u8]) -> Option<i32> {
        let known = KNOWN_CLASSES.iter().find(|(_, known)| *known == name);
        if let Some((number, _)) = known {
            return Some(*number);
        }
        if name.len() > MAX_NAME_BYTES {
            return None;
        }
        // Only the boot loader has these.
        let loader = match is_of_java(name) {
            true => Loader::Boot,
            false => loader,
        };
        let mut tables = self.tables();
        let key = (loader, Arc::from(name));
        if let Some(number) = tables.classes.get(&key) {
            return Some(i32::from(*number));
        }
        let number = FIRST_CLASS as usize + tables.names.len();
        let number = u16::try_from(number).ok().filter(|_| number < most)?;
        tables.names.push(Arc::clone(&key.1));
        tables.classes.insert(key, number);
        Some(i32::from(number))
    }

    /// The class of a number as Java names it; `None` if it is the number of many.
    pub(super) fn class_name(&self, number: u16) -> Option<String> {
        let number = i32::from(number);
        let known = KNOWN_CLASSES.iter().find(|(known, _)| *known == number);
        let name: Arc<[u8]> = match known {
            Some((_, name)) => Arc::from(*name),
            None => {
                let place = usize::try_from(number - FIRST_CLASS).ok()?;
                Arc::clone(self.tables().names.get(place)?)
            }
        };
        let name = String::from_utf8_lossy(&name);
        let name = match name.starts_with('[') {
            true => java_name(&name),
            false => java_name(&format!("L{name};")),
        };
        Some(printable(&name))
    }

    /// The number of the code of a class, if it belongs to an account or may soon.
    pub(super) fn code(&self, identity: &Identity, loader: Loader, signature: &str) -> Option<i32> {
        if belongs(identity, loader, signature) == NOBODY {
            return None;
        }
        let package = signature
            .rsplit_once('/')
            .map_or("", |(package, _)| package);
        let mut tables = self.tables();
        let key = (loader, Box::from(package));
        if let Some(number) = tables.packages.get(&key) {
            return Some(i32::from(*number));
        }
        if tables.code.len() >= MOST {
            return None;
        }
        let number = tables.code.len() as u16;
        tables.packages.insert(key, number);
        tables.code.push(CodeOfAccount {
            loader,
            signature: signature.into(),
            told: 0,
        });
        Some(i32::from(number))
    }

    /// The account of the code of this number, as the counter has it.
    pub(super) fn owner(&self, identity: &Identity, number: i32) -> i32 {
        let mut tables = self.tables();
        let code = usize::try_from(number).ok();
        let Some(code) = code.and_then(|number| tables.code.get_mut(number)) else {
            return NOBODY;
        };
        code.told = belongs(identity, code.loader, &code.signature);
        code.told
    }

    /// The purse of the account that the code of this number belongs to now, as a frame of it does in the rule of
    /// samples. Agent threads.
    pub(super) fn purse(&self, identity: &Identity, number: i32) -> Option<PurseId> {
        let code = usize::try_from(number).ok()?;
        let code = self.tables().code.get(code)?.clone();
        let account = belongs(identity, code.loader, &code.signature);
        let purse = (account != NOBODY).then_some(account / 2)?;
        u16::try_from(purse).ok().map(PurseId::new)
    }

    /// Looks to which account code belongs by now, and calls `tell` with the number of the code and its account where
    /// that has changed. Returns whether it has anywhere. Agent threads.
    pub(super) fn follow(&self, identity: &Identity, mut tell: impl FnMut(i32, i32)) -> bool {
        let mut has_changed = false;
        let code = self.tables().code.clone();
        for (number, code) in code.into_iter().enumerate() {
            let account = belongs(identity, code.loader, &code.signature);
            if code.told != 0 && account != code.told {
                tell(number as i32, account);
                has_changed = true;
                self.tables().code[number].told = account;
            }
        }
        has_changed
    }
}

/// Whether it is a class of a package `java.…`, an array of those, or an array of primitives.
fn is_of_java(name: &[u8]) -> bool {
    let dimensions = name.iter().take_while(|byte| **byte == b'[').count();
    let element = &name[dimensions..];
    match dimensions {
        0 => element.starts_with(b"java/"),
        _ => element.starts_with(b"Ljava/") || element.len() == 1,
    }
}

/// The counter's number for code of no account.
pub(super) const NOBODY: i32 = -1;

/// To which account code belongs, as a frame of it does in the rule of samples: twice the number of its purse.
fn belongs(identity: &Identity, loader: Loader, signature: &str) -> i32 {
    let account = |purse: PurseId| 2 * i32::from(purse.get());
    let (_, side) = identity.view();
    match identity.claims_of(signature)[side.0] {
        Claim::Account(purse) => return account(purse),
        Claim::Library(_) => return NOBODY,
        Claim::Nobody | Claim::Program(_) => {}
    }
    let Some(id) = loader.id(identity).filter(|id| *id != LoaderId::BOOT) else {
        return NOBODY;
    };
    match identity.loaders.owner(id) {
        LoaderOwner::Service(purse) | LoaderOwner::Pending(purse) => account(purse),
        LoaderOwner::Program(_) | LoaderOwner::Nobody => NOBODY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_with_a_long_name_has_no_number() {
        let numbers = Numbers::default();
        assert_eq!(numbers.class(Loader::Boot, b"a/B"), Some(16));
        assert_eq!(numbers.class(Loader::Boot, &[b'a'; 1_001]), None);
        assert_eq!(numbers.class(Loader::Boot, &[b'a'; 1_000]), Some(17));
        assert_eq!(numbers.class(Loader::Boot, b"a/B"), Some(16));
    }

    #[test]
    fn a_number_has_the_name_that_java_gives_the_class() {
        let numbers = Numbers::default();
        let other = Loader::Numbered(7);
        for (descriptor, name) in [
            (&b"a/B$C"[..], "a.B$C"),
            (b"[La/B;", "a.B[]"),
            (b"[[I", "int[][]"),
            (b"[I", "int[]"),
            (b"[Ljava/lang/Object;", "java.lang.Object[]"),
            (b"a\n/B", "a?.B"),
        ] {
            let number = numbers.class(other, descriptor).expect("there are numbers");
            let number = u16::try_from(number).expect("below 65,536");
            assert_eq!(numbers.class_name(number).as_deref(), Some(name));
        }
        assert_eq!(numbers.class_name(1), None);
        assert_eq!(numbers.class_name(60_000), None);
    }

    #[test]
    fn objects_take_half_of_the_numbers_at_the_most() {
        let numbers = Numbers::default();
        let many = (0..MOST).filter(|at| {
            let name = format!("a/Hidden.0x{at:x}");
            numbers
                .class_of_object(Loader::Boot, name.as_bytes())
                .is_some()
        });
        assert_eq!(many.count(), MOST / 2 - FIRST_CLASS as usize);
        let named = numbers.class(Loader::Boot, b"a/B");
        assert_eq!(named, Some(MOST as i32 / 2));
        assert_eq!(numbers.class_of_object(Loader::Boot, b"a/B"), named);
    }

    #[test]
    fn what_only_the_boot_loader_has_is_one_class_for_all_loaders() {
        let numbers = Numbers::default();
        let is_one = |name: &[u8]| {
            numbers.class(Loader::Boot, name) == numbers.class(Loader::Numbered(7), name)
        };
        assert!(is_one(b"java/util/HashMap") && is_one(b"[Ljava/util/HashMap;"));
        assert!(is_one(b"[[J") && is_one(b"[Ljava/lang/Object;"));
        assert!(!is_one(b"a/B") && !is_one(b"[La/B;"));
    }
}
