//! Rates of one account, from its latest readings.

use std::collections::VecDeque;
use std::time::Duration;

use heapwarden_client::live::Account;
use heapwarden_terminal::table::Rates;

/// Readings kept of each account.
const MAX_POINTS: usize = 30;

/// One reading of one account.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: Duration,
    live_bytes: u64,
    allocated_bytes_total: u64,
}

/// The latest readings of one account, the oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Trend {
    points: VecDeque<Point>,
}

impl Trend {
    /// Adds a reading taken `at` this time since the command started. If a counter has fallen, the JVM
    /// was restarted, and the readings before are dropped.
    pub(super) fn add(&mut self, at: Duration, account: &Account) {
        let point = Point {
            at,
            live_bytes: account.whole().live_bytes,
            allocated_bytes_total: account.allocated_bytes_total,
        };
        let is_another = self.points.back().is_some_and(|latest| {
            point.allocated_bytes_total < latest.allocated_bytes_total || at <= latest.at
        });
        if is_another {
            self.points.clear();
        }
        if self.points.len() == MAX_POINTS {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }

    /// Allocation between the latest two readings; growth by the least-squares line through all:
    /// the slope Σ(t−t̄)(y−ȳ) / Σ(t−t̄)².
    pub(super) fn rates(&self) -> Rates {
        let mut latest = self.points.iter().rev();
        let (Some(now), Some(before)) = (latest.next(), latest.next()) else {
            return Rates::default();
        };
        let seconds = (now.at - before.at).as_secs_f64();
        let allocated = now.allocated_bytes_total - before.allocated_bytes_total;

        let count = self.points.len() as f64;
        let mean = |value: fn(&Point) -> f64| self.points.iter().map(value).sum::<f64>() / count;
        let time = |point: &Point| point.at.as_secs_f64();
        let live = |point: &Point| point.live_bytes as f64;
        let (mean_time, mean_live) = (mean(time), mean(live));
        let (mut covariance, mut variance) = (0.0, 0.0);
        for point in &self.points {
            let from_mean = time(point) - mean_time;
            covariance += from_mean * (live(point) - mean_live);
            variance += from_mean * from_mean;
        }
        Rates {
            allocated_bytes_per_second: Some(allocated as f64 / seconds),
            live_bytes_per_minute: Some(covariance / variance * 60.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn account(live_bytes: u64, allocated_bytes_total: u64) -> Account {
        Account {
            live_bytes,
            allocated_bytes_total,
            ..Account::default()
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn rates_need_two_readings() {
        let mut trend = Trend::default();
        assert_eq!(trend.rates(), Rates::default());
        trend.add(seconds(1), &account(100, 1000));
        assert_eq!(trend.rates(), Rates::default());
        trend.add(seconds(3), &account(110, 1500));
        assert_eq!(trend.rates().allocated_bytes_per_second, Some(250.0));
        assert_eq!(trend.rates().live_bytes_per_minute, Some(300.0));
    }

    #[test]
    fn a_new_jvm_starts_anew() {
        let mut trend = Trend::default();
        trend.add(seconds(1), &account(100, 1000));
        trend.add(seconds(2), &account(100, 2000));
        trend.add(seconds(3), &account(1, 10));
        assert_eq!(trend.rates(), Rates::default());
    }

    proptest! {
        #[test]
        fn any_readings_give_finite_rates(
            readings in prop::collection::vec((0_u64..5, any::<u64>(), any::<u64>()), 0..80)
        ) {
            let mut trend = Trend::default();
            let mut at = Duration::ZERO;
            for (step, live, allocated) in readings {
                at += seconds(step);
                trend.add(at, &account(live, allocated));
                let rates = trend.rates();
                prop_assert!(rates.allocated_bytes_per_second.is_none_or(|r| r.is_finite() && r >= 0.0));
                prop_assert!(rates.live_bytes_per_minute.is_none_or(f64::is_finite));
                prop_assert!(trend.points.len() <= MAX_POINTS);
            }
        }
    }
}
