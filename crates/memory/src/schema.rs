//! JSON Schemas of the forms that other programs read, generated from the structs that write them.
//!
//! They are published under `docs/schema`; a test fails if those files differ.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::json_form::MemoryForm;
use crate::render::object::ObjectForm;

/// The schema of the full JSON form.
#[must_use]
pub fn memory_schema() -> Value {
    schema_of::<MemoryForm>()
}

/// The schema of the compact object.
#[must_use]
pub fn object_schema() -> Value {
    schema_of::<ObjectForm>()
}

fn schema_of<T: schemars::JsonSchema>() -> Value {
    SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

#[cfg(test)]
mod tests;
