//! The tree of contexts as text: callers above what they call, those with most objects or executed bytecodes first.
//!
//! An answer may name any place as the caller of a context; one that does not stand before it is taken as the root.

use clap::ValueEnum;
use std::io::{self, Write};

use crate::targets::{self, Asked};
use heapwarden_client::live::{Context, Contexts};
use heapwarden_terminal::printable;
use heapwarden_terminal::table::amount;

/// The figure by which contexts are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// The objects and arrays that were allocated
    Objects,
    /// The instructions that were executed
    Bytecodes,
}

/// Widest method and widest list of types, in columns.
const MAX_METHOD_COLUMNS: usize = 110;
const MAX_TYPES_COLUMNS: usize = 110;
/// Most types of a context that are listed, and most patterns of packages.
const MAX_TYPES: usize = 6;
const MAX_PACKAGES: usize = 4;
/// From this depth on lines are indented no further.
const MAX_INDENT: usize = 30;

/// Writes each answer to `out`, and to `err` why others could not be read.
pub(super) fn write(
    found: &[Asked<Contexts>],
    by: By,
    limit: usize,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<()> {
    targets::write_each(found, out, err, |_, address, answer, out| {
        let contexts = &answer.document;
        let tree = Tree::of(&contexts.contexts, by);
        writeln!(out, "{address}: {}", headline(contexts, &tree))?;
        tree.write(limit, out)?;
        for of in contexts
            .overflow
            .iter()
            .filter(|of| of.calls + of.objects > 0)
        {
            writeln!(
                out,
                "  no room ({}): {} calls, {} objects counted for a context above",
                printable::fitted(&of.reason, MAX_METHOD_COLUMNS),
                amount::count(of.calls),
                amount::count(of.objects)
            )?;
        }
        Ok(())
    })
}

fn headline(contexts: &Contexts, tree: &Tree<'_>) -> String {
    let packages = match contexts.packages.len() {
        0 => "the policy in force wants no contexts".to_owned(),
        count => {
            let named = contexts.packages.iter().take(MAX_PACKAGES);
            let named: Vec<_> = named
                .map(|one| printable::fitted_name(one, MAX_METHOD_COLUMNS))
                .collect();
            let more = match count.saturating_sub(MAX_PACKAGES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("contexts of {}{more}", named.join(", "))
        }
    };
    let total = tree.totals.first().copied().unwrap_or_default();
    let count = tree.contexts.len().saturating_sub(1);
    format!(
        "{packages}; {} {} in {} contexts",
        amount::count(total),
        match tree.by {
            By::Objects => "objects",
            By::Bytecodes => "executed bytecodes",
        },
        amount::count(count as u64)
    )
}

struct Tree<'a> {
    contexts: &'a [Context],
    by: By,
    /// The figure by which contexts are listed, summed over a context and those beneath it.
    totals: Vec<u64>,
    /// By context, the largest total first.
    beneath: Vec<Vec<usize>>,
}

/// Objects and arrays that the context itself made, or bytecodes that it executed.
fn own(context: &Context, by: By) -> u64 {
    if by == By::Bytecodes {
        return context.bytecodes.unwrap_or_default();
    }
    let objects = context.objects.iter().map(|of| of.objects);
    let arrays = context.arrays.iter().map(|of| of.arrays);
    objects.chain(arrays).fold(0, u64::saturating_add)
}

impl<'a> Tree<'a> {
    fn of(contexts: &'a [Context], by: By) -> Tree<'a> {
        let mut totals: Vec<u64> = contexts.iter().map(|one| own(one, by)).collect();
        let mut beneath = vec![Vec::new(); contexts.len()];
        for (place, context) in contexts.iter().enumerate().skip(1).rev() {
            let above = context.parent.map_or(0, |above| above as usize);
            let above = if above < place { above } else { 0 };
            totals[above] = totals[above].saturating_add(totals[place]);
            beneath[above].push(place);
        }
        for places in &mut beneath {
            places.sort_by_key(|place| (std::cmp::Reverse(totals[*place]), *place));
        }
        Tree {
            contexts,
            by,
            totals,
            beneath,
        }
    }

    fn write(&self, limit: usize, out: &mut dyn Write) -> io::Result<()> {
        let (mut listed, mut omitted) = (0, 0_u64);
        // Those still to be written, the next one last.
        let mut waiting = vec![(0, 0)];
        while let Some((place, depth)) = waiting.pop() {
            let Some(context) = self.contexts.get(place) else {
                break;
            };
            let allocated = |place: &&usize| self.totals[**place] > 0;
            let beneath = self.beneath[place].iter().filter(allocated).rev();
            waiting.extend(beneath.map(|place| (*place, depth + 1)));
            if place == 0 && own(context, self.by) == 0 {
                continue;
            }
            if listed == limit {
                omitted += 1;
                continue;
            }
            listed += 1;
            self.write_context(place, depth, out)?;
        }
        match omitted {
            0 => Ok(()),
            _ => writeln!(out, "  and {} more contexts", amount::count(omitted)),
        }
    }

    fn write_context(&self, place: usize, depth: usize, out: &mut dyn Write) -> io::Result<()> {
        let context = &self.contexts[place];
        let method = match &*context.method {
            "" => "(outside of these packages)".into(),
            method => printable::fitted(method, MAX_METHOD_COLUMNS),
        };
        let indent = "  ".repeat(depth.clamp(1, MAX_INDENT) - 1);
        let total = amount::count(self.totals[place]);
        writeln!(out, "  {total:>12}  {indent}{method}")?;
        let types = match self.by {
            By::Objects => types(context),
            By::Bytecodes => calls(context),
        };
        match types.is_empty() {
            true => Ok(()),
            false => writeln!(
                out,
                "  {:>12}  {indent}  {}",
                "",
                printable::fitted(&types, MAX_TYPES_COLUMNS)
            ),
        }
    }
}

/// `7 calls with 1200 of its own`.
fn calls(context: &Context) -> String {
    let Some(calls) = context.calls else {
        return String::new();
    };
    let own = context.bytecodes.unwrap_or_default();
    let (calls, own) = (amount::count(calls), amount::count(own));
    format!("{calls} calls with {own} of its own")
}

/// Returns the objects and arrays that a context made, most first: `3 com.acme.Item, 2 int[] with 40`.
fn types(context: &Context) -> String {
    let objects = (context.objects.iter()).map(|of| {
        (
            of.objects,
            format!("{} {}", amount::count(of.objects), of.class),
        )
    });
    let arrays = context.arrays.iter().map(|of| {
        let (arrays, elements) = (amount::count(of.arrays), amount::count(of.elements_total));
        let text = format!("{arrays} {}[] with {elements}", of.elements);
        (of.arrays, text)
    });
    let mut all: Vec<(u64, String)> = objects.chain(arrays).collect();
    all.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let more = all.len().saturating_sub(MAX_TYPES);
    let listed: Vec<String> = all
        .into_iter()
        .take(MAX_TYPES)
        .map(|(_, text)| text)
        .collect();
    match more {
        0 => listed.join(", "),
        _ => format!("{} and {more} more types", listed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::Answer;

    fn written(text: &str, limit: usize) -> String {
        written_by(text, By::Objects, limit)
    }

    fn written_by(text: &str, by: By, limit: usize) -> String {
        let found = [Asked::at("9464", Ok(Answer::of(text, None)))];
        let (mut out, mut err) = (Vec::new(), Vec::new());
        write(&found, by, limit, &mut out, &mut err).unwrap();
        assert!(err.is_empty());
        String::from_utf8(out).unwrap()
    }

    const TEXT: &str = r#"{"packages":["com.acme.*"],"contexts":[
        {"parent":null,"method":"","objects":[],"arrays":[]},
        {"parent":0,"method":"com.acme.Web.get()","objects":[{"class":"com.acme.Page","objects":2}],"arrays":[]},
        {"parent":0,"method":"com.acme.Idle.run()","objects":[],"arrays":[]},
        {"parent":1,"method":"com.acme.Cart.add(int)","objects":[],
         "arrays":[{"elements":"int","arrays":3000,"elements_total":12000}]},
        {"parent":9,"method":"com.acme.\u001bX.y()","objects":[{"class":"com.acme.Z","objects":1}],"arrays":[]}],
        "overflow":[{"reason":"depth","calls":7,"objects":5},{"reason":"contexts","calls":0,"objects":0}]}"#;

    #[test]
    fn callers_stand_above_what_they_call() {
        let expected = "\
127.0.0.1:9464: contexts of com.acme.*; 3003 objects in 4 contexts
          3002  com.acme.Web.get()
                  2 com.acme.Page
          3000    com.acme.Cart.add(int)
                    3000 int[] with 12000
             1  com.acme.\\u{1b}X.y()
                  1 com.acme.Z
  no room (depth): 7 calls, 5 objects counted for a context above
";
        assert_eq!(written(TEXT, 10), expected);
        let short = written(TEXT, 1);
        assert!(short.contains("and 2 more contexts"), "{short}");
    }

    #[test]
    fn executed_bytecodes_have_an_order_of_their_own() {
        let text = r#"{"packages":["com.acme.*"],"contexts":[
            {"parent":null,"method":"","objects":[],"arrays":[]},
            {"parent":0,"method":"com.acme.Web.get()","calls":2,"bytecodes":30,
             "objects":[{"class":"com.acme.Page","objects":2}],"arrays":[]},
            {"parent":0,"method":"com.acme.Main.run()","calls":null,"bytecodes":null,"objects":[],"arrays":[]},
            {"parent":2,"method":"com.acme.Sum.of(int)","calls":1,"bytecodes":9009,"objects":[],"arrays":[]}]}"#;
        let expected = "\
127.0.0.1:9464: contexts of com.acme.*; 9039 executed bytecodes in 3 contexts
          9009  com.acme.Main.run()
          9009    com.acme.Sum.of(int)
                    1 calls with 9009 of its own
            30  com.acme.Web.get()
                  2 calls with 30 of its own
";
        assert_eq!(written_by(text, By::Bytecodes, 10), expected);
    }

    #[test]
    fn an_empty_answer_says_that_nothing_is_counted() {
        let empty = written(r#"{"packages":[],"contexts":[]}"#, 10);
        assert_eq!(
            empty,
            "127.0.0.1:9464: the policy in force wants no contexts; 0 objects in 0 contexts\n"
        );
    }
}
