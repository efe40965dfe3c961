//! The three JSON forms.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use throughline_transcript::text::head;

use super::markdown::without_state;
use super::{Change, ITEMS_MAX, ParseError, Parsed, Said, Wanted, entry_of, says_something};
use crate::document::{Entry, Requested, Section, Status};
use crate::summarise::forms::{ActionForm, EditForm, EditsForm, ItemForm, ItemsForm, ObjectForm};

/// Reads the first JSON object in the text that can be meant.
pub(super) fn read(text: &str, wanted: Wanted) -> Result<Parsed, ParseError> {
    let object = object_in(text)?;
    let shape = shape_of(object).unwrap_or(wanted);
    match shape {
        Wanted::Edits => {
            let form: EditsForm = read_form(object)?;
            let changes = form.edits.into_iter().take(ITEMS_MAX).enumerate();
            let changes: Result<_, _> = changes.map(|(index, edit)| change(index, edit)).collect();
            Ok(Parsed::Edits(changes?))
        }
        Wanted::Items => {
            let form: ItemsForm = read_form(object)?;
            let items = form.items.into_iter().take(ITEMS_MAX).enumerate();
            let said: Result<_, _> = items.map(|(index, item)| said(index, item)).collect();
            Ok(whole(said?, wanted))
        }
        Wanted::Object | Wanted::Markdown => {
            let form: ObjectForm = read_form(object)?;
            Ok(whole(said_by_object(form), wanted))
        }
    }
}

fn whole(mut said: Vec<Said>, wanted: Wanted) -> Parsed {
    said.truncate(ITEMS_MAX);
    match wanted {
        Wanted::Edits => Parsed::Additions(said),
        Wanted::Object | Wanted::Items | Wanted::Markdown => Parsed::Whole(said),
    }
}

/// How many opening brackets are tried.
const TRIES_MAX: usize = 32;

/// The first JSON object in the text that has a field of one of the forms; without such a one, the first object.
fn object_in(text: &str) -> Result<&str, ParseError> {
    let mut first = None;
    let mut error = None;
    let mut from = 0;
    for _ in 0..TRIES_MAX {
        let Some(start) = text[from..].find('{').map(|at| from + at) else {
            break;
        };
        let mut values =
            serde_json::Deserializer::from_str(&text[start..]).into_iter::<&RawValue>();
        match values.next() {
            Some(Ok(value)) => {
                let object = value.get();
                if shape_of(object).is_some() {
                    return Ok(object);
                }
                first = first.or(Some(object));
                from = start + object.len();
            }
            Some(Err(found)) => {
                error.get_or_insert(if found.is_eof() {
                    ParseError::CutOff
                } else {
                    ParseError::InvalidJson {
                        reason: found.to_string(),
                    }
                });
                from = start + 1;
            }
            None => break,
        }
    }
    match (error, first) {
        (Some(error), _) => Err(error),
        (None, Some(object)) => Ok(object),
        (None, None) => Err(ParseError::NoStructure),
    }
}

/// A list of items or edits that was cut off, ended behind its last whole entry; `None` if there is none.
pub(in crate::summarise) fn whole_entries(text: &str) -> Option<String> {
    let text = text.get(text.find('{')?..)?;
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    let mut end = None;
    for (at, byte) in text.bytes().enumerate() {
        if is_string {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => is_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => is_string = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                // The object, its list, and the entry that ends here.
                if depth == 2 && byte == b'}' {
                    end = Some(at + 1);
                }
            }
            _ => {}
        }
    }
    Some([text.get(..end?)?, "]}"].concat())
}

/// Which form has the fields that the object begins with.
fn shape_of(object: &str) -> Option<Wanted> {
    let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(object).ok()?;
    if fields.contains_key("edits") {
        Some(Wanted::Edits)
    } else if fields.contains_key("items") {
        Some(Wanted::Items)
    } else if fields.contains_key("task") || fields.contains_key("current_state") {
        Some(Wanted::Object)
    } else {
        None
    }
}

fn read_form<T: DeserializeOwned>(object: &str) -> Result<T, ParseError> {
    let mut deserializer = serde_json::Deserializer::from_str(object);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| ParseError::WrongShape {
        path: error.path().to_string(),
        reason: error.inner().to_string(),
    })
}

fn said(index: usize, item: ItemForm) -> Result<Said, ParseError> {
    let section = section(&format!("items[{index}].section"), Some(&item.section))?;
    Ok(Said {
        message: item.message,
        ..Said::new(entry_of(section, item.text, item.detail, item.limit))
    })
}

fn section(path: &str, name: Option<&str>) -> Result<Section, ParseError> {
    name.and_then(Section::from_name)
        .ok_or_else(|| ParseError::WrongShape {
            path: path.to_owned(),
            reason: match name {
                Some(name) => format!("there is no section {name:?}"),
                None => "a new item needs a section".to_owned(),
            },
        })
}

