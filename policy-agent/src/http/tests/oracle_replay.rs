//! The fuzz target's corpus and random bytes, on the stable toolchain.

use std::path::Path;

use proptest::prelude::*;

use super::super::oracle::check;

#[test]
fn the_fuzz_corpus_is_answered_well() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/corpus/http_request");
    let entries = std::fs::read_dir(&corpus).expect("the committed corpus");
    let mut inputs = 0;
    for entry in entries {
        check(&std::fs::read(entry.unwrap().path()).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 20, "only {inputs} inputs in {}", corpus.display());
}

proptest! {
    #[test]
    fn any_bytes_are_answered_well(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes);
    }

    #[test]
    fn what_looks_like_a_request_is_answered_well(
        text in "(GET|HEAD|PUT) (http://[a-z:]{0,3})?/?(metrics|api/v1/accounts|-/ready)?[?#]?[a-z=]{0,4} HTTP/[012]\\.[01]\r\n((Host|Accept|Content-Length): ?[a-z0-9:.;=/*,]{0,12}\r\n){0,3}\r\n",
    ) {
        check(text.as_bytes());
    }
}
