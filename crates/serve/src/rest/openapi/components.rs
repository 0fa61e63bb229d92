//! The parts of the document that are the same for every yard: shapes of answers, headers, and what each status means.

use serde_json::{Map, Value, json};
use toolyard_hub::{CallStatus, SourceState};

/// What each status that is no success means, and the codes that come with it.
const REFUSALS: [(u16, &str, &[&str]); 15] = [
    (400, "Something in the request is wrong; the details say what and where.", &["VALIDATION_ERROR"]),
    (401, "A bearer token is needed.", &["AUTHENTICATION_ERROR"]),
    (403, "The caller may not do that.", &["PERMISSION_ERROR"]),
    (404, "There is no such thing.", &["TOOL_NOT_FOUND", "NOT_FOUND"]),
    (405, "This address is for other methods, which the header Allow names.", &["METHOD_NOT_ALLOWED"]),
    (408, "The body of the request came too slowly.", &["TIMEOUT_ERROR"]),
    (
        409,
        "The idempotency key was used otherwise, or the cursor is of a list that has changed.",
        &["VALIDATION_ERROR"],
    ),
    (413, "The body of the request is too large.", &["PAYLOAD_TOO_LARGE"]),
    (415, "The body must be application/json in UTF-8.", &["UNSUPPORTED_MEDIA_TYPE"]),
    (
        429,
        "Too much is asked at once; Retry-After says when to come back, if that is known.",
        &["RATE_LIMIT_ERROR"],
    ),
    (499, "The execution was cancelled.", &["CANCELLED"]),
    (500, "The tool failed, or this yard did.", &["EXECUTION_ERROR", "INTERNAL_ERROR"]),
    (501, "The tool asks its caller something, which is not possible over plain HTTP.", &["EXECUTION_ERROR"]),
    (502, "The server behind the tool cannot be reached.", &["EXECUTION_ERROR"]),
    (504, "The tool took longer than it may.", &["TIMEOUT_ERROR"]),
];

pub(super) fn headers() -> Value {
    json!({
        "Version": {"description": "The version of the protocol.", "schema": {"type": "string"}},
        "ExecutionId": {"description": "The execution, also before it is over.", "schema": {"type": "string"}},
        "RetryAfter": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 0}},
        "WwwAuthenticate": {"description": "How to authenticate.", "schema": {"type": "string"}},
        "Allow": {"description": "The methods of this address.", "schema": {"type": "string"}},
    })
}

pub(super) fn responses() -> Map<String, Value> {
    let response = |(status, description, codes): &(u16, &str, &[&str])| {
        let schema = json!({
            "allOf": [{"$ref": "#/components/schemas/Failure"}],
            "properties": {"error": {"properties": {"code": {"enum": codes}}}},
        });
        let mut response =
            json!({"description": description, "content": {"application/json": {"schema": schema}}});
        let header = match status {
            401 => Some(("WWW-Authenticate", "WwwAuthenticate")),
            405 => Some(("Allow", "Allow")),
            429 => Some(("Retry-After", "RetryAfter")),
            _ => None,
        };
        if let Some((name, of)) = header {
            response["headers"][name] = json!({"$ref": format!("#/components/headers/{of}")});
        }
        (status.to_string(), response)
    };
    REFUSALS.iter().map(response).collect()
}

