//! The content of an answer: the reply of the script or the persona, counted, cut at its limit and signed.

use super::Simulator;
use crate::call::{Call, Question, ThinkingMode, family};
use crate::dice::Dice;
use crate::faults::Fault;
use crate::persona;
use crate::prompt::digest;
use crate::reply::{Answer, AnswerBlock, AnswerContent, Reply, ReplyPart, StopReason};
use crate::wire::anthropic;
use throughline_transcript::wire::Wire;

impl Simulator {
    /// The reply in words, with ids and signatures.
    pub(super) fn written(
        &mut self,
        call: &Call,
        question: &Question,
        fault: Option<Fault>,
        is_summary: bool,
    ) -> Answer {
        let seed = self.options.seed;
        let mut dice = Dice::new(seed, "answer", &[&self.calls.to_le_bytes()]);
        let id = match call.wire {
            Wire::Anthropic => dice.id("msg_01", 22),
            Wire::OpenAiChat => dice.id("chatcmpl-", 29),
            Wire::OpenAiResponses => dice.id("resp_", 48).to_ascii_lowercase(),
        };
        // The reply depends on the conversation, not on the number of earlier calls.
        let mut mind = Dice::new(seed, "reply", &[question.briefing.last_words()]);
        let mut answer = Answer {
            id,
            model: call
                .body
                .string_field("model")
                .unwrap_or_else(|| call.model.id.clone()),
            blocks: Vec::new(),
            stop: StopReason::EndTurn,
            stop_sequence: None,
            output_tokens: 0,
            thinking_tokens: 0,
        };
        if question.output_max == 0 {
            // The call only fills the cache.
            answer.stop = StopReason::MaxTokens;
            return answer;
        }
        if question.is_compaction {
            let content = persona::compaction(&question.briefing, fault, question.output_max);
            self.compaction_block(call, question, content, &mut answer);
            return answer;
        }
        let mut reply = match self.script.pop_front() {
            Some(reply) => reply,
            None => persona::reply(
                &question.briefing,
                is_summary,
                question.output_max,
                &mut mind,
            ),
        };
        persona::spoil(&mut reply, fault, &question.briefing, &mut mind);
        // With a budget every turn has to begin with thinking; otherwise the model decides.
        let has_budget = call
            .body
            .field("thinking")
            .is_some_and(|thinking| thinking.field("budget_tokens").is_some());
        if reply.thinking.is_none()
            && question.thinks != ThinkingMode::Off
            && (has_budget || (!is_summary && mind.happens(0.8)))
        {
            reply.thinking = Some(persona::thought(&question.briefing, &mut mind));
        }
        self.blocks(call, question, reply, &mut dice, &mut answer);
        answer
    }

