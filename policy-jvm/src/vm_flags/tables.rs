//! The tables in which libjvm describes its structures, as far as flags need them.

use std::ffi::{CStr, c_char};

use super::kept::FlagKept;

/// More rows or flags than any JVM has: a table that does not end is not the table that is meant.
const MAX_ROWS: usize = 20_000;
const MAX_FLAGS: usize = 10_000;
/// A structure of these tables is at most this large.
const MAX_STRIDE: usize = 512;

/// How wide a flag's variable is. By the VM's kinds of value: `uint` is 2, `uintx` is 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Four,
    Eight,
}

/// One flag as the VM has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlagEntry {
    /// Of its variable.
    pub(super) address: usize,
    pub(super) width: Width,
    /// Its origin, among other bits.
    pub(super) flags: i32,
    /// Where those are.
    pub(super) flags_address: usize,
}

impl FlagEntry {
    pub(super) fn value(&self) -> u64 {
        match self.width {
            Width::Four => u64::from(read::<u32>(self.address)),
            Width::Eight => read::<u64>(self.address),
        }
    }

    /// Whether nobody has chosen its value.
    pub(super) fn is_default(&self, tables: &Tables) -> bool {
        self.flags & tables.origin_mask == tables.origin_default
    }
}

/// The place and layout of the VM's flags, as its tables give them, and the constants of their origin.
#[derive(Debug, Default)]
pub(super) struct Tables {
    flags: usize,
    count: usize,
    stride: usize,
    name: usize,
    kind: usize,
    address: usize,
    origin: usize,
    pub(super) origin_mask: i32,
    pub(super) origin_default: i32,
    pub(super) origin_internal: i32,
}

/// One table of rows: where it begins, and how far its rows are apart.
struct Rows {
    first: usize,
    stride: usize,
}

/// Gives the address of an exported symbol, or 0.
pub(crate) type Symbols<'a> = &'a dyn Fn(&CStr) -> usize;

impl Tables {
    /// Reads the tables.
    pub(super) fn read(symbols: Symbols<'_>) -> Result<Tables, FlagKept> {
        let mut tables = Tables::default();
        tables.read_fields(symbols)?;
        tables.read_size(symbols)?;
        tables.read_constants(symbols)?;
        tables.check()?;
        Ok(tables)
    }

    fn read_fields(&mut self, symbols: Symbols<'_>) -> Result<(), FlagKept> {
        let rows = Rows::of(
            symbols,
            c"gHotSpotVMStructs",
            c"gHotSpotVMStructEntryArrayStride",
        )?;
        let at = |symbol| rows.column(symbols, symbol);
        let class = at(c"gHotSpotVMStructEntryTypeNameOffset")?;
        let field = at(c"gHotSpotVMStructEntryFieldNameOffset")?;
        let type_of = at(c"gHotSpotVMStructEntryTypeStringOffset")?;
        let is_static = at(c"gHotSpotVMStructEntryIsStaticOffset")?;
        let offset = at(c"gHotSpotVMStructEntryOffsetOffset")?;
        let address = at(c"gHotSpotVMStructEntryAddressOffset")?;
        let (mut seen, wanted) = (0, 6);
        for row in rows.iterate(class) {
            if !is_text(row + class, c"JVMFlag") {
                continue;
            }
            let is = |name: &CStr| is_text(row + field, name);
            let expect = |type_name: &CStr, static_field: bool| {
                let is_right = is_text(row + type_of, type_name)
                    && (read::<i32>(row + is_static) != 0) == static_field;
                is_right
                    .then_some(())
                    .ok_or(FlagKept::Unknown("a field has another type"))
            };
            let own = || usize::try_from(read::<u64>(row + offset)).unwrap_or(usize::MAX);
            let value = || {
                let place = read::<usize>(row + address);
                match place {
                    0 => Err(FlagKept::Unknown("a static field has no address")),
                    place => Ok(read::<usize>(place)),
                }
            };
            seen += 1;
            if is(c"_name") {
                expect(c"const char*", false)?;
                self.name = own();
            } else if is(c"_type") {
                expect(c"int", false)?;
                self.kind = own();
            } else if is(c"_flags") {
                expect(c"JVMFlag::Flags", false)?;
                self.origin = own();
            } else if is(c"_addr") {
                // The only field of the tables without a type.
                if read::<i32>(row + is_static) != 0 {
                    return Err(FlagKept::Unknown("a field has another type"));
                }
                self.address = own();
            } else if is(c"flags") {
                expect(c"JVMFlag*", true)?;
                self.flags = value()?;
            } else if is(c"numFlags") {
                expect(c"size_t", true)?;
                self.count = value()?;
            } else {
                seen -= 1;
            }
        }
        match seen == wanted {
            true => Ok(()),
            false => Err(FlagKept::Unknown("a field of the flags is missing")),
        }
    }

