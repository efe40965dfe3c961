//! Which models a provider has, how large their windows are, and how many tokens a request has.
//!
//! Anthropic's list says everything. OpenAI's says only names; servers that imitate it add the window in fields of
//! their own, or tell it elsewhere: those places are asked too ([`Client::models`]). What is learnt corrects the
//! [`Catalogue`] by [`catalogue_overrides`].

use bytestring::ByteString;
use http::Method;
use throughline_transcript::catalogue::{Catalogue, WINDOW_MAX};
use throughline_transcript::json::{Kind, Raw, write_string};
use throughline_transcript::splice::Splice;
use throughline_transcript::wire::Wire;

use crate::client::{Body, CallOptions, Client};
use crate::error::{CallError, Failure};

/// The most pages of a list that are read.
const PAGES_MAX: usize = 20;

/// The most models that are read.
const MODELS_MAX: usize = 20_000;

/// The most models of Ollama that are asked for one by one.
const SHOWN_MAX: usize = 50;

/// One model of a provider's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The name to put into a request.
    pub id: String,
    /// The name for people.
    pub display_name: Option<String>,
    /// Who owns or serves it, as the list says.
    pub owner: Option<String>,
    /// The window that requests have, tokens.
    pub window: Option<u64>,
    /// The window that the model was made for, tokens. Local servers often give less.
    pub window_trained: Option<u64>,
    /// Largest output, tokens.
    pub output_max: Option<u64>,
    /// `active`, `deprecated` or `retired`, if stated.
    pub lifecycle: Option<String>,
    /// Values of `thinking.type` that it accepts, if stated.
    pub thinking: Option<Vec<String>>,
    /// Whether the provider compacts on demand with it, if stated.
    pub on_demand_compaction: Option<bool>,
}

impl Client {
    /// The provider's models.
    ///
    /// Where the list does not tell the window, the servers' own places are asked: `/props` of llama.cpp, `/api/ps` and
    /// `/api/show` of Ollama, `/api/v0/models` of LM Studio. If they do not answer, the window stays unknown.
    ///
    /// # Errors
    /// The list cannot be had.
    pub async fn models(&self, options: &CallOptions) -> Result<Vec<ModelInfo>, CallError> {
        let mut models = Vec::new();
        let mut path = match self.wire() {
            Wire::Anthropic => "models?limit=1000".to_owned(),
            Wire::OpenAiChat | Wire::OpenAiResponses => "models".to_owned(),
        };
        for _ in 0..PAGES_MAX {
            let uri = self.endpoint().versioned(&path);
            let list = self.ask(Method::GET, &uri, None, options).await?;
            let Some(found) = read_list(&list) else {
                return Err(CallError::new(
                    Failure::Malformed,
                    "the answer is no list of models",
                ));
            };
            models.extend(found);
            match next_page(&list) {
                Some(last) if models.len() < MODELS_MAX => {
                    path = format!("models?limit=1000&after_id={last}");
                }
                _ => break,
            }
        }
        self.ask_for_windows(&mut models, options).await;
        Ok(models)
    }

    /// How many tokens a request body has by the provider's count; `None` if the wire has no such question.
    ///
    /// Fields that the question does not take (`max_tokens`, `stream` and so on) are left out.
    ///
    /// # Errors
    /// The provider refused, as it would refuse the request, or does not know the question.
    pub async fn count_tokens(
        &self,
        body: &ByteString,
        options: &CallOptions,
    ) -> Result<Option<u64>, CallError> {
        let Some(uri) = self.endpoint().counts(self.wire()) else {
            return Ok(None);
        };
        let text = countable(self.wire(), body)
            .ok_or_else(|| CallError::new(Failure::Request, "the body is no JSON object"))?;
        let body = Body {
            text,
            asks_for_stream: false,
        };
        let answer = self.ask(Method::POST, &uri, Some(body), options).await?;
        match tokens(&answer, "input_tokens") {
            Some(count) => Ok(Some(count)),
            None => Err(CallError::new(
                Failure::Malformed,
                "the answer has no input_tokens",
            )),
        }
    }

