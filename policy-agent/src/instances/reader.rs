//! Reads what is in an object, by fields and elements alone.

use std::collections::hash_map::{HashMap, RandomState};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, Hasher};
use std::rc::Rc;

use policy_jvm::kinds::JavaString;
use policy_jvm::{Element, InstanceField, JvmTi, KnownClass, Primitive, Ref};

use super::layouts::{Count, Layout, Room, layout};
use crate::identity::names::java_name;

/// Characters of a value that are shown.
const SHOWN_CHARACTERS: usize = 80;
/// Elements of an array that are shown.
const SHOWN_ELEMENTS: usize = 16;
/// Longest value that is compared with others, in bytes.
const MAX_VALUE_BYTES: u64 = 1 << 20;
/// Bytes of values that are read for one answer.
const MAX_BYTES: u64 = 64 << 20;
/// Bytes that are copied at a time.
const PIECE_BYTES: u64 = 64 << 10;
/// Cells of a counter that are added up.
const MAX_CELLS: u64 = 1024;
/// The header of an array.
const ARRAY_HEADER_BYTES: u64 = 16;
/// Largest `BigInteger` that is shown, in `int`s.
const SHOWN_MAGNITUDE: u64 = 8;

/// The size and the contents of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Contents {
    /// Its own bytes.
    pub(super) bytes: u64,
    pub(super) elements: Option<u64>,
    pub(super) held: Option<Held>,
    pub(super) value: Option<Value>,
    /// Bytes of the arrays that hold the value.
    pub(super) content_bytes: u64,
}

/// The room of a collection or builder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) capacity: u64,
    pub(super) spare: u64,
    /// Bytes of all slots.
    pub(super) bytes: u64,
}

impl Held {
    /// Bytes of the slots that are spare.
    pub(super) fn spare_bytes(&self) -> f64 {
        if self.capacity == 0 {
            return 0.0;
        }
        self.bytes as f64 * self.spare.min(self.capacity) as f64 / self.capacity as f64
    }
}

/// A value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Value {
    /// Equal for equal values of one answer; `None` for what is too long to be compared.
    pub(super) key: Option<u128>,
    /// The text that is shown, if that is allowed.
    pub(super) text: Option<String>,
    pub(super) length: Option<u64>,
}

/// A class whose fields were looked up.
#[derive(Debug)]
struct Resolved {
    layout: Layout,
    fields: BTreeMap<&'static str, InstanceField>,
}

/// Reads objects for one answer.
pub(super) struct Reader<'a> {
    tools: &'a JvmTi,
    string: Option<KnownClass<JavaString>>,
    shows_values: bool,
    /// Two random keys for each answer.
    keys: (RandomState, RandomState),
    resolved: HashMap<String, Option<Rc<Resolved>>>,
    bytes_left: u64,
    /// Java names of classes that lack a field.
    pub(super) not_readable: BTreeSet<String>,
}

/// Hashes a value piece by piece.
struct Digest<H>(H, H);

