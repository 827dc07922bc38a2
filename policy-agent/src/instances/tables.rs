//! The rows of an answer.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use policy_core::instances::{Estimate, Threshold};
use policy_report::{EqualRow, InstanceRow, ShownValue, WastedRow};

use super::look::{Found, Looked, Sampled};
use super::reader::{Contents, Value};

/// Objects with one value that are needed to call them equal.
const LEAST_EQUAL: u64 = 2;

/// The objects that were drawn and looked at, with what they stand for.
pub(super) struct Tables<'a> {
    found: &'a Found,
    looked: &'a Looked,
    threshold: Threshold,
    rows: usize,
}

impl<'a> Tables<'a> {
    pub(super) fn new(found: &'a Found, looked: &'a Looked, rows: usize) -> Tables<'a> {
        Tables {
            found,
            looked,
            threshold: found.drawn.threshold(looked.drawn),
            rows,
        }
    }

    /// The drawn objects that were there.
    fn drawn(&self) -> impl Iterator<Item = (&'a Sampled, &'a Contents)> {
        let (found, looked) = (self.found, self.looked);
        let drawn = found.drawn.items().take(looked.drawn);
        drawn.filter_map(|one| Some((one, looked.contents.get(&one.tag)?)))
    }

    /// These objects, as far as they were there.
    pub(super) fn of(&self, objects: &[Sampled]) -> Vec<InstanceRow<'static>> {
        let there = objects
            .iter()
            .filter_map(|one| Some(row(one, self.looked.contents.get(&one.tag)?)));
        there.collect()
    }

    pub(super) fn with_most_elements(&self) -> Vec<InstanceRow<'static>> {
        let mut all: Vec<(&Sampled, &Contents)> = self
            .drawn()
            .filter(|(_, contents)| contents.elements.is_some())
            .collect();
        all.sort_by_key(|(_, contents)| Reverse(contents.elements));
        let most = all.into_iter().take(self.rows);
        most.map(|(one, contents)| row(one, contents)).collect()
    }

    pub(super) fn equal(&self) -> Vec<EqualRow<'static>> {
        #[derive(Default)]
        struct Equal<'v> {
            value: Option<&'v Value>,
            own: Estimate,
            with_content: Estimate,
        }
        let mut groups: HashMap<(Arc<str>, u128), Equal<'_>> = HashMap::new();
        for (one, contents) in self.drawn() {
            let Some(value) = &contents.value else {
                continue;
            };
            let Some(key) = value.key else {
                continue;
            };
            let group = groups.entry((one.class.clone(), key)).or_default();
            group.value = Some(value);
            let (size, own) = (one.size_bytes, one.size_bytes as f64);
            group.own.add(self.threshold, &one.charge, size, own);
            let content = own + contents.content_bytes as f64;
            (group.with_content).add(self.threshold, &one.charge, size, content);
        }
        let mut rows: Vec<EqualRow<'static>> = (groups.into_iter())
            .filter(|(_, group)| group.own.samples >= LEAST_EQUAL)
            .map(|((class, _), group)| EqualRow {
                class: class.to_string().into(),
                value: group.value.map(shown).unwrap_or_default(),
                objects: group.own.objects(),
                live_bytes: group.own.bytes(),
                standard_error_bytes: group.own.error_bytes(),
                with_content_bytes: group.with_content.bytes(),
                with_content_standard_error_bytes: group.with_content.error_bytes(),
                samples: group.own.samples,
            })
            .collect();
        rows.sort_by_key(|row| Reverse((row.objects, row.with_content_bytes)));
        rows.truncate(self.rows);
        rows
    }

    pub(super) fn wasted(&self) -> Vec<WastedRow<'static>> {
        #[derive(Default)]
        struct Wasted {
            own: Estimate,
            empty: Estimate,
            spare: Estimate,
            all: Estimate,
        }
        let mut classes: HashMap<Arc<str>, Wasted> = HashMap::new();
        for (one, contents) in self.drawn() {
            let Some(held) = contents.held else {
                continue;
            };
            let class = classes.entry(one.class.clone()).or_default();
            let size = one.size_bytes;
            let add = |estimate: &mut Estimate, each_bytes: f64| {
                estimate.add(self.threshold, &one.charge, size, each_bytes);
            };
            add(&mut class.own, size as f64);
            add(&mut class.spare, held.spare_bytes());
            add(&mut class.all, held.bytes as f64);
            if contents.elements == Some(0) {
                add(&mut class.empty, size as f64);
            }
        }
        let mut rows: Vec<WastedRow<'static>> = (classes.into_iter())
            .map(|(class, wasted)| WastedRow {
                class: class.to_string().into(),
                objects: wasted.own.objects(),
                empty_objects: wasted.empty.objects(),
                wasted_bytes: wasted.spare.bytes(),
                standard_error_bytes: wasted.spare.error_bytes(),
                capacity_bytes: wasted.all.bytes(),
                samples: wasted.own.samples,
            })
            .collect();
        rows.sort_by_key(|row| Reverse((row.wasted_bytes, row.objects)));
        rows.truncate(self.rows);
        rows
    }
}

fn row(one: &Sampled, contents: &Contents) -> InstanceRow<'static> {
    let seconds = |ms: u64| ms as f64 / 1e3;
    InstanceRow {
        class: one.class.to_string().into(),
        bytes: contents.bytes,
        elements: contents.elements,
        capacity: contents.held.map(|held| held.capacity),
        value: contents.value.as_ref().map(shown),
        age_at_least_seconds: seconds(one.ages_ms.0),
        age_at_most_seconds: seconds(one.ages_ms.1),
        collections_survived: u64::from(one.collections),
    }
}

/// A value as it leaves the agent.
fn shown(value: &Value) -> ShownValue<'static> {
    ShownValue {
        text: value.text.clone().map(Into::into),
        digest: match (&value.text, value.key) {
            (None, Some(key)) => Some(format!("{:016x}", (key >> 64) as u64).into()),
            _ => None,
        },
        length: value.length,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_shown_or_a_digest_and_never_both() {
        let mut value = Value {
            key: Some(0xabc << 64),
            text: None,
            length: Some(7),
        };
        let masked = shown(&value);
        assert_eq!(masked.digest.as_deref(), Some("0000000000000abc"));
        assert_eq!((masked.text, masked.length), (None, Some(7)));
        value.text = Some("secret".to_owned());
        let open = shown(&value);
        assert_eq!((open.text.as_deref(), open.digest), (Some("secret"), None));
        // A value that is too long to be compared.
        value = Value::default();
        assert_eq!(shown(&value), ShownValue::default());
    }
}
