//! The list of messages: roles, content, and the place of compaction blocks.

use crate::json::{Kind, Raw};

use super::super::checker::{Checker, Object, TextQuote};
use super::super::path::Path;
use super::super::rule;
use super::Request;
use super::block_types::Role;
use super::blocks::{BlockSummary, Blocks, check_text};
use super::cache::Markers;
use super::turns::Turns;

/// Most messages in one request.
const MESSAGES_MAX: usize = 100_000;
/// Most images in one request.
const IMAGES_MAX: u64 = 600;
/// Most images in one request to a model with a window of 200,000 tokens.
const IMAGES_MAX_SMALL_WINDOW: u64 = 100;
const SMALL_WINDOW_TOKENS: u64 = 200_000;

const FIELDS: &[&str] = &["role", "content"];
const SYSTEM_FIELDS: &[&str] = &["role", "content", "output_config", "clear_at"];

/// Fields of system messages that require a beta.
const SYSTEM_BETAS: &[(&str, &str)] = &[
    ("output_config", "mid-conversation-output-config-2026-07-01"),
    ("clear_at", "mid-conversation-system-clear-at-2026-08-21"),
];

pub(crate) fn check(
    list: &Raw,
    request: &Request,
    markers: &mut Markers,
    checker: &mut Checker<'_>,
) {
    let root = Path::Root;
    let path = root.key("messages");
    let mut blocks = Blocks { request, images: 0 };
    let mut turns = Turns::new(request);
    let mut compactions = Compactions::default();
    let mut count = 0;
    let mut messages = list.array().peekable();
    while let Some(message) = messages.next() {
        let mut state = MessageCheck {
            is_last: messages.peek().is_none(),
            blocks: &mut blocks,
            turns: &mut turns,
            compactions: &mut compactions,
            markers,
            checker,
        };
        state.check(&message, count, &path.index(count));
        count += 1;
    }
    if count > MESSAGES_MAX {
        checker.add(
            &rule::TOO_MANY_MESSAGES,
            path,
            format_args!("{count} messages are more than {MESSAGES_MAX}: leave out the oldest"),
        );
    }
    check_images(blocks.images, checker);
    if count == 0 && !request.continues_thread && !request.asks_for_compaction {
        checker.add(
            &rule::MESSAGES_EMPTY,
            path,
            "there is no message: add at least one of the user",
        );
    }
    if request.asks_for_compaction && !compactions.has_other_content {
        checker.add(
            &rule::COMPACTION_NOTHING,
            path,
            "there is nothing to summarize: send the messages that the compaction shall cover",
        );
    }
    turns.finish(checker);
}

fn check_images(images: u64, checker: &mut Checker<'_>) {
    let has_small_window = checker
        .options
        .model
        .is_some_and(|model| model.window <= SMALL_WINDOW_TOKENS);
    let limit = if has_small_window {
        IMAGES_MAX_SMALL_WINDOW
    } else {
        IMAGES_MAX
    };
    if images > limit {
        let root = Path::Root;
        checker.add(
            &rule::TOO_MANY_IMAGES,
            root.key("messages"),
            format_args!("{images} images are more than {limit}: leave out the oldest"),
        );
    }
}

/// What has been seen of compaction blocks.
#[derive(Default)]
struct Compactions {
    with_content: usize,
    has_signed: bool,
    has_other_content: bool,
}

impl Compactions {
    fn block(
        &mut self,
        seen: &BlockSummary,
        (message, block): (usize, usize),
        path: &Path<'_>,
        checker: &mut Checker<'_>,
    ) {
        let BlockSummary::Compaction {
            is_signed,
            has_content,
        } = *seen
        else {
            self.has_other_content = true;
            return;
        };
        if is_signed && (message, block) != (0, 0) {
            checker.add(
                &rule::COMPACTION_MISPLACED,
                *path,
                "a signed compaction block must be the first block of the first message: drop the messages before it",
            );
        }
        self.has_signed |= is_signed;
        self.with_content += usize::from(has_content);
        if has_content && self.with_content > 1 && self.has_signed {
            checker.add(
                &rule::COMPACTION_AMBIGUOUS,
                *path,
                "only one compaction block with content may be sent: keep the latest",
            );
        }
    }
}

