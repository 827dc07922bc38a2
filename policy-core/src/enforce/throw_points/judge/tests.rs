//! A table of stacks, and generated ones against the rules said once more, rule by rule.

use proptest::prelude::*;

use super::*;

const PLAIN: Object = Object {
    kind: Kind::Instance,
    size_bytes: 32,
};

fn frame(owner: FrameOwner, rule: MethodRule) -> Frame {
    Frame {
        owner,
        rule,
        in_handler: false,
        site: Site::Call,
        unit: Unit::None,
        is_entrance: false,
    }
}

fn own() -> Frame {
    frame(FrameOwner::Own, MethodRule::Outside)
}
fn library() -> Frame {
    frame(FrameOwner::Library, MethodRule::Outside)
}
fn foreign() -> Frame {
    frame(FrameOwner::Foreign, MethodRule::Outside)
}
fn container() -> Frame {
    frame(FrameOwner::Nobody, MethodRule::Outside)
}
/// A frame of a container with which a unit of work begins.
fn request() -> Frame {
    unit(Unit::Begins, container())
}
fn unit(unit: Unit, frame: Frame) -> Frame {
    Frame { unit, ..frame }
}
fn jdk(rule: MethodRule) -> Frame {
    frame(FrameOwner::Nobody, rule)
}
fn at(site: Site, frame: Frame) -> Frame {
    Frame { site, ..frame }
}
fn handling(frame: Frame) -> Frame {
    Frame {
        in_handler: true,
        ..frame
    }
}
fn new(frame: Frame) -> Frame {
    at(Site::Instance, frame)
}

use MethodRule::{Above, Anywhere, Framework, Jdk, Transparent};

#[test]
fn examples() {
    let list = jdk(Transparent);
    let table = Above(Reason::Jdk);
    for (what, frames, expected) in [
        ("own code", vec![new(own()), container()], Ok(0)),
        ("a list of own code's", vec![new(list), list, own()], Ok(2)),
        ("a library for own code", vec![new(library()), own()], Ok(1)),
        (
            "a list of a library's for own code",
            vec![new(list), library(), list, own(), own()],
            Ok(3),
        ),
        (
            "the JDK, unreviewed",
            vec![new(jdk(Jdk)), own()],
            Err(Reason::Jdk),
        ),
        (
            "the JDK below own code",
            vec![new(own()), jdk(Jdk), own()],
            Ok(0),
        ),
        (
            "a map that grows",
            vec![new(jdk(table)), list, own()],
            Err(Reason::Jdk),
        ),
        (
            "own code that a map calls",
            vec![new(own()), jdk(table), own()],
            Ok(0),
        ),
        (
            "a container for own code",
            vec![new(container()), own()],
            Err(Reason::Container),
        ),
        (
            "another account for own code",
            vec![new(foreign()), own()],
            Err(Reason::Foreign),
        ),
        (
            "own code for another account",
            vec![new(own()), foreign(), container()],
            Ok(0),
        ),
        (
            "on the account's behalf, without its code",
            vec![new(list), container()],
            Err(Reason::NoOwnFrame),
        ),
        ("nothing at all", vec![], Err(Reason::NoOwnFrame)),
        (
            "own code, far below an initialiser",
            vec![
                new(own()),
                own(),
                jdk(Anywhere(Reason::Clinit)),
                own(),
                container(),
            ],
            Err(Reason::Clinit),
        ),
        (
            "an initialiser wins over what bars the way",
            vec![
                new(jdk(Jdk)),
                foreign(),
                own(),
                frame(FrameOwner::Own, Anywhere(Reason::Clinit)),
            ],
            Err(Reason::Clinit),
        ),
        (
            "what bars the way nearest to the allocation",
            vec![new(list), jdk(Jdk), foreign(), own()],
            Err(Reason::Jdk),
        ),
        (
            "a catch block",
            vec![handling(new(own())), container()],
            Err(Reason::Handler),
        ),
        (
            "a catch block further down",
            vec![new(own()), list, handling(container())],
            Err(Reason::Handler),
        ),
        (
            "native code of its own",
            vec![at(Site::Native, own()), own()],
            Err(Reason::Native),
        ),
        (
            "native code between",
            vec![new(list), at(Site::Native, library()), own()],
            Err(Reason::Native),
        ),
        (
            "native code below",
            vec![new(own()), at(Site::Native, jdk(Jdk)), own()],
            Ok(0),
        ),
        (
            "reviewed native code",
            vec![at(Site::Native, list), own()],
            Ok(1),
        ),
        (
            "own code of which the rules say no",
            vec![new(frame(FrameOwner::Own, table)), own()],
            Err(Reason::Jdk),
        ),
        ("an instance at a call", vec![own()], Err(Reason::Linkage)),
    ] {
        let below = frames.into_iter().chain([request()]);
        assert_eq!(judge(below, PLAIN, false), expected, "{what}");
    }
}

