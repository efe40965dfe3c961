//! Values that fit a JSON Schema: arguments of tools, and structured replies.

use serde_json::{Map, Value, json};
use throughline_transcript::json::{Kind, Raw};

use crate::dice::Dice;

/// How deep a value is nested, at most.
const DEPTH_MAX: usize = 8;

/// What there is to say where a schema asks for words.
pub(crate) struct Vocabulary {
    statements: Vec<String>,
    next: usize,
}

impl Vocabulary {
    pub(crate) fn new(statements: Vec<String>) -> Self {
        Self {
            statements,
            next: 0,
        }
    }

    /// How many statements have not been used.
    pub(crate) fn left(&self) -> usize {
        self.statements.len().saturating_sub(self.next)
    }

    fn take(&mut self) -> Option<String> {
        let statement = self.statements.get(self.next).cloned();
        self.next += 1;
        statement
    }
}

/// A value that fits the schema.
pub(crate) fn example(schema: &Raw, vocabulary: &mut Vocabulary, mind: &mut Dice) -> Value {
    value(schema, schema, "", DEPTH_MAX, vocabulary, mind)
}

fn value(
    schema: &Raw,
    root: &Raw,
    name: &str,
    depth: usize,
    words: &mut Vocabulary,
    mind: &mut Dice,
) -> Value {
    let [reference, constant, choices, any, one, all, kind] =
        schema.fields(["$ref", "const", "enum", "anyOf", "oneOf", "allOf", "type"]);
    if let Some(constant) = constant {
        return parsed(&constant);
    }
    if depth == 0 {
        return empty(kind.as_ref());
    }
    if let Some(target) = reference
        .and_then(|reference| reference.as_text())
        .and_then(|path| resolve(root, &path.decode()))
    {
        return value(&target, root, name, depth - 1, words, mind);
    }
    if let Some(choices) = choices {
        return choice(&choices, mind);
    }
    if let Some(variants) = any.or(one) {
        let variants: Vec<Raw> = variants
            .array()
            .filter(|variant| variant.string_field("type").as_deref() != Some("null"))
            .collect();
        // A list of changes adds before it changes anything.
        let variant = variants
            .iter()
            .find(|variant| variant.as_str().contains("\"add\""))
            .or_else(|| variants.get(mind.below(variants.len())));
        return variant.map_or(Value::Null, |variant| {
            value(variant, root, name, depth - 1, words, mind)
        });
    }
    if let Some(first) = all.and_then(|all| all.array().next()) {
        return value(&first, root, name, depth - 1, words, mind);
    }
    match type_name(kind.as_ref(), schema).as_str() {
        "object" => object(schema, root, depth, words, mind),
        "array" => {
            let bound = |field: &str| schema.field(field).and_then(|raw| raw.as_u64());
            let least = bound("minItems").unwrap_or(0) as usize;
            let most = bound("maxItems").map_or(12, |most| most.min(12) as usize);
            let wanted = if words.statements.is_empty() {
                mind.between(1, 3)
            } else {
                words.left().min(12)
            };
            let count = wanted
                .clamp(least.min(most.max(least)), most.max(least))
                .min(50);
            let items = schema.field("items");
            let item = |words: &mut Vocabulary, mind: &mut Dice| match &items {
                Some(items) => value(items, root, name, depth - 1, words, mind),
                None => string(schema, name, words, mind),
            };
            (0..count).map(|_| item(words, mind)).collect()
        }
        "integer" => number(schema, name, mind).into(),
        "number" => json!(number(schema, name, mind)),
        "boolean" => mind.happens(0.5).into(),
        "null" => Value::Null,
        _ => string(schema, name, words, mind),
    }
}

fn type_name(kind: Option<&Raw>, schema: &Raw) -> String {
    match kind {
        Some(kind) if kind.kind() == Kind::Array => kind
            .array()
            .filter_map(|kind| kind.as_text())
            .map(|kind| kind.decode().into_owned())
            .find(|kind| kind != "null")
            .unwrap_or_default(),
        Some(kind) => kind
            .as_text()
            .map(|kind| kind.decode().into_owned())
            .unwrap_or_default(),
        None if schema.field("properties").is_some() => "object".to_owned(),
        None if schema.field("items").is_some() => "array".to_owned(),
        None => String::new(),
    }
}

fn object(
    schema: &Raw,
    root: &Raw,
    depth: usize,
    words: &mut Vocabulary,
    mind: &mut Dice,
) -> Value {
    let required: Vec<String> = schema
        .field("required")
        .iter()
        .flat_map(Raw::array)
        .filter_map(|name| name.as_text())
        .map(|name| name.decode().into_owned())
        .collect();
    let mut object = Map::new();
    for (name, property) in schema.field("properties").iter().flat_map(Raw::object) {
        let name = name.decode().into_owned();
        if required.contains(&name) || mind.happens(0.3) {
            let inner = value(&property, root, &name, depth - 1, words, mind);
            object.insert(name, inner);
        }
    }
    for name in required {
        object.entry(name).or_insert_with(|| json!("value"));
    }
    Value::Object(object)
}

