//! Escapes names for printing: account, service and class names come from tenants, and must not control
//! the terminal, reorder a line or shift a column.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Most zero-width marks after one character; further ones are escaped.
const MAX_MARKS: usize = 2;

/// `text` with everything that controls a terminal or a line, or cannot be seen, written as
/// `\u{…}`.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
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
pub(crate) fn fitted(text: &str, columns: usize) -> Cow<'_, str> {
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

/// Columns of a terminal that `text` takes, which must be [`escaped`].
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Controls (C0, DEL, C1), and the format characters that reorder, join, split or hide text:
/// Unicode's `Bidi_Control`, `Default_Ignorable_Code_Point` and its line separators.
pub(crate) fn is_hidden(character: char) -> bool {
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

    proptest! {
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
