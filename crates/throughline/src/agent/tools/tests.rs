use schemars::JsonSchema;
use serde::Deserialize;
use throughline_transcript::json::Raw;

use super::*;

/// What the model is not told.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Unit {
    Celsius,
    Kelvin,
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of the place.
    title: String,
    unit: Option<Unit>,
}

#[derive(Deserialize, JsonSchema)]
struct Weather {
    places: Vec<Place>,
}

struct Forecast;

impl Tool for Forecast {
    type Input = Weather;

    fn name(&self) -> &str {
        "forecast"
    }

    fn description(&self) -> &str {
        "Says how the weather will be."
    }

    async fn call(&self, input: Weather, _: CallContext) -> Result<String, ToolError> {
        let place = &input.places[0];
        Ok(match place.unit {
            Some(Unit::Kelvin) => format!("280 in {}", place.title),
            Some(Unit::Celsius) | None => format!("7 in {}", place.title),
        })
    }
}

fn rendered(wire: Wire) -> Value {
    let raw = Tools::new().with(Forecast).render(wire).remove(0);
    serde_json::from_str(raw.as_str()).unwrap()
}

#[test]
fn every_wire_has_its_form_of_a_tool_and_schemas_are_whole_and_without_rust() {
    let schema = json!({
        "type": "object",
        "properties": {
            "places": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "title": {"type": "string", "description": "The name of the place."},
                        "unit": {
                            "type": ["string", "null"],
                            "description": "What the model is not told.",
                            "enum": ["celsius", "kelvin", null],
                        },
                    },
                    "required": ["title"],
                },
            },
        },
        "required": ["places"],
    });
    let description = "Says how the weather will be.";
    assert_eq!(
        rendered(Wire::Anthropic),
        json!({"name": "forecast", "description": description, "input_schema": schema})
    );
    assert_eq!(
        rendered(Wire::OpenAiChat),
        json!({
            "type": "function",
            "function": {"name": "forecast", "description": description, "parameters": schema},
        })
    );
    assert_eq!(
        rendered(Wire::OpenAiResponses),
        json!({
            "type": "function",
            "name": "forecast",
            "description": description,
            "parameters": schema,
            "strict": false,
        })
    );
}

#[test]
fn a_later_tool_takes_the_place_of_one_with_its_name() {
    struct Other(&'static str);
    impl Tool for Other {
        type Input = Place;
        fn name(&self) -> &str {
            self.0
        }
        fn description(&self) -> &str {
            "Another one."
        }
        async fn call(&self, _: Place, _: CallContext) -> Result<String, ToolError> {
            Err(ToolError::new("no"))
        }
    }
    let tools = Tools::new()
        .with(Forecast)
        .with(Other("b"))
        .with(Other("forecast"));
    assert_eq!(tools.names().collect::<Vec<_>>(), ["forecast", "b"]);
    assert_eq!(
        tools.find("forecast").unwrap().description(),
        "Another one."
    );
}

#[test]
fn what_is_wrong_with_an_input_is_said_with_its_place() {
    let wrong = |input: &str| {
        let input = match Raw::parse(input.to_owned()) {
            Ok(raw) => ToolInput::Json(raw),
            Err(_) => ToolInput::Text(input.into()),
        };
        Arc::new(Forecast).prepare(&input).err()
    };
    assert_eq!(wrong(r#"{"places":[{"title":"Oslo"}]}"#), None);
    for (input, expected) in [
        ("", "missing field `places`"),
        (
            r#"{"places":[{"title":7}]}"#,
            "places[0].title: invalid type: integer `7`, expected a string",
        ),
        (
            r#"{"places":[{"title":"Oslo","unit":"rankine"}]}"#,
            "places[0].unit: unknown variant `rankine`, expected `celsius` or `kelvin`",
        ),
        (r#"{"places":["#, "places: EOF while parsing a list"),
    ] {
        let wrong = wrong(input).unwrap();
        assert!(wrong.starts_with(expected), "{input}: {wrong}");
    }
}
