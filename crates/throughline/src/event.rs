//! What a session tells its watchers, and what is stored of it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use throughline_engine::{BuildKind, EngineEvent};
use throughline_store::{EventRow, StoreError};

/// Something that happened in a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionEvent {
    /// The engine decided something.
    Engine(EngineEvent),
    /// A request was held up by this much before it went out, because a memory was swapped in before it.
    Swap {
        /// From the wish to send to the request: waiting for a memory (if any was waited for), the decision, storing it,
        /// writing the request.
        held: Duration,
        /// The part in which a model was waited for.
        waited_for_model: Duration,
    },
    /// A memory was made by a model and checked.
    Checked {
        /// Items that the model left out and code put back.
        put_back: usize,
        /// Items, or parts of them, that the conversation does not have and that were taken out.
        taken_out: usize,
        /// Answers that were no memory.
        refused: usize,
        /// Calls that were made.
        calls: u32,
    },
    /// Something could not be stored. It is tried again with the next change.
    NotStored(std::sync::Arc<StoreError>),
}

/// An event as it is stored: its kind, and fields that hold nothing of the conversation.
///
/// The one place where stored events are written and read. Field names are on disk: renaming one needs an alias.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EventRecord {
    /// A memory was ordered.
    BuildStarted {
        /// Number of the order.
        ticket: u64,
        /// Who makes it: `draft` or `model`.
        kind: String,
        /// Why now.
        reason: String,
        /// Messages that it will cover.
        cover: usize,
        /// Tokens of the new messages.
        tokens: u64,
    },
    /// A memory is ready.
    Built {
        /// Number of the order.
        ticket: u64,
        /// Who made it.
        kind: String,
        /// Messages that it covers.
        cover: usize,
        /// Its tokens.
        tokens: u64,
        /// Milliseconds that it took.
        took_ms: u64,
    },
    /// A memory was made but is not used.
    Refused {
        /// Number of the order.
        ticket: u64,
        /// Who made it.
        kind: String,
    },
    /// No memory was made.
    Failed {
        /// Number of the order.
        ticket: u64,
        /// Who was asked.
        kind: String,
        /// Class of the failure.
        class: String,
        /// The failure in words.
        message: String,
        /// Failures in a row.
        in_a_row: u32,
    },
    /// A memory came too late, or for another history.
    Dropped {
        /// Number of the order.
        ticket: u64,
    },
    /// A memory replaced messages.
    Swapped {
        /// The epoch that begins.
        epoch: u64,
        /// Why now.
        reason: String,
        /// Number of the memory version.
        version: u32,
        /// Who made it.
        origin: String,
        /// Messages that it covers.
        cover: usize,
        /// Tokens of the context before.
        tokens_before: u64,
        /// Tokens of the context after.
        tokens_after: u64,
        /// Milliseconds that a request waited for it.
        waited_ms: u64,
        /// Whom it waited for.
        waited_for: Option<String>,
    },
    /// A swap was due and did not happen.
    Skipped {
        /// Why it was due.
        reason: String,
    },
    /// The draft replaced the model's memory.
    FellBack {
        /// Class of the model's failure.
        class: String,
        /// The failure in words.
        message: String,
    },
    /// Compaction has stopped.
    Halted {},
    /// Compaction has resumed.
    Resumed {},
    /// The last swap was undone.
    Undone {
        /// The epoch that begins.
        epoch: u64,
        /// Tokens of the context after that.
        tokens: u64,
    },
    /// The provider named a smaller window.
    WindowLearned {
        /// Tokens.
        window: u64,
    },
    /// The provider reports fewer tokens than were sent.
    SeemsCut {
        /// Tokens that were sent, estimated.
        estimated: u64,
        /// Tokens that were reported.
        reported: u64,
    },
    /// A compaction that was asked for has ended.
    Compaction {
        /// Its number.
        id: u64,
    },
    /// A model's memory was checked against the conversation.
    Checked {
        /// Items that the model left out and that were put back.
        put_back: usize,
        /// Items that the conversation does not have and that were taken out.
        taken_out: usize,
        /// Answers that were refused.
        refused: usize,
        /// Calls that were made.
        calls: u32,
    },
    /// An event that this version does not know.
    #[default]
    #[serde(skip)]
    Unknown,
}

