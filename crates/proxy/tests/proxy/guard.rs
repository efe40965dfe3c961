//! Access to the dashboard, and that no transcript reaches markup, headers, metrics or logs.

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;
use throughline_providers::credential::Credential;
use throughline_proxy::Config;
use throughline_simulator::Options;
use throughline_transcript::wire::Wire;

use crate::admin::{API, request, swapped};
use crate::world::{Client, Got, World, chatter, config, post};

const TOKEN: &str = "a-long-random-word-4711";

async fn guarded() -> World {
    let config = Config {
        token: Some(Credential::new(TOKEN).unwrap()),
        ..config()
    };
    World::with(Options::new(9).without_latency(), config).await
}

#[tokio::test(start_paused = true)]
async fn with_a_token_requests_without_it_are_refused() {
    let world = guarded().await;
    let ask = async |path: &str, headers: &[(&str, &str)]| {
        world.ask(request(Method::GET, path, headers, "")).await
    };
    let bearer = format!("Bearer {TOKEN}");
    let far = ("host", "throughline.example:8787");
    for path in [
        "/metrics",
        "/throughline/api/v1/sessions",
        "/throughline/api/v1/nothing",
    ] {
        for headers in [&[far][..], &[far, ("authorization", "Bearer wrong")]] {
            let got = ask(path, headers).await;
            assert_eq!(got.status, StatusCode::UNAUTHORIZED, "{path}");
            assert_eq!(
                got.told("www-authenticate"),
                Some("Bearer realm=\"throughline\"")
            );
        }
        let got = ask(path, &[far, ("authorization", &bearer)]).await;
        assert_ne!(got.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    for path in [
        "/throughline",
        "/throughline/sessions/a",
        "/throughline/search?q=a",
    ] {
        let got = ask(path, &[far]).await;
        assert_eq!(
            (got.status.as_u16(), got.told("location")),
            (303, Some("/throughline/sign-in"))
        );
    }
    for path in [
        "/healthz",
        "/readyz",
        "/throughline/sign-in",
        "/throughline/assets/style.css",
    ] {
        assert_eq!(ask(path, &[far]).await.status, StatusCode::OK, "{path}");
    }
    // Signing in, and out.
    let sign_in = async |form: String| {
        let form = request(Method::POST, "/throughline/sign-in", &[far], form);
        world.ask(form).await
    };
    let wrong = sign_in("token=wrong".to_owned()).await;
    assert_eq!(
        (wrong.status, wrong.told("set-cookie")),
        (StatusCode::UNAUTHORIZED, None)
    );
    let right = sign_in(format!("token={TOKEN}")).await;
    assert_eq!(right.told("location"), Some("/throughline"));
    let set = right.told("set-cookie").unwrap();
    assert!(
        set.contains("HttpOnly") && set.contains("SameSite=Strict") && !set.contains(TOKEN),
        "{set}"
    );
    let cookie = set.split(';').next().unwrap();
    let page = ask("/throughline", &[far, ("cookie", cookie)]).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(String::from_utf8_lossy(&page.body).contains("Sign out"));
    let out = request(Method::POST, "/throughline/sign-out", &[far], "");
    let out = world.ask(out).await;
    assert!(out.told("set-cookie").unwrap().contains("Max-Age=0"));
    // Clients of the provider are not asked for it.
    let got = world.ask(Client::new(Wire::Anthropic).hello()).await;
    assert_eq!(got.status, StatusCode::OK, "{got:?}");
}

impl Client {
    fn hello(mut self) -> http::Request<http_body_util::Full<bytes::Bytes>> {
        self.messages
            .push(json!({"role": "user", "content": "hello"}));
        self.request()
    }
}

#[tokio::test(start_paused = true)]
async fn other_sites_and_other_names_are_refused() {
    let world = World::new(Options::new(9).without_latency()).await;
    let mut client = Client::new(Wire::Anthropic);
    let id = swapped(&world, &mut client, 1).await;
    let paths = [
        (Method::POST, format!("/throughline/sessions/{id}/delete")),
        (Method::POST, format!("/throughline/sessions/{id}/undo")),
        (Method::DELETE, format!("{API}/sessions/{id}")),
        (Method::POST, format!("{API}/sessions/{id}/undo")),
    ];
    for (method, path) in &paths {
        for headers in [
            &[("origin", "https://evil.example")][..],
            &[("origin", "null")],
            &[("sec-fetch-site", "cross-site")],
            &[("host", "evil.example:8787")],
            &[("host", "evil.example"), ("origin", "http://evil.example")],
        ] {
            let got = world.ask(request(method.clone(), path, headers, "")).await;
            assert_eq!(got.status, StatusCode::FORBIDDEN, "{path} {headers:?}");
        }
    }
    for path in [
        "/throughline",
        "/metrics",
        "/throughline/api/v1/sessions",
        "/throughline/assets/script.js",
    ] {
        let got = world
            .ask(request(Method::GET, path, &[("host", "evil.example")], ""))
            .await;
        assert_eq!(got.status, StatusCode::FORBIDDEN, "{path}");
        // A refusal does not name the session either.
        assert!(!String::from_utf8_lossy(&got.body).contains(&id));
    }
    let form = [
        ("origin", "http://127.0.0.1:8787"),
        ("sec-fetch-site", "same-origin"),
    ];
    let got = world
        .ask(request(Method::POST, &paths[1].1, &form, ""))
        .await;
    assert_eq!(got.status, StatusCode::SEE_OTHER, "{got:?}");
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_too_large_are_not_read() {
    let world = World::new(Options::new(9).without_latency()).await;
    let check = async |path: &str, bytes: usize, status: u16| {
        let got = world
            .ask(request(Method::POST, path, &[], vec![b'x'; bytes]))
            .await;
        assert_eq!(got.status.as_u16(), status, "{path}");
    };
    check("/throughline/api/v1/sessions/a/pins", 64 * 1024 + 1, 413).await;
    check("/throughline/sessions/a/pin", 64 * 1024 + 1, 413).await;
    check("/throughline/sessions/a/memory", 64 * 1024 + 1, 404).await;
    check("/throughline/sessions/a/memory", 1024 * 1024 + 1, 413).await;
}

/// Everything that is logged.
#[derive(Clone, Default)]
struct Logs(Arc<Mutex<Vec<u8>>>);

impl Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn logs() -> Logs {
    static LOGS: OnceLock<Logs> = OnceLock::new();
    LOGS.get_or_init(|| {
        let logs = Logs::default();
        let writer = logs.clone();
        tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .init();
        logs
    })
    .clone()
}

/// Texts that do harm where they are not treated as text.
const HOSTILE: [&str; 7] = [
    "<script>alert('needle1')</script>",
    "\"><img src=x onerror=alert(1)>needle2",
    "</title></textarea></pre><svg onload=alert(1)>needle3",
    "{{ 7*'needle4' }}{% include 'base.html' %}",
    "needle5\r\nSet-Cookie: a=b\r\n\r\nneedle5",
    "needle6\n2026-01-01T00:00:00Z ERROR forged: needle6 \u{1b}[31mred",
    "javascript:alert('needle7') \u{202e}\u{0}&lt;needle7",
];

/// A proxy whose sessions contain [`HOSTILE`] texts.
struct HostileWorld {
    world: World,
    client: Client,
    /// The session that was swapped.
    id: String,
}

/// A page of a proxy.
struct ShownPage {
    path: String,
    got: Got,
}

impl ShownPage {
    fn text(&self) -> String {
        String::from_utf8(self.got.body.to_vec()).unwrap()
    }
}

impl HostileWorld {
    async fn new() -> Self {
        let world = World::new(Options::new(9).without_latency()).await;
        // A model of such a name is refused; its session exists all the same.
        let mut client = Client::new(Wire::OpenAiChat);
        for text in HOSTILE {
            let said = format!("Remember: never forget {text}");
            client
                .messages
                .push(json!({"role": "user", "content": said}));
            client
                .messages
                .push(json!({"role": "assistant", "content": text}));
        }
        client
            .messages
            .push(json!({"role": "user", "content": HOSTILE[0]}));
        let body = client
            .body()
            .replace("gpt-4.1", "<b onclick=alert(1)>needle8");
        let headers = [("authorization", "Bearer key-1")];
        world.ask(post(client.path(), &headers, body)).await;
        // And one that grows past its window.
        let mut client = Client::new(Wire::Anthropic);
        for text in HOSTILE {
            client
                .say(
                    &world,
                    &format!("Remember: {text} is forbidden. Never use {text}"),
                )
                .await;
        }
        let id = swapped(&world, &mut client, 2).await;
        let hostile = Self { world, client, id };
        for text in HOSTILE {
            let form = form(&[("text", text)]);
            hostile.submit("/pin", &form).await;
        }
        hostile.submit("/compact", "how=preview").await;
        hostile
    }

    fn at(&self, path: &str) -> String {
        format!("/throughline/sessions/{}{path}", self.id)
    }

    /// Submits a form of the session's page.
    async fn submit(&self, path: &str, form: &str) {
        let form = request(Method::POST, &self.at(path), &[], form.to_owned());
        let got = self.world.ask(form).await;
        assert_eq!(got.status, StatusCode::SEE_OTHER, "{got:?}");
    }

    /// The page of the message that an item of the memory quotes.
    async fn quoted_message(&self) -> String {
        let memory = format!("{API}/sessions/{}/memories/2", self.id);
        let memory = self.world.get(&memory).await.json();
        let item = memory["sections"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|section| section["items"].as_array().unwrap())
            .find(|item| item.to_string().contains("needle"))
            .unwrap();
        format!(
            "/messages/{}?version=2&item={}",
            item["message"],
            item["id"].as_str().unwrap()
        )
    }

    /// All pages, also those whose addresses contain the texts.
    async fn pages(&self) -> Vec<ShownPage> {
        let mut paths = vec![
            "/throughline".to_owned(),
            "/throughline/search?q=needle".to_owned(),
            self.at(&self.quoted_message().await),
        ];
        for path in [
            "",
            "/memory",
            "/memory?version=2&against=1",
            "/preview",
            "/edit",
            "/messages",
            "/messages?from=0",
        ] {
            paths.push(self.at(path));
        }
        for text in HOSTILE {
            let query = form(&[("q", text), ("done", text)]);
            paths.push(format!("/throughline/search?{query}"));
            paths.push(self.at(&format!("?{query}")));
        }
        let mut pages = Vec::new();
        for path in paths {
            let got = self.world.get(&path).await;
            assert_eq!(got.status, StatusCode::OK, "{path} {got:?}");
            pages.push(ShownPage { path, got });
        }
        pages
    }
}

fn form(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish()
}

#[tokio::test(start_paused = true)]
async fn hostile_texts_become_no_markup() {
    for page in HostileWorld::new().await.pages().await {
        let (path, text) = (&page.path, page.text());
        for markup in [
            "<script>",
            "<img",
            "<b onclick",
            "<svg onload",
            "onerror=alert(1)>n",
            "'needle4needle4",
        ] {
            assert!(!text.contains(markup), "{path}: {markup}\n{text}");
        }
        let scripts = text.matches("<script").count();
        assert_eq!(scripts, 1, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn hostile_texts_are_shown_as_text() {
    let pages = HostileWorld::new().await.pages().await;
    let shown: String = pages.iter().map(ShownPage::text).collect();
    for needle in [
        "&lt;script&gt;alert(",
        "needle2",
        "needle3",
        "{{ 7*",
        "needle5",
        "needle6",
        "needle7",
        "needle8",
    ] {
        assert!(shown.contains(needle), "{needle}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_page_has_the_headers_that_protect_it() {
    for ShownPage { path, got } in HostileWorld::new().await.pages().await {
        assert_eq!(got.told("content-type"), Some("text/html; charset=utf-8"));
        let policy = got.told("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
            "{path}: {policy}"
        );
        assert_eq!(got.told("x-content-type-options"), Some("nosniff"));
        assert_eq!(got.told("cache-control"), Some("no-store"));
        assert_eq!(got.told("set-cookie"), None, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_contain_nothing_of_a_transcript() {
    let HostileWorld { world, .. } = HostileWorld::new().await;
    world
        .get("/throughline/api/v1/sessions/%3Cscript%3Eneedle1")
        .await;
    let metrics = world.get("/metrics").await;
    assert!(!String::from_utf8_lossy(&metrics.body).contains("needle"));
}

#[tokio::test(start_paused = true)]
async fn logs_contain_nothing_of_a_transcript() {
    let logs = logs();
    let mut hostile = HostileWorld::new().await;
    hostile.pages().await;
    let world = &hostile.world;
    world
        .get("/throughline/api/v1/sessions/%3Cscript%3Eneedle1")
        .await;
    hostile.client.say(world, &chatter(99, 10)).await;
    let logged = String::from_utf8_lossy(&logs.0.lock().unwrap()).into_owned();
    assert!(
        logged.contains("action=\"pin\"") && logged.contains("engine"),
        "{logged}"
    );
    for word in ["needle", "forged", "Remember", "line99x0", "key-1"] {
        let line = logged.lines().find(|line| line.contains(word));
        assert_eq!(line, None, "{word}");
    }
}

/// Idle sessions leave memory when it holds too many bytes, and are the same when they return.
#[tokio::test(start_paused = true)]
async fn idle_sessions_leave_memory() {
    let mut config = config();
    config.limits.kept_bytes_max = 40_000;
    let world = World::with(Options::new(3).without_latency(), config).await;
    let in_memory = || {
        let metrics = world.proxy.metrics();
        let line = metrics
            .lines()
            .find(|line| line.starts_with("throughline_sessions_in_memory "));
        line.unwrap()
            .rsplit(' ')
            .next()
            .unwrap()
            .parse::<usize>()
            .unwrap()
    };
    let mut clients: Vec<(Client, String)> = Vec::new();
    for number in 0..4 {
        let mut client = Client::new(Wire::Anthropic);
        let got = client.say(&world, &chatter(number, 1_000)).await;
        let session = got.told("x-throughline-session").unwrap().to_owned();
        clients.push((client, session));
    }
    assert_eq!(in_memory(), 4);
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.proxy.settle(Duration::from_secs(1)).await;
    let left = in_memory();
    assert!((1..4).contains(&left), "{left}");
    for (client, session) in &mut clients {
        let got = client.say(&world, "Go on.").await;
        assert_eq!(got.told("x-throughline-session"), Some(session.as_str()));
    }
}