#[test]
fn only_units_of_work_are_refused() {
    let loops = || vec![new(own()), own(), jdk(Jdk)];
    let no_unit = Err(Reason::NoUnit);
    let periodic = jdk(Anywhere(Reason::Timer));
    let job = |kind| unit(kind, jdk(Above(Reason::Completion)));
    for (what, frames, expected) in [
        ("a thread's own loop", loops(), no_unit),
        ("a request", vec![new(own()), request()], Ok(0)),
        (
            "a request, far below",
            vec![
                new(own()),
                own(),
                container(),
                jdk(Jdk),
                request(),
                container(),
            ],
            Ok(0),
        ),
        (
            "the account's own unit",
            vec![new(own()), unit(Unit::Begins, own()), jdk(Jdk)],
            Ok(0),
        ),
        (
            "a unit that receives its error itself",
            vec![new(unit(Unit::Begins, own())), jdk(Jdk)],
            Ok(0),
        ),
        (
            "a unit above the own frame",
            vec![
                new(library()),
                unit(Unit::Begins, library()),
                own(),
                jdk(Jdk),
            ],
            no_unit,
        ),
        ("a timer", vec![new(own()), periodic], Err(Reason::Timer)),
        (
            "a timer, and a unit that lets errors pass",
            vec![new(own()), job(Unit::Begins), periodic],
            Err(Reason::Timer),
        ),
        (
            "a timer that a unit shields",
            vec![new(own()), job(Unit::Shields), periodic],
            Ok(0),
        ),
        (
            "a unit that a timer's own code shields from above",
            vec![new(own()), periodic, job(Unit::Shields)],
            Err(Reason::Timer),
        ),
        (
            "a shield above the own frame",
            vec![
                new(library()),
                unit(Unit::Shields, library()),
                own(),
                periodic,
            ],
            Err(Reason::Timer),
        ),
        (
            "an unsafe place in a loop",
            vec![new(jdk(Jdk)), own(), jdk(Jdk)],
            Err(Reason::Jdk),
        ),
        (
            "a catch block in a loop",
            vec![handling(new(own())), jdk(Jdk)],
            Err(Reason::Handler),
        ),
    ] {
        assert_eq!(judge(frames, PLAIN, false), expected, "{what}");
    }
    assert_eq!(judge(loops(), PLAIN, true), Ok(0), "the program says so");
    let timed = [new(own()), periodic];
    assert_eq!(judge(timed, PLAIN, true), Err(Reason::Timer));
}

#[test]
fn where_methods_are_the_doors_only_what_came_through_one_is_refused() {
    let door = |frame| Frame {
        is_entrance: true,
        ..frame
    };
    let judge = |frames: Vec<Frame>, in_unit| {
        let around = Around {
            in_unit,
            needs_entrance: true,
        };
        judge_frames(frames, PLAIN, around).map_err(|barrier| (barrier.reason, barrier.depth))
    };
    let no_door = Err((Reason::NoDoor, Some(1)));
    for (what, frames, expected) in [
        (
            "through the door",
            vec![new(library()), own(), door(own()), request()],
            Ok(1),
        ),
        ("beside it", vec![new(library()), own(), request()], no_door),
        (
            "the door is a library's",
            vec![new(door(library())), own(), request()],
            Ok(1),
        ),
        (
            "a door is no unit of work",
            vec![new(library()), own(), door(own())],
            Err((Reason::NoUnit, Some(1))),
        ),
        (
            "an unsafe place beside it",
            vec![new(jdk(Jdk)), own(), request()],
            Err((Reason::Jdk, Some(0))),
        ),
    ] {
        assert_eq!(judge(frames, false), expected, "{what}");
    }
    let scope = vec![new(library()), own()];
    assert_eq!(judge(scope, true), no_door, "in a scope of the program");
}

