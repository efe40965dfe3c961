//! `throughline check`: would the provider refuse this request?

use serde::Serialize;
use throughline_formats::read;
use throughline_transcript::catalogue::Catalogue;
use throughline_transcript::check::{CheckOptions, Profile, Report, Severity, check, check_text};
use throughline_transcript::json::Raw;
use throughline_transcript::wire::Wire;

use crate::arguments;
use crate::convert::place;
use crate::error::{Ending, Failure, Kind};
use crate::input::{self, Input};
use crate::output::Console;
use crate::progress::Progress;
use crate::terminal::harmless;
use crate::{model, words};

pub(crate) fn run(arguments: &arguments::Check, console: &Console) -> Result<Ending, Failure> {
    let catalogue = model::catalogue(arguments.catalogue.as_deref())?;
    if let Some(name) = &arguments.model
        && catalogue.find(name).is_none()
    {
        return Err(
            Failure::new(Kind::Arguments, format!("the model {name:?} is not known"))
                .hint("`throughline models` lists the known ones; --catalogue FILE adds yours"),
        );
    }
    let progress = Progress::new(console);
    let input = input::open(&arguments.file, console, &progress)?;
    for warning in &input.warnings {
        console.warning(warning);
    }
    for piece in &input.text.skipped {
        // A provider gets the bytes as they are, so this is more than a matter of reading.
        console.warning(&format!(
            "{}: line {}: {}",
            input.name, piece.line, piece.reason
        ));
    }
    let wire = arguments.wire.as_ref().and_then(|name| name.parse().ok());
    let checker = Checker {
        arguments,
        catalogue: &catalogue,
        wire,
    };
    let bodies = checker.bodies(&input)?;
    progress.finish();
    if arguments.json {
        print_json(&input.name, &bodies, console)?;
    } else {
        print(&input.name, &bodies, console)?;
    }
    Ok(if bodies.iter().all(|body| body.report.is_valid()) {
        Ending::Done
    } else {
        Ending::Invalid
    })
}

/// One body and what was found in it.
struct Body {
    /// Its line, in a file with one body a line.
    line: Option<usize>,
    /// The model that it names.
    model: Option<String>,
    report: Report,
}

struct Checker<'a> {
    arguments: &'a arguments::Check,
    catalogue: &'a Catalogue,
    wire: Option<Wire>,
}

impl Checker<'_> {
    fn bodies(&self, input: &Input) -> Result<Vec<Body>, Failure> {
        let text = &input.text.text;
        if text.trim().is_empty() {
            return Err(Failure::new(Kind::Input, "the input is empty")
                .at(&input.name)
                .hint("give a request body"));
        }
        let whole = Raw::parse(text.clone());
        if let Ok(body) = &whole {
            return Ok(vec![self.body(body, None, input)?]);
        }
        let lines = || {
            text.lines()
                .enumerate()
                .filter(|(_, line)| !line.trim().is_empty())
        };
        let is_jsonl = lines()
            .next()
            .is_some_and(|(_, line)| Raw::parse(line.to_owned()).is_ok());
        match (is_jsonl, self.wire, whole) {
            (true, _, _) => lines()
                .map(|(index, line)| match Raw::parse(text.slice_ref(line)) {
                    Ok(body) => self.body(&body, Some(index + 1), input),
                    Err(_) => Ok(Body {
                        line: Some(index + 1),
                        model: None,
                        report: check_text(
                            line,
                            self.wire.unwrap_or(Wire::Anthropic),
                            &CheckOptions::default(),
                        ),
                    }),
                })
                .collect(),
            (false, Some(wire), _) => Ok(vec![Body {
                line: None,
                model: None,
                report: check_text(text, wire, &CheckOptions::default()),
            }]),
            (false, None, Ok(_)) => Ok(Vec::new()),
            (false, None, Err(error)) => Err(Failure::new(
                Kind::Input,
                format!("the input is not JSON: {error}"),
            )
            .at(&input.name)
            .hint(other_format(input).unwrap_or_else(|| {
                "give a request body, or a file with one body a line".to_owned()
            }))),
        }
    }

    fn body(&self, body: &Raw, line: Option<usize>, input: &Input) -> Result<Body, Failure> {
        let Some(wire) = self.wire.or_else(|| Wire::detect(body)) else {
            let place = line
                .map(|line| format!("line {line}: "))
                .unwrap_or_default();
            return Err(Failure::new(
                Kind::Input,
                format!("{}: {place}this is not a request body: there is neither `messages` nor `input`", input.name),
            )
            .hint(other_format(input).unwrap_or_else(|| "if it is one, name its format with --wire".to_owned())));
        };
        let model = body.string_field("model");
        let name = self.arguments.model.as_ref().or(model.as_ref());
        let betas: Vec<&str> = self.arguments.betas.iter().map(String::as_str).collect();
        let options = CheckOptions {
            model: name.and_then(|name| self.catalogue.find(name)),
            betas: (!betas.is_empty()).then_some(&betas[..]),
            anthropic_version: self.arguments.anthropic_version.as_deref(),
            profile: if self.arguments.strict_alternation {
                Profile::StrictAlternation
            } else {
                Profile::Provider
            },
            ..CheckOptions::default()
        };
        Ok(Body {
            line,
            report: check(body, wire, &options),
            model,
        })
    }
}

