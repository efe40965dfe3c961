//! The wire checker: would the provider refuse this request body, and why?
//!
//! [`check`] walks a body once and reports every rule of the provider that it breaks, each as a [`Finding`] with a
//! stable code, a path and a sentence that says what to do. An error means that the provider answers
//! with a 4xx; a warning, that it may (the rule depends on the model, the version or the platform, and these are
//! unknown) or that the body does not mean what its writer probably intends.
//!
//! What a body alone cannot tell is not checked: whether a signature is genuine, whether a thinking block was changed
//! since the model wrote it, whether the prompt fits the window. Fields and block types that are not known here are
//! at most warned of, because the providers add new ones faster than anybody can follow.
//!
//! ```
//! use throughline_transcript::check::{CheckOptions, check_text};
//! use throughline_transcript::wire::Wire;
//!
//! let body = r#"{"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": " "}]}"#;
//! let report = check_text(body, Wire::Anthropic, &CheckOptions::default());
//! assert!(!report.is_valid());
//! assert_eq!(report.findings[0].code, "blank-text");
//! assert_eq!(report.findings[0].path, "messages[0].content");
//! ```

mod anthropic;
mod checker;
mod openai_chat;
mod openai_responses;
mod path;
mod rule;
mod structure;
#[cfg(test)]
mod tests;

use crate::catalogue::Model;
use crate::json::{Kind, Raw};
use crate::wire::Wire;

use checker::Checker;
use path::Path;

pub use rule::{Rule, Severity, rules};

/// How many findings a report lists. Of the rest it only says how many there are.
pub const FINDINGS_MAX: usize = 500;

/// The published body limit of the Anthropic API, in bytes. Above it the answer is 413.
pub const ANTHROPIC_BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// What the checker found in one body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The format that the body was checked as.
    pub wire: Wire,
    /// What was found, in the order of the walk; at most [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// Findings beyond the limit.
    pub omitted: usize,
    errors: usize,
}

/// One broken rule at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stable name of the rule, such as `tool-use-without-result`.
    pub code: &'static str,
    /// Whether the provider refuses the body for it.
    pub severity: Severity,
    /// Where in the body, such as `messages[3].content[1].tool_use_id`; empty for the body as a whole.
    pub path: String,
    /// What is wrong and what to do, in one sentence.
    pub message: String,
    /// Whose rule it is, in a few words.
    pub source: &'static str,
}

/// What is known beside the body. Rules that depend on something unknown only warn.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckOptions<'a> {
    /// The model that the request goes to, from the [catalogue](crate::catalogue::Catalogue).
    pub model: Option<&'a Model>,
    /// The `anthropic-version` header. A field of that name in the body (Bedrock, Vertex) replaces it.
    pub anthropic_version: Option<&'a str>,
    /// The beta names of the `anthropic-beta` header, if the headers are known.
    pub betas: Option<&'a [&'a str]>,
    /// Rules beyond the provider's own.
    pub profile: Profile,
    /// Limit of the endpoint in use, in bytes; longer bodies are an error. Without it, Anthropic bodies over
    /// [`ANTHROPIC_BODY_BYTES_MAX`] are warned of, since platforms differ and bodies may be sent compressed.
    pub body_bytes_max: Option<usize>,
}

/// Rules beyond the provider's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The provider's rules only.
    #[default]
    Provider,
    /// Chat templates of many local models: one system message at the front, no `developer`, then user and
    /// assistant strictly in turn. Concerns Chat Completions only.
    StrictAlternation,
}

impl Report {
    /// Whether the provider would take the body, as far as the body tells.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.errors == 0
    }

    /// The findings for which the provider refuses the body.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error)
    }

    /// Whether a rule was broken, as an error or as a warning.
    #[must_use]
    pub fn has(&self, code: &str) -> bool {
        self.findings.iter().any(|finding| finding.code == code)
    }
}

/// Checks a request body.
#[must_use]
pub fn check(body: &Raw, wire: Wire, options: &CheckOptions<'_>) -> Report {
    let mut checker = Checker::new(wire, options);
    check_size(body.len(), &mut checker);
    if body.kind() == Kind::Object {
        match wire {
            Wire::Anthropic => anthropic::check(body, &mut checker),
            Wire::OpenAiChat => openai_chat::check(body, &mut checker),
            Wire::OpenAiResponses => openai_responses::check(body, &mut checker),
        }
    } else {
        checker.add(
            &rule::BODY_NOT_OBJECT,
            Path::Root,
            "the body must be a JSON object with the fields of the request",
        );
    }
    structure::check(body, &mut checker);
    checker.into_report()
}

/// Checks the text of a request body. A text that is not JSON is one finding.
#[must_use]
pub fn check_text(text: &str, wire: Wire, options: &CheckOptions<'_>) -> Report {
    match Raw::parse(text) {
        Ok(body) => check(&body, wire, options),
        Err(error) => {
            let mut checker = Checker::new(wire, options);
            checker.add(
                &rule::INVALID_JSON,
                Path::Root,
                format_args!("the body is not JSON: {error}"),
            );
            checker.into_report()
        }
    }
}

fn check_size(bytes: usize, checker: &mut Checker<'_>) {
    match checker.options.body_bytes_max {
        Some(limit) if bytes > limit => checker.add(
            &rule::BODY_TOO_LARGE,
            Path::Root,
            format_args!("the body has {bytes} bytes, the endpoint takes {limit}: leave out old images or results"),
        ),
        None if bytes > ANTHROPIC_BODY_BYTES_MAX && checker.wire == Wire::Anthropic => checker.warn(
            &rule::BODY_TOO_LARGE,
            Path::Root,
            format_args!(
                "the body has {bytes} bytes and the API answers 413 above {ANTHROPIC_BODY_BYTES_MAX}: leave out old images or results"
            ),
        ),
        _ => {}
    }
}
