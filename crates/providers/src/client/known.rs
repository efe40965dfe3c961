//! Clients of the providers whose addresses are known.

use std::ffi::OsString;

use throughline_transcript::wire::Wire;

use super::{BuildError, Client, ClientBuilder};
use crate::credential::{Credential, CredentialError};

const ANTHROPIC: &str = "https://api.anthropic.com";
const OPENAI: &str = "https://api.openai.com";

impl Client {
    /// Begins a client for Anthropic. Without [`ClientBuilder::credential`], the key is read from `ANTHROPIC_API_KEY`
    /// or `ANTHROPIC_AUTH_TOKEN`.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), throughline_providers::client::BuildError> {
    /// let client = throughline_providers::client::Client::anthropic().build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn anthropic() -> ClientBuilder {
        known(Wire::Anthropic)
    }

    /// Begins a client for OpenAI's Chat Completions. Without [`ClientBuilder::credential`], the key is read from
    /// `OPENAI_API_KEY`.
    pub fn openai() -> ClientBuilder {
        known(Wire::OpenAiChat)
    }

    /// Begins a client for OpenAI's Responses. Without [`ClientBuilder::credential`], the key is read from
    /// `OPENAI_API_KEY`.
    pub fn openai_responses() -> ClientBuilder {
        known(Wire::OpenAiResponses)
    }

    /// A client of the provider whose key is in the environment: Anthropic (`ANTHROPIC_API_KEY`, else
    /// `ANTHROPIC_AUTH_TOKEN`), else OpenAI's Chat Completions (`OPENAI_API_KEY`). A variable that is empty counts as
    /// not set. `ANTHROPIC_BASE_URL` and `OPENAI_BASE_URL` replace the address, as they do in the providers' own
    /// libraries. [`Client::wire`] tells which provider it is.
    ///
    /// # Errors
    /// [`BuildError::Credential`] names the variables if none of them is set; otherwise as [`ClientBuilder::build`].
    pub fn from_env() -> Result<Self, BuildError> {
        of_variables(|name| std::env::var_os(name))?.build()
    }
}

fn known(wire: Wire) -> ClientBuilder {
    let base_url = match wire {
        Wire::Anthropic => ANTHROPIC,
        Wire::OpenAiChat | Wire::OpenAiResponses => OPENAI,
    };
    let mut builder = Client::builder(wire, base_url);
    builder.reads_environment = true;
    builder
}

fn of_variables(
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<ClientBuilder, CredentialError> {
    let mut looked_at = Vec::new();
    for (wire, base_url) in [
        (Wire::Anthropic, "ANTHROPIC_BASE_URL"),
        (Wire::OpenAiChat, "OPENAI_BASE_URL"),
    ] {
        match Credential::of_variables(wire, &variable) {
            Ok(credential) => {
                let mut builder = known(wire).credential(credential);
                let base_url = variable(base_url).filter(|value| !value.is_empty());
                if let Some(base_url) = base_url {
                    // An address that is no text is refused as one that is not valid.
                    builder.base_url = base_url.to_string_lossy().into_owned();
                }
                return Ok(builder);
            }
            Err(CredentialError::NotSet { names }) => looked_at.extend(names),
            Err(error) => return Err(error),
        }
    }
    Err(CredentialError::NotSet { names: looked_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder_of(set: &[(&str, &str)]) -> Result<ClientBuilder, CredentialError> {
        of_variables(|name| {
            let (_, value) = set.iter().find(|(known, _)| *known == name)?;
            Some(OsString::from(value))
        })
    }

    #[test]
    fn the_provider_whose_key_is_set_is_taken() {
        let check = |set: &[(&str, &str)], wire, base_url: &str| {
            let builder = builder_of(set).unwrap();
            assert_eq!((builder.wire, &*builder.base_url), (wire, base_url));
            assert!(builder.credential.is_some());
        };
        let anthropic = ("ANTHROPIC_API_KEY", "key");
        let token = ("ANTHROPIC_AUTH_TOKEN", "token");
        let openai = ("OPENAI_API_KEY", "key");
        let elsewhere = ("OPENAI_BASE_URL", "http://127.0.0.1:8787/v1");
        check(&[anthropic, openai], Wire::Anthropic, ANTHROPIC);
        check(&[token], Wire::Anthropic, ANTHROPIC);
        check(&[anthropic, elsewhere], Wire::Anthropic, ANTHROPIC);
        check(
            &[("ANTHROPIC_API_KEY", ""), openai],
            Wire::OpenAiChat,
            OPENAI,
        );
        check(&[openai, elsewhere], Wire::OpenAiChat, elsewhere.1);
    }

    #[test]
    fn the_error_names_every_variable_that_was_looked_at() {
        let error = builder_of(&[]).err().unwrap();
        assert_eq!(
            BuildError::from(error).to_string(),
            "no credential: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN or OPENAI_API_KEY"
        );
    }
}
