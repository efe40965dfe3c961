//! Decides which context window applies to a request.
//!
//! User, request, catalogue and provider may disagree. [`effective_window`] decides, and names its source so that the
//! user can see it.

use std::fmt;

use crate::catalogue::{Catalogue, WINDOW_MAX};

/// The window that is assumed if nothing states one, tokens. Too small a window only compacts too early.
pub const WINDOW_DEFAULT: u64 = 32_768;

/// The window that `[1m]` and the equivalent beta header request, tokens.
const WINDOW_LONG: u64 = 1_000_000;

/// The window of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its size, tokens.
    pub tokens: u64,
    /// Who said so.
    pub source: WindowSource,
    /// What the user should know about it, as a sentence.
    pub warning: Option<String>,
}

/// Who said how large the window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowSource {
    /// The provider, when it refused a request that was too long.
    Refusal,
    /// The user.
    Setting,
    /// The request: a suffix of the model's name or a beta header.
    Request,
    /// The catalogue.
    Catalogue,
    /// None of these: the default.
    Default,
}

/// What is known about the window of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowRequest<'a> {
    /// The model that the request names.
    pub model: &'a str,
    /// The values of its `anthropic-beta` header, comma-separated.
    pub beta: Option<&'a str>,
    /// The user's setting `window`, tokens.
    pub setting: Option<u64>,
    /// What this endpoint named as its window in a refusal, tokens; see [`crate::refusal`].
    pub refused_above: Option<u64>,
}

/// Why there is no window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WindowError {
    /// The setting is 0.
    #[error("the setting `window` must be positive")]
    NotPositive,
    /// The setting is larger than any window.
    #[error("the setting `window` is {0} tokens; the largest that makes sense is {WINDOW_MAX}")]
    TooLarge(u64),
}

/// Decides which window counts.
///
/// A number from the endpoint's own refusal counts when it is lower than what the others say. Then come the user's
/// setting, the request's own mark (`[1m]`, a beta header), the catalogue and a cautious default.
///
/// # Errors
/// When the user's setting makes no sense.
pub fn effective_window(
    request: &WindowRequest<'_>,
    catalogue: &Catalogue,
) -> Result<Window, WindowError> {
    let known = catalogue.find(request.model).map(|model| model.window);
    let declared = match request.setting {
        Some(0) => return Err(WindowError::NotPositive),
        Some(tokens) if tokens > WINDOW_MAX => return Err(WindowError::TooLarge(tokens)),
        Some(tokens) => Window {
            tokens,
            source: WindowSource::Setting,
            warning: known.filter(|known| tokens > *known).map(|known| {
                format!(
                    "the setting `window` is {tokens} tokens, but {} is known to have {known}",
                    request.model
                )
            }),
        },
        None if asks_for_long_window(request) => Window {
            tokens: known.unwrap_or(0).max(WINDOW_LONG),
            source: WindowSource::Request,
            warning: None,
        },
        None => match known {
            Some(tokens) => Window {
                tokens,
                source: WindowSource::Catalogue,
                warning: None,
            },
            None => Window {
                tokens: WINDOW_DEFAULT,
                source: WindowSource::Default,
                warning: Some(format!(
                    "the window of model {:?} is not known and taken for {WINDOW_DEFAULT} tokens; set `window` to what it really is",
                    request.model
                )),
            },
        },
    };
    let is_default = declared.source == WindowSource::Default;
    match request.refused_above {
        // Against a mere assumption the provider's word counts also when it is higher.
        Some(tokens) if tokens > 0 && (tokens < declared.tokens || is_default) => Ok(Window {
            tokens,
            source: WindowSource::Refusal,
            warning: (declared.source == WindowSource::Setting).then(|| {
                format!(
                    "the setting `window` is {} tokens, but the provider refused more than {tokens}",
                    declared.tokens
                )
            }),
        }),
        _ => Ok(declared),
    }
}

