//! Classifies responses that are not answers.
//!
//! [`classify`] sorts responses by what the caller can do about them. Only [`Class::ContextOverflow`] and
//! [`Class::BodyTooLarge`] are reasons to compact at once; [`Class::RateLimit`] and [`Class::Overloaded`] ask for
//! patience; [`Class::BadRequest`] is to be reported and not cured by leaving history out. The text of a normal answer
//! is never taken for an error: it is not looked at.
//!
//! Codes and types decide where there are any. The wordings are those of Anthropic, OpenAI, Bedrock, Gemini, llama.cpp
//! and routers as far as they are known; providers declare them unstable, so an unknown one is only a bad request.

use crate::json::{Kind, Raw};

/// What kind of refusal an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// It is none.
    None,
    /// The prompt, or prompt and output together, do not fit the window.
    ContextOverflow,
    /// The body has too many bytes.
    BodyTooLarge,
    /// Too many requests or tokens for now, or a spending limit.
    RateLimit,
    /// The provider has no capacity for now.
    Overloaded,
    /// The credential is missing, wrong or may not do this.
    Denied,
    /// The request is wrong in itself.
    BadRequest,
    /// Something failed on the provider's side.
    ServerError,
    /// An answer came, but the server read much less than it was sent.
    SuspectedSilentTruncation,
}

/// A refusal, and what can be learnt from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderRefusal {
    /// What kind it is.
    pub class: Class,
    /// The window that the provider says it has, tokens.
    pub window: Option<u64>,
    /// Whether asking for less output may be enough.
    pub is_output_too: bool,
}

/// An answer of a provider, as far as it matters here.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProviderAnswer<'a> {
    /// HTTP status.
    pub status: u16,
    /// The body of an answer that is not a success, where it is text.
    pub body: &'a str,
    /// Why the model stopped (`stop_reason`, `finish_reason`), where there is an answer.
    pub stop_reason: Option<&'a str>,
    /// Reported prompt size, tokens.
    pub prompt_tokens: Option<u64>,
    /// Estimated size of what was sent, tokens.
    pub estimated_tokens: Option<u64>,
}

/// Bodies are looked at up to this length: error bodies are short.
const BODY_BYTES_MAX: usize = 1 << 16;

/// Says what kind of refusal `answer` is.
#[must_use]
pub fn classify(answer: &ProviderAnswer<'_>) -> ProviderRefusal {
    let plain = |class| ProviderRefusal {
        class,
        window: None,
        is_output_too: false,
    };
    if (200..300).contains(&answer.status) {
        return plain(classify_success(answer));
    }
    let error = ErrorBody::read(crate::text::head(answer.body, BODY_BYTES_MAX));
    match answer.status {
        413 => return plain(Class::BodyTooLarge),
        429 => return plain(Class::RateLimit),
        401..=403 => return plain(Class::Denied),
        503 | 529 => return plain(Class::Overloaded),
        400 | 422 => {}
        500.. => return plain(Class::ServerError),
        _ => return plain(Class::BadRequest),
    }
    if error.has_kind("rate_limit_error") || error.has_kind("rate_limit_exceeded") {
        return plain(Class::RateLimit);
    }
    if !error.is_overflow() {
        return plain(Class::BadRequest);
    }
    ProviderRefusal {
        class: Class::ContextOverflow,
        window: error.window,
        is_output_too: error.message.contains("`max_tokens` exceed")
            || error.message.contains("max_tokens exceed"),
    }
}

fn classify_success(answer: &ProviderAnswer<'_>) -> Class {
    if answer.stop_reason == Some("model_context_window_exceeded") {
        return Class::ContextOverflow;
    }
    match (answer.estimated_tokens, answer.prompt_tokens) {
        (Some(estimated), Some(reported))
            if crate::tokens::ContextMeter::seems_cut(estimated, reported) =>
        {
            Class::SuspectedSilentTruncation
        }
        _ => Class::None,
    }
}

/// The parts of an error body, at any depth.
#[derive(Default)]
struct ErrorBody {
    /// In lower case.
    message: String,
    /// `type`, `code`, `status` and the like.
    kinds: Vec<String>,
    window: Option<u64>,
}

impl ErrorBody {
    fn read(body: &str) -> Self {
        let mut error = Self::default();
        match Raw::parse(body.trim()) {
            Ok(raw) => error.take(&raw, 0),
            // A page or plain text: only its words are left.
            Err(_) => error.message = body.to_ascii_lowercase(),
        }
        if error.window.is_none() {
            error.window = window_in(&error.message);
        }
        error
    }

