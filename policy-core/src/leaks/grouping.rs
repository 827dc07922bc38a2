//! Which of the suspects of an account are parts of another: arrays and classes of the JDK that grow with a
//! class of the program's own.
//!
//! A leaking session holds strings, arrays and nodes of maps, which leak with it, often with more bytes than
//! the session. The class of the program says more. Pure functions.

use super::detector::Judged;

/// Packages of the JDK.
const JDK: [&str; 5] = ["java.", "javax.", "jdk.", "sun.", "com.sun."];

/// Whether a class, by its Java source name, is an array of the JDK's or a class of it.
#[must_use]
pub fn is_part(class: &str) -> bool {
    let element = class.trim_end_matches("[]");
    let is_primitive =
        !element.contains('.') && element.len() < class.len() && is_primitive(element);
    is_primitive || JDK.iter().any(|package| element.starts_with(package))
}

fn is_primitive(element: &str) -> bool {
    let names = [
        "boolean", "byte", "char", "double", "float", "int", "long", "short",
    ];
    names.contains(&element)
}

/// The suspects, each with the classes that are its parts. `is_candidate` tells whether an own class of the
/// account is about to be confirmed: its parts wait for it.
#[must_use]
pub fn grouped(
    suspects: Vec<Judged>,
    is_candidate: impl Fn(&str) -> bool,
) -> Vec<(Judged, Vec<String>)> {
    let (parts, own): (Vec<Judged>, Vec<Judged>) = suspects
        .into_iter()
        .partition(|one| is_part(&one.name.class));
    let mut groups: Vec<(Judged, Vec<String>)> =
        own.into_iter().map(|one| (one, Vec::new())).collect();
    groups.sort_by(|(a, _), (b, _)| b.growth.total_cmp(&a.growth));
    let mut rest: Vec<Judged> = Vec::new();
    for part in parts {
        // The one that grows most stands for the account.
        let whole = (groups.iter_mut()).find(|(own, _)| own.name.account == part.name.account);
        match whole {
            Some((_, with)) => with.push(part.name.class.to_string()),
            None if is_candidate(&part.name.account) => {}
            None => rest.push(part),
        }
    }
    // Without a class of its own: the part that grows most, and the others with it.
    rest.sort_by(|a, b| b.growth.total_cmp(&a.growth));
    for part in rest {
        let whole = (groups.iter_mut()).find(|(own, _)| own.name.account == part.name.account);
        match whole {
            Some((_, with)) => with.push(part.name.class.to_string()),
            None => groups.push((part, Vec::new())),
        }
    }
    for (_, with) in &mut groups {
        with.sort_unstable();
    }
    groups.sort_by(|(a, _), (b, _)| b.growth.total_cmp(&a.growth));
    groups
}