    /// Counts the parts of a reply, cuts it at its limit and signs hidden parts.
    ///
    /// Each answer draws new ids for its calls, as for itself: ids never repeat in a conversation, even if the request no
    /// longer has the earlier calls.
    fn blocks(
        &self,
        call: &Call,
        question: &Question,
        reply: Reply,
        dice: &mut Dice,
        answer: &mut Answer,
    ) {
        let scale = call.scale;
        let window = call.model.window;
        let room = window.saturating_sub(question.prompt.tokens()).max(1);
        let (limit, at_limit) = if question.output_max <= room {
            (question.output_max, StopReason::MaxTokens)
        } else {
            (room, StopReason::WindowExceeded)
        };
        answer.stop = reply.reason();
        if question.thinks != ThinkingMode::Off
            && let Some(thinking) = &reply.thinking
        {
            let tokens = scale.text(thinking).min(limit);
            let text = match question.thinks {
                ThinkingMode::Shown => thinking.clone(),
                ThinkingMode::Hidden | ThinkingMode::Off => String::new(),
            };
            let signature = self.signer.sign(
                family(&call.model),
                &question.prefix,
                &digest(&[text.as_bytes()]),
                tokens,
            );
            answer.thinking_tokens = tokens;
            answer.output_tokens = tokens;
            answer.blocks.push(AnswerBlock {
                content: AnswerContent::Thinking { text, signature },
                tokens,
            });
        }
        let mut taken = question.call_ids.clone();
        taken.extend(question.briefing.server_call_ids());
        for part in reply.parts {
            let left = limit.saturating_sub(answer.output_tokens);
            let content = match part {
                ReplyPart::Text(text) => {
                    let (text, stopped) = up_to_stop(text, &question.stop_sequences);
                    let tokens = scale.text(&text);
                    let is_cut = tokens > left;
                    let text = if is_cut {
                        share(&text, left, tokens)
                    } else {
                        text
                    };
                    if is_cut {
                        answer.stop = at_limit;
                    } else if let Some(sequence) = stopped {
                        answer.stop = StopReason::StopSequence;
                        answer.stop_sequence = Some(sequence);
                    }
                    let is_last = is_cut || answer.stop_sequence.is_some();
                    let tokens = tokens.min(left);
                    answer.output_tokens += tokens;
                    answer.blocks.push(AnswerBlock {
                        content: AnswerContent::Text(text),
                        tokens,
                    });
                    if is_last {
                        return;
                    }
                    continue;
                }
                ReplyPart::ToolCall { name, input } => AnswerContent::ToolCall {
                    id: free_id(&mut taken, || match call.wire {
                        Wire::Anthropic => dice.id("toolu_01", 22),
                        Wire::OpenAiChat | Wire::OpenAiResponses => dice.id("call_", 24),
                    }),
                    name,
                    input,
                },
                ReplyPart::ServerToolCall { name, input } => AnswerContent::ServerToolCall {
                    id: free_id(&mut taken, || dice.id("srvtoolu_01", 22)),
                    name,
                    input,
                },
                ReplyPart::WebSearchResult => AnswerContent::WebSearchResult {
                    call_id: question.briefing.open_server_call().unwrap_or_default(),
                },
            };
            let tokens = match &content {
                AnswerContent::ToolCall { name, input, .. }
                | AnswerContent::ServerToolCall { name, input, .. } => {
                    12 + scale.text(name) + scale.text(input)
                }
                _ => 0,
            };
            if tokens > left {
                answer.stop = at_limit;
                return;
            }
            answer.output_tokens += tokens;
            answer.blocks.push(AnswerBlock { content, tokens });
        }
    }

    fn compaction_block(
        &self,
        call: &Call,
        question: &Question,
        content: Option<String>,
        answer: &mut Answer,
    ) {
        let text = digest(&[content.as_deref().unwrap_or_default().as_bytes()]);
        let tokens = content.as_ref().map_or(0, |text| call.scale.text(text));
        let (encrypted, signature) =
            anthropic::seal(&self.signer, &question.briefing.covered(), &text);
        answer.stop = StopReason::Compaction;
        answer.output_tokens = tokens;
        answer.blocks.push(AnswerBlock {
            content: AnswerContent::Compaction {
                content,
                encrypted,
                signature,
            },
            tokens,
        });
    }
}

/// An id that no call of the conversation has.
fn free_id(taken: &mut Vec<String>, mut drawn: impl FnMut() -> String) -> String {
    loop {
        let id = drawn();
        if !taken.contains(&id) {
            taken.push(id.clone());
            return id;
        }
    }
}

/// The text before the first stop sequence in it.
fn up_to_stop(mut text: String, sequences: &[String]) -> (String, Option<String>) {
    let first = sequences
        .iter()
        .filter(|sequence| !sequence.is_empty())
        .filter_map(|sequence| Some((text.find(sequence.as_str())?, sequence)))
        .min_by_key(|(at, _)| *at);
    match first {
        Some((at, sequence)) => {
            text.truncate(at);
            (text, Some(sequence.clone()))
        }
        None => (text, None),
    }
}

/// The part of a text with this many of its tokens.
fn share(text: &str, tokens: u64, of: u64) -> String {
    let bytes = text.len() as u64 * tokens / of.max(1);
    let end = text.floor_char_boundary(usize::try_from(bytes).unwrap_or(usize::MAX));
    text.get(..end).unwrap_or_default().to_owned()
}
