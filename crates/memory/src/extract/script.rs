//! Calls of tools in a script: an agent that gives its model one tool, which runs JavaScript, has the calls in there.
//!
//! The script is not run. Its literals are read with whatever quotes they have, constants are put in where they are
//! used, and a call `tools.name({...})` becomes the JSON that the tool would get. What is computed is left out.

use std::collections::HashMap;

use throughline_transcript::json::quoted;

/// Of a script this much is read, bytes.
const SCRIPT_BYTES_MAX: usize = 256 * 1024;
/// Values inside values, so deep.
const DEPTH_MAX: usize = 16;
/// Calls that are read.
const CALLS_MAX: usize = 100;
/// All texts that constants put in, together; bytes.
const INSERTED_BYTES_MAX: usize = 1024 * 1024;
/// Stands in a text for a part that is computed.
pub(super) const COMPUTED: char = '\u{fffc}';
const COMPUTED_TEXT: &str = "\u{fffc}";

/// A call in a script.
#[derive(Debug, PartialEq)]
pub(super) struct ScriptCall {
    pub(super) name: String,
    /// JSON of what it is called with; a string or an object where that can be told.
    pub(super) input: String,
}

/// Whether a text is a script, and no command line.
pub(super) fn is_javascript(text: &str) -> bool {
    ["const ", "let ", "await ", "=>", "tools."]
        .iter()
        .any(|sign| text.contains(sign))
        && text.contains('(')
        && text.contains(')')
}

/// The calls of tools in a script, in their order.
pub(super) fn calls(script: &str) -> Vec<ScriptCall> {
    let text = &script[..script.floor_char_boundary(SCRIPT_BYTES_MAX)];
    let mut reader = Reader {
        text,
        at: 0,
        constants: HashMap::new(),
        inserted: 0,
        reread: 0,
        calls: Vec::new(),
    };
    reader.run();
    reader.calls
}

/// A value, as far as it can be told.
#[derive(Clone)]
enum Value {
    Text(String),
    Other(String),
    List(Vec<Value>),
    Fields(Vec<(String, Value)>),
    Computed,
}

impl Value {
    fn json(&self) -> Option<String> {
        Some(match self {
            Self::Text(text) => quoted(text),
            Self::Other(literal) => literal.clone(),
            Self::List(values) => {
                let values: Vec<_> = values.iter().filter_map(Self::json).collect();
                format!("[{}]", values.join(","))
            }
            Self::Fields(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .filter_map(|(key, value)| Some(format!("{}:{}", quoted(key), value.json()?)))
                    .collect();
                format!("{{{}}}", fields.join(","))
            }
            Self::Computed => return None,
        })
    }

    /// About the memory that a copy takes, bytes.
    fn size(&self) -> usize {
        let inside: usize = match self {
            Self::Text(text) | Self::Other(text) => text.len(),
            Self::List(values) => values.iter().map(Self::size).sum(),
            Self::Fields(fields) => fields
                .iter()
                .map(|(key, value)| key.len() + value.size())
                .sum(),
            Self::Computed => 0,
        };
        inside + 8
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    constants: HashMap<String, Value>,
    inserted: usize,
    /// What was read a second time, bytes.
    reread: usize,
    calls: Vec<ScriptCall>,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, start: &str) -> bool {
        let is_next = self.rest().starts_with(start);
        if is_next {
            self.at += start.len();
        }
        is_next
    }