impl EventRecord {
    /// The record of an event; `None` for those that are not stored.
    #[must_use]
    pub fn of(event: &SessionEvent) -> Option<Self> {
        match event {
            SessionEvent::Engine(event) => Some(Self::of_engine(event)),
            SessionEvent::Checked {
                put_back,
                taken_out,
                refused,
                calls,
            } => Some(Self::Checked {
                put_back: *put_back,
                taken_out: *taken_out,
                refused: *refused,
                calls: *calls,
            }),
            SessionEvent::Swap { .. } | SessionEvent::NotStored(_) => None,
        }
    }

    fn of_engine(event: &EngineEvent) -> Self {
        match event {
            EngineEvent::BuildStarted {
                ticket,
                kind,
                reason,
                cover,
                tokens,
            } => Self::BuildStarted {
                ticket: ticket.number(),
                kind: kind_name(*kind),
                reason: reason.to_string(),
                cover: *cover,
                tokens: *tokens,
            },
            EngineEvent::Built {
                ticket,
                kind,
                cover,
                tokens,
                took_ms,
            } => Self::Built {
                ticket: ticket.number(),
                kind: kind_name(*kind),
                cover: *cover,
                tokens: *tokens,
                took_ms: *took_ms,
            },
            EngineEvent::Refused { ticket, kind, .. } => Self::Refused {
                ticket: ticket.number(),
                kind: kind_name(*kind),
            },
            EngineEvent::Failed {
                ticket,
                kind,
                reason,
                in_a_row,
            } => Self::Failed {
                ticket: ticket.number(),
                kind: kind_name(*kind),
                class: reason.class.as_str().to_owned(),
                message: reason.message.clone(),
                in_a_row: *in_a_row,
            },
            EngineEvent::Dropped { ticket, .. } => Self::Dropped {
                ticket: ticket.number(),
            },
            EngineEvent::Swapped {
                epoch,
                reason,
                version,
                origin,
                cover,
                tokens_before,
                tokens_after,
                waited_ms,
                waited_for,
            } => Self::Swapped {
                epoch: *epoch,
                reason: reason.to_string(),
                version: *version,
                origin: origin.name().to_owned(),
                cover: *cover,
                tokens_before: *tokens_before,
                tokens_after: *tokens_after,
                waited_ms: *waited_ms,
                waited_for: waited_for.map(kind_name),
            },
            EngineEvent::Skipped { due, .. } => Self::Skipped {
                reason: due.to_string(),
            },
            EngineEvent::FellBack { reason } => Self::FellBack {
                class: reason.class.as_str().to_owned(),
                message: reason.message.clone(),
            },
            EngineEvent::Halted(_) => Self::Halted {},
            EngineEvent::Resumed => Self::Resumed {},
            EngineEvent::Undone { epoch, tokens } => Self::Undone {
                epoch: *epoch,
                tokens: *tokens,
            },
            EngineEvent::WindowLearned { window } => Self::WindowLearned { window: *window },
            EngineEvent::SeemsCut {
                estimated,
                reported,
            } => Self::SeemsCut {
                estimated: *estimated,
                reported: *reported,
            },
            EngineEvent::Compaction { id, .. } => Self::Compaction { id: *id },
        }
    }

    /// The stored kind, which is also the name in logs and metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::BuildStarted { .. } => "build-started",
            Self::Built { .. } => "built",
            Self::Refused { .. } => "refused",
            Self::Failed { .. } => "failed",
            Self::Dropped { .. } => "dropped",
            Self::Swapped { .. } => "swapped",
            Self::Skipped { .. } => "skipped",
            Self::FellBack { .. } => "fell-back",
            Self::Halted {} => "halted",
            Self::Resumed {} => "resumed",
            Self::Undone { .. } => "undone",
            Self::WindowLearned { .. } => "window-learned",
            Self::SeemsCut { .. } => "seems-cut",
            Self::Compaction { .. } => "compaction",
            Self::Checked { .. } => "checked",
            Self::Unknown => "other",
        }
    }

    /// The stored fields, and the event as a sentence (`words`).
    pub(crate) fn to_json(&self, event: &SessionEvent) -> String {
        let fields = match serde_json::to_value(self) {
            Ok(Value::Object(tagged)) => tagged.into_iter().next().map(|(_, fields)| fields),
            _ => None,
        };
        let mut fields = fields.unwrap_or_else(|| Value::Object(Map::new()));
        fields["words"] = Value::String(event.to_string());
        fields.to_string()
    }

    /// Reads a stored event. One of a kind that this version does not know, or without a field that it needs, is
    /// [`EventRecord::Unknown`].
    #[must_use]
    pub fn read(row: &EventRow) -> Self {
        let fields: Value = serde_json::from_str(&row.json).unwrap_or_default();
        let tagged = Map::from_iter([(row.kind.clone(), fields)]);
        serde_json::from_value(Value::Object(tagged)).unwrap_or(Self::Unknown)
    }

    /// A stored event as a sentence; its fields where an older version wrote none.
    #[must_use]
    pub fn words(row: &EventRow) -> String {
        #[derive(Deserialize)]
        struct Words {
            words: String,
        }
        serde_json::from_str::<Words>(&row.json).map_or_else(|_| row.json.clone(), |it| it.words)
    }
}