pub(super) fn schemas() -> Map<String, Value> {
    let schemas = json!({
        "Metadata": {
            "type": "object",
            "properties": {
                "executionId": {"type": "string"},
                "duration": {"type": "integer", "minimum": 0, "description": "Milliseconds."},
                "timestamp": {"type": "string", "format": "date-time", "description": "When it began."},
                "resultViolations": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "In what the result is not what the tool's output schema promises.",
                },
            },
            "required": ["executionId", "duration", "timestamp"],
        },
        "Success": {
            "type": "object",
            "properties": {
                "success": {"const": true},
                "result": true,
                "chunks": {"type": "array", "description": "What the tool sent ahead of its result."},
                "chunksLeftOut": {"type": "integer", "description": "Pieces that there was no room for."},
                "content": {"type": "array", "items": {"type": "object"}},
                "metadata": {"$ref": "#/components/schemas/Metadata"},
            },
            "required": ["success", "metadata"],
        },
        "Failure": {
            "type": "object",
            "properties": {
                "success": {"const": false},
                "error": {
                    "type": "object",
                    "properties": {
                        "code": {"type": "string"},
                        "message": {"type": "string"},
                        "details": {"type": "object"},
                    },
                    "required": ["code", "message"],
                },
                "chunks": {"type": "array"},
                "metadata": {"$ref": "#/components/schemas/Metadata"},
            },
            "required": ["success", "error", "metadata"],
        },
        "Context": {
            "type": ["object", "null"],
            "properties": {
                "sessionId": {"type": ["string", "null"], "maxLength": 255},
                "userId": {"type": ["string", "null"], "maxLength": 255},
                "timeout": {
                    "type": ["number", "null"],
                    "exclusiveMinimum": 0,
                    "description": "Milliseconds; no more than this yard allows.",
                },
                "priority": {"enum": ["low", "normal", "high", null]},
                "idempotencyKey": {
                    "type": ["string", "null"],
                    "minLength": 1,
                    "maxLength": 255,
                    "description": "Within ten minutes, the same key leads to the first outcome and to no second call.",
                },
                "version": {
                    "type": ["string", "null"],
                    "minLength": 1,
                    "maxLength": 255,
                    "description": "The version of the tool; the newest if none is said.",
                },
            },
            "additionalProperties": false,
        },
        "Tool": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "title": {"type": "string"},
                "description": {"type": "string"},
                "inputSchema": {"type": "object"},
                "outputSchema": true,
                "annotations": true,
                "server": {"type": "string"},
                "metadata": {"type": "object"},
            },
            "required": ["name", "description", "inputSchema", "server"],
        },
        "ToolList": {
            "type": "object",
            "properties": {
                "version": {"const": "1.0"},
                "tools": {"type": "array", "items": {"$ref": "#/components/schemas/Tool"}},
                "nextCursor": {"type": "string"},
            },
            "required": ["version", "tools"],
        },
        "Execution": {
            "type": "object",
            "properties": {
                "executionId": {"type": "string"},
                "tool": {"type": "string"},
                "server": {"type": "string"},
                "state": {"enum": CallStatus::ALL.map(CallStatus::as_str)},
                "timestamp": {"type": "string", "format": "date-time"},
                "duration": {"type": "integer", "minimum": 0},
                "principal": {"type": "string"},
                "sessionId": {"type": "string"},
                "userId": {"type": "string"},
                "outcomeKept": {
                    "const": false,
                    "description": "Only the history knows of it, which keeps no outcomes.",
                },
                "error": {
                    "type": "object",
                    "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
                    "required": ["code", "message"],
                },
                "progress": {
                    "type": "object",
                    "properties": {
                        "progress": {"type": "number"},
                        "total": {"type": "number"},
                        "message": {"type": "string"},
                    },
                    "required": ["progress"],
                },
                "response": {
                    "anyOf": [{"$ref": "#/components/schemas/Success"}, {"$ref": "#/components/schemas/Failure"}],
                },
            },
            "required": ["executionId", "tool", "state", "timestamp", "duration"],
        },
        "ExecutionList": {
            "type": "object",
            "properties": {
                "executions": {"type": "array", "items": {"$ref": "#/components/schemas/Execution"}},
                "nextCursor": {"type": "string"},
            },
            "required": ["executions"],
        },
        "Server": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "state": {
                    "enum": SourceState::ALL.map(SourceState::as_str),
                },
                "tools": {"type": "integer"},
                "resources": {"type": "integer"},
                "templates": {"type": "integer"},
                "prompts": {"type": "integer"},
                "reason": {"type": "string"},
                "warnings": {"type": "array", "items": {"type": "string"}},
                "transport": {"type": "string"},
                "protocolVersion": {"type": "string"},
                "retryInMs": {"type": "integer", "minimum": 0},
            },
            "required": ["name", "state", "tools", "resources", "templates", "prompts"],
        },
        "ServerList": {
            "type": "object",
            "properties": {"servers": {"type": "array", "items": {"$ref": "#/components/schemas/Server"}}},
            "required": ["servers"],
        },
        "Readiness": {
            "type": "object",
            "properties": {
                "status": {"enum": ["ready", "starting", "stopping"]},
                "starting": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["status", "starting"],
        },
        "Health": {
            "type": "object",
            "properties": {"status": {"const": "ok"}},
            "required": ["status"],
        },
    });
    match schemas {
        Value::Object(schemas) => schemas,
        _ => Map::new(),
    }
}
