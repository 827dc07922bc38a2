//! The native memory of each account: direct buffers, and what else Java code takes: arenas, and by `Unsafe`.
//!
//! Rules:
//! 1. A block is the account's that a sample of the heap would be charged to at this moment: scope, context class loader,
//!    frames and route as in [`crate::allocation::sample`]. No block is left out.
//! 2. It is *direct* if a direct buffer has taken it, whose frame is below the two of `Unsafe`: then the JDK counts it for
//!    `-XX:MaxDirectMemorySize`. Arenas are native: JDK 25 does not count them, but for those of `Arena.ofAuto`.
//! 3. To look whose a block is takes a microsecond or two. A native thread may spend one part in [`SHARE`] of its time on
//!    that, and saves up to [`MAX_SAVED`] for bursts. If it takes blocks faster than that, small ones in between are taken
//!    for such as the one before them: of the same payer and the same kind. The sum of all accounts and kinds stays exact;
//!    whose a block is may lag behind the thread's work for a moment, and on a carrier behind its virtual threads. Such
//!    blocks are counted ([`policy_core::native_memory::NativeMemory::assumed_blocks`]). At a block of [`LARGE_BYTES`] or
//!    more is always looked.
//! 4. What the agent's own threads take is not counted, and neither is what was taken before the agent started.
//! 5. A block beyond the `direct-limit` of an account that was found over it is refused ([`policy_core::native_memory::gates`]),
//!    but for these, which are given:
//!    - a block that was taken for such as the one before it, or that is made larger or smaller;
//!    - one that the JDK takes for itself (a selector's, a path's, a thread's buffer for input and output), after some of which
//!      it would leak a file;
//!    - one of an arena: where it is refused the JDK does not undo the reservation of direct memory that it has made for some
//!      (seen in the source of 25);
//!    - one at a place where refusals never happen, such as a class's initialisation ([`stack_judge::block_place`]): counted.
//! 6. While it is not known whether the account is over, a thread waits before it is given more: a platform thread at a place
//!    where it may also be refused, on whose stack is no event loop; until the moment that the gate names.

use std::cell::Cell;
use std::time::{Duration, Instant};

use policy_core::native_memory::gates::Verdict;
use policy_core::native_memory::{Block, Way};
use policy_jvm::{Asked, Jni, NativeMemory};

use crate::allocation::payer;
use crate::allocation::recognizer::Recognizer;
use crate::allocation::stack::JavaThread;
use crate::allocation::stack_judge;
use crate::ground::Ground;
use crate::identity::classes::ClassId;
use crate::ledger::PurseId;

/// Who takes direct memory.
const DIRECT_BUFFER: &str = "java/nio/DirectByteBuffer";
/// The depth of its frame: above it are `allocateMemory0` and `allocateMemory`.
const TAKERS_FRAME: usize = 2;
/// Who asks for a buffer, two frames below: in between is `ByteBuffer.allocateDirect`.
const ASKING_FRAME: usize = TAKERS_FRAME + 2;
/// Through which code outside the JDK takes memory by itself.
const OPEN_UNSAFE: &str = "sun/misc/Unsafe";
/// See rule 3. Few of these come in a second, for they are soon all the memory that there is; and each is worth a look.
const LARGE_BYTES: u64 = 128 << 10;
const SHARE: u32 = 100;
const MAX_SAVED: Duration = Duration::from_millis(5);
/// A look that took longer counts as so long: a thread that was preempted in it has not spent the time.
const LONGEST_LOOK: Duration = Duration::from_micros(100);
/// How often a thread that waits looks for the verdict.
const LOOK: Duration = Duration::from_millis(5);
/// So many assumed blocks are counted by a thread before it adds them to the sum.
const ASSUMED_AT_ONCE: u64 = 32;

/// The time that a thread has left for looks.
#[derive(Debug, Clone, Copy)]
struct Savings {
    ns: i64,
    /// When that was so.
    at: Instant,
}

impl Savings {
    const MAX_NS: i64 = MAX_SAVED.as_nanos() as i64;

    /// A thread begins with all that it may save.
    fn new(at: Instant) -> Savings {
        let ns = Savings::MAX_NS;
        Savings { ns, at }
    }

    /// As it is at a later moment, with all that was earned since.
    fn at(self, now: Instant) -> Savings {
        let earned = now.saturating_duration_since(self.at) / SHARE;
        let earned = i64::try_from(earned.as_nanos()).unwrap_or(i64::MAX);
        Savings {
            ns: self.ns.saturating_add(earned).min(Savings::MAX_NS),
            at: now,
        }
    }

    /// After a look that took so long.
    fn after(self, took: Duration) -> Savings {
        let ns = self.ns - took.min(LONGEST_LOOK).as_nanos() as i64;
        // A debt, by large blocks, is that of one look.
        let ns = ns.max(-(LONGEST_LOOK.as_nanos() as i64));
        Savings { ns, ..self }
    }
}