    fn read_size(&mut self, symbols: Symbols<'_>) -> Result<(), FlagKept> {
        let rows = Rows::of(
            symbols,
            c"gHotSpotVMTypes",
            c"gHotSpotVMTypeEntryArrayStride",
        )?;
        let name = rows.column(symbols, c"gHotSpotVMTypeEntryTypeNameOffset")?;
        let size = rows.column(symbols, c"gHotSpotVMTypeEntrySizeOffset")?;
        let mut found = rows
            .iterate(name)
            .filter(|row| is_text(row + name, c"JVMFlag"));
        let row = found
            .next()
            .ok_or(FlagKept::Unknown("flags have no size"))?;
        self.stride = usize::try_from(read::<u64>(row + size)).unwrap_or(usize::MAX);
        Ok(())
    }

    fn read_constants(&mut self, symbols: Symbols<'_>) -> Result<(), FlagKept> {
        let rows = Rows::of(
            symbols,
            c"gHotSpotVMIntConstants",
            c"gHotSpotVMIntConstantEntryArrayStride",
        )?;
        let name = rows.column(symbols, c"gHotSpotVMIntConstantEntryNameOffset")?;
        let value = rows.column(symbols, c"gHotSpotVMIntConstantEntryValueOffset")?;
        let constant = |wanted: &CStr| {
            let mut found = rows.iterate(name).filter(|row| is_text(row + name, wanted));
            let row = found.next();
            row.map(|row| read::<i32>(row + value))
                .ok_or(FlagKept::Unknown("an origin is missing"))
        };
        self.origin_mask = constant(c"JVMFlag::VALUE_ORIGIN_MASK")?;
        self.origin_default = constant(c"JVMFlagOrigin::DEFAULT")?;
        self.origin_internal = constant(c"JVMFlagOrigin::INTERNAL")?;
        Ok(())
    }

    /// Whether the numbers can be right.
    fn check(&self) -> Result<(), FlagKept> {
        let pointer = size_of::<usize>();
        let fits = |offset: usize, width: usize| {
            offset.is_multiple_of(width) && offset + width <= self.stride
        };
        let is_right = self.flags != 0
            && self.flags.is_multiple_of(pointer)
            && (100..=MAX_FLAGS).contains(&self.count)
            && (2 * pointer..=MAX_STRIDE).contains(&self.stride)
            && self.stride.is_multiple_of(pointer)
            && fits(self.name, pointer)
            && fits(self.address, pointer)
            && fits(self.kind, 4)
            && fits(self.origin, 4)
            && self.origin_mask > 0
            && (self.origin_default | self.origin_internal) & !self.origin_mask == 0
            && self.origin_default != self.origin_internal;
        match is_right {
            true => Ok(()),
            false => Err(FlagKept::Unknown("a number cannot be right")),
        }
    }

    /// The flag of this name.
    pub(super) fn flag(&self, name: &str) -> Result<FlagEntry, FlagKept> {
        let all = (0..self.count).map(|at| self.flags + at * self.stride);
        let is_named = |entry: &usize| match text(entry + self.name) {
            Some(found) => found.to_bytes() == name.as_bytes(),
            None => false,
        };
        let mut named = all.filter(is_named);
        let (Some(entry), None) = (named.next(), named.next()) else {
            return Err(FlagKept::Unknown("it is not there once"));
        };
        let width = match read::<i32>(entry + self.kind) {
            2 => Width::Four,
            4 => Width::Eight,
            _ => return Err(FlagKept::Unknown("its value is of another kind")),
        };
        let address = read::<usize>(entry + self.address);
        if address == 0
            || !address.is_multiple_of(8) && width == Width::Eight
            || !address.is_multiple_of(4)
        {
            return Err(FlagKept::Unknown("its variable has no place"));
        }
        Ok(FlagEntry {
            address,
            width,
            flags: read::<i32>(entry + self.origin),
            flags_address: entry + self.origin,
        })
    }
}

