//! Which of the suspects of an account are parts of another: arrays and classes of the JDK that grow with a
//! class of the program's own.
//!
//! A leaking session holds strings, arrays and nodes of maps, which leak with it, often with more bytes than
//! the session. The class of the program says more. Pure functions.

use super::detector::Judged;
use super::statistic::Verdict;

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

/// How surely a class of the program must grow to stand for parts of its account that are suspects.
const LEADS_FROM: f64 = 2.5;

/// A suspect with its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The suspect. Its growth is that of all.
    pub whole: Judged,
    /// The classes that are its parts.
    pub with: Vec<String>,
}

impl Group {
    fn add(&mut self, part: &Judged) {
        self.with.push(part.name.class.to_string());
        self.whole.growth += part.growth;
        self.whole.error = self.whole.error.hypot(part.error);
    }
}

/// The suspects, each with the classes that are its parts, fastest growth first. Parts belong to the class of
/// the program that is suspect in their account. If none is, one of `others` stands for them that grows with
/// them and is not refuted: it has fewer bytes than its arrays, and takes longer to be proved.
#[must_use]
pub fn grouped(suspects: Vec<Judged>, others: &[Judged]) -> Vec<Group> {
    let (mut parts, own): (Vec<Judged>, Vec<Judged>) = suspects
        .into_iter()
        .partition(|one| is_part(&one.name.class));
    let group = |whole| Group {
        whole,
        with: Vec::new(),
    };
    let mut groups: Vec<Group> = own.into_iter().map(group).collect();
    fastest_first(&mut groups);
    parts.sort_by(|a, b| b.growth.total_cmp(&a.growth));
    for part in parts {
        let account = &part.name.account;
        let whole = (groups.iter_mut()).find(|group| group.whole.name.account == *account);
        if let Some(whole) = whole {
            whole.add(&part);
            continue;
        }
        let surely = |one: &&Judged| one.growth / one.error.max(f64::MIN_POSITIVE);
        let lead = (others.iter())
            .filter(|one| one.name.account == *account && !is_part(&one.name.class))
            .filter(|one| matches!(one.verdict, Verdict::Leak | Verdict::Undecided))
            .filter(|one| surely(one) > LEADS_FROM)
            .max_by(|a, b| surely(a).total_cmp(&surely(b)));
        let mut whole = group(match lead {
            Some(lead) => Judged {
                name: lead.name.clone(),
                growth: lead.growth,
                error: lead.error,
                ..part.clone()
            },
            None => part.clone(),
        });
        if lead.is_some() {
            whole.add(&part);
        }
        groups.push(whole);
    }
    for group in &mut groups {
        group.with.sort_unstable();
    }
    fastest_first(&mut groups);
    groups
}

fn fastest_first(groups: &mut [Group]) {
    groups.sort_by(|a, b| b.whole.growth.total_cmp(&a.whole.growth));
}
