//! From what was typed and what is configured to a provider.
//!
//! Nothing here waits for the network where the answer is known: with a key, or with the simulator, a connection is made
//! without a single packet. Only a server without a known model is asked what it has, and only without any key this
//! machine is looked over for local servers.

mod knock;
pub(crate) mod local;
pub(crate) mod provider;

use std::env;
use std::sync::Arc;
use std::time::Duration;

use throughline::providers::client::{BuildError, CallOptions, Client, ClientBuilder};
use throughline::providers::credential::{Credential, CredentialError};
use throughline::providers::models::ModelInfo;
use throughline::providers::transport::Transport;
use throughline_simulator::{Latency, Options, SimulatedProvider};
use throughline_transcript::catalogue::Catalogue;
use throughline_transcript::wire::Wire;

pub(crate) use self::knock::knock;
use self::provider::Provider;
use crate::arguments::SimulatedLatency;
use crate::arguments::connection::ConnectionOptions;
use crate::config::{Config, CredentialPlace};
use crate::error::{Failure, Kind};
use crate::{address, model};

/// The name under which the simulator answers.
pub(crate) const SIMULATED: &str = "simulated";

/// What the simulator is: the prices, the window and the rules of a model of the wire.
fn simulated_as(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => "claude-opus-4-6",
        Wire::OpenAiChat | Wire::OpenAiResponses => "gpt-5",
    }
}

/// What all chance of the simulator comes from.
const SEED: u64 = 1;

/// How long a server may take to say which models it has.
const MODELS_WAIT: Duration = Duration::from_secs(3);

/// To whom requests go.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// The model's name, as requests have it.
    pub(crate) model: String,
    /// Its window, tokens, if the user or the server has named it.
    pub(crate) window: Option<u64>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) kind: ConnectionKind,
    /// Where requests go; `None` for the simulator.
    pub(crate) base_url: Option<String>,
}

/// The longest answer where the window is large, tokens.
const ANSWER_TOKENS_MAX: u64 = 16_000;

impl Connection {
    /// The longest answer, tokens, if the window is known and no other limit is set.
    pub(crate) fn answer_tokens(&self) -> Option<u64> {
        let known = self.catalogue.find(&self.model).map(|model| model.window);
        let window = self.window.or(known)?;
        Some(ANSWER_TOKENS_MAX.min(window / 8))
    }
}

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionKind {
    /// A provider, or a gateway to one.
    Provider,
    /// A server on this machine.
    Local,
    /// The simulator, in this process.
    Simulated,
}

/// Makes the connection. To be called within a tokio runtime.
///
/// # Errors
/// No key, no model, an address that is none: each with what to do.
pub(crate) async fn connect(
    wanted: &ConnectionOptions,
    config: &Config,
) -> Result<Connection, Failure> {
    let catalogue = catalogue(wanted, config)?;
    let model = wanted.model.as_ref().or(config.model.as_ref()).cloned();
    if model.as_deref() == Some(SIMULATED) {
        return simulated(wanted, config, catalogue);
    }
    let server = match server(wanted, config, &catalogue)? {
        Ok(server) => server,
        Err(NoKey { variable }) => return Err(local::no_key(variable, model.as_deref()).await),
    };
    let mut connection = connection(server, wanted, config, catalogue)?;
    // What is known needs not to be asked.
    let is_asked = connection.model.is_empty()
        || connection.kind == ConnectionKind::Local && connection.window.is_none();
    if is_asked {
        learn(&mut connection).await?;
    }
    Ok(connection)
}

/// A connection that is good for everything but sending: there may be no key. `otherwise` is the model where neither the
/// user nor a key says one.
pub(crate) fn unconnected(
    wanted: &ConnectionOptions,
    config: &Config,
    otherwise: Option<&str>,
) -> Result<Connection, Failure> {
    let catalogue = catalogue(wanted, config)?;
    let said = wanted.model.as_deref().or(config.model.as_deref());
    let by_key = || Provider::with_key().map(|provider| provider.model);
    let Some(model) = said.or_else(by_key).or(otherwise) else {
        return Err(Failure::new(
            Kind::Arguments,
            "no model is given that could continue the session",
        )
        .hint(format!("pass --model MODEL, or --model {SIMULATED}")));
    };
    let wanted = ConnectionOptions {
        model: Some(model.to_owned()),
        ..wanted.clone()
    };
    if model == SIMULATED {
        return simulated(&wanted, config, catalogue);
    }
    let said = wanted.wire.or(config.wire);
    let provider = Provider::of_model(model, &catalogue);
    let server = Server {
        wire: said
            .or(provider.map(|provider| provider.wire))
            .unwrap_or(Wire::OpenAiChat),
        base_url: "http://localhost".to_owned(),
        credential: None,
        key_from: None,
        model: None,
    };
    connection(server, &wanted, config, catalogue)
}

