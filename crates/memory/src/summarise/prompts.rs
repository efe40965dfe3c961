//! The wording of requests: templates that the user can replace. `prompts/README.md` describes them.

use minijinja::{Environment, UndefinedBehavior, Value, context};

/// The templates of all requests.
#[derive(Clone, Debug)]
pub struct Prompts {
    environment: Environment<'static>,
}

/// The templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Name {
    /// System prompt of a separate request.
    System,
    /// User message for a first memory.
    First,
    /// User message for an update.
    Update,
    /// Instruction in the live request for a first memory.
    SharedFirst,
    /// Instruction in the live request for an update.
    SharedUpdate,
    /// What is added after an answer was refused.
    Retry,
    /// A list of items.
    FormDocument,
    /// A list of edits.
    FormEdits,
    /// The six headings.
    FormMarkdown,
}

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// There is no template of that name.
    #[error("there is no prompt {name:?}; there are {}", Name::ALL.map(Name::as_str).join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// It cannot be parsed or rendered.
    #[error("prompt {file}, line {line}: {reason}")]
    Broken {
        /// Its file.
        file: String,
        /// Line, counted from 1; 0 where it is not known.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// Without the variable the model would not see what it is asked about.
    #[error("prompt {file}: it does not show the variable `{variable}`")]
    NotShown {
        /// Its file.
        file: String,
        /// The variable.
        variable: &'static str,
    },
    /// It is longer than a prompt can sensibly be.
    #[error("prompt {file} has {bytes} bytes, at most {bytes_max} are read")]
    TooLong {
        /// Its file.
        file: String,
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
}

/// The longest template, bytes.
pub const PROMPT_BYTES_MAX: usize = 256 * 1024;

/// What a template can show.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Variables {
    pub(super) form: String,
    pub(super) transcript: String,
    pub(super) prior: String,
    pub(super) focus: String,
    pub(super) language: String,
    pub(super) tokens: usize,
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) until: String,
    pub(super) is_part: bool,
    pub(super) is_structured: bool,
    pub(super) findings: Vec<String>,
}

impl Variables {
    fn to_context(&self) -> Value {
        context! {
            form => self.form.as_str(),
            transcript => self.transcript.as_str(),
            prior => self.prior.as_str(),
            focus => self.focus.as_str(),
            language => self.language.as_str(),
            tokens => self.tokens,
            first => self.first,
            last => self.last,
            until => self.until.as_str(),
            is_part => self.is_part,
            is_structured => self.is_structured,
            findings => self.findings.clone(),
        }
    }
}

impl Name {
    /// All templates.
    pub const ALL: [Self; 9] = [
        Self::System,
        Self::First,
        Self::Update,
        Self::SharedFirst,
        Self::SharedUpdate,
        Self::Retry,
        Self::FormDocument,
        Self::FormEdits,
        Self::FormMarkdown,
    ];

    /// The name, as overrides use it: the file's name without `.md`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::First => "first",
            Self::Update => "update",
            Self::SharedFirst => "shared-first",
            Self::SharedUpdate => "shared-update",
            Self::Retry => "retry",
            Self::FormDocument => "form-document",
            Self::FormEdits => "form-edits",
            Self::FormMarkdown => "form-markdown",
        }
    }

    /// The template of that name, with or without `.md`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.strip_suffix(".md").unwrap_or(name);
        Self::ALL
            .into_iter()
            .find(|template| template.as_str() == name)
    }

    /// The built-in wording: a start for one's own.
    #[must_use]
    pub fn embedded(self) -> &'static str {
        match self {
            Self::System => include_str!("../../prompts/system.md"),
            Self::First => include_str!("../../prompts/first.md"),
            Self::Update => include_str!("../../prompts/update.md"),
            Self::SharedFirst => include_str!("../../prompts/shared-first.md"),
            Self::SharedUpdate => include_str!("../../prompts/shared-update.md"),
            Self::Retry => include_str!("../../prompts/retry.md"),
            Self::FormDocument => include_str!("../../prompts/form-document.md"),
            Self::FormEdits => include_str!("../../prompts/form-edits.md"),
            Self::FormMarkdown => include_str!("../../prompts/form-markdown.md"),
        }
    }

    /// The variables that a template of this name has to show.
    fn shown(self) -> &'static [&'static str] {
        match self {
            Self::First => &["transcript", "form"],
            Self::Update => &["transcript", "prior", "form"],
            Self::SharedFirst => &["form"],
            Self::SharedUpdate => &["prior", "form"],
            Self::Retry => &["findings"],
            Self::System | Self::FormDocument | Self::FormEdits | Self::FormMarkdown => &[],
        }
    }

    fn file(self) -> String {
        format!("{}.md", self.as_str())
    }
}

