//! The options of every subcommand that reads a period.

use std::time::Duration;

use clap::Args;

use crate::prometheus::{self, Span};
use heapwarden_client::live::Address;
use heapwarden_terminal::clock;

use super::selector::{Selector, pattern};
use super::{Error, History, Jvm, polling, recording};

/// Steps that a range is divided into, at the most, unless `--step` says otherwise.
const MAX_STEPS: u64 = 2_100;

/// Finest step unless `--step` says otherwise: a step without a scrape in it has no reading,
/// and Prometheus scrapes once a minute by default.
const FINEST_STEP_SECONDS: u64 = 120;

/// How often the recording rules are evaluated.
const ROLLUP_STEP_SECONDS: u64 = 300;

/// Steps that divide an hour or a day.
const ROUND_STEPS_SECONDS: [u64; 11] = [
    120, 300, 600, 900, 1200, 1800, 3600, 7200, 14_400, 21_600, 43_200,
];

/// Which period, of which JVMs.
#[derive(Args, Debug, Clone)]
#[group(skip)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) prometheus: prometheus::Arguments,

    /// How far back to look
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = clock::parse_duration)]
    range: Duration,

    /// End of the range, if not now: 2026-11-20T14:00:00Z, or seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = clock::parse_time)]
    end: Option<i64>,

    /// Length of a step; by default about a two-thousandth of the range
    #[arg(long, value_name = "DURATION", value_parser = clock::parse_duration)]
    step: Option<Duration>,

    /// Only JVMs whose labels match, such as '{job="tomcat"}'
    #[arg(long = "match", value_name = "SELECTOR")]
    selector: Option<String>,

    /// Only the JVM of this instance
    #[arg(long, value_name = "HOST:PORT")]
    instance: Option<String>,

    /// Only accounts of this name, where * stands for anything; may be repeated
    #[arg(long = "account", value_name = "NAME")]
    accounts: Vec<String>,

    /// Read what the recording rules for fleets have made (heapwarden.fleet.rules.yml) instead of every scrape
    #[arg(long)]
    rollups: bool,

    /// The labels that distinguish JVMs
    #[arg(
        long = "jvm-label",
        value_name = "LABELS",
        value_delimiter = ',',
        default_value = "job,instance"
    )]
    jvm_labels: Vec<String>,
}

impl Arguments {
    /// Whether a Prometheus was named.
    pub fn names_prometheus(&self) -> bool {
        self.prometheus.prometheus.is_some()
    }

    /// Reads the period.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn read(&self) -> Result<History, Error> {
        let client = self.prometheus.client()?.ok_or(Error::NoSource)?;
        recording::read(&client, &self.request(MAX_STEPS)?)
    }

    /// Reads the period of a fleet. If the fleet is large, only those JVMs come with their accounts that
    /// `choose` gives a weight, the heaviest first; of the others, only the names that matter.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn read_fleet(&self, choose: &dyn Fn(&Jvm, Span) -> Option<f64>) -> Result<History, Error> {
        self.read_overview(MAX_STEPS, choose)
    }

    /// As [`Arguments::read_fleet`], in at most so many steps unless `--step` says otherwise.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn read_overview(
        &self,
        steps: u64,
        choose: &dyn Fn(&Jvm, Span) -> Option<f64>,
    ) -> Result<History, Error> {
        let client = self.prometheus.client()?.ok_or(Error::NoSource)?;
        let request = self.request(steps)?;
        match recording::is_large(&client, &request)? {
            None => recording::read(&client, &request),
            Some(most_steps) => {
                let request = self.request(most_steps.min(steps))?;
                recording::read_fleet(&client, &request, choose)
            }
        }
    }

    fn request(&self, most_steps: u64) -> Result<recording::Request, Error> {
        let accounts: Vec<String> = self.accounts.iter().map(|name| pattern(name)).collect();
        Ok(recording::Request {
            selector: Selector::new(self.selector.as_deref(), self.instance.as_deref())?,
            span: self.span(most_steps)?,
            jvm_labels: self.labels()?,
            accounts: (!accounts.is_empty()).then(|| accounts.join("|")),
            rollups: self.rollups,
        })
    }

    fn span(&self, most_steps: u64) -> Result<Span, Error> {
        let range = self.range.as_secs();
        let finest = match self.rollups {
            true => ROLLUP_STEP_SECONDS,
            false => FINEST_STEP_SECONDS,
        };
        let step = match self.step {
            Some(step) if self.rollups && step.as_secs() < finest => {
                let step = clock::format_duration(step.as_secs());
                return Err(Error::FineStep { step });
            }
            Some(step) => step.as_secs(),
            None => default_step_seconds(range, most_steps, finest),
        };
        let end = self.end.unwrap_or_else(clock::now_seconds);
        Ok(Span::covering(end, range, step))
    }

    fn labels(&self) -> Result<Vec<String>, Error> {
        let mut labels: Vec<String> = Vec::new();
        for label in &self.jvm_labels {
            let label = label.trim();
            let mut bytes = label.bytes();
            let is_label = bytes
                .next()
                .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
                && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if !is_label {
                return Err(Error::Label { text: label.into() });
            }
            if !labels.iter().any(|other| other == label) {
                labels.push(label.into());
            }
        }
        Ok(labels)
    }
}

/// A period: recorded by Prometheus, or polled from now on.
#[derive(Args, Debug, Clone)]
#[group(skip)]
pub struct Source {
    #[command(flatten)]
    recorded: Arguments,

    /// Poll the one JVM at this address instead: host:port, or its run file
    #[arg(long, value_name = "ADDRESS")]
    live: Option<Address>,

    /// How long to poll it
    #[arg(long = "for", value_name = "DURATION", default_value = "10m", value_parser = clock::parse_duration)]
    length: Duration,
}

impl Source {
    /// Reads the period, or waits for it.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn read(&self) -> Result<History, Error> {
        match &self.live {
            Some(address) => {
                let step = self.recorded.step.map(|step| step.as_secs());
                polling::read(address, self.length.as_secs(), step)
            }
            None => self.recorded.read(),
        }
    }

    /// Whether the period is polled: only minutes long, and perhaps without typical load.
    pub fn is_live(&self) -> bool {
        self.live.is_some()
    }
}

/// The finest round step that divides the range into no more than so many.
fn default_step_seconds(range_seconds: u64, most_steps: u64, finest_seconds: u64) -> u64 {
    let least = range_seconds.div_ceil(most_steps).max(finest_seconds);
    let round = ROUND_STEPS_SECONDS.into_iter().find(|step| *step >= least);
    round.unwrap_or_else(|| least.next_multiple_of(86_400))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_not_finer_than_scrapes() {
        for (days, step) in [
            (1, 120),
            (7, 300),
            (30, 1800),
            (365, 21_600),
            (3650, 172_800),
        ] {
            let found = default_step_seconds(days * 86_400, MAX_STEPS, FINEST_STEP_SECONDS);
            assert_eq!(found, step, "{days} days");
        }
        let found = |range, most| default_step_seconds(range, most, FINEST_STEP_SECONDS);
        assert_eq!(found(60, MAX_STEPS), 120);
        assert_eq!(found(7 * 86_400, 200), 3600);
        assert_eq!(
            default_step_seconds(60, MAX_STEPS, ROLLUP_STEP_SECONDS),
            300
        );
    }
}
