//! Each rule has a body that breaks it and a body that keeps it.

mod anthropic;
mod anthropic_turns;
mod cases;
mod every_wire;
mod openai_chat;
mod openai_responses;
mod properties;

use super::*;
use crate::catalogue::Catalogue;
use std::collections::BTreeSet;

/// One rule at work.
struct Row {
    options: CheckOptions<'static>,
    wire: Wire,
    /// Code and path of the only finding.
    finding: (&'static str, &'static str),
    severity: Severity,
    broken: String,
    kept: String,
}

impl Row {
    fn error(
        wire: Wire,
        finding: (&'static str, &'static str),
        broken: String,
        kept: String,
    ) -> Self {
        Self {
            options: known(),
            wire,
            finding,
            severity: Severity::Error,
            broken,
            kept,
        }
    }

    fn warning(self) -> Self {
        Self {
            severity: Severity::Warning,
            ..self
        }
    }

    fn with(self, options: CheckOptions<'static>) -> Self {
        Self { options, ..self }
    }

    #[track_caller]
    fn run(&self) {
        let report = check_text(&self.broken, self.wire, &self.options);
        let found: Vec<_> = report
            .findings
            .iter()
            .map(|finding| (finding.code, finding.path.as_str(), finding.severity))
            .collect();
        assert_eq!(
            found,
            [(self.finding.0, self.finding.1, self.severity)],
            "{}",
            self.broken
        );
        assert_eq!(report.is_valid(), self.severity == Severity::Warning);
        let report = check_text(&self.kept, self.wire, &self.options);
        assert_eq!(report.findings, [], "{}", self.kept);
        assert!(report.is_valid());
    }
}

/// Everything is known and everything is allowed.
fn known() -> CheckOptions<'static> {
    model(|_| {})
}

/// As [`known`], with a model that differs.
fn model(change: impl FnOnce(&mut Model)) -> CheckOptions<'static> {
    const MODEL: &str = r#"
        [[model]]
        id = "m"
        window = 1_000_000
        output_max = 64_000

        [model.abilities]
        thinking = ["adaptive", "enabled", "disabled", "between_tools"]
        prefill = true
        mid_conversation_system = true
        sampling = true
        forced_tool_choice = true
        on_demand_compaction = true
    "#;
    let catalogue = Catalogue::empty().extended(MODEL).unwrap();
    let mut model = catalogue.find("m").unwrap().clone();
    change(&mut model);
    CheckOptions {
        model: Some(Box::leak(Box::new(model))),
        anthropic_version: Some("2023-06-01"),
        ..CheckOptions::default()
    }
}

fn tables() -> Vec<Row> {
    let mut rows = every_wire::table();
    rows.extend(anthropic::table());
    rows.extend(openai_chat::table());
    rows.extend(openai_responses::table());
    rows
}

#[test]
fn each_rule_refuses_breaches_and_accepts_valid_bodies() {
    for row in tables() {
        row.run();
    }
}

#[test]
fn no_rule_is_without_a_row() {
    let mut covered = BTreeSet::new();
    for row in tables() {
        for finding in check_text(&row.broken, row.wire, &row.options).findings {
            covered.insert((finding.code, finding.source));
        }
    }
    let empty = anthropic::marked_empty_text();
    for finding in check_text(&empty, Wire::Anthropic, &known()).findings {
        covered.insert((finding.code, finding.source));
    }
    let missing: Vec<_> = rules()
        .iter()
        .map(|rule| (rule.code, rule.source))
        .filter(|rule| !covered.contains(rule))
        .collect();
    assert_eq!(missing, []);
}

#[test]
fn messages_say_what_to_do_in_one_sentence() {
    for row in tables() {
        for finding in check_text(&row.broken, row.wire, &row.options).findings {
            assert!(!finding.message.ends_with('.'), "{}", finding.message);
            assert!(!finding.message.contains(". "), "{}", finding.message);
            assert!(finding.message.len() > 20, "{}", finding.message);
        }
    }
}
