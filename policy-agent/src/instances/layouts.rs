//! Which classes of the JDK can be read, and by which fields.

use policy_core::instances::Slots;

/// How many elements an object has.
#[derive(Debug, Clone, Copy)]
pub(super) enum Count {
    /// An `int` field.
    Field(&'static str),
    /// From one `int` field to another, around the end of the array.
    Around(&'static str, &'static str),
    /// A `long` field and the sum of cells: `ConcurrentHashMap`.
    Cells,
    /// All elements of the array.
    Array,
}

/// The kind of contents that an object has.
#[derive(Debug, Clone, Copy)]
pub(super) enum Layout {
    /// A string.
    Text,
    /// A boxed value in the field `value` of this type.
    Boxed(&'static str),
    /// `BigInteger`
    BigInteger,
    /// `BigDecimal`
    BigDecimal,
    /// `UUID`
    Uuid,
    /// A string that is being built.
    Builder,
    /// A collection.
    Collection(Count, Option<Room>),
    /// A set whose elements are the keys of the map in this field of this type.
    KeysOf(&'static str, &'static str),
}

/// The array of a collection: field, type, and how many slots elements need.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) field: &'static str,
    pub(super) descriptor: &'static str,
    pub(super) slots: Slots,
    /// Slots that are never used.
    pub(super) reserved: u64,
}

const fn room(field: &'static str, descriptor: &'static str, slots: Slots) -> Option<Room> {
    Some(Room {
        field,
        descriptor,
        slots,
        reserved: 0,
    })
}

const OBJECTS: &str = "[Ljava/lang/Object;";
const HASH_TABLE: Layout = Layout::Collection(
    Count::Field("size"),
    room("table", "[Ljava/util/HashMap$Node;", Slots::Hashed),
);
const VECTOR: Layout = Layout::Collection(
    Count::Field("elementCount"),
    room("elementData", OBJECTS, Slots::One),
);
const QUEUE: Layout = Layout::Collection(Count::Field("size"), room("queue", OBJECTS, Slots::One));

/// By signature.
const LAYOUTS: &[(&str, Layout)] = &[
    ("Ljava/lang/String;", Layout::Text),
    ("Ljava/lang/Boolean;", Layout::Boxed("Z")),
    ("Ljava/lang/Character;", Layout::Boxed("C")),
    ("Ljava/lang/Byte;", Layout::Boxed("B")),
    ("Ljava/lang/Short;", Layout::Boxed("S")),
    ("Ljava/lang/Integer;", Layout::Boxed("I")),
    ("Ljava/lang/Long;", Layout::Boxed("J")),
    ("Ljava/lang/Float;", Layout::Boxed("F")),
    ("Ljava/lang/Double;", Layout::Boxed("D")),
    ("Ljava/math/BigInteger;", Layout::BigInteger),
    ("Ljava/math/BigDecimal;", Layout::BigDecimal),
    ("Ljava/util/UUID;", Layout::Uuid),
    ("Ljava/lang/StringBuilder;", Layout::Builder),
    ("Ljava/lang/StringBuffer;", Layout::Builder),
    (
        "Ljava/io/ByteArrayOutputStream;",
        Layout::Collection(Count::Field("count"), room("buf", "[B", Slots::One)),
    ),
    (
        "Ljava/util/ArrayList;",
        Layout::Collection(
            Count::Field("size"),
            room("elementData", OBJECTS, Slots::One),
        ),
    ),
    ("Ljava/util/Vector;", VECTOR),
    ("Ljava/util/Stack;", VECTOR),
    (
        "Ljava/util/ArrayDeque;",
        Layout::Collection(
            Count::Around("head", "tail"),
            Some(Room {
                field: "elements",
                descriptor: OBJECTS,
                slots: Slots::One,
                reserved: 1,
            }),
        ),
    ),
    ("Ljava/util/PriorityQueue;", QUEUE),
    ("Ljava/util/concurrent/PriorityBlockingQueue;", QUEUE),
    (
        "Ljava/util/concurrent/CopyOnWriteArrayList;",
        Layout::Collection(Count::Array, room("array", OBJECTS, Slots::One)),
    ),
    ("Ljava/util/HashMap;", HASH_TABLE),
    ("Ljava/util/LinkedHashMap;", HASH_TABLE),
    (
        "Ljava/util/WeakHashMap;",
        Layout::Collection(
            Count::Field("size"),
            room("table", "[Ljava/util/WeakHashMap$Entry;", Slots::Hashed),
        ),
    ),
    (
        "Ljava/util/Hashtable;",
        Layout::Collection(
            Count::Field("count"),
            room("table", "[Ljava/util/Hashtable$Entry;", Slots::Hashed),
        ),
    ),
    (
        "Ljava/util/concurrent/ConcurrentHashMap;",
        Layout::Collection(
            Count::Cells,
            room(
                "table",
                "[Ljava/util/concurrent/ConcurrentHashMap$Node;",
                Slots::Hashed,
            ),
        ),
    ),
    (
        "Ljava/util/HashSet;",
        Layout::KeysOf("map", "Ljava/util/HashMap;"),
    ),
    (
        "Ljava/util/LinkedHashSet;",
        Layout::KeysOf("map", "Ljava/util/HashMap;"),
    ),
    (
        "Ljava/util/TreeSet;",
        Layout::KeysOf("m", "Ljava/util/NavigableMap;"),
    ),
    (
        "Ljava/util/TreeMap;",
        Layout::Collection(Count::Field("size"), None),
    ),
    (
        "Ljava/util/LinkedList;",
        Layout::Collection(Count::Field("size"), None),
    ),
];

/// The layout of the class of this signature.
pub(super) fn layout(signature: &str) -> Option<Layout> {
    let known = LAYOUTS.iter().find(|(known, _)| *known == signature);
    known.map(|(_, layout)| *layout)
}

/// The part that can be read of objects of the class of this Java name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readable {
    /// Values or sizes.
    Contents,
    /// The number of elements.
    Length,
    /// Nothing: a class of an application, or one that is not known.
    Nothing,
}

