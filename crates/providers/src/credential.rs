//! The key to a provider: where it comes from, and how it is kept from leaking.
//!
//! A [`Credential`] is never shown: not in `Debug`, not in errors, not in logs. What a server repeats of it is taken
//! out of its answer before the caller gets it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use throughline_transcript::wire::Wire;

/// How a credential is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuthStyle {
    /// `x-api-key: KEY`: Anthropic's older style, and what most servers that imitate it take.
    XApiKey,
    /// `Authorization: Bearer KEY`: OpenAI's style, Anthropic's for tokens, and for keys in its newest SDKs.
    Bearer,
}

/// A key or token.
#[derive(Clone)]
pub struct Credential {
    secret: SecretString,
    /// Where the source tells how it is to be sent.
    style: Option<AuthStyle>,
}

/// Why there is no credential.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// None of the environment variables is set.
    #[error("no credential: set {}", .names.join(" or "))]
    NotSet {
        /// Their names.
        names: Vec<String>,
    },
    /// It is empty, or has characters that a header cannot contain.
    #[error("the credential from {from} is empty or has characters that cannot be sent")]
    Unusable {
        /// Where it comes from.
        from: String,
    },
    /// The file cannot be read.
    #[error("cannot read the credential file {}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Other users can read the file.
    #[error("others can read the credential file {}: run `chmod 600` on it", .path.display())]
    Permissions {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The keyring has no such entry, or cannot be read.
    #[cfg(feature = "keyring")]
    #[error("cannot read the keyring entry {service:?} of {user:?}: {detail}")]
    Keyring {
        /// The service that the entry is for.
        service: String,
        /// Whose it is.
        user: String,
        /// Why, in words: the error itself may hold what is stored there.
        detail: String,
    },
}

/// The longest credential file that is read, bytes: keys are short.
const FILE_BYTES_MAX: u64 = 16 * 1024;

/// What replaces a credential.
const REDACTED: &str = "[redacted]";

/// Shorter credentials are dummies for local servers (`x`, `none`); taking them out of texts would only garble these.
const REDACTED_BYTES_MIN: usize = 5;

impl Credential {
    /// A credential that the caller has. White space around it is not part of it.
    ///
    /// # Errors
    /// [`CredentialError::Unusable`] if it is empty or has characters that a header cannot contain.
    pub fn new(value: &str) -> Result<Self, CredentialError> {
        Self::checked(value, || "the caller".to_owned())
    }

    /// From an environment variable.
    ///
    /// # Errors
    /// [`CredentialError::NotSet`], or [`CredentialError::Unusable`].
    pub fn from_environment(name: &str) -> Result<Self, CredentialError> {
        let value = std::env::var_os(name).ok_or_else(|| CredentialError::NotSet {
            names: vec![name.to_owned()],
        })?;
        Self::of_variable(name, &value)
    }

    /// From the variables that the providers' own tools read: `ANTHROPIC_API_KEY`, else `ANTHROPIC_AUTH_TOKEN` (sent
    /// as a bearer token); `OPENAI_API_KEY`. A variable that is set and empty counts as not set.
    ///
    /// # Errors
    /// [`CredentialError::NotSet`], or [`CredentialError::Unusable`].
    pub fn of_wire(wire: Wire) -> Result<Self, CredentialError> {
        Self::of_variables(wire, |name| std::env::var_os(name))
    }

