//! Converts pictures and documents between wire formats.

use throughline_transcript::json::{Raw, Text, quoted};
use throughline_transcript::message::{Block, Content};
use throughline_transcript::wire::Wire;

use super::text::object;

/// Where the data of a picture or document are.
enum Data {
    Base64 {
        media_type: String,
        data: Text,
    },
    Plain(Text),
    Url(Text),
    /// Of OpenAI: an id means something to the provider that gave it only.
    FileId(Text),
}

/// The block in the target's form; `None` if it has none for it.
pub(super) fn write(block: &Block, wire: Wire) -> Option<String> {
    let raw = block.raw.as_ref()?;
    let is_image = matches!(block.content, Content::Image(_));
    let title = raw
        .text_field("title")
        .or_else(|| raw.text_field("filename"))
        .or_else(|| raw.field("file")?.text_field("filename"));
    let data = data_of(raw)?;
    if let Data::Base64 { media_type, data } = &data {
        // Exports leave data out and say so in its place; and providers take few types.
        let is_taken = if is_image {
            IMAGE_TYPES.contains(&media_type.as_str())
        } else {
            wire != Wire::Anthropic || media_type == "application/pdf"
        };
        if !is_taken || !is_base64(&data.decode()) {
            return None;
        }
    }
    if let Data::Plain(text) = &data {
        return Some(match wire {
            Wire::Anthropic => {
                let source = object(&[
                    ("type", "\"text\""),
                    ("media_type", "\"text/plain\""),
                    ("data", &quoted(&text.decode())),
                ]);
                object(&[("type", "\"document\""), ("source", &source)])
            }
            Wire::OpenAiChat => text_part("text", text),
            Wire::OpenAiResponses => text_part("input_text", text),
        });
    }
    match (wire, is_image) {
        (Wire::Anthropic, _) => {
            let source = match &data {
                Data::Base64 { media_type, data } => object(&[
                    ("type", "\"base64\""),
                    ("media_type", &quoted(media_type)),
                    ("data", &quoted(&data.decode())),
                ]),
                Data::Url(url) => object(&[("type", "\"url\""), ("url", &quoted(&url.decode()))]),
                Data::FileId(_) | Data::Plain(_) => return None,
            };
            let kind = if is_image {
                "\"image\""
            } else {
                "\"document\""
            };
            Some(object(&[("type", kind), ("source", &source)]))
        }
        (Wire::OpenAiChat, true) => {
            let url = object(&[("url", &quoted(&address(&data)?))]);
            Some(object(&[("type", "\"image_url\""), ("image_url", &url)]))
        }
        (Wire::OpenAiResponses, true) => {
            let (key, value) = match &data {
                Data::FileId(id) => ("file_id", quoted(&id.decode())),
                _ => ("image_url", quoted(&address(&data)?)),
            };
            Some(object(&[("type", "\"input_image\""), (key, &value)]))
        }
        (_, false) => {
            let name = title.map_or_else(
                || "document".to_owned(),
                |title| title.decode().into_owned(),
            );
            let field = match (&data, wire) {
                (Data::FileId(id), _) => ("file_id", quoted(&id.decode())),
                (Data::Base64 { .. }, _) => ("file_data", quoted(&address(&data)?)),
                (Data::Url(url), Wire::OpenAiResponses) => {
                    return Some(object(&[
                        ("type", "\"input_file\""),
                        ("file_url", &quoted(&url.decode())),
                    ]));
                }
                _ => return None,
            };
            let name = quoted(&name);
            let mut fields = vec![(field.0, field.1.as_str())];
            if field.0 == "file_data" {
                fields.insert(0, ("filename", name.as_str()));
            }
            Some(if wire == Wire::OpenAiChat {
                let file = object(&fields);
                object(&[("type", "\"file\""), ("file", &file)])
            } else {
                fields.insert(0, ("type", "\"input_file\""));
                object(&fields)
            })
        }
    }
}

/// Types of pictures that all providers take.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

fn is_base64(data: &str) -> bool {
    let digits = data.trim_end_matches('=');
    data.len().is_multiple_of(4)
        && data.len() - digits.len() <= 2
        && !digits.is_empty()
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

/// The text that replaces a picture or document that cannot be sent.
pub(super) fn placeholder(block: &Block) -> String {
    let (word, media) = match &block.content {
        Content::Image(media) => ("image", media),
        Content::Document(media) => ("document", media),
        _ => return String::new(),
    };
    let mut text = format!("[{word}");
    if let Some(name) = media.name.as_ref().or(media.media_type.as_ref()) {
        text.push_str(": ");
        text.push_str(name);
    }
    text.push_str(", not included]");
    text
}

fn text_part(kind: &str, text: &Text) -> String {
    object(&[("type", &quoted(kind)), ("text", &quoted(&text.decode()))])
}

/// As an address: where the data are, or the data themselves.
fn address(data: &Data) -> Option<String> {
    match data {
        Data::Base64 { media_type, data } => Some(format!("data:{media_type};base64,{data}")),
        Data::Url(url) => Some(url.decode().into_owned()),
        Data::FileId(_) | Data::Plain(_) => None,
    }
}

fn data_of(raw: &Raw) -> Option<Data> {
    let kind = raw.text_field("type")?;
    match kind.decode().as_ref() {
        "image" | "document" => {
            let source = raw.field("source")?;
            match source.text_field("type")?.decode().as_ref() {
                "base64" => Some(Data::Base64 {
                    media_type: source.string_field("media_type").unwrap_or_default(),
                    data: source.text_field("data")?,
                }),
                "text" => Some(Data::Plain(source.text_field("data")?)),
                "url" => Some(Data::Url(source.text_field("url")?)),
                _ => None,
            }
        }
        "image_url" => {
            let image = raw.field("image_url")?;
            from_address(image.as_text().or_else(|| image.text_field("url"))?)
        }
        "input_image" => match raw.text_field("image_url") {
            Some(url) => from_address(url),
            None => raw.text_field("file_id").map(Data::FileId),
        },
        "file" => match raw.field("file") {
            Some(file) => from_file(&file),
            // Session files have the address in the block itself.
            None => from_address(raw.text_field("url")?),
        },
        "input_file" => from_file(raw),
        _ => None,
    }
}

fn from_file(file: &Raw) -> Option<Data> {
    if let Some(data) = file.text_field("file_data") {
        if data.decode().starts_with("data:") {
            return from_address(data);
        }
        return Some(Data::Base64 {
            media_type: "application/pdf".to_owned(),
            data,
        });
    }
    if let Some(url) = file.text_field("file_url") {
        return Some(Data::Url(url));
    }
    file.text_field("file_id").map(Data::FileId)
}

fn from_address(url: Text) -> Option<Data> {
    let decoded = url.decode();
    let Some(rest) = decoded.strip_prefix("data:") else {
        drop(decoded);
        return Some(Data::Url(url));
    };
    let (head, data) = rest.split_once(',')?;
    let media_type = head.strip_suffix(";base64")?.split(';').next()?;
    Some(Data::Base64 {
        media_type: media_type.to_owned(),
        data: Text::from(data),
    })
}
