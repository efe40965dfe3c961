//! Rules of OpenAI Chat Completions: the messages. [`settings`] has the settings, [`template`] the stricter order that
//! chat templates of local models require.

mod settings;
mod template;

use std::collections::{HashMap, HashSet};

use crate::json::{Kind, Raw};

use super::Profile;
use super::checker::{Checker, Object, Quote, TextQuote};
use super::path::Path;
use super::rule;

use template::Template;

pub(crate) use settings::{
    FUNCTION_NAME_BYTES_MAX, check_arguments, check_metadata, check_sampling, is_function_name,
};

/// `tool_calls` has its own rule for the roles that cannot have it.
const MESSAGE_FIELDS: &[&str] = &[
    "role",
    "content",
    "name",
    "tool_calls",
    "prompt_cache_breakpoint",
];
const ASSISTANT_FIELDS: &[&str] = &[
    "refusal",
    "audio",
    "function_call",
    "annotations",
    // What compatible servers add for reasoning models.
    "reasoning",
    "reasoning_content",
    "reasoning_details",
];
const TOOL_FIELDS: &[&str] = &["tool_call_id"];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// `system` and `developer`.
    Instruction,
    User,
    Assistant,
    Tool,
    /// `function`, the predecessor of `tool`.
    Function,
}

pub(crate) fn check(body: &Raw, checker: &mut Checker<'_>) {
    let Some(body) = Object::read(body) else {
        return;
    };
    let root = Path::Root;
    settings::check(&body, checker);
    let Some(list) = checker.required_array(&body, "messages", &root) else {
        return;
    };
    let path = root.key("messages");
    let mut calls = Calls::default();
    let mut template =
        (checker.options.profile == Profile::StrictAlternation).then(Template::default);
    let mut count = 0;
    for message in list.array() {
        let path = path.index(count);
        if let Some(message) = checker.object(&message, path) {
            check_message(
                &message,
                count,
                &mut calls,
                template.as_mut(),
                &path,
                checker,
            );
        }
        count += 1;
    }
    calls.close(checker);
    if let Some(template) = template {
        template.finish(checker);
    }
    if count == 0 {
        checker.add(
            &rule::CHAT_MESSAGES_EMPTY,
            path,
            "there is no message: add at least one",
        );
    }
}

fn check_message(
    message: &Object,
    index: usize,
    calls: &mut Calls,
    template: Option<&mut Template>,
    path: &Path<'_>,
    checker: &mut Checker<'_>,
) {
    let Some(name) = checker.required_name(message, "role", path) else {
        return;
    };
    let name = name.decode();
    let role = match name.as_ref() {
        "system" | "developer" => Role::Instruction,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        "function" => Role::Function,
        other => {
            checker.add(
                &rule::CHAT_ROLE,
                path.key("role"),
                format_args!(
                    "{} is no role: use developer, system, user, assistant or tool",
                    Quote(other)
                ),
            );
            return;
        }
    };
    let fields = match role {
        Role::Assistant => ASSISTANT_FIELDS,
        Role::Tool => TOOL_FIELDS,
        Role::Instruction | Role::User | Role::Function => &[],
    };
    checker.known_fields(message, &[MESSAGE_FIELDS, fields], path);
    check_name(message, path, checker);
    check_content(message, role, path, checker);
    if role == Role::Function {
        checker.add(
            &rule::CHAT_FUNCTION_ROLE,
            path.key("role"),
            "the role `function` is deprecated: use tool_calls and the role `tool`",
        );
        checker.required_name(message, "name", path);
    }
    if role == Role::Tool {
        if let Some(id) = checker.required_name(message, "tool_call_id", path) {
            calls.result(&id.decode(), path, checker);
        }
    } else {
        calls.close(checker);
    }
    let has_calls = check_calls(message, role, index, calls, path, checker);
    if let Some(template) = template {
        template.message(role, &name, has_calls, path, checker);
    }
}

fn check_name(message: &Object, path: &Path<'_>, checker: &mut Checker<'_>) {
    /// Longest name of a participant.
    const NAME_BYTES_MAX: usize = 64;
    let Some(name) = checker.optional_string(message, "name", path) else {
        return;
    };
    let decoded = name.decode();
    let is_allowed = (1..=NAME_BYTES_MAX).contains(&decoded.len())
        && !decoded.contains(|char: char| char.is_whitespace() || "<|\\/>".contains(char));
    if !is_allowed {
        checker.add(
            &rule::CHAT_NAME,
            path.key("name"),
            format_args!("{} is no name: use 1 to {NAME_BYTES_MAX} characters without white space, <, |, \\, / and >", TextQuote(&name)),
        );
    }
}