#[test]
fn frameworks_in_an_account_are_not_its_business_code() {
    let framework = || frame(FrameOwner::Own, Framework);
    let container = Err(Reason::Container);
    for (what, frames, expected) in [
        (
            "own code that it calls",
            vec![new(own()), framework(), request()],
            Ok(0),
        ),
        (
            "its own allocation",
            vec![new(framework()), own(), request()],
            container,
        ),
        (
            "a list of its",
            vec![new(jdk(Transparent)), framework(), own(), request()],
            container,
        ),
        (
            "it alone",
            vec![new(framework()), request()],
            Err(Reason::NoOwnFrame),
        ),
        (
            "another account's",
            vec![new(frame(FrameOwner::Foreign, Framework)), own(), request()],
            Err(Reason::Foreign),
        ),
        (
            "as a library",
            vec![new(frame(FrameOwner::Library, Framework)), own(), request()],
            container,
        ),
    ] {
        assert_eq!(judge(frames, PLAIN, false), expected, "{what}");
    }
}

#[test]
fn the_object_is_what_the_instruction_asks_for() {
    use Kind::{Instance, Objects, OfVm, Primitives, References, Text, Unknown};
    const LARGE: u64 = 1 << 20;
    let linkage = Err(Reason::Linkage);
    for (site, kind, size_bytes, expected) in [
        (Site::Instance, Instance, 16, Ok(0)),
        (Site::Instance, Text, 24, Ok(0)),
        (Site::Instance, Primitives, LARGE, linkage),
        (Site::Instance, OfVm, 120, linkage),
        (Site::PrimitiveArray, Primitives, 16, Ok(0)),
        (Site::PrimitiveArray, Objects, LARGE, linkage),
        (Site::ReferenceArray, References, 16, Ok(0)),
        (Site::ReferenceArray, Objects, 16, Ok(0)),
        (Site::ReferenceArray, Instance, 16, linkage),
        (Site::ReferenceArray, Primitives, 16, linkage),
        (Site::ArrayOfArrays, Primitives, 16, Ok(0)),
        (Site::ArrayOfArrays, References, 16, Ok(0)),
        (Site::ArrayOfArrays, Instance, 16, linkage),
        (Site::Call, Primitives, 16, linkage),
        (Site::Call, Primitives, 32, Ok(0)),
        (Site::Call, Text, 24, Ok(0)),
        (Site::Call, References, 24, Ok(0)),
        (Site::Call, Objects, 4096, linkage),
        (Site::Call, Objects, LARGE, Ok(0)),
        (Site::Call, Instance, 4096, linkage),
        (Site::Other, Text, 24, linkage),
        (Site::Other, Primitives, LARGE, linkage),
        (Site::Call, Unknown, 24, Err(Reason::Unresolved)),
    ] {
        let object = Object { kind, size_bytes };
        assert_eq!(
            judge([at(site, own()), request()], object, false),
            expected,
            "{kind:?} of {size_bytes} at {site:?}"
        );
    }
}