/// What to do with a file that is a session.
fn other_format(input: &Input) -> Option<String> {
    let source = read::read(&input.text, None).ok()?;
    source.format.parse::<Wire>().is_err().then(|| {
        format!(
            "this is a session ({}); make a request of it first: throughline convert {} --to anthropic | throughline check -",
            source.format, input.name
        )
    })
}

fn print(name: &str, bodies: &[Body], console: &Console) -> Result<(), Failure> {
    let mut text = String::new();
    for body in bodies {
        let at = body
            .line
            .map(|line| format!("line {line}: "))
            .unwrap_or_default();
        for finding in &body.report.findings {
            let line = format!(
                "{at}{}: {} at {}: {}",
                severity(finding.severity),
                finding.code,
                place(&finding.path),
                finding.message
            );
            text.push_str(&harmless(&line).replace('\n', " "));
            text.push('\n');
        }
        if body.report.omitted > 0 {
            text.push_str(&format!(
                "{at}and {} more\n",
                words::counted(body.report.omitted, "finding")
            ));
        }
    }
    text.push_str(&verdict(name, bodies));
    console.print(&text)
}

fn verdict(name: &str, bodies: &[Body]) -> String {
    let invalid = bodies.iter().filter(|body| !body.report.is_valid()).count();
    let wire = bodies.first().map_or("", |body| body.report.wire.name());
    let warnings: usize = bodies
        .iter()
        .map(|body| body.report.findings.len() - body.report.errors().count())
        .sum();
    let warnings = match warnings {
        0 => String::new(),
        count => format!(", {}", words::counted(count, "warning")),
    };
    match (bodies, invalid) {
        ([_], 0) => format!("{name}: valid ({wire}{warnings})\n"),
        ([_], _) => format!("{name}: invalid ({wire}{warnings})\n"),
        (_, 0) => format!(
            "{name}: {} valid{warnings}\n",
            words::counted(bodies.len(), "request")
        ),
        (_, count) => {
            format!(
                "{name}: {count} of {} invalid{warnings}\n",
                words::counted(bodies.len(), "request")
            )
        }
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// The schema `throughline.check/1`, described in the help of the command.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: &'a str,
    valid: bool,
    bodies: Vec<BodyForm<'a>>,
}

#[derive(Serialize)]
struct BodyForm<'a> {
    line: Option<usize>,
    wire: &'static str,
    model: Option<&'a str>,
    valid: bool,
    omitted: usize,
    findings: Vec<FindingForm<'a>>,
}

#[derive(Serialize)]
struct FindingForm<'a> {
    code: &'static str,
    severity: &'static str,
    path: &'a str,
    message: &'a str,
    source: &'static str,
}

fn print_json(name: &str, bodies: &[Body], console: &Console) -> Result<(), Failure> {
    let document = Document {
        schema: "throughline.check/1",
        file: name,
        valid: bodies.iter().all(|body| body.report.is_valid()),
        bodies: bodies
            .iter()
            .map(|body| BodyForm {
                line: body.line,
                wire: body.report.wire.name(),
                model: body.model.as_deref(),
                valid: body.report.is_valid(),
                omitted: body.report.omitted,
                findings: body
                    .report
                    .findings
                    .iter()
                    .map(|finding| FindingForm {
                        code: finding.code,
                        severity: severity(finding.severity),
                        path: &finding.path,
                        message: &finding.message,
                        source: finding.source,
                    })
                    .collect(),
            })
            .collect(),
    };
    console.print_json(&document)
}
