//! What a conversation costs with the proxy, memories included, and what it costs without: by the provider's bill.

use std::time::Duration;

use serde_json::json;
use throughline_proxy::Config;
use throughline_proxy::config::{Mode, Updates};
use throughline_simulator::Options;
use throughline_transcript::wire::Wire;

use crate::world::{Client, World, chatter, config};

const FACT: &str = "Remember: the deploy region is eu-north-3.";
const QUESTION: &str = "What is the deploy region?";

/// A client and how it works.
#[derive(Clone, Copy, Debug)]
struct Case {
    wire: Wire,
    model: &'static str,
    caching: Caching,
    window: u64,
    /// Lines of what a tool gives back, and words of what the person says.
    lines: usize,
    words: usize,
    /// Windows to be passed.
    windows: u64,
}

/// Whether the provider's cache is of use to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caching {
    /// Whether the client asks for it or it comes unasked.
    Warm,
    /// The client does not ask for it, or the provider has none.
    Never,
    /// The person takes longer over each turn than the cache holds.
    Cold,
}

/// The provider's bill, nano dollars.
#[derive(Clone, Copy, Debug, Default)]
struct Bill {
    requests: usize,
    conversation: u64,
    updates: usize,
    memories: u64,
}

impl Bill {
    fn of(world: &World) -> Self {
        let mut bill = Self::default();
        for exchange in world.provider.ledger() {
            let cost = exchange.cost.map_or(0, |cost| cost.nano_dollars());
            if exchange.is_summary {
                bill.updates += 1;
                bill.memories += cost;
            } else {
                bill.requests += 1;
                bill.conversation += cost;
            }
        }
        bill
    }

    fn total(&self) -> u64 {
        self.conversation + self.memories
    }
}

/// What one conversation came to, with the proxy and without.
#[derive(Debug)]
struct Compared {
    case: Case,
    swaps: u64,
    with: Bill,
    without: Bill,
}

impl Compared {
    /// The part of the cost without the proxy that it saves, in thousandths.
    fn saved_permille(&self) -> i64 {
        let (with, without) = (self.with.total() as i64, self.without.total() as i64);
        (without - with) * 1000 / without.max(1)
    }

    fn row(&self) -> String {
        let Case {
            wire,
            model,
            caching,
            window,
            ..
        } = self.case;
        let dollars = |nanos: u64| format!("{:.3}", nanos as f64 / 1e9);
        format!(
            "| {wire}, `{model}` | {caching:?} | {window} | {} | {} | {:.1} | {} | {} | {} | {:.1} % |",
            self.with.requests,
            self.swaps,
            self.with.updates as f64 / self.swaps.max(1) as f64,
            dollars(self.with.conversation),
            dollars(self.with.memories),
            dollars(self.without.total()),
            self.saved_permille() as f64 / 10.0
        )
    }
}

fn client(case: Case) -> Client {
    let mut client = Client::new(case.wire);
    client.marks_cache = case.wire == Wire::Anthropic && case.caching != Caching::Never;
    client.result_lines = case.lines;
    client.fields = json!({"model": case.model});
    client
}

fn options() -> Options {
    let mut options = Options::new(9);
    options.keeps_bodies = false;
    options
}

/// What one turn takes the person, seconds.
fn pause(case: Case) -> Duration {
    Duration::from_secs(match case.caching {
        Caching::Warm | Caching::Never => 20,
        Caching::Cold => 400,
    })
}

/// The same turns without the proxy, until the provider refuses the history, and with it.
async fn compared(case: Case) -> Compared {
    let with_config = Config {
        window: Some(case.window),
        updates: Updates::Client,
        ..config()
    };
    let without_config = Config {
        window: None,
        mode: Mode::Off,
        ..config()
    };
    let with = World::with(options(), with_config).await;
    let without = World::with(options(), without_config).await;
    let (mut here, mut there) = (client(case), client(case));
    let mut fits = true;
    let mut compared = Compared {
        case,
        swaps: 0,
        with: Bill::default(),
        without: Bill::default(),
    };
    for turn in 0.. {
        assert!(turn < 3_000, "{} swaps in {turn} turns", compared.swaps);
        let said = match turn {
            0 => FACT.to_owned(),
            _ => chatter(turn, case.words),
        };
        tokio::time::sleep(pause(case)).await;
        let got = here.say(&with, &said).await;
        let epoch = got.told("x-throughline-epoch").unwrap_or("0");
        let swaps: u64 = epoch.parse().unwrap();
        if fits {
            fits = there.has_said(&without, &said).await;
        }
        if fits {
            compared.swaps = swaps;
            compared.with = Bill::of(&with);
            compared.without = Bill::of(&without);
        }
        if swaps >= case.windows || !fits {
            break;
        }
    }
    let got = here.say(&with, QUESTION).await;
    let answer = serde_json::to_string(&here.read(&got)).unwrap();
    assert!(answer.contains("eu-north-3"), "{case:?}: {answer}");
    assert_eq!(with.refused(), 0, "{case:?}");
    compared
}

