//! A picture: panels beside one another, each with lines of points and their intervals.

use super::axis::Axis;
use crate::bootstrap::Estimate;

/// A value with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bar {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Bar {
    /// A value that is known.
    pub(crate) fn exact(value: f64) -> Bar {
        Bar {
            value,
            low: value,
            high: value,
        }
    }

    /// An estimate in another unit.
    pub(crate) fn of(estimate: &Estimate, unit: impl Fn(f64) -> f64) -> Bar {
        Bar {
            value: unit(estimate.value),
            low: unit(estimate.low),
            high: unit(estimate.high),
        }
    }

    /// All three.
    pub(crate) fn values(self) -> [f64; 3] {
        [self.value, self.low, self.high]
    }
}

/// A point.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dot {
    pub(crate) x: Bar,
    pub(crate) y: Bar,
    /// Written beside it; empty for none.
    pub(crate) label: String,
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) dots: Vec<Dot>,
    /// Whether a line leads from one to the next.
    pub(crate) is_joined: bool,
}

/// Lines on two axes.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// A value of y at which a thin line goes across.
    pub(crate) mark: Option<f64>,
    /// Whether the lines go down, so that the names of the lines have room below.
    pub(crate) is_falling: bool,
    pub(crate) lines: Vec<Line>,
}

/// One file.
#[derive(Debug, Clone)]
pub(crate) struct Picture {
    /// Of the file, without its extension.
    pub(crate) name: String,
    pub(crate) title: String,
    /// How it was measured.
    pub(crate) note: String,
    pub(crate) panels: Vec<Panel>,
}
