//! `GET /api/v1/profile`: the accounts as a profile in the pprof format. The format is that of [`policy_profile`]; this
//! fills it from a reading.
//!
//! # Rules
//! 1. The sums by account are the account's own figures of the same reading (`live_bytes`, `live_objects`,
//!    `allocated_bytes_total`, `allocated_objects_total`), to the byte.
//! 2. An account's classes fit into it, and the stacks of a class into that. What no class explains (classes that are not
//!    listed, and what ended deployments had allocated) is of the class [`NOT_LISTED`]; what no stack explains has no stack.
//! 3. Where the bytes of a stack are not known, each of its objects is as long as the mean of its class: all objects of a
//!    class that is no array are of one size.
//! 4. It is bounded: as many accounts as [`json`], [`MAX_CLASSES`] classes of all accounts together, largest
//!    accounts first, and the stacks of the reading. Accounts beyond that are summed as `_other`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use policy_core::sites::stacks::{self, Amount, Stack};
use policy_profile::{About, Builder, Frame, Profile, Values, fit};

use super::fold::clip;
use super::{Account, Class, OTHER, Snapshot, json};

/// Most classes in one profile, over all accounts.
pub const MAX_CLASSES: usize = json::MAX_DETAIL_ROWS;
/// The class of what no class explains.
pub const NOT_LISTED: &str = "(not listed)";

const COMMENTS: [&str; 2] = [
    "Heapwarden: inuse is what survived the latest complete collection, alloc what was allocated since the agent was loaded.",
    "Figures are estimates from samples. Stacks are those of accounts in [leaks] sites, of leak suspects, and of [exact] contexts.",
];

/// The stacks by account and class.
pub type Stacks = HashMap<(Arc<str>, Arc<str>), Vec<Stack>>;

/// The profile of this reading.
#[must_use]
pub fn profile(snapshot: &Snapshot, stacks: &Stacks, at: SystemTime) -> Profile {
    let mut builder = Builder::new(&About {
        at,
        program: &clip(&snapshot.process.program),
        interval_bytes: snapshot.sampling.interval_bytes,
        comments: &COMMENTS,
    });
    let stacks: HashMap<(&str, &str), &[Stack]> = (stacks.iter())
        .map(|((account, class), stacks)| ((&**account, &**class), &stacks[..]))
        .collect();
    let mut accounts: Vec<&Account> = snapshot.accounts.iter().collect();
    accounts.sort_unstable_by(|a, b| {
        (b.live_bytes.cmp(&a.live_bytes)).then_with(|| a.name.cmp(&b.name))
    });
    let beyond = accounts.split_off(accounts.len().min(json::MAX_ACCOUNTS));
    let mut classes_left = MAX_CLASSES;
    for account in accounts {
        let listed = &account.classes[..account.classes.len().min(classes_left)];
        classes_left -= listed.len();
        add(&mut builder, account, listed, &stacks);
    }
    let mut others = Values::default();
    beyond.into_iter().for_each(|one| others += of_account(one));
    builder.add(OTHER, NOT_LISTED, [], others);
    builder.finish()
}

fn add(
    builder: &mut Builder,
    account: &Account,
    classes: &[Class],
    stacks: &HashMap<(&str, &str), &[Stack]>,
) {
    let name = clip(&account.name);
    let mut values: Vec<Values> = classes.iter().map(of_class).collect();
    let rest = fit(of_account(account), &mut values);
    builder.add(&name, NOT_LISTED, [], rest);
    for (class, values) in classes.iter().zip(values) {
        let found = stacks.get(&(account.name.as_str(), class.class.as_str()));
        let found = found.copied().unwrap_or_default();
        let parts = found.iter().map(|stack| of_stack(stack, class));
        let mut parts: Vec<Values> = parts.collect();
        let rest = fit(values, &mut parts);
        let class = clip(&class.class);
        builder.add(&name, &class, [], rest);
        for (stack, values) in found.iter().zip(parts) {
            let functions: Vec<String> = stack.frames.iter().map(function).collect();
            let frames = functions
                .iter()
                .zip(&stack.frames)
                .map(|(function, frame)| Frame {
                    function,
                    file: frame.file(),
                    line: frame.line(),
                });
            builder.add(&name, &class, frames, values);
        }
    }
}