impl<H: Hasher> Digest<H> {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
        self.1.write(bytes);
    }

    fn key(&self) -> u128 {
        u128::from(self.0.finish()) << 64 | u128::from(self.1.finish())
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(tools: &'a JvmTi, shows_values: bool) -> Reader<'a> {
        Reader {
            tools,
            string: None,
            shows_values,
            keys: (RandomState::new(), RandomState::new()),
            resolved: HashMap::new(),
            bytes_left: MAX_BYTES,
            not_readable: BTreeSet::new(),
        }
    }

    /// Reads the contents of an object; its size alone, if it is of no class that can be read.
    pub(super) fn read(&mut self, object: &Ref<'_>) -> Contents {
        let mut contents = Contents {
            bytes: self.size(object),
            ..Contents::default()
        };
        let Ok(signature) = self.tools.signature_of(&*object.class()) else {
            return contents;
        };
        if signature.starts_with('[') {
            self.read_array(object, &mut contents);
        } else if let Some(resolved) = self.resolve(object, signature) {
            self.read_by(&resolved, object, &mut contents);
        }
        contents
    }

    fn size(&self, object: &Ref<'_>) -> u64 {
        self.tools.object_size(object).unwrap_or(0)
    }

    /// The fields of the class of an object, which is initialised because it has an instance.
    fn resolve(&mut self, object: &Ref<'_>, signature: String) -> Option<Rc<Resolved>> {
        if let Some(known) = self.resolved.get(&signature) {
            return known.clone();
        }
        let class = object.class();
        // No other loader's class of that name.
        let is_boot = self.tools.is_of_boot_loader(&class);
        let found = layout(&signature).filter(|_| is_boot).and_then(|layout| {
            let mut fields = BTreeMap::new();
            for (name, descriptor) in fields_of(layout) {
                match InstanceField::find(&class, name, descriptor) {
                    Some(field) => fields.insert(name, field),
                    None => {
                        self.not_readable.insert(java_name(&signature));
                        return None;
                    }
                };
            }
            Some(Rc::new(Resolved { layout, fields }))
        });
        self.resolved.insert(signature, found.clone());
        found
    }

    fn read_by(&mut self, resolved: &Resolved, object: &Ref<'_>, contents: &mut Contents) {
        let field = |name: &str| resolved.fields.get(name);
        let primitive = |name: &str| field(name)?.primitive(object);
        let whole = |name: &str| match primitive(name)? {
            Primitive::Whole(number) => Some(number),
            _ => None,
        };
        let inner = |name: &str| field(name)?.object(object);
        match resolved.layout {
            Layout::Text => {
                contents.content_bytes = inner("value").map_or(0, |array| self.size(&array));
                contents.value = self.text(object);
                contents.elements = contents.value.as_ref().and_then(|value| value.length);
            }
            Layout::Boxed(_) => {
                contents.value = primitive("value").map(|value| self.number(&[value]));
            }
            Layout::Uuid => {
                let halves = [primitive("mostSigBits"), primitive("leastSigBits")];
                if let [Some(most), Some(least)] = halves {
                    let mut value = self.number(&[most, least]);
                    if let (true, Primitive::Whole(most), Primitive::Whole(least)) =
                        (self.shows_values, most, least)
                    {
                        value.text = Some(uuid(most as u64, least as u64));
                    }
                    contents.value = Some(value);
                }
            }
            Layout::BigInteger => {
                if let (Some(sign), Some(array)) = (primitive("signum"), inner("mag")) {
                    contents.content_bytes = self.size(&array);
                    contents.value = self.big(sign, &array);
                }
            }
            Layout::BigDecimal => {
                let (compact, scale) = (whole("intCompact"), primitive("scale"));
                // The least number stands for one that is elsewhere.
                if let (Some(compact), Some(scale)) = (compact.filter(|one| *one > i64::MIN), scale)
                {
                    let mut value = self.number(&[Primitive::Whole(compact), scale]);
                    if let (true, Primitive::Whole(scale)) = (self.shows_values, scale) {
                        value.text = Some(format!("{compact}E{}", -scale));
                    }
                    contents.value = Some(value);
                }
            }
            Layout::Builder => {
                let (Some(count), Some(coder)) = (whole("count"), whole("coder")) else {
                    return;
                };
                let width = 1u64 << coder.clamp(0, 1);
                let count = u64::try_from(count).unwrap_or(0);
                contents.elements = Some(count);
                if let Some(array) = inner("value")
                    && let Some(all) = self.tools.as_array(&array)
                {
                    let capacity = all.length() / width;
                    contents.held = Some(Held {
                        capacity,
                        spare: capacity.saturating_sub(count),
                        bytes: self.size(&array).saturating_sub(ARRAY_HEADER_BYTES),
                    });
                }
            }
            Layout::Collection(count, room) => {
                let array = room.and_then(|room| inner(room.field));
                let length = array
                    .as_ref()
                    .and_then(|array| Some(self.tools.as_array(array)?.length()));
                contents.elements = match count {
                    Count::Field(name) => {
                        whole(name).map(|count| u64::try_from(count).unwrap_or(0))
                    }
                    Count::Array => length,
                    Count::Around(head, tail) => around(whole(head), whole(tail), length),
                    Count::Cells => whole("baseCount").map(|base| {
                        let cells = inner("counterCells").map_or(0, |cells| self.cells(&cells));
                        u64::try_from(base.saturating_add(cells)).unwrap_or(0)
                    }),
                };
                if let (Some(room), Some(elements)) = (room, contents.elements) {
                    let bytes = array.map_or(0, |array| self.size(&array));
                    contents.held = Some(held(room, elements, length.unwrap_or(0), bytes));
                }
            }
            Layout::KeysOf(name, _) => {
                if let Some(map) = inner(name) {
                    let keys = self.read(&map);
                    contents.elements = keys.elements;
                    contents.held = keys.held;
                }
            }
        }
    }

    fn digest(&self) -> Digest<std::collections::hash_map::DefaultHasher> {
        Digest(self.keys.0.build_hasher(), self.keys.1.build_hasher())
    }

    /// Whether so many bytes may still be read to be compared.
    fn may_read(&mut self, bytes: u64) -> bool {
        if bytes > MAX_VALUE_BYTES || bytes > self.bytes_left {
            return false;
        }
        self.bytes_left -= bytes;
        true
    }

    fn number(&self, parts: &[Primitive]) -> Value {
        let mut digest = self.digest();
        let mut texts = Vec::new();
        for part in parts {
            match part {
                Primitive::Boolean(value) => digest.write(&[u8::from(*value)]),
                Primitive::Char(unit) => digest.write(&unit.to_ne_bytes()),
                Primitive::Whole(number) => digest.write(&number.to_ne_bytes()),
                Primitive::Fraction(number) => digest.write(&number.to_bits().to_ne_bytes()),
            }
            if self.shows_values {
                texts.push(match part {
                    Primitive::Boolean(value) => value.to_string(),
                    Primitive::Char(unit) => String::from_utf16_lossy(&[*unit]),
                    Primitive::Whole(number) => number.to_string(),
                    Primitive::Fraction(number) => number.to_string(),
                });
            }
        }
        Value {
            key: Some(digest.key()),
            text: self.shows_values.then(|| cut(&texts.join(" "))),
            // The length of a number would tell its size.
            length: None,
        }
    }

    fn text(&mut self, object: &Ref<'_>) -> Option<Value> {
        if self.string.is_none() {
            self.string = KnownClass::of(self.tools, &object.class());
        }
        let length = object.as_a(self.string.as_ref()?)?.units_length();
        let may_read = self.may_read(length * 2);
        let string = object.as_a(self.string.as_ref()?)?;
        let key = may_read.then(|| {
            let mut digest = self.digest();
            let mut from = 0;
            while from < length {
                let units = string.units(from, PIECE_BYTES / 2);
                if units.is_empty() {
                    break;
                }
                from += units.len() as u64;
                for unit in units {
                    digest.write(&unit.to_ne_bytes());
                }
            }
            digest.key()
        });
        let text = self.shows_values.then(|| {
            // One more than is shown, so that it is seen to be cut.
            let units = string.units(0, 2 * SHOWN_CHARACTERS as u64 + 2);
            cut(&String::from_utf16_lossy(&units))
        });
        Some(Value {
            key,
            text,
            length: Some(length),
        })
    }

    fn read_array(&mut self, object: &Ref<'_>, contents: &mut Contents) {
        let Some(array) = self.tools.as_array(object) else {
            return;
        };
        let length = array.length();
        contents.elements = Some(length);
        let Some(width) = array.element().bytes() else {
            return;
        };
        let width = width as u64;
        let key = self.may_read(length * width).then(|| {
            let mut digest = self.digest();
            let mut from = 0;
            while from < length {
                let mut bytes = Vec::new();
                array.read(from, PIECE_BYTES / width, &mut bytes);
                if bytes.is_empty() {
                    break;
                }
                from += bytes.len() as u64 / width;
                digest.write(&bytes);
            }
            digest.key()
        });
        let text = self.shows_values.then(|| {
            let mut bytes = Vec::new();
            let most = match array.element() {
                Element::Byte | Element::Char => SHOWN_CHARACTERS as u64 + 1,
                _ => SHOWN_ELEMENTS as u64 + 1,
            };
            array.read(0, most, &mut bytes);
            elements_text(array.element(), &bytes, length)
        });
        contents.value = Some(Value {
            key,
            text,
            length: Some(length),
        });
    }

    fn big(&mut self, sign: Primitive, magnitude: &Ref<'_>) -> Option<Value> {
        let array = self.tools.as_array(magnitude)?;
        let length = array.length();
        if !self.may_read(length * 4) {
            return None;
        }
        let mut bytes = Vec::new();
        array.read(0, length, &mut bytes);
        let mut value = self.number(&[sign]);
        let mut digest = self.digest();
        digest.write(&bytes);
        value.key = (value.key).map(|key| key ^ digest.key().rotate_left(1));
        if self.shows_values {
            let minus = if sign == Primitive::Whole(-1) {
                "-"
            } else {
                ""
            };
            let mut text = format!("{minus}0x");
            for word in bytes.chunks_exact(4).take(SHOWN_MAGNITUDE as usize) {
                let word = <[u8; 4]>::try_from(word).map_or(0, u32::from_ne_bytes);
                text.push_str(&format!("{word:08x}"));
            }
            if length > SHOWN_MAGNITUDE {
                text.push('…');
            }
            value.text = Some(text);
        }
        Some(value)
    }

    /// The sum of the cells of a counter.
    fn cells(&mut self, cells: &Ref<'_>) -> i64 {
        let Some(array) = self.tools.as_array(cells) else {
            return 0;
        };
        let mut field = None;
        let mut sum = 0i64;
        for index in 0..array.length().min(MAX_CELLS) {
            let Some(cell) = array.reference(index) else {
                continue;
            };
            if field.is_none() {
                field = InstanceField::find(&cell.class(), "value", "J");
            }
            if let Some(Primitive::Whole(value)) =
                field.as_ref().and_then(|one| one.primitive(&cell))
            {
                sum = sum.saturating_add(value);
            }
        }
        sum
    }
}

/// The fields that a layout needs, with their types.
fn fields_of(layout: Layout) -> Vec<(&'static str, &'static str)> {
    match layout {
        Layout::Text => vec![("value", "[B")],
        Layout::Boxed(descriptor) => vec![("value", descriptor)],
        Layout::BigInteger => vec![("signum", "I"), ("mag", "[I")],
        Layout::BigDecimal => vec![("intCompact", "J"), ("scale", "I")],
        Layout::Uuid => vec![("mostSigBits", "J"), ("leastSigBits", "J")],
        Layout::Builder => vec![("value", "[B"), ("coder", "B"), ("count", "I")],
        Layout::KeysOf(name, descriptor) => vec![(name, descriptor)],
        Layout::Collection(count, room) => {
            let mut fields = match count {
                Count::Field(name) => vec![(name, "I")],
                Count::Around(head, tail) => vec![(head, "I"), (tail, "I")],
                Count::Array => Vec::new(),
                Count::Cells => vec![
                    ("baseCount", "J"),
                    (
                        "counterCells",
                        "[Ljava/util/concurrent/ConcurrentHashMap$CounterCell;",
                    ),
                ],
            };
            fields.extend(room.map(|room| (room.field, room.descriptor)));
            fields
        }
    }
}

fn held(room: Room, elements: u64, length: u64, array_bytes: u64) -> Held {
    Held {
        capacity: length,
        spare: room
            .slots
            .spare(elements, length.saturating_sub(room.reserved)),
        bytes: array_bytes.saturating_sub(ARRAY_HEADER_BYTES),
    }
}

/// The elements between two places of a ring.
fn around(head: Option<i64>, tail: Option<i64>, length: Option<u64>) -> Option<u64> {
    let length = i64::try_from(length?).ok().filter(|length| *length > 0)?;
    u64::try_from((tail? - head?).rem_euclid(length)).ok()
}

/// At most so many characters.
fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn uuid(most: u64, least: u64) -> String {
    let hex = format!("{most:016x}{least:016x}");
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

/// The first elements of an array. Bytes that are all printable are shown as text.
fn elements_text(element: Element, bytes: &[u8], length: u64) -> String {
    let Some(width) = element.bytes() else {
        return String::new();
    };
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..width].copy_from_slice(chunk);
        word
    };
    let is_printable = |one: &u8| (b' '..=b'~').contains(one);
    match element {
        Element::Byte if !bytes.is_empty() && bytes.iter().all(is_printable) => {
            return cut(&format!("\"{}\"", String::from_utf8_lossy(bytes)));
        }
        Element::Char => {
            let units: Vec<u16> = (bytes.chunks_exact(2))
                .map(|chunk| u16::from_ne_bytes([chunk[0], chunk[1]]))
                .collect();
            return cut(&String::from_utf16_lossy(&units));
        }
        _ => {}
    }
    let one = |chunk: &[u8]| {
        let bytes = word(chunk);
        let [a, b, c, d, ..] = bytes;
        match element {
            Element::Boolean => (a != 0).to_string(),
            Element::Byte => format!("{a:02x}"),
            Element::Short | Element::Char => i16::from_ne_bytes([a, b]).to_string(),
            Element::Int => i32::from_ne_bytes([a, b, c, d]).to_string(),
            Element::Float => f32::from_ne_bytes([a, b, c, d]).to_string(),
            Element::Long => i64::from_ne_bytes(bytes).to_string(),
            Element::Double => f64::from_ne_bytes(bytes).to_string(),
            Element::Reference => String::new(),
        }
    };
    let shown: Vec<String> = (bytes.chunks_exact(width))
        .take(SHOWN_ELEMENTS)
        .map(one)
        .collect();
    let between = if element == Element::Byte { " " } else { ", " };
    let more = if length > shown.len() as u64 {
        "…"
    } else {
        ""
    };
    cut(&format!("{}{more}", shown.join(between)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy_core::instances::Slots;

    #[test]
    fn values_are_cut_at_characters() {
        assert_eq!(cut("abc"), "abc");
        let long = "é".repeat(SHOWN_CHARACTERS + 1);
        let cut = cut(&long);
        assert_eq!(cut.chars().count(), SHOWN_CHARACTERS + 1);
        assert!(cut.ends_with('…'));
    }

    #[test]
    fn arrays_are_shown_as_what_they_hold() {
        assert_eq!(elements_text(Element::Byte, b"user=42", 7), "\"user=42\"");
        assert_eq!(elements_text(Element::Byte, &[0, 255], 2), "00 ff");
        let ints: Vec<u8> = [1i32, -2]
            .iter()
            .flat_map(|one| one.to_ne_bytes())
            .collect();
        assert_eq!(elements_text(Element::Int, &ints, 2), "1, -2");
        assert_eq!(elements_text(Element::Int, &ints, 9), "1, -2…");
        assert_eq!(elements_text(Element::Boolean, &[1, 0], 2), "true, false");
        assert_eq!(
            elements_text(Element::Double, &1.5f64.to_ne_bytes(), 1),
            "1.5"
        );
        assert_eq!(elements_text(Element::Int, &[], 0), "");
    }

    #[test]
    fn a_ring_is_counted_around_its_end() {
        assert_eq!(around(Some(14), Some(3), Some(17)), Some(6));
        assert_eq!(around(Some(3), Some(3), Some(17)), Some(0));
        assert_eq!(around(Some(3), Some(4), Some(0)), None);
    }

    #[test]
    fn spare_slots_have_their_share_of_the_bytes() {
        let room = Room {
            field: "elementData",
            descriptor: "[Ljava/lang/Object;",
            slots: Slots::One,
            reserved: 1,
        };
        let held = held(room, 9, 20, 96);
        assert_eq!(
            held,
            Held {
                capacity: 20,
                spare: 10,
                bytes: 80
            }
        );
        assert!((held.spare_bytes() - 40.0).abs() < 1e-9);
        assert!(Held::default().spare_bytes().abs() < 1e-9);
    }

    #[test]
    fn a_uuid_is_written_as_people_know_it() {
        assert_eq!(
            uuid(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210),
            "01234567-89ab-cdef-fedc-ba9876543210"
        );
    }
}
