//! The weight of a sample: how much one sampled object stands for.
//!
//! # Where the probability comes from
//! HotSpot's sampler (JEP 331, `threadHeapSampler.cpp`) counts the bytes a thread
//! allocates down from a draw `floor(X) + 1`, X exponential with mean I, samples the
//! object that reaches zero, discards the overshoot and draws anew. So an object of
//! s bytes is met by a fresh draw, or by what is left of an older one, which has the
//! same distribution because the exponential has no memory. It is sampled when
//! `floor(X) + 1 <= s`, that is when `X < s`:
//!
//! ```text
//! p = 1 - exp(-s / I)          (at most one sample an object)
//! ```
//!
//! # Why s / p
//! Charge s/p if the object is sampled, nothing otherwise: the mean is `p * s/p = s`,
//! whatever the size, so any sum of charges is unbiased, of bytes (s/p) as of objects
//! (1/p). Each sample is unbiased *before* it is summed, as jemalloc argues in its
//! profiling notes; scaling a sum by its average size, as older heap profilers do, is
//! biased where sizes are mixed, and `max(s, I)` is low by 37 % at s = I.
//!
//! # Its error
//! The variance of that charge is `s^2 (1-p)/p`, unknown for the objects that were not
//! sampled; but `v = s^2 (1-p)/p^2`, summed over the *sampled* ones, has exactly that
//! mean. Its root is the standard error of the sum.
//!
//! # How it is computed
//! With `e = exp(s/I) - 1` and `excess = s/e` the three numbers need one `exp_m1` and
//! no subtraction that could cancel:
//!
//! ```text
//! s/p = s + excess        1/p = 1 + 1/e        s^2 (1-p)/p^2 = excess * (s + excess)
//! ```
//!
//! Each is rounded to the nearest integer once, here. A refund calls [`charge`] with
//! the same two arguments and gets the same three integers, so integer sums return to
//! exactly zero.
//!
//! # No sum overflows a `u64`
//! For I at most [`MAX_INTERVAL_BYTES`] (2^26) and a heap of at most 16 TiB (2^44):
//!
//! * `e >= s/I`, so `excess <= I` and one charge is at most `s + I`. With N tracked
//!   records (N <= 2^28, the width of a tag's index) the bytes are below the sum of
//!   sizes plus `2^28 * 2^26 = 2^54`. Sizes of tracked objects sum to the heap, or to a
//!   few heaps while frees are on their way. Far below 2^64.
//! * Objects: `1/p <= 1 + I/s`, so at most 2^26 + 1 each even for s = 1, in units of
//!   2^-16: below 2^43 each, and as charges of live objects they estimate the number of
//!   objects in the heap, at most `2^44 / 8 = 2^41`, that is 2^57 units.
//! * Variance: `v = excess * s/p <= I * s/p`. Its sum is at most I times the charged
//!   bytes: `2^26 * 2^44 = 2^70` for a full heap, which in units of 256 is 2^62. Four
//!   such heaps of charges fit at the largest interval, and more in proportion as the
//!   interval gets smaller: 2^16 heaps at 4 KiB.
//!
//! Arrays that are thinned have intervals of up to 2^30 (`thinning`), a quarter of the heap at most:
//! the variances of 2^42 bytes charged so add up to `2^30 * 2^42 = 2^72`, in units 2^64. Those of a
//! heap of 4 TiB fit; in a larger one, full of such arrays, an error published would be too small.
//!
//! Sums wrap modulo 2^64 rather than saturate, so that even beyond these bounds a
//! refund undoes its charge exactly.

/// The largest interval for which the bounds above are shown: 64 MiB.
pub const MAX_INTERVAL_BYTES: u64 = 64 << 20;

/// [`Charge::objects`] counts in units of one part in this many.
pub const OBJECT_UNIT: u64 = 1 << 16;

/// [`Charge::variance`] counts in units of this many squared bytes.
pub const VARIANCE_UNIT_BYTES2: u64 = 256;

/// The bytes and objects that one sampled object stands for, and their variance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Charge {
    /// s/p in bytes.
    pub bytes: u64,
    /// 1/p in units of 2^-16 objects ([`OBJECT_UNIT`]).
    pub objects: u64,
    /// s²(1-p)/p² in units of 256 bytes² ([`VARIANCE_UNIT_BYTES2`]).
    pub variance: u64,
}

impl std::ops::AddAssign for Charge {
    /// Wraps, as the module header explains.
    fn add_assign(&mut self, other: Self) {
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.objects = self.objects.wrapping_add(other.objects);
        self.variance = self.variance.wrapping_add(other.variance);
    }
}

/// The charge for a sampled object of `size_bytes`, drawn under `interval_bytes`
/// (0 = every allocation is sampled: p = 1, no variance).
///
/// Pure and deterministic; any thread. An object of no bytes cannot be sampled and
/// weighs nothing. Arguments beyond the bounds of the module header are accepted: the
/// conversion to integers saturates.
// Not inlined: charge and refund then run the very same instructions, and no constant
// folding of one of them can round differently.
#[inline(never)]
#[must_use]
pub fn charge(size_bytes: u64, interval_bytes: u64) -> Charge {
    if interval_bytes == 0 || size_bytes == 0 {
        return Charge {
            bytes: size_bytes,
            objects: if size_bytes == 0 { 0 } else { OBJECT_UNIT },
            variance: 0,
        };
    }
    let size = size_bytes as f64;
    let odds = (size / interval_bytes as f64).exp_m1();
    let excess = size / odds;
    let bytes = size + excess;
    Charge {
        bytes: bytes.round() as u64,
        objects: (OBJECT_UNIT as f64 * (1.0 + 1.0 / odds)).round() as u64,
        variance: (excess * bytes / VARIANCE_UNIT_BYTES2 as f64).round() as u64,
    }
}

/// The standard error, in bytes, of a sum of charges whose variances sum to
/// `variance_sum` (units of [`VARIANCE_UNIT_BYTES2`]).
#[must_use]
pub fn standard_error_bytes(variance_sum: u64) -> f64 {
    (variance_sum as f64 * VARIANCE_UNIT_BYTES2 as f64).sqrt()
}