fn function(frame: &stacks::Frame) -> String {
    let mut function = String::new();
    frame.write_function(&mut function);
    function
}

fn of_account(account: &Account) -> Values {
    Values {
        alloc_objects: account.allocated_objects_total,
        alloc_bytes: account.allocated_bytes_total,
        live_objects: account.live_objects,
        live_bytes: account.live_bytes,
    }
}

fn of_class(class: &Class) -> Values {
    Values {
        alloc_objects: class.allocated_objects_total,
        alloc_bytes: class.allocated_bytes_total,
        live_objects: class.live_objects,
        live_bytes: class.live_bytes,
    }
}

fn of_stack(stack: &Stack, class: &Class) -> Values {
    let Amount { objects, bytes } = stack.allocated;
    let mean = || class.allocated_bytes_total as f64 / class.allocated_objects_total.max(1) as f64;
    Values {
        alloc_objects: objects,
        alloc_bytes: match bytes {
            0 => (objects as f64 * mean()).round() as u64,
            known => known,
        },
        live_objects: stack.live.objects,
        live_bytes: stack.live.bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy_profile::SampleType;

    fn class(name: &str, live_bytes: u64) -> Class {
        Class {
            class: name.to_owned(),
            live_bytes,
            live_objects: live_bytes / 8,
            allocated_bytes_total: live_bytes * 2,
            allocated_objects_total: live_bytes / 4,
            ..Class::default()
        }
    }

    fn account(name: &str, live_bytes: u64, classes: Vec<Class>) -> Account {
        Account {
            name: name.to_owned(),
            live_bytes,
            live_objects: live_bytes / 8,
            allocated_bytes_total: live_bytes * 3,
            allocated_objects_total: live_bytes / 2,
            classes,
            ..Account::default()
        }
    }

    fn of(accounts: Vec<Account>) -> Profile {
        let snapshot = Snapshot {
            accounts,
            ..Snapshot::default()
        };
        profile(&snapshot, &Stacks::new(), SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn sums_are_the_accounts_own_whatever_their_classes_say() {
        let accounts = vec![
            account("less", 800, vec![class("a.B", 80), class("byte[]", 160)]),
            account("more", 80, vec![class("a.B", 800), class("byte[]", 80)]),
            account("bare", 8, vec![]),
            account("zero", 0, vec![class("a.B", 80)]),
        ];
        let expected: Vec<(String, Values)> = (accounts.iter())
            .filter(|one| one.live_bytes > 0)
            .map(|one| (one.name.clone(), of_account(one)))
            .collect();
        let found = of(accounts);
        assert_eq!(found.accounts().len(), expected.len());
        for (name, values) in expected {
            assert_eq!(found.accounts()[&*name], values, "{name}");
        }
        let mut text = Vec::new();
        found
            .write_collapsed(SampleType::InuseSpace, &mut text)
            .unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "[bare];(not listed) 8\n[less];(not listed) 560\n[less];a.B 80\n[less];byte[] 160\n\
             [more];a.B 72\n[more];byte[] 8\n"
        );
    }

    #[test]
    fn a_profile_is_bounded_and_says_the_rest() {
        let most = json::MAX_ACCOUNTS as u64;
        let accounts = (0..most + 5).map(|number| {
            let classes = (0..20).map(|class_number| class(&format!("C{class_number}"), 8));
            account(&format!("a{number}"), 160, classes.collect())
        });
        let accounts: Vec<Account> = accounts.collect();
        let found = of(accounts);
        let sums = found.accounts();
        assert_eq!(sums.len() as u64, most + 1);
        assert_eq!(sums[OTHER].live_bytes, 5 * 160);
        assert_eq!(
            sums.values().map(|one| one.live_bytes).sum::<u64>(),
            (most + 5) * 160
        );
        let mut text = Vec::new();
        found
            .write_collapsed(SampleType::InuseSpace, &mut text)
            .unwrap();
        let lines = text.iter().filter(|&&byte| byte == b'\n').count();
        // The classes of the first accounts, and a line for each of the others.
        assert_eq!(lines, MAX_CLASSES + json::MAX_ACCOUNTS / 2 + 1);
    }
}