    /// Asks the places that local servers have. A server that does not know them is no error.
    async fn ask_for_windows(&self, models: &mut [ModelInfo], options: &CallOptions) {
        let is_asked = |model: &ModelInfo, owner: &str| {
            model.window.is_none() && model.owner.as_deref() == Some(owner)
        };
        let get = |path: &'static str| {
            let uri = self.endpoint().unversioned(path);
            async move { self.ask(Method::GET, &uri, None, options).await.ok() }
        };
        if models.iter().any(|model| is_asked(model, "llamacpp"))
            && let Some(props) = get("props").await
        {
            let window = window_of_props(&props);
            for model in models.iter_mut().filter(|model| model.window.is_none()) {
                model.window = window;
            }
        }
        if models
            .iter()
            .any(|model| is_asked(model, "organization_owner"))
            && let Some(list) = get("api/v0/models").await
        {
            take_lm_studio(models, &list);
        }
        if models.iter().any(|model| is_asked(model, "library")) {
            if let Some(running) = get("api/ps").await {
                take_ollama_running(models, &running);
            }
            let uri = self.endpoint().unversioned("api/show");
            for model in models
                .iter_mut()
                .filter(|model| model.window.is_none())
                .take(SHOWN_MAX)
            {
                let mut text = String::from(r#"{"model":"#);
                write_string(&model.id, &mut text);
                text.push('}');
                let body = Body {
                    text: text.into(),
                    asks_for_stream: false,
                };
                match self.ask(Method::POST, &uri, Some(body), options).await {
                    Ok(shown) => take_ollama_shown(model, &shown),
                    // A server that is not Ollama after all is not asked again.
                    Err(_) => break,
                }
            }
        }
    }
}

/// The models of `{"data":[...]}`, in the forms of Anthropic, OpenAI, vLLM, llama.cpp and OpenRouter.
fn read_list(list: &Raw) -> Option<Vec<ModelInfo>> {
    let data = list
        .field("data")
        .filter(|data| data.kind() == Kind::Array)?;
    Some(
        data.array()
            .take(MODELS_MAX)
            .filter_map(|entry| read_model(&entry))
            .collect(),
    )
}

fn read_model(entry: &Raw) -> Option<ModelInfo> {
    let text = |name: &str| entry.string_field(name).filter(|text| !text.is_empty());
    let inner = |name: &str, field: &str| entry.field(name).and_then(|inner| tokens(&inner, field));
    let capabilities = entry.field("capabilities");
    let capability = |name: &str| capabilities.as_ref()?.field(name);
    let thinking = capability("thinking")
        .and_then(|thinking| thinking.field("types"))
        .map(|types| {
            types
                .object()
                .filter(|(_, value)| is_supported(value))
                .map(|(name, _)| name.decode().into_owned())
                .collect()
        });
    Some(ModelInfo {
        id: text("id")?,
        display_name: text("display_name").or_else(|| text("name")),
        owner: text("owned_by"),
        window: tokens(entry, "max_input_tokens")
            .or_else(|| tokens(entry, "max_model_len"))
            .or_else(|| inner("top_provider", "context_length"))
            .or_else(|| tokens(entry, "context_length"))
            .or_else(|| tokens(entry, "context_window"))
            .or_else(|| inner("meta", "n_ctx")),
        window_trained: inner("meta", "n_ctx_train"),
        output_max: tokens(entry, "max_tokens")
            .or_else(|| inner("top_provider", "max_completion_tokens"))
            .or_else(|| tokens(entry, "max_completion_tokens")),
        lifecycle: text("lifecycle"),
        thinking,
        on_demand_compaction: capability("compaction").map(|value| is_supported(&value)),
    })
}

/// The id behind which the next page of Anthropic's list begins.
fn next_page(list: &Raw) -> Option<String> {
    if list.field("has_more")?.as_bool() != Some(true) {
        return None;
    }
    let last = list.string_field("last_id")?;
    // It becomes part of an address.
    last.chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_.:".contains(c))
        .then_some(last)
}

/// `true` or `{"supported": true}`.
fn is_supported(value: &Raw) -> bool {
    let supported = value.field("supported").unwrap_or_else(|| value.clone());
    supported.as_bool() == Some(true)
}

fn tokens(object: &Raw, name: &str) -> Option<u64> {
    object
        .field(name)?
        .as_u64()
        .filter(|tokens| (1..=WINDOW_MAX).contains(tokens))
}

