//! Sends a profile to a Pyroscope: one `POST /ingest` with `format=pprof`, as its documentation describes it.
//!
//! Not tested against a real one.

use std::time::{Duration, SystemTime};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use policy_profile::Profile;
use ureq::http::HeaderValue;
use ureq::http::header::{AUTHORIZATION, CONTENT_TYPE};

use heapwarden_client::http;
use heapwarden_client::server_address::ServerAddress;
use heapwarden_terminal::printable;

/// Longest time of the request.
const LIMIT: Duration = Duration::from_secs(30);
/// The period that the profile is said to be of: Pyroscope wants one, and a reading has none.
const PERIOD_SECONDS: u64 = 10;
/// As much of a refusal as a message needs.
const MAX_ERROR_BYTES: u64 = 4096;
const TENANT_HEADER: &str = "X-Scope-OrgID";
/// The name if the JVM's program is not known.
const UNNAMED: &str = "heapwarden";

/// Where a profile is to be sent, and as what.
pub(super) struct Push {
    address: ServerAddress,
    name: Option<String>,
    tenant: Option<HeaderValue>,
}

impl Push {
    /// Checks what the user has given.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn new(
        address: &str,
        name: Option<String>,
        tenant: Option<&str>,
    ) -> Result<Push, String> {
        let shown = address.rsplit('@').next().unwrap_or_default();
        let shown = printable::fitted(shown, 100);
        let address = ServerAddress::new(address)
            .map_err(|_| format!("{shown} is no address of a Pyroscope; write http://host:4040"))?;
        if name.as_ref().is_some_and(|name| name.trim().is_empty()) {
            return Err("--name is empty; give the application's name".to_owned());
        }
        let tenant = (tenant.map(HeaderValue::from_str).transpose())
            .map_err(|_| "--org-id has characters that no header has".to_owned())?;
        Ok(Push {
            address,
            name,
            tenant,
        })
    }

    /// Sends it.
    ///
    /// # Errors
    /// A sentence: nobody answers, or the answer is a refusal.
    pub(super) fn send(&self, profile: &Profile) -> Result<(), String> {
        let base = self.address.base();
        let name = (self.name.clone()).unwrap_or_else(|| application(profile.program()));
        let until = profile.at().duration_since(SystemTime::UNIX_EPOCH);
        let until = until.map_or(0, |since| since.as_secs());
        let from = until.saturating_sub(PERIOD_SECONDS);
        let url = format!(
            "{base}/ingest?name={}&from={from}&until={until}&format=pprof&spyName=heapwarden",
            utf8_percent_encode(&name, NON_ALPHANUMERIC)
        );
        let (boundary, body) = form(&profile.to_gzip());
        let client = http::config()
            .timeout_global(Some(LIMIT))
            .build()
            .new_agent();
        let mut request = client.post(&url).header(
            CONTENT_TYPE,
            format!("multipart/form-data; boundary={boundary}"),
        );
        if let Some(authorization) = self.address.authorization() {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some(tenant) = &self.tenant {
            request = request.header(TENANT_HEADER, tenant);
        }
        let response = request.send(&body[..]).map_err(|error| {
            let why = http::Failure::from(error);
            format!("the profile cannot be sent to {base}: {why}")
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let text = http::beginning(response, MAX_ERROR_BYTES);
        let text = printable::fitted(text.lines().next().unwrap_or_default(), 160).into_owned();
        Err(format!(
            "{base} did not take the profile: {} {text}",
            status.as_u16()
        ))
    }
}

/// A form with the profile as its one field, and the line between its parts.
fn form(gzip: &[u8]) -> (String, Vec<u8>) {
    let mut number = 0u64;
    // The first that the profile does not have.
    let boundary = loop {
        let boundary = format!("heapwarden-{number:016x}");
        let bytes = boundary.as_bytes();
        if !gzip.windows(bytes.len()).any(|window| window == bytes) {
            break boundary;
        }
        number += 1;
    };
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"profile\"; filename=\"profile.pprof\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    );
    let end = format!("\r\n--{boundary}--\r\n");
    let body = [head.as_bytes(), gzip, end.as_bytes()].concat();
    (boundary, body)
}

/// The program as the name of an application: what labels could be made of is replaced.
fn application(program: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-/".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = program.chars().map(plain).collect();
    if name.is_empty() {
        UNNAMED.to_owned()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_keeps_the_profile_whatever_its_bytes_are() {
        let hostile = b"--heapwarden-0000000000000000--\r\n";
        let (boundary, body) = form(hostile);
        assert_eq!(boundary, "heapwarden-0000000000000001");
        let text = String::from_utf8(body).unwrap();
        let parts: Vec<&str> = text.split(&format!("--{boundary}")).collect();
        assert_eq!(parts.len(), 3, "{text}");
        let (_, kept) = parts[1].split_once("\r\n\r\n").unwrap();
        assert_eq!(kept.as_bytes(), [&hostile[..], b"\r\n"].concat());
    }

    #[test]
    fn a_program_cannot_give_labels() {
        assert_eq!(application("com.acme/Main"), "com.acme/Main");
        assert_eq!(application("a{b=\"c\"} ü&x"), "a_b__c_____x");
        assert_eq!(application(""), "heapwarden");
    }

    #[test]
    fn what_cannot_be_sent_is_said_without_the_password() {
        let error = |address: &str, name: Option<&str>, tenant| {
            let push = Push::new(address, name.map(str::to_owned), tenant);
            push.err().expect("refused")
        };
        let found = error("pyroscope:4040", None, None);
        assert_eq!(
            found,
            "pyroscope:4040 is no address of a Pyroscope; write http://host:4040"
        );
        assert!(!error("ftp://u:topsecret@a", None, None).contains("topsecret"));
        assert!(error("http://a", Some(" "), None).contains("--name"));
        assert!(error("http://a", None, Some("a\nb")).contains("--org-id"));
        assert!(Push::new("https://u:p@a/x", None, Some("team")).is_ok());
    }
}
