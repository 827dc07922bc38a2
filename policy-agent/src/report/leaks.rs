//! `GET /api/v1/leaks`: what leaks, as JSON. The document is defined in [`policy_report::Leaks`]; this fills it
//! from a snapshot. Its size is bounded by that of the report.

use std::time::SystemTime;

use policy_core::leaks::{Growing, Suspect};
use policy_report as document;

use super::Snapshot;
use super::fold::clip;
use super::sites_json::site;

/// Renders the document, one line with a line feed at its end. `now` is the time of the answer.
///
/// # Errors
/// The serializer's error; this document causes none.
pub fn render(snapshot: &Snapshot, now: SystemTime) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = serde_json::to_vec(&leaks(snapshot, now))?;
    out.push(b'\n');
    Ok(out)
}

fn leaks(snapshot: &Snapshot, now: SystemTime) -> document::Leaks<'_> {
    let report = &*snapshot.leaks;
    let judged = snapshot.leaks_judged_at.unwrap_or(now);
    let age_seconds = now
        .duration_since(judged)
        .map_or(0.0, |age| age.as_secs_f64());
    document::Leaks {
        at: humantime::format_rfc3339_seconds(judged).to_string().into(),
        horizon_seconds: report.horizon_seconds,
        undecided: report.undecided.map(Into::into),
        suspects: (report.suspects.iter())
            .map(|one| suspect(one, report.at_ms, age_seconds))
            .collect(),
        growing: report.growing.iter().map(growing).collect(),
        acknowledged: report.acknowledged.iter().map(growing).collect(),
        omitted: report.omitted,
    }
}

fn suspect(one: &Suspect, at_ms: u64, age_seconds: f64) -> document::Suspect<'_> {
    let left = |seconds: f64| (seconds - age_seconds).clamp(0.0, 1e12) as u64;
    document::Suspect {
        account: clip(&one.account),
        class: clip(&one.class),
        live_bytes: one.live_bytes,
        live_standard_error_bytes: one.live_standard_error_bytes.ceil() as u64,
        growth_bytes_per_second: one.growth_bytes_per_second,
        growth_standard_error: one.growth_standard_error,
        since_seconds: (at_ms.saturating_sub(one.since_ms)) / 1_000 + age_seconds as u64,
        window_seconds: one.window_seconds,
        objects: one.objects,
        generations: one.generations,
        course: (one.course.iter())
            .map(|moment| document::Moment {
                seconds_ago: (at_ms.saturating_sub(moment.at_ms)) / 1_000 + age_seconds as u64,
                live_bytes: moment.live_bytes,
                generations: moment.generations,
            })
            .collect(),
        with: one.with.iter().map(|class| clip(class)).collect(),
        sites: one.sites.iter().map(site).collect(),
        kept_by: one.kept_by.iter().map(Into::into).collect(),
        exhausts: one.exhausts.map(|full| document::Exhaustion {
            what: full.what.into(),
            earliest_seconds: left(full.earliest_seconds),
            latest_seconds: full.latest_seconds.map(left),
        }),
    }
}

fn growing(one: &Growing) -> document::Growing<'_> {
    document::Growing {
        account: clip(&one.account),
        class: clip(&one.class),
        why: one.why.into(),
        live_bytes: one.live_bytes,
        growth_bytes_per_second: one.growth_bytes_per_second,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use policy_core::leaks::{Exhausts, Moment, Report};
    use policy_core::sites::survivors::Site;

    use super::*;

    #[test]
    fn the_document_is_as_of_its_look_and_counts_from_the_answer() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let suspect = Suspect {
            account: "shop".into(),
            class: "com.acme.Session".into(),
            live_bytes: 5,
            live_standard_error_bytes: 0.1,
            growth_bytes_per_second: 100.5,
            since_ms: 40_000,
            course: vec![Moment {
                at_ms: 70_000,
                live_bytes: 4,
                generations: 3,
            }],
            with: vec!["byte[]".to_owned()],
            sites: vec![Site {
                frames: vec!["com.acme.Cart.add(Cart.java:41)".to_owned()],
                share: 0.5,
                share_standard_error: 0.125,
                ..Site::default()
            }],
            exhausts: Some(Exhausts {
                what: "limit",
                earliest_seconds: 5.0,
                latest_seconds: None,
            }),
            ..Suspect::default()
        };
        let snapshot = Snapshot {
            leaks: Arc::new(Report {
                at_ms: 100_000,
                horizon_seconds: 100,
                suspects: vec![suspect],
                ..Report::default()
            }),
            leaks_judged_at: now.checked_sub(Duration::from_secs(10)),
            ..Snapshot::default()
        };
        let json = render(&snapshot, now).expect("it can be written");
        let read: document::Leaks<'_> = serde_json::from_slice(&json).expect("it can be read");
        assert_eq!(read.at, "2001-09-09T01:46:30Z");
        let one = &read.suspects[0];
        assert_eq!((one.since_seconds, one.live_standard_error_bytes), (70, 1));
        let moment = one.course[0];
        assert_eq!((moment.seconds_ago, moment.generations), (40, 3));
        assert_eq!(one.sites[0].share_standard_error, 0.125);
        assert_eq!(one.sites[0].frames[0], "com.acme.Cart.add(Cart.java:41)");
        let full = one.exhausts.as_ref().expect("a forecast");
        assert_eq!((full.earliest_seconds, full.latest_seconds), (0, None));
    }
}
