//! A simulated provider, a client of it, and what is said in tests.

use std::sync::Arc;

use throughline::Session;
use throughline::SessionBuilder;
use throughline::engine::Spending;
use throughline_providers::client::Client;
use throughline_providers::credential::Credential;
use throughline_simulator::{Options, SimulatedProvider};
use throughline_transcript::wire::Wire;

pub(crate) const MODEL: &str = "claude-opus-4-6";

pub(crate) struct World {
    pub(crate) provider: SimulatedProvider,
    pub(crate) client: Client,
}

impl World {
    pub(crate) fn new(options: Options) -> Self {
        Self::of_wire(options, Wire::Anthropic)
    }

    pub(crate) fn of_wire(options: Options, wire: Wire) -> Self {
        let provider = SimulatedProvider::new(options);
        let client = Client::builder(wire, "http://simulator")
            .credential(Credential::new("test-key").unwrap())
            .transport(Arc::new(provider.clone()))
            .build()
            .unwrap();
        Self { provider, client }
    }

    /// A session that asks a model, where it has one, whenever its memory changes: in small windows and short
    /// conversations there is nothing else that it could be paid from.
    pub(crate) fn session(&self) -> SessionBuilder {
        Session::builder(self.client.clone(), MODEL)
            .system("You are a careful assistant.")
            .max_tokens(2_000)
            .settings(|settings| settings.economy.spending = Spending::Freely)
    }

    /// Largest prompt of all answered calls, tokens.
    pub(crate) fn largest_prompt(&self) -> u64 {
        self.provider
            .ledger()
            .iter()
            .filter_map(|exchange| exchange.usage)
            .map(|usage| usage.prompt())
            .max()
            .unwrap_or(0)
    }

    pub(crate) fn refused(&self) -> usize {
        self.provider
            .ledger()
            .iter()
            .filter(|exchange| exchange.status.is_client_error())
            .count()
    }
}

/// Something long that is said in a turn.
pub(crate) fn chatter(turn: usize, words: usize) -> String {
    let mut text = format!("Step {turn}: please look at module_{turn} and tell me what it does. ");
    for word in 0..words {
        text.push_str(&format!("line{turn}x{word} "));
    }
    text
}
