//! The property that holds for any bytes a client can send, for the fuzz target and a test.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use super::request::Method;
use super::{Caching, HostPolicy, Reject, Response, Routes, parse};
use crate::report::{Account, Class, Snapshot, Source};

/// A source with one account.
#[derive(Debug, Default)]
struct OneAccount;

impl Source for OneAccount {
    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::new(Snapshot {
            accounts: vec![Account {
                name: "shop".to_owned(),
                classes: vec![Class::default()],
                ..Account::default()
            }],
            ..Snapshot::default()
        })
    }

    fn ready(&self) -> Result<(), String> {
        Err("never".to_owned())
    }
}

/// Parses `bytes` and answers them.
///
/// # Panics
/// When parsing or answering panics, when the response is not well-formed, or when a
/// request that was complete changes by bytes that follow it.
pub fn check(bytes: &[u8]) {
    let parsed = parse(bytes);
    if let Ok(Some(request)) = &parsed {
        let more = [bytes, b"\r\n\r\nGET / HTTP/1.1\r\n"].concat();
        assert_eq!(parse(&more).as_ref(), Ok(&Some(request.clone())));
        assert!(request.path.starts_with('/'));
    }
    let hosts = HostPolicy::for_address([127, 0, 0, 1].into(), &[]);
    let (response, method) = match parsed {
        Ok(Some(request)) => {
            let routes = Routes::new(hosts.clone(), 1, Arc::default());
            let now = std::time::Instant::now();
            let Some(response) = routes.respond(&request, now, &OneAccount) else {
                panic!("this source makes no documents")
            };
            assert_ne!(response.status, 500, "{request:?}");
            let published = response.body.windows(4).any(|window| window == b"shop");
            let known = request.host.is_none_or(|host| hosts.allows(&host));
            assert!(known || !published, "published to an unknown host");
            (response, request.method)
        }
        Ok(None) => (Response::from(Reject::too_large(bytes)), Method::Get),
        Err(reject) => (Response::from(reject), Method::Get),
    };
    check_response(&response.encode(method, UNIX_EPOCH), &response, method);
}

fn check_response(bytes: &[u8], response: &Response, method: Method) {
    let mut headers = [httparse::EMPTY_HEADER; 16];
    let mut head = httparse::Response::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        other => panic!("the response head is not well-formed: {other:?}"),
    };
    assert_eq!(head.code, Some(response.status));
    assert_ne!(head.reason, Some(""));
    let body = &bytes[length..];
    match method {
        Method::Get => assert_eq!(body, response.body),
        Method::Head => assert!(body.is_empty()),
    }
    let header = |name: &str| {
        let mut values = head.headers.iter().filter(|header| header.name == name);
        let value = values.next().map(|header| header.value.to_vec());
        assert!(values.next().is_none(), "{name} twice");
        String::from_utf8(value.unwrap_or_default()).unwrap()
    };
    let length = match response.status {
        304 => String::new(),
        _ => response.body.len().to_string(),
    };
    assert_eq!(header("Content-Length"), length);
    assert_eq!(header("Connection"), "close");
    let is_page = response.caching != Caching::None;
    assert_eq!(header("Cache-Control") == "no-store", !is_page);
    assert_eq!(header("Content-Security-Policy").is_empty(), !is_page);
    assert_eq!(header("X-Content-Type-Options"), "nosniff");
    assert_eq!(header("Allow").is_empty(), response.status != 405);
}
