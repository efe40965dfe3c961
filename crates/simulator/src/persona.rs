//! Who answers: a talkative coding assistant that uses the tools it is offered, knows only its request, and writes
//! memories on demand.
//!
//! Its replies depend on the seed and on the last message, so that the same conversation gets the same replies
//! whatever other calls run beside it.

pub(crate) mod facts;
pub(crate) mod schema;
pub(crate) mod summary;
mod talk;

use throughline_transcript::body::{read_body, read_message};
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::Raw;
use throughline_transcript::message::{Content, Message, Role};
use throughline_transcript::wire::Wire;

use crate::dice::Dice;
use crate::faults::{BadSummary, Fault};
use crate::prompt::Key;
use crate::reply::{Reply, ReplyPart, StopReason};

/// What the assistant was sent.
#[derive(Debug)]
pub(crate) struct Briefing {
    conversation: Conversation,
    offer: Offer,
    covered: Key,
    last_words: String,
    wants_summary: bool,
}

/// What a request offers besides the conversation.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    pub(crate) tools: Vec<Tool>,
    pub(crate) choice: ToolChoice,
    /// One reply may make one call and no more.
    pub(crate) is_one_at_a_time: bool,
    /// The schema that the answer must have.
    pub(crate) schema: Option<Raw>,
    /// The answer must be some JSON object.
    pub(crate) wants_json: bool,
}

#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) schema: Option<Raw>,
    /// The provider runs it.
    pub(crate) is_server: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum ToolChoice {
    #[default]
    Free,
    Never,
    Always,
    This(String),
}

impl Briefing {
    pub(crate) fn new(body: &Raw, wire: Wire, offer: Offer, covered: Key) -> Self {
        let conversation = read_body(body, wire).unwrap_or_default();
        Self::of(conversation, offer, covered)
    }

    /// The briefing where the items are not all in one body.
    pub(crate) fn from_items(body: &Raw, items: &[Raw], offer: Offer, covered: Key) -> Self {
        let conversation = Conversation {
            system: body
                .field("instructions")
                .map(|text| throughline_transcript::body::read_content(&text))
                .unwrap_or_default(),
            messages: items.iter().filter_map(read_message).collect(),
            ..Conversation::default()
        };
        Self::of(conversation, offer, covered)
    }

    fn of(conversation: Conversation, offer: Offer, covered: Key) -> Self {
        let mut briefing = Self {
            last_words: conversation.messages.last().map(words).unwrap_or_default(),
            conversation,
            offer,
            covered,
            wants_summary: false,
        };
        briefing.wants_summary = summary::is_asked_for(&briefing);
        briefing
    }

    pub(crate) fn wants_summary(&self) -> bool {
        self.wants_summary
    }

    pub(crate) fn last_words(&self) -> &[u8] {
        self.last_words.as_bytes()
    }

    /// Digest of the messages, for a compaction that covers them.
    pub(crate) fn covered(&self) -> Key {
        self.covered
    }

    pub(crate) fn messages(&self) -> &[Message] {
        &self.conversation.messages
    }

    pub(crate) fn schema(&self) -> Option<&Raw> {
        self.offer.schema.as_ref()
    }

    pub(crate) fn wants_json(&self) -> bool {
        self.offer.wants_json
    }

    pub(crate) fn has_tools(&self) -> bool {
        !self.offer.tools.is_empty()
    }

    /// Texts of the system prompt, and of system messages at the front.
    pub(crate) fn system_text(&self) -> String {
        let mut text = String::new();
        let leading = self
            .messages()
            .iter()
            .take_while(|message| message.role == Role::System);
        for part in self
            .conversation
            .system
            .iter()
            .filter_map(|block| match &block.content {
                Content::Text(text) => Some(text),
                _ => None,
            })
            .chain(leading.flat_map(Message::texts))
        {
            text.push_str(&part.decode());
            text.push('\n');
        }
        text
    }

    /// The last text of the user.
    pub(crate) fn last_user_text(&self) -> String {
        match self.messages().last() {
            Some(message) if message.role == Role::User => {
                let texts: Vec<_> = message
                    .blocks
                    .iter()
                    .filter_map(|block| match &block.content {
                        Content::Text(text) => Some(text.decode()),
                        _ => None,
                    })
                    .collect();
                texts.join("\n")
            }
            _ => String::new(),
        }
    }