/// The answer of a thread's last look.
#[derive(Debug, Clone, Copy)]
struct Last {
    payer: PurseId,
    way: Way,
    savings: Savings,
    /// Blocks that were taken for the same since. Counted here first: threads would share the cache line of the sum.
    assumed: u64,
}

thread_local! {
    static LAST: Cell<Option<Last>> = const { Cell::new(None) };
}

/// Sees the blocks. See the module.
#[derive(Debug)]
pub(crate) struct Watch {
    direct_buffer: ClassId,
    open_unsafe: ClassId,
}

/// Begins to count. Called by Java code of the boot loader, at the start.
pub(crate) fn begin(ground: &'static Ground, jni: &Jni) {
    if !ground.capabilities.native_memory || !ground.core.samples_are_taken() {
        return;
    }
    let recognizer = Recognizer { ground, jni };
    let number = |name| {
        let class = jni.boot_class(name);
        class.map_or(ClassId::UNKNOWN, |class| recognizer.class(&class))
    };
    let watch = Watch {
        direct_buffer: number(DIRECT_BUFFER),
        open_unsafe: number(OPEN_UNSAFE),
    };
    match jni.watch_native_memory(Box::leak(Box::new(watch))) {
        Ok(()) => ground.core.native_memory.is_seen_from_now(),
        Err(why) => tracing::warn!("native memory is not counted by account: {why}"),
    }
}

impl NativeMemory for Watch {
    fn asked(&self, jni: &Jni, size_bytes: u64, is_resized: bool) -> Asked {
        let Some(ground) = Ground::get().filter(|ground| !ground.stopping()) else {
            return Asked::Untold;
        };
        let began = Instant::now();
        let last = LAST.try_with(Cell::get).ok().flatten();
        let savings = last.map_or_else(|| Savings::new(began), |last| last.savings.at(began));
        let beyond = last.and_then(|last| ground.core.block_beyond(last.payer, size_bytes));
        // The account of a block that may be refused is to be known.
        let may_assume = savings.ns <= 0
            && size_bytes < LARGE_BYTES
            && matches!(beyond, None | Some((_, Verdict::Observed)));
        let now = match last.filter(|_| may_assume) {
            Some(last) => {
                if let Some((account, verdict)) = beyond {
                    ground.core.native_memory.gates.count(account, verdict);
                }
                Last {
                    savings,
                    assumed: counted(ground, last.assumed + 1, ASSUMED_AT_ONCE),
                    ..last
                }
            }
            None => {
                let recognizer = Recognizer { ground, jni };
                let (payer, taker) = self.look(recognizer);
                let took = began.elapsed();
                ground.costs.block_took(took);
                if !is_resized && self.is_refused(recognizer, payer, taker, size_bytes) {
                    return Asked::Refused;
                }
                Last {
                    payer,
                    way: self.way_of(taker),
                    savings: savings.after(took),
                    assumed: counted(ground, last.map_or(0, |last| last.assumed), 1),
                }
            }
        };
        let _ = LAST.try_with(|cell| cell.set(Some(now)));
        let block = Block {
            payer: now.payer,
            way: now.way,
            size_bytes,
        };
        Asked::Told(block.to_bits())
    }

    fn taken(&self, address: u64, answer: u64) {
        if let Some(ground) = Ground::get()
            && (ground.core.native_memory).taken(address, Block::from_bits(answer))
        {
            ground.core.enforcer.wake();
        }
    }

    fn given_back(&self, address: u64, is_resized: bool) -> Option<u64> {
        let memory = &Ground::get()?.core.native_memory;
        let block = memory.given_back(address, is_resized)?;
        Some(block.to_bits())
    }
}

/// Adds assumed blocks to the sum if there are so many. Returns how many are left.
fn counted(ground: &Ground, assumed: u64, at_least: u64) -> u64 {
    if assumed < at_least {
        return assumed;
    }
    ground.core.native_memory.assumed(assumed);
    0
}

impl Watch {
    /// Whose a block is that the calling thread takes now, and the class that takes it.
    fn look(&self, recognizer: Recognizer<'_>) -> (PurseId, ClassId) {
        let Recognizer { ground, jni } = recognizer;
        let thread = ground.jvmti.current_thread(jni);
        let (needs, side) = ground.core.identity.view();
        let mut asking = JavaThread::new(recognizer, thread.as_deref(), side);
        let taker = asking.class_near_top(TAKERS_FRAME);
        let payer = payer::of(recognizer, needs, thread.as_deref(), &mut asking).payer;
        (payer, taker)
    }

    fn way_of(&self, taker: ClassId) -> Way {
        match taker != ClassId::UNKNOWN && taker == self.direct_buffer {
            true => Way::Direct,
            false => Way::Unsafe,
        }
    }

