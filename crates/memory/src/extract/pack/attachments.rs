//! What the person attached.

use std::cmp::Reverse;

use super::{Packer, excerpt};
use crate::document::{Entry, Origin, Provenance};

/// Of the words that came with an attachment this much is quoted, bytes.
const SAID_BYTES: usize = 160;

impl Packer<'_> {
    pub(super) fn attachments(&mut self) {
        let mut share = self.share(5);
        let mut attachments: Vec<_> = self.extractor.attachments.iter().collect();
        attachments.sort_by_key(|attachment| Reverse(attachment.message));
        for attachment in attachments {
            let number = attachment.message + 1;
            let what = &attachment.what;
            let said = excerpt(&attachment.said, SAID_BYTES);
            let text = if said.is_empty() {
                format!("Attached to message {number}: {what}")
            } else {
                format!("Attached to message {number}: {what}, with the words: {said}")
            };
            let provenance = Provenance {
                message: attachment.message,
                at_ms: attachment.at_ms,
            };
            self.add(
                Entry::Reference { text },
                Origin::Code,
                provenance,
                &mut share,
            );
        }
    }
}
