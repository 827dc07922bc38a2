//! The enforcer: the thread that enforces limits. It runs the core's turns, and answers what the core
//! asks of the JVM.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy_jvm::kinds::{Anything, Array, Class};
use policy_jvm::{Global, Handle, Jni};

use super::collector::collections::Collections;
use super::collector::collector_threads::CollectorThreads;
use super::collector::g1_marking::G1MarkingThread;
use super::collector::{self, Collecting};
use crate::allocation::method_inspection;
use crate::enforce::enforcer::Enforcer;
use crate::enforce::ports::{BarringFrame, LoggedRefusal, NewPlace, RefusalReports};
use crate::ground::Ground;
use crate::identity::loaders::LoaderId;
use crate::identity::names;
use crate::jvm::error_figures::AccountName;
use crate::jvm::errors::Errors;
use crate::jvm::tlab_refill;
use crate::options::TestPanic;
use crate::ports::{
    Canaries, Clock, Collector, CollectorInfo, Delivery, Ended, Heap, Means, Offer, References,
    Sampler, Token,
};

/// How late a test has limits in force.
const LATE_LIMITS: Duration = Duration::from_millis(300);

/// Runs until the agent stops, and calls `took_turn` after each turn. On an attached thread of the agent's own.
pub(crate) fn run(
    ground: &'static Ground,
    collecting: &'static Collecting,
    jni: &Jni,
    took_turn: &dyn Fn(),
) {
    ground.core.enforcer.listen();
    if ground.options().test_late_limits {
        std::thread::sleep(LATE_LIMITS);
    }
    let jvm = AttachedJvm::new(ground, collecting, jni);
    let mut turns = Turns {
        enforcer: Enforcer::new(jvm.now()),
        jvm,
    };
    ground.core.heap.read_after_pause(&turns.jvm);
    while !ground.stopping() {
        let sleep = turns.enforcer.turn(&ground.core, &turns.jvm);
        let core = &ground.core;
        core.enforcement.routes.learn(core, turns.jvm.uptime_ms());
        ground.enforcer_turns.finished();
        tlab_refill::tell();
        took_turn();
        if ground.options().test_panic == Some(TestPanic::Enforcer)
            && turns.enforcer.is_any_over(&ground.core)
        {
            std::panic::resume_unwind(Box::new("a test asked for it"));
        }
        ground.costs.thread_is("enforcer");
        ground.core.enforcer.wait(sleep);
    }
}

/// The turns. They are ended however the thread ends, even by a panic.
struct Turns<'a> {
    enforcer: Enforcer,
    jvm: AttachedJvm<'a>,
}

impl Drop for Turns<'_> {
    fn drop(&mut self) {
        if !self.jvm.ground.stopping() {
            self.enforcer.end(&self.jvm);
        }
    }
}

/// The JVM, asked by an attached thread of the agent.
struct AttachedJvm<'a> {
    ground: &'static Ground,
    collecting: &'static Collecting,
    jni: &'a Jni,
    /// Found at the first question about it.
    collections: OnceCell<RefCell<Collections>>,
    g1_marking: OnceCell<Option<G1MarkingThread>>,
    collector_threads: RefCell<CollectorThreads>,
    classes: RefCell<VecDeque<Global<Class>>>,
    arrays: RefCell<Option<[Global<Array<Anything>>; 2]>>,
    /// Names of accounts as Java strings.
    names: RefCell<HashMap<Arc<str>, Arc<AccountName>>>,
}

impl<'a> AttachedJvm<'a> {
    fn new(
        ground: &'static Ground,
        collecting: &'static Collecting,
        jni: &'a Jni,
    ) -> AttachedJvm<'a> {
        AttachedJvm {
            ground,
            collecting,
            jni,
            collections: OnceCell::new(),
            g1_marking: OnceCell::new(),
            collector_threads: RefCell::default(),
            classes: RefCell::default(),
            arrays: RefCell::default(),
            names: RefCell::default(),
        }
    }

    fn collections(&self) -> &RefCell<Collections> {
        (self.collections)
            .get_or_init(|| RefCell::new(Collections::find(self.jni, self.ground.release())))
    }

    fn tag(&self, object: &impl Handle, tag: i64) -> bool {
        self.ground.jvmti.set_tag(object, tag).is_ok()
    }

    /// Tags a class and an instance of it, and drops both.
    fn drop_class(&self, class: &Global<Class>, class_tag: i64, instance_tag: i64) -> bool {
        let instance = self.jni.allocate(class);
        instance.is_some_and(|instance| self.tag(&instance, instance_tag))
            && self.tag(class, class_tag)
    }

    fn new_class(&self) -> Option<Global<Class>> {
        self.jni.unloadable_class()?.global()
    }
}

impl Clock for AttachedJvm<'_> {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn uptime_ms(&self) -> u64 {
        self.ground.uptime_ms()
    }

    fn sleep(&self, longest: Duration) {
        std::thread::sleep(longest);
    }

    fn is_stopping(&self) -> bool {
        self.ground.stopping()
    }
}

impl Heap for AttachedJvm<'_> {
    fn used_bytes(&self) -> Option<u64> {
        self.ground.java()?.used_heap_bytes(self.jni)
    }
}

