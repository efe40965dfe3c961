//! `throughline models`: what is known about models, and what a provider has.

mod provider;

use serde::Serialize;
use throughline_transcript::catalogue::{Confidence, Model, Money};

use crate::config::Config;
use crate::error::{Ending, Failure, Kind};
use crate::output::Console;
use crate::{arguments, connect, words};

pub(crate) fn run(arguments: &arguments::Models, console: &Console) -> Result<Ending, Failure> {
    if arguments.provider {
        return provider::run(arguments, console);
    }
    let catalogue = connect::catalogue(&arguments.wanted, &Config::read()?)?;
    let part = arguments
        .part
        .as_deref()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let matches = |model: &&Model| {
        let names = model.aliases.iter().chain([&model.id, &model.provider]);
        part.is_empty()
            || names
                .into_iter()
                .any(|name| name.to_ascii_lowercase().contains(&part))
    };
    let mut models: Vec<&Model> = catalogue.models().iter().filter(matches).collect();
    // A name as a request has it (a date, a vendor in front) is no part of the id.
    if models.is_empty() {
        models.extend(catalogue.find(&part));
    }
    if models.is_empty() {
        return Err(Failure::new(
            Kind::NothingToDo,
            format!("no known model has {part:?} in its name"),
        )
        .hint("`throughline models` lists them all; --catalogue FILE adds yours"));
    }
    if arguments.json {
        let models = models.into_iter().map(Form::of).collect();
        console.print_json(&Document {
            schema: "throughline.models/1",
            models,
        })?;
    } else {
        let rows = models.into_iter().map(row).collect();
        let header = [
            "model",
            "provider",
            "window",
            "output",
            "in $/M",
            "out $/M",
            "cached $/M",
            "as of",
            "sure",
            "source",
        ];
        let header = if console.is_stdout_terminal {
            &header[..9]
        } else {
            &header[..]
        };
        console.print(&console.table(header, rows))?;
    }
    Ok(Ending::Done)
}

fn row(model: &Model) -> Vec<String> {
    let price = |choose: fn(&throughline_transcript::catalogue::Prices) -> Money| {
        model
            .prices
            .as_ref()
            .map(|prices| choose(prices).dollars().to_string())
            .unwrap_or_default()
    };
    vec![
        model.id.clone(),
        model.provider.clone(),
        words::number(model.window),
        model.output_max.map(words::number).unwrap_or_default(),
        price(|prices| prices.input),
        price(|prices| prices.output),
        price(|prices| prices.cache_read),
        model.date.clone(),
        confidence(model.confidence).to_owned(),
        model.source.clone(),
    ]
}

fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Low => "low",
        Confidence::Medium => "medium",
        Confidence::High => "high",
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    models: Vec<Form<'a>>,
}

/// One model. Prices are US dollars per million tokens.
#[derive(Serialize)]
struct Form<'a> {
    id: &'a str,
    provider: &'a str,
    aliases: &'a [String],
    window: u64,
    input_max: Option<u64>,
    output_max: Option<u64>,
    prices: Option<Prices>,
    source: &'a str,
    date: &'a str,
    confidence: &'static str,
    notes: Option<&'a str>,
}

#[derive(Serialize)]
struct Prices {
    input: f64,
    output: f64,
    cache_write: f64,
    cache_write_long: f64,
    cache_read: f64,
}

impl<'a> Form<'a> {
    fn of(model: &'a Model) -> Self {
        Self {
            id: &model.id,
            provider: &model.provider,
            aliases: &model.aliases,
            window: model.window,
            input_max: model.input_max,
            output_max: model.output_max,
            prices: model.prices.as_ref().map(|prices| Prices {
                input: prices.input.dollars(),
                output: prices.output.dollars(),
                cache_write: prices.cache_write.dollars(),
                cache_write_long: prices.cache_write_long.dollars(),
                cache_read: prices.cache_read.dollars(),
            }),
            source: &model.source,
            date: &model.date,
            confidence: confidence(model.confidence),
            notes: model.notes.as_deref(),
        }
    }
}
