//! The operator's edit of the policy: one line of it, the rest left as it is.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// A line that was changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Its number, from 1.
    pub(crate) number: usize,
    /// As it was.
    pub(crate) before: String,
    /// As it is now.
    pub(crate) after: String,
}

/// Gives an account another limit. The file is replaced as a whole, as editors do.
pub(crate) fn set_limit(policy: &Path, account: &str, limit: &str) -> Result<Edit> {
    let text = fs::read_to_string(policy)
        .with_context(|| format!("{} cannot be read", policy.display()))?;
    let (edit, text) = edited(&text, account, limit)
        .with_context(|| format!("{} has no limit of {account}", policy.display()))?;
    let beside = policy.with_extension("toml.new");
    fs::write(&beside, text)
        .and_then(|()| fs::rename(&beside, policy))
        .with_context(|| format!("{} cannot be written", policy.display()))?;
    Ok(edit)
}

/// The edit and the whole text after it; none where the account has no line for its limit.
fn edited(text: &str, account: &str, limit: &str) -> Option<(Edit, String)> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let name = format!("name = \"{account}\"");
    let start = lines.iter().position(|line| *line == name)?;
    let index = (start..lines.len())
        .take_while(|&index| !lines[index].starts_with('['))
        .find(|&index| lines[index].starts_with("limit = "))?;
    let after = format!("limit = \"{limit}\"");
    let before = std::mem::replace(&mut lines[index], after.clone());
    let edit = Edit {
        number: index + 1,
        before,
        after,
    };
    Some((edit, lines.join("\n") + "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "\
[[account]]
name = \"a\"
soft-limit = \"1MiB\"
limit = \"2MiB\"

[[account]]
name = \"b\"

[[account]]
name = \"c\"
limit = \"3MiB\"
";

    #[test]
    fn one_line_is_changed_and_no_other() {
        let (edit, text) = edited(POLICY, "a", "9MiB").unwrap();
        let expected = Edit {
            number: 4,
            before: "limit = \"2MiB\"".to_owned(),
            after: "limit = \"9MiB\"".to_owned(),
        };
        assert_eq!(edit, expected);
        assert_eq!(text, POLICY.replace("2MiB", "9MiB"));
    }

    #[test]
    fn another_account_s_limit_is_left_alone() {
        assert_eq!(edited(POLICY, "b", "9MiB"), None);
        assert_eq!(edited(POLICY, "d", "9MiB"), None);
    }

    #[test]
    fn the_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("p.toml");
        fs::write(&policy, POLICY).unwrap();
        assert_eq!(set_limit(&policy, "c", "9MiB").unwrap().number, 11);
        assert!(
            fs::read_to_string(&policy)
                .unwrap()
                .ends_with("\"c\"\nlimit = \"9MiB\"\n")
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
