//! Signatures of texts that only the provider can read: thinking, encrypted reasoning, compactions.
//!
//! A signature says which model family wrote a text and, on models that bind thinking to its prefix, that prefix. It is
//! opaque to clients, and as long as the text that it represents, because the real ones hold it encrypted.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::prompt::{Key, digest};

const MAGIC: &[u8; 4] = b"tls1";
const MAC_BYTES: usize = 16;
const HEAD_BYTES: usize = 4 + 3 * MAC_BYTES;

/// The most that a signature holds beyond its head, bytes.
const FILLER_BYTES_MAX: usize = 64 * 1024;

/// What a signature turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It belongs to this text, at this place.
    Genuine,
    /// Another model wrote it.
    OtherModel,
    /// It belongs to this text, but something before it has changed.
    OtherPrefix,
    /// It belongs to another text, or this provider did not make it.
    Forged,
}

/// Signs and verifies with a key from the seed.
#[derive(Clone, Debug)]
pub(crate) struct Signer {
    key: Key,
}

impl Signer {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            key: digest(&[b"signatures", &seed.to_le_bytes()]),
        }
    }

    /// Signs the digest of a text by `model` that comes after `prefix`. The signature is as long as `hidden_tokens` need.
    pub(crate) fn sign(&self, model: &str, prefix: &Key, text: &Key, hidden_tokens: u64) -> String {
        let bytes = usize::try_from(hidden_tokens)
            .unwrap_or(usize::MAX)
            .saturating_mul(9)
            / 2;
        let filler_bytes = bytes
            .min(FILLER_BYTES_MAX)
            .saturating_sub(HEAD_BYTES + MAC_BYTES);
        let mut signature = Vec::with_capacity(HEAD_BYTES + filler_bytes + MAC_BYTES);
        signature.extend_from_slice(MAGIC);
        signature.extend(mac(&self.key, &[b"model", model.as_bytes()]));
        signature.extend(mac(&self.key, &[b"prefix", prefix]));
        signature.extend(mac(&self.key, &[b"text", text]));
        let mut filler = vec![0; filler_bytes];
        blake3::Hasher::new_keyed(&self.key)
            .update(text)
            .finalize_xof()
            .fill(&mut filler);
        signature.extend(filler);
        let whole = mac(&self.key, &[b"whole", &signature]);
        signature.extend(whole);
        STANDARD.encode(signature)
    }

    pub(crate) fn verify(&self, signature: &str, model: &str, prefix: &Key, text: &Key) -> Verdict {
        let Ok(bytes) = STANDARD.decode(signature) else {
            return Verdict::Forged;
        };
        let Some((body, whole)) = bytes
            .len()
            .checked_sub(MAC_BYTES)
            .filter(|length| *length >= HEAD_BYTES)
            .map(|length| bytes.split_at(length))
        else {
            return Verdict::Forged;
        };
        let part = |index: usize| body.get(4 + index * MAC_BYTES..4 + (index + 1) * MAC_BYTES);
        let is =
            |index: usize, facts: &[&[u8]]| part(index) == Some(mac(&self.key, facts).as_slice());
        if !body.starts_with(MAGIC)
            || whole != mac(&self.key, &[b"whole", body]).as_slice()
            || !is(2, &[b"text", text])
        {
            Verdict::Forged
        } else if !is(0, &[b"model", model.as_bytes()]) {
            Verdict::OtherModel
        } else if !is(1, &[b"prefix", prefix]) {
            Verdict::OtherPrefix
        } else {
            Verdict::Genuine
        }
    }
}

fn mac(key: &Key, facts: &[&[u8]]) -> Vec<u8> {
    let hash = blake3::keyed_hash(key, &digest(facts));
    hash.as_bytes().iter().copied().take(MAC_BYTES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_its_text_model_and_prefix() {
        let signer = Signer::new(1);
        let [text, prefix, other] = [digest(&[b"a"]), digest(&[b"b"]), digest(&[b"c"])];
        let signature = signer.sign("m", &prefix, &text, 200);
        let check = |signature: &str, model, prefix, text, expected| {
            assert_eq!(signer.verify(signature, model, prefix, text), expected);
        };
        check(&signature, "m", &prefix, &text, Verdict::Genuine);
        check(&signature, "n", &prefix, &text, Verdict::OtherModel);
        check(&signature, "m", &other, &text, Verdict::OtherPrefix);
        check(&signature, "m", &prefix, &other, Verdict::Forged);
        check("", "m", &prefix, &text, Verdict::Forged);
        check("c2lnMQ==", "m", &prefix, &text, Verdict::Forged);
        let mut changed = signature.clone();
        changed.replace_range(
            100..101,
            if changed.as_bytes()[100] == b'A' {
                "B"
            } else {
                "A"
            },
        );
        check(&changed, "m", &prefix, &text, Verdict::Forged);
        assert_eq!(
            Signer::new(2).verify(&signature, "m", &prefix, &text),
            Verdict::Forged
        );
        // 200 hidden tokens, at six characters each.
        assert_eq!(signature.len(), 1200);
    }
}
