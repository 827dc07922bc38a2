//! Figures for people.

/// Bytes as mebibytes with one decimal.
pub(crate) fn mib(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / f64::from(1 << 20))
}

/// A whole number with its thousands set apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Text broken between words into lines of at most `width` characters, where its words allow
/// it: the first behind `first`, the others as far in.
pub(crate) fn indented(text: &str, width: usize, first: &str) -> String {
    let mut lines = vec![first.to_owned()];
    let margin = first.chars().count();
    for word in text.split(' ') {
        let used = lines.last().map_or(0, |line| line.chars().count());
        if used > margin && used + word.chars().count() > width {
            lines.push(" ".repeat(margin));
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
            line.push(' ');
        }
    }
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_broken_between_words() {
        assert_eq!(indented("a b", 9, "x: "), "x: a b");
        assert_eq!(indented("abc def ghij", 10, "x: "), "x: abc def\n   ghij");
        assert_eq!(indented("abcdefghijk l", 5, "x: "), "x: abcdefghijk\n   l");
    }

    #[test]
    fn figures_read_well() {
        assert_eq!(mib(1_572_864.0), "1.5 MiB");
        assert_eq!(mib(-524_288.0), "-0.5 MiB");
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(12_345_678), "12,345,678");
    }
}
