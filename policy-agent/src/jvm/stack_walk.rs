//! The frames of the calling thread's stack, from the top, fetched in batches.

use policy_jvm::{Frame, FrameBuffer, Jni, JvmTi};

/// Frames fetched at once, and at most.
pub(crate) const MAX_IN_A_BATCH: usize = 256;

/// One walk down the stack of the calling thread. Fetched frames are kept until the next batch: ask for
/// depths in ascending order. Each fetch makes the VM walk from the top again.
pub(crate) struct StackWalk<'a> {
    jvmti: &'a JvmTi,
    frames: FrameBuffer<'a, MAX_IN_A_BATCH>,
    /// The depth of the first frame fetched, and how many there are.
    base: usize,
    filled: usize,
    at_bottom: bool,
    has_failed: bool,
}

impl<'a> StackWalk<'a> {
    /// A walk that has fetched nothing yet.
    pub(crate) fn new(jni: &'a Jni, jvmti: &'a JvmTi) -> StackWalk<'a> {
        StackWalk {
            jvmti,
            frames: FrameBuffer::new(jni),
            base: 0,
            filled: 0,
            at_bottom: false,
            has_failed: false,
        }
    }

    /// Whether the frame at `depth` is in the batch at hand.
    #[inline]
    pub(crate) fn has_fetched(&self, depth: usize) -> bool {
        depth < self.base + self.filled
    }

    /// The frame at `depth`; `None` below the bottom of the stack, or if the VM failed. Fetches a batch
    /// of `batch` frames from `depth` on, if the one at hand ends above it.
    #[inline]
    pub(crate) fn frame(&mut self, depth: usize, batch: usize) -> Option<Frame<'a>> {
        if !self.has_fetched(depth) {
            if self.at_bottom {
                return None;
            }
            self.base = depth;
            let fetched = self.frames.fetch(self.jvmti, depth, batch);
            self.has_failed = fetched.is_err();
            self.filled = fetched.unwrap_or(0);
            self.at_bottom = self.filled < batch;
        }
        self.frames.frame(depth.checked_sub(self.base)?)
    }

    /// The frame at `depth`, if it is in the batch at hand.
    pub(crate) fn fetched(&self, depth: usize) -> Option<Frame<'a>> {
        let is_at_hand = self.has_fetched(depth);
        (self.frames).frame(depth.checked_sub(self.base).filter(|_| is_at_hand)?)
    }

    /// Whether the VM did not give the frames that it was asked for.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }
}
