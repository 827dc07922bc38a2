//! Builds a profile sample by sample. Texts, methods and places are stored once.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::SystemTime;

use super::proto::{self, Label, Line, Mapping, ValueType};
use super::reading::Profile;
use super::{ACCOUNT, CLASS, FrameKind, SampleType, Values};

/// The one mapping of a profile.
const MAPPING: u64 = 1;

/// The facts about a profile as a whole: its time, its program and its sampling interval.
#[derive(Debug, Clone)]
pub struct About<'a> {
    /// When it was taken.
    pub at: SystemTime,
    /// The program; empty if it is not known.
    pub program: &'a str,
    /// The mean number of bytes between two samples; 0 if all allocations are sampled.
    pub interval_bytes: u64,
    /// Remarks, a line each, for whoever opens it.
    pub comments: &'a [&'a str],
}

/// A frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// `com.acme.Cart.add`.
    pub function: &'a str,
    /// The source file; empty if it is not known.
    pub file: &'a str,
    /// The line; 0 if it is not known.
    pub line: u32,
}

/// Builds a profile. Its memory grows with what is added: the caller bounds that.
#[derive(Debug)]
pub struct Builder {
    profile: proto::Profile,
    strings: HashMap<String, i64>,
    functions: HashMap<(i64, i64, i64), u64>,
    locations: HashMap<(u64, u32), u64>,
    keys: [i64; 2],
}

impl Builder {
    /// A profile without samples.
    #[must_use]
    pub fn new(about: &About<'_>) -> Builder {
        let mut builder = Builder {
            profile: proto::Profile::default(),
            strings: HashMap::new(),
            functions: HashMap::new(),
            locations: HashMap::new(),
            keys: [0; 2],
        };
        // The format wants the empty text first.
        builder.string("");
        builder.keys = [ACCOUNT, CLASS].map(|key| builder.string(key));
        for one in SampleType::ALL {
            let value = ValueType {
                r#type: builder.string(one.name()),
                unit: builder.string(one.unit()),
            };
            builder.profile.sample_type.push(value);
        }
        builder.profile.default_sample_type = builder.string(SampleType::InuseSpace.name());
        builder.profile.period_type = Some(ValueType {
            r#type: builder.string("space"),
            unit: builder.string("bytes"),
        });
        // A period of 0 means nothing to readers; every byte is sampled then.
        builder.profile.period = whole(about.interval_bytes.max(1));
        let since = about.at.duration_since(SystemTime::UNIX_EPOCH);
        let nanos = since.map_or(0, |since| since.as_nanos());
        builder.profile.time_nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
        builder.profile.comment = (about.comments.iter())
            .map(|comment| builder.string(comment))
            .collect();
        let filename = builder.string(about.program);
        builder.profile.mapping.push(Mapping {
            id: MAPPING,
            filename,
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
        });
        builder
    }

    /// Adds a sample of this account and class. `stack` is the way from the allocation to the thread's first method;
    /// if it is empty, the class stands in its place. What is zero altogether is left out.
    pub fn add<'a>(
        &mut self,
        account: &str,
        class: &str,
        stack: impl IntoIterator<Item = Frame<'a>>,
        values: Values,
    ) {
        if values.is_zero() {
            return;
        }
        let mut location_id: Vec<u64> = (stack.into_iter())
            .map(|frame| self.location(frame, FrameKind::Method))
            .collect();
        let named = |function| Frame {
            function,
            file: "",
            line: 0,
        };
        if location_id.is_empty() {
            location_id.push(self.location(named(class), FrameKind::Class));
        }
        let root = format!("[{account}]");
        location_id.push(self.location(named(&root), FrameKind::Account));
        let [account_key, class_key] = self.keys;
        let (account, class) = (self.string(account), self.string(class));
        let label = [(account_key, account), (class_key, class)];
        self.profile.sample.push(proto::Sample {
            location_id,
            value: values.to_array().into_iter().map(whole).collect(),
            label: label.map(|(key, str)| Label { key, str }).into(),
        });
    }

    /// The profile.
    #[must_use]
    pub fn finish(self) -> Profile {
        Profile(self.profile)
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(&known) = self.strings.get(text) {
            return known;
        }
        let index = self.profile.string_table.len() as i64;
        self.profile.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }

    fn location(&mut self, frame: Frame<'_>, kind: FrameKind) -> u64 {
        let name = self.string(frame.function);
        let system_name = self.string(kind.mark());
        let filename = self.string(frame.file);
        let functions = &mut self.profile.function;
        let function_id = known(&mut self.functions, (name, system_name, filename), |id| {
            functions.push(proto::Function {
                id,
                name,
                system_name,
                filename,
            });
        });
        let locations = &mut self.profile.location;
        known(&mut self.locations, (function_id, frame.line), |id| {
            let line = Line {
                function_id,
                line: frame.line.into(),
            };
            locations.push(proto::Location {
                id,
                mapping_id: MAPPING,
                line: vec![line],
            });
        })
    }
}

/// The number of a key, from 1; `add` adds what has the number, if it is new.
fn known<K: Hash + Eq>(numbers: &mut HashMap<K, u64>, key: K, add: impl FnOnce(u64)) -> u64 {
    let next = numbers.len() as u64 + 1;
    *numbers.entry(key).or_insert_with(|| {
        add(next);
        next
    })
}

/// The format has signed numbers.
fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
