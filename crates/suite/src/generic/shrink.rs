//! Makes a failing value smaller, step by step. The caller decides whether a candidate still fails.

use std::collections::{HashSet, VecDeque};

use serde_json::{Map, Value, json};

use super::compact::compact;

/// How many members of a list or object are shrunk one by one.
const MOST_MEMBERS: usize = 24;

/// The search for the smallest value that still fails.
#[derive(Debug)]
pub(crate) struct Shrinker {
    /// The values that fail, the smallest last.
    failing: Vec<Value>,
    pending: VecDeque<Value>,
    /// Candidates that were tried, in their printed form.
    tried: HashSet<String>,
}

impl Shrinker {
    pub(crate) fn new(failing: Value) -> Self {
        let tried = HashSet::from([compact(&failing).to_string()]);
        let pending = candidates(&failing).into();
        Self { failing: vec![failing], pending, tried }
    }

    /// Returns the next smaller value to try.
    pub(crate) fn next_candidate(&mut self) -> Option<Value> {
        while let Some(candidate) = self.pending.pop_front() {
            if self.tried.insert(compact(&candidate).to_string()) {
                return Some(candidate);
            }
        }
        None
    }

    /// Continues from a candidate, because it fails too.
    pub(crate) fn accept(&mut self, candidate: Value) {
        self.pending = candidates(&candidate).into();
        self.failing.push(candidate);
    }

    /// Returns the values that failed, the smallest first.
    pub(crate) fn into_failing(mut self) -> Vec<Value> {
        self.failing.reverse();
        self.failing
    }
}

/// Returns smaller values, the smallest first.
fn candidates(value: &Value) -> Vec<Value> {
    match value {
        Value::Null | Value::Bool(false) => Vec::new(),
        Value::Bool(true) => vec![json!(false)],
        Value::Number(_) => smaller_numbers(value),
        Value::String(text) => shorter_texts(text),
        Value::Array(items) => smaller_lists(items),
        Value::Object(members) => smaller_objects(members),
    }
}

fn smaller_numbers(value: &Value) -> Vec<Value> {
    if let Some(number) = value.as_i64() {
        let mut all: Vec<i64> = Vec::new();
        if number < 0 {
            all.extend(number.checked_neg());
        }
        let mut distance = number;
        while distance != 0 {
            all.push(number - distance);
            distance /= 2;
        }
        return all.into_iter().map(Value::from).collect();
    }
    match value.as_f64() {
        Some(number) if number != 0.0 => {
            let mut all = vec![json!(0), json!(1)];
            if number.trunc() != number && number.abs() < 1e15 {
                #[allow(clippy::cast_possible_truncation, reason = "the range was checked")]
                all.push(json!(number.trunc() as i64));
            }
            if number.abs() > 1.0 {
                all.push(json!(number / 2.0));
            }
            all
        }
        _ => Vec::new(),
    }
}

fn shorter_texts(text: &str) -> Vec<Value> {
    let letters: Vec<char> = text.chars().collect();
    let mut all = Vec::new();
    // Removes everything, then half, then a quarter and so on, so that the shortest failing length
    // is found in few steps.
    let mut removed = letters.len();
    while removed > 0 {
        all.push(Value::String(letters[..letters.len() - removed].iter().collect()));
        removed /= 2;
    }
    // A failure can depend on the end of a text.
    if (2..=64).contains(&letters.len()) {
        all.push(Value::String(letters[letters.len() / 2..].iter().collect()));
        all.push(Value::String(letters[1..].iter().collect()));
    }
    if letters.iter().any(|letter| *letter != 'a') {
        all.push(Value::String("a".repeat(letters.len())));
    }
    all
}

