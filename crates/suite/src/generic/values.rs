//! Values for one schema: a typical one, the edge values, and random ones.

use serde_json::{Map, Number, Value, json};

use super::input_schema::{Keywords, count, properties, required, types, variants};
use super::random::SeededRandom;
use crate::expect::JsonType;

/// How deep values are generated.
const DEEPEST: usize = 6;
/// How many edge values one schema has at most.
pub(crate) const MOST_EDGES: usize = 24;
/// The length of the longest generated texts.
const LONG_TEXT: usize = 100_000;
const LONG_LIST: usize = 200;
/// The size of the largest generated lists, in bytes.
const LARGEST_LIST: usize = 200_000;
/// Texts that may satisfy a pattern.
const PATTERN_GUESSES: [&str; 24] = [
    "a",
    "A",
    "0",
    "1",
    "aa",
    "abc",
    "ABC",
    "A1",
    "a1",
    "123",
    "1234",
    "a-b",
    "a_b",
    "a.b",
    "a/b",
    "/a",
    "#ffffff",
    "1.0.0",
    "v1.0.0",
    "12:00",
    "2024-01-31",
    "2024-01-31T12:00:00Z",
    "ada@example.com",
    "https://example.com/",
];

/// Generates values for the schemas of one document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueGenerator<'a> {
    pub(crate) root: &'a Value,
}