/// Ids are eight characters; a longer one names nothing, and is not worth keeping.
const ID_BYTES_MAX: usize = 64;

fn change(index: usize, edit: EditForm) -> Result<Change, ParseError> {
    let missing = |field: &str| ParseError::WrongShape {
        path: format!("edits[{index}].{field}"),
        reason: "the edit needs this field".to_owned(),
    };
    let name = |id: String| head(&id, ID_BYTES_MAX).to_owned();
    let id = edit.id.map(name).ok_or_else(|| missing("id"));
    Ok(match edit.action {
        ActionForm::Add => {
            let section = section(&format!("edits[{index}].section"), edit.section.as_deref())?;
            let text = edit.text.ok_or_else(|| missing("text"))?;
            Change::Add(Said {
                message: edit.message,
                ..Said::new(entry_of(section, text, edit.detail, edit.limit))
            })
        }
        ActionForm::Replace => Change::Replace {
            id: id?,
            text: edit.text.ok_or_else(|| missing("text"))?,
            detail: edit.detail,
            limit: edit.limit,
        },
        ActionForm::Resolve => Change::Resolve {
            id: id?,
            resolution: edit.detail.filter(|detail| says_something(detail)),
        },
        ActionForm::Supersede => Change::Supersede {
            id: id?,
            by: edit.by.map(name).ok_or_else(|| missing("by"))?,
        },
        ActionForm::Drop => Change::Drop {
            id: id?,
            reason: edit.reason.unwrap_or_default(),
        },
    })
}

/// Takes the compact object apart, the way [`crate::render::object`] puts it together.
fn said_by_object(form: ObjectForm) -> Vec<Said> {
    let mut said = Vec::new();
    for line in lines(&form.task) {
        said.push(Said::new(Entry::Task {
            text: line.to_owned(),
        }));
    }
    for line in lines(&form.current_state) {
        said.push(Said::new(match line.strip_prefix("Done: ") {
            Some(work) => Entry::CompletedWork {
                text: work.to_owned(),
            },
            None => Entry::CurrentState {
                text: line.to_owned(),
            },
        }));
    }
    for decision in form.key_decisions {
        // The user's rules stand among the decisions; there they can only be repeated.
        let is_rule = decision.reason.as_deref() == Some("said by the user");
        said.push(Said::new(if is_rule {
            Entry::Correction {
                text: decision.decision,
            }
        } else {
            entry_of(
                Section::KeyDecisions,
                decision.decision,
                decision.reason,
                decision.constraint,
            )
        }));
    }
    for approach in form.eliminated_approaches {
        said.push(Said::new(entry_of(
            Section::EliminatedApproaches,
            approach.approach,
            approach.reason_ruled_out,
            None,
        )));
    }
    for question in form.open_questions {
        said.push(Said::new(Entry::OpenQuestion { text: question }));
    }
    for step in form.next_steps {
        said.push(Said::new(match step.strip_prefix("(implied) ") {
            Some(step) => Entry::NextStep {
                text: step.to_owned(),
                requested: Requested::Implied,
            },
            None => Entry::NextStep {
                text: step,
                requested: Requested::Explicit,
            },
        }));
    }
    for (key, summary) in form.relevant_tool_results.0 {
        if key.trim() == "references" {
            for line in lines(&summary) {
                said.push(Said::new(Entry::Reference {
                    text: line.to_owned(),
                }));
            }
        } else if is_error_key(&key) {
            let (text, resolution) = match summary.split_once(" → resolved: ") {
                Some((text, how)) => (text.to_owned(), Some(how.to_owned())),
                None => (summary, None),
            };
            let status = if resolution.is_some() {
                Status::Resolved
            } else {
                Status::Active
            };
            said.push(Said {
                status,
                ..Said::new(Entry::Error { text, resolution })
            });
        } else {
            said.push(Said::new(Entry::ToolResult { key, summary }));
        }
    }
    said.iter_mut().for_each(settle);
    said
}

/// Takes over what [`crate::render::object`] says about an item in its text: that a tool said it, or that it is done.
fn settle(said: &mut Said) {
    let is_finished = {
        let Some(text) = said.entry.texts_mut().next() else {
            return;
        };
        if let Some(words) = text.strip_prefix("[tool] ") {
            *text = words.to_owned();
        }
        let (words, status) = without_state(text);
        let words = words.to_owned();
        *text = words;
        status == Status::Resolved
    };
    if is_finished {
        said.status = Status::Resolved;
    }
}

/// `error`, `error 1`, `error 2`, ...
fn is_error_key(key: &str) -> bool {
    key.trim().strip_prefix("error").is_some_and(|rest| {
        rest.trim_matches([' ', '_', '#'])
            .bytes()
            .all(|b| b.is_ascii_digit())
    })
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(|line| line.trim().trim_start_matches("- ").trim())
        .filter(|line| !line.is_empty())
}