impl fmt::Display for SessionEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(event) => event.fmt(f),
            Self::Swap { held, .. } => {
                write!(f, "a request waited {} ms for a swap", held.as_millis())
            }
            Self::Checked {
                put_back,
                taken_out,
                refused,
                calls,
            } => write!(
                f,
                "the model's memory was checked: {put_back} items put back, {taken_out} taken out, {refused} answers refused, {calls} calls"
            ),
            Self::NotStored(error) => write!(f, "changes could not be stored: {error}"),
        }
    }
}

fn kind_name(kind: BuildKind) -> String {
    match kind {
        BuildKind::Draft => "draft",
        BuildKind::Model => "model",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: &str, json: &str) -> EventRow {
        EventRow {
            sequence: 0,
            kind: kind.to_owned(),
            json: json.to_owned(),
            at_ms: 0,
        }
    }

    /// Each kind as the store has it. These names are on disk.
    const STORED: [(&str, &str); 15] = [
        (
            "build-started",
            r#"{"cover":4,"kind":"model","reason":"grown","ticket":1,"tokens":900}"#,
        ),
        (
            "built",
            r#"{"cover":4,"kind":"draft","ticket":1,"tokens":300,"took_ms":5}"#,
        ),
        ("refused", r#"{"kind":"draft","ticket":1}"#),
        (
            "failed",
            r#"{"class":"overloaded","in_a_row":2,"kind":"model","message":"no","ticket":1}"#,
        ),
        ("dropped", r#"{"ticket":1}"#),
        (
            "swapped",
            r#"{"cover":4,"epoch":2,"origin":"model","reason":"hard-mark","tokens_after":200,"tokens_before":900,"version":3,"waited_for":"draft","waited_ms":7}"#,
        ),
        ("skipped", r#"{"reason":"cold-cache"}"#),
        ("fell-back", r#"{"class":"overloaded","message":"no"}"#),
        ("halted", "{}"),
        ("resumed", "{}"),
        ("undone", r#"{"epoch":3,"tokens":900}"#),
        ("window-learned", r#"{"window":32768}"#),
        ("seems-cut", r#"{"estimated":900,"reported":100}"#),
        ("compaction", r#"{"id":1}"#),
        (
            "checked",
            r#"{"calls":1,"put_back":2,"refused":0,"taken_out":3}"#,
        ),
    ];

    #[test]
    fn each_kind_is_read_as_it_was_written() {
        let event = SessionEvent::Engine(EngineEvent::Resumed);
        for (kind, json) in STORED {
            let mut fields: Value = serde_json::from_str(json).unwrap();
            fields["words"] = event.to_string().into();
            let record = EventRecord::read(&row(kind, &fields.to_string()));
            assert_eq!(record.kind(), kind);
            let written: Value = serde_json::from_str(&record.to_json(&event)).unwrap();
            assert_eq!(written, fields, "{kind}");
        }
    }

    #[test]
    fn what_is_not_understood_is_unknown() {
        for (kind, json) in [
            ("later", "{}"),
            ("swapped", r#"{"tokens_before":1}"#),
            ("undone", "not JSON"),
        ] {
            assert_eq!(EventRecord::read(&row(kind, json)), EventRecord::Unknown);
        }
        assert_eq!(
            EventRecord::words(&row("later", r#"{"n":1}"#)),
            r#"{"n":1}"#
        );
        assert_eq!(EventRecord::words(&row("later", r#"{"words":"so"}"#)), "so");
    }
}
