//! Errors of tools as callers see them.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolyard_sdk::testing;
use toolyard_sdk::{Content, ErrorKind, HubError, Tool, ToolError, tool};

/// An error with a cause.
#[derive(Debug)]
struct Caused {
    text: &'static str,
    cause: Option<Box<Caused>>,
}

impl fmt::Display for Caused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

impl std::error::Error for Caused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

fn caused(texts: &[&'static str]) -> Caused {
    let cause = (texts.len() > 1).then(|| Box::new(caused(&texts[1..])));
    Caused { text: texts[0], cause }
}

#[tokio::test]
async fn a_failure_is_a_result_with_is_error() {
    let tool = Tool::new("t", || async { Err::<(), _>(ToolError::failed("the disk is full")) });
    let report = testing::call(tool, json!({})).await;
    assert!(report.is_failed());
    let expect = json!({"content": [{"type": "text", "text": "the disk is full"}], "isError": true});
    assert_eq!(report.body(), expect);
    let blocks = [Content::text("broken:"), Content::image(&[1], "image/png")];
    let tool = Tool::new("t", move || {
        let error = ToolError::failed_with(blocks.clone());
        async move { Err::<(), _>(error) }
    });
    let report = testing::call(tool, json!({})).await;
    assert_eq!(report.body()["content"][1]["data"], "AQ==");
}

#[tokio::test]
async fn any_error_becomes_a_failure_with_its_chain_of_causes() {
    #[tool]
    async fn reads() -> Result<String, ToolError> {
        Err(caused(&[
            "cannot load the plan",
            "cannot read plan.txt: no such file",
            "no such file",
            "errno 2",
        ]))?
    }
    let report = testing::call(reads(), json!({})).await;
    assert!(report.is_failed());
    assert_eq!(report.text(), "cannot load the plan: cannot read plan.txt: no such file: errno 2");
}

#[tokio::test]
async fn a_hub_error_passes_unchanged() {
    #[tool]
    async fn limited() -> Result<(), ToolError> {
        Err(HubError::new(ErrorKind::RateLimited, "too many")
            .with_suggestion("wait")
            .with_details(json!({"limit": 3})))?
    }
    let error = testing::call(limited(), json!({})).await.outcome.unwrap_err();
    assert_eq!(
        (error.kind(), error.message(), error.suggestion(), error.details()),
        (ErrorKind::RateLimited, "too many", Some("wait"), Some(&json!({"limit": 3})))
    );
    let forbidden = Tool::new("t", || async { Err::<(), _>(ToolError::forbidden("not on Sundays")) });
    assert_eq!(testing::call(forbidden, json!({})).await.error_kind(), Some(ErrorKind::Forbidden));
}

#[tokio::test]
async fn arguments_that_fit_the_schema_but_not_the_type_are_invalid() {
    #[derive(Deserialize, JsonSchema)]
    struct Address {
        #[schemars(with = "String")]
        address: std::net::IpAddr,
    }
    #[tool]
    async fn ping(params: Address) -> Result<String, ToolError> {
        Ok(params.address.to_string())
    }
    assert_eq!(testing::call(ping(), json!({"address": "127.0.0.1"})).await.text(), "127.0.0.1");
    let error = testing::call(ping(), json!({"address": "home"})).await.outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    let reason = "invalid IP address syntax at line 1 column 17";
    assert_eq!(error.message(), format!("input validation failed: {reason}"));
    assert_eq!(
        error.details(),
        Some(&json!({"field": "", "reason": reason, "provided": {"address": "home"}}))
    );
}

#[tokio::test]
async fn a_panic_of_a_tool_fails_only_its_call() {
    #[tool]
    async fn broken() -> Result<(), ToolError> {
        panic!("an index is out of bounds")
    }
    assert_eq!(testing::call(broken(), json!({})).await.error_kind(), Some(ErrorKind::Bug));
}

#[tokio::test]
async fn a_missing_item_is_a_failure_with_its_name() {
    let tool = Tool::new("t", || async { Err::<(), _>(ToolError::not_found("plan.txt")) });
    assert_eq!(testing::call(tool, json!({})).await.text(), "plan.txt was not found");
    let shown = format!("{:?}", ToolError::not_found("plan.txt"));
    assert_eq!(shown, "ToolError(the tool failed: plan.txt was not found)");
}
