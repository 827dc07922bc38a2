//! HotSpot's sampler in a few lines, for tests: the exponential countdown of one
//! thread, with the interval read only when it draws.

/// A seeded generator (SplitMix64): the same seed gives the same test.
#[derive(Debug, Clone)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in `0..bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Uniform in (0, 1].
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}

/// The countdown of one thread.
#[derive(Debug, Clone)]
pub(crate) struct Countdown {
    rng: Rng,
    remaining_bytes: u64,
}

impl Countdown {
    /// A thread born while `interval_bytes` is in force.
    pub(crate) fn new(seed: u64, interval_bytes: u64) -> Self {
        let mut this = Self {
            rng: Rng(seed),
            remaining_bytes: 0,
        };
        this.draw(interval_bytes);
        this
    }

    fn draw(&mut self, interval_bytes: u64) {
        self.remaining_bytes = if interval_bytes == 0 {
            0
        } else {
            (-self.rng.unit().ln() * interval_bytes as f64) as u64 + 1
        };
    }

    /// Allocates an object; true if it is sampled. `interval_bytes` is in force now.
    pub(crate) fn allocate(&mut self, size_bytes: u64, interval_bytes: u64) -> bool {
        if size_bytes < self.remaining_bytes {
            self.remaining_bytes -= size_bytes;
            return false;
        }
        self.draw(interval_bytes);
        true
    }
}