fn case(wire: Wire, model: &'static str, caching: Caching, window: u64, lines: usize) -> Case {
    Case {
        wire,
        model,
        caching,
        window,
        lines,
        words: 60,
        windows: 10,
    }
}

/// Clients of each wire.
const CLIENTS: [(Wire, &str, Caching); 9] = [
    (Wire::Anthropic, "claude-sonnet-5", Caching::Warm),
    (Wire::Anthropic, "claude-opus-5-5", Caching::Warm),
    (Wire::Anthropic, "claude-sonnet-5", Caching::Cold),
    (Wire::Anthropic, "claude-sonnet-5", Caching::Never),
    (Wire::OpenAiChat, "gpt-5.4", Caching::Warm),
    (Wire::OpenAiChat, "gpt-5.4", Caching::Cold),
    (Wire::OpenAiResponses, "gpt-5.6-sol", Caching::Warm),
    (Wire::OpenAiResponses, "gpt-6.2-sol", Caching::Warm),
    (Wire::OpenAiResponses, "gpt-5.6-sol", Caching::Cold),
];

/// Ten windows, so small that there is little to save, cost less than without the proxy, whether the provider caches or
/// not.
async fn costs_less(clients: &[(Wire, &'static str, Caching)]) {
    for (wire, model, caching) in clients {
        let compared = compared(case(*wire, model, *caching, 20_000, 40)).await;
        assert!(compared.saved_permille() > 0, "{}", compared.row());
        // A model is asked about once for a swap, if that pays; now and then again before it.
        let updates = compared.with.updates as u64;
        assert!(updates <= compared.swaps * 2, "{}", compared.row());
        // What was saved is known still when the session was out of memory between two turns.
        assert!(updates > 0, "{}", compared.row());
    }
}

#[tokio::test(start_paused = true)]
async fn messages_cost_less_than_without_the_proxy() {
    costs_less(&CLIENTS[..4]).await;
}

#[tokio::test(start_paused = true)]
async fn chats_cost_less_than_without_the_proxy() {
    costs_less(&CLIENTS[4..6]).await;
}

#[tokio::test(start_paused = true)]
async fn responses_cost_less_than_without_the_proxy() {
    costs_less(&CLIENTS[6..]).await;
}

/// The same for clients that fill the window with two or three requests: hardly anything is saved before the next swap.
/// No model is paid for the first memories, and in all it costs about as much as without the proxy.
#[tokio::test(start_paused = true)]
async fn where_hardly_anything_is_saved_hardly_a_model_is_paid() {
    for (wire, model) in [
        (Wire::Anthropic, "claude-sonnet-5"),
        (Wire::OpenAiChat, "gpt-5.4"),
        (Wire::OpenAiResponses, "gpt-6.2-sol"),
    ] {
        let hasty = case(wire, model, Caching::Warm, 20_000, 160);
        let begun = compared(Case {
            windows: 3,
            ..hasty
        })
        .await;
        assert!(begun.with.updates <= 1, "{}", begun.row());
        let compared = compared(hasty).await;
        assert!(
            compared.with.memories * 10 <= compared.with.total() * 2,
            "{}",
            compared.row()
        );
        assert!(compared.saved_permille() > -150, "{}", compared.row());
    }
}

/// Models make the memories where windows are as large as they really are.
#[tokio::test(start_paused = true)]
async fn where_much_is_saved_a_model_makes_each_memory() {
    let case = Case {
        windows: 2,
        ..case(Wire::OpenAiChat, "gpt-5.4", Caching::Warm, 60_000, 40)
    };
    let compared = compared(case).await;
    assert!(
        (2..=4).contains(&compared.with.updates),
        "{}",
        compared.row()
    );
}

#[tokio::test(start_paused = true)]
#[ignore = "prints a table; takes minutes"]
async fn what_conversations_cost() {
    println!(
        "| client | cache | window | requests | swaps | updates a swap | conversation | memories | without | saved |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    for (window, lines, windows) in [
        (20_000, 40, 10),
        (36_000, 40, 10),
        (100_000, 120, 10),
        (200_000, 200, 5),
    ] {
        for (wire, model, caching) in CLIENTS {
            let case = Case {
                windows,
                ..case(wire, model, caching, window, lines)
            };
            println!("{}", compared(case).await.row());
        }
    }
}
