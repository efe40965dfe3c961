//! Who may see and change what, and that nothing of a transcript reaches markup, headers or logs.

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
use crate::world::{Client, World, chatter, config, post};

const TOKEN: &str = "a-long-random-word-4711";

async fn guarded() -> World {
    let config = Config {
        token: Some(Credential::new(TOKEN).unwrap()),
        ..config()
    };
    World::with(Options::new(9).without_latency(), config).await
}

#[tokio::test(start_paused = true)]
async fn with_a_token_nothing_is_told_without_it() {
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
        // Whoever may not see it is not told either.
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

/// Texts that would be something else where they are not taken for text.
const HOSTILE: [&str; 7] = [
    "<script>alert('needle1')</script>",
    "\"><img src=x onerror=alert(1)>needle2",
    "</title></textarea></pre><svg onload=alert(1)>needle3",
    "{{ 7*'needle4' }}{% include 'base.html' %}",
    "needle5\r\nSet-Cookie: a=b\r\n\r\nneedle5",
    "needle6\n2026-01-01T00:00:00Z ERROR forged: needle6 \u{1b}[31mred",
    "javascript:alert('needle7') \u{202e}\u{0}&lt;needle7",
];

#[tokio::test(start_paused = true)]
async fn nothing_of_a_transcript_becomes_markup_headers_or_logs() {
    let logs = logs();
    let world = World::new(Options::new(9).without_latency()).await;
    // A model of such a name is refused; its session is there all the same.
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
    // And one that goes on past its window.
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
    let at = |path: &str| format!("/throughline/sessions/{id}{path}");
    for text in HOSTILE {
        let form: String = form_urlencoded::Serializer::new(String::new())
            .append_pair("text", text)
            .finish();
        let got = world
            .ask(request(Method::POST, &at("/pin"), &[], form))
            .await;
        assert_eq!(got.status, StatusCode::SEE_OTHER, "{got:?}");
    }
    let got = world
        .ask(request(Method::POST, &at("/compact"), &[], "how=preview"))
        .await;
    assert_eq!(got.status, StatusCode::SEE_OTHER, "{got:?}");
    let memory = world
        .get(&format!("{API}/sessions/{id}/memories/2"))
        .await
        .json();
    let item = memory["sections"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|section| section["items"].as_array().unwrap())
        .find(|item| item.to_string().contains("needle"))
        .unwrap();
    let quoted = format!(
        "/messages/{}?version=2&item={}",
        item["message"],
        item["id"].as_str().unwrap()
    );
    let mut paths = vec![
        "/throughline".to_owned(),
        "/throughline/search?q=needle".to_owned(),
    ];
    for path in [
        "",
        "/memory",
        "/memory?version=2&against=1",
        "/preview",
        "/edit",
        "/messages",
        "/messages?from=0",
        &quoted,
    ] {
        paths.push(at(path));
    }
    for text in HOSTILE {
        let query: String = form_urlencoded::Serializer::new(String::new())
            .append_pair("q", text)
            .append_pair("done", text)
            .finish();
        paths.push(format!("/throughline/search?{query}"));
        paths.push(at(&format!("?{query}")));
    }
    let mut shown = String::new();
    for path in &paths {
        let got = world.get(path).await;
        assert_eq!(got.status, StatusCode::OK, "{path} {got:?}");
        assert_eq!(got.told("content-type"), Some("text/html; charset=utf-8"));
        let policy = got.told("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(got.told("x-content-type-options"), Some("nosniff"));
        assert_eq!(got.told("cache-control"), Some("no-store"));
        assert_eq!(got.told("set-cookie"), None);
        let page = String::from_utf8(got.body.to_vec()).unwrap();
        for markup in [
            "<script>",
            "<img",
            "<b onclick",
            "<svg onload",
            "onerror=alert(1)>n",
            "'needle4needle4",
        ] {
            assert!(!page.contains(markup), "{path}: {markup}\n{page}");
        }
        let scripts = page.matches("<script").count();
        assert_eq!(scripts, 1, "{path}");
        shown.push_str(&page);
    }
    // They were shown, as text.
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
    world
        .get("/throughline/api/v1/sessions/%3Cscript%3Eneedle1")
        .await;
    let metrics = world.get("/metrics").await;
    assert!(!String::from_utf8_lossy(&metrics.body).contains("needle"));
    client.say(&world, &chatter(99, 10)).await;
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

/// Sessions that rest leave memory where there are too many bytes in it, and are the same when they come back.
#[tokio::test(start_paused = true)]
async fn sessions_that_rest_leave_memory() {
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
