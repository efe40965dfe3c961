//! Builds the request about a part from the templates and the inputs of the job.

use super::Job;
use crate::document::{Entry, Item, Origin, RequestKind, Status};
use crate::render::markdown;
use crate::summarise::answer::AnswerForm;
use crate::summarise::ask::Request;
use crate::summarise::order::Style;
use crate::summarise::prompts::{Name, PromptError, Variables};
use crate::summarise::reason::Fault;
use crate::summarise::transcript::one_line;

impl Job {
    /// The request about the part, with its messages written out as `messages`.
    pub(super) fn request(&self, messages: &str, is_part: bool) -> Result<Request, PromptError> {
        let (form, template) = self.templates();
        let prompts = &self.order.prompts;
        let mut variables = self.variables(is_part);
        variables.form = prompts.render(form, &variables)?.trim_end().to_owned();
        if !self.part.prior.is_empty() {
            variables.prior = format!("<prior_memory>\n{}</prior_memory>", self.part.prior);
        }
        variables.transcript = format!("<transcript>\n{messages}</transcript>");
        let mut text = prompts.render(template, &variables)?;
        if !self.part.unfit.is_empty() {
            let retry = prompts.render(Name::Retry, &variables)?;
            text.truncate(text.trim_end().len());
            text.push_str("\n\n");
            text.push_str(retry.trim_start());
        }
        Ok(match self.style {
            Style::PrefixSharing => Request::Appended { instruction: text },
            Style::Forked => Request::Own {
                system: prompts.render(Name::System, &variables)?,
                user: text,
            },
        })
    }

    /// What the model is told, without the conversation, the memory so far and the user's wish.
    pub(super) fn instructions(&self, is_part: bool) -> Result<String, PromptError> {
        let (form, template) = self.templates();
        let prompts = &self.order.prompts;
        let mut variables = Variables {
            focus: String::new(),
            ..self.variables(is_part)
        };
        variables.form = prompts.render(form, &variables)?;
        let mut text = prompts.render(template, &variables)?;
        if self.style == Style::Forked {
            text.push('\n');
            text.push_str(&prompts.render(Name::System, &variables)?);
        }
        Ok(text)
    }

    pub(super) fn templates(&self) -> (Name, Name) {
        let form = match self.part.wanted {
            AnswerForm::Items => Name::FormDocument,
            AnswerForm::Edits => Name::FormEdits,
            AnswerForm::Markdown => Name::FormMarkdown,
        };
        let template = match (self.style, self.has_base) {
            (Style::Forked, false) => Name::First,
            (Style::Forked, true) => Name::Update,
            (Style::PrefixSharing, false) => Name::SharedFirst,
            (Style::PrefixSharing, true) => Name::SharedUpdate,
        };
        (form, template)
    }

    pub(super) fn variables(&self, is_part: bool) -> Variables {
        let draft = &self.order.draft;
        let last = match self.style {
            Style::PrefixSharing => draft.cover.messages,
            Style::Forked => self.part.chunk.last + 1,
        };
        Variables {
            form: String::new(),
            transcript: String::new(),
            prior: String::new(),
            focus: self
                .order
                .focus
                .as_deref()
                .map(|focus| one_line(&self.order.redaction.redact(focus)))
                .unwrap_or_default(),
            language: self
                .language()
                .and_then(whatlang::Lang::from_code)
                .map(|language| language.eng_name().to_owned())
                .unwrap_or_default(),
            tokens: self.order.limits.memory_tokens_max,
            first: self.part.chunk.first + 1,
            last,
            until: draft
                .cover
                .until_ms
                .and_then(markdown::date)
                .unwrap_or_default(),
            is_part,
            is_structured: self.has_schema(),
            findings: self.part.unfit.iter().map(Fault::to_string).collect(),
        }
    }

    /// A schema in the live request would be another request, and the provider would read all of it again.
    pub(super) fn has_schema(&self) -> bool {
        self.order.is_structured && self.style == Style::Forked
    }

    pub(super) fn language(&self) -> Option<&str> {
        self.order
            .language
            .as_deref()
            .or(self.order.draft.language.as_deref())
    }

    /// The memory so far, as the model is shown it: with ids where it is to name items.
    pub(super) fn prior_shown(&self) -> String {
        /// The whole text is in the conversation that the model sees; the start is enough to recognise it.
        const BEGINNING_BYTES: usize = 160;
        if self.part.wanted != AnswerForm::Edits {
            let shown = markdown::render(&self.base);
            return shown.lines().map(|line| one_line(line) + "\n").collect();
        }
        let bytes_max = match self.style {
            Style::Forked => usize::MAX,
            Style::PrefixSharing => BEGINNING_BYTES,
        };
        let mut shown = String::new();
        for item in &self.base.items {
            if !matches!(item.status, Status::SupersededBy(_)) {
                push_item(item, bytes_max, &mut shown);
            }
        }
        shown
    }
}

/// One line: id, section, text and what else there is.
fn push_item(item: &Item, bytes_max: usize, shown: &mut String) {
    let text = one_line(item.entry.text());
    shown.push_str(&format!(
        "{} {}: ",
        one_line(&item.id),
        item.entry.section().name()
    ));
    shown.push_str(&throughline_transcript::text::truncate_bytes(
        &text, bytes_max,
    ));
    let details: Vec<String> = match &item.entry {
        Entry::NextStep { requested, .. } => vec![match requested {
            RequestKind::Explicit => "explicit".to_owned(),
            RequestKind::Implied => "implied".to_owned(),
        }],
        entry => entry.texts().skip(1).map(one_line).collect(),
    };
    if bytes_max == usize::MAX {
        for detail in details.iter().filter(|detail| !detail.is_empty()) {
            shown.push_str(" | ");
            shown.push_str(detail);
        }
    }
    if item.origin == Origin::Tool {
        shown.push_str(" | said by a tool");
    }
    if item.status == Status::Resolved {
        shown.push_str(" | done");
    }
    shown.push('\n');
}
