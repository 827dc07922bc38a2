//! The fuzz target's corpus, whole and mutated, on the stable toolchain.

use std::path::Path;

use proptest::prelude::*;

use policy_rewrite::ClassFile;

use super::{check, rewritten};
use crate::Left;

fn corpus() -> Vec<Vec<u8>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/corpus/class_file");
    let mut inputs = Vec::new();
    for entry in std::fs::read_dir(&corpus).expect("the committed corpus") {
        let path = entry.expect("a readable folder").path();
        inputs.push(std::fs::read(&path).expect("a readable input"));
    }
    inputs
}

#[test]
fn the_fuzz_corpus_holds() {
    let corpus = corpus();
    assert!(corpus.len() >= 20, "only {} inputs", corpus.len());
    for input in &corpus {
        check(input);
    }
}

/// Modified UTF-8 of the class file's own pool goes into its new constants as it is.
#[test]
fn names_beyond_ascii_are_rewritten_too() {
    let mut seen = 0;
    for input in corpus() {
        let named = ClassFile::parse(&input).is_ok_and(|class| !class.name().is_ascii());
        if named && input.starts_with(&[0xca, 0xfe, 0xba, 0xbe]) {
            let outcome = rewritten(&input, Some(7), (true, true, true), 7);
            assert!(outcome.bytes.is_some());
            assert!(
                (outcome.left.iter()).all(|left| *left == Left::NoNumber),
                "{:?}",
                outcome.left
            );
            seen += 1;
        }
    }
    assert!(seen >= 2, "{seen}");
}

proptest! {
    #[test]
    fn class_files_with_other_bytes_hold(
        chosen in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let corpus = corpus();
        let mut bytes = corpus[chosen.index(corpus.len())].clone();
        for (at, value) in flips {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
        }
        check(&bytes);
    }

    #[test]
    fn arbitrary_bytes_hold(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes);
        let class_file = [&[0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 61][..], &bytes].concat();
        check(&class_file);
    }
}
