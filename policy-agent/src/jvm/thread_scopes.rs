//! Finds the scope that a thread is in: the Java half keeps a thread's open scopes in a `Cell`, the value
//! of a thread-local, and this reads the number in it.
//!
//! It reads fields and runs no Java code, because it is on an allocating thread: the thread's map of
//! locals, then the map's table from the slot of our thread-local's hash on, up to the first entry whose
//! value is a `Cell`. Only the thread itself changes its map, and it allocates between two changes, not
//! in the middle of one. So the map is consistent when its own thread reads it. The layout belongs to the
//! JDK and may change. So at its first scope the Java half asks whether the agent reads what it wrote
//! (`Natives.probe`); if not, scopes have no effect.

use policy_jvm::kinds::{Anything, Array, Class, JavaClass, Thread};
use policy_jvm::{Field, IntField, Jni, JvmTi, KnownClass, Local, Ref};

use crate::enforce::ports::LetIn;
use crate::enforce::routes::calls::Inside;
use crate::ledger::PurseId;

/// Entries probed at the most. A table is at most two thirds full.
const MAX_PROBES: i32 = 1024;

/// `java.lang.ThreadLocal`.
struct ThreadLocal;

impl JavaClass for ThreadLocal {
    const NAME: &'static str = "java/lang/ThreadLocal";
}

/// A thread's map of locals.
struct Map;

impl JavaClass for Map {
    const NAME: &'static str = "java/lang/ThreadLocal$ThreadLocalMap";
}

/// An entry of it.
struct Entry;

impl JavaClass for Entry {
    const NAME: &'static str = "java/lang/ThreadLocal$ThreadLocalMap$Entry";
}

/// A thread's open scopes, of the Java half.
struct Cell;

impl JavaClass for Cell {
    const NAME: &'static str = "dev/heapwarden/agent/Cell";
}

/// The scope that a thread inherited from the one that started it.
struct Inherited;

impl JavaClass for Inherited {
    const NAME: &'static str = "dev/heapwarden/agent/Inherited";
}

/// Where threads keep their cells.
pub(crate) struct ThreadScopes {
    locals: Field<Thread, Map>,
    inheritable: Field<Thread, Map>,
    table: Field<Map, Array<Entry>>,
    value: Field<Entry, Anything>,
    cell: Slot<Cell>,
    masks: IntField<Cell>,
    let_in: IntField<Cell>,
    route: IntField<Cell>,
    calls: IntField<Cell>,
    inherited: Slot<Inherited>,
}

/// A thread-local of the Java half.
struct Slot<C> {
    /// The class of its values.
    class: KnownClass<C>,
    hash: i32,
    purse: IntField<C>,
}

impl<C: JavaClass> Slot<C> {
    /// The thread-local in the static field `local` of the Java half's class `holder`.
    fn find(
        jni: &Jni,
        jvmti: &JvmTi,
        values: &Ref<'_, Class>,
        holder: &Ref<'_, Class>,
        (local, descriptor): (&str, &str),
    ) -> Result<Slot<C>, String> {
        let hash = jni
            .static_field(holder, local, descriptor)
            .and_then(|field| field.value(jni))
            .and_then(|local| {
                let class = jni.java_class::<ThreadLocal>()?;
                let hash = class.int_field(jni, "threadLocalHashCode")?;
                Some(local.as_a(&class)?.int(hash))
            });
        let (Some(class), Some(hash)) = (KnownClass::of(jvmti, values), hash) else {
            return Err(format!("there is no thread-local {local}"));
        };
        Ok(Slot {
            purse: int_field(jni, &class, "purse")?,
            class,
            hash,
        })
    }
}

fn int_field<C: JavaClass>(
    jni: &Jni,
    class: &KnownClass<C>,
    name: &str,
) -> Result<IntField<C>, String> {
    (class.int_field(jni, name)).ok_or_else(|| format!("there is no field {name}"))
}

/// Decodes the field `letIn` of a cell.
pub(crate) fn let_in_of(field: i32) -> LetIn {
    match field {
        0 => LetIn::No,
        1.. => LetIn::OnThread,
        // The sign is not the mark's.
        work => LetIn::Work(work.cast_unsigned() & i32::MAX.cast_unsigned()),
    }
}

