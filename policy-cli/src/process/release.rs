//! The `release` file of a Java home: vendor and version.

/// The vendor and the version of a JDK, from the `release` file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Release {
    /// `JAVA_VERSION`: `17.0.15`.
    pub(crate) version: String,
    /// `IMPLEMENTOR`: `Eclipse Adoptium`; empty if absent.
    pub(crate) vendor: String,
    /// `JVM_VARIANT`: `Hotspot`, `Openj9`; empty if absent.
    pub(crate) variant: String,
}

impl Release {
    /// Reads the text: lines of `KEY="value"`.
    pub(crate) fn parse(text: &str) -> Release {
        let mut release = Release::default();
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            let value = value.trim().trim_matches('"').to_owned();
            match key.trim() {
                "JAVA_VERSION" => release.version = value,
                "IMPLEMENTOR" => release.vendor = value,
                "JVM_VARIANT" => release.variant = value,
                _ => {}
            }
        }
        release
    }

    /// The feature release: 17 of `17.0.15`, 8 of `1.8.0_392`.
    pub(crate) fn feature(&self) -> Option<u32> {
        let version = self.version.strip_prefix("1.").unwrap_or(&self.version);
        let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_vendors_files_are_read() {
        let debian = "IMPLEMENTOR=\"Debian\"\nJAVA_VERSION=\"17.0.15\"\nLIBC=\"gnu\"\nMODULES=\"java.base\"\n";
        let release = Release::parse(debian);
        assert_eq!(
            (release.feature(), release.vendor.as_str()),
            (Some(17), "Debian")
        );
        let temurin =
            "IMPLEMENTOR=\"Eclipse Adoptium\"\nJAVA_VERSION=\"25.0.3\"\nJVM_VARIANT=\"Hotspot\"\n";
        let release = Release::parse(temurin);
        assert_eq!(release.feature(), Some(25));
        assert_eq!(release.variant, "Hotspot");
    }

    #[test]
    fn old_early_and_broken_versions() {
        let feature = |text: &str| Release::parse(&format!("JAVA_VERSION=\"{text}\"")).feature();
        assert_eq!(feature("1.8.0_392"), Some(8));
        assert_eq!(feature("26-ea"), Some(26));
        assert_eq!(feature("9"), Some(9));
        assert_eq!(feature(""), None);
        assert_eq!(feature("x"), None);
        assert_eq!(feature("99999999999"), None);
        assert_eq!(Release::parse("no equals sign\n").feature(), None);
    }
}
