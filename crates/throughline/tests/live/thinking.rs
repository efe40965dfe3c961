//! Models that think, with tools, over several swaps: what of their thinking is sent back.

use serde_json::Value;
use throughline::compactor::Styling;
use throughline::engine::Spending;
use throughline::{ModelCompactor, UserInput};
use throughline_simulator::Options;
use throughline_transcript::json::Raw;
use throughline_transcript::request::message::ToolOutput;

use crate::world::{World, chatter};

const TOOLS: &str = r#"[
    {"name":"read_file","description":"Reads a file.","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}},
    {"name":"run_tests","description":"Runs the tests.","input_schema":{"type":"object","properties":{}}}
]"#;

/// Thinking of a message, as it was signed.
fn thinking(message: &Value) -> Vec<Value> {
    message["content"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|block| block["type"] == "thinking" || block["type"] == "redacted_thinking")
        .cloned()
        .collect()
}

/// What a request begins with: another one after a swap.
fn beginning(messages: &[Value]) -> Value {
    let mut first = messages[0].clone();
    for block in first["content"].as_array_mut().into_iter().flatten() {
        block.as_object_mut().unwrap().remove("cache_control");
    }
    first
}

/// What was sent and answered in a conversation with tools.
struct Talk {
    /// The messages of each request, and the thinking of its answer.
    exchanges: Vec<(Vec<Value>, Vec<Value>)>,
    swaps: u64,
}

async fn talk(model: &str, styling: Option<Styling>) -> Talk {
    let world = World::new(Options::new(17).without_latency());
    let mut builder = throughline::Session::builder(world.client.clone(), model)
        .system("You are a careful assistant.")
        .max_tokens(2_000)
        .window(24_000)
        .settings(|settings| settings.economy.spending = Spending::Freely)
        .field(
            "thinking",
            Raw::parse(r#"{"type":"adaptive"}"#.to_owned()).unwrap(),
        )
        .tools(Raw::parse(TOOLS.to_owned()).unwrap());
    if let Some(styling) = styling {
        let compactor = ModelCompactor::new(world.client.clone(), model).styling(styling);
        builder = builder.compactor(compactor);
    }
    let session = builder.start().await.unwrap();
    let mut exchanges = Vec::new();
    let mut input = UserInput::from(chatter(0, 60));
    let mut turn = 0;
    // The last swap is followed by some more steps.
    let mut steps_left = 12;
    while steps_left > 0 {
        let answer = session.ask(input).await.unwrap();
        let ledger = world.provider.ledger();
        let asked = ledger.iter().rfind(|call| !call.is_summary).unwrap();
        let body: Value = serde_json::from_slice(&asked.body).unwrap();
        let answered: Value = serde_json::from_str(answer.reply.messages[0].as_str()).unwrap();
        exchanges.push((
            body["messages"].as_array().unwrap().clone(),
            thinking(&answered),
        ));
        let outputs: Vec<ToolOutput> = answer
            .tool_calls()
            .iter()
            .map(|call| ToolOutput {
                call_id: call.id.to_string(),
                text: chatter(turn, 40),
                is_error: false,
            })
            .collect();
        turn += 1;
        input = if outputs.is_empty() {
            chatter(turn, 60).into()
        } else {
            outputs.into()
        };
        let epoch = session.status().epoch;
        steps_left -= usize::from(epoch >= 3);
        assert!(turn < 500, "{model}: {:?}", session.status());
    }
    // The simulator refuses thinking that is bound to another prefix, also in the requests for memories.
    assert_eq!(world.refused(), 0, "{model}");
    let ledger = world.provider.ledger();
    if styling.is_some() {
        assert!(ledger.iter().any(|call| call.is_summary), "{model}");
    }
    Talk {
        exchanges,
        swaps: session.status().epoch,
    }
}

#[tokio::test(start_paused = true)]
async fn thinking_that_is_bound_to_its_prefix_is_left_out_after_a_swap_and_kept_until_the_next() {
    for styling in [None, Some(Styling::PrefixSharing), Some(Styling::Forked)] {
        let talk = talk("claude-opus-5-5", styling).await;
        assert!(talk.swaps >= 3);
        let mut begun = Value::Null;
        let mut of_epoch: Vec<Value> = Vec::new();
        let mut kept_most = 0;
        for (messages, answered) in &talk.exchanges {
            if beginning(messages) != begun {
                begun = beginning(messages);
                of_epoch.clear();
            }
            let sent: Vec<Value> = messages.iter().flat_map(thinking).collect();
            assert_eq!(sent, of_epoch);
            kept_most = kept_most.max(sent.len());
            of_epoch.extend(answered.iter().cloned());
        }
        assert!(kept_most >= 3, "{kept_most}");
    }
}

#[tokio::test(start_paused = true)]
async fn thinking_that_is_not_bound_stays_with_its_message() {
    for styling in [None, Some(Styling::PrefixSharing)] {
        let talk = talk("claude-opus-5", styling).await;
        let mut begun = Value::Null;
        let mut answers: Vec<&Vec<Value>> = Vec::new();
        let mut kept_over_swaps = 0;
        for (messages, answered) in &talk.exchanges {
            let of_model = messages
                .iter()
                .filter(|message| message["role"] == "assistant");
            let tail = &answers[answers.len() - of_model.count()..];
            let expected: Vec<Value> = tail.iter().copied().flatten().cloned().collect();
            let sent: Vec<Value> = messages.iter().flat_map(thinking).collect();
            assert_eq!(sent, expected);
            if beginning(messages) != begun && !answers.is_empty() {
                kept_over_swaps += sent.len();
            }
            begun = beginning(messages);
            answers.push(answered);
        }
        assert!(kept_over_swaps >= 1, "{kept_over_swaps}");
    }
}
