//! The curves that are measured, and their points.

use clap::ValueEnum;
use serde::Serialize;

use super::settings::Setting;

/// Processor time of what is timed in one run, in plain Java.
pub(crate) const TIMED_MS: u32 = 1_500;
/// Bytes that the account of the curve `accuracy` holds.
pub(crate) const ACCOUNT_BYTES: u64 = 256 << 20;
/// How often it is filled and read in one run.
const ACCOUNT_ROUNDS: u32 = 3;
/// Of the curve `live-samples`: small, for many collections in little time.
const YOUNG_GENERATION: &str = "-Xmn64m";
/// The depths for which a chain of calls is built.
pub(crate) const DEPTHS: [usize; 6] = [10, 50, 100, 200, 350, 500];
/// The depth at which patterns are varied.
const DEPTH_OF_PATTERNS: usize = 20;
/// Patterns of the policy by which depths are varied.
const PATTERNS_OF_DEPTHS: usize = 20;

/// One thing that is varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Curve {
    /// Bytes allocated a second.
    AllocationRate,
    /// Frames of the stack that allocates.
    StackDepth,
    /// Threads that allocate.
    Threads,
    /// Tracked objects that are alive; and what they do to pauses.
    LiveSamples,
    /// Services, each with its account.
    Accounts,
    /// Package patterns in the policy.
    Patterns,
    /// Nothing: what a JVM takes from start to end.
    StartUp,
    /// The sampling interval: what it costs, and how well it measures.
    Accuracy,
}

/// The program that a JVM runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// `curves.Main`: an amount of work, which is timed.
    Work,
    /// `curves.Account`: an account that is filled and read.
    Account,
    /// `curves.Hello`, from start to end.
    Hello,
}

/// One point of a curve: the program, and what is in its JVM in turn.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub(crate) curve: Curve,
    /// The value that is varied; at the curve of allocation rates only the order of its points.
    pub(crate) x: f64,
    pub(crate) program: Program,
    /// The program's arguments beside its amount of work.
    pub(crate) arguments: Vec<String>,
    /// Flags of the JVM beside those of all.
    pub(crate) flags: Vec<&'static str>,
    /// Tracked objects that must be alive before the clock runs.
    pub(crate) held_objects: u64,
    /// The first is plain.
    pub(crate) settings: Vec<Setting>,
}

impl Curve {
    /// How it is called, in file names too.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Curve::AllocationRate => "allocation-rate",
            Curve::StackDepth => "stack-depth",
            Curve::Threads => "threads",
            Curve::LiveSamples => "live-samples",
            Curve::Accounts => "accounts",
            Curve::Patterns => "patterns",
            Curve::StartUp => "start-up",
            Curve::Accuracy => "accuracy",
        }
    }

    /// Its points.
    pub(crate) fn points(self) -> Vec<Point> {
        // The last number of a work is its steps of arithmetic before each array: the fewer, the more
        // arrays a second. Where the rate is not what varies, it is about 500 MB a second, as a busy
        // server's.
        match self {
            Curve::AllocationRate => [10_000, 3_000, 1_000, 300, 100, 30]
                .iter()
                .enumerate()
                .map(|(order, steps)| self.work(order as f64, &format!("churn 256 {steps}")))
                .collect(),
            Curve::StackDepth => DEPTHS
                .iter()
                .map(|&depth| {
                    let mut point = self.work(depth as f64, &format!("chain {depth} 4096 4800"));
                    point.settings[1].name = "services only".to_owned();
                    let packages = Setting::strangers("packages, none matches", PATTERNS_OF_DEPTHS);
                    let unwidened = packages.clone().unwidened("the same, never widened");
                    point.settings.extend([packages, unwidened]);
                    point
                })
                .collect(),
            Curve::Threads => [1, 2, 4, 8, 16, 32, 64]
                .iter()
                .map(|&threads| {
                    self.work(f64::from(threads), &format!("threads {threads} 256 300"))
                })
                .collect(),
            Curve::LiveSamples => [1_000, 10_000, 100_000, 300_000, 1_000_000]
                .iter()
                .map(|&objects: &u32| {
                    let mut point =
                        self.work(f64::from(objects), &format!("held {objects} 256 300"));
                    point.flags.push(YOUNG_GENERATION);
                    point.held_objects = u64::from(objects);
                    point.settings[1] = Setting::every_allocation_first();
                    point
                })
                .collect(),
            Curve::Accounts => [1, 10, 100, 1_000, 10_000]
                .iter()
                .map(|&count| self.work(f64::from(count), &format!("services {count} 1024 1200")))
                .collect(),
            Curve::Patterns => [1, 10, 100, 1_000]
                .iter()
                .map(|&patterns: &u16| {
                    let program = format!("chain {DEPTH_OF_PATTERNS} 4096 4800");
                    let mut point = self.work(f64::from(patterns), &program);
                    let agent = Setting::strangers("agent", usize::from(patterns));
                    let unwidened = agent.clone().unwidened("interval never widened");
                    point.settings.splice(1.., [agent, unwidened]);
                    point
                })
                .collect(),
            Curve::StartUp => vec![self.point(
                Program::Hello,
                0.0,
                String::new(),
                vec![
                    Setting::plain(),
                    Setting::default(),
                    Setting::strangers("20 patterns", 20),
                    Setting::strangers("1,000 patterns", 1_000),
                ],
            )],
            Curve::Accuracy => {
                let mut settings = vec![Setting::plain()];
                settings.extend(
                    ["512KiB", "256KiB", "64KiB", "16KiB", "4KiB", "exact"]
                        .map(|interval| Setting::account(interval, "curves.tenant")),
                );
                let amount = format!("{ACCOUNT_BYTES} {ACCOUNT_ROUNDS}");
                vec![self.point(Program::Account, 0.0, amount, settings)]
            }
        }
    }

    fn work(self, x: f64, arguments: &str) -> Point {
        let settings = vec![Setting::plain(), Setting::default()];
        self.point(Program::Work, x, arguments.to_owned(), settings)
    }

    fn point(self, program: Program, x: f64, arguments: String, settings: Vec<Setting>) -> Point {
        Point {
            curve: self,
            x,
            program,
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            flags: Vec::new(),
            held_objects: 0,
            settings,
        }
    }
}

