//! What thinking and compactions are bound to, and whether they still are.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::prompt::{Key, PartKind, Parts, digest, link};
use crate::signature::{Signer, Verdict};

/// The chain that thinking is bound to: `system`, tools that are not deferred, messages, all without cache markers.
pub(super) struct Binding {
    base: Key,
    pub(super) covered: Key,
}

impl Binding {
    pub(super) fn new(tools: Option<&Parts>, system: Option<&Parts>) -> Self {
        let mut base = digest(&[b"binding"]);
        let tools = tools.iter().flat_map(|parts| &parts.parts);
        for part in tools.filter(|part| !matches!(part.kind, PartKind::DeferredTool)) {
            base = link(&base, &part.digest);
        }
        base = digest(&[&base, b"system"]);
        for part in system.iter().flat_map(|parts| &parts.parts) {
            base = link(&base, &part.digest);
        }
        Self {
            base,
            covered: digest(&[b"messages"]),
        }
    }

    pub(super) fn prefix(&self) -> Key {
        link(&self.base, &self.covered)
    }

    /// Goes on over one message and says of each of its blocks whether its signature holds, if it has one.
    pub(super) fn message(
        &mut self,
        message: &Parts,
        signer: &Signer,
        model: &str,
    ) -> Vec<Option<Verdict>> {
        let mut verdicts = Vec::with_capacity(message.parts.len());
        let mut prefix = self.prefix();
        let mut covered = digest(&[&self.covered, format!("{:?}", message.role).as_bytes()]);
        for part in &message.parts {
            covered = link(&covered, &part.digest);
            verdicts.push(match &part.kind {
                PartKind::Thinking { text, signature } => {
                    let verdict = signer.verify(signature, model, &prefix, text);
                    // Blocks of one message are chained to each other.
                    prefix = link(&prefix, &part.digest);
                    Some(verdict)
                }
                PartKind::Compaction(block) => match (&block.encrypted, &block.signature) {
                    (Some(encrypted), Some(signature)) => {
                        match unseal(signer, encrypted, signature, &block.content) {
                            // The block replaces the messages that it covers.
                            Some(replaced) => {
                                covered = replaced;
                                Some(Verdict::Genuine)
                            }
                            None => Some(Verdict::Forged),
                        }
                    }
                    _ => None,
                },
                _ => None,
            });
        }
        self.covered = covered;
        verdicts
    }
}

/// What only the provider reads of a compaction, and its signature.
pub(crate) fn seal(signer: &Signer, covered: &Key, content: &Key) -> (String, String) {
    let encrypted = STANDARD.encode(covered);
    let signature = signer.sign("compaction", covered, content, 0);
    (encrypted, signature)
}

fn unseal(signer: &Signer, encrypted: &str, signature: &str, content: &Key) -> Option<Key> {
    let covered: Key = STANDARD.decode(encrypted).ok()?.try_into().ok()?;
    (signer.verify(signature, "compaction", &covered, content) == Verdict::Genuine)
        .then_some(covered)
}
