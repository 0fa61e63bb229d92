//! Resources: data that clients read by URI.

use std::fmt;
use std::sync::Arc;

use toolyard_hub::{BoxFuture, HubError, Outcome, ResourceOffer};

use crate::contents::{self, Contents, IntoContents};
use crate::context::Context;
use crate::definition::DefinitionBuilder;
use crate::error::ToolError;
use crate::resource_metadata::ResourceMetadata;

/// Data that clients read by URI.
///
/// ```
/// use toolyard_sdk::{Context, Resource};
///
/// let about = Resource::text("demo://about", "about", "A demo server").mime_type("text/plain");
/// let caller = Resource::dynamic("demo://caller", "caller", |ctx: Context| async move {
///     Ok(ctx.principal().id().to_owned())
/// });
/// ```
#[derive(Clone)]
pub struct Resource {
    uri: String,
    pub(crate) metadata: ResourceMetadata,
    size: Option<u64>,
    read: ResourceHandler,
}

type ResourceHandler =
    Arc<dyn Fn(Context) -> BoxFuture<'static, Result<Vec<Contents>, ToolError>> + Send + Sync>;

impl Resource {
    /// Creates a resource with constant text.
    pub fn text(uri: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let size = text.len() as u64;
        Self::fixed(uri, name, Contents::text(text)).size(size)
    }

    /// Creates a resource with constant bytes.
    pub fn binary(uri: impl Into<String>, name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        let size = bytes.len() as u64;
        Self::fixed(uri, name, Contents::bytes(bytes)).size(size)
    }

    /// Creates a resource whose contents a function produces on every read.
    pub fn dynamic<F, Fut, C>(uri: impl Into<String>, name: impl Into<String>, read: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<C, ToolError>> + Send + 'static,
        C: IntoContents,
    {
        let read = move |context| {
            let contents = read(context);
            let contents = async move { contents.await.map(IntoContents::into_contents) };
            Box::pin(contents) as BoxFuture<'static, _>
        };
        Self { uri: uri.into(), metadata: ResourceMetadata::new(name), size: None, read: Arc::new(read) }
    }

    fn fixed(uri: impl Into<String>, name: impl Into<String>, contents: Contents) -> Self {
        Self::dynamic(uri, name, move |_| {
            let contents = contents.clone();
            async move { Ok(contents) }
        })
    }

    /// Sets the size in bytes, before any encoding.
    #[must_use]
    pub fn size(mut self, size: u64) -> Self {
        self.size = Some(size);
        self
    }

    /// Returns the URI.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    pub(crate) fn to_offer(&self) -> ResourceOffer {
        let mut definition = DefinitionBuilder::default();
        definition.put("uri", &self.uri);
        self.metadata.write(&mut definition);
        definition.put_some("size", self.size.as_ref());
        definition.put_overrides(&self.metadata.overrides);
        ResourceOffer { definition: definition.into_raw(), permissions: self.metadata.permissions.clone() }
    }

    pub(crate) async fn read(&self, context: Context) -> Result<Outcome, HubError> {
        let contents = (self.read)(context).await;
        contents::read_result(contents, &self.uri, &self.metadata)
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("uri", &self.uri).finish_non_exhaustive()
    }
}
