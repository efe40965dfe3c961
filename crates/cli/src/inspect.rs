//! `throughline inspect`: what is in a session file.
//!
//! [`report`] finds it out, [`text`] shows it to people; the JSON is the report itself.

mod pairs;
mod report;
mod text;

use throughline_transcript::conversation::Conversation;

use self::report::{Report, Session};
use crate::arguments;
use crate::error::{Ending, Failure};
use crate::output::Console;
use crate::progress::Progress;
use crate::{model, selection};

pub(crate) fn run(arguments: &arguments::Inspect, console: &Console) -> Result<Ending, Failure> {
    let counter = model::counter(&arguments.model, console)?;
    let progress = Progress::new(console);
    let (source, input) = selection::read(&arguments.source, console, &progress)?;
    progress.working("counting", input.text.text.len());
    let session =
        |index: usize, conversation: &Conversation| Session::of(index + 1, conversation, &counter);
    let report = |sessions| Report {
        schema: "throughline.inspect/1",
        file: &input.name,
        format: source.format,
        bytes: input.text.text.len(),
        counted_in: model::unit(&arguments.model, &counter),
        skipped: source.skipped.iter().map(report::SkippedRow::of).collect(),
        sessions,
    };

    if arguments.json {
        let sessions = match &arguments.session {
            Some(wanted) => {
                let (number, conversation) =
                    selection::choose(&source, &input.name, Some(wanted), "", console)?;
                vec![session(number - 1, conversation)]
            }
            None => source
                .conversations
                .iter()
                .enumerate()
                .map(|(index, conversation)| session(index, conversation))
                .collect(),
        };
        progress.finish();
        console.print_json(&report(sessions))?;
        return Ok(Ending::Done);
    }

    // One conversation is shown in full; several are listed, so that one can be chosen.
    let roots = selection::roots(&source);
    let shown = match (&arguments.session, &roots[..]) {
        (Some(wanted), _) => Some(selection::choose(
            &source,
            &input.name,
            Some(wanted),
            "",
            console,
        )?),
        (None, [only]) => Some((only + 1, &source.conversations[*only])),
        (None, _) => None,
    };
    let sessions = shown
        .map(|(number, conversation)| session(number - 1, conversation))
        .into_iter()
        .collect();
    progress.finish();
    let is_listed = arguments.session.is_none() && source.conversations.len() > 1;
    let list = is_listed.then(|| selection::rows(&source, |_| true));
    console.print(&text::write(&report(sessions), list, console))?;
    Ok(Ending::Done)
}
