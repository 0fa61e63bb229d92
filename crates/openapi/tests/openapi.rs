//! Documents in, tools out: what must hold for every document, and the conversion of each feature.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]

mod openapi {
    mod answers;
    mod corpus;
    mod documented;
    mod files;
    mod hostile;
    mod rules;
    mod schemas;
    mod soundness;
    mod tools;

    use serde_json::Value;
    use toolyard_openapi::{Conversion, ConvertSettings, DocumentLocation, LoadSettings, convert, load};

    /// Converts a document with default settings.
    #[track_caller]
    fn converted(text: &str) -> Conversion {
        converted_with(text, &ConvertSettings::default())
    }

    #[track_caller]
    fn converted_with(text: &str, settings: &ConvertSettings) -> Conversion {
        let location = DocumentLocation::Text { text: text.to_owned(), folder: None };
        let conversion = convert(&load(&location, &LoadSettings::default()).unwrap(), settings);
        soundness::check(&conversion).unwrap();
        conversion
    }

    /// Returns the definition of the tool with this name.
    #[track_caller]
    fn tool(conversion: &Conversion, name: &str) -> Value {
        let operation = conversion.operations.iter().find(|operation| operation.name == name);
        let names: Vec<&str> =
            conversion.operations.iter().map(|operation| operation.name.as_str()).collect();
        let operation = operation.unwrap_or_else(|| panic!("{name} is not among {names:?}"));
        serde_json::from_str(operation.definition.get()).unwrap()
    }

    /// Codes and pointers of the diagnostics, without notes.
    fn warnings(conversion: &Conversion) -> Vec<String> {
        let found = conversion
            .diagnostics
            .iter()
            .filter(|found| found.severity > toolyard_openapi::DiagnosticSeverity::Note);
        found.map(|found| format!("{} {}", found.code, found.pointer)).collect()
    }

    /// A document that uses many features, with a path `/broken` that tests may break.
    fn tools_document() -> String {
        serde_json::json!({
            "openapi": "3.1.0",
            "info": {"title": "All", "version": "1"},
            "servers": [{"url": "https://{host}/v1", "variables": {"host": {"default": "a", "enum": ["a", "b"]}}}],
            "security": [{"key": []}],
            "paths": {
                "/sound/{id}": {"get": {"operationId": "sound", "parameters": [
                    {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}
                ]}},
                "/broken/{id}": {
                    "parameters": [{"$ref": "#/components/parameters/Id"}],
                    "post": {
                        "operationId": "broken",
                        "tags": ["a"],
                        "summary": "s",
                        "parameters": [{"name": "q", "in": "query", "style": "form", "explode": false, "schema": {
                            "type": ["array", "null"], "items": {"type": "string", "enum": ["a", null], "pattern": "^a$"},
                            "minItems": 1
                        }}],
                        "requestBody": {"required": true, "content": {
                            "multipart/form-data": {
                                "schema": {"$ref": "#/components/schemas/Tree"},
                                "encoding": {"f": {"contentType": "image/png", "style": "form"}}
                            },
                            "application/xml": {"schema": {"type": "string"}}
                        }},
                        "responses": {
                            "200": {"$ref": "#/components/responses/Fine"},
                            "default": {"description": "bad"}
                        },
                        "security": [{"oauth": ["a"]}],
                        "callbacks": {}
                    }
                }
            },
            "components": {
                "parameters": {"Id": {"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}},
                "responses": {"Fine": {"description": "fine", "content": {"application/json": {"schema": {
                    "type": "array", "items": {"$ref": "#/components/schemas/Tree"}
                }}}}},
                "schemas": {"Tree": {
                    "type": "object",
                    "required": ["f"],
                    "properties": {
                        "f": {"type": "string", "format": "binary"},
                        "kids": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}},
                        "one": {
                            "oneOf": [{"$ref": "#/components/schemas/Tree"}, {"type": "number", "exclusiveMinimum": 1}],
                            "discriminator": {"propertyName": "k", "mapping": {"t": "#/components/schemas/Tree"}}
                        }
                    },
                    "dependentRequired": {"f": ["kids"]},
                    "patternProperties": {"^x": {"readOnly": true}}
                }},
                "securitySchemes": {
                    "key": {"type": "apiKey", "in": "query", "name": "k"},
                    "oauth": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "/t", "scopes": {"a": ""}}}}
                }
            }
        })
        .to_string()
    }
}
