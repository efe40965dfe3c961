//! An agent with tools that works on over three windows, against a simulated provider that needs no key. What its model
//! says is written down here; what its tools do is real, in a folder that is gone afterwards.
//!
//! `cargo run -p throughline --example agent`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;
use throughline::agent::builtin::{self, Root};
use throughline::agent::{ApprovalRequest, Approver, Decision};
use throughline::prelude::*;
use throughline_simulator::{Options, Reply, SimulatedProvider};

/// A tool of one's own.
struct Measure;

#[derive(Deserialize, JsonSchema)]
struct Sensor {
    /// The number of the sensor, from 1.
    sensor: u32,
}

impl Tool for Measure {
    type Input = Sensor;

    fn name(&self) -> &str {
        "measure"
    }

    fn description(&self) -> &str {
        "Reads a sensor: a hundred values."
    }

    async fn call(&self, input: Sensor, _: CallContext) -> Result<String, ToolError> {
        if input.sensor == 0 {
            Err("sensors are numbered from 1")?;
        }
        let values = (1..=100).map(|step| format!("{:.2}", f64::from(input.sensor * step) / 7.0));
        Ok(values.collect::<Vec<_>>().join(" "))
    }
}

/// Lets files be written and nothing else be done.
struct OnlyWriting;

#[async_trait]
impl Approver for OnlyWriting {
    async fn approve(&self, request: ApprovalRequest) -> Decision {
        if &*request.call.name == "write_file" {
            return Decision::Allow;
        }
        Decision::Deny {
            reason: "only files may be written".to_owned(),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let provider = SimulatedProvider::new(Options::new(1).without_latency());
    let client = Client::anthropic()
        .credential(Credential::new("any")?)
        .transport(provider.clone())
        .build()?;
    let folder = tempfile::tempdir()?;
    let root = Root::open(folder.path())?;
    let session = Session::builder(client, "claude-opus-4-6")
        .system("You are a careful assistant.")
        .max_tokens(2_000)
        .window(12_000);
    let agent = Agent::builder(session)
        .tools(
            Tools::new()
                .with(Measure)
                .with(builtin::recall())
                .with(builtin::write_file(&root))
                .with(builtin::run_command(&root)),
        )
        .approve(OnlyWriting)
        .start()
        .await?;

    agent
        .ask("Remember: sensor 3 is broken since March.")
        .await?;
    let mut sensor = 0;
    while agent.session().status().epoch < 3 {
        sensor += 1;
        say_what_the_model_does(&provider, sensor);
        let mut turn = agent.send(format!("Measure sensor {sensor} and write it down."));
        while let Some(event) = turn.next().await {
            match event? {
                AgentEvent::ApprovalAsked { summary, .. } => println!("  may it? {summary}"),
                AgentEvent::CallEnded { call, output, .. } => {
                    println!("  {}: {} bytes", call.name, output.text.len());
                }
                AgentEvent::Done(outcome) => println!("{}", outcome.text()),
                _ => {}
            }
        }
    }
    let status = agent.session().status();
    println!(
        "{} messages, {} tokens of them and the memory in a request, {} swaps",
        status.messages, status.tokens, status.epoch
    );
    let outcome = agent.ask("What is the calibration offset?").await?;
    println!("{}", outcome.text());
    println!("{} files", std::fs::read_dir(root.path())?.count());
    agent.session().close().await?;
    Ok(())
}

/// A real model decides on its own.
fn say_what_the_model_does(provider: &SimulatedProvider, sensor: u32) {
    let file = json!({"path": format!("sensor_{sensor}.txt"), "content": "it works\n"});
    let command = json!({"command": "reboot"});
    provider.script(
        Reply::text("I measure it.").tool_call("measure", json!({"sensor": sensor}).to_string()),
    );
    provider.script(
        Reply::default()
            .tool_call("write_file", file.to_string())
            .tool_call("run_command", command.to_string()),
    );
    provider.script(Reply::text(format!("Sensor {sensor} is measured.")));
}
