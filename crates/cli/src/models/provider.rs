//! `throughline models --provider`: the provider's list next to the catalogue.

use serde::Serialize;
use throughline::providers::models::ModelInfo;
use throughline_transcript::catalogue::Model;

use crate::config::Config;
use crate::connect::{self, SIMULATED};
use crate::error::{Ending, Failure, Kind};
use crate::output::Console;
use crate::terminal;
use crate::{arguments, runtime, words};

pub(super) fn run(arguments: &arguments::Models, console: &Console) -> Result<Ending, Failure> {
    let config = Config::read()?;
    let wanted = &arguments.wanted;
    let catalogue = connect::catalogue(wanted, &config)?;
    let models = runtime::run(async {
        let model = wanted.model.as_deref().or(config.model.as_deref());
        if model == Some(SIMULATED) {
            return Err(Failure::new(
                Kind::NothingToDo,
                "the simulator has every model of the list",
            )
            .hint("`throughline models` lists them"));
        }
        match connect::server(wanted, &config, &catalogue)? {
            Ok(server) => Ok(connect::list(server, wanted, &config).await?.models),
            Err(no_key) => Err(connect::local::no_key(no_key.variable, model).await),
        }
    })?;
    let part = arguments.part.as_deref().unwrap_or_default().to_lowercase();
    let models: Vec<&ModelInfo> = models
        .iter()
        .filter(|model| model.id.to_lowercase().contains(&part))
        .collect();
    if models.is_empty() {
        return Err(Failure::new(
            Kind::NothingToDo,
            format!("the provider lists no model with {part:?} in its name"),
        ));
    }
    let known = |model: &ModelInfo| catalogue.find(&model.id);
    if arguments.json {
        console.print_json(&Document {
            schema: "throughline.provider-models/1",
            models: models
                .iter()
                .map(|model| Form::of(model, known(model)))
                .collect(),
        })?;
    } else {
        let rows = models
            .iter()
            .map(|model| row(model, known(model)))
            .collect();
        let header = ["model", "window", "output", "known as", "window known"];
        console.print(&terminal::harmless(&console.table(&header, rows)))?;
    }
    Ok(Ending::Done)
}

fn row(model: &ModelInfo, known: Option<&Model>) -> Vec<String> {
    let number = |value: Option<u64>| value.map(words::number).unwrap_or_default();
    vec![
        model.id.clone(),
        number(model.window),
        number(model.output_max),
        known.map(|known| known.id.clone()).unwrap_or_default(),
        number(known.map(|known| known.window)),
    ]
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    models: Vec<Form<'a>>,
}

/// A model as the provider lists it, and as it is known here.
#[derive(Serialize)]
struct Form<'a> {
    id: &'a str,
    window: Option<u64>,
    output_max: Option<u64>,
    known_as: Option<&'a str>,
    known_window: Option<u64>,
}

impl<'a> Form<'a> {
    fn of(model: &'a ModelInfo, known: Option<&'a Model>) -> Self {
        Self {
            id: &model.id,
            window: model.window,
            output_max: model.output_max,
            known_as: known.map(|known| known.id.as_str()),
            known_window: known.map(|known| known.window),
        }
    }
}
