//! Metadata shared by resources and resource templates, and the methods that set it.

use serde::Serialize;
use toolyard_hub::json::{self, Object};

use crate::definition::{Annotations, DefinitionBuilder, Icon};
use crate::resource::Resource;
use crate::template::ResourceTemplate;

/// The metadata of a resource or a resource template.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResourceMetadata {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) annotations: Option<Annotations>,
    pub(crate) icons: Vec<Icon>,
    pub(crate) permissions: Vec<String>,
    pub(crate) overrides: Object,
}

impl ResourceMetadata {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    pub(crate) fn write(&self, definition: &mut DefinitionBuilder) {
        definition.put("name", &self.name);
        definition.put_some("title", self.title.as_ref());
        definition.put_some("description", self.description.as_ref());
        definition.put_some("mimeType", self.mime_type.as_ref());
        definition.put_some("annotations", self.annotations.as_ref());
        definition.put_all("icons", &self.icons);
    }
}

macro_rules! describes_itself {
    ($kind:ty) => {
        impl $kind {
            /// Sets the display name.
            #[must_use]
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.metadata.title = Some(title.into());
                self
            }

            /// Sets the description.
            #[must_use]
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.metadata.description = Some(description.into());
                self
            }

            /// Sets the MIME type.
            #[must_use]
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
                self.metadata.mime_type = Some(mime_type.into());
                self
            }

            /// Sets the audience and the priority.
            #[must_use]
            pub fn annotations(mut self, annotations: Annotations) -> Self {
                self.metadata.annotations = Some(annotations);
                self
            }

            /// Adds an icon.
            #[must_use]
            pub fn icon(mut self, icon: Icon) -> Self {
                self.metadata.icons.push(icon);
                self
            }

            /// Adds permissions. A caller needs all of them to see and to read the resource.
            #[must_use]
            pub fn permissions<P: Into<String>>(mut self, permissions: impl IntoIterator<Item = P>) -> Self {
                self.metadata.permissions.extend(permissions.into_iter().map(Into::into));
                self
            }

            /// Sets any member of the definition, byte for byte. An existing member is replaced in
            /// place, a new one is appended.
            #[must_use]
            pub fn definition_member<T: Serialize + ?Sized>(mut self, key: &str, value: &T) -> Self {
                self.metadata.overrides.set(key, json::to_raw(value));
                self
            }
        }
    };
}
describes_itself!(Resource);
describes_itself!(ResourceTemplate);