    /// Passes over white space and comments.
    fn blanks(&mut self) {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            let end = if self.rest().starts_with("//") {
                self.rest().find('\n')
            } else if self.rest().starts_with("/*") {
                self.rest().find("*/").map(|end| end + 2)
            } else {
                return;
            };
            self.at = end.map_or(self.text.len(), |end| self.at + end);
        }
    }

    fn run(&mut self) {
        // Whether a `/` would begin a regular expression.
        let mut is_operand_next = true;
        loop {
            self.blanks();
            let Some(next) = self.peek() else { return };
            match next {
                '\'' | '"' | '`' => {
                    self.text_literal(false);
                    is_operand_next = false;
                }
                '/' if is_operand_next => {
                    self.pattern();
                    is_operand_next = false;
                }
                _ if is_name_start(next) => {
                    let name = self.name();
                    is_operand_next = matches!(name, "return" | "await" | "of" | "in" | "case");
                    self.statement(name);
                }
                _ => {
                    self.at += next.len_utf8();
                    is_operand_next = !(next.is_alphanumeric() || matches!(next, ')' | ']' | '}'));
                }
            }
        }
    }

    /// What a name begins: a constant, or a call.
    fn statement(&mut self, name: &str) {
        if matches!(name, "const" | "let" | "var") {
            self.blanks();
            let name = self.name().to_owned();
            self.blanks();
            if !name.is_empty() && self.assigns() {
                self.keep(name);
            }
            return;
        }
        if self.constants.contains_key(name) {
            self.blanks();
            if self.rest().starts_with("+=") {
                self.at += 2;
                let more = self.value(0);
                let value = match (self.constants.remove(name), more) {
                    (Some(Value::Text(text)), Value::Text(more)) => Value::Text(text + &more),
                    _ => Value::Computed,
                };
                self.constants.insert(name.to_owned(), value);
                return;
            }
            if self.assigns() {
                self.keep(name.to_owned());
                return;
            }
        }
        let Some(tool) = self.tool(name) else { return };
        self.blanks();
        if !self.take("(") {
            return;
        }
        let value = self.value(0);
        if let (Some(input), true) = (value.json(), self.calls.len() < CALLS_MAX) {
            self.calls.push(ScriptCall { name: tool, input });
        }
    }

    /// The tool that `name`, with what follows it, is.
    fn tool(&mut self, name: &str) -> Option<String> {
        if name == "tools" || name == "functions" {
            let start = self.at;
            if self.take("?.") || self.take(".") {
                let tool = self.name();
                if !tool.is_empty() {
                    return Some(tool.to_owned());
                }
            } else if self.take("[") {
                let value = self.value(0);
                if let (Value::Text(tool), true) = (value, self.take("]")) {
                    return Some(tool);
                }
            }
            self.at = start;
            return None;
        }
        matches!(name, "apply_patch" | "exec_command" | "update_plan").then(|| name.to_owned())
    }

    fn assigns(&mut self) -> bool {
        let rest = self.rest();
        let is_assigned =
            rest.starts_with('=') && !rest.starts_with("==") && !rest.starts_with("=>");
        if is_assigned {
            self.at += 1;
        }
        is_assigned
    }

    /// Reads the value of a constant. A call in it is read when the reader comes to it.
    fn keep(&mut self, name: String) {
        let start = self.at;
        let value = self.value(0);
        if matches!(value, Value::Computed) && self.reread < SCRIPT_BYTES_MAX {
            self.reread += self.at - start;
            self.at = start;
        }
        self.constants.insert(name, value);
    }

    /// A value with what is added to it.
    fn value(&mut self, depth: usize) -> Value {
        let mut value = self.operand(depth);
        loop {
            self.blanks();
            if self.rest().starts_with('+') && !self.rest().starts_with("++") {
                self.at += 1;
                let more = self.operand(depth);
                value = match (value, more) {
                    (Value::Text(text), Value::Text(more)) => Value::Text(text + &more),
                    (Value::Text(mut text), _) => {
                        text.push(COMPUTED);
                        Value::Text(text)
                    }
                    (_, Value::Text(more)) => Value::Text(format!("{COMPUTED}{more}")),
                    _ => Value::Computed,
                };
            } else if self.take(".") || self.take("?.") {
                let method = self.name();
                self.blanks();
                let argument = if self.take("(") {
                    self.blanks();
                    let argument = match self.peek() {
                        Some(')') | None => None,
                        Some(_) => Some(self.value(depth + 1)),
                    };
                    self.skip_to_close();
                    argument
                } else {
                    None
                };
                value = match (method, value, argument) {
                    ("trim" | "trimStart" | "trimEnd" | "toString", value, None) => value,
                    ("join", Value::List(values), Some(Value::Text(between))) => {
                        joined(&values, &between)
                    }
                    _ => Value::Computed,
                };
            } else {
                return self.whole(value);
            }
        }
    }

    /// The value, if nothing more is done with it.
    fn whole(&mut self, value: Value) -> Value {
        let is_end = matches!(value, Value::Computed)
            || self
                .peek()
                .is_none_or(|next| !"?*-/%<>=&|^!~[(`".contains(next));
        if is_end {
            value
        } else {
            self.skip_to_end();
            Value::Computed
        }
    }

    fn operand(&mut self, depth: usize) -> Value {
        self.blanks();
        if depth > DEPTH_MAX {
            self.skip_to_end();
            return Value::Computed;
        }
        match self.peek() {
            Some('\'' | '"' | '`') => Value::Text(self.text_literal(false)),
            Some('{') => self.fields(depth),
            Some('[') => {
                self.at += 1;
                let mut values = Vec::new();
                loop {
                    self.blanks();
                    if self.take("]") || self.peek().is_none() {
                        return Value::List(values);
                    }
                    let start = self.at;
                    values.push(self.value(depth + 1));
                    self.skip_to_end();
                    if !self.take(",") && self.at == start {
                        self.at += self.peek().map_or(0, char::len_utf8);
                    }
                }
            }
            Some('(') => {
                self.at += 1;
                let value = self.value(depth + 1);
                self.skip_to_close();
                value
            }
            Some(next) if next.is_ascii_digit() || next == '-' => {
                let rest = self.rest();
                let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
                let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                self.at += length;
                let literal = rest[..length].replace('_', "");
                match literal.parse::<f64>() {
                    Ok(number) if number.is_finite() && !literal.ends_with('.') => {
                        Value::Other(literal)
                    }
                    _ => Value::Computed,
                }
            }
            Some(next) if is_name_start(next) => {
                let name = self.name();
                match name {
                    "true" | "false" | "null" => Value::Other(name.to_owned()),
                    "undefined" => Value::Computed,
                    "String" if self.take(".raw") => {
                        self.blanks();
                        Value::Text(self.text_literal(true))
                    }
                    _ => self.constant(name).unwrap_or(Value::Computed),
                }
            }
            _ => Value::Computed,
        }
    }

    /// The value of a constant, as long as there is room for copies.
    fn constant(&mut self, name: &str) -> Option<Value> {
        if self.inserted > INSERTED_BYTES_MAX {
            return None;
        }
        let value = self.constants.get(name)?;
        self.inserted += value.size();
        Some(value.clone())
    }

    fn fields(&mut self, depth: usize) -> Value {
        self.at += 1;
        let mut fields = Vec::new();
        loop {
            self.blanks();
            let start = self.at;
            let key = match self.peek() {
                None => break,
                Some('}') => {
                    self.at += 1;
                    break;
                }
                Some('\'' | '"') => self.text_literal(false),
                Some(_) => self.name().to_owned(),
            };
            self.blanks();
            if self.take(":") {
                let value = self.value(depth + 1);
                fields.push((key, value));
            } else if let Some(value) = self.constant(&key) {
                // `{cmd}` means `{cmd: cmd}`.
                fields.push((key, value));
            }
            self.skip_to_end();
            if !self.take(",") && self.at == start {
                self.at += self.peek().map_or(0, char::len_utf8);
            }
        }
        Value::Fields(fields)
    }

    /// Passes over the rest of a value, up to what ends it.
    fn skip_to_end(&mut self) {
        let mut depth = 0usize;
        let mut is_operand_next = false;
        loop {
            self.blanks();
            let Some(next) = self.peek() else { return };
            match next {
                '\'' | '"' | '`' => {
                    self.text_literal(false);
                    is_operand_next = false;
                    continue;
                }
                '/' if is_operand_next => {
                    self.pattern();
                    is_operand_next = false;
                    continue;
                }
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' if depth == 0 => return,
                ')' | ']' | '}' => depth -= 1,
                ',' | ';' if depth == 0 => return,
                _ => {}
            }
            is_operand_next = !(next.is_alphanumeric() || matches!(next, ')' | ']' | '}'));
            self.at += next.len_utf8();
        }
    }

    /// Passes over further arguments and the bracket that ends them.
    fn skip_to_close(&mut self) {
        loop {
            self.skip_to_end();
            if !self.take(",") && !self.take(";") {
                break;
            }
        }
        self.take(")");
    }

    fn name(&mut self) -> &'t str {
        let rest = self.rest();
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Passes over a regular expression.
    fn pattern(&mut self) {
        self.at += 1;
        let mut is_class = false;
        while let Some(next) = self.peek() {
            self.at += next.len_utf8();
            match next {
                '\\' => self.at += self.peek().map_or(0, char::len_utf8),
                '[' => is_class = true,
                ']' => is_class = false,
                '/' if !is_class => return,
                '\n' => return,
                _ => {}
            }
        }
    }

    /// The text of a literal with its escapes read, or as it is written.
    fn text_literal(&mut self, is_raw: bool) -> String {
        let mut text = String::new();
        let Some(quote @ ('\'' | '"' | '`')) = self.peek() else {
            return text;
        };
        self.at += 1;
        while let Some(next) = self.peek() {
            self.at += next.len_utf8();
            match next {
                _ if next == quote => return text,
                '\\' if is_raw => {
                    text.push(next);
                    if let Some(escaped) = self.peek() {
                        text.push(escaped);
                        self.at += escaped.len_utf8();
                    }
                }
                '\\' => self.escape(&mut text),
                '$' if quote == '`' && self.rest().starts_with('{') => self.inserted(&mut text),
                '\n' if quote != '`' => return text,
                _ => text.push(next),
            }
        }
        text
    }

    fn escape(&mut self, text: &mut String) {
        let Some(next) = self.peek() else { return };
        self.at += next.len_utf8();
        match next {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            '0' | 'b' | 'f' | 'v' => text.push(' '),
            '\n' => {}
            'u' | 'x' => {
                let rest = self.rest();
                let (digits, length) = match rest.strip_prefix('{') {
                    Some(inside) => {
                        let end = inside.find('}').unwrap_or(0);
                        (&inside[..end], end + 2)
                    }
                    None => {
                        let length = if next == 'u' { 4 } else { 2 };
                        (rest.get(..length).unwrap_or_default(), length)
                    }
                };
                let code = u32::from_str_radix(digits, 16).ok();
                if let Some(code) = code.filter(|_| !digits.is_empty()) {
                    text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    self.at += length.min(rest.len());
                }
            }
            _ => text.push(next),
        }
    }

    /// What `${...}` puts in.
    fn inserted(&mut self, text: &mut String) {
        self.at += 1;
        let rest = self.rest();
        let length = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        if rest[length..].starts_with('}') {
            self.at += length + 1;
            match self.constant(&rest[..length]) {
                Some(Value::Text(constant)) => text.push_str(&constant),
                _ => text.push(COMPUTED),
            }
            return;
        }
        text.push(COMPUTED);
        let mut depth = 1usize;
        while let Some(next) = self.peek() {
            self.at += next.len_utf8();
            match next {
                '{' => depth += 1,
                '}' => {
                    depth -= 1;
                    if depth == 0 {
                        return;
                    }
                }
                _ => {}
            }
        }
    }
}

