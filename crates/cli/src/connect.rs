//! From what was typed and what is configured to a provider.
//!
//! Nothing here waits for the network where the answer is known: with a key, or with the simulator, a connection is made
//! without a single packet. Only a server without a known model is asked what it has, and only without any key this
//! machine is looked over for local servers.

mod local;
mod provider;

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

use self::provider::Provider;
use crate::arguments::SimulatedLatency;
use crate::arguments::connection::Wanted;
use crate::config::{Config, CredentialPlace};
use crate::error::{Failure, Kind};
use crate::model;

/// The name under which the simulator answers.
pub(crate) const SIMULATED: &str = "simulated";

/// What the simulator is: the prices, the window and the rules of this model.
const SIMULATED_AS: &str = "claude-opus-4-6";

/// What all chance of the simulator comes from.
const SEED: u64 = 1;

/// How long a server may take to say which models it has.
const MODELS_WAIT: Duration = Duration::from_secs(3);

/// To whom requests go.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// The model's name, as requests have it.
    pub(crate) model: String,
    /// Its window, tokens, where somebody has said it: the user, or the server.
    pub(crate) window: Option<u64>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) kind: ConnectionKind,
    /// Where requests go; `None` for the simulator.
    pub(crate) base_url: Option<String>,
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
pub(crate) async fn connect(wanted: &Wanted, config: &Config) -> Result<Connection, Failure> {
    let catalogue = catalogue(wanted, config)?;
    let model = wanted.model.as_ref().or(config.model.as_ref()).cloned();
    if model.as_deref() == Some(SIMULATED) {
        return simulated(wanted, config, catalogue);
    }
    let address = address(wanted, config, model.as_deref(), catalogue.as_ref())?;
    let wire = address.wire;
    let Some(address) = address.known else {
        return Err(local::no_key(address.variable, model.as_deref()).await);
    };
    let kind = match is_loopback(&address.base_url) {
        true => ConnectionKind::Local,
        false => ConnectionKind::Provider,
    };
    let client = client(wire, &address.base_url, address.credential)?;
    let said = wanted.window.or(config.window);
    let mut connection = Connection {
        client,
        model: model.clone().or(address.model).unwrap_or_default(),
        window: said,
        catalogue,
        kind,
        base_url: Some(address.base_url),
    };
    // What is known needs not to be asked.
    let is_asked = connection.model.is_empty() || kind == ConnectionKind::Local && said.is_none();
    if is_asked {
        learn(&mut connection).await?;
    }
    Ok(connection)
}

/// The catalogue that is wanted.
pub(crate) fn catalogue(wanted: &Wanted, config: &Config) -> Result<Arc<Catalogue>, Failure> {
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

/// Which models the other side has.
pub(crate) async fn ask(client: &Client) -> Result<Vec<ModelInfo>, Failure> {
    let options = CallOptions::default().attempts_max(1);
    let unavailable = |what: String| {
        Failure::new(
            Kind::Unavailable,
            format!("the list of models cannot be had: {what}"),
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
    wanted: &Wanted,
    config: &Config,
    catalogue: Arc<Catalogue>,
) -> Result<Connection, Failure> {
    let bug = |error: &dyn std::fmt::Display| Failure::new(Kind::Bug, error.to_string());
    let catalogue = Catalogue::clone(&catalogue)
        .extended(&format!(
            "[[model]]\nid = \"{SIMULATED_AS}\"\naliases = [\"{SIMULATED}\"]\n"
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
    // Nobody looks at the ledger here.
    options.keeps_bodies = false;
    let transport: Arc<dyn Transport> = Arc::new(SimulatedProvider::new(options));
    let wire = wanted.wire.or(config.wire).unwrap_or(Wire::Anthropic);
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

/// Where requests would go.
struct Address {
    wire: Wire,
    /// `None` without a key.
    known: Option<Known>,
    /// Where a key would be looked for.
    variable: Option<&'static str>,
}

struct Known {
    base_url: String,
    credential: Option<Credential>,
    /// The model where nobody says one.
    model: Option<String>,
}

fn address(
    wanted: &Wanted,
    config: &Config,
    model: Option<&str>,
    catalogue: &Catalogue,
) -> Result<Address, Failure> {
    let said = wanted.wire.or(config.wire);
    let provider = match model {
        Some(model) => Provider::of_model(model, catalogue),
        None => Provider::with_key().or_else(|| said.and_then(Provider::of_wire)),
    };
    let wire = said
        .or(provider.map(|provider| provider.wire))
        .unwrap_or(Wire::OpenAiChat);
    let configured = credential(config)?;
    let named = wanted.base_url.as_ref().or(config.base_url.as_ref());
    if let Some(base_url) = named {
        // The key of the environment belongs to the provider's own address: it goes nowhere else by itself.
        let own = provider.filter(|provider| base_url.trim_end_matches('/') == provider.base_url);
        let credential = match (configured, own) {
            (Some(credential), _) => Some(credential),
            (None, Some(provider)) => provider.key()?,
            (None, None) => None,
        };
        return Ok(Address {
            // A local server without a word about the wire speaks the one that all of them imitate.
            wire: match model {
                None => said.unwrap_or(Wire::OpenAiChat),
                Some(_) => wire,
            },
            known: Some(Known {
                base_url: base_url.clone(),
                credential,
                model: None,
            }),
            variable: None,
        });
    }
    let Some(provider) = provider else {
        return Ok(Address {
            wire,
            known: None,
            variable: None,
        });
    };
    let key = match configured {
        Some(credential) => Some(credential),
        None => provider.key()?,
    };
    Ok(Address {
        wire,
        known: key.map(|credential| Known {
            base_url: provider.address(),
            credential: Some(credential),
            model: Some(provider.model.to_owned()),
        }),
        variable: Some(provider.variable),
    })
}

/// The key that the configuration points to.
pub(crate) fn credential(config: &Config) -> Result<Option<Credential>, Failure> {
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
pub(crate) fn client(
    wire: Wire,
    base_url: &str,
    credential: Option<Credential>,
) -> Result<Client, Failure> {
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
        let wanted = Wanted {
            model: Some(SIMULATED.to_owned()),
            window: Some(20_000),
            ..Wanted::default()
        };
        let connection = connect(&wanted, &Config::default()).await.unwrap();
        assert_eq!(connection.kind, ConnectionKind::Simulated);
        assert_eq!(connection.model, SIMULATED);
        assert_eq!(connection.window, Some(20_000));
        let known = connection.catalogue.find(SIMULATED).unwrap();
        assert_eq!(known.id, SIMULATED_AS);
    }

    /// Requests to an address that somebody names never carry a key that belongs to another.
    #[test]
    fn a_key_goes_to_its_own_provider_only() {
        let at = |base_url: &str| {
            let wanted = Wanted {
                base_url: Some(base_url.to_owned()),
                ..Wanted::default()
            };
            let catalogue = Catalogue::embedded();
            address(&wanted, &Config::default(), Some("gpt-5"), catalogue).unwrap()
        };
        let known = at("https://gateway.example/v1").known.unwrap();
        assert!(known.credential.is_none());
        let known = at("http://127.0.0.1:8080").known.unwrap();
        assert!(known.credential.is_none());
    }
}