/// What `/props` of llama.cpp says about each of its slots.
fn window_of_props(props: &Raw) -> Option<u64> {
    let settings = props.field("default_generation_settings")?;
    tokens(&settings, "n_ctx")
        .or_else(|| tokens(&settings.field("params")?, "n_ctx"))
        .or_else(|| tokens(props, "n_ctx"))
}

/// `/api/v0/models` of LM Studio.
fn take_lm_studio(models: &mut [ModelInfo], list: &Raw) {
    for entry in list.field("data").iter().flat_map(Raw::array) {
        let id = entry.string_field("id");
        for model in models
            .iter_mut()
            .filter(|model| Some(&model.id) == id.as_ref())
        {
            model.window = tokens(&entry, "loaded_context_length").or(model.window);
            model.window_trained = tokens(&entry, "max_context_length").or(model.window_trained);
        }
    }
}

/// `/api/ps` of Ollama: what is loaded, with the window that it was loaded with.
fn take_ollama_running(models: &mut [ModelInfo], running: &Raw) {
    for entry in running.field("models").iter().flat_map(Raw::array) {
        let names = [entry.string_field("name"), entry.string_field("model")];
        for model in models.iter_mut() {
            if names.iter().flatten().any(|name| *name == model.id) {
                model.window = tokens(&entry, "context_length").or(model.window);
            }
        }
    }
}

/// `/api/show` of Ollama: the window that the model was made for, and the one that its file asks for.
fn take_ollama_shown(model: &mut ModelInfo, shown: &Raw) {
    if let Some(info) = shown.field("model_info") {
        model.window_trained = info
            .object()
            .find(|(name, _)| name.decode().ends_with(".context_length"))
            .and_then(|(_, value)| value.as_u64())
            .filter(|tokens| (1..=WINDOW_MAX).contains(tokens));
    }
    let parameters = shown.string_field("parameters").unwrap_or_default();
    model.window = parameters
        .lines()
        .filter_map(|line| line.trim().strip_prefix("num_ctx"))
        .find_map(|value| value.trim().parse().ok())
        .filter(|tokens| (1..=WINDOW_MAX).contains(tokens));
}

/// The fields of a request that the question for its tokens takes.
fn countable(wire: Wire, body: &ByteString) -> Option<ByteString> {
    const ANTHROPIC: &[&str] = &[
        "model",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "cache_control",
        "speed",
        "mcp_servers",
        "context_management",
        "compaction",
    ];
    const RESPONSES: &[&str] = &[
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "reasoning",
        "text",
        "truncation",
        "previous_response_id",
        "conversation",
    ];
    let taken = match wire {
        Wire::Anthropic => ANTHROPIC,
        Wire::OpenAiChat | Wire::OpenAiResponses => RESPONSES,
    };
    let raw = Raw::parse(body.clone())
        .ok()
        .filter(|raw| raw.kind() == Kind::Object)?;
    let mut splice = Splice::new(&raw);
    for (name, _) in raw.object() {
        let name = name.decode();
        if !taken.contains(&name.as_ref()) {
            splice.remove_field(&name).ok()?;
        }
    }
    splice.finish().ok()
}