impl Rows {
    fn of(symbols: Symbols<'_>, table: &CStr, stride: &CStr) -> Result<Rows, FlagKept> {
        let (table, stride) = (symbols(table), symbols(stride));
        if table == 0 || stride == 0 {
            return Err(FlagKept::Unknown("a table is not exported"));
        }
        let rows = Rows {
            first: read::<usize>(table),
            stride: usize::try_from(read::<u64>(stride)).unwrap_or(usize::MAX),
        };
        let is_right = rows.first != 0
            && rows.first.is_multiple_of(8)
            && rows.stride.is_multiple_of(8)
            && (8..=MAX_STRIDE).contains(&rows.stride);
        match is_right {
            true => Ok(rows),
            false => Err(FlagKept::Unknown("a table has no rows")),
        }
    }

    /// Where in a row this column is.
    fn column(&self, symbols: Symbols<'_>, symbol: &CStr) -> Result<usize, FlagKept> {
        let address = symbols(symbol);
        if address == 0 {
            return Err(FlagKept::Unknown("a column is not exported"));
        }
        let at = usize::try_from(read::<u64>(address)).unwrap_or(usize::MAX);
        match at < self.stride && at.is_multiple_of(4) {
            true => Ok(at),
            false => Err(FlagKept::Unknown("a column is outside its row")),
        }
    }

    /// The addresses of the rows, up to the one without a name.
    fn iterate(&self, name: usize) -> impl Iterator<Item = usize> {
        let all = (0..MAX_ROWS).map(|at| self.first + at * self.stride);
        all.take_while(move |row| read::<usize>(row + name) != 0)
    }
}

/// Where a field is: its offset, or its address if it is static.
pub(crate) fn field(
    symbols: Symbols<'_>,
    class: &CStr,
    name: &CStr,
    type_of: &CStr,
    is_static: bool,
) -> Result<usize, FlagKept> {
    let rows = Rows::of(
        symbols,
        c"gHotSpotVMStructs",
        c"gHotSpotVMStructEntryArrayStride",
    )?;
    let at = |symbol| rows.column(symbols, symbol);
    let (class_at, name_at) = (
        at(c"gHotSpotVMStructEntryTypeNameOffset")?,
        at(c"gHotSpotVMStructEntryFieldNameOffset")?,
    );
    let type_at = at(c"gHotSpotVMStructEntryTypeStringOffset")?;
    let static_at = at(c"gHotSpotVMStructEntryIsStaticOffset")?;
    let offset_at = at(c"gHotSpotVMStructEntryOffsetOffset")?;
    let address_at = at(c"gHotSpotVMStructEntryAddressOffset")?;
    let mut found = rows
        .iterate(class_at)
        .filter(|row| is_text(row + class_at, class) && is_text(row + name_at, name));
    let row = found
        .next()
        .ok_or(FlagKept::Unknown("a field is missing"))?;
    if !is_text(row + type_at, type_of) || (read::<i32>(row + static_at) != 0) != is_static {
        return Err(FlagKept::Unknown("a field has another type"));
    }
    match is_static {
        true => match read::<usize>(row + address_at) {
            0 => Err(FlagKept::Unknown("a static field has no address")),
            address => Ok(address),
        },
        false => Ok(usize::try_from(read::<u64>(row + offset_at)).unwrap_or(usize::MAX)),
    }
}

/// Reads what is at an address. Unaligned reads are allowed.
pub(crate) fn read<T: Copy>(address: usize) -> T {
    // SAFETY: for numbers and pointers alone (`T` is one wherever this is used, and any bits are one). The address is that of an
    // exported symbol of libjvm (a number or a pointer of that width), or within a row or an entry of one of its
    // tables: the row's address is a multiple of the exported stride beyond the exported start, not past the row
    // that ends the table, and a column is less than the stride away; or it is what such a row gives as the address
    // of a static field or a flag's variable. libjvm is never unloaded. `vm_buffers` argues for its own reads.
    unsafe { (address as *const T).read_unaligned() }
}

/// The text that the pointer at an address points to; `None` for a null.
fn text<'a>(address: usize) -> Option<&'a CStr> {
    let pointer = read::<*const c_char>(address);
    if pointer.is_null() {
        return None;
    }
    // SAFETY: a column of names, or the field `_name` of a flag, points to a terminated literal of libjvm, which is
    // never unloaded.
    Some(unsafe { CStr::from_ptr(pointer) })
}

fn is_text(address: usize, wanted: &CStr) -> bool {
    text(address).is_some_and(|found| found == wanted)
}

#[cfg(test)]
pub(super) mod tests;
