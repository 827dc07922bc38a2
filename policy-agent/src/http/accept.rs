//! Which metrics format a client prefers (RFC 9110, section 12.5.1, as far as needed).

use crate::report::exposition::Format;

/// The format for this `Accept` header; Prometheus text unless OpenMetrics 1.0.0 is asked
/// for by name, with a weight not below that of plain text.
pub(super) fn format(accept: &str) -> Format {
    let mut open_metrics = 0;
    let mut text = 0;
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
        let mut weight = 1000;
        let mut version = None;
        for parameter in parts {
            let Some((name, value)) = parameter.split_once('=') else {
                continue;
            };
            match name.trim_end().to_ascii_lowercase().as_str() {
                "q" => weight = thousandths(value.trim()).unwrap_or(0),
                "version" => version = Some(value.trim().trim_matches('"')),
                _ => {}
            }
        }
        match media_type.as_str() {
            "application/openmetrics-text" if matches!(version, None | Some("1.0.0")) => {
                open_metrics = open_metrics.max(weight);
            }
            "text/plain" if matches!(version, None | Some("0.0.4")) => text = text.max(weight),
            _ => {}
        }
    }
    if open_metrics > 0 && open_metrics >= text {
        Format::OpenMetrics
    } else {
        Format::Prometheus
    }
}

/// A weight as the RFC spells it: `0`, `1`, `0.5`, at most three decimals.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let decimals: u16 = format!("{decimals:0<3}").parse().ok()?;
    match (whole, decimals) {
        ("0", decimals) => Some(decimals),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_s_preference_decides() {
        let open_metrics = [
            "application/openmetrics-text",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            "Application/OpenMetrics-Text;version=\"1.0.0\"",
            "text/plain;q=0.5, application/openmetrics-text;q=0.50",
            // Prometheus 2.42 and 3.
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        ];
        for accept in open_metrics {
            assert_eq!(format(accept), Format::OpenMetrics, "{accept}");
        }
        let prometheus = [
            "",
            "*/*",
            "text/html, */*;q=0.8",
            "application/json",
            "text/plain, application/openmetrics-text;q=0.9",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=nonsense",
            "application/openmetrics-text;version=2.0.0",
            "application/openmetrics-text;version=0.0.1",
            ";;==,,;q",
        ];
        for accept in prometheus {
            assert_eq!(format(accept), Format::Prometheus, "{accept}");
        }
    }

    #[test]
    fn weights_are_read_strictly() {
        assert_eq!(thousandths("0.5"), Some(500));
        assert_eq!(thousandths("0.125"), Some(125));
        assert_eq!(thousandths("1.000"), Some(1000));
        for bad in ["", ".5", "1.1", "2", "0.1234", "0.-1", "0.+1", "nan"] {
            assert_eq!(thousandths(bad), None, "{bad}");
        }
    }
}
