//! The statistic: does a class of an account leak, by what a window of time shows?
//!
//! # Aged growth
//! A window begins at S and ends at T. Q, M and H are a quarter, half and three quarters of the way. Two
//! looks at the records, each after a collection that covers old memory, give what is needed: one at about
//! M and one at T.
//!
//! ```text
//!        S         Q         M         H         T
//!        |---------|---------|---------|---------|
//! old    [.........]                              born up to Q (before S too), alive at M; of these, alive at T
//! middle           (.........]                    alive at T
//! young                      (.........]          alive at T
//! ```
//!
//! All that is compared is at least a quarter of the window old: what dies younger is not seen. The *stock*
//! of aged bytes is `old` at M, and `old + middle + young` at T: the same ages at both looks. If births and
//! deaths balance, both are equal, whatever the lifetimes. A class is called leaking if
//!
//! 1. the stock grows: `z > 4.5`, by a variance that takes each allocation for an event by chance. The
//!    youngest part alone must outweigh the deaths too;
//! 2. old instances do not die: Wilson's lower bound (z = 3) of the share of `old` that lives on is above
//!    one half;
//! 3. it grows steadily: the births that stay are spread over the time from Q to H, in three parts at least,
//!    without a gap, and no part has more than a multiple of its share;
//! 4. it does not slow down: `young` is not surely less than `middle`.
//!
//! It says "nothing older than a quarter of the window has been dying, while more keeps coming". It cannot
//! exclude lifetimes beyond about three quarters of the window: a store whose sessions all live longer than
//! that looks the same, until the window is longer.
//!
//! Pure functions; amounts are bytes, weighed as [`crate::sampling::weight`] says. Counts are samples.

/// The smallest number of samples in `middle` and `young` together, and in `old`.
pub const FEWEST_GROWN: u64 = 21;
/// See [`FEWEST_GROWN`].
pub const FEWEST_OLD: u64 = 10;
/// How many standard errors growth must exceed to be called so.
pub const SURELY: f64 = 4.5;
/// A suspicion stays while growth exceeds so many: it does not flicker.
pub const STILL: f64 = 3.0;
/// With too few samples to say more: it may grow beyond so many.
const PERHAPS: f64 = 2.0;
/// The z of Wilson's bounds.
const WILSON_Z: f64 = 3.0;
/// The share of old instances that lives on must exceed this, surely; and a suspicion stays above the
/// second.
const LIVES_ON: f64 = 0.5;
const STILL_LIVES_ON: f64 = 0.4;
/// A part may have at most this multiple of its share of the births that stay.
const LUMP: f64 = 2.5;
/// `young` is surely less than this part of `middle`, by so many standard errors: growth slows down.
const SLOWER: f64 = 0.8;
const SLOWER_Z: f64 = 2.5;
/// The fewest parts that show steadiness.
pub const FEWEST_PARTS: usize = 3;

/// Some samples, and what they stand for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Born {
    /// How many samples.
    pub records: u64,
    /// Bytes.
    pub bytes: f64,
    /// The sum of the squares of the bytes of each: the variance if allocations come by chance.
    pub squares: f64,
}

impl std::ops::AddAssign for Born {
    fn add_assign(&mut self, other: Born) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.squares += other.squares;
    }
}

impl std::ops::Add for Born {
    type Output = Born;
    fn add(mut self, other: Born) -> Born {
        self += other;
        self
    }
}

/// A stretch of time between Q and H, and the births in it that are alive at T.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// How long it is, in seconds.
    pub seconds: f64,
    /// The births in it that are alive at T.
    pub born: Born,
}

/// One row in one window: the lengths of the stretches of time, and the births in them that are alive.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WindowView {
    /// Seconds from M to T.
    pub seconds: f64,
    /// Seconds from Q to M.
    pub middle_seconds: f64,
    /// Seconds from M to H.
    pub young_seconds: f64,
    /// Born up to Q and alive at M.
    pub old_then: Born,
    /// Born up to Q and alive at T.
    pub old_now: Born,
    /// Born in (Q, M] and alive at T.
    pub middle: Born,
    /// Born in (M, H] and alive at T.
    pub young: Born,
    /// The time from Q to H in parts, none shorter than a sixth of it where the marks allow.
    pub parts: Vec<Part>,
}

/// The verdict of the statistic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing old dies while more keeps coming.
    Leak,
    /// It grows, and old instances die: sessions under rising load, a cache that turns over.
    Turnover,
    /// It grows in lumps.
    Lumpy,
    /// It has grown, and slows down: data loaded at the start, a cache that is filling.
    FilledAtStart,
    /// It may grow; there are too few samples, or too few collections, to say.
    Undecided,
    /// It does not grow.
    Steady,
}