fn check_content(message: &Object, role: Role, path: &Path<'_>, checker: &mut Checker<'_>) {
    let Some(content) = message.present("content") else {
        let can_be_missing = role == Role::Assistant
            && ["tool_calls", "refusal", "audio", "function_call"]
                .iter()
                .any(|key| message.has(key));
        // A function may return nothing.
        if !can_be_missing && role != Role::Function {
            checker.add(
                &rule::CHAT_CONTENT,
                path.key("content"),
                "content may be null or absent only in an assistant message with tool_calls, a refusal or audio: use an empty string",
            );
        }
        return;
    };
    let path = path.key("content");
    if !checker.expect_kind(
        content,
        &[Kind::String, Kind::Array],
        "a string or an array of parts",
        path,
    ) {
        return;
    }
    let allowed: &[&str] = match role {
        Role::User => &["text", "image_url", "input_audio", "file"],
        Role::Assistant => &["text", "refusal"],
        Role::Instruction | Role::Tool | Role::Function => &["text"],
    };
    let mut count = 0;
    for part in content.array() {
        check_part(&part, allowed, &path.index(count), checker);
        count += 1;
    }
    if content.kind() == Kind::Array && count == 0 {
        checker.add(
            &rule::CHAT_EMPTY_CONTENT,
            path,
            "an array of parts must have at least one: use an empty string or remove the message",
        );
    }
}

fn check_part(part: &Raw, allowed: &[&str], path: &Path<'_>, checker: &mut Checker<'_>) {
    /// All parts of this format, and blocks of other formats that are often left in by mistake.
    const KNOWN: &[&str] = &[
        "text",
        "image_url",
        "input_audio",
        "file",
        "refusal",
        "input_text",
        "output_text",
        "input_image",
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "image",
        "document",
    ];
    let Some(part) = checker.object(part, *path) else {
        return;
    };
    let Some(kind) = checker.required_name(&part, "type", path) else {
        return;
    };
    let kind = kind.decode();
    if !allowed.contains(&kind.as_ref()) {
        if KNOWN.contains(&kind.as_ref()) {
            checker.add(
                &rule::CHAT_PART,
                path.key("type"),
                format_args!(
                    "a part of type {kind} is not allowed in this message: use {}",
                    allowed.join(", ")
                ),
            );
        } else {
            checker.add(
                &rule::UNKNOWN_BLOCK_TYPE,
                path.key("type"),
                "this type of part is not known here: it is not checked",
            );
        }
        return;
    }
    match kind.as_ref() {
        "text" | "refusal" => drop(checker.required_string(&part, &kind, path)),
        "image_url" => {
            if let Some(image) = checker.required_object(&part, "image_url", path) {
                let path = path.key("image_url");
                checker.required_name(&image, "url", &path);
                checker.known_value(
                    &image,
                    "detail",
                    &["auto", "low", "high", "original"],
                    &path,
                );
            }
        }
        "input_audio" => {
            if let Some(audio) = checker.required_object(&part, "input_audio", path) {
                let path = path.key("input_audio");
                checker.required_name(&audio, "data", &path);
                checker.required_name(&audio, "format", &path);
                checker.known_value(&audio, "format", &["wav", "mp3"], &path);
            }
        }
        _ => drop(checker.required_object(&part, "file", path)),
    }
}

/// Returns whether the message calls a tool.
fn check_calls(
    message: &Object,
    role: Role,
    index: usize,
    calls: &mut Calls,
    path: &Path<'_>,
    checker: &mut Checker<'_>,
) -> bool {
    let Some(list) = checker.optional_array(message, "tool_calls", path) else {
        return message.has("function_call");
    };
    let path = path.key("tool_calls");
    if role != Role::Assistant {
        checker.add(
            &rule::CHAT_CALLS_ROLE,
            path,
            "only an assistant message can call tools: remove the field",
        );
        return false;
    }
    let mut count = 0;
    for call in list.array() {
        let path = path.index(count);
        if let Some(call) = checker.object(&call, path) {
            check_call(&call, (index, count), calls, &path, checker);
        }
        count += 1;
    }
    if count == 0 {
        checker.add(
            &rule::CHAT_CALLS_EMPTY,
            path,
            "the list of calls must not be empty: leave the field out",
        );
    }
    count > 0
}