impl ValueGenerator<'_> {
    /// Returns an unremarkable value, as a user would pass it.
    pub(crate) fn typical(&self, name: &str, schema: &Value) -> Value {
        self.typical_at(name, schema, 0)
    }

    fn typical_at(&self, name: &str, schema: &Value, depth: usize) -> Value {
        let all = variants(self.root, schema);
        let Some(keywords) = all.first() else { return Value::Null };
        if let Some(given) = given_values(keywords).into_iter().next() {
            return given;
        }
        match types(keywords).first() {
            Some(JsonType::Null) => Value::Null,
            Some(JsonType::Boolean) => json!(true),
            Some(JsonType::Integer | JsonType::Number) => {
                let usual = if is_duration(name) { 0.0 } else { 1.0 };
                let fitting = Bounds::read(name, keywords).fit(usual);
                number(fitting, types(keywords).first().copied())
            }
            Some(JsonType::Array) => {
                let length = count(keywords, "minItems").unwrap_or(1).min(LONG_LIST);
                let item = keywords.get("items").cloned().unwrap_or_else(|| json!({"type": "string"}));
                let item = if depth < DEEPEST { self.typical_at(name, &item, depth + 1) } else { json!("a") };
                repeated_item(&item, length)
            }
            Some(JsonType::Object) => self.object(keywords, ObjectMembers::Required, depth),
            Some(JsonType::String) | None => Value::String(typical_text(name, keywords)),
        }
    }

    /// Returns an object with typical members.
    pub(crate) fn object(&self, keywords: &Keywords, which: ObjectMembers, depth: usize) -> Value {
        let needed = required(keywords);
        let mut members = Map::new();
        for (name, schema) in properties(keywords) {
            let is_needed = needed.contains(&name.as_str()) || is_duration(name);
            if is_needed || (which == ObjectMembers::All && depth < DEEPEST) {
                members.insert(name.clone(), self.typical_at(name, schema, depth + 1));
            }
        }
        for name in needed {
            members.entry(name).or_insert_with(|| json!("a"));
        }
        Value::Object(members)
    }

    /// Returns the values at which programs fail most often.
    pub(crate) fn edges(&self, name: &str, schema: &Value) -> Vec<Value> {
        let mut all = Vec::new();
        for keywords in variants(self.root, schema) {
            let given = given_values(&keywords);
            let is_closed = keywords.contains_key("enum") || keywords.contains_key("const");
            all.extend(given);
            if is_closed {
                continue;
            }
            let kinds = types(&keywords);
            let kinds = if kinds.is_empty() { vec![JsonType::String, JsonType::Null] } else { kinds };
            for kind in kinds {
                all.extend(self.edges_of(name, &keywords, kind));
            }
        }
        let mut unique: Vec<Value> = Vec::new();
        for value in all {
            if unique.len() < MOST_EDGES && !unique.contains(&value) {
                unique.push(value);
            }
        }
        unique
    }

    fn edges_of(&self, name: &str, keywords: &Keywords, kind: JsonType) -> Vec<Value> {
        match kind {
            JsonType::Null => vec![Value::Null],
            JsonType::Boolean => vec![json!(true), json!(false)],
            JsonType::Integer | JsonType::Number => number_edges(name, keywords, kind),
            JsonType::String => text_edges(name, keywords).into_iter().map(Value::String).collect(),
            JsonType::Array => {
                let item = keywords.get("items").cloned().unwrap_or_else(|| json!({}));
                let least = count(keywords, "minItems").unwrap_or(0).min(LONG_LIST);
                let most = count(keywords, "maxItems").unwrap_or(LONG_LIST).min(LONG_LIST);
                let typical = self.typical(name, &item);
                let mut lists = vec![repeated_item(&typical, least)];
                for edge in self.edges(name, &item).into_iter().take(6) {
                    lists.push(repeated_item(&edge, least.max(1)));
                }
                // Equal items would violate `uniqueItems`.
                lists.push(repeated_item(&typical, least.max(2)));
                lists.push(repeated_item(&typical, most));
                lists
            }
            JsonType::Object => {
                let mut all = vec![
                    self.object(keywords, ObjectMembers::Required, 1),
                    self.object(keywords, ObjectMembers::All, 1),
                ];
                if properties(keywords).is_empty() {
                    all.push(json!({"a": {"b": []}}));
                }
                all
            }
        }
    }

    /// Returns a random value.
    pub(crate) fn random(&self, name: &str, schema: &Value, random: &mut SeededRandom) -> Value {
        self.random_at(name, schema, random, 0)
    }

    fn random_at(&self, name: &str, schema: &Value, random: &mut SeededRandom, depth: usize) -> Value {
        let all = variants(self.root, schema);
        let Some(keywords) = random.pick(&all) else { return Value::Null };
        let given = given_values(keywords);
        let is_closed = keywords.contains_key("enum") || keywords.contains_key("const");
        if (is_closed || random.below(8) == 0)
            && let Some(value) = random.pick(&given)
        {
            return value.clone();
        }
        let kinds = types(keywords);
        match random.pick(&kinds).copied().unwrap_or(JsonType::String) {
            JsonType::Null => Value::Null,
            JsonType::Boolean => json!(random.is_heads()),
            kind @ (JsonType::Integer | JsonType::Number) => {
                let bounds = Bounds::read(name, keywords);
                let span = if random.is_heads() { 100.0 } else { bounds.most - bounds.least };
                #[allow(clippy::cast_precision_loss, reason = "a part of a range need not be exact")]
                let part = (random.next_number() >> 11) as f64 / (1_u64 << 53) as f64;
                let start = bounds.fit(if random.is_heads() { 0.0 } else { -span / 2.0 });
                number(bounds.fit(start + span * part), Some(kind))
            }
            JsonType::String => Value::String(random_text(name, keywords, random)),
            JsonType::Array => {
                let least = count(keywords, "minItems").unwrap_or(0).min(LONG_LIST);
                let most = count(keywords, "maxItems").unwrap_or(least + 4).min(least + 4);
                let length = least + random.below(most.saturating_sub(least) + 1);
                let item = keywords.get("items").cloned().unwrap_or_else(|| json!({}));
                let length = if depth < DEEPEST { length } else { least };
                let (mut items, mut size) = (Vec::new(), 0);
                while items.len() < length && size < LARGEST_LIST {
                    let value = self.random_at(name, &item, random, depth + 1);
                    size += value.to_string().len();
                    items.push(value);
                }
                Value::Array(items)
            }
            JsonType::Object => {
                let needed = required(keywords);
                let mut members = Map::new();
                for (name, schema) in properties(keywords) {
                    let is_needed = needed.contains(&name.as_str()) || is_duration(name);
                    if is_needed || (depth < DEEPEST && random.is_heads()) {
                        members.insert(name.clone(), self.random_at(name, schema, random, depth + 1));
                    }
                }
                Value::Object(members)
            }
        }
    }
}

/// Returns a list of the same item, with fewer items if it would be too large.
fn repeated_item(item: &Value, count: usize) -> Value {
    let size = item.to_string().len().max(1);
    Value::Array(vec![item.clone(); count.min((LARGEST_LIST / size).max(1))])
}

