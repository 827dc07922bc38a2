use super::*;
use std::collections::HashMap;
use std::ffi::CString;

/// The tables that libjvm exports, made by hand: as HotSpot's `vmStructs.cpp` lays them out, with 200 flags.
pub(crate) struct FakeVm {
    symbols: HashMap<CString, usize>,
    variable: *mut u64,
    flags: usize,
}

/// The defects of a [`FakeVm`]; none by default.
#[derive(Debug, Default, Clone)]
struct Wrong {
    /// This symbol is missing.
    symbol: &'static str,
    /// The field of this name has another type.
    type_of: &'static str,
    /// The field of this name is missing.
    field: &'static str,
    /// This constant is missing.
    constant: &'static str,
    count: Option<u64>,
    size: Option<u64>,
    kind: Option<u64>,
    name_column: Option<u64>,
    /// How often the flag is there.
    times: Option<usize>,
}

const NAME: &str = "TLABRefillWasteFraction";

fn kept<T>(value: T) -> usize {
    std::ptr::from_mut(Box::leak(Box::new(value))) as usize
}

fn literal(text: &str) -> u64 {
    let text = CString::new(text).expect("no zero inside");
    text.into_raw() as u64
}

impl FakeVm {
    pub(crate) fn new() -> FakeVm {
        FakeVm::with(&Wrong::default())
    }

    fn with(wrong: &Wrong) -> FakeVm {
        let variable = kept(64_u64);
        let times = wrong.times.unwrap_or(1);
        // _addr, _name, _flags and _type of each flag: 24 bytes.
        let mut flags: Vec<u64> = Vec::new();
        for at in 0..200 {
            let is_it = (100..100 + times).contains(&at);
            let name = if is_it { NAME } else { "UseSomething" };
            let kind = if is_it { wrong.kind.unwrap_or(4) } else { 0 };
            let place = if is_it { variable } else { kept(1_u64) };
            flags.extend([place as u64, literal(name), 0x10 | kind << 32]);
        }
        // The last one has no name.
        flags.extend([0, 0, 0]);
        let flags = flags.leak().as_mut_ptr() as usize;
        let count = kept(wrong.count.unwrap_or(201));
        let fields = [
            ("_type", "int", 0, 20, 0),
            ("_name", "const char*", 0, 8, 0),
            ("_addr", "", 0, 0, 0),
            ("_flags", "JVMFlag::Flags", 0, 16, 0),
            ("flags", "JVMFlag*", 1, 0, kept(flags)),
            ("numFlags", "size_t", 1, 0, count),
        ];
        // typeName, fieldName, typeString, isStatic, offset, address, between those of others.
        let mut structs = Vec::new();
        let mut row = |class: &str, field: (&str, &str, u64, u64, usize)| {
            let type_of = match field.1 {
                "" => 0,
                _ if wrong.type_of == field.0 => literal("jshort"),
                text => literal(text),
            };
            structs.extend([literal(class), literal(field.0), type_of]);
            structs.extend([field.2, field.3, field.4 as u64]);
        };
        row("Method", ("_name", "jshort", 0, 4, 0));
        for field in fields.into_iter().filter(|field| field.0 != wrong.field) {
            row("JVMFlag", field);
        }
        structs.extend([0; 6]);
        // typeName, size.
        let types = [
            literal("Method"),
            88,
            literal("JVMFlag"),
            wrong.size.unwrap_or(24),
            0,
            0,
        ];
        let mut constants = Vec::new();
        for (name, value) in [
            ("JVMFlagOrigin::DEFAULT", 0),
            ("JVMFlagOrigin::INTERNAL", 7),
            ("JVMFlag::VALUE_ORIGIN_MASK", 15),
        ] {
            if name != wrong.constant {
                constants.extend([literal(name), value]);
            }
        }
        constants.extend([0, 0]);
        let table = |rows: Vec<u64>| kept(rows.leak().as_ptr() as usize);
        let number = |value: u64| kept(value);
        let symbols = [
            ("gHotSpotVMStructs", table(structs)),
            ("gHotSpotVMStructEntryArrayStride", number(48)),
            (
                "gHotSpotVMStructEntryTypeNameOffset",
                number(wrong.name_column.unwrap_or(0)),
            ),
            ("gHotSpotVMStructEntryFieldNameOffset", number(8)),
            ("gHotSpotVMStructEntryTypeStringOffset", number(16)),
            ("gHotSpotVMStructEntryIsStaticOffset", number(24)),
            ("gHotSpotVMStructEntryOffsetOffset", number(32)),
            ("gHotSpotVMStructEntryAddressOffset", number(40)),
            ("gHotSpotVMTypes", table(types.to_vec())),
            ("gHotSpotVMTypeEntryArrayStride", number(16)),
            ("gHotSpotVMTypeEntryTypeNameOffset", number(0)),
            ("gHotSpotVMTypeEntrySizeOffset", number(8)),
            ("gHotSpotVMIntConstants", table(constants)),
            ("gHotSpotVMIntConstantEntryArrayStride", number(16)),
            ("gHotSpotVMIntConstantEntryNameOffset", number(0)),
            ("gHotSpotVMIntConstantEntryValueOffset", number(8)),
        ];
        let symbols = symbols
            .into_iter()
            .filter(|(name, _)| *name != wrong.symbol);
        FakeVm {
            symbols: symbols
                .map(|(name, address)| (CString::new(name).expect("no zero"), address))
                .collect(),
            variable: variable as *mut u64,
            flags: flags + 100 * 24 + 16,
        }
    }

