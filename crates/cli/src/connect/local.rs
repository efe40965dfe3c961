//! Servers on this machine.

use std::sync::Arc;
use std::time::Duration;

use throughline::futures::future::join_all;
use throughline::providers::client::{CallOptions, Client, ClientBuilder};
use throughline::providers::transport::HttpTransport;
use throughline_transcript::wire::Wire;

use super::{SIMULATED, client, provider};
use crate::error::{Failure, Kind};

/// How long all servers together may take to answer.
const PROBE_WAIT: Duration = Duration::from_millis(300);

/// Where the servers that people run listen, unless told otherwise.
const SERVERS: [(&str, u16); 4] = [
    ("llama.cpp", 8080),
    ("Ollama", 11434),
    ("LM Studio", 1234),
    ("vLLM", 8000),
];

/// A server that has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LocalServer {
    name: &'static str,
    base_url: String,
    models: Vec<String>,
}

impl LocalServer {
    /// The options that go on with it.
    fn flags(&self) -> String {
        let url = &self.base_url;
        match self.models.as_slice() {
            // A server of one model is asked for it.
            [] | [_] => format!("--base-url {url}"),
            [first, ..] => format!("--base-url {url} --model {first}"),
        }
    }
}

/// Looks for servers on this machine.
async fn servers() -> Vec<LocalServer> {
    found(&SERVERS).await
}

async fn found(servers: &[(&'static str, u16)]) -> Vec<LocalServer> {
    let probes = servers.iter().map(|(name, port)| async move {
        let base_url = format!("http://127.0.0.1:{port}");
        let client = client(Wire::OpenAiChat, &base_url, None).ok()?;
        let models = models(&client).await?;
        Some(LocalServer {
            name,
            base_url,
            models,
        })
    });
    join_all(probes).await.into_iter().flatten().collect()
}

async fn models(client: &Client) -> Option<Vec<String>> {
    let options = CallOptions::default().attempts_max(1);
    let models = tokio::time::timeout(PROBE_WAIT, client.models(&options)).await;
    Some(
        models
            .ok()?
            .ok()?
            .into_iter()
            .map(|model| model.id)
            .collect(),
    )
}

/// Without a key: says so in one line, and what there is instead.
pub(crate) async fn no_key(variable: Option<&str>, model: Option<&str>) -> Failure {
    let message = match (variable, model) {
        (Some(variable), _) => format!("there is no key: {variable} is not set"),
        (None, Some(model)) => format!("unknown model {model}: no provider is known for it"),
        (None, None) => format!("there is no key: none of {} is set", provider::variables()),
    };
    let offers = offers(&servers().await);
    Failure::new(Kind::Arguments, format!("{message}; {offers}"))
}

fn offers(found: &[LocalServer]) -> String {
    let mut offers: Vec<String> = found
        .iter()
        .map(|server| format!("{} runs here: {}", server.name, server.flags()))
        .collect();
    if offers.is_empty() {
        offers.push(
            "pass --base-url for a local server, such as http://127.0.0.1:11434 (Ollama)"
                .to_owned(),
        );
    }
    offers.push(format!("try --model {SIMULATED}"));
    offers.join("; or ")
}

/// Requests to this machine use no proxy, whatever the environment says.
pub(super) fn direct(builder: ClientBuilder) -> Result<ClientBuilder, Failure> {
    let transport = HttpTransport::builder()
        .without_proxy()
        .build()
        .map_err(|error| Failure::new(Kind::Unavailable, error.to_string()))?;
    Ok(builder.transport(Arc::new(transport)))
}

#[cfg(test)]
mod tests {
    use throughline_simulator::{Options, SimulatedProvider, serve};
    use tokio::net::TcpListener;
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test]
    async fn a_server_that_runs_here_is_found_and_offered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shutdown = CancellationToken::new();
        let provider = SimulatedProvider::new(Options::new(1).without_latency());
        let serving = tokio::spawn(serve(listener, provider, None, shutdown.clone()));
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent_port = silent.local_addr().unwrap().port();

        let servers = found(&[("Silent", silent_port), ("Answers", port)]).await;
        let names: Vec<&str> = servers.iter().map(|server| server.name).collect();
        assert_eq!(names, ["Answers"]);
        shutdown.cancel();
        serving.await.unwrap();
    }

    #[test]
    fn what_is_offered_can_be_typed() {
        let server = |models: &[&str]| LocalServer {
            name: "Ollama",
            base_url: "http://127.0.0.1:11434".to_owned(),
            models: models.iter().map(|model| (*model).to_owned()).collect(),
        };
        assert_eq!(
            offers(&[server(&["a", "b"])]),
            "Ollama runs here: --base-url http://127.0.0.1:11434 --model a; or try --model simulated"
        );
        assert_eq!(
            offers(&[server(&["a"])]),
            "Ollama runs here: --base-url http://127.0.0.1:11434; or try --model simulated"
        );
        assert_eq!(
            offers(&[]),
            "pass --base-url for a local server, such as http://127.0.0.1:11434 (Ollama); or try --model simulated"
        );
    }
}
