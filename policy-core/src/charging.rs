//! One sample, from whose it is to its charge: large arrays and classes that the policy names are thinned, a stack is
//! taken where somebody wants it, the ledger is charged, and the object gets the tag that brings the refund.
//!
//! The agent runs this for each sample, and the model of the protocol for those of its simulated threads (nothing is
//! thinned there: its classes are unknown). The JVM is asked through [`Sampled`].

use crate::core::Core;
use crate::enforce::admission::Charged;
use crate::identity::classes::{ClassId, Kind};
use crate::ledger::{ObjectTag, PurseId, Sample, SiteId, Tag};
use crate::sampling::IntervalId;
use crate::sampling::thinning::Decision;
use crate::sites::Visit;

/// A sample of which is known whose it is.
#[derive(Debug, Clone, Copy)]
pub struct Attributed {
    /// The purse that pays.
    pub payer: PurseId,
    /// The account whose code allocates.
    pub agent_account: PurseId,
    /// The account on whose behalf it does.
    pub principal: PurseId,
    /// The object's class.
    pub class: ClassId,
    /// The object's size.
    pub size_bytes: u64,
    /// The interval under which it was drawn.
    pub interval: IntervalId,
}

/// The chance and the JVM, as [`Core::charge`] asks them. On the allocating thread.
pub trait Sampled<'a> {
    /// A number of [0, 1), each as likely.
    fn chance(&self) -> f64;

    /// Takes the stack, if the budget of the sites allows it. Asked only while somebody wants stacks.
    fn stack(&self, of: &Attributed) -> Option<Visit<'a>>;

    /// Tags the object; false if the JVM refuses.
    fn tag(&self, tag: i64) -> bool;
}

