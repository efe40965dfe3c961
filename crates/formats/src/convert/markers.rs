//! Cache markers of Anthropic requests: at most four, and no long one after a short one.

use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::request::CacheTtl;
use throughline_transcript::splice::Splice;

use super::losses::Losses;

/// How many blocks of a request may carry a marker.
pub const MARKERS_MAX: usize = 4;

struct Marker {
    block: Raw,
    ttl: CacheTtl,
    is_in_message: bool,
}

/// Marks the memory, which is message `memory_at`, if there is room, and takes the oldest markers off the messages if
/// there are too many.
pub(super) fn settle(
    body: String,
    memory_at: Option<usize>,
    wanted: Option<CacheTtl>,
    losses: &mut Losses,
) -> String {
    // Most bodies have none, and telling that takes one pass.
    if wanted.is_none()
        && memchr::memmem::find_iter(body.as_bytes(), b"cache_control")
            .nth(MARKERS_MAX)
            .is_none()
    {
        return body;
    }
    let Ok(raw) = Raw::parse(body.as_str()) else {
        return body;
    };
    let mut before = Vec::new();
    let mut after = Vec::new();
    let mut automatic = 0;
    let mut memory = None;
    for (key, value) in raw.object() {
        match key.decode().as_ref() {
            "cache_control" if !value.is_null() => automatic = 1,
            "tools" | "system" => {
                before.extend(value.array().filter_map(|block| marker(block, false)))
            }
            "messages" => {
                for (index, message) in value.array().enumerate() {
                    if Some(index) == memory_at {
                        memory = message
                            .field("content")
                            .and_then(|content| content.array().last());
                        continue;
                    }
                    let Some(content) = message.field("content") else {
                        continue;
                    };
                    after.extend(content.array().filter_map(|block| marker(block, true)));
                }
            }
            _ => {}
        }
    }
    let mut splice = Splice::new(&raw);
    let count = before.len() + after.len() + automatic;
    let mut surplus = count.saturating_sub(MARKERS_MAX);
    for marker in after.iter().filter(|marker| marker.is_in_message) {
        if surplus == 0 {
            break;
        }
        surplus -= 1;
        losses.note(
            "cache-marker",
            0,
            "a cache marker was taken off an old message: there may be four",
        );
        if splice
            .remove_field_of(&marker.block, "cache_control")
            .is_err()
        {
            return body;
        }
    }
    if let (Some(wanted), Some(memory)) = (wanted, memory)
        && count < MARKERS_MAX
        && let Some(ttl) = lane(wanted, &before, &after)
    {
        let marker = match ttl {
            CacheTtl::Minutes5 => r#"{"type":"ephemeral"}"#,
            CacheTtl::Hour1 => r#"{"type":"ephemeral","ttl":"1h"}"#,
        };
        let is_set = Raw::parse(marker).ok().and_then(|marker| {
            splice
                .set_field_of(&memory, "cache_control", marker)
                .ok()
                .map(drop)
        });
        if is_set.is_none() {
            return body;
        }
    }
    match splice.finish() {
        Ok(text) => text.to_string(),
        Err(_) => body,
    }
}

/// The lifetime that the memory's marker may have: long markers must not follow short ones.
fn lane(wanted: CacheTtl, before: &[Marker], after: &[Marker]) -> Option<CacheTtl> {
    let is_short_before = before.iter().any(|marker| marker.ttl == CacheTtl::Minutes5);
    let is_long_after = after.iter().any(|marker| marker.ttl == CacheTtl::Hour1);
    match (is_short_before, is_long_after) {
        (false, false) => Some(wanted),
        (true, false) => Some(CacheTtl::Minutes5),
        (false, true) => Some(CacheTtl::Hour1),
        (true, true) => None,
    }
}

fn marker(block: Raw, is_in_message: bool) -> Option<Marker> {
    let control = block.field("cache_control")?;
    if control.kind() != Kind::Object {
        return None;
    }
    let is_long = control
        .text_field("ttl")
        .is_some_and(|ttl| ttl.decode() == "1h");
    Some(Marker {
        block,
        ttl: if is_long {
            CacheTtl::Hour1
        } else {
            CacheTtl::Minutes5
        },
        is_in_message,
    })
}