fn connection(
    server: Server,
    wanted: &ConnectionOptions,
    config: &Config,
    catalogue: Arc<Catalogue>,
) -> Result<Connection, Failure> {
    let said = wanted.model.as_ref().or(config.model.as_ref()).cloned();
    Ok(Connection {
        client: client(server.wire, &server.base_url, server.credential)?,
        model: said.or(server.model).unwrap_or_default(),
        window: wanted.window.or(config.window),
        catalogue,
        kind: match is_loopback(&server.base_url) {
            true => ConnectionKind::Local,
            false => ConnectionKind::Provider,
        },
        base_url: Some(server.base_url),
    })
}

/// The catalogue that is wanted.
pub(crate) fn catalogue(
    wanted: &ConnectionOptions,
    config: &Config,
) -> Result<Arc<Catalogue>, Failure> {
    let file = wanted.catalogue.as_ref().or(config.catalogue.as_ref());
    model::catalogue(file.map(|path| path.as_path())).map(Arc::new)
}

/// Asks the server for the model and its window.
async fn learn(connection: &mut Connection) -> Result<(), Failure> {
    let models = ask(&connection.client).await;
    if connection.model.is_empty() {
        connection.model = the_only(models?)?;
        return Box::pin(learn(connection)).await;
    }
    // A server that does not say it leaves the window to the catalogue.
    let models = models.unwrap_or_default();
    let named = models.iter().find(|model| model.id == connection.model);
    // A server of one model answers with that, whatever it is asked for.
    let model = named.or(match models.as_slice() {
        [only] => Some(only),
        _ => None,
    });
    connection.window = connection.window.or(model.and_then(|model| model.window));
    Ok(())
}

fn the_only(models: Vec<ModelInfo>) -> Result<String, Failure> {
    const NAMED_MAX: usize = 8;
    match models.as_slice() {
        [] => Err(Failure::new(Kind::Unavailable, "the server has no model")
            .hint("load one there, or name one with --model")),
        [only] => Ok(only.id.clone()),
        several => {
            let names: Vec<&str> = several.iter().map(|model| model.id.as_str()).collect();
            let shown = names[..names.len().min(NAMED_MAX)].join(", ");
            Err(Failure::new(
                Kind::Arguments,
                format!("the server has {} models", several.len()),
            )
            .hint(format!("choose one with --model: {shown}")))
        }
    }
}

/// What a server has.
pub(crate) struct ModelListing {
    pub(crate) models: Vec<ModelInfo>,
    /// The model that would be asked; empty if none is named.
    pub(crate) model: String,
}

/// Asks a server what it has.
pub(crate) async fn list(
    server: Server,
    wanted: &ConnectionOptions,
    config: &Config,
) -> Result<ModelListing, Failure> {
    let client = client(server.wire, &server.base_url, server.credential)?;
    let said = wanted.model.as_ref().or(config.model.as_ref()).cloned();
    Ok(ModelListing {
        models: ask(&client).await?,
        model: said.or(server.model).unwrap_or_default(),
    })
}

/// Which models the other side has.
async fn ask(client: &Client) -> Result<Vec<ModelInfo>, Failure> {
    let options = CallOptions::default().attempts_max(1);
    let unavailable = |what: String| {
        Failure::new(
            Kind::Unavailable,
            format!("the list of models is not available: {what}"),
        )
        .hint("`throughline doctor` looks at the connection")
    };
    match tokio::time::timeout(MODELS_WAIT, client.models(&options)).await {
        Ok(Ok(models)) => Ok(models),
        Ok(Err(error)) => Err(unavailable(error.to_string())),
        Err(_) => Err(unavailable(format!(
            "no answer within {} s",
            MODELS_WAIT.as_secs()
        ))),
    }
}

