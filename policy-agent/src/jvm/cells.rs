//! Scopes as threads carry them: the Java half keeps a thread's open scopes in a `Cell` among
//! the thread's locals, and this reads the number in it.
//!
//! It is read as memory, by field, because an allocating thread must run no Java code here: the
//! thread's map of locals, the place in its table that the hash of our thread-local says, and
//! from there on to the first entry whose value is a `Cell`. A thread's map is changed by that
//! thread alone, and it allocates between two changes, not in the middle of one: so what is read
//! on the thread itself is whole. The layout is HotSpot's class library's own and may change with
//! it; so the Java half asks at its first scope whether what is read is what it wrote
//! (`Natives.probe`), and where it is not, there are no scopes.

use jvmti_bindings::sys::jni;

use crate::ledger::PurseId;

use super::java::{FieldId, Global, Jni, Local};

/// Entries looked at on the way to ours. A table is at most two thirds full.
const MOST_PROBES: i32 = 1024;

/// Where the cells are.
pub(crate) struct Cells {
    locals: FieldId,
    inheritable: FieldId,
    table: FieldId,
    value: FieldId,
    cell: Slot,
    masks: FieldId,
    inherited: Slot,
}

/// A thread-local of ours.
struct Slot {
    /// Of what its values are.
    class: Global,
    hash: i32,
    purse: FieldId,
}

impl Cells {
    /// Looks everything up; says what is missing. The classes are those of the Java half.
    pub(super) fn find(
        jni: &Jni,
        cells: &Local<'_>,
        cell: &Local<'_>,
        inherited: &Local<'_>,
    ) -> Result<Cells, String> {
        const MAP: &str = "Ljava/lang/ThreadLocal$ThreadLocalMap;";
        let in_class = |class: &Local<'_>, name: &str, descriptor: &str| {
            jni.field(class, name, descriptor)
                .ok_or_else(|| format!("there is no field {name}"))
        };
        let field = |class: &str, name: &str, descriptor: &str| {
            let class = jni.boot_class(class);
            in_class(
                &class.ok_or("the JDK's classes are others")?,
                name,
                descriptor,
            )
        };
        let slot = |values: &Local<'_>, local: &str, kind: &str| {
            let hash = jni
                .static_field(cells, local, kind)
                .and_then(|field| jni.static_value(&field))
                .and_then(|local| {
                    let hash = field("java/lang/ThreadLocal", "threadLocalHashCode", "I").ok()?;
                    Some(local.int(hash))
                });
            let (Some(class), Some(hash)) = (values.global(), hash) else {
                return Err(format!("there is no thread-local {local}"));
            };
            Ok(Slot {
                class,
                hash,
                purse: in_class(values, "purse", "I")?,
            })
        };
        Ok(Cells {
            locals: field("java/lang/Thread", "threadLocals", MAP)?,
            inheritable: field("java/lang/Thread", "inheritableThreadLocals", MAP)?,
            table: field(
                "java/lang/ThreadLocal$ThreadLocalMap",
                "table",
                "[Ljava/lang/ThreadLocal$ThreadLocalMap$Entry;",
            )?,
            value: field(
                "java/lang/ThreadLocal$ThreadLocalMap$Entry",
                "value",
                "Ljava/lang/Object;",
            )?,
            cell: slot(cell, "CELLS", "Ljava/lang/ThreadLocal;")?,
            masks: in_class(cell, "masks", "I")?,
            inherited: slot(inherited, "INHERITED", "Ljava/lang/InheritableThreadLocal;")?,
        })
    }

    /// The purse of the scope that the calling thread is in, as the thread's memory says it.
    /// `inherited` tells whether any thread can have inherited one.
    ///
    /// # Safety
    /// `thread` must be null or the `java.lang.Thread` of the calling thread.
    pub(super) unsafe fn purse(
        &self,
        jni: &Jni,
        thread: jni::jthread,
        inherited: bool,
    ) -> Option<PurseId> {
        // SAFETY: by this function's own contract.
        let number = match unsafe { find(self, jni, thread, self.locals, &self.cell) } {
            // Where there is a cell it alone decides, also that there is no scope.
            Some(cell) => cell.int(self.cell.purse),
            None if inherited => {
                // SAFETY: as above.
                unsafe { find(self, jni, thread, self.inheritable, &self.inherited) }?
                    .int(self.inherited.purse)
            }
            None => 0,
        };
        (u16::try_from(number).ok())
            .filter(|&number| number != PurseId::UNACCOUNTED.get())
            .map(PurseId::new)
    }

    /// What the self-test compares: the purses in the cell and in what was inherited, 0 for none.
    ///
    /// # Safety
    /// As [`Cells::purse`].
    pub(super) unsafe fn probe(&self, jni: &Jni, thread: jni::jthread) -> (i32, i32) {
        // SAFETY: by this function's own contract.
        unsafe {
            (
                find(self, jni, thread, self.locals, &self.cell)
                    .map_or(0, |cell| cell.int(self.cell.purse)),
                find(self, jni, thread, self.inheritable, &self.inherited)
                    .map_or(0, |inherited| inherited.int(self.inherited.purse)),
            )
        }
    }

    /// Whether the calling thread is in a masked section.
    ///
    /// # Safety
    /// As [`Cells::purse`].
    pub(super) unsafe fn is_masked(&self, jni: &Jni, thread: jni::jthread) -> bool {
        // SAFETY: by this function's own contract.
        unsafe { find(self, jni, thread, self.locals, &self.cell) }
            .is_some_and(|cell| cell.int(self.masks) > 0)
    }
}

/// The value of a thread-local of ours.
///
/// # Safety
/// As [`Cells::purse`]; `map` must be a field of `java.lang.Thread`.
unsafe fn find<'j>(
    cells: &Cells,
    jni: &'j Jni,
    thread: jni::jthread,
    map: FieldId,
    slot: &Slot,
) -> Option<Local<'j>> {
    if thread.is_null() {
        return None;
    }
    // SAFETY: by this function's own contract.
    let map = unsafe { jni.object_field(thread, map) }?;
    let table = map.get(cells.table)?;
    let length = table.array_length();
    if length <= 0 {
        return None;
    }
    // The JDK's own arithmetic: lengths are powers of two.
    let mut index = slot.hash & (length - 1);
    for _ in 0..length.min(MOST_PROBES) {
        let entry = table.element(index)?;
        if let Some(value) = entry.get(cells.value)
            && value.is_a(&slot.class)
        {
            return Some(value);
        }
        index = (index + 1) & (length - 1);
    }
    None
}
