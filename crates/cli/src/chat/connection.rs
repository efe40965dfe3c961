//! The simulated model, and where sessions are kept.

use std::path::PathBuf;
use std::sync::Arc;

use throughline::providers::client::Client;
use throughline::providers::credential::Credential;
use throughline::transcript::catalogue::Catalogue;
use throughline::transcript::wire::Wire;
use throughline_simulator::{Latency, Options, SimulatedProvider};

use crate::arguments::SimulatedLatency;
use crate::error::{Failure, Kind};

/// What it takes to talk with a model.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) model: String,
    pub(crate) window: Option<u64>,
    pub(crate) catalogue: Arc<Catalogue>,
}

pub(crate) async fn connect(
    model: Option<&str>,
    window: Option<u64>,
    latency: SimulatedLatency,
) -> Result<Connection, Failure> {
    let failed = |error: String| Failure::new(Kind::Bug, error);
    let mut options = Options::new(1);
    options.window = window;
    options.keeps_bodies = false;
    if latency == SimulatedLatency::None {
        options.latency = Latency::none();
    }
    let client = Client::builder(Wire::Anthropic, "http://simulator")
        .credential(Credential::new("simulated").map_err(|error| failed(error.to_string()))?)
        .transport(Arc::new(SimulatedProvider::new(options)))
        .build()
        .map_err(|error| failed(error.to_string()))?;
    let _ = model;
    Ok(Connection {
        client,
        model: "claude-opus-4-6".to_owned(),
        window,
        catalogue: Arc::new(Catalogue::embedded().clone()),
    })
}

pub(crate) fn data_folder() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match set("XDG_DATA_HOME") {
        Some(folder) => PathBuf::from(folder).join("throughline"),
        None => PathBuf::from(set("HOME").unwrap_or_default()).join(".local/share/throughline"),
    }
}