    fn take(&mut self, raw: &Raw, depth: usize) {
        match raw.kind() {
            Kind::String => self.say(raw),
            Kind::Object => {
                for (name, value) in raw.object() {
                    match name.decode().as_ref() {
                        "message" | "detail" => self.say(&value),
                        "type" | "code" | "status" | "error_code" => {
                            if let Some(text) = value.as_text() {
                                self.kinds.push(text.decode().into_owned());
                            }
                        }
                        "n_ctx" => self.window = value.as_u64().filter(|window| *window > 0),
                        "error" | "details" if depth < 3 => self.take(&value, depth + 1),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn say(&mut self, value: &Raw) {
        if let Some(text) = value.as_text() {
            self.message.push_str(&text.decode().to_ascii_lowercase());
            self.message.push('\n');
        }
    }

    fn has_kind(&self, kind: &str) -> bool {
        self.kinds.iter().any(|known| known == kind)
    }

    fn is_overflow(&self) -> bool {
        const KINDS: &[&str] = &[
            "context_length_exceeded",
            "exceed_context_size_error",
            "model_context_window_exceeded",
        ];
        const WORDINGS: &[&str] = &[
            "prompt is too long",
            "exceed context limit",
            "maximum context length",
            "input is too long for requested model",
            "exceeds the available context size",
            "exceeds the context window",
            "exceeds the maximum number of tokens allowed",
        ];
        KINDS.iter().any(|kind| self.has_kind(kind))
            || WORDINGS
                .iter()
                .any(|wording| self.message.contains(wording))
    }
}

/// The window that an error message names, tokens.
#[must_use]
pub fn window_in(message: &str) -> Option<u64> {
    let message = message.to_ascii_lowercase();
    let after = |words: &str| {
        let at = message.find(words)? + words.len();
        number_at_start(message.get(at..)?)
    };
    after("maximum context length is ")
        .or_else(|| after("maximum number of tokens allowed ("))
        // "<n> tokens > <window> maximum", "exceed context limit: <n> + <n> > <window>"
        .or_else(|| {
            let is_overflow =
                message.contains("prompt is too long") || message.contains("exceed context limit");
            is_overflow.then(|| after(" > ")).flatten()
        })
        .filter(|window| (1..=crate::catalogue::WINDOW_MAX).contains(window))
}

fn number_at_start(text: &str) -> Option<u64> {
    let digits: String = text
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, body: &str, class: Class, window: Option<u64>) {
        let refusal = classify(&ProviderAnswer {
            status,
            body,
            ..ProviderAnswer::default()
        });
        assert_eq!((refusal.class, refusal.window), (class, window), "{body}");
    }

    fn anthropic(kind: &str, message: &str) -> String {
        format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}"#)
    }

    #[test]
    fn overflows_are_distinguished_from_everything_else() {
        use Class::{
            BadRequest, BodyTooLarge, ContextOverflow, Overloaded, RateLimit, ServerError,
        };
        let bad = "invalid_request_error";
        check(
            400,
            &anthropic(bad, "prompt is too long: 203511 tokens > 200000 maximum"),
            ContextOverflow,
            Some(200_000),
        );
        let both = anthropic(
            bad,
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
        );
        check(400, &both, ContextOverflow, Some(200_000));
        assert!(
            classify(&ProviderAnswer {
                status: 400,
                body: &both,
                ..ProviderAnswer::default()
            })
            .is_output_too
        );
        check(
            400,
            r#"{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            ContextOverflow,
            Some(128_000),
        );
        check(
            400,
            r#"{"message":"Input is too long for requested model."}"#,
            ContextOverflow,
            None,
        );
        check(
            400,
            r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"the request exceeds the available context size","n_prompt_tokens":40210,"n_ctx":32768}}"#,
            ContextOverflow,
            Some(32_768),
        );
        check(
            400,
            r#"{"error":{"code":400,"message":"The input token count (1200034) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
            ContextOverflow,
            Some(1_048_576),
        );
        check(
            400,
            r#"{"error":{"message":"This endpoint's maximum context length is 65,536 tokens. However, you requested about 70112 tokens","code":400}}"#,
            ContextOverflow,
            Some(65_536),
        );
        check(
            413,
            &anthropic("request_too_large", "Request exceeds the maximum size"),
            BodyTooLarge,
            None,
        );
        check(
            429,
            &anthropic(
                "rate_limit_error",
                "This request would exceed the limit of 30000 input tokens per minute",
            ),
            RateLimit,
            None,
        );
        check(
            429,
            r#"{"error":{"message":"Request too large for model on tokens per min (TPM): Limit 30000, Requested 41200","type":"tokens","code":"rate_limit_exceeded"}}"#,
            RateLimit,
            None,
        );
        check(
            529,
            &anthropic("overloaded_error", "Overloaded"),
            Overloaded,
            None,
        );
        check(
            400,
            &anthropic(
                bad,
                "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: t2",
            ),
            BadRequest,
            None,
        );
        check(
            400,
            &anthropic(
                bad,
                "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens",
            ),
            BadRequest,
            None,
        );
        check(500, "<html>upstream</html>", ServerError, None);
        check(400, "", BadRequest, None);
        check(401, "prompt is too long", Class::Denied, None);
    }

    #[test]
    fn answers_are_not_errors_even_if_they_mention_them() {
        let answer = |stop_reason, prompt_tokens, estimated_tokens| {
            classify(&ProviderAnswer {
                status: 200,
                body: "The log says context_length_exceeded: prompt is too long.",
                stop_reason,
                prompt_tokens,
                estimated_tokens,
            })
            .class
        };
        assert_eq!(answer(Some("end_turn"), None, None), Class::None);
        assert_eq!(
            answer(Some("model_context_window_exceeded"), None, None),
            Class::ContextOverflow
        );
        assert_eq!(
            answer(None, Some(4_096), Some(31_000)),
            Class::SuspectedSilentTruncation
        );
        assert_eq!(answer(None, Some(29_000), Some(31_000)), Class::None);
        assert_eq!(answer(None, Some(0), Some(31_000)), Class::None);
    }
}