fn simulated(
    wanted: &ConnectionOptions,
    config: &Config,
    catalogue: Arc<Catalogue>,
) -> Result<Connection, Failure> {
    let bug = |error: &dyn std::fmt::Display| Failure::new(Kind::Bug, error.to_string());
    let wire = wanted.wire.or(config.wire).unwrap_or(Wire::Anthropic);
    let catalogue = Catalogue::clone(&catalogue)
        .extended(&format!(
            "[[model]]\nid = \"{}\"\naliases = [\"{SIMULATED}\"]\n",
            simulated_as(wire)
        ))
        .map_err(|error| bug(&error))?;
    let window = wanted.window.or(config.window);
    let mut options = Options::new(SEED);
    options.catalogue = catalogue.clone();
    options.window = window;
    options.latency = match wanted.latency {
        Some(SimulatedLatency::None) => Latency::none(),
        Some(SimulatedLatency::Real) | None => Latency::real(),
    };
    // The ledger is not used here.
    options.keeps_bodies = false;
    let transport: Arc<dyn Transport> = Arc::new(SimulatedProvider::new(options));
    let client = Client::builder(wire, "http://simulator")
        .credential(Credential::new("any").map_err(|error| bug(&error))?)
        .transport(transport)
        .build()
        .map_err(|error| bug(&error))?;
    Ok(Connection {
        client,
        model: SIMULATED.to_owned(),
        window,
        catalogue: Arc::new(catalogue),
        kind: ConnectionKind::Simulated,
        base_url: None,
    })
}

/// Where requests go.
pub(crate) struct Server {
    pub(crate) wire: Wire,
    pub(crate) base_url: String,
    pub(crate) credential: Option<Credential>,
    /// Where the key comes from, for people.
    pub(crate) key_from: Option<String>,
    /// The default model.
    model: Option<String>,
}

/// There is no key, and no server that needs none is named.
#[derive(Debug)]
pub(crate) struct NoKey {
    /// Where the provider of the model looks for one.
    pub(crate) variable: Option<&'static str>,
}

/// Where requests would go, without checking that a server answers.
pub(crate) fn server(
    wanted: &ConnectionOptions,
    config: &Config,
    catalogue: &Catalogue,
) -> Result<Result<Server, NoKey>, Failure> {
    let model = wanted.model.as_deref().or(config.model.as_deref());
    let said = wanted.wire.or(config.wire);
    let provider = match model {
        Some(model) => Provider::of_model(model, catalogue),
        None => Provider::with_key().or_else(|| said.and_then(Provider::of_wire)),
    };
    let wire = said
        .or(provider.map(|provider| provider.wire))
        .unwrap_or(Wire::OpenAiChat);
    let configured = credential(config)?.map(|credential| {
        let from = config.credential.as_ref().map(ToString::to_string);
        (credential, from.unwrap_or_default())
    });
    let named = wanted.base_url.as_ref().or(config.base_url.as_ref());
    if let Some(base_url) = named {
        checked(base_url, "--base-url")?;
        // The key of the environment belongs to the provider's own address: it is sent nowhere else unless the user says so.
        let own = provider.filter(|provider| base_url.trim_end_matches('/') == provider.base_url);
        let key = match (configured, own) {
            (Some(key), _) => Some(key),
            (None, Some(provider)) => provider.key()?,
            (None, None) => None,
        };
        let (credential, key_from) = key.unzip();
        return Ok(Ok(Server {
            // Without a model, the wire that all servers imitate.
            wire: match model {
                None => said.unwrap_or(Wire::OpenAiChat),
                Some(_) => wire,
            },
            base_url: base_url.clone(),
            credential,
            key_from,
            model: None,
        }));
    }
    let Some(provider) = provider else {
        return Ok(Err(NoKey { variable: None }));
    };
    let key = match configured {
        Some(key) => Some(key),
        None => provider.key()?,
    };
    let Some((credential, key_from)) = key else {
        return Ok(Err(NoKey {
            variable: Some(provider.variable),
        }));
    };
    let base_url = provider.address();
    checked(&base_url, provider.base_url_variable.unwrap_or_default())?;
    Ok(Ok(Server {
        wire,
        base_url,
        credential: Some(credential),
        key_from: Some(key_from),
        model: Some(provider.model.to_owned()),
    }))
}

