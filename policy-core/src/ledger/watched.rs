//! For tests: runs a check in the middle of a scan of the records.

use std::cell::{Cell, RefCell};

thread_local! {
    static LOOK: RefCell<Option<Box<dyn Fn()>>> = const { RefCell::new(None) };
    static SCANS: Cell<u32> = const { Cell::new(0) };
}

/// Runs `work`, and runs `look` inside each scan of the records that `work` makes on this thread. Returns
/// the number of scans; a test must check that it is not 0.
pub(crate) fn during_scans(look: impl Fn() + 'static, work: impl FnOnce()) -> u32 {
    LOOK.with(|own| *own.borrow_mut() = Some(Box::new(look)));
    SCANS.set(0);
    work();
    LOOK.with(|own| *own.borrow_mut() = None);
    SCANS.get()
}

/// Called at the start of each scan of the records.
pub(super) fn scan_begins() {
    LOOK.with(|look| {
        if let Some(look) = &*look.borrow() {
            SCANS.set(SCANS.get() + 1);
            look();
        }
    });
}
