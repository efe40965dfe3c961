//! The OpenAPI document of the admin API, made from [`ROUTES`] and from the types of requests and answers.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::API;
use crate::api::{ErrorAnswer, ROUTES, ROWS, ROWS_MAX, Route};

/// Where the schemas are in the document.
const SCHEMAS: &str = "/components/schemas";

/// A parameter of a route.
#[derive(Clone, Copy)]
pub(crate) struct Parameter {
    name: &'static str,
    description: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Integer,
    /// Rows of a page.
    Rows,
    Choice(&'static [&'static str]),
}

/// Rows before the first.
pub(crate) const SKIP: Parameter = Parameter::integer("skip", "Rows before the first.");
/// Rows at most.
pub(crate) const LIMIT: Parameter = Parameter {
    name: "limit",
    description: "Rows at most.",
    kind: Kind::Rows,
};

/// What the names in paths mean.
const NAMES: [Parameter; 4] = [
    Parameter::text(
        "id",
        "Id of the session, as in the list and in the header x-throughline-session.",
    ),
    Parameter::integer("position", "Index of the message, from 0."),
    Parameter::integer("version", "Number of the version."),
    Parameter::text("pin", "Id of the pin."),
];

impl Parameter {
    pub(crate) const fn text(name: &'static str, description: &'static str) -> Self {
        Self {
            name,
            description,
            kind: Kind::Text,
        }
    }

    pub(crate) const fn integer(name: &'static str, description: &'static str) -> Self {
        Self {
            name,
            description,
            kind: Kind::Integer,
        }
    }

    pub(crate) const fn choice(
        name: &'static str,
        description: &'static str,
        values: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            description,
            kind: Kind::Choice(values),
        }
    }

    fn value(self, place: &str) -> Value {
        let schema = match self.kind {
            Kind::Text => json!({ "type": "string" }),
            Kind::Integer => json!({ "type": "integer", "minimum": 0 }),
            Kind::Rows => {
                json!({ "type": "integer", "minimum": 1, "maximum": ROWS_MAX, "default": ROWS })
            }
            Kind::Choice(values) => json!({ "enum": values }),
        };
        let mut value = json!({
            "name": self.name,
            "in": place,
            "description": self.description,
            "schema": schema,
        });
        if place == "path" {
            value["required"] = json!(true);
        }
        value
    }
}

/// The document.
pub(crate) fn document() -> Value {
    let settings = || {
        SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = SCHEMAS.into();
            settings.meta_schema = None;
        })
    };
    let mut requests = settings().for_deserialize().into_generator();
    let mut answers = settings().for_serialize().into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in &ROUTES {
        let path = paths
            .entry(route.path)
            .or_insert_with(|| json!({ "parameters": path_parameters(route.path) }));
        path[route.method.to_lowercase()] = operation(route, &mut requests, &mut answers);
    }
    let mut schemas = requests.take_definitions(true);
    schemas.extend(answers.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Throughline admin API",
            "version": "1",
            "description": "What the dashboard shows and does, as JSON. Amounts are billionths of a dollar, times \
                milliseconds since 1970, sizes tokens.",
        },
        "servers": [{ "url": API }],
        "security": [{}, { "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Required if the proxy was started with a token.",
                },
            },
            "schemas": schemas,
        },
    })
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names
        .flat_map(|name| NAMES.iter().filter(move |known| known.name == name))
        .map(|parameter| parameter.value("path"))
        .collect()
}

