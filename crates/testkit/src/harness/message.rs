//! A message from the server: the original text and the parsed value.

use serde_json::Value;
use serde_json::value::RawValue;
use toolyard_hub::json::Object;

#[derive(Debug, Clone)]
pub struct Message {
    pub text: String,
    pub value: Value,
}

impl Message {
    pub fn new(text: &str) -> Self {
        let value = serde_json::from_str(text)
            // The probe sends one number that exceeds the range of a double, which `Value` cannot
            // hold.
            .or_else(|_| serde_json::from_str(&text.replace("1e400", "1e300")))
            .unwrap_or_else(|error| panic!("the server sent invalid JSON ({error}): {text:?}"));
        Self { text: text.to_owned(), value }
    }

    pub fn id(&self) -> &Value {
        &self.value["id"]
    }

    pub fn method(&self) -> Option<&str> {
        self.value["method"].as_str()
    }

    pub fn params(&self) -> &Value {
        &self.value["params"]
    }

    /// Whether it answers a request of the client.
    pub fn is_answer(&self) -> bool {
        self.method().is_none()
    }

    /// Returns the result. Panics on an error.
    pub fn result(&self) -> &Value {
        assert!(self.value.get("result").is_some(), "no result: {}", self.text);
        &self.value["result"]
    }

    /// Returns the error code. Panics on a result.
    pub fn code(&self) -> i64 {
        self.value["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {}", self.text))
    }

    /// Returns the text of the first content block.
    pub fn content(&self) -> &str {
        self.result()["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {}", self.text))
    }

    /// Returns the result exactly as the server wrote it.
    pub fn raw_result(&self) -> Box<RawValue> {
        let whole: Box<RawValue> = serde_json::from_str(&self.text).unwrap();
        Object::parse(&whole).unwrap().get("result").unwrap().to_owned()
    }
}
