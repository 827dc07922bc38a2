//! A bound on nesting, checked on the tokens before a tree is built.
//!
//! The TOML reader bounds brackets and dotted keys each, but not their product: inline
//! tables within inline tables, each behind a long dotted key, make a file of a few
//! kilobytes into a tree thousands of tables deep. Such a tree is dropped by recursion,
//! which overruns the stack of a thread, and with it the host JVM.

use std::ops::Range;

use toml_parser::Source;
use toml_parser::lexer::TokenKind;

/// Most brackets open at a time; the contract needs three.
const MAX_OPEN_BRACKETS: usize = 8;

/// Most dots in one key; the contract needs one.
const MAX_KEY_DOTS: usize = 8;

/// The first place where `text` nests deeper than any policy does.
///
/// A tree is then at most as deep as the product of both bounds.
pub(crate) fn too_deep(text: &str) -> Option<Range<usize>> {
    let mut open = Vec::with_capacity(MAX_OPEN_BRACKETS + 1);
    let mut dots = 0;
    for token in Source::new(text).lex() {
        match token.kind() {
            TokenKind::LeftSquareBracket => open.push(TokenKind::RightSquareBracket),
            TokenKind::LeftCurlyBracket => open.push(TokenKind::RightCurlyBracket),
            // A bracket that closes nothing is skipped by the reader's recovery: it must
            // not hide one that opened.
            closing if open.last() == Some(&closing) => {
                open.pop();
            }
            _ => {}
        }
        match token.kind() {
            TokenKind::Dot => dots += 1,
            TokenKind::Whitespace
            | TokenKind::Atom
            | TokenKind::BasicString
            | TokenKind::LiteralString => {}
            _ => dots = 0,
        }
        if open.len() > MAX_OPEN_BRACKETS || dots > MAX_KEY_DOTS {
            return Some(token.span().start()..token.span().end());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_pass() {
        let text = "[[account]]\nname = 'a.b.c.d.e.f.g.h.i.j.k'\npackages = ['a', '[[[[[[[[[']\n\
                    # {{{{{{{{{{{{{{{{\naccount = [{packages = ['a']}]\nagent.listen = 'off'";
        assert_eq!(too_deep(text), None);
        assert_eq!(too_deep(&"[a]\n".repeat(100)), None);
        assert_eq!(too_deep(&"1.5,".repeat(100)), None);
    }

    #[test]
    fn depth_is_found_where_it_begins() {
        assert_eq!(too_deep(&format!("a={}", "[".repeat(9))), Some(10..11));
        assert_eq!(too_deep(&format!("a={}", "{".repeat(9))), Some(10..11));
        assert_eq!(too_deep(&"{]".repeat(9)), Some(16..17));
        assert_eq!(too_deep("a.b.c.d.e.f.g.h.i.j=1"), Some(17..18));
    }

    #[test]
    fn the_deepest_tree_let_through_fits_a_small_stack() {
        let key = ["a"; MAX_KEY_DOTS + 1].join(".");
        let text = format!(
            "[{key}]\n{}{key}=1{}",
            format!("{key}={{").repeat(MAX_OPEN_BRACKETS),
            "}".repeat(MAX_OPEN_BRACKETS)
        );
        assert_eq!(too_deep(&text), None);
        std::thread::Builder::new()
            .stack_size(256 << 10)
            .spawn(move || assert!(crate::parse(&text).policy.is_none()))
            .unwrap()
            .join()
            .unwrap();
    }

    #[test]
    fn a_tree_that_would_overrun_the_stack_is_refused() {
        let key = ["a"; 79].join(".");
        let text = format!("{}a=1{}", format!("{key}={{").repeat(79), "}".repeat(79));
        let parsed = crate::parse(&text);
        assert_eq!(
            parsed.diagnostics[0].message,
            "the file is nested too deeply"
        );
    }
}