/// A catalogue file that corrects `known` by what a provider's list says: windows, output limits, abilities.
///
/// Feed it to [`Catalogue::extended`]. Models that `known` has keep their prices and whatever the list does not tell;
/// new ones are entered if their window is known. `provider` names whose list it is, `date` (`YYYY-MM-DD`) when it was
/// asked.
///
/// ```
/// # use throughline_providers::models::{ModelInfo, catalogue_overrides};
/// # use throughline_transcript::catalogue::Catalogue;
/// let models: Vec<ModelInfo> = Vec::new(); // client.models(&options).await?
/// let known = Catalogue::embedded();
/// let catalogue = known.clone().extended(&catalogue_overrides(&models, known, "local", "2026-11-29"))?;
/// # assert_eq!(catalogue.models().len(), known.models().len());
/// # Ok::<(), throughline_transcript::catalogue::CatalogueError>(())
/// ```
#[must_use]
pub fn catalogue_overrides(
    models: &[ModelInfo],
    known: &Catalogue,
    provider: &str,
    date: &str,
) -> String {
    let mut toml = String::new();
    let mut written: Vec<String> = Vec::new();
    for model in models {
        let entry = known.find(&model.id);
        let id = entry.map_or(model.id.as_str(), |entry| entry.id.as_str());
        let is_usable = !id.trim().is_empty() && !id.chars().any(char::is_control);
        let is_new = entry.is_none();
        if !is_usable || (is_new && model.window.is_none()) {
            continue;
        }
        // Dated names and aliases of one model are one entry.
        let name = id.to_lowercase();
        if written.contains(&name) {
            continue;
        }
        written.push(name);
        toml.push_str("[[model]]\nid = ");
        write_string(id, &mut toml);
        toml.push('\n');
        for (field, value) in [("window", model.window), ("output_max", model.output_max)] {
            if let Some(value) = value {
                toml.push_str(&format!("{field} = {value}\n"));
            }
        }
        let mut abilities = Vec::new();
        if let Some(thinking) = &model.thinking {
            let mut list = String::new();
            for kind in thinking
                .iter()
                .filter(|kind| !kind.chars().any(char::is_control))
            {
                if !list.is_empty() {
                    list.push_str(", ");
                }
                write_string(kind, &mut list);
            }
            abilities.push(format!("thinking = [{list}]"));
        }
        if let Some(compacts) = model.on_demand_compaction {
            abilities.push(format!("on_demand_compaction = {compacts}"));
        }
        if !abilities.is_empty() {
            toml.push_str(&format!("abilities = {{ {} }}\n", abilities.join(", ")));
        }
        if is_new {
            let source = format!("list of models of {provider}");
            for (field, value) in [
                ("provider", provider),
                ("source", &source),
                ("date", date),
                ("confidence", "high"),
            ] {
                toml.push_str(field);
                toml.push_str(" = ");
                write_string(value, &mut toml);
                toml.push('\n');
            }
        }
        toml.push('\n');
    }
    toml
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    fn only(list: &str) -> ModelInfo {
        let mut models = read_list(&parse(list)).unwrap();
        assert_eq!(models.len(), 1);
        models.remove(0)
    }

    #[test]
    fn every_form_of_list_is_read() {
        let anthropic = only(
            r#"{"data":[{"type":"model","id":"claude-opus-5-5","display_name":"Claude Opus 5.5","lifecycle":"active",
            "max_input_tokens":1000000,"max_tokens":128000,"capabilities":{"compaction":{"supported":true},
            "thinking":{"supported":true,"types":{"adaptive":{"supported":true},"enabled":{"supported":false}}}}}],"has_more":false}"#,
        );
        assert_eq!(
            anthropic,
            ModelInfo {
                id: "claude-opus-5-5".to_owned(),
                display_name: Some("Claude Opus 5.5".to_owned()),
                window: Some(1_000_000),
                output_max: Some(128_000),
                lifecycle: Some("active".to_owned()),
                thinking: Some(vec!["adaptive".to_owned()]),
                on_demand_compaction: Some(true),
                ..ModelInfo::default()
            }
        );
        let check = |entry: &str, window, window_trained| {
            let model = only(&format!(r#"{{"object":"list","data":[{entry}]}}"#));
            assert_eq!(
                (model.window, model.window_trained),
                (window, window_trained),
                "{entry}"
            );
        };
        check(
            r#"{"id":"gpt-6.2","object":"model","owned_by":"openai"}"#,
            None,
            None,
        );
        check(
            r#"{"id":"q","owned_by":"vllm","max_model_len":32768}"#,
            Some(32_768),
            None,
        );
        check(
            r#"{"id":"s","owned_by":"llamacpp","meta":{"n_ctx_train":8192,"n_params":134515008}}"#,
            None,
            Some(8_192),
        );
        check(
            r#"{"id":"s","owned_by":"llamacpp","meta":{"n_ctx_train":8192,"n_ctx":4096}}"#,
            Some(4_096),
            Some(8_192),
        );
        check(
            r#"{"id":"v/m","context_length":200000,"top_provider":{"context_length":131072,"max_completion_tokens":null}}"#,
            Some(131_072),
            None,
        );
        check(r#"{"id":"m","max_model_len":0}"#, None, None);
        assert_eq!(read_list(&parse(r#"{"data":{}}"#)), None);
        assert_eq!(read_list(&parse(r#"{"data":[{},7]}"#)), Some(Vec::new()));
    }

    #[test]
    fn local_servers_tell_the_window_elsewhere() {
        let props =
            parse(r#"{"default_generation_settings":{"id":0,"n_ctx":8192},"total_slots":1}"#);
        assert_eq!(window_of_props(&props), Some(8_192));

        let mut models = vec![ModelInfo {
            id: "gemma4:latest".to_owned(),
            ..ModelInfo::default()
        }];
        let shown = parse(
            r#"{"parameters":"stop \"<end>\"\nnum_ctx                        16384","model_info":{"general.architecture":"gemma4","gemma4.context_length":131072}}"#,
        );
        take_ollama_shown(&mut models[0], &shown);
        assert_eq!(
            (models[0].window, models[0].window_trained),
            (Some(16_384), Some(131_072))
        );
        take_ollama_shown(
            &mut models[0],
            &parse(r#"{"model_info":{"gemma4.context_length":131072}}"#),
        );
        assert_eq!(
            models[0].window, None,
            "what the model was made for is not what it is served with"
        );
        take_ollama_running(
            &mut models,
            &parse(r#"{"models":[{"name":"gemma4:latest","context_length":4096}]}"#),
        );
        assert_eq!(models[0].window, Some(4_096));
        take_lm_studio(
            &mut models,
            &parse(
                r#"{"data":[{"id":"gemma4:latest","state":"loaded","max_context_length":131072,"loaded_context_length":8000}]}"#,
            ),
        );
        assert_eq!(
            (models[0].window, models[0].window_trained),
            (Some(8_000), Some(131_072))
        );
    }

    #[test]
    fn pages_follow_each_other() {
        let check = |list: &str, expected: Option<&str>| {
            assert_eq!(next_page(&parse(list)).as_deref(), expected);
        };
        check(
            r#"{"has_more":true,"last_id":"claude-1"}"#,
            Some("claude-1"),
        );
        check(r#"{"has_more":true,"last_id":"a&b=c"}"#, None);
        check(r#"{"has_more":false,"last_id":"claude-1"}"#, None);
        check("{}", None);
    }

    #[test]
    fn a_list_corrects_the_catalogue() {
        let known = Catalogue::embedded();
        let model = |id: &str, window| ModelInfo {
            id: id.to_owned(),
            window,
            ..ModelInfo::default()
        };
        let mut opus = model("claude-opus-4-5-20251101", Some(400_000));
        opus.output_max = Some(32_000);
        opus.thinking = Some(vec!["enabled".to_owned(), "disabled".to_owned()]);
        opus.on_demand_compaction = Some(false);
        let models = [
            opus,
            model("claude-opus-4-5", Some(7)),
            model("My \"local\" model", Some(8_192)),
            model("my \"LOCAL\" model", Some(9)),
            model("without-window", None),
            model("bro\nken", Some(5)),
        ];
        let toml = catalogue_overrides(&models, known, "llama.cpp", "2026-11-29");
        let catalogue = known.clone().extended(&toml).unwrap();
        let before = known.find("claude-opus-4-5").unwrap();
        let opus = catalogue.find("claude-opus-4-5").unwrap();
        assert_eq!((opus.window, opus.output_max), (400_000, Some(32_000)));
        assert_eq!((opus.prices, &opus.source), (before.prices, &before.source));
        assert_eq!(opus.abilities.thinking, models[0].thinking);
        assert_eq!(opus.abilities.on_demand_compaction, Some(false));
        let local = catalogue.find("my \"local\" model").unwrap();
        assert_eq!(
            (local.window, local.provider.as_str()),
            (8_192, "llama.cpp")
        );
        assert_eq!(catalogue.models().len(), known.models().len() + 1);
    }

    #[test]
    fn only_what_is_counted_is_asked_about() {
        let body = ByteString::from(
            r#"{"model":"m","max_tokens":9,"system":"s","messages":[ 1e0 ],"stream":true,"metadata":{}}"#,
        );
        assert_eq!(
            countable(Wire::Anthropic, &body).unwrap(),
            r#"{"model":"m","system":"s","messages":[ 1e0 ]}"#
        );
        assert_eq!(countable(Wire::Anthropic, &"[]".into()), None);
    }
}
