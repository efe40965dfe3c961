//! `throughline sessions export`.

use throughline::memory::document::Memory;
use throughline::memory::render::restoring;
use throughline::store::{Loaded, MemoryRow, Store};
use throughline_formats::convert::to_jsonl;
use throughline_transcript::catalogue::Catalogue;
use throughline_transcript::json::Raw;
use throughline_transcript::request::Marks;

use super::{archive, show};
use crate::arguments::sessions::{self as arguments, Format};
use crate::error::{Failure, Kind};
use crate::{convert, output, storage};

pub(super) async fn run(arguments: &arguments::Export, store: &dyn Store) -> Result<(), Failure> {
    let session = storage::find(store, &arguments.id).await?;
    let loaded = store.load(&session.id).await.map_err(storage::failure)?;
    let document = match arguments.format {
        Format::Jsonl => to_jsonl(&archive::conversation(&loaded, store).await?),
        Format::Request => request(&loaded)?,
        Format::Markdown => newest(&loaded)?.markdown.clone(),
        Format::Json => newest(&loaded)?.json.clone(),
    };
    let document = match document.ends_with('\n') {
        true => document,
        false => document + "\n",
    };
    output::write(arguments.output.as_deref(), &document)
}

/// The memory in use, or the newest one.
fn newest(loaded: &Loaded) -> Result<&MemoryRow, Failure> {
    let row = loaded.memory.as_ref().or(loaded.newer_memory.as_ref());
    row.ok_or_else(show::no_memory)
}

/// The memory in use and the messages that it does not cover.
fn request(loaded: &Loaded) -> Result<String, Failure> {
    if loaded.session.message_count == 0 {
        return Err(Failure::new(
            Kind::NothingToDo,
            "the session has no messages",
        ));
    }
    let frame = archive::frame(loaded)?;
    let memory = match &loaded.memory {
        Some(row) => Some(Memory::from_json(&row.json).map_err(|error| {
            Failure::new(Kind::Input, format!("the memory cannot be read: {error}"))
        })?),
        None => None,
    };
    let text = memory.as_ref().map(restoring::user_message);
    let tail: Vec<Raw> = loaded
        .tail
        .iter()
        .filter_map(|message| archive::raw(message.request_bytes()))
        .collect();
    let body = frame.compose(text.as_deref(), &tail, Marks::default());
    let known = Catalogue::embedded().find(&loaded.session.model);
    convert::checked(body, frame.wire(), known)
}
