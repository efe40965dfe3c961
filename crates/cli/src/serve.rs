//! `throughline serve` and `throughline run`: the proxy.

mod file;
mod log;
pub(crate) mod run;
#[cfg(feature = "otel")]
mod spans;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use throughline::providers::credential::Credential;
use throughline::providers::transport::{HttpTransport, Transport};
use throughline::store::{Durability, SqliteStoreOptions, Store};
use throughline_proxy::config::{Limits, Mode, Operator, Route, Tenants, Updates};
use throughline_proxy::{Config, Proxy, Tls};
use throughline_transcript::check::Profile;
use throughline_transcript::wire::Wire;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::address::{Fault, fault};
use crate::arguments::serve::{LimitSettings, ModeChoice, Proxying, Serve};
use crate::connect::provider::Provider;
use crate::error::{Ending, Failure, Kind, reason};
use crate::listening::Endings;
use crate::output::Console;
use crate::{config, listening, model, runtime, storage};

/// The default address.
const USUAL: &str = "127.0.0.1:8787";
/// How long answers that are under way may take to end.
const END_WAIT: Duration = Duration::from_secs(30);

pub(crate) fn run(arguments: &Serve, console: &Console) -> Result<Ending, Failure> {
    let mut config = Config::default();
    if let Some(path) = &arguments.config {
        apply(&file::read(path)?, &mut config)?;
    }
    apply(&arguments.proxying, &mut config)?;
    if let Some(path) = &arguments.token_file {
        config.token = Some(token(path)?);
    }
    let tls = match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(certificates), Some(key)) => Some(tls(certificates, key)?),
        _ => None,
    };
    runtime::run(served(arguments, config, tls, console))?;
    Ok(Ending::Done)
}

async fn served(
    arguments: &Serve,
    config: Config,
    tls: Option<Tls>,
    console: &Console,
) -> Result<(), Failure> {
    let log = log::start(&arguments.logging)?;
    let result = served_with_log(arguments, config, tls, console).await;
    log.end().await;
    result
}

async fn served_with_log(
    arguments: &Serve,
    config: Config,
    tls: Option<Tls>,
    console: &Console,
) -> Result<(), Failure> {
    let address = &arguments.listen;
    let (listener, bound) = listening::bind(address, USUAL).await?;
    if !bound.ip().is_loopback() && config.token.is_none() {
        return Err(Failure::new(
            Kind::Arguments,
            format!("{bound} can be reached from other machines, and there is no token"),
        )
        .hint("--token-file FILE names one; 127.0.0.1 is this machine alone"));
    }
    let data = arguments.data.as_deref();
    with_proxy(config, data, async |proxy| {
        attended(arguments, proxy, listener, bound, tls, console).await
    })
    .await
}

/// Serves until it is told to end.
async fn attended(
    arguments: &Serve,
    proxy: Proxy,
    listener: TcpListener,
    bound: SocketAddr,
    tls: Option<Tls>,
    console: &Console,
) -> Result<(), Failure> {
    let address = &arguments.listen;
    let mode = proxy.mode();
    let shutdown = CancellationToken::new();
    let mut endings = Endings::of(address, USUAL)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    console.print(&format!(
        "listening on {scheme}://{bound} (ANTHROPIC_BASE_URL={scheme}://{bound} OPENAI_BASE_URL={scheme}://{bound}/v1), mode {}\n\
         dashboard: {scheme}://{bound}/throughline\n",
        mode.name()
    ))?;
    let serving = throughline_proxy::serve(listener, proxy, tls, shutdown.clone(), END_WAIT);
    tokio::pin!(serving);
    tokio::select! {
        () = &mut serving => return Ok(()),
        () = endings.wanted() => {}
    }
    console.note("ending: answers that are under way may finish; Ctrl-C again ends at once");
    shutdown.cancel();
    tokio::select! {
        () = serving => {}
        () = endings.interrupted() => {}
    }
    Ok(())
}

/// Does the work with a proxy whose sessions are in `data`, or where all sessions of the user are. The store is closed
/// behind it.
async fn with_proxy<T>(
    mut config: Config,
    data: Option<&Path>,
    work: impl AsyncFnOnce(Proxy) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let of_user = config::Config::read()?;
    let folder = match data {
        Some(folder) => folder.to_owned(),
        None => of_user.data_folder()?,
    };
    config.session_folder = config.session_folder.or(of_user.session_folder);
    // A killed process loses nothing; waiting for the disk would hold up requests.
    let mut options = SqliteStoreOptions::default();
    options.durability = Durability::ProcessKill;
    storage::using_at(&folder, options, async |store| {
        let proxy = start(config, Arc::clone(store)).await?;
        work(proxy).await
    })
    .await
}

async fn start(config: Config, store: Arc<dyn Store>) -> Result<Proxy, Failure> {
    let transport = HttpTransport::new()
        .map_err(|error| Failure::new(Kind::Bug, format!("cannot open connections: {error}")))?;
    let transport: Arc<dyn Transport> = Arc::new(transport);
    Proxy::start(config, store, transport)
        .await
        .map_err(storage::failure)
}

