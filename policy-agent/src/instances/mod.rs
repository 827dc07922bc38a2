//! Single objects, on request only: the largest of an account, the oldest, equal values, wasted capacity.
//!
//! The records say which sampled objects there are, how large they are and how old. What is in them is looked up in
//! the JVM: a bounded number of objects is found by their tags ([`look`]), and read if they are of classes of the
//! JDK whose fields are known ([`reader`], [`layouts`]). No code of Java is called. [`tables`] makes the answer.
//!
//! Values are masked unless `[privacy] values` allows them: they never leave [`reader`] otherwise.

mod layouts;
mod look;
mod reader;
mod tables;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use policy_jvm::Jni;
use policy_report::{InstanceAnswers, Instances, InstancesRequest, WalkRequest};

use crate::ground::Ground;
use crate::sampling::standard_error_bytes;

/// How many answers are kept for the page.
const KEPT: usize = 5;
/// The rows of a table, where nobody says otherwise, and at the most.
const DEFAULT_ROWS: u64 = 10;
const MAX_ROWS: u64 = 100;

/// The last answers, newest first.
#[derive(Default)]
pub(crate) struct Answers {
    kept: Mutex<VecDeque<Instances<'static>>>,
}

impl Answers {
    fn kept(&self) -> MutexGuard<'_, VecDeque<Instances<'static>>> {
        self.kept.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(crate) fn keep(&self, answer: &Instances<'static>) {
        let mut kept = self.kept();
        kept.push_front(answer.clone());
        kept.truncate(KEPT);
    }

    /// The answers, as JSON with a line feed. Those with values are forgotten once the policy does not allow them
    /// any more. On the listener's thread.
    pub(crate) fn document(&self, values_allowed: bool) -> Vec<u8> {
        let mut kept = self.kept();
        kept.retain(|answer| values_allowed || !answer.values_shown);
        let document = InstanceAnswers {
            answers: kept.iter().cloned().collect(),
        };
        drop(kept);
        let mut json = serde_json::to_vec(&document).unwrap_or_default();
        json.push(b'\n');
        json
    }
}

/// Answers a question. On an attached thread of the agent; takes seconds.
///
/// # Errors
/// A sentence, if there is no answer.
pub(crate) fn answer(
    ground: &Ground,
    jni: &Jni,
    request: &WalkRequest<'_>,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Instances<'static>, String> {
    let asked = wanted(request.instances.as_ref());
    let Some(account) = request.account.as_deref() else {
        return Err("name an account: --account NAME".to_owned());
    };
    let rows = asked.limit.unwrap_or(DEFAULT_ROWS).clamp(1, MAX_ROWS) as usize;
    let values_shown = ground.policy.in_force().privacy.values;
    let found = look::Found::scan(ground, account, request.class.as_deref(), &asked, rows);
    if found.sampled == 0 {
        return Err(nothing(account, request.class.as_deref()));
    }
    let limits = look::Limits::of(request.max_pause_ms);
    let looked = look::look(ground, jni, &found, &limits, values_shown, is_cancelled)?;
    // A reload meanwhile that forbids values holds for this answer, too.
    if values_shown && !ground.policy.in_force().privacy.values {
        return Err(
            "the policy was changed meanwhile, and does not allow values any more: ask again"
                .to_owned(),
        );
    }
    let tables = tables::Tables::new(&found, &looked, rows);
    Ok(Instances {
        at: humantime::format_rfc3339_seconds(std::time::SystemTime::now())
            .to_string()
            .into(),
        account: account.to_owned().into(),
        class: request
            .class
            .as_deref()
            .map(|class| class.to_owned().into()),
        values_shown,
        sampled: found.sampled,
        live_bytes: found.live.bytes,
        standard_error_bytes: standard_error_bytes(found.live.variance).ceil() as u64,
        looked_at: looked.contents.len() as u64,
        drawn: looked.drawn as u64,
        gone: looked.gone,
        cut_short: looked.cut_short.clone().map(Into::into),
        searches: looked.searches,
        longest_search_ms: milliseconds(looked.longest_search),
        searches_ms: milliseconds(looked.all_searches),
        not_readable: (looked.not_readable.iter())
            .map(|class| class.clone().into())
            .collect(),
        largest: asked.largest.then(|| tables.of(&found.largest)),
        elements: asked.elements.then(|| tables.with_most_elements()),
        oldest: asked.oldest.then(|| tables.of(&found.oldest)),
        equal: asked.equal.then(|| tables.equal()),
        wasted: asked.wasted.then(|| tables.wasted()),
    })
}

/// Returns the tables that are asked for: all tables, if none is named.
fn wanted(request: Option<&InstancesRequest>) -> InstancesRequest {
    let asked = request.cloned().unwrap_or_default();
    let is_any = asked.largest || asked.elements || asked.oldest || asked.equal || asked.wasted;
    if is_any {
        return asked;
    }
    InstancesRequest {
        largest: true,
        elements: true,
        oldest: true,
        equal: true,
        wasted: true,
        limit: asked.limit,
    }
}

fn milliseconds(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn nothing(account: &str, class: Option<&str>) -> String {
    let of_class = class
        .map(|class| format!(" of class {class}"))
        .unwrap_or_default();
    format!(
        "no sampled object{of_class} of account {account} has survived a collection; names are as /api/v1/accounts?classes=all has them"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(at: &'static str, values_shown: bool) -> Instances<'static> {
        Instances {
            at: at.into(),
            values_shown,
            ..Instances::default()
        }
    }

    fn kept(answers: &Answers, values_allowed: bool) -> Vec<String> {
        let json = answers.document(values_allowed);
        let document: InstanceAnswers<'_> = serde_json::from_slice(&json).expect("it is JSON");
        (document.answers.iter())
            .map(|one| one.at.clone().into_owned())
            .collect()
    }

    #[test]
    fn the_last_few_are_kept_and_values_only_while_the_policy_allows_them() {
        let answers = Answers::default();
        for at in ["1", "2", "3", "4", "5", "6"] {
            answers.keep(&of(at, at == "5"));
        }
        assert_eq!(kept(&answers, true), ["6", "5", "4", "3", "2"]);
        assert_eq!(kept(&answers, false), ["6", "4", "3", "2"]);
        // Allowed anew, what was forgotten does not come back.
        assert_eq!(kept(&answers, true), ["6", "4", "3", "2"]);
    }

    #[test]
    fn without_a_named_table_all_are_asked_for() {
        let all = wanted(None);
        assert!(all.largest && all.elements && all.oldest && all.equal && all.wasted);
        let one = InstancesRequest {
            equal: true,
            limit: Some(3),
            ..InstancesRequest::default()
        };
        assert_eq!(wanted(Some(&one)), one);
    }
}