impl Verdict {
    /// The spelling in JSON; `None` for what is not reported as growing.
    #[must_use]
    pub fn why(self) -> Option<&'static str> {
        match self {
            Verdict::Turnover => Some("turnover"),
            Verdict::Lumpy => Some("lumpy"),
            Verdict::FilledAtStart => Some("filled-at-start"),
            Verdict::Undecided => Some("undecided"),
            Verdict::Leak | Verdict::Steady => None,
        }
    }
}

/// The verdict and the growth that the statistic found in one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finding {
    /// The verdict.
    pub verdict: Verdict,
    /// Whether what made it a leak before still holds, by the weaker bounds of a standing suspicion.
    pub still_leaks: bool,
    /// Whether there were enough old samples to see them die, and they do.
    pub old_dies: bool,
    /// Growth of the stock in bytes a second.
    pub growth: f64,
    /// Its standard error.
    pub error: f64,
}

impl WindowView {
    /// Judges one window of one row.
    #[must_use]
    pub fn judge(&self) -> Finding {
        let died = Born {
            records: self.old_then.records.saturating_sub(self.old_now.records),
            bytes: (self.old_then.bytes - self.old_now.bytes).max(0.0),
            squares: (self.old_then.squares - self.old_now.squares).max(0.0),
        };
        let grown = self.middle + self.young;
        let net = grown.bytes - died.bytes;
        let error = (grown.squares + died.squares).sqrt();
        let z = if error > 0.0 { net / error } else { 0.0 };
        let (lower, upper) = wilson(self.old_now.records, self.old_then.records);
        let has_old = self.old_then.records >= FEWEST_OLD;
        let old_dies = has_old && lower <= LIVES_ON;
        let young_outweighs = {
            // The deaths are from M to T, the births from M to H.
            let error = (self.young.squares + died.squares).sqrt();
            error > 0.0 && self.young.bytes - died.bytes > 2.0 * error
        };
        // The births are from Q to H, the deaths from M to T. Marks may make the two times unequal.
        let born_a_second = rate(&grown, self.middle_seconds + self.young_seconds);
        let died_a_second = rate(&died, self.seconds);
        let verdict = if grown.records < FEWEST_GROWN || !has_old {
            match z > PERHAPS {
                true => Verdict::Undecided,
                false => Verdict::Steady,
            }
        } else if z <= SURELY {
            Verdict::Steady
        } else if old_dies {
            // Not surely more than half, and not surely less: the samples may be too few.
            match upper <= 0.75 || self.old_then.records >= 40 {
                true => Verdict::Turnover,
                false => Verdict::Undecided,
            }
        } else if self.slows_down() {
            Verdict::FilledAtStart
        } else if self.parts.len() < FEWEST_PARTS {
            Verdict::Undecided
        } else if self.is_lumpy() {
            Verdict::Lumpy
        } else if !young_outweighs {
            Verdict::Undecided
        } else {
            Verdict::Leak
        };
        Finding {
            verdict,
            still_leaks: z > STILL && has_old && lower > STILL_LIVES_ON && !self.slows_down(),
            old_dies,
            growth: born_a_second.0 - died_a_second.0,
            error: (born_a_second.1 + died_a_second.1).sqrt(),
        }
    }

    fn slows_down(&self) -> bool {
        if self.middle_seconds <= 0.0 || self.young_seconds <= 0.0 {
            return false;
        }
        let (middle, of_middle) = rate(&self.middle, self.middle_seconds);
        let (young, of_young) = rate(&self.young, self.young_seconds);
        let difference = SLOWER * middle - young;
        let error = (SLOWER * SLOWER * of_middle + of_young).sqrt();
        difference > SLOWER_Z * error
    }

    fn is_lumpy(&self) -> bool {
        let seconds: f64 = self.parts.iter().map(|part| part.seconds).sum();
        let bytes: f64 = self.parts.iter().map(|part| part.born.bytes).sum();
        let is_lump = |part: &Part| {
            let fair = bytes * part.seconds / seconds;
            part.born.bytes > LUMP * fair + 2.0 * part.born.squares.sqrt()
        };
        self.parts
            .iter()
            .any(|part| part.born.records == 0 || is_lump(part))
    }
}

/// Bytes in a second, and their variance.
fn rate(born: &Born, seconds: f64) -> (f64, f64) {
    let seconds = seconds.max(f64::MIN_POSITIVE);
    let variance = born.squares / (seconds * seconds);
    (born.bytes / seconds, variance)
}

/// Wilson's bounds of the share of `hits` among `all`.
fn wilson(hits: u64, all: u64) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let (n, z) = (all as f64, WILSON_Z);
    let share = hits.min(all) as f64 / n;
    let middle = share + z * z / (2.0 * n);
    let spread = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    (
        ((middle - spread) / scale).max(0.0),
        ((middle + spread) / scale).min(1.0),
    )
}

#[cfg(test)]
mod tests;