fn is_name_start(character: char) -> bool {
    character.is_alphabetic() || matches!(character, '_' | '$')
}

fn joined(values: &[Value], between: &str) -> Value {
    let texts: Vec<&str> = values
        .iter()
        .map(|value| match value {
            Value::Text(text) | Value::Other(text) => text.as_str(),
            _ => COMPUTED_TEXT,
        })
        .collect();
    Value::Text(texts.join(between))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, expected: &[(&str, &str)]) {
        let found = calls(script);
        let found: Vec<_> = found
            .iter()
            .map(|call| (call.name.as_str(), call.input.as_str()))
            .collect();
        assert_eq!(found, expected, "{script}");
    }

    #[test]
    fn literals_are_read_whatever_their_quotes() {
        let ls = &[("exec_command", r#"{"cmd":"ls 'a b'"}"#)];
        check(r#"await tools.exec_command({cmd: "ls 'a b'"})"#, ls);
        check(
            r#"const r = await tools.exec_command({"cmd":'ls \'a b\''}); text(r.output);"#,
            ls,
        );
        check("tools.exec_command({ cmd: `ls 'a b'` })", ls);
        check(
            r#"const c = "ls " + "'a b'"; await tools.exec_command({cmd: c})"#,
            ls,
        );
        check(
            "const dir = 'a b';\nconst cmd = `ls '${dir}'`\nawait tools.exec_command({cmd})",
            ls,
        );
        check(
            r#"let cmd = "ls"; cmd += " 'a b'"; tools["exec_command"]({cmd});"#,
            ls,
        );
        check(
            r#"tools.exec_command({cmd: ["ls", "'a b'"].join(" ")})"#,
            ls,
        );
        check(r#"await exec_command({cmd: "ls \u0027a b\x27"})"#, ls);
        check(
            r#"tools.exec_command({cmd: String.raw`ls \d`})"#,
            &[("exec_command", r#"{"cmd":"ls \\d"}"#)],
        );
    }

    #[test]
    fn what_is_computed_is_left_out() {
        check(
            "tools.exec_command({cmd: build(1), workdir: '/w'})",
            &[("exec_command", r#"{"workdir":"/w"}"#)],
        );
        check(
            "tools.exec_command({cmd: flag ? 'a' : 'b', n: 3})",
            &[("exec_command", r#"{"n":3}"#)],
        );
        check(
            "tools.exec_command({cmd: `rm ${paths[0]}`})",
            &[("exec_command", "{\"cmd\":\"rm \u{fffc}\"}")],
        );
        check("tools.apply_patch(makePatch())", &[]);
        check(
            "const s = 'tools.exec_command({cmd: 1})'; // tools.apply_patch('x')",
            &[],
        );
        check(
            "x.replace(/[\"/]/g, '').split('\\n'); tools.wait({id: 1})",
            &[("wait", r#"{"id":1}"#)],
        );
    }

    #[test]
    fn calls_are_found_wherever_they_are() {
        check(
            "const results = await Promise.all([\n  tools.exec_command({cmd: 'a'}),\n  tools.exec_command({cmd: 'b', yield_time_ms: 1_000}),\n]);\nfor (const x of results) text(x.output);",
            &[
                ("exec_command", r#"{"cmd":"a"}"#),
                ("exec_command", r#"{"cmd":"b","yield_time_ms":1000}"#),
            ],
        );
        check(
            "text(await tools.update_plan({plan:[{step:\"Dig\",status:'completed'},{step:`Fill`,status:\"pending\"}]}));",
            &[(
                "update_plan",
                r#"{"plan":[{"step":"Dig","status":"completed"},{"step":"Fill","status":"pending"}]}"#,
            )],
        );
        check(
            "try { await tools.mcp__pier__open({}) } catch (e) { text(String(e)) }",
            &[("mcp__pier__open", "{}")],
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived(script in "(.|\\s|\u{a0}|\u{2028}){0,80}") {
            calls(&script);
        }

        #[test]
        fn any_script_is_survived(script in "(tools\\.|apply_patch|const a = |a|é|\\(|\\)|\\{|\\}|\\[|\\]|,|;|:|\\+|=|\"|'|`|\\$\\{|\\\\|/|\\*|\n| |1|String\\.raw|\\.join|\\?\\.){0,60}") {
            for call in calls(&script) {
                assert!(throughline_transcript::json::Raw::parse(call.input).is_ok());
            }
        }
    }
}
