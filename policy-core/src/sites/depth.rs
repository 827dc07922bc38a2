//! Which frames of a stack are kept.
//!
//! An allocation is often deep in the JDK (`ArrayList.grow` below `HashMap.computeIfAbsent` below a stream),
//! and such frames alone say nothing. So frames of the application are looked for further down.
//!
//! # Rules
//! 1. At most [`FRAMES`] frames are kept, the nearest to the allocation first.
//! 2. If the first frame of the application (not of the JDK) has more than [`JDK_FRAMES`] frames above
//!    it, that many of these are kept, the rest is left out, and the stack goes on with that frame.
//! 3. It is looked for down to [`DEEPEST`] frames; if there is none, the first [`FRAMES`] frames are kept.

use std::ops::Range;

/// Frames kept of a stack.
pub const FRAMES: usize = 16;
/// Frames of the JDK kept above the first of the application.
pub const JDK_FRAMES: usize = 8;
/// How deep a frame of the application is looked for.
pub const DEEPEST: usize = 256;

/// The frames of a stack that are kept, by depth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The frames from the top on.
    pub top: Range<usize>,
    /// The frames below those that are left out, if some are.
    pub below: Range<usize>,
}

impl Kept {
    /// Whether frames are left out in the middle.
    #[must_use]
    pub fn leaves_out(&self) -> bool {
        !self.below.is_empty()
    }
}

/// How many frames must be fetched, once `known` of them were looked at and the first of the application is
/// `first`. Not more than `known`: enough are fetched.
#[must_use]
pub fn wanted(first: Option<usize>, known: usize) -> usize {
    match first {
        None if known < FRAMES => known,
        None => DEEPEST,
        Some(first) if first <= JDK_FRAMES => FRAMES,
        Some(first) => (first + FRAMES - JDK_FRAMES).min(DEEPEST),
    }
}

/// The frames to keep of `known` frames, the first of the application being `first`.
#[must_use]
pub fn kept(first: Option<usize>, known: usize) -> Kept {
    match first {
        Some(first) if first > JDK_FRAMES => Kept {
            top: 0..JDK_FRAMES,
            below: first..known.min(first + FRAMES - JDK_FRAMES),
        },
        _ => Kept {
            top: 0..known.min(FRAMES),
            below: 0..0,
        },
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the stack: few frames are kept, from the top on, and one of the application is among
        /// them if there is one at all within reach.
        #[test]
        fn a_frame_of_the_application_is_kept(of_application in proptest::collection::vec(
            prop_oneof![8 => Just(false), 1 => Just(true)], 0..400,
        )) {
            let first_of = |known: usize| of_application[..known].iter().position(|own| *own);
            let mut known = of_application.len().min(FRAMES);
            let mut fetches = 1;
            loop {
                let wanted = wanted(first_of(known), known).min(of_application.len());
                if wanted <= known {
                    break;
                }
                known = wanted;
                fetches += 1;
                prop_assert!(fetches <= 3 && known <= DEEPEST);
            }
            let first = first_of(known);
            prop_assert_eq!(first, first_of(of_application.len().min(DEEPEST)));
            let kept = kept(first, known);
            prop_assert_eq!(kept.top.start, 0);
            prop_assert!(kept.top.len() + kept.below.len() <= FRAMES);
            prop_assert!(kept.top.end <= known && kept.below.end <= known);
            if let Some(first) = first {
                prop_assert!(kept.top.contains(&first) || kept.below.start == first);
            }
            if kept.leaves_out() {
                prop_assert!(of_application[kept.top.end..kept.below.start].iter().all(|own| !own));
            } else {
                prop_assert_eq!(kept.top.len(), FRAMES.min(of_application.len()));
            }
        }
    }
}