/// Each rule by itself, over the whole stack at once.
fn oracle(frames: &[Frame], object: Object, in_unit: bool) -> Result<usize, Reason> {
    let damaged = frames.iter().find_map(|frame| match frame.rule {
        Anywhere(Reason::Timer) => None,
        Anywhere(reason) => Some(reason),
        _ => None,
    });
    if let Some(reason) = damaged {
        return Err(reason);
    }
    let is_own = |f: &Frame| f.owner == FrameOwner::Own && f.rule != Framework;
    let Some(own) = frames.iter().position(is_own) else {
        return Err(Reason::NoOwnFrame);
    };
    for (depth, frame) in frames[..=own].iter().enumerate() {
        if let Above(reason) | Anywhere(reason) = frame.rule {
            return Err(reason);
        }
        if frame.owner == FrameOwner::Foreign {
            return Err(Reason::Foreign);
        }
        if frame.rule == Framework {
            return Err(Reason::Container);
        }
        if frame.site == Site::Native && frame.rule != Transparent {
            return Err(Reason::Native);
        }
        let reviewed =
            depth == own || frame.owner == FrameOwner::Library || frame.rule == Transparent;
        if !reviewed {
            return Err(if frame.rule == Jdk {
                Reason::Jdk
            } else {
                Reason::Container
            });
        }
    }
    if frames.iter().any(|frame| frame.in_handler) {
        return Err(Reason::Handler);
    }
    if object.kind == Kind::Unknown {
        return Err(Reason::Unresolved);
    }
    let array = matches!(
        object.kind,
        Kind::Primitives | Kind::References | Kind::Objects
    );
    let fits = match frames[0].site {
        Site::Instance => !array,
        Site::PrimitiveArray => object.kind == Kind::Primitives,
        Site::ReferenceArray => array && object.kind != Kind::Primitives,
        Site::ArrayOfArrays => array,
        Site::Native => true,
        Site::Other => false,
        Site::Call => match object.kind {
            Kind::Primitives => object.size_bytes > 24,
            Kind::Objects => object.size_bytes > 524_312,
            Kind::Text | Kind::References => true,
            _ => false,
        },
    };
    if !fits || object.kind == Kind::OfVm {
        return Err(Reason::Linkage);
    }
    let below = &frames[own..];
    let shielded = |depth: usize| below[..depth].iter().any(|f| f.unit == Unit::Shields);
    let is_timer = |f: &Frame| f.rule == Anywhere(Reason::Timer);
    if (below.iter().enumerate()).any(|(depth, f)| is_timer(f) && !shielded(depth)) {
        return Err(Reason::Timer);
    }
    if !in_unit && below.iter().all(|frame| frame.unit == Unit::None) {
        return Err(Reason::NoUnit);
    }
    Ok(own)
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let reason = || prop::sample::select(Reason::ALL.to_vec());
    let rule = prop_oneof![
        8 => Just(Transparent),
        3 => Just(MethodRule::Outside),
        2 => Just(Jdk),
        1 => Just(Framework),
        1 => Just(Anywhere(Reason::Timer)),
        1 => reason().prop_map(Above),
        1 => reason().prop_map(Anywhere),
    ];
    let owner = prop_oneof![
        3 => Just(FrameOwner::Own),
        2 => Just(FrameOwner::Library),
        1 => Just(FrameOwner::Foreign),
        6 => Just(FrameOwner::Nobody),
    ];
    let unit = prop_oneof![
        6 => Just(Unit::None),
        3 => Just(Unit::Begins),
        2 => Just(Unit::Shields),
    ];
    (owner, rule, prop::bool::weighted(0.05), any_site(), unit).prop_map(
        |(owner, rule, in_handler, site, unit)| Frame {
            owner,
            rule,
            in_handler,
            site,
            unit,
            is_entrance: false,
        },
    )
}

fn any_site() -> impl Strategy<Value = Site> {
    prop::sample::select(vec![
        Site::Instance,
        Site::PrimitiveArray,
        Site::ReferenceArray,
        Site::ArrayOfArrays,
        Site::Call,
        Site::Call,
        Site::Call,
        Site::Native,
        Site::Other,
    ])
}

fn any_object() -> impl Strategy<Value = Object> {
    let kind = prop::sample::select(vec![
        Kind::Unknown,
        Kind::Instance,
        Kind::Text,
        Kind::Primitives,
        Kind::References,
        Kind::Objects,
        Kind::OfVm,
    ]);
    let size_bytes = prop_oneof![0u64..64, 524_300u64..524_320];
    (kind, size_bytes).prop_map(|(kind, size_bytes)| Object { kind, size_bytes })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn agrees_with_the_rules_one_by_one(
        frames in prop::collection::vec(any_frame(), 0..8),
        object in any_object(),
        in_unit in prop::bool::weighted(0.2),
    ) {
        prop_assert_eq!(judge(frames.clone(), object, in_unit), oracle(&frames, object, in_unit));
    }

    /// Frames further down the stack never make a bad place good; only a unit of work may begin there.
    #[test]
    fn more_frames_below_never_permit(
        frames in prop::collection::vec(any_frame(), 0..6),
        below in any_frame(),
        object in any_object(),
    ) {
        let before = judge(frames.clone(), object, false);
        let after = judge(frames.iter().copied().chain([below]), object, false);
        if let (Err(reason), Ok(_)) = (before, after) {
            prop_assert!(matches!(reason, Reason::NoOwnFrame | Reason::NoUnit), "{:?}", reason);
        }
    }
}
