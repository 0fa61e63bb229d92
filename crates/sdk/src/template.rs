//! Resource templates: a family of addresses, with code that reads any of them.

use std::fmt;
use std::sync::Arc;

use toolyard_hub::{BoxFuture, HubError, Outcome, TemplateOffer, UriTemplate};

use crate::completion::Completions;
use crate::contents::{self, Contents, IntoContents};
use crate::context::Context;
use crate::definition::DefinitionBuilder;
use crate::error::ToolError;
use crate::resource_metadata::ResourceMetadata;
use crate::values::Values;

/// A family of addresses that callers can read.
#[derive(Clone)]
pub struct ResourceTemplate {
    template: String,
    matcher: UriTemplate,
    pub(crate) metadata: ResourceMetadata,
    pub(crate) completions: Completions,
    read: TemplateHandler,
}

type TemplateHandler =
    Arc<dyn Fn(Values, Context) -> BoxFuture<'static, Result<Vec<Contents>, ToolError>> + Send + Sync>;

impl ResourceTemplate {
    /// The addresses that this URI template (RFC 6570) makes, and the code that reads one with those values.
    /// Values at which there is nothing answer [`ToolError::not_found`].
    pub fn new<F, Fut, C>(template: impl Into<String>, name: impl Into<String>, read: F) -> Self
    where
        F: Fn(Values, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<C, ToolError>> + Send + 'static,
        C: IntoContents,
    {
        let template = template.into();
        let read = move |values, context| {
            let contents = read(values, context);
            let contents = async move { contents.await.map(IntoContents::into_contents) };
            Box::pin(contents) as BoxFuture<'static, _>
        };
        Self {
            matcher: UriTemplate::parse(&template),
            template,
            metadata: ResourceMetadata::new(name),
            completions: Completions::default(),
            read: Arc::new(read),
        }
    }

    /// Suggests values for a variable. The code gets what was typed so far and the other values that are known.
    #[must_use]
    pub fn complete<F, Fut>(mut self, variable: impl Into<String>, suggest: F) -> Self
    where
        F: Fn(String, Values) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completions.add(variable.into(), suggest);
        self
    }

    /// Suggests those of a fixed list of values that begin with what was typed.
    #[must_use]
    pub fn complete_from<V: Into<String>>(
        mut self,
        variable: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.completions.add_list(variable.into(), values.into_iter().map(Into::into).collect());
        self
    }

    /// The template itself.
    pub fn template(&self) -> &str {
        &self.template
    }

    /// The values that make this address, if it is one of the family.
    pub(crate) fn match_uri(&self, uri: &str) -> Option<Values> {
        Some(self.matcher.extract_values(uri)?.into_iter().collect())
    }

    pub(crate) fn to_offer(&self) -> TemplateOffer {
        let mut definition = DefinitionBuilder::default();
        definition.put("uriTemplate", &self.template);
        self.metadata.write(&mut definition);
        definition.put_overrides(&self.metadata.overrides);
        TemplateOffer { definition: definition.into_raw(), permissions: self.metadata.permissions.clone() }
    }

    pub(crate) async fn read(
        &self,
        uri: &str,
        values: Values,
        context: Context,
    ) -> Result<Outcome, HubError> {
        let contents = (self.read)(values, context).await;
        contents::read_result(contents, uri, &self.metadata)
    }
}

impl fmt::Debug for ResourceTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceTemplate").field("template", &self.template).finish_non_exhaustive()
    }
}