struct MessageCheck<'c, 'r, 'o> {
    is_last: bool,
    blocks: &'c mut Blocks<'r>,
    turns: &'c mut Turns<'r>,
    compactions: &'c mut Compactions,
    markers: &'c mut Markers,
    checker: &'c mut Checker<'o>,
}

impl MessageCheck<'_, '_, '_> {
    fn check(&mut self, message: &Raw, index: usize, path: &Path<'_>) {
        let Some(message) = self.checker.object(message, *path) else {
            return;
        };
        let Some(role) = self.role(&message, path) else {
            return;
        };
        let fields = match role {
            Role::System => SYSTEM_FIELDS,
            Role::User | Role::Assistant => FIELDS,
        };
        self.checker.known_fields(&message, &[fields], path);
        if role == Role::System {
            self.checker
                .known_value(&message, "clear_at", &["never", "next_user_message"], path);
            self.checker
                .optional_object(&message, "output_config", path);
            for (key, beta) in SYSTEM_BETAS {
                if message.has(key) {
                    let betas = &self.blocks.request.betas;
                    betas.require(beta, path.key(key), self.checker);
                }
            }
        }
        let what = "a string or an array of blocks";
        let Some(content) = self.checker.required_value(&message, "content", what, path) else {
            return;
        };
        let content_path = path.key("content");
        if !self
            .checker
            .expect_kind(content, &[Kind::String, Kind::Array], what, content_path)
        {
            return;
        }
        self.turns.enter(role, index, self.checker);
        match content.as_text() {
            Some(text) => {
                if text.encoded_len() == 0 {
                    self.empty(role, content_path);
                } else {
                    check_text(&text, content_path, self.checker);
                }
                self.markers.unmarked();
                let seen = BlockSummary::text(Some(&text), role);
                self.compactions
                    .block(&seen, (index, 0), path, self.checker);
                self.turns.block(seen, (index, 0), self.checker);
            }
            None => self.array(content, role, index, &content_path),
        }
        self.turns.leave(self.checker);
    }

    fn array(&mut self, content: &Raw, role: Role, index: usize, path: &Path<'_>) {
        let mut count = 0;
        for block in content.array() {
            let path = path.index(count);
            let seen = self
                .blocks
                .check(&block, role, self.markers, &path, self.checker);
            // A block that could not be read still counts.
            let seen = seen.unwrap_or(BlockSummary::Other);
            self.compactions
                .block(&seen, (index, count), &path, self.checker);
            self.turns.block(seen, (index, count), self.checker);
            count += 1;
        }
        if count == 0 {
            self.empty(role, *path);
        }
    }

    /// Only the last message of the assistant may be empty.
    fn empty(&mut self, role: Role, path: Path<'_>) {
        if !(self.is_last && role == Role::Assistant) {
            self.checker.add(
                &rule::EMPTY_CONTENT,
                path,
                "a message must have content: remove the message or give it a text",
            );
        }
    }

    fn role(&mut self, message: &Object, path: &Path<'_>) -> Option<Role> {
        let role = self.checker.required_name(message, "role", path)?;
        match role.decode().as_ref() {
            "user" => Some(Role::User),
            "assistant" => Some(Role::Assistant),
            "system" => Some(Role::System),
            _ => {
                self.checker.add(
                    &rule::UNKNOWN_ROLE,
                    path.key("role"),
                    format_args!(
                        "{} is no role: use user (also for results of tools), assistant or system",
                        TextQuote(&role)
                    ),
                );
                None
            }
        }
    }
}
