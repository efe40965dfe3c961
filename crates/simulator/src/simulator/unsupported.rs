//! Legal settings of OpenAI that the simulator does not support: it refuses them, instead of answering as if they
//! were not there.

use throughline_transcript::json::Raw;
use throughline_transcript::wire::Wire;

use crate::api_error::ApiError;

/// The error for the first setting that changes the answer in a way that is not simulated.
pub(super) fn first_error(body: &Raw, wire: Wire) -> Option<ApiError> {
    let is_true = |name: &str| body.field(name).and_then(|raw| raw.as_bool()) == Some(true);
    let above = |name: &str, most: u64| {
        let number = body.field(name).and_then(|raw| raw.as_u64());
        number.is_some_and(|number| number > most)
    };
    let is_there = |name: &str| body.field(name).is_some_and(|raw| !raw.is_null());
    let lists = |name: &str, wanted: &str| {
        let list = body.field(name);
        let mut entries = list.iter().flat_map(Raw::array);
        entries.any(|entry| entry.as_text().is_some_and(|text| text.decode() == wanted))
    };
    let (param, what) = match wire {
        Wire::Anthropic => return None,
        Wire::OpenAiChat if above("n", 1) => ("n", "further choices"),
        Wire::OpenAiChat if is_true("logprobs") => ("logprobs", "log probabilities"),
        Wire::OpenAiChat if lists("modalities", "audio") => ("modalities", "audio as output"),
        Wire::OpenAiResponses if above("top_logprobs", 0) => ("top_logprobs", "log probabilities"),
        Wire::OpenAiResponses if lists("include", "message.output_text.logprobs") => {
            ("include", "log probabilities")
        }
        Wire::OpenAiResponses if is_true("background") => ("background", "work in the background"),
        Wire::OpenAiResponses if is_there("conversation") => ("conversation", "conversations"),
        Wire::OpenAiResponses if is_there("prompt") => ("prompt", "stored prompts"),
        Wire::OpenAiChat | Wire::OpenAiResponses => return None,
    };
    let message = format!("Unsupported parameter: '{param}'. The simulator has no {what}.");
    Some(
        ApiError::new(400, message)
            .code("unsupported_parameter")
            .param(param),
    )
}