/// The address of the configuration was looked at when it was read.
fn checked(base_url: &str, from: &str) -> Result<(), Failure> {
    address::check(base_url)
        .map_err(|what| Failure::new(Kind::Arguments, format!("{from}: {what}")))
}

/// The key that the configuration points to.
fn credential(config: &Config) -> Result<Option<Credential>, Failure> {
    let found = match &config.credential {
        None => return Ok(None),
        Some(CredentialPlace::Env(name)) => Credential::from_environment(name),
        Some(CredentialPlace::File(path)) => Credential::from_file(path),
        #[cfg(feature = "keyring")]
        Some(CredentialPlace::Keyring { service, user }) => Credential::from_keyring(service, user),
        #[cfg(not(feature = "keyring"))]
        Some(CredentialPlace::Keyring { .. }) => {
            return Err(Failure::new(
                Kind::Arguments,
                "this program was built without support for keyrings",
            ));
        }
    };
    found.map(Some).map_err(|error| no_credential(&error))
}

fn no_credential(error: &CredentialError) -> Failure {
    Failure::new(Kind::Arguments, error.to_string())
        .hint("`throughline config set credential env:NAME` or `file:PATH` says where the key is")
}

/// A client of a server.
fn client(wire: Wire, base_url: &str, credential: Option<Credential>) -> Result<Client, Failure> {
    let mut builder = Client::builder(wire, base_url);
    let is_here = is_loopback(base_url);
    // Servers on this machine seldom look at the key; some want to see one.
    let credential = match credential {
        None if is_here => Credential::new("none").ok(),
        credential => credential,
    };
    if let Some(credential) = credential {
        builder = builder.credential(credential);
    }
    if is_here {
        builder = local::direct(builder)?;
    }
    built(builder)
}

fn built(builder: ClientBuilder) -> Result<Client, Failure> {
    builder.build().map_err(|error: BuildError| {
        Failure::new(Kind::Arguments, error.to_string())
            .hint("an address is of the form https://api.example.com/v1")
    })
}

/// Whether the address is on this machine.
pub(crate) fn is_loopback(base_url: &str) -> bool {
    let rest = base_url
        .trim()
        .split_once("://")
        .map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// A variable of the environment that is set to something.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_recognised() {
        let check = |url: &str, expected: bool| assert_eq!(is_loopback(url), expected, "{url}");
        check("http://127.0.0.1:8080/v1", true);
        check("http://127.1.2.3", true);
        check("http://LOCALHOST:11434", true);
        check("http://[::1]:8000/v1", true);
        check("https://api.anthropic.com", false);
        check("http://localhost.example.com", false);
        check("http://127.0.0.1.example.com/v1", false);
        check("http://192.168.0.4:8080", false);
        check("nonsense", false);
    }

    #[tokio::test]
    async fn the_simulated_model_needs_nothing() {
        let wanted = ConnectionOptions {
            model: Some(SIMULATED.to_owned()),
            window: Some(20_000),
            ..ConnectionOptions::default()
        };
        let connection = connect(&wanted, &Config::default()).await.unwrap();
        assert_eq!(connection.kind, ConnectionKind::Simulated);
        assert_eq!(connection.model, SIMULATED);
        assert_eq!(connection.window, Some(20_000));
        assert_eq!(connection.base_url, None);
        let known = connection.catalogue.find(SIMULATED).unwrap();
        assert_eq!(known.id, simulated_as(Wire::Anthropic));
    }

    /// Requests to an address that the user names never carry a key that belongs to another.
    #[test]
    fn a_key_goes_to_its_own_provider_only() {
        let at = |base_url: &str| {
            let wanted = ConnectionOptions {
                base_url: Some(base_url.to_owned()),
                model: Some("gpt-5".to_owned()),
                ..ConnectionOptions::default()
            };
            let catalogue = Catalogue::embedded();
            server(&wanted, &Config::default(), catalogue)
                .unwrap()
                .unwrap()
        };
        assert!(at("https://gateway.example/v1").credential.is_none());
        assert!(at("http://127.0.0.1:8080").credential.is_none());
    }
}
