//! PromQL expressions against what was scraped: every metric named must be there, and every label
//! used must be one that it has.

use crate::scrape::Metrics;
use promql_parser::label::Labels;
use promql_parser::parser::{self, BinaryExpr, Call, Expr, VectorSelector};
use std::collections::{BTreeMap, BTreeSet};

/// Labels that Prometheus adds to all that it scrapes.
const OF_THE_TARGET: [&str; 2] = ["job", "instance"];

/// Names of labels.
pub type LabelNames = BTreeSet<String>;

/// Metrics that are there, each with its labels.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary(BTreeMap<String, LabelNames>);

impl Vocabulary {
    /// Collects the metrics that Prometheus has from these scrapes, and `up`, each with the labels of the target as
    /// well.
    #[must_use]
    pub fn of(scrapes: &[Metrics]) -> Self {
        let target: LabelNames = OF_THE_TARGET.map(str::to_owned).into();
        let mut metrics = BTreeMap::from([("up".to_owned(), target.clone())]);
        for scrape in scrapes {
            for name in scrape.names() {
                for (labels, _) in scrape.series(name) {
                    metrics
                        .entry(name.to_owned())
                        .or_insert_with(|| target.clone())
                        .extend(labels.keys().cloned());
                }
            }
        }
        Self(metrics)
    }

    /// With a metric that is published only where something has happened.
    #[must_use]
    pub fn with(mut self, metric: &str, labels: &[&str]) -> Self {
        let own = labels.iter().chain(&OF_THE_TARGET);
        let labels = self.0.entry(metric.to_owned()).or_default();
        labels.extend(own.map(ToString::to_string));
        self
    }

    /// The labels that the expression's series may carry.
    ///
    /// # Errors
    /// If it isn't PromQL, or names a metric or a label that isn't there.
    pub fn labels(&self, expression: &str) -> Result<LabelNames, String> {
        self.of_expression(&parser::parse(expression)?)
    }

    fn of_expression(&self, expression: &Expr) -> Result<LabelNames, String> {
        match expression {
            Expr::VectorSelector(selector) => self.of_selector(selector),
            Expr::MatrixSelector(matrix) => self.of_selector(&matrix.vs),
            Expr::Aggregate(aggregate) => {
                let inner = self.of_expression(&aggregate.expr)?;
                match &aggregate.modifier {
                    Some(by) if by.is_include() => known(by.labels(), &inner),
                    Some(without) => {
                        let gone = known(without.labels(), &inner)?;
                        Ok(inner.difference(&gone).cloned().collect())
                    }
                    // topk and its like have a parameter and keep the series as they are.
                    None if aggregate.param.is_some() => Ok(inner),
                    None => Ok(LabelNames::new()),
                }
            }
            Expr::Binary(binary) => self.of_binary(binary),
            Expr::Unary(unary) => self.of_expression(&unary.expr),
            Expr::Paren(paren) => self.of_expression(&paren.expr),
            Expr::Subquery(subquery) => self.of_expression(&subquery.expr),
            Expr::Call(call) => {
                let mut labels = LabelNames::new();
                for argument in &call.args.args {
                    labels.extend(self.of_expression(argument)?);
                }
                labels.extend(made(call));
                Ok(labels)
            }
            Expr::NumberLiteral(_) | Expr::StringLiteral(_) => Ok(LabelNames::new()),
            Expr::Extension(_) => Err("an expression of an unknown kind".to_owned()),
        }
    }

    fn of_selector(&self, selector: &VectorSelector) -> Result<LabelNames, String> {
        let name = selector
            .name
            .as_deref()
            .ok_or("a selector without a name")?;
        let labels = self
            .0
            .get(name)
            .ok_or_else(|| format!("{name} is not scraped"))?;
        let matchers = selector.matchers.matchers.iter();
        for matcher in matchers.chain(selector.matchers.or_matchers.iter().flatten()) {
            if !labels.contains(&matcher.name) {
                return Err(format!("{name} has no label {}", matcher.name));
            }
        }
        Ok(labels.clone())
    }

    fn of_binary(&self, binary: &BinaryExpr) -> Result<LabelNames, String> {
        let left = self.of_expression(&binary.lhs)?;
        let right = self.of_expression(&binary.rhs)?;
        if let Some(modifier) = &binary.modifier {
            if let Some(matching) = &modifier.matching {
                known(matching.labels(), &left)?;
                known(matching.labels(), &right)?;
            }
            if let Some(grouped) = modifier.card.labels() {
                known(grouped, &left.union(&right).cloned().collect())?;
            }
        }
        Ok(left.union(&right).cloned().collect())
    }
}

/// The label that a function gives its series.
fn made(call: &Call) -> Option<String> {
    match (call.func.name, call.args.args.get(1)?.as_ref()) {
        ("label_join" | "label_replace", Expr::StringLiteral(label)) => Some(label.val.clone()),
        _ => None,
    }
}

fn known(used: &Labels, there: &LabelNames) -> Result<LabelNames, String> {
    let used: LabelNames = used.labels.iter().cloned().collect();
    match used.difference(there).next() {
        Some(label) => Err(format!("no label {label} among {there:?}")),
        None => Ok(used),
    }
}

#[cfg(test)]
mod tests {
    use super::Vocabulary;
    use crate::scrape::Metrics;

    const SCRAPE: &str = "# HELP a_bytes A.\n# TYPE a_bytes gauge\na_bytes{account=\"x\"} 1\n";

    #[test]
    fn labels_follow_the_expression() {
        let there = Vocabulary::of(&[Metrics::parse(SCRAPE).expect("valid")]);
        let labels = |text: &str| there.labels(text).map(|found| found.into_iter().collect());
        assert_eq!(
            labels("sum by (account) (rate(a_bytes[1m]))"),
            Ok(vec!["account".to_owned()])
        );
        assert_eq!(labels("sum(a_bytes)"), Ok(vec![]));
        assert_eq!(
            labels("sum by (x) (label_join(a_bytes, \"x\", \"\", \"account\"))"),
            Ok(vec!["x".to_owned()])
        );
        assert_eq!(
            labels("topk(3, a_bytes{account=\"x\"})").map(|l| l.len()),
            Ok(3)
        );
    }

    #[test]
    fn what_is_not_scraped_is_an_error() {
        let there = Vocabulary::of(&[Metrics::parse(SCRAPE).expect("valid")]);
        for wrong in [
            "b_bytes",
            "a_bytes{reason=\"x\"}",
            "sum by (reason) (a_bytes)",
            "a_bytes / on (reason) up",
            "a_bytes * on (job) group_left (reason) up",
            "a_bytes /",
        ] {
            assert!(there.labels(wrong).is_err(), "{wrong}");
        }
    }
}