fn choice(choices: &Raw, mind: &mut Dice) -> Value {
    let choices: Vec<Raw> = choices.array().collect();
    let preferred = choices.iter().find(|choice| {
        matches!(
            choice.as_str(),
            "\"add\"" | "\"references\"" | "\"Key References\""
        )
    });
    preferred
        .or_else(|| choices.get(mind.below(choices.len())))
        .map_or(Value::Null, parsed)
}

fn number(schema: &Raw, name: &str, mind: &mut Dice) -> u64 {
    let bound = |field: &str| schema.field(field).and_then(|raw| raw.as_f64());
    let least = bound("minimum")
        .or_else(|| bound("exclusiveMinimum").map(|least| least + 1.0))
        .unwrap_or(1.0)
        .clamp(0.0, 1e15)
        .ceil() as u64;
    let most = bound("maximum")
        .or_else(|| bound("exclusiveMaximum").map(|most| most - 1.0))
        .unwrap_or(if name.contains("timeout") {
            600.0
        } else {
            200.0
        })
        .clamp(0.0, 1e15)
        .floor() as u64;
    let span = usize::try_from(most.saturating_sub(least)).unwrap_or(0);
    least + mind.below(span.min(1000) + 1) as u64
}

fn string(schema: &Raw, name: &str, words: &mut Vocabulary, mind: &mut Dice) -> Value {
    let text = match words.take() {
        Some(statement) => statement,
        None if !words.statements.is_empty() => "nothing more".to_owned(),
        None => named(name, mind),
    };
    let bound = |field: &str| {
        schema
            .field(field)
            .and_then(|raw| raw.as_u64())
            .and_then(|bound| usize::try_from(bound).ok())
    };
    let mut text = text;
    if let Some(most) = bound("maxLength") {
        text = text.chars().take(most).collect();
    }
    if let Some(least) = bound("minLength") {
        while text.chars().count() < least.min(1000) {
            text.push('x');
        }
    }
    Value::String(text)
}

/// A text for a parameter of this name, as a coding assistant would fill it in.
fn named(name: &str, mind: &mut Dice) -> String {
    const FOLDERS: &[&str] = &[
        "src",
        "src/api",
        "src/store",
        "crates/core/src",
        "tests",
        "lib",
        "app/models",
    ];
    const FILES: &[&str] = &[
        "config", "server", "retry", "session", "parser", "router", "queue", "billing", "auth",
        "export", "cache", "worker",
    ];
    const ENDINGS: &[&str] = &["rs", "py", "ts", "go"];
    let lower = name.to_ascii_lowercase();
    let path = |mind: &mut Dice| {
        format!(
            "{}/{}.{}",
            mind.pick(FOLDERS),
            mind.pick(FILES),
            mind.pick(ENDINGS)
        )
    };
    let has = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    if has(&["path", "file", "dir"]) {
        path(mind)
    } else if has(&["command", "cmd"]) {
        let file = mind.pick(FILES);
        let numbers = mind.between(2, 40);
        mind.pick(&[
            "cargo test -q",
            "git status --short",
            "git diff --stat",
            "npm test",
            "ls -la src",
            "pytest -x -q",
        ])
        .to_owned()
            + &format!(" # {file} {numbers}")
    } else if has(&["pattern", "regex", "glob"]) {
        format!("fn {}_\\w+", mind.pick(FILES))
    } else if has(&["url", "uri"]) {
        format!("https://example.com/docs/{}", mind.pick(FILES))
    } else if has(&["old"]) {
        format!("let {} = None;", mind.pick(FILES))
    } else if has(&["new", "content", "code", "patch", "text"]) {
        format!(
            "let {} = {}::load({})?;",
            mind.pick(FILES),
            mind.pick(FILES),
            mind.between(1, 9000)
        )
    } else if has(&["query", "question", "search"]) {
        format!("where is {} handled", mind.pick(FILES))
    } else if has(&["date"]) {
        format!("2026-11-{:02}", mind.between(1, 28))
    } else {
        format!("{}-{}", mind.pick(FILES), mind.between(1, 99))
    }
}

pub(super) fn resolve(root: &Raw, path: &str) -> Option<Raw> {
    let mut at = root.clone();
    for step in path.strip_prefix("#/")?.split('/') {
        at = at.field(&step.replace("~1", "/").replace("~0", "~"))?;
    }
    Some(at)
}

fn parsed(raw: &Raw) -> Value {
    serde_json::from_str(raw.as_str()).unwrap_or_default()
}

fn empty(kind: Option<&Raw>) -> Value {
    match kind.map(Raw::as_str) {
        Some("\"object\"") => json!({}),
        Some("\"array\"") => json!([]),
        Some("\"integer\"" | "\"number\"") => json!(1),
        Some("\"boolean\"") => json!(false),
        Some("\"null\"") => Value::Null,
        _ => json!("more"),
    }
}
