//! The rows, and what was published of them.

/// A workload of `bench/java/rows`.
#[derive(Debug)]
pub(crate) struct Row {
    /// How it is called here and in the results.
    pub(crate) name: &'static str,
    /// The name by which `rows.Main` knows it.
    pub(crate) program: &'static str,
    /// Warehouses of the order system.
    pub(crate) warehouses: Option<u32>,
    /// How many times as long it took with ASGMemProf; of the order system, how many times less it
    /// got done. Table 1 of P. Bouché, M. von Löwis, P. Tröger, *Aggregated Accounting of Memory
    /// Usage in Java*, ICSOFT 2009.
    pub(crate) asgmemprof_factor: f64,
}

/// The row that has an aim of its own: the order system with four warehouses.
pub(crate) const JBB: &str = "jbb";

/// The rows of the table, in its order.
pub(crate) const ROWS: [Row; 15] = [
    row("antlr", 1.72),
    row("bloat", 9.89),
    row("chart", 9.63),
    row("eclipse", 3.81),
    row("fop", 6.31),
    row("hsqldb", 3.09),
    row("jython", 16.65),
    row("luindex", 6.46),
    row("lusearch", 4.29),
    row("pmd", 2.34),
    row("xalan", 5.10),
    jbb("jbb-1", 1, 8.05),
    jbb("jbb-2", 2, 7.89),
    jbb("jbb-3", 3, 8.86),
    jbb(JBB, 4, 9.14),
];

const fn row(name: &'static str, asgmemprof_factor: f64) -> Row {
    Row {
        name,
        program: name,
        warehouses: None,
        asgmemprof_factor,
    }
}

const fn jbb(name: &'static str, warehouses: u32, asgmemprof_factor: f64) -> Row {
    Row {
        name,
        program: JBB,
        warehouses: Some(warehouses),
        asgmemprof_factor,
    }
}

impl Row {
    /// The row of a name.
    pub(crate) fn named(name: &str) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.name == name)
    }

    /// Whether it is measured where no rows are named: the order system is, with four warehouses,
    /// so that it weighs as much as any row in the mean over rows.
    pub(crate) fn is_default(&self) -> bool {
        self.program != JBB || self.name == JBB
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_each_workload_once() {
        let names: Vec<&str> = ROWS
            .iter()
            .filter(|row| row.is_default())
            .map(|row| row.program)
            .collect();
        assert_eq!(names.len(), 12);
        assert_eq!(names.iter().filter(|name| **name == JBB).count(), 1);
        assert_eq!(Row::named(JBB).and_then(|row| row.warehouses), Some(4));
    }
}
