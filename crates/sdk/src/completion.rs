//! Argument completion for prompts and resource templates.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolyard_hub::{BoxFuture, Outcome, json as raw};

use crate::values::Values;

/// The maximum number of values in one completion result. The protocol sets this limit.
const MOST: usize = 100;

/// The completion functions, by argument.
#[derive(Clone, Default)]
pub(crate) struct Completions {
    suggest: Vec<(String, Suggest)>,
}

type Suggest = Arc<dyn Fn(String, Values) -> BoxFuture<'static, Vec<String>> + Send + Sync>;

impl Completions {
    pub(crate) fn add<F, Fut>(&mut self, argument: String, suggest: F)
    where
        F: Fn(String, Values) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        let suggest: Suggest = Arc::new(move |typed, known| Box::pin(suggest(typed, known)));
        self.suggest.push((argument, suggest));
    }

    pub(crate) fn add_list(&mut self, argument: String, values: Vec<String>) {
        self.add(argument, move |typed, _| {
            let begins = |value: &&String| value.to_lowercase().starts_with(&typed.to_lowercase());
            std::future::ready(values.iter().filter(begins).cloned().collect())
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.suggest.is_empty()
    }

    /// Completes a partial value. `context` has the arguments that are already filled in.
    pub(crate) async fn complete(
        &self,
        argument: &str,
        typed: String,
        context: Option<&RawValue>,
    ) -> Outcome {
        let mut values = match self.suggest.iter().find(|(name, _)| name == argument) {
            Some((_, suggest)) => suggest(typed, completed_arguments(context)).await,
            None => Vec::new(),
        };
        let total = values.len();
        values.truncate(MOST);
        let completion = json!({"values": values, "total": total, "hasMore": total > MOST});
        Outcome::success(raw::to_raw(&json!({"completion": completion})))
    }
}

fn completed_arguments(context: Option<&RawValue>) -> Values {
    #[derive(Deserialize)]
    struct CompletionContext {
        #[serde(default)]
        arguments: Map<String, Value>,
    }
    let known = context.and_then(|context| serde_json::from_str::<CompletionContext>(context.get()).ok());
    let texts = known.into_iter().flat_map(|known| known.arguments);
    texts.filter_map(|(name, value)| Some((name, value.as_str()?.to_owned()))).collect()
}