/// By Java name, as in `java.util.HashMap` and `byte[]`.
pub(super) fn readable(class: &str) -> Readable {
    const PRIMITIVE: [&str; 8] = [
        "boolean[]",
        "byte[]",
        "char[]",
        "short[]",
        "int[]",
        "long[]",
        "float[]",
        "double[]",
    ];
    let is_known = || {
        LAYOUTS.iter().any(|(signature, _)| {
            let name = signature[1..].trim_end_matches(';').bytes();
            name.eq(class
                .bytes()
                .map(|one| if one == b'.' { b'/' } else { one }))
        })
    };
    if PRIMITIVE.contains(&class) || is_known() {
        Readable::Contents
    } else if class.ends_with("[]") {
        Readable::Length
    } else {
        Readable::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_the_jdk_are_read_and_others_are_not() {
        for (class, expected) in [
            ("java.util.HashMap", Readable::Contents),
            ("java.util.concurrent.ConcurrentHashMap", Readable::Contents),
            ("byte[]", Readable::Contents),
            ("byte[][]", Readable::Length),
            ("com.acme.Cart[]", Readable::Length),
            ("com.acme.HashMap", Readable::Nothing),
            ("java.util.HashMap$Node", Readable::Nothing),
        ] {
            assert_eq!(readable(class), expected, "{class}");
        }
        assert!(layout("Lcom/acme/HashMap;").is_none());
    }

    #[test]
    fn each_class_has_one_layout() {
        let mut signatures: Vec<&str> = LAYOUTS.iter().map(|(signature, _)| *signature).collect();
        signatures.sort_unstable();
        assert!(signatures.is_sorted_by(|a, b| a < b), "{signatures:?}");
    }
}