impl Collector for AttachedJvm<'_> {
    fn info(&self) -> CollectorInfo {
        self.collections().borrow().info()
    }

    fn offer(&self) -> Offer {
        self.collections().borrow().offer(self.jni)
    }

    fn stay_ready(&self, wanted: bool) -> bool {
        (self.collections().borrow_mut()).stay_ready(self.jni, wanted)
    }

    fn request_cycle(&self) -> bool {
        self.collections().borrow_mut().request_cycle(self.jni)
    }

    fn put_flag_back(&self) -> bool {
        match self.collections.get() {
            Some(collections) => collections.borrow_mut().put_back(self.jni),
            None => true,
        }
    }

    fn cycle_activity(&self) -> Option<u64> {
        self.g1_marking
            .get_or_init(G1MarkingThread::find)
            .as_ref()?
            .activity()
    }

    fn find_collector_threads(&self) {
        *self.collector_threads.borrow_mut() = CollectorThreads::find();
    }

    fn collector_time(&self) -> Option<Duration> {
        self.collector_threads.borrow().time()
    }

    fn begin_collection(&self, means: Means) {
        let called = &self.collecting.called;
        // Without that thread this one waits, as well as it can.
        if !called.begin(means) && !self.ground.stopping() {
            called.ended(collector::collect(self.ground, means, self.jni));
        }
    }

    fn collection_ended(&self) -> Option<Ended> {
        let ended = self.collecting.called.take_ended();
        ended.filter(|_| !self.ground.stopping())
    }

    fn delivery(&self) -> Delivery {
        self.collecting.refunds.delivery()
    }

    fn allocate_garbage(&self, bytes: usize) -> bool {
        self.jni.allocate_bytes(bytes)
    }
}

impl Canaries for AttachedJvm<'_> {
    fn plant(&self, tag: i64) -> bool {
        let class = self.ground.object_class();
        let canary = class.and_then(|class| self.jni.allocate(class));
        canary.is_some_and(|canary| self.tag(&canary, tag))
    }

    fn stock_class(&self) -> bool {
        let class = self.new_class();
        let made = class.is_some();
        self.classes.borrow_mut().extend(class);
        made
    }

    fn drop_stocked_class(&self, class_tag: i64, instance_tag: i64) -> bool {
        let class = self.classes.borrow_mut().pop_front();
        class.is_some_and(|class| self.drop_class(&class, class_tag, instance_tag))
    }

    fn plant_class(&self, class_tag: i64, instance_tag: i64) -> bool {
        self.new_class()
            .is_some_and(|class| self.drop_class(&class, class_tag, instance_tag))
    }

    fn stock_arrays(&self, elements: i32) -> bool {
        let pair = self.jni.array_pair(elements);
        let pair = pair.and_then(|[one, other]| Some([one.global()?, other.global()?]));
        let made = pair.is_some();
        *self.arrays.borrow_mut() = pair;
        made
    }

    fn drop_stocked_arrays(&self, tag: i64) -> bool {
        let arrays = self.arrays.borrow_mut().take();
        let arrays = arrays.into_iter().flatten();
        arrays.fold(false, |tagged, array| self.tag(&array, tag) | tagged)
    }

    fn plant_arrays(&self, elements: i32, tag: i64) -> bool {
        (self.jni.array_pair(elements))
            .is_some_and(|[one, other]| self.tag(&one, tag) | self.tag(&other, tag))
    }

    fn release_stock(&self) {
        self.arrays.borrow_mut().take();
        self.classes.borrow_mut().clear();
    }
}

impl Sampler for AttachedJvm<'_> {
    fn set_interval(&self, bytes: u64) -> Result<(), String> {
        self.ground.sampler().set_interval(bytes)
    }

    fn samples_cpu(&self) -> (Duration, u64) {
        self.ground.sampler().samples_cpu()
    }

    fn process_cpu(&self) -> Duration {
        self.ground.sampler().process_cpu()
    }
}

impl References for AttachedJvm<'_> {
    fn account_name(&self, name: &Arc<str>) -> Option<Token> {
        let mut names = self.names.borrow_mut();
        if !names.contains_key(name) {
            let made = Errors::account_name(self.jni, name)?;
            names.insert(name.clone(), Arc::new(made));
        }
        names.get(name).map(|name| name.clone() as Token)
    }

    fn forget_account_names(&self, is_limited: &dyn Fn(&str) -> bool) {
        let mut names = self.names.borrow_mut();
        names.retain(|account, name| Arc::strong_count(name) > 1 || is_limited(account));
    }

    fn vanished_loaders(&self) -> Vec<LoaderId> {
        self.ground.references.loaders.cleared(self.jni)
    }

    fn forget_loader(&self, loader: LoaderId) -> bool {
        self.ground.references.loaders.forget(loader)
    }
}

impl RefusalReports for AttachedJvm<'_> {
    fn take_barring_frame(&self) -> Option<BarringFrame> {
        let barring = self.ground.references.barring.pop()?;
        let frame = (barring.frame.as_ref())
            .and_then(|frame| method_inspection::name_of(&self.ground.jvmti, self.jni, frame));
        Some(BarringFrame {
            gate: barring.gate,
            reason: barring.reason,
            frame: frame.map(|name| names::printable(&name)),
        })
    }

    fn take_new_place(&self) -> Option<NewPlace> {
        let new = self.ground.references.new_places.pop()?;
        let name = method_inspection::place_name(&self.ground.jvmti, self.jni, &new);
        Some(NewPlace {
            counts: new.counts,
            slot: new.slot,
            name,
        })
    }

    fn take_refusal(&self) -> Option<LoggedRefusal> {
        let refused = self.ground.references.refused.pop()?;
        let jni = self.jni;
        let thread = (refused.thread.as_ref())
            .and_then(|thread| thread.upgrade(jni))
            .and_then(|thread| Some(self.ground.java()?.thread_name(&thread)))
            .map(|name| names::printable(&name));
        let frame = (refused.frame.as_ref())
            .and_then(|frame| method_inspection::name_of(&self.ground.jvmti, jni, frame))
            .map(|name| names::printable(&name));
        Some(LoggedRefusal {
            details: refused.details,
            thrown: refused.thrown,
            requested_bytes: refused.requested_bytes,
            thread,
            frame,
        })
    }
}