    /// The address of an exported symbol, or 0.
    pub(crate) fn symbol(&self, name: &CStr) -> usize {
        self.symbols.get(name).copied().unwrap_or(0)
    }

    pub(crate) fn variable(&self) -> u64 {
        read::<u64>(self.variable as usize)
    }

    pub(crate) fn origin(&self) -> i32 {
        read::<i32>(self.flags)
    }

    fn flag(&self) -> Result<(u64, bool), FlagKept> {
        let tables = Tables::read(&|name| self.symbol(name))?;
        let flag = tables.flag(NAME)?;
        Ok((flag.value(), flag.is_default(&tables)))
    }
}

#[test]
fn a_flag_is_found_with_its_value_and_its_origin() {
    assert_eq!(FakeVm::new().flag(), Ok((64, true)));
    let narrow = Wrong {
        kind: Some(2),
        ..Wrong::default()
    };
    assert_eq!(FakeVm::with(&narrow).flag(), Ok((64, true)));
}

#[test]
fn whatever_is_not_as_expected_is_said() {
    let right = Wrong::default();
    let mut cases: Vec<Wrong> = FakeVm::new()
        .symbols
        .keys()
        .map(|name| Wrong {
            symbol: Box::leak(name.to_str().expect("ASCII").to_owned().into_boxed_str()),
            ..right.clone()
        })
        .collect();
    assert_eq!(cases.len(), 16);
    for field in ["_type", "_name", "_flags", "flags", "numFlags"] {
        cases.push(Wrong {
            type_of: field,
            ..right.clone()
        });
    }
    for field in ["_type", "_name", "_flags", "_addr", "flags", "numFlags"] {
        cases.push(Wrong {
            field,
            ..right.clone()
        });
    }
    for constant in [
        "JVMFlagOrigin::DEFAULT",
        "JVMFlagOrigin::INTERNAL",
        "JVMFlag::VALUE_ORIGIN_MASK",
    ] {
        cases.push(Wrong {
            constant,
            ..right.clone()
        });
    }
    for count in [0, 3, 1 << 40, u64::MAX] {
        cases.push(Wrong {
            count: Some(count),
            ..right.clone()
        });
    }
    for size in [0, 8, 20, 1 << 40] {
        cases.push(Wrong {
            size: Some(size),
            ..right.clone()
        });
    }
    for kind in [0, 1, 3, 5, 7] {
        cases.push(Wrong {
            kind: Some(kind),
            ..right.clone()
        });
    }
    for times in [0, 2] {
        cases.push(Wrong {
            times: Some(times),
            ..right.clone()
        });
    }
    cases.push(Wrong {
        name_column: Some(48),
        ..right.clone()
    });
    cases.push(Wrong {
        name_column: Some(3),
        ..right
    });
    for case in cases {
        let found = FakeVm::with(&case).flag();
        assert!(
            matches!(found, Err(FlagKept::Unknown(_))),
            "{case:?}: {found:?}"
        );
    }
}

#[test]
fn a_field_has_its_place_if_its_type_is_right() {
    let vm = FakeVm::new();
    let symbols = |name: &CStr| vm.symbol(name);
    let of = |name, type_of, is_static| field(&symbols, c"JVMFlag", name, type_of, is_static);
    assert_eq!(of(c"_name", c"const char*", false), Ok(8));
    let count = of(c"numFlags", c"size_t", true).expect("it is there");
    assert_eq!(read::<u64>(count), 201);
    for wrong in [
        of(c"_name", c"char", false),
        of(c"_name", c"const char*", true),
        of(c"_surname", c"const char*", false),
        field(&symbols, c"Klass", c"_name", c"const char*", false),
    ] {
        assert!(matches!(wrong, Err(FlagKept::Unknown(_))), "{wrong:?}");
    }
}
