//! Histograms of what is live, in words and bars. Pure.

use super::amount;
use policy_report::Bin;

/// The quantity by which objects are put into the bins of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Ages in seconds.
    Seconds,
    /// Ages in covering collections survived.
    Collections,
    /// Sizes of one object in bytes.
    Bytes,
}

impl Scale {
    /// The largest value of a bin: `10 min`, `7`, `1 KiB`; `more` for the last.
    pub fn edge(self, upto: Option<u64>) -> String {
        let Some(upto) = upto else {
            return "more".to_owned();
        };
        match self {
            Scale::Seconds => {
                const UNITS: [(u64, &str); 4] =
                    [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
                // The largest unit that says it exactly.
                let unit = UNITS
                    .iter()
                    .find(|(length, _)| upto >= *length && upto % length == 0);
                let (length, name) = unit.unwrap_or(&(1, "s"));
                format!("{} {name}", upto / length)
            }
            Scale::Collections => amount::count(upto),
            Scale::Bytes => amount::bytes(upto),
        }
    }
}

/// The edges of all histograms together, in ascending order: an agent leaves out bins that are empty.
pub fn edges<'a>(histograms: impl IntoIterator<Item = &'a [Bin]>) -> Vec<Option<u64>> {
    let all = histograms.into_iter().flatten();
    let mut edges: Vec<Option<u64>> = all.map(|bin| bin.upto).collect();
    edges.sort_unstable_by_key(|upto| upto.unwrap_or(u64::MAX));
    edges.dedup();
    edges
}

/// The live bytes of the bin with this edge.
pub fn live_bytes(histogram: &[Bin], upto: Option<u64>) -> u64 {
    let bins = histogram.iter().filter(|bin| bin.upto == upto);
    bins.fold(0, |sum, bin| sum.saturating_add(bin.live_bytes))
}

/// A bar of at most `columns`, as long as `part` is of `whole`; something that is not nothing has one mark.
pub fn bar(part: u64, whole: u64, columns: usize) -> String {
    if part == 0 || whole == 0 {
        return String::new();
    }
    let share = (part as f64 / whole as f64).min(1.0);
    let marks = (share * columns as f64).round() as usize;
    "#".repeat(marks.max(1).min(columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(upto: Option<u64>, live_bytes: u64) -> Bin {
        Bin {
            upto,
            live_bytes,
            live_objects: 1,
        }
    }

    #[test]
    fn edges_are_read_as_people_write_them() {
        for (seconds, expected) in [
            (10, "10 s"),
            (60, "1 min"),
            (90, "90 s"),
            (1_800, "30 min"),
            (10_800, "3 h"),
            (604_800, "7 d"),
            (0, "0 s"),
        ] {
            assert_eq!(Scale::Seconds.edge(Some(seconds)), expected);
        }
        assert_eq!(Scale::Collections.edge(Some(31)), "31");
        assert_eq!(Scale::Bytes.edge(Some(4096)), "4 KiB");
        assert_eq!(Scale::Bytes.edge(None), "more");
    }

    #[test]
    fn histograms_with_other_bins_share_their_edges() {
        let old = [bin(Some(60), 5), bin(None, 9)];
        let young = [bin(Some(10), 7), bin(Some(60), 1)];
        let all = edges([old.as_slice(), &young]);
        assert_eq!(all, [Some(10), Some(60), None]);
        let bytes: Vec<u64> = all.iter().map(|&edge| live_bytes(&old, edge)).collect();
        assert_eq!(bytes, [0, 5, 9]);
        assert!(edges([]).is_empty());
    }

    #[test]
    fn a_bar_shows_its_share_and_fits() {
        assert_eq!(bar(50, 100, 10), "#####");
        assert_eq!(bar(1, u64::MAX, 10), "#");
        assert_eq!(bar(0, 100, 10), "");
        assert_eq!(bar(7, 0, 10), "");
        assert_eq!(bar(u64::MAX, 1, 4), "####");
        assert_eq!(bar(1, 1, 0), "");
    }
}
