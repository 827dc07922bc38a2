//! Escapes names for printing: account, service and class names come from tenants, and must not control
//! the terminal, reorder a line or shift a column.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Most zero-width marks after one character; further ones are escaped.
const MAX_MARKS: usize = 2;

/// `text` with everything that controls a terminal or a line, or cannot be seen, written as
/// `\u{…}`.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut marks = 0;
    for (at, character) in text.chars().enumerate() {
        let is_mark = character.width() == Some(0);
        marks = if is_mark { marks + 1 } else { 0 };
        let nothing_to_stand_on = is_mark && (at == 0 || marks > MAX_MARKS);
        if is_hidden(character) || nothing_to_stand_on {
            out.extend(character.escape_unicode());
            marks = 0;
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// `text` escaped, and cut with an ellipsis where it is wider than `columns` of a terminal.
pub fn fitted(text: &str, columns: usize) -> Cow<'_, str> {
    let text = escaped(text);
    if text.width() <= columns {
        return text;
    }
    let mut kept = String::new();
    let Some(room) = columns.checked_sub(1) else {
        return Cow::Owned(kept);
    };
    let mut used = 0;
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used > room {
            break;
        }
        kept.push(character);
    }
    kept.push('…');
    Cow::Owned(kept)
}

/// As [`fitted`], for names that share long beginnings: the packages of a class are shortened to their first
/// letters from the left (`c.a.shop.internal.CartEntry`), and what is still too wide is cut in the middle, so
/// that both ends are seen.
pub fn fitted_name(text: &str, columns: usize) -> Cow<'_, str> {
    let text = escaped(text);
    if text.width() <= columns {
        return text;
    }
    let mut name = String::new();
    let mut rest: &str = &text;
    if is_qualified(rest) {
        while name.width() + rest.width() > columns
            && let Some((package, after)) = rest.split_once('.')
        {
            name.extend(package.chars().take(1));
            name.push('.');
            rest = after;
        }
    }
    name.push_str(rest);
    if name.width() > columns {
        name = cut_in_the_middle(&name, columns);
    }
    Cow::Owned(name)
}

/// Whether it is a class in a package, or the name of a package.
fn is_qualified(name: &str) -> bool {
    let is_package = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_lowercase())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let packages = name.rsplit_once('.').map(|(packages, _)| packages);
    packages.is_some_and(|packages| packages.split('.').all(is_package))
}

/// Keeps as much of the end as of the beginning.
fn cut_in_the_middle(text: &str, columns: usize) -> String {
    let Some(room) = columns.checked_sub(1) else {
        return String::new();
    };
    let fitting = |characters: &mut dyn Iterator<Item = char>, room: usize| {
        let mut used = 0;
        let kept = characters.take_while(|character| {
            used += character.width().unwrap_or(0);
            used <= room
        });
        kept.collect::<Vec<char>>()
    };
    let start = fitting(&mut text.chars(), room / 2);
    let mut end = fitting(&mut text.chars().rev(), room - room / 2);
    // A mark must not stand on the ellipsis.
    while end.last().is_some_and(|last| last.width() == Some(0)) {
        end.pop();
    }
    let ellipsis = std::iter::once('…');
    start
        .into_iter()
        .chain(ellipsis)
        .chain(end.into_iter().rev())
        .collect()
}

/// Columns of a terminal that `text` takes, which must be [`escaped`].
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Controls (C0, DEL, C1), and the format characters that reorder, join, split or hide text:
/// Unicode's `Bidi_Control`, `Default_Ignorable_Code_Point` and its line separators.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_names_stay_as_they_are() {
        for name in [
            "/shop",
            "java.util.HashMap$Node[]",
            "größe",
            "価格",
            "e\u{301}",
        ] {
            assert_eq!(escaped(name), name);
        }
    }

    #[test]
    fn what_drives_or_deceives_is_escaped() {
        for (name, expected) in [
            ("\u{1b}[2Jx", r"\u{1b}[2Jx"),
            ("a\r\nb\tc", r"a\u{d}\u{a}b\u{9}c"),
            ("\u{9b}31m", r"\u{9b}31m"),
            ("a\u{202e}b", r"a\u{202e}b"),
            ("a\u{2066}b", r"a\u{2066}b"),
            ("a\u{200b}b", r"a\u{200b}b"),
            ("a\u{2028}b", r"a\u{2028}b"),
            ("\u{301}a", r"\u{301}a"),
        ] {
            assert_eq!(escaped(name), expected);
        }
        let heap_of_marks = format!("a{}", "\u{301}".repeat(1000));
        assert!(escaped(&heap_of_marks).matches(r"\u{301}").count() > 300);
    }

    #[test]
    fn what_is_too_wide_is_cut() {
        assert_eq!(fitted("catalog", 7), "catalog");
        assert_eq!(fitted("catalogue", 7), "catalo…");
        assert_eq!(fitted("価格表示", 6), "価格…");
        assert_eq!(fitted("catalogue", 1), "…");
        assert_eq!(fitted("catalogue", 0), "");
    }

    #[test]
    fn names_with_a_common_beginning_are_told_apart() {
        let package = "com.example.commerce.application.persistence.internal";
        let of = |class: &str, room| fitted_name(&format!("{package}.{class}"), room).into_owned();
        let classes = [
            "Customer",
            "CustomerOrder",
            "CustomerOrderLine",
            "Invoice",
            "Invoice$Line[]",
        ];
        let mut shown: Vec<String> = classes.iter().map(|class| of(class, 37)).collect();
        assert_eq!(shown[0], "c.e.c.a.persistence.internal.Customer");
        for (class, shown) in classes.iter().zip(&shown) {
            assert!(shown.ends_with(&format!(".{class}")), "{shown}");
        }
        shown.dedup();
        assert_eq!(shown.len(), 5);
        assert_eq!(of("Customer", 18), "c.e.c.a.….Customer");
        assert_eq!(
            fitted_name("/shop-of-the-future/tenant-42", 16),
            "/shop-o…enant-42"
        );
        assert_eq!(
            fitted_name("shop-service-1.2.10-SNAPSHOT.jar", 16),
            "shop-se…SHOT.jar"
        );
        assert_eq!(fitted_name("a.b.C", 5), "a.b.C");
        assert_eq!(fitted_name("catalogue", 1), "…");
        assert_eq!(fitted_name("catalogue", 0), "");
    }

    proptest! {
        #[test]
        fn no_name_is_wider_than_allowed_or_moves_the_cursor(
            text in "([a-z]{1,6}\\.){0,6}\\PC{0,20}", room in 0_usize..40
        ) {
            let shown = fitted_name(&text, room);
            prop_assert!(columns(&shown) <= room, "{shown:?}");
            prop_assert!(!shown.chars().any(is_hidden));
        }

        #[test]
        fn nothing_is_wider_than_allowed_or_moves_the_cursor(
            text in any::<String>(), room in 0_usize..40
        ) {
            let shown = fitted(&text, room);
            prop_assert!(columns(&shown) <= room, "{shown:?}");
            prop_assert!(!shown.chars().any(is_hidden));
        }
    }
}