fn operation(
    route: &Route,
    requests: &mut SchemaGenerator,
    answers: &mut SchemaGenerator,
) -> Value {
    let content = |schema: Schema| json!({ "application/json": { "schema": schema } });
    let error = json!({
        "description": "The error.",
        "content": content(answers.subschema_for::<ErrorAnswer>()),
    });
    let mut responses = Map::new();
    for (status, description) in route.answers {
        let answer = json!({
            "description": description,
            "content": content((route.answer)(answers)),
        });
        responses.insert(status.to_string(), answer);
    }
    if route.path.contains("{id}") {
        responses.insert("404".to_owned(), error.clone());
    }
    for status in route.errors {
        responses.insert(status.to_string(), error.clone());
    }
    responses.insert("default".to_owned(), error);
    let mut operation = json!({ "summary": route.summary, "responses": responses });
    if !route.description.is_empty() {
        operation["description"] = json!(route.description);
    }
    if !route.query.is_empty() {
        let query = route.query.iter().map(|parameter| parameter.value("query"));
        operation["parameters"] = query.collect();
    }
    if let Some(body) = &route.body {
        operation["requestBody"] = json!({
            "required": body.is_required,
            "content": content((body.schema)(requests)),
        });
    }
    operation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_described() {
        let document = document();
        for route in &ROUTES {
            let path = &document["paths"][route.path];
            let operation = &path[route.method.to_lowercase()];
            assert_eq!(operation["summary"], route.summary, "{}", route.path);
            assert!(operation["responses"]["default"].is_object());
            let named = path["parameters"].as_array().unwrap().len();
            assert_eq!(named, route.path.matches('{').count(), "{}", route.path);
        }
        let operations = document["paths"].as_object().unwrap().values();
        let described: usize = operations
            .map(|path| path.as_object().unwrap().len() - 1)
            .sum();
        assert_eq!(described, ROUTES.len());
    }

    /// Every reference leads to a schema, and every schema is one.
    #[test]
    fn references_resolve() {
        fn check(value: &Value, document: &Value) {
            match value {
                Value::Object(fields) => {
                    if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                        let pointer = reference.strip_prefix('#').unwrap();
                        assert!(document.pointer(pointer).is_some(), "{reference}");
                    }
                    fields.values().for_each(|value| check(value, document));
                }
                Value::Array(values) => values.iter().for_each(|value| check(value, document)),
                _ => {}
            }
        }
        let document = document();
        check(&document, &document);
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            let is_schema = schema.get("type").is_some()
                || schema.get("oneOf").is_some()
                || schema.get("enum").is_some();
            assert!(is_schema, "{name}: {schema}");
        }
    }

    /// Clients are generated from these names: none may go.
    #[test]
    fn published_schemas_and_fields_remain() {
        const PUBLISHED: [(&str, &str); 16] = [
            (
                "Detail",
                "can_undo covered epoch halt is_updating memory_tokens mode overhead_tokens pins ready_cover version",
            ),
            ("Diff", "added changed items removed unchanged"),
            ("Edit", "changes version"),
            ("Error", "error"),
            ("Hit", "number place session snippet"),
            (
                "Item",
                "id is_ledger is_pin message origin section status superseded_by texts touched",
            ),
            ("Marks", "hard limit soft window"),
            (
                "Memory",
                "covered created_ms markdown origin sections tokens version",
            ),
            ("Message", "at_ms blocks position role tokens"),
            ("Outcome", "id outcome version"),
            (
                "Preview",
                "covered_after covered_before diff is_prepared memory_tokens sections tokens_after tokens_before version",
            ),
            (
                "Session",
                "archive_tokens context_tokens created_ms id in_flight is_live is_ours marks messages model newest_version parent sums title updated_ms wire",
            ),
            (
                "Status",
                "is_ending main_nanodollars mode requests rewritten saved_tokens sessions_in_memory swaps unstored_bytes update_nanodollars without_nanodollars",
            ),
            (
                "Sums",
                "cache_read cache_write last_output last_prompt main_nanodollars output requests saved_tokens swaps uncached undone update_nanodollars updates without_nanodollars without_refused",
            ),
            ("Timeline", "events is_rewriting marks requests sums"),
            ("Version", "covered created_ms origin tokens version"),
        ];
        let document = document();
        for (name, fields) in PUBLISHED {
            let properties = &document["components"]["schemas"][name]["properties"];
            for field in fields.split(' ') {
                assert!(properties.get(field).is_some(), "{name}.{field}");
            }
        }
    }
}
