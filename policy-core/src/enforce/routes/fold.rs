//! The name of a route: the method and the first segments of the path, without the parts that vary.
//!
//! The Java half (`dev.heapwarden.agent.RoutePath`) does the same in place, without allocating. What it asks
//! for is folded here once more, which changes nothing of what is folded already.

/// The methods that have routes of their own; all others are [`OTHER_METHOD`].
pub const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
/// Every other method: a client may make up any.
pub const OTHER_METHOD: &str = "OTHER";
/// Segments of the path in a route.
pub const MAX_SEGMENTS: usize = 3;
/// Characters of a segment that is kept as it is.
pub const LONGEST_SEGMENT: usize = 24;
/// The replacement for any other segment.
pub const ANY: &str = "*";

/// The route of a request: `POST /repositories/*/statements`. A segment is folded to `*` if it has a digit, is
/// longer than [`LONGEST_SEGMENT`], or has characters other than letters, `.`, `_` and `-`. Empty segments do
/// not count. Pure.
#[must_use]
pub fn fold(method: &str, path: &str) -> String {
    let method = METHODS.iter().find(|&&known| known == method);
    let mut route = format!("{} ", method.unwrap_or(&OTHER_METHOD));
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    let mut any = false;
    for segment in segments.take(MAX_SEGMENTS) {
        any = true;
        route.push('/');
        route.push_str(if is_kept(segment) { segment } else { ANY });
    }
    if !any {
        route.push('/');
    }
    route
}

fn is_kept(segment: &str) -> bool {
    segment.len() <= LONGEST_SEGMENT
        && (segment.bytes()).all(|byte| byte.is_ascii_alphabetic() || b"._-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As in [`super::super::MAX_NAMED`]'s account: the longest route, with the longest method.
    const LONGEST: usize = 8 + MAX_SEGMENTS * (LONGEST_SEGMENT + 1);

    #[test]
    fn what_varies_is_folded() {
        for (method, path, route) in [
            (
                "POST",
                "/repositories/r-17/statements",
                "POST /repositories/*/statements",
            ),
            ("GET", "/", "GET /"),
            ("GET", "", "GET /"),
            ("GET", "//a//b", "GET /a/b"),
            ("GET", "/a/b/c/d/e", "GET /a/b/c"),
            ("get", "/a", "OTHER /a"),
            ("PROPFIND", "/a.b_c-d", "OTHER /a.b_c-d"),
            ("PUT", "/a;x=y/b%20c", "PUT /*/*"),
            ("PUT", "/é", "PUT /*"),
            (
                "HEAD",
                "/abcdefghijklmnopqrstuvwxy/abcdefghijklmnopqrstuvwx",
                "HEAD /*/abcdefghijklmnopqrstuvwx",
            ),
        ] {
            assert_eq!(fold(method, path), route);
        }
    }

    proptest! {
        #[test]
        fn a_route_is_short_plain_and_its_own_route(method in ".{0,9}", path in "[/a-c1.;%é-]{0,90}") {
            let route = fold(&method, &path);
            prop_assert!(route.len() <= LONGEST);
            prop_assert!(route.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '));
            let (method, path) = route.split_once(' ').unwrap();
            let again = fold(method, path);
            prop_assert_eq!(again, route.clone());
            prop_assert!(!path.bytes().any(|byte| byte.is_ascii_digit()));
        }
    }
}