impl ThreadScopes {
    /// Looks everything up. The classes are those of the Java half.
    ///
    /// # Errors
    /// A sentence that says which part is missing.
    pub(super) fn find(
        jni: &Jni,
        jvmti: &JvmTi,
        holder: &Ref<'_, Class>,
        cell: &Ref<'_, Class>,
        inherited: &Ref<'_, Class>,
    ) -> Result<ThreadScopes, String> {
        const OTHERS: &str = "the JDK's classes are others";
        let thread = jni.java_class::<Thread>().ok_or(OTHERS)?;
        let map = jni.java_class::<Map>().ok_or(OTHERS)?;
        let entry = jni.java_class::<Entry>().ok_or(OTHERS)?;
        let missing = |name: &str| format!("there is no field {name}");
        let of_thread = |name| thread.field(jni, name).ok_or_else(|| missing(name));
        let cell: Slot<Cell> = Slot::find(
            jni,
            jvmti,
            cell,
            holder,
            ("CELLS", "Ljava/lang/ThreadLocal;"),
        )?;
        Ok(ThreadScopes {
            locals: of_thread("threadLocals")?,
            inheritable: of_thread("inheritableThreadLocals")?,
            table: (map.field(jni, "table")).ok_or_else(|| missing("table"))?,
            value: (entry.field(jni, "value")).ok_or_else(|| missing("value"))?,
            masks: int_field(jni, &cell.class, "masks")?,
            let_in: int_field(jni, &cell.class, "letIn")?,
            route: int_field(jni, &cell.class, "route")?,
            calls: int_field(jni, &cell.class, "calls")?,
            cell,
            inherited: Slot::find(
                jni,
                jvmti,
                inherited,
                holder,
                ("INHERITED", "Ljava/lang/InheritableThreadLocal;"),
            )?,
        })
    }

    /// The purse of the scope that the calling thread is in. `inherited`: a thread may have inherited one.
    pub(crate) fn purse(&self, thread: &Ref<'_, Thread>, inherited: bool) -> Option<PurseId> {
        let number = match self.find_value(thread, self.locals, &self.cell) {
            // If there is a cell, it alone decides, even that there is no scope.
            Some(cell) => cell.int(self.cell.purse),
            None if inherited => {
                let found = self.find_value(thread, self.inheritable, &self.inherited)?;
                found.int(self.inherited.purse)
            }
            None => 0,
        };
        (u16::try_from(number).ok())
            .filter(|&number| number != PurseId::UNACCOUNTED.get())
            .map(PurseId::new)
    }

    /// Returns the purses that the self-test compares: in the cell and in what was inherited, 0 for none.
    pub(crate) fn probe(&self, thread: &Ref<'_, Thread>) -> (i32, i32) {
        let cell = self.find_value(thread, self.locals, &self.cell);
        let inherited = self.find_value(thread, self.inheritable, &self.inherited);
        (
            cell.map_or(0, |cell| cell.int(self.cell.purse)),
            inherited.map_or(0, |inherited| inherited.int(self.inherited.purse)),
        )
    }

    /// Whether the calling thread is in a masked section.
    pub(crate) fn is_masked(&self, thread: &Ref<'_, Thread>) -> bool {
        self.find_value(thread, self.locals, &self.cell)
            .is_some_and(|cell| cell.int(self.masks) > 0)
    }

    /// The routes that the calling thread is in.
    pub(crate) fn routes(&self, thread: &Ref<'_, Thread>) -> Inside {
        let cell = self.find_value(thread, self.locals, &self.cell);
        cell.map_or_else(Inside::default, |cell| {
            Inside::new(cell.int(self.route), cell.int(self.calls))
        })
    }

    /// Whether the calling thread is in what a shut door has let in.
    pub(crate) fn let_in(&self, thread: &Ref<'_, Thread>) -> LetIn {
        let cell = self.find_value(thread, self.locals, &self.cell);
        let_in_of(cell.map_or(0, |cell| cell.int(self.let_in)))
    }

    /// The value of one of our thread-locals. `thread` must be the calling one: the map of another could be
    /// half changed.
    fn find_value<'j, C: JavaClass>(
        &self,
        thread: &Ref<'j, Thread>,
        map: Field<Thread, Map>,
        slot: &Slot<C>,
    ) -> Option<Local<'j, C>> {
        let table = thread.get(map)?.get(self.table)?;
        let length = table.array_length();
        if length <= 0 {
            return None;
        }
        // The JDK's own arithmetic: lengths are powers of two.
        let mut index = slot.hash & (length - 1);
        for _ in 0..length.min(MAX_PROBES) {
            let entry = table.element(index)?;
            if let Some(value) = (entry.get(self.value)).and_then(|value| value.into_a(&slot.class))
            {
                return Some(value);
            }
            index = (index + 1) & (length - 1);
        }
        None
    }
}
