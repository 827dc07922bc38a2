//! The names of a deployment that follow from its published name.
//!
//! The agent knows several names of a service, and a policy may use any of them, but only one is
//! published. This module derives the others by the rules of the containers. Display names and versions
//! are not known outside the JVM.

/// The published name, and the names that follow from it: of the context path `/shop` the base name `shop`,
/// of `/` `ROOT`, of `/a/b` Tomcat's `a#b`, and of `shop.war` both `shop` and `/shop`.
pub fn names(published: &str) -> Vec<String> {
    let mut names = vec![published.to_owned()];
    match published.strip_prefix('/') {
        Some("") => names.push("ROOT".to_owned()),
        // With a host before it: `//host/shop`.
        Some(rest) if rest.starts_with('/') => {
            if let Some((_, path)) = rest[1..].split_once('/') {
                names.push(if path.is_empty() {
                    "ROOT".to_owned()
                } else {
                    path.replace('/', "#")
                });
            }
        }
        Some(base) => {
            names.push(base.to_owned());
            if base.contains('/') {
                names.push(base.replace('/', "#"));
            }
        }
        None => {
            let archives = [".war", ".ear", ".jar"];
            if let Some(base) = archives.iter().find_map(|end| published.strip_suffix(end)) {
                names.push(base.to_owned());
                names.push(format!("/{}", base.rsplit(".ear.").next().unwrap_or(base)));
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn of_what_is_published_the_other_names_follow() {
        assert_eq!(names("/shop"), ["/shop", "shop"]);
        assert_eq!(names("/"), ["/", "ROOT"]);
        assert_eq!(names("/a/b"), ["/a/b", "a/b", "a#b"]);
        assert_eq!(
            names("//other.example/shop"),
            ["//other.example/shop", "shop"]
        );
        assert_eq!(names("//other.example/"), ["//other.example/", "ROOT"]);
        assert_eq!(names("shop.war"), ["shop.war", "shop", "/shop"]);
        assert_eq!(
            names("bank.ear.shop.war"),
            ["bank.ear.shop.war", "bank.ear.shop", "/shop"]
        );
        assert_eq!(names("plugin"), ["plugin"]);
    }
}