/// The depths of which some point's program has a chain.
pub(crate) fn depths() -> impl Iterator<Item = usize> {
    DEPTHS.into_iter().chain([DEPTH_OF_PATTERNS])
}

impl Point {
    /// Whether how much it does is found out first.
    pub(crate) fn has_amount(&self) -> bool {
        self.program == Program::Work
    }

    /// How it is called where it fails and while it runs.
    pub(crate) fn name(&self) -> String {
        match self.program {
            Program::Work => format!("{} {}", self.curve.name(), self.x),
            Program::Account | Program::Hello => self.curve.name().to_owned(),
        }
    }

    /// About what one run takes on a machine that does nothing else, in seconds.
    pub(crate) fn seconds_a_run(&self) -> f64 {
        match (self.program, self.curve) {
            (Program::Hello, _) => 0.3,
            (Program::Account, _) => 11.0,
            (Program::Work, Curve::LiveSamples) => 4.0 + 5e-6 * self.x,
            (Program::Work, Curve::Accounts) => 4.5,
            (Program::Work, _) => 3.5,
        }
    }
}

/// About what all runs take, in seconds: each point in plain Java once, to find the amount of work,
/// and once a round with each of its settings.
pub(crate) fn seconds(points: &[Point], pairs: u32) -> f64 {
    points
        .iter()
        .map(|point| {
            let calibration = usize::from(point.has_amount());
            let runs = point.settings.len() * pairs as usize + calibration;
            point.seconds_a_run() * runs as f64
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Point> {
        let curves = Curve::value_variants().iter();
        curves.flat_map(|curve| curve.points()).collect()
    }

    #[test]
    fn each_point_is_compared_with_plain_java() {
        for point in all() {
            assert_eq!(point.settings[0], Setting::plain(), "{}", point.name());
            assert!(point.settings[1..].iter().all(|s| s.policy.is_some()));
        }
    }

    #[test]
    fn a_curve_is_called_as_on_the_command_line() {
        for curve in Curve::value_variants() {
            assert_eq!(curve.to_possible_value().unwrap().get_name(), curve.name());
        }
    }

    #[test]
    fn points_of_a_curve_differ() {
        let mut names: Vec<String> = all().iter().map(Point::name).collect();
        let points = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), points);
    }

    #[test]
    fn the_default_run_ends_within_forty_minutes() {
        assert!(seconds(&all(), super::super::PAIRS) < 40.0 * 60.0);
    }
}