fn smaller_lists(items: &[Value]) -> Vec<Value> {
    let mut all = Vec::new();
    let mut removed = items.len();
    while removed > 0 {
        all.push(Value::Array(items[..items.len() - removed].to_vec()));
        removed /= 2;
    }
    for index in 0..items.len().min(MOST_MEMBERS) {
        let mut fewer = items.to_vec();
        fewer.remove(index);
        all.push(Value::Array(fewer));
    }
    for (index, item) in items.iter().enumerate().take(MOST_MEMBERS) {
        for smaller in candidates(item) {
            let mut changed = items.to_vec();
            changed[index] = smaller;
            all.push(Value::Array(changed));
        }
    }
    all
}

fn smaller_objects(members: &Map<String, Value>) -> Vec<Value> {
    let mut all = Vec::new();
    // Without all members, then without one half of them.
    let half = members.len() / 2;
    let part = |first: usize, last: usize| {
        let kept = members.iter().enumerate().filter(|(index, _)| (first..last).contains(index));
        Value::Object(kept.map(|(_, (key, value))| (key.clone(), value.clone())).collect())
    };
    if members.len() > 3 {
        all.extend([part(0, 0), part(0, half), part(half, members.len())]);
    }
    for key in members.keys().take(MOST_MEMBERS) {
        let mut fewer = members.clone();
        fewer.shift_remove(key);
        all.push(Value::Object(fewer));
    }
    for (key, value) in members.iter().take(MOST_MEMBERS) {
        for smaller in candidates(value) {
            let mut changed = members.clone();
            changed.insert(key.clone(), smaller);
            all.push(Value::Object(changed));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Shrinker;

    fn shrink(start: Value, fails: impl Fn(&Value) -> bool) -> (Value, usize) {
        assert!(fails(&start));
        let (mut shrinker, mut attempts) = (Shrinker::new(start), 0);
        while let Some(candidate) = shrinker.next_candidate() {
            attempts += 1;
            if fails(&candidate) {
                shrinker.accept(candidate);
            }
        }
        (shrinker.into_failing().remove(0), attempts)
    }

    #[test]
    fn the_shortest_failing_text_is_found_in_few_steps() {
        let start = json!({"text": "a".repeat(100_000), "other": [1, 2], "more": "x"});
        let fails = |value: &Value| value["text"].as_str().is_some_and(|text| text.len() > 5_000);
        let (smallest, attempts) = shrink(start, fails);
        assert_eq!(smallest, json!({"text": "a".repeat(5_001)}));
        assert!(attempts < 80, "{attempts}");
    }

    #[test]
    fn everything_that_does_not_matter_is_removed() {
        let start = json!({"a": "", "b": true, "c": {"d": [5, -7, 9.5]}, "e": "üñí"});
        let (smallest, _) = shrink(start.clone(), |value| value["a"] == json!(""));
        assert_eq!(smallest, json!({"a": ""}));
        let (smallest, _) = shrink(start.clone(), |value| {
            value["c"]["d"].as_array().is_some_and(|all| all.iter().any(|item| item.as_i64() < Some(0)))
        });
        assert_eq!(smallest, json!({"c": {"d": [-1]}}));
        let (smallest, _) = shrink(start, |value| value["e"].as_str().is_some_and(|text| !text.is_ascii()));
        assert_eq!(smallest["e"].as_str().map(|text| text.chars().count()), Some(1));
    }

    #[test]
    fn many_members_are_removed_in_few_steps() {
        let members = (0..500).map(|number| (format!("p{number}"), json!("a"))).collect();
        let start = Value::Object(members);
        assert_eq!(shrink(start.clone(), |_| true), (json!({}), 1));
        let (smallest, attempts) = shrink(start, |value| value.get("p321").is_some());
        assert_eq!(smallest, json!({"p321": ""}));
        assert!(attempts < 60, "{attempts}");
    }

    #[test]
    fn numbers_shrink_toward_zero_until_they_pass() {
        assert_eq!(shrink(json!(i64::MIN), |value| value.as_i64() != Some(0)).0, json!(1));
        assert_eq!(shrink(json!(1_000_000), |value| value.as_i64() > Some(1_234)).0, json!(1_235));
        assert_eq!(shrink(json!(0.5), |value| value.as_f64() != Some(0.0)).0, json!(1));
    }
}
