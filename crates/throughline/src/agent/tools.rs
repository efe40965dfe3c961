//! The tools of an agent, and how the model is shown them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use throughline_transcript::json::Raw;
use throughline_transcript::message::ToolInput;
use throughline_transcript::wire::Wire;

use super::approval::Approval;
use super::tool::{CallContext, Tool, ToolError};

/// Tools in an order. The model is shown them in it, and it stays the same, so that requests begin with the same bytes.
#[derive(Clone, Default)]
pub struct Tools {
    tools: Vec<Arc<dyn AnyTool>>,
}

impl Tools {
    /// No tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With this tool too; it replaces an earlier one of the same name.
    #[must_use]
    pub fn with(mut self, tool: impl Tool) -> Self {
        let tool: Arc<dyn AnyTool> = Arc::new(tool);
        match self.tools.iter_mut().find(|old| old.name() == tool.name()) {
            Some(old) => *old = tool,
            None => self.tools.push(tool),
        }
        self
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name())
    }

    /// The tools as elements of the `tools` array of a wire.
    #[must_use]
    pub fn render(&self, wire: Wire) -> Vec<Raw> {
        self.tools
            .iter()
            .map(|tool| {
                let (name, description, schema) = (tool.name(), tool.description(), tool.schema());
                let value = match wire {
                    Wire::Anthropic => {
                        json!({"name": name, "description": description, "input_schema": schema})
                    }
                    Wire::OpenAiChat => json!({
                        "type": "function",
                        "function": {"name": name, "description": description, "parameters": schema},
                    }),
                    // Responses takes a schema as strict unless it is told otherwise.
                    Wire::OpenAiResponses => json!({
                        "type": "function",
                        "name": name,
                        "description": description,
                        "parameters": schema,
                        "strict": false,
                    }),
                };
                // What serde_json writes can be read back.
                Raw::parse(value.to_string()).unwrap_or_else(|_| Raw::string(""))
            })
            .collect()
    }

    pub(super) fn find(&self, name: &str) -> Option<&Arc<dyn AnyTool>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// A tool, whatever its input is.
pub(super) trait AnyTool: Send + Sync {
    fn name(&self) -> &str;
    fn description(&self) -> &str;
    fn schema(&self) -> Value;
    /// Reads the input of a call; what is wrong with it if it cannot be read.
    fn prepare(self: Arc<Self>, input: &ToolInput) -> Result<PreparedCall, String>;
}

/// A call whose input was read.
pub(super) struct PreparedCall {
    pub(super) approval: Approval,
    pub(super) timeout: Option<Duration>,
    pub(super) run: Box<dyn FnOnce(CallContext) -> RunningCall + Send>,
}

/// A call that runs. An error of the inner kind is the tool's; the outer one says that it panicked.
pub(super) type RunningCall = BoxFuture<'static, Result<Result<String, ToolError>, ToolPanic>>;

/// A tool failed inside.
#[derive(Debug)]
pub(super) struct ToolPanic;

impl<T: Tool> AnyTool for T {
    fn name(&self) -> &str {
        Tool::name(self)
    }

    fn description(&self) -> &str {
        Tool::description(self)
    }

    fn schema(&self) -> Value {
        let generator = SchemaSettings::draft2020_12()
            .with(|settings| {
                settings.inline_subschemas = true;
                settings.meta_schema = None;
            })
            .into_generator();
        let mut schema = generator.into_root_schema_for::<T::Input>().to_value();
        without_titles(&mut schema);
        schema
    }

    fn prepare(self: Arc<Self>, input: &ToolInput) -> Result<PreparedCall, String> {
        let text = match input {
            ToolInput::Json(raw) => raw.as_str().to_owned(),
            ToolInput::Text(text) => text.decode().into_owned(),
        };
        // Some models leave the input of a tool that wants nothing out.
        let text = if text.trim().is_empty() { "{}" } else { &text };
        let mut json = serde_json::Deserializer::from_str(text);
        let input: T::Input = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            match path.as_str() {
                "." => error.into_inner().to_string(),
                _ => format!("{path}: {}", error.into_inner()),
            }
        })?;
        Ok(PreparedCall {
            approval: self.approval(&input),
            timeout: self.timeout(&input),
            run: Box::new(move |context| {
                async move {
                    AssertUnwindSafe(self.call(input, context))
                        .catch_unwind()
                        .await
                        .map_err(|_| ToolPanic)
                }
                .boxed()
            }),
        })
    }
}

/// Names of Rust types are nothing to the model.
fn without_titles(schema: &mut Value) {
    if let Value::Object(fields) = schema {
        fields.remove("title");
        for (key, value) in fields.iter_mut() {
            if key == "properties" {
                // A property may be called `title`.
                if let Value::Object(properties) = value {
                    properties.values_mut().for_each(without_titles);
                }
            } else {
                without_titles(value);
            }
        }
    } else if let Value::Array(values) = schema {
        values.iter_mut().for_each(without_titles);
    }
}

#[cfg(test)]
mod tests;
