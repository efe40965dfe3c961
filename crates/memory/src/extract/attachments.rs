//! Pictures and documents that the person attached: a memory cannot hold them, but it says what they were.

use throughline_transcript::message::{Author, Content, Media, Message, Role};

use super::{Extractor, fold, keep};
use crate::authors::{self, Before};

/// Something that came with a message of the person.
pub(super) struct Attachment {
    pub(super) message: usize,
    pub(super) at_ms: Option<i64>,
    /// Kind and name.
    pub(super) what: String,
    /// What the person said with it; may be empty.
    pub(super) said: String,
}

/// Longest name that is kept, bytes: an address can hold the data itself.
const NAME_BYTES_MAX: usize = 200;
/// Of the words beside an attachment this much is looked at, bytes.
const SAID_BYTES_MAX: usize = 2000;

impl Extractor<'_> {
    /// Notes what is attached to a message of the person.
    pub(super) fn note_attachments(&mut self, message: &Message) {
        if message.role != Role::User || message.author != Author::Role {
            return;
        }
        let mut found: Vec<(String, u32)> = Vec::new();
        for block in &message.blocks {
            let what = match &block.content {
                Content::Image(media) => describe("image", media),
                Content::Document(media) => describe(document_kind(media), media),
                _ => continue,
            };
            match found.iter_mut().find(|(known, _)| *known == what) {
                Some((_, count)) => *count += 1,
                None => found.push((what, 1)),
            }
        }
        if found.is_empty() {
            return;
        }
        let said = self.said_with(message);
        for (what, count) in found {
            let what = self.without_secrets(&what).into_owned();
            let what = match count {
                1 => what,
                count => format!("{what}, {count} times"),
            };
            let attachment = Attachment {
                message: self.messages,
                at_ms: message.at_ms,
                what,
                said: said.clone(),
            };
            keep(&mut self.attachments, attachment);
        }
    }

    /// The words of the message, in one line.
    fn said_with(&self, message: &Message) -> String {
        for text in message.texts() {
            let text = text.prefix(SAID_BYTES_MAX);
            let text = authors::words(&authors::pieces(&text, Before::default())).into_owned();
            if !text.trim().is_empty() {
                return fold(&self.without_secrets(&text));
            }
        }
        String::new()
    }
}

fn document_kind(media: &Media) -> &'static str {
    let kind = media.media_type.as_deref().unwrap_or_default();
    let name = media.name.as_deref().unwrap_or_default();
    if kind == "application/pdf" || name.to_ascii_lowercase().ends_with(".pdf") {
        "PDF"
    } else if kind.starts_with("audio/") {
        "audio"
    } else if kind.starts_with("video/") {
        "video"
    } else {
        "document"
    }
}

fn describe(kind: &str, media: &Media) -> String {
    let name = media
        .name
        .as_deref()
        .filter(|name| !name.trim().is_empty() && !name.starts_with("data:"));
    match (name, media.media_type.as_deref()) {
        (Some(name), _) => format!(
            "{kind} {}",
            fold(&name[..name.floor_char_boundary(NAME_BYTES_MAX)])
        ),
        (None, Some(media_type)) if kind != "PDF" => format!("{kind} ({media_type})"),
        (None, _) => kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_have_a_kind_and_a_name() {
        let check = |media_type: Option<&str>, name: Option<&str>, is_image, expected: &str| {
            let media = Media {
                media_type: media_type.map(Into::into),
                name: name.map(Into::into),
                data_bytes: None,
            };
            let kind = if is_image {
                "image"
            } else {
                document_kind(&media)
            };
            assert_eq!(describe(kind, &media), expected);
        };
        check(Some("image/png"), None, true, "image (image/png)");
        check(None, None, true, "image");
        check(
            None,
            Some("https://pier.example/a.png"),
            true,
            "image https://pier.example/a.png",
        );
        check(
            Some("image/png"),
            Some("data:image/png;base64,AAAA"),
            true,
            "image (image/png)",
        );
        check(Some("application/pdf"), None, false, "PDF");
        check(
            Some("application/pdf"),
            Some("Lease.pdf"),
            false,
            "PDF Lease.pdf",
        );
        check(None, Some("Lease.PDF"), false, "PDF Lease.PDF");
        check(
            Some("text/csv"),
            Some("tides.csv"),
            false,
            "document tides.csv",
        );
        check(Some("audio/wav"), None, false, "audio (audio/wav)");
        check(
            None,
            Some("file_011CNha8iCJcU1wXNR6q4V8w"),
            false,
            "document file_011CNha8iCJcU1wXNR6q4V8w",
        );
    }
}
