//! The exact bytes and objects that a victim says it holds, and batches of objects of known composition.

/// A victim's `truth` line: exact bytes and objects, and how many of which size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Truth {
    /// Bytes held.
    pub bytes: u64,
    /// Objects held.
    pub objects: u64,
    /// Object size in bytes, number of objects.
    pub sizes: Vec<(u64, u64)>,
}

impl Truth {
    /// Reads the one `truth` line of an answer.
    ///
    /// # Panics
    /// If there is none, or it contradicts itself.
    #[must_use]
    pub fn of(answer: &[String]) -> Self {
        let line = answer
            .iter()
            .find(|line| line.starts_with("truth "))
            .unwrap_or_else(|| panic!("no truth in {answer:?}"));
        let words: Vec<&str> = line.split(' ').collect();
        let count = |word: &str| -> u64 { word.parse().expect("truths are whole numbers") };
        let sizes: Vec<(u64, u64)> = words[4]
            .split(',')
            .map(|pair| pair.split_once(':').expect("size:count"))
            .map(|(size, objects)| (count(size), count(objects)))
            .collect();
        let truth = Self {
            bytes: count(words[2]),
            objects: count(words[3]),
            sizes,
        };
        let bytes: u64 = truth.sizes.iter().map(|(size, n)| size * n).sum();
        assert_eq!(bytes, truth.bytes, "the victim contradicts itself: {line}");
        truth
    }

    /// Variance in bytes² of an unbiased estimate of these bytes at a mean sampling interval.
    ///
    /// Each object of s bytes is seen with p = 1 − e^(−s/I) on its own and counts s/p then, which
    /// varies by s²(1−p)/p; the objects are independent, so the variances add up.
    #[must_use]
    pub fn variance(&self, interval_bytes: f64) -> f64 {
        self.sizes
            .iter()
            .map(|&(size, objects)| {
                let missed = (-(size as f64) / interval_bytes).exp();
                objects as f64 * (size as f64).powi(2) * missed / (1.0 - missed)
            })
            .sum()
    }
}

/// Kinds that the running code allocates by itself: for comparisons to the byte.
pub const PLAIN_KINDS: &str = "object*500 node*500 booleans:9*300 bytes:0*300 bytes:4000*30 \
    chars:7*300 shorts:5*300 ints:31*300 longs:8*300 floats:3*300 doubles:100*100 references:10*300 \
    grid:20*100 cloned-array:77*300 cloned-object*300 boxed*500 lambda*500";

/// Kinds that the JDK allocates on behalf of the code: reflection, serialization, concatenation.
///
/// Whatever the warm-up, the JDK now and then renews what it keeps for these itself (a class's name,
/// a specialised method handle) and the account whose frame is on the stack pays for it, rightly. So
/// an account of these holds the truth and at most [`JDK_OWN_BYTES`] in [`JDK_OWN_OBJECTS`] more.
pub const JDK_KINDS: &str =
    "reflected-object*300 reflected-array:12*300 deserialized:6*100 concatenated*300";

/// See [`JDK_KINDS`].
pub const JDK_OWN_BYTES: f64 = 4_096.0;

/// See [`JDK_KINDS`].
pub const JDK_OWN_OBJECTS: f64 = 64.0;

/// Sizes from 16 B to 4 MB, about 4 MB of each, with those near the usual intervals and the 1,400 B
/// that often miss a nearly full allocation buffer: for sampled estimates.
pub const MIXED_SIZES: &str = "object*200000 lambda*200000 bytes:48*60000 ints:60*16000 \
    bytes:1384*3000 references:500*2000 longs:1000*500 bytes:8000*500 doubles:8190*60 \
    bytes:65520*60 cloned-array:131000*30 bytes:524000*8 chars:300000*7 bytes:1048560*4 \
    bytes:4194288*2 concatenated*60000 grid:200*1600 deserialized:100*6000 boxed*200000";

#[cfg(test)]
mod tests {
    use super::Truth;

    #[test]
    fn the_variance_of_many_small_objects_is_interval_times_bytes() {
        let truth = Truth {
            bytes: 16_000_000,
            objects: 1_000_000,
            sizes: vec![(16, 1_000_000)],
        };
        let relative = truth.variance(65_536.0) / (65_536.0 * 16e6);
        assert!((relative - 1.0).abs() < 0.001, "{relative}");
    }

    #[test]
    fn an_object_far_above_the_interval_is_certain() {
        let truth = Truth {
            bytes: 4_000_000,
            objects: 1,
            sizes: vec![(4_000_000, 1)],
        };
        assert!(truth.variance(8_192.0) < 1.0);
    }
}
