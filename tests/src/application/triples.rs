//! The data that is loaded into triple stores: a load is a graph of its own with so many statements.

use heapwarden_harness::http::Answer;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Statements of a load.
pub(super) const STATEMENTS: u32 = 500;

/// All graphs with their sizes, as a query's parameter.
pub(super) const CENSUS: &str = "query=SELECT%20%3Fg%20(COUNT(*)%20AS%20%3Fn)%20%7B%20GRAPH%20%3Fg%20%7B%20%3Fs%20%3Fp%20%3Fo%20%7D%20%7D%20GROUP%20BY%20%3Fg";

/// The name of a load's graph.
pub(super) fn graph(number: u32) -> String {
    format!("http://example.org/load/{number}")
}

/// A load as N-Quads, or as N-Triples if the request names the graph.
pub(super) fn statements(number: u32, names_graph: bool) -> String {
    let graph = if names_graph {
        format!("<{}> ", graph(number))
    } else {
        String::new()
    };
    let filler = "x".repeat(150);
    let mut body = String::new();
    for at in 0..STATEMENTS {
        let property = at % 7;
        writeln!(
            body,
            "<http://example.org/s{number}-{at}> <http://example.org/p{property}> \"{filler} {number} {at}\" {graph}."
        )
        .expect("a string takes it");
    }
    body
}

/// The statements of an answer in N-Triples or N-Quads.
pub(super) fn entries(answer: &Answer) -> u64 {
    let lines = answer.body.lines();
    lines.filter(|line| line.ends_with(" .")).count() as u64
}

/// The graphs of an answer to [`CENSUS`] in CSV.
pub(super) fn census(answer: &Answer) -> BTreeMap<u32, u64> {
    let line = |line: &str| {
        let (graph, count) = line.trim().rsplit_once(',')?;
        let number = graph.rsplit('/').next()?.parse().ok()?;
        Some((number, count.parse().ok()?))
    };
    answer.body.lines().filter_map(line).collect()
}