fn asks_for_long_window(request: &WindowRequest<'_>) -> bool {
    let has_suffix = request.model.trim().to_ascii_lowercase().ends_with("[1m]");
    let has_beta = request
        .beta
        .into_iter()
        .flat_map(|beta| beta.split(','))
        .any(|beta| beta.trim().starts_with("context-1m-"));
    has_suffix || has_beta
}

impl fmt::Display for WindowSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refusal => "the provider's refusal",
            Self::Setting => "the setting `window`",
            Self::Request => "the request",
            Self::Catalogue => "the catalogue",
            Self::Default => "an assumption",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::window_in;

    #[track_caller]
    fn check(request: WindowRequest<'_>, tokens: u64, source: WindowSource, warning: Option<&str>) {
        let catalogue = Catalogue::empty()
            .extended("[[model]]\nid = 'claude-x-4'\nwindow = 200_000\n")
            .unwrap();
        let window = effective_window(&request, &catalogue).unwrap();
        assert_eq!((window.tokens, window.source), (tokens, source));
        match (&window.warning, warning) {
            (Some(warning), Some(part)) => assert!(warning.contains(part), "{warning}"),
            (warning, expected) => assert_eq!(warning.as_deref(), expected),
        }
    }

    fn of(model: &str) -> WindowRequest<'_> {
        WindowRequest {
            model,
            ..WindowRequest::default()
        }
    }

    #[test]
    fn the_one_who_knows_best_is_believed() {
        use WindowSource::{Catalogue, Default, Refusal, Request, Setting};
        let with = |model, setting| WindowRequest {
            setting: Some(setting),
            ..of(model)
        };
        let refused = |request, refused_above| WindowRequest {
            refused_above,
            ..request
        };
        check(of("claude-x-4"), 200_000, Catalogue, None);
        let beta = Some("tools-2025-01-01, context-1m-2025-08-07");
        check(
            WindowRequest {
                beta,
                ..of("claude-x-4[1m]")
            },
            1_000_000,
            Request,
            None,
        );
        check(
            WindowRequest {
                beta,
                ..of("claude-x-4")
            },
            1_000_000,
            Request,
            None,
        );
        check(of("claude-x-4[1m]"), 1_000_000, Request, None);
        check(with("claude-x-4", 120_000), 120_000, Setting, None);
        check(with("claude-x-4[1m]", 120_000), 120_000, Setting, None);
        let learnt = window_in("maximum context length is 65536 tokens");
        check(
            refused(of("vendor/claude-x-4:free"), learnt),
            65_536,
            Refusal,
            None,
        );
        check(
            of("my-local-gguf"),
            WINDOW_DEFAULT,
            Default,
            Some("set `window`"),
        );
        check(with("my-local-gguf", 8_192), 8_192, Setting, None);
        check(
            with("claude-x-4", 500_000),
            500_000,
            Setting,
            Some("200000"),
        );
        check(
            refused(with("claude-x-4", 500_000), Some(200_000)),
            200_000,
            Refusal,
            Some("refused"),
        );
        // A higher number does not widen a stated window, only an assumed one.
        check(
            refused(with("claude-x-4", 120_000), Some(200_000)),
            120_000,
            Setting,
            None,
        );
        check(
            refused(of("claude-x-4"), Some(300_000)),
            200_000,
            Catalogue,
            None,
        );
        check(
            refused(of("my-local-gguf"), Some(131_072)),
            131_072,
            Refusal,
            None,
        );
        check(refused(of("claude-x-4"), Some(0)), 200_000, Catalogue, None);
        check(
            of("claude-x-45"),
            WINDOW_DEFAULT,
            Default,
            Some("claude-x-45"),
        );
    }

    #[test]
    fn a_senseless_setting_is_an_error() {
        let decide = |setting| {
            let request = WindowRequest {
                setting: Some(setting),
                ..of("claude-x-4")
            };
            effective_window(&request, Catalogue::embedded()).unwrap_err()
        };
        assert_eq!(decide(0), WindowError::NotPositive);
        assert!(decide(0).to_string().contains("must be positive"));
        assert_eq!(decide(u64::MAX), WindowError::TooLarge(u64::MAX));
    }
}
