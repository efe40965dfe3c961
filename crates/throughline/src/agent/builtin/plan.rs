//! The plan of the work.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::agent::tool::{CallContext, Tool, ToolError};

/// The tool `update_plan`.
#[derive(Clone, Copy, Debug)]
pub struct UpdatePlan;

/// Lets the model write its plan down. It keeps nothing itself: memories carry the newest plan on.
#[must_use]
pub fn update_plan() -> UpdatePlan {
    UpdatePlan
}

/// A plan.
#[derive(Deserialize, JsonSchema)]
#[schemars(description = "")]
pub struct PlanInput {
    /// All steps, in order; the list replaces the one before.
    plan: Vec<Step>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(description = "")]
struct Step {
    /// What is to be done, in some words.
    step: String,
    status: Status,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[schemars(description = "")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

impl Tool for UpdatePlan {
    type Input = PlanInput;

    fn name(&self) -> &str {
        "update_plan"
    }

    fn description(&self) -> &str {
        "Notes the plan of work that takes several steps, and how far it is. Call it when the plan is made, and whenever a \
         step begins or is completed."
    }

    async fn call(&self, input: PlanInput, _: CallContext) -> Result<String, ToolError> {
        if input.plan.iter().any(|step| step.step.trim().is_empty()) {
            return Err(ToolError::new("a step has no words"));
        }
        let count = |status| {
            let steps = input.plan.iter();
            steps.filter(|step| step.status == status).count()
        };
        Ok(format!(
            "The plan is noted: {} completed, {} in progress, {} pending.",
            count(Status::Completed),
            count(Status::InProgress),
            count(Status::Pending)
        ))
    }
}
