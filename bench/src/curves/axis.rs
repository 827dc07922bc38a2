//! Axes: where a value lies, how far the axis goes, and where it is labelled.

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scale {
    Linear,
    /// A value at or below the floor lies on the floor: a logarithm has no place for nothing.
    Log {
        floor: f64,
    },
}

/// An axis; its range and its ticks are places.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    /// The quantity that the axis shows, with its unit.
    pub(crate) label: String,
    pub(crate) scale: Scale,
    pub(crate) range: (f64, f64),
    pub(crate) ticks: Vec<(f64, String)>,
}

/// Part of the range that is added at both ends.
const MARGIN: f64 = 0.05;
/// Steps between the ticks of a linear axis, at the most.
const STEPS: f64 = 8.0;
/// Factors within ten times at which a logarithmic axis has ticks, where it spans little.
const FACTORS: [f64; 3] = [1.0, 2.0, 5.0];
/// Powers of ten from which on only they have ticks.
const MANY_DECADES: f64 = 3.0;

impl Scale {
    /// The place of a value.
    pub(crate) fn place(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Log { floor } => value.max(floor).log10(),
        }
    }
}

impl Axis {
    /// One that holds all values, with ticks at round numbers.
    pub(crate) fn holding(
        label: &str,
        scale: Scale,
        values: &[f64],
        text: impl Fn(f64) -> String,
    ) -> Axis {
        let mut axis = Axis::at(label, scale, values, &text);
        let (low, high) = axis.range;
        let round = match scale {
            Scale::Linear => linear_ticks(low, high),
            Scale::Log { .. } => log_ticks(low, high),
        };
        axis.ticks = round
            .into_iter()
            .map(|value| (scale.place(value), text(value)))
            .collect();
        axis
    }

    /// One with ticks at these values and nowhere else.
    pub(crate) fn at(
        label: &str,
        scale: Scale,
        values: &[f64],
        text: impl Fn(f64) -> String,
    ) -> Axis {
        let places = values.iter().filter(|value| value.is_finite());
        let places: Vec<f64> = places.map(|&value| scale.place(value)).collect();
        Axis {
            label: label.to_owned(),
            scale,
            range: with_margin(crate::stats::range(&places)),
            ticks: values
                .iter()
                .map(|&value| (scale.place(value), text(value)))
                .collect(),
        }
    }

    /// The text of the tick at a place.
    pub(crate) fn tick(&self, place: f64) -> String {
        self.ticks
            .iter()
            .min_by(|a, b| (a.0 - place).abs().total_cmp(&(b.0 - place).abs()))
            .map(|(_, text)| text.clone())
            .unwrap_or_default()
    }
}

/// A range that is never empty.
fn with_margin((low, high): (f64, f64)) -> (f64, f64) {
    let margin = match high - low {
        0.0 => 0.5,
        width => MARGIN * width,
    };
    (low - margin, high + margin)
}

/// Multiples of 1, 2 or 5 times a power of ten within the range.
fn linear_ticks(low: f64, high: f64) -> Vec<f64> {
    let raw = (high - low) / STEPS;
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= raw)
        .unwrap_or(raw);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|number| number as f64 * step).collect()
}

/// Powers of ten within the range of places, and what lies between where they are few.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let factors: &[f64] = match high - low > MANY_DECADES {
        true => &FACTORS[..1],
        false => &FACTORS,
    };
    let (first, last) = (low.floor() as i32, high.ceil() as i32);
    (first..=last)
        .flat_map(|power| {
            factors
                .iter()
                .map(move |factor| factor * 10_f64.powi(power))
        })
        .filter(|value| (low..=high).contains(&value.log10()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_holds_its_values_and_labels_round_numbers() {
        let axis = Axis::holding("x", Scale::Linear, &[-1.0, 10.0], |v| format!("{v}"));
        assert!(axis.range.0 < -1.0 && axis.range.1 > 10.0);
        let texts: Vec<&str> = axis.ticks.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["0", "2", "4", "6", "8", "10"]);
    }

    #[test]
    fn a_logarithmic_axis_labels_powers_and_more_where_they_are_few() {
        let log = Scale::Log { floor: 1.0 };
        let texts = |values: &[f64]| -> Vec<String> {
            let axis = Axis::holding("x", log, values, |v| format!("{v}"));
            axis.ticks.into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(
            texts(&[1.0, 1e6]),
            ["1", "10", "100", "1000", "10000", "100000", "1000000"]
        );
        assert_eq!(texts(&[1.0, 20.0]), ["1", "2", "5", "10", "20"]);
    }

    #[test]
    fn nothing_lies_on_the_floor() {
        let log = Scale::Log { floor: 0.1 };
        assert_eq!(log.place(-3.0), log.place(0.1));
        assert_eq!(
            Axis::at("x", log, &[0.0], |_| "0".to_owned()).range,
            (-1.5, -0.5)
        );
    }

    #[test]
    fn an_axis_of_nothing_is_still_an_axis() {
        let axis = Axis::holding("x", Scale::Linear, &[f64::NAN], |v| format!("{v}"));
        assert!(axis.range.0 < axis.range.1 && !axis.ticks.is_empty());
    }

    #[test]
    fn a_tick_is_found_by_its_place() {
        let axis = Axis::at("x", Scale::Linear, &[1.0, 64.0], |v| format!("{v} threads"));
        assert_eq!(axis.tick(63.9), "64 threads");
    }
}
