//! What a tool is.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::approval::Approval;
use crate::session::Session;

/// Something that the model can have done.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use throughline::agent::{CallContext, Tool, ToolError};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct City {
///     /// Name of the city, in English.
///     city: String,
/// }
///
/// struct Weather;
///
/// impl Tool for Weather {
///     type Input = City;
///
///     fn name(&self) -> &str {
///         "weather"
///     }
///
///     fn description(&self) -> &str {
///         "Tells the weather of a city."
///     }
///
///     async fn call(&self, input: City, _context: CallContext) -> Result<String, ToolError> {
///         match input.city.as_str() {
///             "Oslo" => Ok("Snow, -3 °C".to_owned()),
///             other => Err(ToolError::new(format!("nothing is known of {other}; try Oslo"))),
///         }
///     }
/// }
/// ```
pub trait Tool: Send + Sync + 'static {
    /// What it is called with. The model is shown the JSON Schema of the type; comments on fields are part of it.
    type Input: DeserializeOwned + JsonSchema + Send + 'static;

    /// The name that the model calls it by: at most 64 letters, digits, `_` and `-`.
    fn name(&self) -> &str;

    /// What it does and when to use it, for the model.
    fn description(&self) -> &str;

    /// Whether a call with this needs an approval.
    fn approval(&self, input: &Self::Input) -> Approval {
        let _ = input;
        Approval::NotNeeded
    }

    /// How long a call with this may take, where that is not what the agent says for all tools.
    fn timeout(&self, input: &Self::Input) -> Option<Duration> {
        let _ = input;
        None
    }

    /// Does it. Calls of one answer run at the same time. A call whose time is up, or whose turn is dropped, is dropped
    /// at its next `await`; what runs elsewhere looks at [`CallContext::cancelled`].
    ///
    /// # Errors
    /// With what the model is to be told: what went wrong, and what it can do about it.
    fn call(
        &self,
        input: Self::Input,
        context: CallContext,
    ) -> impl Future<Output = Result<String, ToolError>> + Send;
}

/// In what a tool is called.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallContext {
    /// The session of the agent.
    pub session: Session,
    /// The id of the call.
    pub call_id: String,
    /// Cancelled when the result is no longer needed.
    pub cancelled: CancellationToken,
}

/// What the model is told when a call fails.
///
/// In a tool, `?` makes one of a text, of any error that can be sent between threads, with its causes, and of a
/// `Box<dyn Error + Send + Sync>`. In a function that returns `Box<dyn Error>`, `?` makes an error of a `ToolError`.
///
/// ```
/// use throughline::agent::ToolError;
///
/// fn rows(limit: &str) -> Result<u32, ToolError> {
///     let limit: u32 = limit.parse()?;
///     if limit == 0 {
///         Err("ask for at least one row")?;
///     }
///     Ok(limit)
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// assert_eq!(rows("12")?, 12);
/// assert_eq!(rows("0").unwrap_err().message(), "ask for at least one row");
/// assert_eq!(rows("many").unwrap_err().message(), "invalid digit found in string");
/// # Ok(())
/// # }
/// ```
pub struct ToolError {
    message: String,
}

impl ToolError {
    /// An error that says this to the model.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }

    /// What the model is told.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

// A type that is an `Error` itself cannot be made of every error: `From` would overlap with the conversion into itself.
impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ToolError {
    fn from(error: E) -> Self {
        let error: Box<dyn Error + Send + Sync> = error.into();
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Self { message }
    }
}

impl From<ToolError> for Box<dyn Error> {
    fn from(error: ToolError) -> Self {
        error.message.into()
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolError").field(&self.message).finish()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