    /// A tool of the provider's that was called and is not finished: the request continues it.
    pub(crate) fn open_server_call(&self) -> Option<String> {
        let last = self
            .messages()
            .last()
            .filter(|message| message.role == Role::Assistant)?;
        match &last.blocks.last()?.content {
            Content::ToolCall(call) if call.is_server_side => Some(call.id.to_string()),
            _ => None,
        }
    }

    /// Ids of all calls of the provider's own tools.
    pub(crate) fn server_call_ids(&self) -> impl Iterator<Item = String> {
        self.messages()
            .iter()
            .flat_map(Message::tool_calls)
            .filter(|call| call.is_server_side)
            .map(|call| call.id.to_string())
    }

    /// Steps of the tool loop since the last message of the user, and that message.
    fn steps(&self) -> (usize, String) {
        let mut steps = 0;
        for message in self.messages().iter().rev() {
            if message.begins_turn() {
                return (steps, words(message));
            }
            if message.tool_calls().next().is_some() {
                steps += 1;
            }
        }
        (steps, String::new())
    }
}

/// All texts of a message, those of tool results included.
fn words(message: &Message) -> String {
    let mut words = String::new();
    for text in message.texts() {
        words.push_str(&text.decode());
        words.push('\n');
    }
    for result in message.tool_results() {
        for text in result.texts() {
            words.push_str(&text.decode());
            words.push('\n');
        }
    }
    words
}

/// What the assistant answers.
pub(crate) fn reply(
    briefing: &Briefing,
    is_summary: bool,
    output_max: u64,
    mind: &mut Dice,
) -> Reply {
    let callable: Vec<&Tool> = briefing
        .offer
        .tools
        .iter()
        .filter(|tool| !tool.is_server)
        .collect();
    // A choice that is forced leaves the model no words before the call, and no other answer.
    match &briefing.offer.choice {
        ToolChoice::Always if !callable.is_empty() => {
            return calls(briefing, &callable, Reply::default(), mind);
        }
        ToolChoice::This(name) => {
            if let Some(tool) = briefing.offer.tools.iter().find(|tool| tool.name == *name) {
                return Reply {
                    parts: vec![call(tool, mind)],
                    ..Reply::default()
                };
            }
        }
        _ => {}
    }
    if is_summary {
        return Reply::text(summary::write(briefing, output_max));
    }
    if briefing.open_server_call().is_some() {
        let mut reply = Reply::default();
        reply.parts.push(ReplyPart::WebSearchResult);
        reply.parts.push(ReplyPart::Text(talk::after_search(mind)));
        return reply;
    }
    let answers = facts::answers(briefing);
    if let Some(schema) = briefing.schema() {
        let mut vocabulary =
            schema::Vocabulary::new(answers.map(|answers| answers.text).into_iter().collect());
        return Reply::text(schema::example(schema, &mut vocabulary, mind).to_string());
    }
    if briefing.wants_json() {
        let answer = answers.map_or_else(|| talk::sentence(mind), |answers| answers.text);
        return Reply::text(serde_json::json!({"answer": answer}).to_string());
    }
    // An unknown fact is looked for with the available tools first.
    let can_look = briefing.offer.choice != ToolChoice::Never && !callable.is_empty();
    if let Some(answers) = &answers
        && (answers.is_known || !can_look)
    {
        return Reply::text(answers.text.as_str());
    }
    if can_look {
        let (steps, said) = briefing.steps();
        // The user's message decides how long a tool loop continues.
        let wanted = Dice::new(0, "steps", &[said.as_bytes()])
            .below(5)
            .max(usize::from(answers.is_some()));
        if steps < wanted {
            let announced = if mind.happens(0.6) {
                Reply::text(talk::before_calls(mind))
            } else {
                Reply::default()
            };
            return calls(briefing, &callable, announced, mind);
        }
    }
    if let Some(answers) = answers {
        return Reply::text(answers.text);
    }
    Reply::text(talk::report(
        &briefing.last_user_text(),
        briefing.has_tools(),
        mind,
    ))
}

