//! A browser whose user approves everything: it opens the address and follows one redirect.

use std::sync::Arc;

use reqwest::header::LOCATION;
use reqwest::redirect::Policy;
use toolyard_upstream::{LoginPrompt, LoginPrompter};

pub(super) fn auto_approve_prompter() -> LoginPrompter {
    Arc::new(|visit: LoginPrompt| {
        tokio::spawn(async move {
            let http = reqwest::Client::builder().redirect(Policy::none()).build().ok()?;
            let response = http.get(&visit.address).send().await.ok()?;
            let sent_to = response.headers().get(LOCATION)?.to_str().ok()?.to_owned();
            http.get(sent_to).send().await.ok()
        });
    })
}
