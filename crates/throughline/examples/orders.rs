//! A whole program: an agent that answers questions about orders and picks up its conversation when it is run again with
//! the same file. Its provider is simulated and needs no key; what the model says is written down here.
//!
//! `cargo run -p throughline --example orders -- /tmp/orders.db`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde::Deserialize;
use serde_json::json;
use throughline::prelude::*;
use throughline_simulator::{Options, Reply, SimulatedProvider};

#[derive(Deserialize, JsonSchema)]
struct Query {
    /// The week, from 1 to 52.
    week: u32,
}

struct Orders;

impl Tool for Orders {
    type Input = Query;

    fn name(&self) -> &str {
        "orders"
    }

    fn description(&self) -> &str {
        "Counts the orders of a week."
    }

    async fn call(&self, query: Query, _: CallContext) -> Result<String, ToolError> {
        if !(1..=52).contains(&query.week) {
            Err("weeks go from 1 to 52")?;
        }
        Ok((query.week * 17).to_string())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args_os().nth(1);
    let file = file.ok_or("say where the session is kept: orders FILE")?;

    let provider = SimulatedProvider::new(Options::new(1).without_latency());
    provider.script(Reply::default().tool_call("orders", json!({"week": 48}).to_string()));
    provider.script(Reply::text("There were 816 orders in week 48."));
    // With a key in the environment: `Client::from_env()?`.
    let client = Client::anthropic()
        .credential(Credential::new("any")?)
        .transport(provider)
        .build()?;

    let session = Session::builder(client, "claude-opus-4-6")
        .store(SqliteStore::open(file).await?)
        .compact_with_model();
    let agent = Agent::builder(session)
        .tools(Tools::new().with(Orders))
        .open_or_start(&SessionId::new("orders")?)
        .await?;
    println!("{} messages so far", agent.session().status().messages);
    let outcome = agent.ask("How many orders last week?").await?;
    println!("{}", outcome.text());
    agent.session().close().await?;
    Ok(())
}
