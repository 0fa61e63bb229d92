//! The replicas of a yard in short: how many there are, and what is wrong with them.

use serde_json::Value;

/// What a list of replicas says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplicaSummary {
    /// The name of each replica, with what is special about it.
    pub replicas: Vec<String>,
    /// What needs attention.
    pub problems: Vec<String>,
}

impl ReplicaSummary {
    /// Reads the event `replicas` or the response to `mcp_replicas`. Returns `None` if the yard runs
    /// as one process.
    pub fn read(list: &Value) -> Option<Self> {
        let replicas = list["replicas"].as_array().filter(|replicas| !replicas.is_empty())?;
        let mut summary = Self::default();
        for replica in replicas {
            let name = replica["name"].as_str().unwrap_or_default();
            let mut problems = Vec::new();
            let differences = replica["differences"].as_array().into_iter().flatten();
            let differences: Vec<&str> = differences.filter_map(Value::as_str).collect();
            if !differences.is_empty() {
                problems.push(format!("different {}", differences.join(", ")));
            }
            if replica["connected"] == false {
                problems.push("not connected".to_owned());
            }
            summary.problems.extend(problems.iter().map(|problem| format!("{name}: {problem}")));
            if replica["state"] == "draining" {
                problems.insert(0, "draining".to_owned());
            }
            summary.replicas.push(match problems.is_empty() {
                true => name.to_owned(),
                false => format!("{name} ({})", problems.join("; ")),
            });
        }
        if list["store"] == "unavailable" {
            summary.problems.insert(0, "store unavailable".to_owned());
        }
        Some(summary)
    }

    /// Returns everything in one line.
    pub fn line(&self) -> String {
        let store = self.problems.first().filter(|first| *first == "store unavailable");
        let store = store.map(|store| format!("; {store}")).unwrap_or_default();
        format!("{}{store}", self.replicas.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::ReplicaSummary;

    #[test]
    fn what_is_special_about_a_replica_is_said_next_to_its_name() {
        let replica = |name: &str, state: &str, differences: Value, connected: bool| json!({"name": name, "state": state, "differences": differences, "connected": connected});
        let replicas = [
            replica("a", "ready", json!([]), true),
            replica("b", "draining", json!([]), true),
            replica("c", "ready", json!(["keys", "configuration"]), false),
        ];
        let summary = ReplicaSummary::read(&json!({"store": "unavailable", "replicas": replicas})).unwrap();
        let line = "a, b (draining), c (different keys, configuration; not connected); store unavailable";
        assert_eq!(summary.line(), line);
        assert_eq!(
            summary.problems,
            ["store unavailable", "c: different keys, configuration", "c: not connected"]
        );
        let fine = ReplicaSummary::read(&json!({"store": "available", "replicas": replicas[..2]})).unwrap();
        assert_eq!((fine.line(), fine.problems), ("a, b (draining)".to_owned(), Vec::new()));
        assert_eq!(ReplicaSummary::read(&json!({"replicas": []})), None);
    }
}
