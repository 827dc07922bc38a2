//! Finds the complaints in the output of a JVM.

/// Complaints of `-Xcheck:jni` and of the agent itself in a JVM's output.
///
/// Known noise of the JDK, which is not reported: a capacity warning (`JNI local refs: 33, exceeds
/// capacity: 32`) whose first stack line is a method of the JDK. `DiagnosticCommandImpl` gives it
/// on 17 with no agent at all, in every server that registers the platform's MBeans.
#[must_use]
pub fn complaints(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let warned = line.contains("WARNING in native method")
            || line.contains("FATAL ERROR in native method")
            || line.contains("WARNING: JNI local refs");
        let broken = line.contains("panicked at")
            || line.contains("A fatal error has been detected")
            || line.contains("Exception in thread");
        if broken || (warned && !is_noise_of_the_jdk(line, lines.get(at + 1))) {
            found.push(lines[at..lines.len().min(at + 4)].join("\n"));
        }
    }
    found
}

fn is_noise_of_the_jdk(line: &str, frame: Option<&&str>) -> bool {
    line.contains("WARNING: JNI local refs")
        && frame.is_some_and(|frame| {
            let frame = frame.trim_start();
            ["at java.", "at jdk.", "at sun.", "at com.sun.management."]
                .iter()
                .any(|package| frame.starts_with(package))
        })
}

#[cfg(test)]
mod tests {
    use super::complaints;

    #[test]
    fn a_jni_warning_is_a_complaint() {
        let output = "hello\nWARNING in native method: JNI call made without checking exceptions\n\
                      \tat Main.main(Main.java:3)\n";
        assert_eq!(complaints(output).len(), 1);
    }

    #[test]
    fn the_jdks_own_capacity_warning_is_not() {
        let jdk = "WARNING: JNI local refs: 33, exceeds capacity: 32\n\tat java.lang.System.x()\n";
        assert!(complaints(jdk).is_empty());
        let ours = "WARNING: JNI local refs: 33, exceeds capacity: 32\n\tat victim.Plain.main()\n";
        assert_eq!(complaints(ours).len(), 1);
    }

    #[test]
    fn a_panic_is_a_complaint() {
        assert_eq!(complaints("thread 'x' panicked at src/a.rs:1").len(), 1);
    }
}
