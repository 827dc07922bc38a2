//! "Did you mean": the known word closest to a mistyped one.

/// Longer words are not compared, so that a hostile key costs nothing.
const MAX_WORD_CHARS: usize = 40;

/// The word of `known` closest to `given`, if at most a third of its letters are wrong, ignoring case
/// and separators.
pub(crate) fn closest<'k>(given: &str, known: &[&'k str]) -> Option<&'k str> {
    let given = normal(given);
    if given.is_empty() || given.len() > MAX_WORD_CHARS {
        return None;
    }
    known
        .iter()
        .map(|word| (distance(&given, &normal(word)), *word))
        .filter(|(edits, word)| *edits <= (word.len() / 3).max(1) && *edits < given.len())
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, word)| word)
}

fn normal(word: &str) -> Vec<char> {
    word.chars()
        .take(MAX_WORD_CHARS + 1)
        .filter(|character| !matches!(character, '-' | '_' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `from` into
/// `into` (optimal string alignment).
fn distance(from: &[char], into: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=into.len()).collect();
    for (row, &old) in from.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &new) in into.iter().enumerate() {
            let mut edits = (last[column + 1] + 1)
                .min(current[column] + 1)
                .min(last[column] + usize::from(old != new));
            let swapped = row > 0 && column > 0 && old == into[column - 1] && from[row - 1] == new;
            if swapped {
                edits = edits.min(before_last[column - 1] + 1);
            }
            current.push(edits);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[into.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 7] = [
        "name",
        "service",
        "packages",
        "scope",
        "soft-limit",
        "limit",
        "throw",
    ];

    #[test]
    fn slips_find_their_word() {
        for (given, meant) in [
            ("limits", "limit"),
            ("lmiit", "limit"),
            ("soft_limit", "soft-limit"),
            ("softLimit", "soft-limit"),
            ("package", "packages"),
            ("Service", "service"),
            ("trow", "throw"),
            ("nam", "name"),
        ] {
            assert_eq!(closest(given, &KEYS), Some(meant), "{given}");
        }
    }

    #[test]
    fn strangers_find_nothing() {
        for given in ["", "colour", "x", "--", &"limit".repeat(20)] {
            assert_eq!(closest(given, &KEYS), None, "{given}");
        }
    }

    #[test]
    fn distances() {
        let between = |from: &str, into: &str| {
            distance(
                &from.chars().collect::<Vec<_>>(),
                &into.chars().collect::<Vec<_>>(),
            )
        };
        assert_eq!(between("", "abc"), 3);
        assert_eq!(between("abc", ""), 3);
        assert_eq!(between("kitten", "sitting"), 3);
        assert_eq!(between("ab", "ba"), 1);
    }
}