    /// Rules 5 and 6.
    fn is_refused(
        &self,
        recognizer: Recognizer<'_>,
        payer: PurseId,
        taker: ClassId,
        size_bytes: u64,
    ) -> bool {
        let core = &recognizer.ground.core;
        let beyond = || core.block_beyond(payer, size_bytes);
        let Some(first) = beyond() else {
            return false;
        };
        let asking = match taker {
            ClassId::UNKNOWN => return false,
            taker if taker == self.direct_buffer => Some(ASKING_FRAME),
            taker if taker == self.open_unsafe => None,
            _ => return false,
        };
        // Nobody is slowed for a count: where the block is asked for is not looked at.
        if let (account, Verdict::Observed) = first {
            core.native_memory.gates.count(account, Verdict::Observed);
            return false;
        }
        let place = stack_judge::block_place(recognizer, payer, asking);
        if place.is_jdks_own {
            return false;
        }
        let may_be_refused = place.may_be_refused && !is_masked(recognizer);
        let known = match first {
            (account, Verdict::Awaited) if place.may_wait && may_be_refused => {
                wait_for_verdict(recognizer, account, beyond)
            }
            first => Some(first),
        };
        let Some((account, verdict @ (Verdict::Observed | Verdict::Refused))) = known else {
            return false;
        };
        if !may_be_refused {
            core.native_memory.gates.count_deferred(account);
            return false;
        }
        core.native_memory.gates.count(account, verdict);
        verdict == Verdict::Refused
    }
}

/// Waits for the verdict about this account. Returns what is known then.
fn wait_for_verdict(
    recognizer: Recognizer<'_>,
    account: u32,
    beyond: impl Fn() -> Option<(u32, Verdict)>,
) -> Option<(u32, Verdict)> {
    let Recognizer { ground, jni } = recognizer;
    let thread = ground.jvmti.current_thread(jni);
    // Others need the carrier.
    if thread.is_none_or(|thread| thread.is_virtual()) {
        return None;
    }
    let gates = &ground.core.native_memory.gates;
    let began = Instant::now();
    let mut now = beyond();
    while matches!(now, Some((_, Verdict::Awaited)))
        && ground.uptime_ms() < gates.wait_until_ms(account)
        && !ground.stopping()
    {
        std::thread::sleep(LOOK);
        now = beyond();
    }
    gates.waited(account, began.elapsed().as_millis() as u64);
    now
}

/// Whether the program has asked not to be refused on this thread.
fn is_masked(recognizer: Recognizer<'_>) -> bool {
    let Recognizer { ground, jni } = recognizer;
    if !ground.core.identity.scopes.in_use().0 {
        return false;
    }
    let thread = ground.jvmti.current_thread(jni);
    ground.bridge().is_some_and(|bridge| {
        bridge.sees_scopes()
            && thread.is_some_and(|thread| bridge.thread_scopes().is_masked(&thread))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Duration = Duration::from_micros(2);

    /// Of blocks that come so often, the share that is looked at.
    fn share_looked_at(each: Duration) -> f64 {
        let begun = Instant::now();
        let mut savings = Savings::new(begun);
        let (mut looks, mut blocks) = (0.0, 0.0);
        while savings.at < begun + Duration::from_secs(2) {
            savings = savings.at(savings.at + each);
            blocks += 1.0;
            if savings.ns > 0 {
                savings = savings.after(LOOK);
                looks += 1.0;
            }
        }
        looks / blocks
    }

    #[test]
    fn all_blocks_are_looked_at_until_looks_take_a_hundredth_of_the_time() {
        let us = Duration::from_micros;
        assert_eq!(share_looked_at(us(1_000)), 1.0);
        assert_eq!(share_looked_at(us(201)), 1.0);
        let fast = share_looked_at(us(2));
        // And what was saved at first: 2,500 looks.
        assert!((0.012..0.013).contains(&fast), "{fast}");
    }

    #[test]
    fn savings_and_debts_are_bounded() {
        let begun = Instant::now();
        let savings = Savings::new(begun);
        let later = begun + Duration::from_secs(3600);
        assert_eq!(savings.at(later).ns, Savings::MAX_NS);
        let preempted = savings.after(Duration::from_secs(9));
        assert_eq!(preempted.ns, savings.ns - 100_000);
        let owing = (0..1_000).fold(savings, |savings, _| savings.after(LONGEST_LOOK));
        assert_eq!(
            owing.ns, -100_000,
            "large blocks are looked at all the same"
        );
        assert_eq!(owing.at(begun + LONGEST_LOOK * SHARE).ns, 0);
        assert_eq!(
            savings.at(begun - Duration::from_secs(1)).ns,
            Savings::MAX_NS
        );
    }
}