/// The reply with one or several calls after its text.
fn calls(briefing: &Briefing, callable: &[&Tool], mut reply: Reply, mind: &mut Dice) -> Reply {
    let count = match mind.happens(0.3) {
        true if !briefing.offer.is_one_at_a_time => mind.between(2, 4),
        _ => 1,
    };
    for _ in 0..count {
        if let Some(tool) = callable.get(mind.below(callable.len())) {
            reply.parts.push(call(tool, mind));
        }
    }
    reply
}

fn call(tool: &Tool, mind: &mut Dice) -> ReplyPart {
    let mut vocabulary = schema::Vocabulary::new(Vec::new());
    let input = match &tool.schema {
        Some(schema) => schema::example(schema, &mut vocabulary, mind),
        None => serde_json::json!({}),
    };
    let input = match input {
        serde_json::Value::Object(_) => input.to_string(),
        _ => "{}".to_owned(),
    };
    ReplyPart::ToolCall {
        name: tool.name.clone(),
        input,
    }
}

/// What the assistant thinks before it answers.
pub(crate) fn thought(briefing: &Briefing, mind: &mut Dice) -> String {
    talk::thought(&briefing.last_user_text(), mind)
}

/// The content of a compaction that the provider itself makes.
pub(crate) fn compaction(
    briefing: &Briefing,
    fault: Option<Fault>,
    output_max: u64,
) -> Option<String> {
    match fault {
        Some(Fault::Summary(BadSummary::Null | BadSummary::ToolCall | BadSummary::Refusal)) => None,
        _ => Some(summary::write(briefing, output_max)),
    }
}

/// Applies a fault to a good reply.
pub(crate) fn spoil(reply: &mut Reply, fault: Option<Fault>, briefing: &Briefing, mind: &mut Dice) {
    const REFUSED: &str = "I can't help with that request.";
    let Some(fault) = fault else { return };
    *reply = match fault {
        Fault::Pause => match briefing.offer.tools.iter().find(|tool| tool.is_server) {
            Some(tool) => {
                let mut paused = Reply::text(talk::before_calls(mind));
                paused.parts.push(ReplyPart::ServerToolCall {
                    name: tool.name.clone(),
                    input: serde_json::json!({"query": talk::sentence(mind)}).to_string(),
                });
                paused
            }
            // The next request cannot continue it.
            None => return,
        },
        Fault::Refusal | Fault::Summary(BadSummary::Refusal) => {
            Reply::text(REFUSED).stop(StopReason::Refusal)
        }
        Fault::Truncated | Fault::Summary(BadSummary::Truncated) => {
            let mut cut = std::mem::take(reply);
            cut.parts.retain(|part| matches!(part, ReplyPart::Text(_)));
            cut.parts.truncate(1);
            if let Some(ReplyPart::Text(text)) = cut.parts.first_mut() {
                text.truncate(text.floor_char_boundary(text.len() / 2));
            }
            cut.stop(StopReason::MaxTokens)
        }
        Fault::Summary(kind) => match kind {
            BadSummary::Empty => Reply::text(""),
            BadSummary::Null => Reply::default(),
            BadSummary::Blank => Reply::text(" \n\n"),
            BadSummary::ToolCall => {
                let tool = briefing.offer.tools.iter().find(|tool| !tool.is_server);
                let mut called = Reply::text("Let me look at the files first.");
                called.parts.push(match tool {
                    Some(tool) => call(tool, mind),
                    None => ReplyPart::ToolCall {
                        name: "read_file".to_owned(),
                        input: r#"{"path":"README.md"}"#.to_owned(),
                    },
                });
                called
            }
            BadSummary::ErrorText => Reply::text(
                "API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
            ),
            BadSummary::Skeleton => Reply::text(summary::skeleton(briefing)),
            BadSummary::Language => Reply::text(talk::in_another_language(mind)),
            BadSummary::Larger => Reply::text(summary::larger(briefing)),
            BadSummary::Prose => Reply::text(
                "Sure! I have read the whole conversation. Would you like me to summarise it as a list or as a table?",
            ),
            BadSummary::Refusal | BadSummary::Truncated => return,
        },
        _ => return,
    };
}