/// Which members a generated object has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectMembers {
    Required,
    All,
}

/// Returns the values that the schema itself gives.
fn given_values(keywords: &Keywords) -> Vec<Value> {
    let mut all = Vec::new();
    all.extend(keywords.get("const").cloned());
    for key in ["enum", "examples"] {
        all.extend(keywords.get(key).and_then(Value::as_array).into_iter().flatten().cloned());
    }
    // The default of a duration can be long.
    all.extend(keywords.get("default").filter(|value| !value.is_number()).cloned());
    all
}

/// Numbers with these names are times or amounts: large ones make every server slow.
fn is_amount(name: &str) -> bool {
    const WORDS: [&str; 16] = [
        "count", "limit", "step", "size", "length", "max", "min", "num", "times", "repeat", "page", "depth",
        "amount", "rounds", "lines", "top",
    ];
    let name = name.to_lowercase();
    is_duration(&name) || WORDS.iter().any(|word| name.contains(word)) || matches!(name.as_str(), "n" | "k")
}

fn is_duration(name: &str) -> bool {
    const WORDS: [&str; 9] =
        ["duration", "delay", "seconds", "timeout", "wait", "sleep", "interval", "millis", "minutes"];
    let name = name.to_lowercase();
    WORDS.iter().any(|word| name.contains(word)) || matches!(name.as_str(), "ms" | "sec" | "secs")
}

/// The range of generated numbers.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    least: f64,
    most: f64,
}

impl Bounds {
    fn read(name: &str, keywords: &Keywords) -> Self {
        let (least, most): (f64, f64) = match (is_duration(name), is_amount(name)) {
            (true, _) => (0.0, 1.0),
            (_, true) => (-1.0, 100.0),
            _ => (-9_007_199_254_740_991.0, 9_007_199_254_740_991.0),
        };
        let limit = |key: &str| keywords.get(key).and_then(Value::as_f64);
        let above = limit("exclusiveMinimum").map(|number| number + 1.0);
        let below = limit("exclusiveMaximum").map(|number| number - 1.0);
        let lower = limit("minimum").into_iter().chain(above).fold(f64::NEG_INFINITY, f64::max);
        let upper = limit("maximum").into_iter().chain(below).fold(f64::INFINITY, f64::min);
        let least = least.max(lower);
        // The limits of the schema come first, so a large minimum is used.
        Self { least, most: most.max(least).min(upper) }
    }

    fn fit(self, number: f64) -> f64 {
        number.max(self.least).min(self.most)
    }
}

fn number(value: f64, kind: Option<JsonType>) -> Value {
    let whole = kind == Some(JsonType::Integer) || value.fract() == 0.0;
    if whole && value.abs() <= 9_007_199_254_740_991.0 {
        #[allow(clippy::cast_possible_truncation, reason = "the range was checked")]
        return json!(value.trunc() as i64);
    }
    Number::from_f64(value).map_or(json!(0), Value::Number)
}

fn number_edges(name: &str, keywords: &Keywords, kind: JsonType) -> Vec<Value> {
    let bounds = Bounds::read(name, keywords);
    let mut all = vec![0.0, 1.0, -1.0, bounds.least, bounds.most];
    if !is_amount(name) {
        all.extend([2_147_483_647.0, 2_147_483_648.0, -2_147_483_648.0, 4_294_967_296.0]);
        if kind == JsonType::Number {
            all.extend([0.5, -1.5, 1e300]);
        }
    }
    if let Some(step) = keywords.get("multipleOf").and_then(Value::as_f64) {
        all.extend([step, 2.0 * step]);
    }
    let fits = |value: &f64| *value == 1e300 || bounds.fit(*value) == *value;
    all.into_iter().filter(fits).map(|value| number(value, Some(kind))).collect()
}