impl Prompts {
    /// The built-in wording.
    #[must_use]
    pub fn embedded() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        for name in Name::ALL {
            // A test renders each of them; a template that does not parse is reported when it is rendered.
            let _ = environment.add_template(name.as_str(), name.embedded());
        }
        Self { environment }
    }

    /// The same with another wording for one template.
    ///
    /// # Errors
    /// The name is unknown, or the text is no template, uses a variable that does not exist, or leaves out one that it
    /// has to show.
    pub fn with_override(
        mut self,
        name: &str,
        text: impl Into<String>,
    ) -> Result<Self, PromptError> {
        let text = text.into();
        let template = Name::from_name(name).ok_or_else(|| PromptError::Unknown {
            name: name.to_owned(),
        })?;
        if text.len() > PROMPT_BYTES_MAX {
            return Err(PromptError::TooLong {
                file: template.file(),
                bytes: text.len(),
                bytes_max: PROMPT_BYTES_MAX,
            });
        }
        self.environment
            .add_template_owned(template.as_str(), text)
            .map_err(|error| broken(template, &error))?;
        self.try_out(template)?;
        Ok(self)
    }

    /// Renders a template with marks in the place of its variables, once with everything set and once with what is
    /// often absent left out.
    fn try_out(&self, template: Name) -> Result<(), PromptError> {
        let mark = |name: &str| format!("\u{1}{name}\u{1}");
        let full = Variables {
            form: mark("form"),
            transcript: mark("transcript"),
            prior: mark("prior"),
            focus: mark("focus"),
            language: mark("language"),
            tokens: 1000,
            first: 1,
            last: 2,
            until: "2026-03-04".to_owned(),
            is_part: true,
            is_structured: true,
            findings: vec![mark("findings")],
        };
        let sparse = Variables {
            focus: String::new(),
            language: String::new(),
            until: String::new(),
            is_part: false,
            is_structured: false,
            ..full.clone()
        };
        for variables in [full, sparse] {
            let text = self.render(template, &variables)?;
            let missing = template
                .shown()
                .iter()
                .find(|variable| !text.contains(&mark(variable)));
            if let Some(variable) = missing {
                return Err(PromptError::NotShown {
                    file: template.file(),
                    variable,
                });
            }
        }
        Ok(())
    }

    pub(super) fn render(
        &self,
        template: Name,
        variables: &Variables,
    ) -> Result<String, PromptError> {
        self.environment
            .get_template(template.as_str())
            .and_then(|compiled| compiled.render(variables.to_context()))
            .map_err(|error| broken(template, &error))
    }
}

impl Default for Prompts {
    fn default() -> Self {
        Self::embedded()
    }
}

fn broken(template: Name, error: &minijinja::Error) -> PromptError {
    let mut reason = error.kind().to_string();
    if let Some(detail) = error.detail() {
        reason.push_str(": ");
        reason.push_str(detail);
    }
    PromptError::Broken {
        file: template.file(),
        line: error.line().unwrap_or_default(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_prompt_renders() {
        let prompts = Prompts::embedded();
        for name in Name::ALL {
            prompts.try_out(name).unwrap();
            assert_eq!(Name::from_name(&name.file()), Some(name));
        }
    }

    #[track_caller]
    fn check(name: &str, text: &str, expect: &str) {
        let error = Prompts::embedded().with_override(name, text).unwrap_err();
        assert_eq!(error.to_string(), expect);
    }

    #[test]
    fn a_broken_override_says_where() {
        check(
            "first",
            "{{ transcript }}\n{{ form }}\n{% if focus %}\n",
            "prompt first.md, line 3: syntax error: unexpected end of input, expected end of block",
        );
        check(
            "update.md",
            "{{ transcript }}\n{{ prior }}{{ form }}\n\n{{ focuss }}",
            "prompt update.md, line 4: undefined value",
        );
        check(
            "first",
            "Sum up!\n{{ form }}",
            "prompt first.md: it does not show the variable `transcript`",
        );
        check(
            "retry",
            "Again.",
            "prompt retry.md: it does not show the variable `findings`",
        );
        let long = "x".repeat(PROMPT_BYTES_MAX + 1);
        check(
            "system",
            &long,
            "prompt system.md has 262145 bytes, at most 262144 are read",
        );
        let unknown = Prompts::embedded()
            .with_override("sistem", "x")
            .unwrap_err();
        assert!(unknown.to_string().contains("shared-update"), "{unknown}");
    }

    #[test]
    fn values_of_variables_are_not_templates() {
        let prompts = Prompts::embedded()
            .with_override("first", "{{ transcript }}|{{ form }}")
            .unwrap();
        let variables = Variables {
            transcript: "{{ focus }} {% raw %} <b> &".to_owned(),
            form: "f".to_owned(),
            ..Variables::default()
        };
        assert_eq!(
            prompts.render(Name::First, &variables).unwrap(),
            "{{ focus }} {% raw %} <b> &|f"
        );
    }
}
