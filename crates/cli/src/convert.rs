//! `throughline convert`: a conversation as a request of another format.

use throughline_formats::convert::{self, Loss, to_jsonl};
use throughline_transcript::catalogue::{Catalogue, Model};
use throughline_transcript::check::{CheckOptions, check_text};
use throughline_transcript::wire::Wire;

use crate::arguments::{self, ConvertTo};
use crate::error::{Ending, Failure, Kind};
use crate::output::Console;
use crate::progress::Progress;
use crate::{output, selection, words};

/// How many findings an error names.
const FINDINGS_SHOWN_MAX: usize = 5;

pub(crate) fn run(arguments: &arguments::Convert, console: &Console) -> Result<Ending, Failure> {
    output::check_place(arguments.output.as_deref())?;
    let progress = Progress::new(console);
    let (source, input) = selection::read(&arguments.source, console, &progress)?;
    let session = arguments.session.as_deref();
    let conversation = selection::choose_begun(&source, &input, session, console)?;
    let wire = match arguments.to {
        ConvertTo::Anthropic => Wire::Anthropic,
        ConvertTo::OpenaiChat => Wire::OpenAiChat,
        ConvertTo::OpenaiResponses => Wire::OpenAiResponses,
        ConvertTo::Jsonl => {
            output::write(arguments.output.as_deref(), &to_jsonl(conversation))?;
            return Ok(Ending::Done);
        }
    };
    let options = convert::Options {
        model: arguments.model.clone(),
        ..convert::Options::default()
    };
    let converted = convert::convert(conversation, wire, &options);
    tell_losses(&converted.losses, console);
    let name = arguments.model.as_deref().or(conversation.model.as_deref());
    let known = name.and_then(|name| Catalogue::embedded().find(name));
    let body = checked(converted.body, wire, known).map_err(|failure| failure.at(&input.name))?;
    output::write(arguments.output.as_deref(), &body)?;
    Ok(Ending::Done)
}

/// Says what could not be carried over.
pub(crate) fn tell_losses(losses: &[Loss], console: &Console) {
    for loss in losses {
        let place = match (loss.code, loss.count) {
            ("model", _) => "--model".to_owned(),
            (_, 1) => format!("messages[{}]", loss.message),
            (_, count) => format!(
                "{} times, first in messages[{}]",
                words::number(count as u64),
                loss.message
            ),
        };
        console.note(&format!("{}: {} ({place})", loss.code, loss.text));
    }
}

/// The body with a newline, if a provider would take it.
pub(crate) fn checked(
    mut body: String,
    wire: Wire,
    known: Option<&Model>,
) -> Result<String, Failure> {
    let options = CheckOptions {
        model: known,
        ..CheckOptions::default()
    };
    let report = check_text(&body, wire, &options);
    if !report.is_valid() {
        let findings: Vec<String> = report
            .errors()
            .take(FINDINGS_SHOWN_MAX)
            .map(|finding| {
                format!(
                    "\n  {} at {}: {}",
                    finding.code,
                    place(&finding.path),
                    finding.message
                )
            })
            .collect();
        return Err(Failure::new(
            Kind::NothingToDo,
            format!("the request would be refused and is not written:{}", findings.concat()),
        )
        .hint("if the source has these faults itself (`throughline check` tells), fix them there; otherwise this is a bug in throughline, please report it"));
    }
    body.push('\n');
    Ok(body)
}

/// The path of a finding; the body as a whole has none.
pub(crate) fn place(path: &str) -> &str {
    if path.is_empty() { "the body" } else { path }
}
