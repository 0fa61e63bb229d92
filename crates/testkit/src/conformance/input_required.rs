//! Tools whose questions travel in the result. This is how clients of the sessionless versions are
//! asked. The keys are the suite's. Parking a call and signing its state happen elsewhere.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{Context, ElicitResult, Tool, ToolError, question, tool};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        test_input_required_result_elicitation(),
        test_input_required_result_sampling(),
        test_input_required_result_list_roots(),
        test_input_required_result_request_state(),
        test_input_required_result_multiple_inputs(),
        test_input_required_result_multi_round(),
        test_input_required_result_tampered_state(),
        test_input_required_result_capabilities(),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Color {
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    ok: bool,
}

/// Asks for a name.
#[tool]
async fn test_input_required_result_elicitation(ctx: Context) -> Result<String, ToolError> {
    let name = accepted(ctx.elicit::<Name>("user_name", "What is your name?").await?)?.name;
    Ok(format!("Hello, {name}!"))
}

/// Asks the caller's model.
#[tool]
async fn test_input_required_result_sampling(ctx: Context) -> Result<String, ToolError> {
    let text = ctx.sample_text("capital_question", "What is the capital of France?", 100).await?;
    Ok(format!("Sampling result: {text}"))
}

/// Asks for the roots.
#[tool]
async fn test_input_required_result_list_roots(ctx: Context) -> Result<String, ToolError> {
    Ok(format!("Found {} root(s)", ctx.roots("client_roots").await?.len()))
}

/// Asks for a confirmation.
#[tool]
async fn test_input_required_result_request_state(ctx: Context) -> Result<String, ToolError> {
    let confirmation = accepted(ctx.elicit::<Confirmation>("confirm", "Please confirm").await?)?;
    Ok(format!("state-ok, confirmed: {}", confirmation.ok))
}

/// Asks the person, the model and the client's roots in one round.
#[tool]
async fn test_input_required_result_multiple_inputs(ctx: Context) -> Result<String, ToolError> {
    let questions = vec![
        question::form::<Name>("user_name", "What is your name?")?,
        question::prompt("greeting", "Generate a greeting", 50),
        question::roots("client_roots"),
    ];
    let answers = ctx.ask(questions).await?;
    let name = accepted(answers.form::<Name>("user_name")?)?.name;
    let greeting = answers.sampling_result("greeting")?.text();
    let roots = answers.roots("client_roots")?.len();
    Ok(format!("{greeting} {name}, {roots} root(s)"))
}

/// Asks two questions in sequence.
#[tool]
async fn test_input_required_result_multi_round(ctx: Context) -> Result<String, ToolError> {
    let name = accepted(ctx.elicit::<Name>("step1", "Step 1: What is your name?").await?)?.name;
    let color = accepted(ctx.elicit::<Color>("step2", "Step 2: What is your favorite color?").await?)?.color;
    Ok(format!("{name} likes {color}"))
}

/// Asks for a confirmation whose state must come back as it was sent.
#[tool]
async fn test_input_required_result_tampered_state(ctx: Context) -> Result<String, ToolError> {
    let confirmation = accepted(ctx.elicit::<Confirmation>("confirm", "Please confirm").await?)?;
    Ok(format!("integrity-ok, confirmed: {}", confirmation.ok))
}

/// Asks whatever the caller can answer.
#[tool]
async fn test_input_required_result_capabilities(ctx: Context) -> Result<String, ToolError> {
    let can = ctx.capabilities().clone();
    if can.elicit_form {
        let name = accepted(ctx.elicit::<Name>("user_name", "What is your name?").await?)?.name;
        return Ok(format!("Hello, {name}!"));
    }
    if can.sample {
        return ctx.sample_text("greeting", "Generate a greeting", 50).await;
    }
    Ok(format!("Found {} root(s)", ctx.roots("client_roots").await?.len()))
}

fn accepted<T>(answer: ElicitResult<T>) -> Result<T, ToolError> {
    match answer {
        ElicitResult::Accepted(content) => Ok(content),
        ElicitResult::Declined | ElicitResult::Cancelled => {
            Err(ToolError::failed("the question was not answered"))
        }
    }
}