    pub(crate) fn of_variables(
        wire: Wire,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, CredentialError> {
        let names: &[(&str, Option<AuthStyle>)] = match wire {
            Wire::Anthropic => &[
                ("ANTHROPIC_API_KEY", None),
                ("ANTHROPIC_AUTH_TOKEN", Some(AuthStyle::Bearer)),
            ],
            Wire::OpenAiChat | Wire::OpenAiResponses => &[("OPENAI_API_KEY", None)],
        };
        for (name, style) in names {
            if let Some(value) = variable(name).filter(|value| !value.is_empty()) {
                let mut credential = Self::of_variable(name, &value)?;
                credential.style = *style;
                return Ok(credential);
            }
        }
        Err(CredentialError::NotSet {
            names: names.iter().map(|(name, _)| (*name).to_owned()).collect(),
        })
    }

    fn of_variable(name: &str, value: &OsStr) -> Result<Self, CredentialError> {
        let from = || format!("the environment variable {name}");
        let value = value
            .to_str()
            .ok_or_else(|| CredentialError::Unusable { from: from() })?;
        Self::checked(value, from)
    }

    /// From the keyring of the system: the Keychain, the Credential Manager, or the key retention service of Linux.
    ///
    /// # Errors
    /// The keyring cannot be read or has no such entry, or the entry holds no credential.
    #[cfg(feature = "keyring")]
    pub fn from_keyring(service: &str, user: &str) -> Result<Self, CredentialError> {
        let failed = |error: keyring::Error| CredentialError::Keyring {
            service: service.to_owned(),
            user: user.to_owned(),
            detail: error.to_string(),
        };
        let entry = keyring::Entry::new(service, user).map_err(failed)?;
        let value = entry.get_password().map_err(failed)?;
        Self::checked(&value, || format!("the keyring entry {service} of {user}"))
    }

    /// From a file that only its owner can read. Line ends and other white space around it are not part of it.
    ///
    /// # Errors
    /// The file cannot be read, others can read it ([`CredentialError::Permissions`]), or it holds no credential.
    pub fn from_file(path: &Path) -> Result<Self, CredentialError> {
        use std::io::Read as _;
        let failed = |source| CredentialError::File {
            path: path.to_owned(),
            source,
        };
        let file = std::fs::File::open(path).map_err(failed)?;
        // Of the opened file, so that it cannot be another one by the time it is read.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
            if mode & 0o077 != 0 {
                return Err(CredentialError::Permissions {
                    path: path.to_owned(),
                    mode,
                });
            }
        }
        let mut value = String::new();
        file.take(FILE_BYTES_MAX)
            .read_to_string(&mut value)
            .map_err(failed)?;
        Self::checked(&value, || format!("the file {}", path.display()))
    }

    /// The same credential, sent in another style than the wire's usual one.
    #[must_use]
    pub fn with_style(mut self, style: AuthStyle) -> Self {
        self.style = Some(style);
        self
    }

