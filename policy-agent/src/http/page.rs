//! The page's files. They lie in the library; a path names one of them or nothing.

use policy_page::Host;

use super::request::Request;
use super::response::{Caching, Response};

/// The folder of all files but the index; their version is the next part of the path.
pub(super) const FOLDER: &str = "/page/";

/// The index.
pub(super) fn index(request: &Request) -> Response {
    let tag = format!("\"{}\"", policy_page::version());
    let is_known = (request.if_none_match.split(','))
        .map(|known| known.trim().trim_start_matches("W/"))
        .any(|known| known == tag);
    Response {
        status: if is_known { 304 } else { 200 },
        content_type: "text/html; charset=utf-8",
        is_gzip: false,
        caching: Caching::Asked(tag),
        body: if is_known {
            Vec::new()
        } else {
            policy_page::index(Host::Agent).into_bytes()
        },
    }
}

/// Another file, by the path below [`FOLDER`]; `None` if there is none.
pub(super) fn file(path: &str) -> Option<Response> {
    let (version, name) = path.split_once('/')?;
    if version != policy_page::version() {
        return None;
    }
    let file = policy_page::file(name)?;
    Some(Response {
        status: 200,
        content_type: file.content_type,
        is_gzip: false,
        caching: Caching::Forever,
        body: file.bytes.to_vec(),
    })
}
