//! The two JSON forms.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use throughline_transcript::text::head;

use super::{ITEMS_MAX, entry_of, says_something};
use crate::document::Section;
use crate::summarise::answer::{AnswerContent, AnswerForm, Change, NewItem, ParseError};
use crate::summarise::forms::{ActionForm, EditForm, EditsForm, ItemForm, ItemsForm};

/// Reads the first JSON object in the text that can be meant.
pub(super) fn read(text: &str, wanted: AnswerForm) -> Result<AnswerContent, ParseError> {
    let object = object_in(text)?;
    let shape = shape_of(object).unwrap_or(wanted);
    match shape {
        AnswerForm::Edits => {
            let form: EditsForm = read_form(object)?;
            let changes = form.edits.into_iter().take(ITEMS_MAX).enumerate();
            let changes: Result<_, _> = changes.map(|(index, edit)| change(index, edit)).collect();
            Ok(AnswerContent::Edits(changes?))
        }
        AnswerForm::Items | AnswerForm::Markdown => {
            let form: ItemsForm = read_form(object)?;
            let items = form.items.into_iter().take(ITEMS_MAX).enumerate();
            let said: Result<_, _> = items.map(|(index, item)| said(index, item)).collect();
            Ok(match wanted {
                AnswerForm::Edits => AnswerContent::Additions(said?),
                AnswerForm::Items | AnswerForm::Markdown => AnswerContent::Whole(said?),
            })
        }
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
fn shape_of(object: &str) -> Option<AnswerForm> {
    let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(object).ok()?;
    if fields.contains_key("edits") {
        Some(AnswerForm::Edits)
    } else if fields.contains_key("items") {
        Some(AnswerForm::Items)
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

fn said(index: usize, item: ItemForm) -> Result<NewItem, ParseError> {
    let section = section(&format!("items[{index}].section"), Some(&item.section))?;
    Ok(NewItem {
        message: item.message,
        ..NewItem::new(entry_of(section, item.text, item.detail, item.limit))
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
            Change::Add(NewItem {
                message: edit.message,
                ..NewItem::new(entry_of(section, text, edit.detail, edit.limit))
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
