//! A profile that is complete: written, read, and asked for what it has.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read as _, Write as _};
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use prost::Message as _;

use super::{ACCOUNT, CLASS, SampleType, Values, proto};

/// The largest profile that is read, in bytes before compression. In memory it may become sixteen times as large.
pub const MAX_BYTES: u64 = 64 << 20;
/// How hard a profile is compressed: beyond this, time grows faster than size falls.
const LEVEL: u32 = 3;

/// Why bytes are no profile.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not gzip, or damaged.
    #[error("it is not gzip, or damaged: {0}")]
    Gzip(#[from] io::Error),
    /// Beyond [`MAX_BYTES`].
    #[error("it is larger than {} MiB", MAX_BYTES >> 20)]
    TooLarge,
    /// Not the format.
    #[error("it is not in the pprof format")]
    NotPprof,
    /// The format, with other sample types or labels.
    #[error("it is not a profile of Heapwarden's accounts")]
    Foreign,
}

/// A profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile(pub(super) proto::Profile);

impl Profile {
    /// The profile as pprof reads it: gzip of the message.
    #[must_use]
    pub fn to_gzip(&self) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(LEVEL));
        let written = encoder.write_all(&self.0.encode_to_vec());
        (written.and_then(|()| encoder.finish())).expect("writing to a Vec does not fail")
    }

    /// Reads what [`Profile::to_gzip`] has written.
    ///
    /// # Errors
    /// [`ReadError`]; a profile that was read names only what it has.
    pub fn from_gzip(bytes: &[u8]) -> Result<Profile, ReadError> {
        let mut plain = Vec::new();
        MultiGzDecoder::new(bytes)
            .take(MAX_BYTES + 1)
            .read_to_end(&mut plain)?;
        if plain.len() as u64 > MAX_BYTES {
            return Err(ReadError::TooLarge);
        }
        let read = proto::Profile::decode(&plain[..]).map_err(|_| ReadError::NotPprof)?;
        let profile = Profile(read);
        match profile.is_whole() {
            None => Err(ReadError::NotPprof),
            Some(false) => Err(ReadError::Foreign),
            Some(true) => Ok(profile),
        }
    }

    /// Whether it has our sample types and labels; `None` if it names what it does not have.
    fn is_whole(&self) -> Option<bool> {
        let mut own = self.0.sample_type.len() == SampleType::ALL.len();
        for (value, expected) in self.0.sample_type.iter().zip(SampleType::ALL) {
            own &= self.text(value.r#type)? == expected.name();
        }
        for function in &self.0.function {
            self.text(function.name)?;
            self.text(function.system_name)?;
        }
        let functions: HashMap<u64, &proto::Function> = self.functions();
        for location in &self.0.location {
            for line in &location.line {
                functions.get(&line.function_id)?;
            }
        }
        let locations = self.locations();
        for sample in &self.0.sample {
            for location in &sample.location_id {
                locations.get(location)?;
            }
            for label in &sample.label {
                self.text(label.key)?;
                self.text(label.str)?;
            }
            own &= sample.value.len() == SampleType::ALL.len();
            own &= [ACCOUNT, CLASS]
                .iter()
                .all(|&key| self.label(sample, key).is_some());
        }
        for mapping in &self.0.mapping {
            self.text(mapping.filename)?;
        }
        Some(own)
    }

    /// A text of the table.
    pub(super) fn text(&self, index: i64) -> Option<&str> {
        let index = usize::try_from(index).ok()?;
        self.0.string_table.get(index).map(String::as_str)
    }

    pub(super) fn functions(&self) -> HashMap<u64, &proto::Function> {
        self.0.function.iter().map(|one| (one.id, one)).collect()
    }

    pub(super) fn locations(&self) -> HashMap<u64, &proto::Location> {
        self.0.location.iter().map(|one| (one.id, one)).collect()
    }

    pub(super) fn label(&self, sample: &proto::Sample, key: &str) -> Option<&str> {
        let mut labels = sample.label.iter();
        let label = labels.find(|label| self.text(label.key) == Some(key))?;
        self.text(label.str)
    }

    /// The program that it is of; empty if that is not known.
    #[must_use]
    pub fn program(&self) -> &str {
        let mapping = self.0.mapping.first();
        (mapping.and_then(|mapping| self.text(mapping.filename))).unwrap_or_default()
    }

    /// When it was taken.
    #[must_use]
    pub fn at(&self) -> SystemTime {
        let nanos = u64::try_from(self.0.time_nanos).unwrap_or(0);
        SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos)
    }

    /// Whether it has no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.sample.is_empty()
    }

    /// Sets the sample type that pprof shows if it is not told otherwise.
    pub fn show_first(&mut self, first: SampleType) {
        let strings = &self.0.string_table;
        let index = strings.iter().position(|text| text == first.name());
        self.0.default_sample_type = index.map_or(0, |index| index as i64);
    }

    /// Keeps the samples of this account, and forgets the names of all others.
    #[must_use]
    pub fn of_account(&self, account: &str) -> Profile {
        let mut kept = self.0.clone();
        (kept.sample).retain(|sample| self.label(sample, ACCOUNT) == Some(account));
        Profile(kept).compacted()
    }

    /// Without texts, methods and places that no sample has.
    fn compacted(self) -> Profile {
        let Profile(mut kept) = self;
        let used: std::collections::HashSet<u64> = (kept.sample.iter())
            .flat_map(|sample| sample.location_id.iter().copied())
            .collect();
        (kept.location).retain(|location| used.contains(&location.id));
        let used: std::collections::HashSet<u64> = (kept.location.iter())
            .flat_map(|location| location.line.iter().map(|line| line.function_id))
            .collect();
        (kept.function).retain(|function| used.contains(&function.id));
        let old = std::mem::take(&mut kept.string_table);
        let mut new = vec![String::new()];
        let mut numbers: HashMap<i64, i64> = HashMap::from([(0, 0)]);
        each_text(&mut kept, |index| {
            *index = *numbers.entry(*index).or_insert_with(|| {
                new.push(old.get(*index as usize).cloned().unwrap_or_default());
                new.len() as i64 - 1
            });
        });
        kept.string_table = new;
        Profile(kept)
    }

    /// The sums by account.
    #[must_use]
    pub fn accounts(&self) -> BTreeMap<&str, Values> {
        let mut accounts: BTreeMap<&str, Values> = BTreeMap::new();
        for sample in &self.0.sample {
            let account = self.label(sample, ACCOUNT).unwrap_or_default();
            *accounts.entry(account).or_default() += values(sample);
        }
        accounts
    }
}

/// Every index of a text.
fn each_text(profile: &mut proto::Profile, mut with: impl FnMut(&mut i64)) {
    let types = profile
        .sample_type
        .iter_mut()
        .chain(&mut profile.period_type);
    for value in types {
        with(&mut value.r#type);
        with(&mut value.unit);
    }
    for label in profile.sample.iter_mut().flat_map(|one| &mut one.label) {
        with(&mut label.key);
        with(&mut label.str);
    }
    for mapping in &mut profile.mapping {
        with(&mut mapping.filename);
    }
    for function in &mut profile.function {
        with(&mut function.name);
        with(&mut function.system_name);
        with(&mut function.filename);
    }
    profile.comment.iter_mut().for_each(&mut with);
    with(&mut profile.default_sample_type);
}

/// The values of a sample; negative ones, which only a difference has, are 0.
pub(super) fn values(sample: &proto::Sample) -> Values {
    let value = |at: usize| sample.value.get(at).copied().unwrap_or(0);
    Values::from_array(std::array::from_fn(|at| {
        u64::try_from(value(at)).unwrap_or(0)
    }))
}

#[cfg(test)]
mod tests;
