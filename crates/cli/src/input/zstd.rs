//! Unpacks zstd: one frame after the other.

use std::io::{self, BufRead, BufReader, Read};

use ruzstd::decoding::StreamingDecoder;

use super::BYTES_MAX;

/// Appends what is unpacked to `bytes`, of which there are at most [`BYTES_MAX`] and one.
pub(super) fn unpack(reader: impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut reader = BufReader::new(reader);
    while !reader.fill_buf()?.is_empty() {
        let left = (BYTES_MAX + 1).saturating_sub(bytes.len() as u64);
        if left == 0 {
            break;
        }
        let frame = StreamingDecoder::new(&mut reader)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        frame.take(left).read_to_end(bytes)?;
    }
    Ok(())
}
