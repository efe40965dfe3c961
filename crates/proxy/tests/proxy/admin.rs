//! The admin API: what it shows, and what it does to sessions.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use throughline_proxy::Config;
use throughline_simulator::Options;
use throughline_store::{Page, Scope, Search, SessionId, Shelf};
use throughline_transcript::wire::Wire;

use crate::world::{Client, Got, World, chatter, config, post};

const FACT: &str = "Remember: the deploy region is eu-north-3. Never force-push to main.";
pub(crate) const API: &str = "/throughline/api/v1";

pub(crate) fn request(
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Request<Full<Bytes>> {
    let mut request = post(path, headers, body);
    *request.method_mut() = method;
    if !request.headers().contains_key("host") {
        let host = "127.0.0.1:8787".parse().unwrap();
        request.headers_mut().insert("host", host);
    }
    request
}

impl World {
    pub(crate) async fn get(&self, path: &str) -> Got {
        self.ask(request(Method::GET, path, &[], "")).await
    }

    /// Calls the API, which must answer like this.
    async fn api(&self, method: Method, path: &str, body: Value, status: u16) -> Value {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let path = format!("{API}{path}");
        let got = self.ask(request(method.clone(), &path, &[], body)).await;
        assert_eq!(got.status.as_u16(), status, "{method} {path}: {got:?}");
        got.json()
    }

    async fn read(&self, path: &str) -> Value {
        self.api(Method::GET, path, Value::Null, 200).await
    }
}

/// A conversation with this many swaps, and the id of its session.
pub(crate) async fn swapped(world: &World, client: &mut Client, epochs: u64) -> String {
    let mut id = String::new();
    let mut epoch = 0;
    let mut got = client.say(world, FACT).await;
    let mut turn = 0;
    while epoch < epochs || id.is_empty() {
        turn += 1;
        assert!(turn < 200, "{got:?}");
        tokio::time::sleep(std::time::Duration::from_secs(20)).await;
        got = client.say(world, &chatter(turn, 60)).await;
        epoch = got.told("x-throughline-epoch").unwrap().parse().unwrap();
        id = got.told("x-throughline-session").unwrap().to_owned();
    }
    world.proxy.settle(std::time::Duration::from_secs(5)).await;
    id
}

async fn world() -> World {
    World::new(Options::new(9).without_latency()).await
}

/// Checks an answer against the schema that the document gives for its status.
fn check_schema(document: &Value, method: &Method, path: &str, status: StatusCode, answer: &Value) {
    let responses = &document["paths"][path][method.as_str().to_lowercase()]["responses"];
    let response = responses.get(status.as_str());
    assert!(
        response.is_some() || !status.is_success(),
        "{method} {path}: {status}"
    );
    let response = response.unwrap_or(&responses["default"]);
    let schema = json!({
        "components": document["components"],
        "allOf": [response["content"]["application/json"]["schema"]],
    });
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(answer)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{method} {path}: {errors:#?}");
}

#[tokio::test(start_paused = true)]
async fn every_route_of_the_document_answers() {
    let world = world().await;
    let mut client = Client::new(Wire::Anthropic);
    let id = swapped(&world, &mut client, 2).await;
    let document = world.read("/openapi.json").await;
    let mut routes: Vec<(String, String)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().keys();
            methods.map(move |method| (method.to_uppercase(), path.clone()))
        })
        .filter(|(method, _)| method != "PARAMETERS")
        .collect();
    assert!(routes.len() >= 20, "{routes:?}");
    // What deletes the session comes last.
    routes
        .sort_by_key(|(method, path)| (method == "DELETE" && !path.contains("pin"), path.clone()));
    for (method, path) in routes {
        let filled = path
            .replace("{id}", &id)
            .replace("{position}", "0")
            .replace("{version}", "2")
            .replace("{pin}", "none");
        let method: Method = method.parse().unwrap();
        let url = format!("{API}{filled}");
        let body = match (method.as_str(), path.as_str()) {
            ("POST", "/sessions/{id}/pins") => json!({"text": "The region is eu-north-3."}),
            ("PATCH", _) => json!({"mode": "instant"}),
            _ => json!({}),
        };
        let got = world
            .ask(request(method.clone(), &url, &[], body.to_string()))
            .await;
        let value = got.json();
        check_schema(&document, &method, &path, got.status, &value);
        let code = value["error"]["code"].as_str().unwrap_or_default();
        let is_answered = got.status.is_success()
            || matches!(
                code,
                "no-pin" | "invalid" | "changed" | "refused" | "nothing-to-undo"
            );
        assert!(is_answered, "{method} {path}: {got:?}");
        if method == Method::GET {
            assert_eq!(got.status, StatusCode::OK, "{path}: {got:?}");
        }
        assert_eq!(got.told("cache-control"), Some("no-store"));
    }
    let gone = world
        .api(Method::GET, &format!("/sessions/{id}"), Value::Null, 404)
        .await;
    assert_eq!(gone["error"]["code"], "no-session");
    let none = world.api(Method::GET, "/nothing", Value::Null, 404).await;
    assert_eq!(none["error"]["code"], "no-route");
    let other = request(Method::PUT, &format!("{API}/sessions"), &[], "");
    let other = world.ask(other).await;
    assert_eq!(
        (other.status.as_u16(), other.told("allow")),
        (405, Some("GET"))
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_is_what_was_used() {
    let world = world().await;
    let mut client = Client::new(Wire::Anthropic);
    let id = swapped(&world, &mut client, 4).await;
    let sessions = world.read("/sessions").await;
    let listed = &sessions["sessions"][0];
    assert_eq!(listed["id"], id.as_str());
    assert_eq!(listed["title"], FACT.split('\n').next().unwrap());
    let session = world.read(&format!("/sessions/{id}")).await;
    let timeline = world.read(&format!("/sessions/{id}/timeline")).await;
    let answered = world
        .provider
        .ledger()
        .iter()
        .filter(|exchange| exchange.usage.is_some())
        .count();
    let requests = timeline["requests"].as_array().unwrap();
    assert_eq!(requests.len(), answered);
    assert_eq!(session["sums"]["requests"], answered);
    let last = world.provider.ledger().pop().unwrap().usage.unwrap();
    assert_eq!(requests.last().unwrap()["tokens"], last.prompt());
    // Every request stays below the largest prompt, and what would have been grows beyond it.
    let number = |value: &Value| value.as_u64().unwrap();
    let limit = number(&timeline["marks"]["limit"]);
    assert!(
        requests
            .iter()
            .all(|point| number(&point["tokens"]) <= limit)
    );
    let otherwise = number(&requests.last().unwrap()["tokens_otherwise"]);
    assert!(otherwise > limit / 2 * 3, "{otherwise} of {limit}");
    let swaps = timeline["events"].as_array().unwrap().iter();
    let covered: Vec<u64> = swaps
        .filter(|event| event["kind"] == "swapped")
        .map(|event| number(&event["detail"]["cover"]))
        .collect();
    assert!(covered.len() >= 3);
    assert_eq!(session["sums"]["swaps"], covered.len());
    assert_eq!(
        covered.last(),
        session["detail"]["covered"].as_u64().as_ref()
    );
    // The same from the store, after a restart.
    let mut world = world;
    world.restart().await;
    let again = world.read(&format!("/sessions/{id}")).await;
    assert_eq!(again["is_live"], false);
    assert_eq!(again["sums"], session["sums"]);
    for name in ["covered", "version", "epoch", "mode", "can_undo"] {
        assert_eq!(again["detail"][name], session["detail"][name], "{name}");
    }
}

/// The first message of the last request.
fn first_message(world: &World) -> Value {
    let body: Value = serde_json::from_str(&world.last_body()).unwrap();
    body["messages"][0]["content"].clone()
}

/// A swap that is taken back is taken back in the next request.
#[tokio::test(start_paused = true)]
async fn undo_brings_the_messages_back() {
    for is_restarted in [false, true] {
        let mut world = world().await;
        let mut client = Client::new(Wire::Anthropic);
        // Its turns are short: nothing grows by a step unasked.
        client.tools = None;
        let id = swapped(&world, &mut client, 1).await;
        client.say(&world, "Go on.").await;
        assert_ne!(first_message(&world), FACT);
        if is_restarted {
            world.restart().await;
        }
        let undone = world
            .api(
                Method::POST,
                &format!("/sessions/{id}/undo"),
                Value::Null,
                200,
            )
            .await;
        assert_eq!(undone["outcome"], "undone");
        let got = client.say(&world, "And now?").await;
        assert_eq!(got.told("x-throughline"), Some("tracked"), "{got:?}");
        assert_eq!(got.told("x-throughline-session"), Some(id.as_str()));
        assert_eq!(first_message(&world), FACT);
        let session = world.read(&format!("/sessions/{id}")).await;
        assert_eq!(
            (&session["detail"]["version"], &session["detail"]["covered"]),
            (&Value::Null, &json!(0))
        );
        let again = world
            .api(
                Method::POST,
                &format!("/sessions/{id}/undo"),
                Value::Null,
                409,
            )
            .await;
        assert_eq!(again["error"]["code"], "nothing-to-undo");
        // Nor is it ready to be swapped in again after the next start.
        world.restart().await;
        let session = world.read(&format!("/sessions/{id}")).await;
        assert_eq!(
            session["newest_version"]
                .as_u64()
                .map(|version| version > 0),
            Some(true)
        );
        assert_eq!(session["detail"]["ready_cover"], Value::Null);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pinned_fact_is_in_the_next_memory_until_it_is_let_go() {
    let world = world().await;
    let mut client = Client::new(Wire::Anthropic);
    let id = swapped(&world, &mut client, 1).await;
    let pins = format!("/sessions/{id}/pins");
    let key = ["sk-ant-api03-", "Zk9Zk9Zk9Zk9Zk9Zk9Zk9Zk9Zk9Zk9Zk9Zk9"].concat();
    let text = format!("The customer is Ada Example, key {key}");
    let pinned = world
        .api(
            Method::POST,
            &pins,
            json!({"text": text, "message": 0}),
            201,
        )
        .await;
    let compact = format!("/sessions/{id}/compact");
    let swapped = world.api(Method::POST, &compact, json!({}), 200).await;
    assert_eq!(swapped["outcome"], "swapped");
    client.say(&world, "Go on.").await;
    let body = world.last_body();
    assert!(body.contains("The customer is Ada Example"), "{body}");
    assert!(!body.contains(&key), "{body}");
    let pin = pinned["id"].as_str().unwrap();
    world
        .api(Method::DELETE, &format!("{pins}/{pin}"), Value::Null, 200)
        .await;
    world
        .api(Method::DELETE, &format!("{pins}/{pin}"), Value::Null, 404)
        .await;
    client.say(&world, &chatter(90, 200)).await;
    world.api(Method::POST, &compact, json!({}), 200).await;
    client.say(&world, "Go on.").await;
    assert!(!world.last_body().contains("Ada Example"));
    assert_eq!(world.refused(), 0);
    for body in [
        json!({"text": " "}),
        json!({"text": "x".repeat(9000)}),
        json!({}),
        json!({"text": "a", "b": 1}),
    ] {
        world.api(Method::POST, &pins, body, 422).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_changes_before_a_memory_is_approved() {
    let world = world().await;
    let mut client = Client::new(Wire::Anthropic);
    // Its turns are short: nothing grows by a step unasked.
    client.tools = None;
    let id = swapped(&world, &mut client, 0).await;
    for turn in 50..53 {
        client.say(&world, &chatter(turn, 60)).await;
    }
    let at = |path: &str| format!("/sessions/{id}{path}");
    let body = json!({"preview": true, "focus": "the region"});
    let prepared = world.api(Method::POST, &at("/compact"), body, 200).await;
    assert_eq!(prepared["outcome"], "prepared");
    let preview = world.read(&at("/preview")).await["preview"].clone();
    assert_eq!(preview["is_prepared"], true);
    assert!(preview["tokens_after"].as_u64() < preview["tokens_before"].as_u64());
    let got = client.say(&world, "Not yet.").await;
    assert_eq!(got.told("x-throughline"), Some("tracked"));
    let version = preview["version"].as_u64().unwrap();
    let wrong = json!({"version": version + 1});
    world.api(Method::POST, &at("/approve"), wrong, 409).await;
    let right = json!({"version": version});
    let approved = world.api(Method::POST, &at("/approve"), right, 200).await;
    assert_eq!(approved, json!({"outcome": "swapped", "version": version}));
    let got = client.say(&world, "Now.").await;
    assert_eq!(got.told("x-throughline"), Some("rewritten"));
    // What was adopted is stored: a restart changes nothing.
    let mut world = world;
    world.restart().await;
    let got = client.say(&world, "And still.").await;
    assert_eq!(got.told("x-throughline"), Some("rewritten"));
}

#[tokio::test(start_paused = true)]
async fn an_edited_memory_is_what_the_model_reads() {
    let world = world().await;
    let mut client = Client::new(Wire::Anthropic);
    let id = swapped(&world, &mut client, 1).await;
    let at = |path: &str| format!("/sessions/{id}{path}");
    let version = world.read(&at("")).await["detail"]["version"]
        .as_u64()
        .unwrap();
    let memory = world.read(&at(&format!("/memories/{version}"))).await;
    let items: Vec<Value> = memory["sections"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|section| section["items"].as_array().unwrap().clone())
        .collect();
    let ledger = items.iter().find(|item| item["is_ledger"] == true).unwrap();
    let plain = items
        .iter()
        .find(|item| item["is_ledger"] == false && item["texts"].as_array().unwrap().len() == 1)
        .unwrap();
    let put = async |changes: Value, status: u16| {
        let body = json!({"version": version, "changes": changes});
        world.api(Method::PUT, &at("/memory"), body, status).await
    };
    put(json!([{"id": ledger["id"], "drop": true}]), 422).await;
    put(json!([{"id": "nobody", "drop": true}]), 422).await;
    put(json!([]), 422).await;
    let edited = put(
        json!([
            {"id": plain["id"], "texts": ["a text of the operator's own, zebra-17"]},
            {"id": ledger["id"], "superseded_by": "the region is now us-west-9"},
        ]),
        200,
    )
    .await;
    assert_eq!(edited["version"], version + 1);
    client.say(&world, "Go on.").await;
    let body = world.last_body();
    assert!(
        body.contains("zebra-17") && body.contains("us-west-9"),
        "{body}"
    );
    assert_eq!(world.refused(), 0);
    let diff = world
        .read(&at(&format!("/memories/{}/diff", version + 1)))
        .await;
    assert_eq!(
        (&diff["added"], &diff["removed"], &diff["changed"]),
        (&json!(1), &json!(0), &json!(2))
    );
    // A client that looked at the one before is told.
    let late = put(json!([{"id": plain["id"], "drop": true}]), 409).await;
    assert_eq!(late["error"]["code"], "changed");
    // It can be taken back.
    world
        .api(Method::POST, &at("/undo"), Value::Null, 200)
        .await;
    client.say(&world, "Go on.").await;
    assert!(!world.last_body().contains("zebra-17"));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_switched_off_is_not_compacted() {
    let world = world().await;
    let mut client = Client::new(Wire::Anthropic);
    client.tools = None;
    let id = swapped(&world, &mut client, 0).await;
    let path = format!("/sessions/{id}");
    world
        .api(Method::PATCH, &path, json!({"mode": "off"}), 200)
        .await;
    world
        .api(Method::PATCH, &path, json!({"mode": "later"}), 422)
        .await;
    let mut world = world;
    world.restart().await;
    for turn in 0.. {
        client.say(&world, &chatter(turn, 60)).await;
        let session = world.read(&path).await;
        assert_eq!(
            (&session["detail"]["mode"], &session["sums"]["swaps"]),
            (&json!("off"), &json!(0))
        );
        let tokens = session["context_tokens"].as_u64().unwrap();
        if tokens > session["marks"]["hard"].as_u64().unwrap() {
            break;
        }
    }
    world
        .api(Method::PATCH, &path, json!({"mode": "instant"}), 200)
        .await;
    let got = client.say(&world, "Go on.").await;
    assert_eq!(got.told("x-throughline"), Some("rewritten"));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_a_deleted_session() {
    let place = tempfile::tempdir().unwrap();
    let with_folders = Config {
        session_folder: Some(place.path().to_owned()),
        ..config()
    };
    let world = World::with(Options::new(9).without_latency(), with_folders).await;
    let mut client = Client::new(Wire::Anthropic);
    let id = swapped(&world, &mut client, 1).await;
    let path = format!("/sessions/{id}");
    assert!(place.path().join(&id).join("transcript.jsonl").is_file());
    world.api(Method::DELETE, &path, Value::Null, 200).await;
    assert!(!place.path().join(&id).exists());
    world.api(Method::DELETE, &path, Value::Null, 404).await;
    assert!(
        world
            .store
            .sessions(Page::first(10))
            .await
            .unwrap()
            .is_empty()
    );
    let search = Search {
        text: "eu-north-3".to_owned(),
        scope: Scope::All,
        shelf: Shelf::Both,
        limit: 10,
    };
    assert!(world.store.search(&search).await.unwrap().is_empty());
    let id = SessionId::new(id).unwrap();
    assert!(world.store.memory(&id, 1).await.is_err());
    assert!(world.store.messages(&id, 0..1).await.is_err());
    // The client continues, with another session.
    let got = client.say(&world, "Go on.").await;
    let next = got.told("x-throughline-session").unwrap();
    assert_ne!(next, id.as_str());
    assert_eq!(world.refused(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_archive_is_searched() {
    let world = world().await;
    let mut client = Client::new(Wire::Anthropic);
    let id = swapped(&world, &mut client, 1).await;
    let found = async |query: &str| world.read(&format!("/search?{query}")).await["hits"].clone();
    let hits = found("q=EU-north-3%20region&in=messages").await;
    assert_eq!(
        (&hits[0]["session"], &hits[0]["place"], &hits[0]["number"]),
        (&json!(id), &json!("message"), &json!(0))
    );
    let memories = found("q=eu-north-3&in=memories").await;
    assert_eq!(memories[0]["place"], "memory");
    assert_eq!(found("q=").await, json!([]));
    world
        .api(Method::GET, "/search?q=a&session=another", Value::Null, 404)
        .await;
    let here = found(&format!("q=eu-north-3&session={id}&limit=1")).await;
    assert_eq!(here.as_array().unwrap().len(), 1);
}
