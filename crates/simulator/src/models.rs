//! The models endpoints of both providers.

use serde_json::{Value, json};
use throughline_transcript::catalogue::{Abilities, Model};

use crate::api_error::{ApiError, Vendor};
use crate::options::Options;

pub(crate) fn answer(options: &Options, vendor: Vendor, path: &str) -> Result<Value, ApiError> {
    let of_vendor = |model: &&Model| match vendor {
        Vendor::Anthropic => model.provider == "anthropic",
        Vendor::OpenAi => model.provider != "anthropic",
    };
    let show = |model: &Model| match vendor {
        Vendor::Anthropic => anthropic(model, options),
        Vendor::OpenAi => openai(model),
    };
    if path == "/models" {
        let models: Vec<Value> = options
            .catalogue
            .models()
            .iter()
            .filter(of_vendor)
            .map(show)
            .collect();
        return Ok(match vendor {
            Vendor::Anthropic => json!({
                "first_id": models.first().map(|model| model["id"].clone()),
                "last_id": models.last().map(|model| model["id"].clone()),
                "has_more": false, "data": models,
            }),
            Vendor::OpenAi => json!({"object": "list", "data": models}),
        });
    }
    let Some(id) = path.strip_prefix("/models/") else {
        return Err(ApiError::new(404, "Not Found"));
    };
    match options.catalogue.find(id).filter(of_vendor) {
        Some(model) => Ok(show(model)),
        None => Err(match vendor {
            Vendor::Anthropic => ApiError::new(404, format!("model: {id}")),
            Vendor::OpenAi => ApiError::new(404, format!("The model '{id}' does not exist"))
                .code("model_not_found")
                .param("model"),
        }),
    }
}

fn anthropic(model: &Model, options: &Options) -> Value {
    let Abilities {
        thinking,
        on_demand_compaction,
        ..
    } = &model.abilities;
    let can = |is_so: bool| json!({"supported": is_so});
    let modes = thinking.as_deref().unwrap_or_default();
    let mode = |name: &str| can(modes.iter().any(|mode| mode == name));
    let compacts = *on_demand_compaction == Some(true);
    json!({
        "type": "model", "id": model.id, "display_name": model.id, "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": options.window.unwrap_or(model.input_max.unwrap_or(model.window)),
        "max_tokens": model.output_max,
        "capabilities": {
            "thinking": {
                "supported": !modes.is_empty(),
                "types": {
                    "adaptive": mode("adaptive"), "enabled": mode("enabled"), "disabled": mode("disabled"),
                    "between_tools": mode("between_tools"),
                },
            },
            "compaction": {"supported": compacts, "summarize": can(compacts)},
            "image_input": can(true), "pdf_input": can(true), "structured_outputs": can(true),
            "server_tools": can(true), "citations": can(true), "batch": can(false),
        },
    })
}

fn openai(model: &Model) -> Value {
    json!({"id": model.id, "object": "model", "created": 1_767_225_600, "owned_by": model.provider})
}