    /// The secret itself, for a server that compares it with what a client sends. It must go nowhere else.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.secret.expose_secret()
    }

    /// The header that carries it. Marked as sensitive, so that HTTP libraries do not show or index it.
    pub(crate) fn header(&self, usual: AuthStyle) -> Option<(HeaderName, HeaderValue)> {
        let secret = self.secret.expose_secret();
        let (name, value) = match self.style.unwrap_or(usual) {
            AuthStyle::XApiKey => (
                HeaderName::from_static("x-api-key"),
                HeaderValue::from_str(secret),
            ),
            AuthStyle::Bearer => (
                AUTHORIZATION,
                HeaderValue::from_str(&format!("Bearer {secret}")),
            ),
        };
        let mut value = value.ok()?;
        value.set_sensitive(true);
        Some((name, value))
    }

    /// Takes the credential out of a text that came from elsewhere.
    pub(crate) fn redact(&self, text: &mut String) {
        let secret = self.secret.expose_secret();
        if secret.len() >= REDACTED_BYTES_MIN && text.contains(secret) {
            *text = text.replace(secret, REDACTED);
        }
    }

    fn checked(value: &str, from: impl Fn() -> String) -> Result<Self, CredentialError> {
        let value = value.trim();
        if value.is_empty() || HeaderValue::from_str(value).is_err() {
            return Err(CredentialError::Unusable { from: from() });
        }
        Ok(Self {
            secret: SecretString::from(value),
            style: None,
        })
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("style", &self.style)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> String {
        ["sk-", "ant-", "Zk9Zk9Zk9Zk9"].concat()
    }

    #[test]
    fn it_is_sent_in_the_style_asked_for_and_shown_nowhere() {
        let credential = Credential::new(&format!(" {}\n", key())).unwrap();
        let (name, value) = credential.header(AuthStyle::XApiKey).unwrap();
        assert_eq!(
            (name.as_str(), value.to_str().unwrap()),
            ("x-api-key", &*key())
        );
        assert_eq!(format!("{value:?}"), "Sensitive");
        let (name, value) = credential
            .clone()
            .with_style(AuthStyle::Bearer)
            .header(AuthStyle::XApiKey)
            .unwrap();
        assert_eq!(name, AUTHORIZATION);
        assert_eq!(value.to_str().unwrap(), format!("Bearer {}", key()));
        assert!(!format!("{credential:?}").contains(&key()));
    }

    #[test]
    fn what_cannot_be_sent_is_refused_without_being_shown() {
        for value in ["", "  \n", "two\nlines", "caf\u{0}"] {
            let error = Credential::new(value).unwrap_err();
            assert_eq!(
                error.to_string(),
                "the credential from the caller is empty or has characters that cannot be sent"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn files_are_private_or_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, format!("{}\r\n", key())).unwrap();
        let with_mode = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Credential::from_file(&path)
        };
        for mode in [0o644, 0o640, 0o604, 0o660, 0o610] {
            let error = with_mode(mode).unwrap_err();
            assert!(
                matches!(error, CredentialError::Permissions { mode: found, .. } if found == mode),
                "{mode:o}: {error}"
            );
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
        for mode in [0o600, 0o400] {
            let credential = with_mode(mode).unwrap();
            let (_, value) = credential.header(AuthStyle::XApiKey).unwrap();
            assert_eq!(value.to_str().unwrap(), key());
        }
        let missing = Credential::from_file(&folder.path().join("other")).unwrap_err();
        assert!(matches!(missing, CredentialError::File { .. }));
    }

    #[test]
    fn the_variables_of_the_providers_are_known() {
        let check = |wire, set: &[(&str, &str)], expected: Option<(&str, &str)>| {
            let found = Credential::of_variables(wire, |name| {
                let (_, value) = set.iter().find(|(known, _)| *known == name)?;
                Some(OsString::from(value))
            });
            let header = found
                .ok()
                .and_then(|credential| credential.header(AuthStyle::XApiKey));
            let header = header
                .as_ref()
                .map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
            assert_eq!(header, expected, "{set:?}");
        };
        let both = [
            ("ANTHROPIC_API_KEY", "key"),
            ("ANTHROPIC_AUTH_TOKEN", "token"),
        ];
        check(Wire::Anthropic, &both, Some(("x-api-key", "key")));
        let empty = [("ANTHROPIC_API_KEY", ""), ("ANTHROPIC_AUTH_TOKEN", "token")];
        check(
            Wire::Anthropic,
            &empty,
            Some(("authorization", "Bearer token")),
        );
        check(Wire::OpenAiChat, &both, None);
        let error = Credential::of_variables(Wire::Anthropic, |_| None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no credential: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"
        );
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let error = Credential::from_environment("THROUGHLINE_NO_SUCH_KEY").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no credential: set THROUGHLINE_NO_SUCH_KEY"
        );
    }

    #[cfg(feature = "keyring")]
    #[test]
    fn an_entry_that_the_keyring_does_not_have_is_named() {
        // Systems without a keyring end here too.
        let error = Credential::from_keyring("throughline-test-none", "nobody").unwrap_err();
        assert!(
            error.to_string().starts_with(
                "cannot read the keyring entry \"throughline-test-none\" of \"nobody\": "
            ),
            "{error}"
        );
    }

    #[test]
    fn it_is_taken_out_of_texts() {
        let credential = Credential::new(&key()).unwrap();
        let mut text = format!("invalid key {0}, {0}!", key());
        credential.redact(&mut text);
        assert_eq!(text, "invalid key [redacted], [redacted]!");
        let mut text = "no text".to_owned();
        Credential::new("x").unwrap().redact(&mut text);
        assert_eq!(text, "no text");
    }
}
