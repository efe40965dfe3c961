//! The providers whose addresses are known.

use throughline::providers::credential::{AuthStyle, Credential};
use throughline_transcript::catalogue::Catalogue;
use throughline_transcript::wire::Wire;

use super::{no_credential, variable};
use crate::error::Failure;

/// One provider.
#[derive(Debug)]
pub(crate) struct Provider {
    /// As the catalogue calls it.
    name: &'static str,
    pub(super) base_url: &'static str,
    /// Another address, as the provider's own tools read it.
    pub(super) base_url_variable: Option<&'static str>,
    pub(crate) wire: Wire,
    /// Where its tools look for the key.
    pub(super) variable: &'static str,
    /// The default model.
    pub(super) model: &'static str,
}

/// In the order in which a key is looked for where no model is named.
pub(crate) static PROVIDERS: &[Provider] = &[
    Provider {
        name: "anthropic",
        base_url: "https://api.anthropic.com",
        base_url_variable: Some("ANTHROPIC_BASE_URL"),
        wire: Wire::Anthropic,
        variable: "ANTHROPIC_API_KEY",
        model: "claude-opus-5-5",
    },
    Provider {
        name: "openai",
        base_url: "https://api.openai.com/v1",
        base_url_variable: Some("OPENAI_BASE_URL"),
        wire: Wire::OpenAiResponses,
        variable: "OPENAI_API_KEY",
        model: "gpt-6.2-sol",
    },
    Provider {
        name: "google",
        base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
        base_url_variable: None,
        wire: Wire::OpenAiChat,
        variable: "GEMINI_API_KEY",
        model: "gemini-3-pro",
    },
    Provider {
        name: "deepseek",
        base_url: "https://api.deepseek.com/v1",
        base_url_variable: None,
        wire: Wire::OpenAiChat,
        variable: "DEEPSEEK_API_KEY",
        model: "deepseek-v3",
    },
];

/// Anthropic's second way of saying who one is: a token.
const ANTHROPIC_TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";

/// Where keys are looked for, for people.
pub(super) fn variables() -> String {
    let names: Vec<&str> = PROVIDERS.iter().map(|provider| provider.variable).collect();
    names.join(", ")
}

impl Provider {
    /// Whose model this is.
    pub(crate) fn of_model(model: &str, catalogue: &Catalogue) -> Option<&'static Self> {
        let name = match catalogue.find(model) {
            Some(known) => known.provider.as_str(),
            // Newer than the catalogue.
            None if model.starts_with("claude-") => "anthropic",
            None if model.starts_with("gpt-") => "openai",
            None if model.starts_with("gemini-") => "google",
            None => return None,
        };
        PROVIDERS.iter().find(|provider| provider.name == name)
    }

    /// The first one that there is a key for.
    pub(super) fn with_key() -> Option<&'static Self> {
        PROVIDERS.iter().find(|provider| provider.has_key())
    }

    /// The one that has made the wire.
    pub(super) fn of_wire(wire: Wire) -> Option<&'static Self> {
        PROVIDERS.iter().find(|provider| provider.wire == wire)
    }

    fn has_key(&self) -> bool {
        variable(self.variable).is_some()
            || self.wire == Wire::Anthropic && variable(ANTHROPIC_TOKEN).is_some()
    }

    /// The key of the environment, and its variable.
    pub(super) fn key(&self) -> Result<Option<(Credential, String)>, Failure> {
        let found = match (variable(self.variable), variable(ANTHROPIC_TOKEN)) {
            (Some(_), _) => (Credential::from_environment(self.variable), self.variable),
            (None, Some(_)) if self.wire == Wire::Anthropic => {
                let token = Credential::from_environment(ANTHROPIC_TOKEN);
                let token = token.map(|token| token.with_style(AuthStyle::Bearer));
                (token, ANTHROPIC_TOKEN)
            }
            _ => return Ok(None),
        };
        match found {
            (Ok(key), name) => Ok(Some((key, format!("the environment variable {name}")))),
            (Err(error), _) => Err(no_credential(&error)),
        }
    }

    /// Where requests are sent: the key of the environment belongs to the address of the environment.
    pub(super) fn address(&self) -> String {
        self.base_url_variable
            .and_then(variable)
            .unwrap_or_else(|| self.base_url.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_known_by_their_models() {
        let check = |model: &str, expected: Option<&str>| {
            let found = Provider::of_model(model, Catalogue::embedded());
            assert_eq!(found.map(|provider| provider.name), expected, "{model}");
        };
        check("claude-opus-5-5", Some("anthropic"));
        check("claude-of-next-year", Some("anthropic"));
        check("gpt-5", Some("openai"));
        check("gemini-3-pro", Some("google"));
        check("qwen-of-mine:8b", None);
    }

    #[test]
    fn the_models_that_nobody_names_are_in_the_catalogue() {
        for provider in PROVIDERS {
            let model = Catalogue::embedded().find(provider.model);
            let of = model.map(|model| model.provider.as_str());
            assert_eq!(of, Some(provider.name), "{}", provider.model);
        }
    }
}