/// Returns texts of a format, which servers may parse.
fn format_samples(keywords: &Keywords) -> Option<Vec<String>> {
    let samples: &[&str] = match keywords.get("format")?.as_str()? {
        "date-time" => &["2024-02-29T23:59:60Z", "0001-01-01T00:00:00Z", "2024-01-31T12:00:00+14:00"],
        "date" => &["2024-02-29", "0001-01-01", "9999-12-31"],
        "time" => &["00:00:00Z", "23:59:59+14:00"],
        "duration" => &["PT0S", "P1Y2M3DT4H5M6S"],
        "email" | "idn-email" => &["ada@example.com", "a+b@example.com"],
        "hostname" | "idn-hostname" => &["example.com", "a"],
        "ipv4" => &["127.0.0.1", "255.255.255.255"],
        "ipv6" => &["::1", "fe80::1"],
        "uri" | "url" | "iri" => &["https://example.com/", "urn:a:b", "https://example.com/?q=%20#x"],
        "uri-reference" => &["/", "?a=b"],
        "uuid" => &["00000000-0000-0000-0000-000000000000", "123e4567-e89b-12d3-a456-426614174000"],
        "regex" => &["a*", "^$"],
        _ => return None,
    };
    Some(samples.iter().map(|&sample| sample.to_owned()).collect())
}

fn typical_text(name: &str, keywords: &Keywords) -> String {
    if let Some(sample) = format_samples(keywords).and_then(|samples| samples.into_iter().last()) {
        return sample;
    }
    let least = count(keywords, "minLength").unwrap_or(0).min(LONG_TEXT);
    if let Some(pattern) = keywords.get("pattern").and_then(Value::as_str) {
        let fits = |guess: &&&str| {
            regex::Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(guess))
                && guess.chars().count() >= least
        };
        return PATTERN_GUESSES
            .iter()
            .find(fits)
            .map_or_else(|| "a".repeat(least.max(1)), |guess| (*guess).to_owned());
    }
    let lower = name.to_lowercase();
    let by_name = [("timezone", "UTC"), ("url", "https://example.com/"), ("email", "ada@example.com")];
    let named = by_name.iter().find(|(word, _)| lower.contains(word)).map(|(_, text)| *text);
    match named {
        Some(text) if text.len() >= least => text.to_owned(),
        _ if lower == "time" && least <= 5 => "12:00".to_owned(),
        _ if lower.ends_with("path") && least <= 1 => ".".to_owned(),
        _ => "a".repeat(least.max(1)),
    }
}

fn text_edges(name: &str, keywords: &Keywords) -> Vec<String> {
    if let Some(samples) = format_samples(keywords) {
        return samples;
    }
    if keywords.contains_key("pattern") {
        let mut all: Vec<String> = PATTERN_GUESSES.iter().map(|&guess| guess.to_owned()).collect();
        all.insert(0, typical_text(name, keywords));
        return all;
    }
    let least = count(keywords, "minLength").unwrap_or(0);
    let most = count(keywords, "maxLength").unwrap_or(LONG_TEXT).min(LONG_TEXT);
    let mut all = vec!["a".repeat(least.min(LONG_TEXT)), "a".repeat(most)];
    all.extend(
        [
            "üñí 日本語 \u{1f600}\u{1f468}\u{200d}\u{1f469}",
            " ",
            "a\nb\tc\r\n",
            "'\"`\\;<>&|$(){}%s%n{{}}",
            "0",
            "null",
            "\u{0}\u{7}\u{1b}\u{202e}",
            "../../a",
            "-1",
            "[]",
            "{}",
        ]
        .map(str::to_owned),
    );
    all.retain(|text| (least..=most).contains(&text.chars().count()));
    all
}

fn random_text(name: &str, keywords: &Keywords, random: &mut SeededRandom) -> String {
    const LETTERS: &[char] = &[
        'a',
        'b',
        'z',
        'A',
        'Z',
        '0',
        '1',
        '9',
        ' ',
        '-',
        '_',
        '.',
        ',',
        '/',
        ':',
        '"',
        '\'',
        '\\',
        '\n',
        '{',
        '[',
        '<',
        '$',
        '%',
        'ü',
        'ß',
        '日',
        '\u{1f600}',
        '\u{301}',
    ];
    if keywords.contains_key("format") || keywords.contains_key("pattern") {
        return random.pick(&text_edges(name, keywords)).cloned().unwrap_or_default();
    }
    let least = count(keywords, "minLength").unwrap_or(0).min(LONG_TEXT);
    let most = count(keywords, "maxLength").unwrap_or(usize::MAX).min(least.saturating_add(24));
    let length = least + random.below(most.saturating_sub(least) + 1);
    (0..length).filter_map(|_| random.pick(LETTERS)).collect()
}