fn check_call(
    call: &Object,
    place: (usize, usize),
    calls: &mut Calls,
    path: &Path<'_>,
    checker: &mut Checker<'_>,
) {
    if let Some(id) = checker.required_name(call, "id", path) {
        calls.call(&id.decode(), place, path, checker);
    }
    let Some(kind) = checker.required_name(call, "type", path) else {
        return;
    };
    match kind.decode().as_ref() {
        "function" => {
            if let Some(function) = checker.required_object(call, "function", path) {
                let path = path.key("function");
                if let Some(name) = checker.required_name(&function, "name", &path)
                    && !is_function_name(&name.decode())
                {
                    report_function_name(&path, checker);
                }
                if let Some(arguments) = checker.required_string(&function, "arguments", &path) {
                    check_arguments(&arguments, &rule::CHAT_ARGUMENTS, &path, checker);
                }
            }
        }
        "custom" => {
            if let Some(custom) = checker.required_object(call, "custom", path) {
                let path = path.key("custom");
                checker.required_name(&custom, "name", &path);
                checker.required_string(&custom, "input", &path);
            }
        }
        _ => checker.add(
            &rule::CHAT_CALL_TYPE,
            path.key("type"),
            format_args!(
                "{} is no type of call: use function or custom",
                TextQuote(&kind)
            ),
        ),
    }
}

fn report_function_name(path: &Path<'_>, checker: &mut Checker<'_>) {
    checker.add(
        &rule::CHAT_FUNCTION_NAME,
        path.key("name"),
        format_args!(
            "a function name has 1 to {FUNCTION_NAME_BYTES_MAX} letters, digits, `_` and `-`: rename the function"
        ),
    );
}

/// The pairing of calls with the tool messages right after them.
#[derive(Default)]
struct Calls {
    open: Vec<Call>,
    /// Id to index in `open`.
    open_of_id: HashMap<String, usize>,
    seen: HashSet<String>,
}

struct Call {
    id: String,
    place: (usize, usize),
    is_answered: bool,
}

impl Calls {
    fn call(
        &mut self,
        id: &str,
        place: (usize, usize),
        path: &Path<'_>,
        checker: &mut Checker<'_>,
    ) {
        if self.open_of_id.contains_key(id) {
            checker.add(
                &rule::CHAT_DUPLICATE_USE,
                path.key("id"),
                format_args!(
                    "two calls of this message have the id {}: give each its own",
                    Quote(id)
                ),
            );
            return;
        }
        if !self.seen.insert(id.to_owned()) {
            checker.warn(
                &rule::CHAT_DUPLICATE_USE,
                path.key("id"),
                format_args!(
                    "an earlier call has the id {} too: give each its own",
                    Quote(id)
                ),
            );
        }
        self.open_of_id.insert(id.to_owned(), self.open.len());
        self.open.push(Call {
            id: id.to_owned(),
            place,
            is_answered: false,
        });
    }

    fn result(&mut self, id: &str, path: &Path<'_>, checker: &mut Checker<'_>) {
        let path = path.key("tool_call_id");
        match self
            .open_of_id
            .get(id)
            .and_then(|index| self.open.get_mut(*index))
        {
            Some(call) if call.is_answered => checker.add(
                &rule::CHAT_DUPLICATE_RESULT,
                path,
                format_args!("the call {} has a tool message already: keep one", Quote(id)),
            ),
            Some(call) => call.is_answered = true,
            None if self.seen.contains(id) => checker.add(
                &rule::CHAT_RESULT_NOT_ADJACENT,
                path,
                format_args!(
                    "the tool message of the call {} does not directly follow it: move it there",
                    Quote(id)
                ),
            ),
            None => checker.add(
                &rule::CHAT_RESULT_WITHOUT_USE,
                path,
                format_args!(
                    "no assistant message before calls {}: remove the tool message or restore the call",
                    Quote(id)
                ),
            ),
        }
    }

    /// A message that is not a tool message follows, or none.
    fn close(&mut self, checker: &mut Checker<'_>) {
        for call in self.open.drain(..).filter(|call| !call.is_answered) {
            let (message, index) = call.place;
            let root = Path::Root;
            let messages = root.key("messages");
            let message = messages.index(message);
            let list = message.key("tool_calls");
            let path = list.index(index);
            checker.add(
                &rule::CHAT_USE_WITHOUT_RESULT,
                path.key("id"),
                format_args!(
                    "the call {} has no tool message behind it: add one or remove the call",
                    Quote(&call.id)
                ),
            );
        }
        self.open_of_id.clear();
    }
}
