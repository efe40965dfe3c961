//! Zip archives: the exports of chat programs, or sessions that somebody packed.
//!
//! Only what such archives have is read: files that are stored or deflated, found by the list at the end of the archive.

use std::io::Read;

use flate2::Crc;
use flate2::read::DeflateDecoder;
use throughline_formats::source::SourceText;

use super::{BYTES_MAX, Input};
use crate::error::{Failure, Kind, reason};

/// What the names of session files end with. Pictures and pages beside them are passed over.
const ENDINGS: &[&str] = &[".jsonl", ".json", ".ndjson", ".md", ".txt", ".traj"];

/// The texts of an archive, each of them one input.
pub(super) fn read(archive: &[u8], name: &str) -> Result<Vec<Input>, Failure> {
    let failed = |what: String| {
        Failure::new(Kind::Input, format!("{name}: {what}"))
            .hint("unpack the zip archive and give one of the files in it")
    };
    let members = members(archive)
        .ok_or_else(|| failed("the zip archive is damaged or of an unusual kind".to_owned()))?;
    let mut inputs = Vec::new();
    let mut bytes_left = BYTES_MAX;
    for member in members {
        let file = &member.name;
        let is_wanted = ENDINGS.iter().any(|ending| file.ends_with(ending));
        // Copies of attributes that the archiver of macOS adds.
        if !is_wanted || file.starts_with("__MACOSX/") {
            continue;
        }
        let bytes = member
            .unpack(archive, bytes_left)
            .map_err(|what| failed(format!("{file} cannot be unpacked: {what}")))?;
        bytes_left = bytes_left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            failed(format!(
                "with {file} the archive has more than {} GiB of text",
                BYTES_MAX >> 30
            ))
        })?;
        let mut crc = Crc::new();
        crc.update(&bytes);
        let warnings = (crc.sum() != member.crc)
            .then(|| format!("{name}/{file}: the packed data is damaged"))
            .into_iter()
            .collect();
        inputs.push(Input {
            text: SourceText::from_bytes(bytes),
            name: format!("{name}/{file}"),
            warnings,
        });
    }
    if inputs.is_empty() {
        let endings = ENDINGS.join(", ");
        return Err(Failure::new(
            Kind::Input,
            format!("{name}: no session file is in the zip archive"),
        )
        .hint(format!("the names of session files end with {endings}")));
    }
    Ok(inputs)
}

/// A file in the list of the archive.
struct Member {
    name: String,
    is_encrypted: bool,
    method: u16,
    crc: u32,
    packed_bytes: usize,
    /// Where its own header is.
    offset: usize,
}

impl Member {
    /// Its text, of which at most `bytes_max` and one are unpacked: what the archive says about sizes can be wrong.
    fn unpack(&self, archive: &[u8], bytes_max: u64) -> Result<Vec<u8>, String> {
        if self.is_encrypted {
            return Err("it is encrypted".to_owned());
        }
        let packed = self
            .packed(archive)
            .ok_or("it is not where the list says")?;
        let mut bytes = Vec::new();
        let read = match self.method {
            0 => packed.take(bytes_max + 1).read_to_end(&mut bytes),
            8 => DeflateDecoder::new(packed)
                .take(bytes_max + 1)
                .read_to_end(&mut bytes),
            method => return Err(format!("its packing (method {method}) is not known")),
        };
        read.map_err(|error| reason(&error))?;
        Ok(bytes)
    }

    fn packed<'a>(&self, archive: &'a [u8]) -> Option<&'a [u8]> {
        let header = archive.get(self.offset..)?.strip_prefix(b"PK\x03\x04")?;
        let start = 26 + usize::from(short(header, 22)?) + usize::from(short(header, 24)?);
        header.get(start..start.checked_add(self.packed_bytes)?)
    }
}

/// The list at the end of the archive. `None` if it cannot be followed, as in archives of more than 4 GiB.
fn members(archive: &[u8]) -> Option<Vec<Member>> {
    // A comment can follow the end of the list.
    let end = last_place(archive, b"PK\x05\x06")?;
    let end = archive.get(end..)?;
    let count = short(end, 10)?;
    let mut at = usize::try_from(long(end, 16)?).ok()?;
    let mut members = Vec::new();
    for _ in 0..count {
        let entry = archive.get(at..)?.strip_prefix(b"PK\x01\x02")?;
        let name_bytes = usize::from(short(entry, 24)?);
        let name = entry.get(42..42 + name_bytes)?;
        members.push(Member {
            name: String::from_utf8_lossy(name).into_owned(),
            is_encrypted: short(entry, 4)? & 1 == 1,
            method: short(entry, 6)?,
            crc: long(entry, 12)?,
            packed_bytes: usize::try_from(long(entry, 16)?).ok()?,
            offset: usize::try_from(long(entry, 38)?).ok()?,
        });
        at += 46 + name_bytes + usize::from(short(entry, 26)?) + usize::from(short(entry, 28)?);
    }
    Some(members)
}

/// Where `needle` is for the last time, in the part of an archive in which its end can be.
fn last_place(archive: &[u8], needle: &[u8]) -> Option<usize> {
    const END_BYTES_MAX: usize = 22 + u16::MAX as usize;
    let from = archive.len().saturating_sub(END_BYTES_MAX);
    let found = archive[from..]
        .windows(needle.len())
        .rposition(|window| window == needle)?;
    Some(from + found)
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|raw| u16::from_le_bytes(*raw))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|raw| u32::from_le_bytes(*raw))
}
