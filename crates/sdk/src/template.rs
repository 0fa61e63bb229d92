//! Resource templates: sets of URIs with one handler.

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

/// A set of URIs, described by a URI template (RFC 6570), that clients can read.
///
/// ```
/// use toolyard_sdk::{ResourceTemplate, ToolError};
///
/// let users = ResourceTemplate::new("demo://users/{id}", "users", |values, _ctx| async move {
///     match values.text("id") {
///         "1" => Ok("Ada"),
///         id => Err(ToolError::not_found(format!("user {id}"))),
///     }
/// })
/// .complete_from("id", ["1"]);
/// ```
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
    /// Creates a template. The function receives the values of the variables and returns
    /// [`ToolError::not_found`] if there is no resource for them.
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

    /// Completes a variable with a function. It receives the text typed so far and the other known
    /// values.
    #[must_use]
    pub fn complete<F, Fut>(mut self, variable: impl Into<String>, suggest: F) -> Self
    where
        F: Fn(String, Values) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completions.add(variable.into(), suggest);
        self
    }

    /// Completes a variable from a fixed list, by prefix and ignoring case.
    #[must_use]
    pub fn complete_from<V: Into<String>>(
        mut self,
        variable: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.completions.add_list(variable.into(), values.into_iter().map(Into::into).collect());
        self
    }

    /// Returns the URI template.
    pub fn template(&self) -> &str {
        &self.template
    }

    /// Returns the values of the variables if the template matches the URI.
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
