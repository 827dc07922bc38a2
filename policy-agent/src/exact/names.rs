//! Names of class files as Java writes them.

/// `com/acme/Cart$Item` as `com.acme.Cart$Item`.
pub(super) fn class(name: &[u8]) -> String {
    printable(name).replace('/', ".")
}

/// A method with the types of its arguments: `com.acme.Cart.add(int, java.lang.String)`.
pub(super) fn method(owner: &[u8], name: &[u8], descriptor: &[u8]) -> String {
    let descriptor = printable(descriptor);
    let inner = descriptor.strip_prefix('(').unwrap_or(&descriptor);
    let mut rest = inner.split(')').next().unwrap_or_default();
    let mut types = Vec::new();
    while let Some((one, left)) = argument(rest) {
        types.push(one);
        rest = left;
    }
    format!("{}.{}({})", class(owner), printable(name), types.join(", "))
}

/// The first type of a descriptor's arguments, and what follows it.
fn argument(rest: &str) -> Option<(String, &str)> {
    let element = rest.trim_start_matches('[');
    let dimensions = rest.len() - element.len();
    let simple = match element.chars().next()? {
        'B' => "byte",
        'C' => "char",
        'D' => "double",
        'F' => "float",
        'I' => "int",
        'J' => "long",
        'S' => "short",
        'Z' => "boolean",
        'L' => {
            let (name, left) = element[1..].split_once(';')?;
            let name = class(name.as_bytes());
            return Some((name + &"[]".repeat(dimensions), left));
        }
        _ => return None,
    };
    Some((simple.to_owned() + &"[]".repeat(dimensions), &element[1..]))
}

/// Without control characters, which a class file may have in its names.
fn printable(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    name.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_written_with_the_types_of_their_arguments() {
        let named = |descriptor: &[u8]| method(b"com/acme/Cart$Item", b"add", descriptor);
        assert_eq!(named(b"()V"), "com.acme.Cart$Item.add()");
        assert_eq!(
            named(b"(I[[JLjava/lang/String;[Lx/Y;Z)I"),
            "com.acme.Cart$Item.add(int, long[][], java.lang.String, x.Y[], boolean)"
        );
        for broken in ["", "(", "(Q", "(Lx", "(["] {
            assert_eq!(
                method(b"A", b"b\n", broken.as_bytes()),
                "A.b\u{fffd}()",
                "{broken}"
            );
        }
    }
}