impl Core {
    /// Charges a sample. `None` if it was passed over: then others stand for it. A sample that finds no room in the
    /// ledger, or no tag, is dropped, which the ledger counts, and holds nothing; its thread still passes the gates:
    /// otherwise one account that fills the tables would free all others of their limits. Takes no lock and looks up no
    /// name. On the allocating thread.
    #[inline]
    pub fn charge<'a>(
        &'a self,
        of: &Attributed,
        sampled: &impl Sampled<'a>,
    ) -> Option<(Charged, Option<ObjectTag>)> {
        let (payer, size_bytes) = (of.payer, of.size_bytes);
        let mut interval = of.interval;
        let is_large = self.thinning.may_be_large(size_bytes) && self.tag_delays_free(of.class);
        if is_large {
            match self.thinned(of, || sampled.chance()) {
                Decision::Keep(wider) => {
                    if wider != interval {
                        (self.ledger).thin(payer, size_bytes, (interval, wider), true);
                    }
                    interval = wider;
                }
                Decision::PassOver(wider) => {
                    (self.ledger).thin(payer, size_bytes, (interval, wider), false);
                    return None;
                }
            }
        } else if self.class_thinning.is_on() {
            match self.thinned_by_class(of, || sampled.chance()) {
                Decision::Keep(wider) => interval = wider,
                Decision::PassOver(wider) => {
                    self.ledger.pass_over(payer, wider);
                    return None;
                }
            }
        }
        // Held until the record is in the ledger: the sites keep what records name.
        let visit = (self.sites.any_wanted())
            .then(|| sampled.stack(of))
            .flatten();
        let sample = Sample {
            payer,
            agent_account: of.agent_account,
            principal: of.principal,
            class: of.class.0,
            size_bytes,
            interval,
            site: visit.as_ref().map_or(SiteId::NONE, Visit::site),
        };
        let mut bytes = 0;
        let mut charged_record = None;
        if let Ok((record, charge)) = self.ledger.charge_weighed(&sample) {
            if sampled.tag(Tag::Object(record).encode()) {
                bytes = charge.bytes;
                charged_record = Some(record);
                if let Some(visit) = &visit {
                    visit.charged(&charge);
                }
            } else {
                self.ledger.cancel(record);
            }
        }
        drop(visit);
        if is_large && bytes > 0 {
            let account = self.identity.representative(payer);
            (self.thinning).kept(account, size_bytes, bytes);
        }
        let charged = Charged {
            payer,
            bytes,
            size_bytes,
        };
        Some((charged, charged_record))
    }

    /// Whether a tag keeps G1 from freeing a large object of this class early: it is an array of primitives.
    /// A class that is not classified yet counts as no.
    fn tag_delays_free(&self, class: ClassId) -> bool {
        if self.thinning.ask() {
            self.enforcer.wake();
        }
        self.identity.classes.kind(class) == Kind::Primitives
    }

    /// Whether to keep a sample of a large array: see [`crate::sampling::thinning`].
    #[cold]
    fn thinned(&self, of: &Attributed, chance: impl FnOnce() -> f64) -> Decision {
        if self.peaks.watches(of.payer) {
            // A test in Java reads its error off the interval in force, and has no limit to widen it by.
            return Decision::Keep(of.interval);
        }
        let drawn = (of.interval, self.ledger.intervals().bytes(of.interval));
        let account = self.identity.representative(of.payer);
        let widest_bytes = || self.widest_interval_bytes(of.payer);
        (self.thinning).judge(account, of.size_bytes, drawn, widest_bytes, chance)
    }

    /// Whether to keep a sample of a class that a rule of the policy thins: see
    /// [`crate::sampling::class_thinning`].
    #[cold]
    fn thinned_by_class(&self, of: &Attributed, chance: impl FnOnce() -> f64) -> Decision {
        let Some(rule) = self.identity.classes.thinned_by(of.class) else {
            return Decision::Keep(of.interval);
        };
        if self.peaks.watches(of.payer) {
            return Decision::Keep(of.interval);
        }
        let drawn = (of.interval, self.ledger.intervals().bytes(of.interval));
        let widest_bytes = || self.widest_interval_bytes(of.payer);
        (self.class_thinning).judge(rule, of.size_bytes, drawn, widest_bytes, chance)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::{Cell, RefCell};

    use crate::core::Setup;
    use crate::identity::loaders::LoaderId;
    use crate::sampling::standard_error_bytes;

    use super::*;

    const INTERVAL: u64 = 8 << 10;
    const SIZE: u64 = 64;

    struct Simulated {
        random: RefCell<fastrand::Rng>,
        is_taggable: bool,
        tags: Cell<u64>,
    }

    impl<'a> Sampled<'a> for Simulated {
        fn chance(&self) -> f64 {
            self.random.borrow_mut().f64()
        }

        fn stack(&self, _: &Attributed) -> Option<Visit<'a>> {
            None
        }

        fn tag(&self, tag: i64) -> bool {
            assert!(matches!(Tag::decode(tag), Some(Tag::Object(_))));
            self.tags.set(self.tags.get() + 1);
            self.is_taggable
        }
    }

    fn simulated(is_taggable: bool) -> Simulated {
        Simulated {
            random: RefCell::new(fastrand::Rng::with_seed(11)),
            is_taggable,
            tags: Cell::new(0),
        }
    }

    fn core_and_sample() -> (Core, Attributed) {
        let core = Core::new(Setup::of_test(1 << 16));
        let interval = core
            .ledger
            .intervals()
            .set(INTERVAL)
            .expect("there is room");
        let payer = core.ledger.open_purse().expect("there is room");
        core.identity.set_representative(payer, payer);
        let classes = &core.identity.classes;
        let class = classes.open(LoaderId::BOOT, Default::default(), 0);
        let attributed = Attributed {
            payer,
            agent_account: payer,
            principal: payer,
            class: class.expect("there is room"),
            size_bytes: SIZE,
            interval,
        };
        (core, attributed)
    }

    /// So many samples of the class; returns how many were kept.
    fn charge_all(core: &Core, of: &Attributed, samples: u32) -> u64 {
        let sampled = simulated(true);
        let kept = (0..samples).filter(|_| core.charge(of, &sampled).is_some());
        let kept = kept.count() as u64;
        assert_eq!(kept, sampled.tags.get(), "each that is kept has a tag");
        kept
    }

    #[test]
    fn a_thinned_class_is_charged_with_the_same_bytes_by_fewer_samples() {
        const SAMPLES: u32 = 40_000;
        let (core, of) = core_and_sample();
        assert_eq!(charge_all(&core, &of, SAMPLES), u64::from(SAMPLES));
        let all = core.ledger.totals(of.payer).charged.bytes;
        let (core, of) = core_and_sample();
        core.identity.classes.set_thinned_by(of.class, Some(0));
        (core.class_thinning).adopt(&[0.1], INTERVAL, core.ledger.intervals());
        let kept = charge_all(&core, &of, SAMPLES);
        assert!(kept < u64::from(SAMPLES) / 8, "{kept} were kept");
        let totals = core.ledger.totals(of.payer).charged;
        let error = standard_error_bytes(totals.variance);
        let off = (totals.bytes as f64 - all as f64) / error;
        assert!(off.abs() < 3.0, "{} of {all}: {off} errors", totals.bytes);
    }

    #[test]
    fn an_object_without_a_tag_charges_nothing_and_its_thread_goes_on_to_the_gates() {
        let (core, of) = core_and_sample();
        let (charged, record) = core.charge(&of, &simulated(false)).expect("it is kept");
        assert_eq!((charged.bytes, record), (0, None));
        assert_eq!(core.ledger.totals(of.payer).charged.bytes, 0);
    }
}