/// Applies settings of the file, or of the command line, which overrides it.
fn apply(settings: &Proxying, config: &mut Config) -> Result<(), Failure> {
    if let Some(url) = &settings.anthropic_upstream {
        config.upstreams.anthropic = address("anthropic upstream", url)?;
    }
    if let Some(url) = &settings.openai_upstream {
        config.upstreams.openai = address("openai upstream", url)?;
    }
    for route in &settings.routes {
        if !route.path.starts_with('/') || route.path.starts_with("/v1") {
            let what = format!("the path {:?} of a route is invalid", route.path);
            return Err(
                Failure::new(Kind::Arguments, what).hint("a path begins with /, and not with /v1")
            );
        }
        config.upstreams.routes.push(Route {
            prefix: route.path.clone(),
            upstream: address("route", &route.upstream)?,
            profile: profile(route.strict_alternation),
        });
    }
    if settings.strict_alternation {
        config.upstreams.openai_profile = Profile::StrictAlternation;
    }
    if let Some(mode) = settings.mode {
        config.mode = match mode {
            ModeChoice::Rewrite => Mode::Rewrite,
            ModeChoice::Observe => Mode::Observe,
            ModeChoice::Off => Mode::Off,
        };
    }
    config.window = settings.window.or(config.window);
    config.soft = settings.soft.or(config.soft);
    config.hard = settings.hard.or(config.hard);
    config.memory_tokens_max = settings.memory_tokens.or(config.memory_tokens_max);
    config.phases |= settings.phases;
    if let Some(path) = &settings.catalogue {
        config.catalogue = Arc::new(model::catalogue(Some(path))?);
    }
    if settings.session_folder.is_some() {
        config.session_folder.clone_from(&settings.session_folder);
    }
    if settings.one_tenant {
        config.tenants = Tenants::One;
    }
    if let Some(who) = &settings.updates {
        config.updates = updates(who, config)?;
    }
    limit(&settings.limits, &mut config.limits);
    Ok(())
}

fn limit(settings: &LimitSettings, limits: &mut Limits) {
    let set = |to: &mut usize, value: Option<usize>| *to = value.unwrap_or(*to).max(1);
    set(&mut limits.body_bytes_max, settings.body_bytes);
    set(&mut limits.answer_bytes_max, settings.answer_bytes);
    set(&mut limits.requests_max, settings.requests);
    set(&mut limits.sessions_max, settings.sessions_in_memory);
    limits.kept_bytes_max = settings.kept_bytes.unwrap_or(limits.kept_bytes_max);
    set(&mut limits.unstored_bytes_max, settings.unstored_bytes);
    if let Some(percent) = settings.update_percent {
        limits.update_permille = percent.min(100) * 10;
    }
}

fn profile(is_strict: bool) -> Profile {
    if is_strict {
        Profile::StrictAlternation
    } else {
        Profile::Provider
    }
}

/// An address that requests can be sent to, with no credential in it.
fn address(name: &str, url: &str) -> Result<String, Failure> {
    let what = match fault(url) {
        None => return Ok(url.to_owned()),
        Some(Fault::User | Fault::Query) => "an address must not contain a key",
        Some(Fault::NoAddress) => "this is not the address of a server",
    };
    Err(Failure::new(Kind::Arguments, format!("{name}: {what}"))
        .hint("give an address such as https://api.anthropic.com or http://127.0.0.1:8080"))
}

/// Who makes memories.
fn updates(who: &str, config: &Config) -> Result<Updates, Failure> {
    match who {
        "code" => return Ok(Updates::Code),
        "client" => return Ok(Updates::Client),
        _ => {}
    }
    let is_anthropic = Provider::of_model(who, &config.catalogue)
        .is_some_and(|provider| provider.wire == Wire::Anthropic);
    let (wire, base_url) = if is_anthropic {
        (Wire::Anthropic, config.upstreams.anthropic.clone())
    } else {
        (Wire::OpenAiChat, config.upstreams.openai.clone())
    };
    Ok(Updates::Operator(Box::new(Operator {
        wire,
        base_url,
        credential: Credential::of_wire(wire).ok(),
        model: who.to_owned(),
    })))
}

fn tls(certificates: &Path, key: &Path) -> Result<Tls, Failure> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| {
            Failure::new(
                Kind::Arguments,
                format!("cannot read {}: {}", path.display(), reason(&error)),
            )
        })
    };
    Tls::from_pem(&read(certificates)?, &read(key)?).map_err(|error| {
        Failure::new(Kind::Arguments, error.to_string())
            .hint("--tls-cert and --tls-key name files in PEM form that belong together")
    })
}

fn token(path: &Path) -> Result<Credential, Failure> {
    Credential::from_file(path).map_err(|error| {
        Failure::new(Kind::Arguments, error.to_string()).hint("write a long random word into it")
    })
}
