//! Collapsed stacks: a line for each stack, its frames from the root to the leaf with `;` between them, a space, and
//! the value. The class is the leaf of every line.
//!
//! Names come from tenants: in one, `;` becomes `:`, and what would end a line becomes a space.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use super::reading::values;
use super::{CLASS, FrameKind, Profile, SampleType};

impl Profile {
    /// Writes the stacks that have a value of this type, sorted; frames with their lines
    /// (`com.acme.Cart.add:41`).
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_collapsed(&self, of: SampleType, out: &mut dyn Write) -> io::Result<()> {
        let names = self.names();
        let mut lines: BTreeMap<String, u64> = BTreeMap::new();
        for sample in &self.0.sample {
            let value = values(sample).to_array()[of as usize];
            if value == 0 {
                continue;
            }
            let mut line = String::new();
            let mut frames = sample.location_id.iter().rev();
            let mut has_class = false;
            for (name, kind) in frames.by_ref().filter_map(|id| names.get(id)) {
                line.push_str(name);
                line.push(';');
                has_class |= *kind == FrameKind::Class;
            }
            match has_class {
                true => drop(line.pop()),
                false => line.push_str(&clean(self.label(sample, CLASS).unwrap_or_default())),
            }
            let sum = lines.entry(line).or_default();
            *sum = sum.saturating_add(value);
        }
        lines
            .iter()
            .try_for_each(|(line, value)| writeln!(out, "{line} {value}"))
    }

    /// The frames by the numbers of their places.
    fn names(&self) -> BTreeMap<u64, (String, FrameKind)> {
        let functions = self.functions();
        let name = |location: &super::proto::Location| {
            let line = location.line.first()?;
            let function = functions.get(&line.function_id)?;
            let mut name = clean(self.text(function.name)?).into_owned();
            if line.line > 0 {
                name.push_str(&format!(":{}", line.line));
            }
            let mark = self.text(function.system_name)?;
            let kinds = [FrameKind::Account, FrameKind::Class];
            let kind = kinds.into_iter().find(|kind| kind.mark() == mark);
            Some((name, kind.unwrap_or(FrameKind::Method)))
        };
        let locations = self.0.location.iter();
        locations
            .filter_map(|location| Some((location.id, name(location)?)))
            .collect()
    }
}

fn clean(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c != ';' && !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}');
    if name.chars().all(is_plain) {
        return name.into();
    }
    let clean = |c: char| match c {
        ';' => ':',
        c if is_plain(c) => c,
        _ => ' ',
    };
    name.chars().map(clean).collect::<String>().into()
}
