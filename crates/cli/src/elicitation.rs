//! Answers elicitation requests of servers at this terminal: forms and URLs to open. Declines if
//! there is no terminal.

use std::io::{BufRead, Write};

use serde_json::{Map, Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    ErrorKind, HubError, Question, QuestionBatch, QuestionKind, Raw, RawAnswers, ToolParameter, parameters,
};

use crate::clean::{clean, clean_line};
use crate::terminal::{is_interactive, print_hint, print_note};

/// How often the user may enter an invalid value for one field.
const TRIES: usize = 5;

/// Answers a batch of questions without blocking other work.
pub(crate) async fn answer(ask: QuestionBatch) {
    let QuestionBatch { questions, reply } = ask;
    let answered = match is_interactive() {
        // A read from the terminal cannot be canceled, so it runs on its own thread.
        true => tokio::task::spawn_blocking(move || ask_person(&questions))
            .await
            .unwrap_or_else(|_| Ok(Vec::new())),
        false => decline(&questions),
    };
    let _ = reply.send(answered);
}

fn decline(questions: &[Question]) -> Result<RawAnswers, HubError> {
    questions.iter().map(|question| Ok((question.key.clone(), decline_question(question)?))).collect()
}

fn decline_question(question: &Question) -> Result<Raw, HubError> {
    match question.kind {
        QuestionKind::ElicitForm | QuestionKind::ElicitUrl => {
            let question_text = message(&params(question));
            print_note(&format!("the server asks: {}", clean_line(&question_text)));
            print_note("declined, because this command does not run in a terminal");
            print_hint("run it in a terminal to answer");
            Ok(to_raw(&json!({"action": "decline"})))
        }
        QuestionKind::Sample | QuestionKind::Roots => Err(unsupported_question(question.kind)),
    }
}

fn unsupported_question(kind: QuestionKind) -> HubError {
    let feature = if kind == QuestionKind::Sample { "sampling" } else { "roots" };
    HubError::new(ErrorKind::ClientCannot, format!("the command line does not support {feature}"))
}

fn ask_person(questions: &[Question]) -> Result<RawAnswers, HubError> {
    let mut answers = Vec::new();
    for question in questions {
        let params = params(question);
        let answer = match question.kind {
            QuestionKind::ElicitForm => ask_form(&params),
            QuestionKind::ElicitUrl => ask_to_open_url(&params),
            QuestionKind::Sample | QuestionKind::Roots => return Err(unsupported_question(question.kind)),
        };
        answers.push((question.key.clone(), to_raw(&answer)));
    }
    Ok(answers)
}

fn params(question: &Question) -> Value {
    serde_json::from_str(question.params.get()).unwrap_or_default()
}

fn message(params: &Value) -> String {
    params.get("message").and_then(Value::as_str).unwrap_or("something").to_owned()
}

fn ask_to_open_url(params: &Value) -> Value {
    let address = params.get("url").and_then(Value::as_str).unwrap_or_default();
    print_prompt(&format!("\nThe server asks: {}\nOpen this address:\n  {address}\n", message(params)));
    print_prompt("Done? [y/N] ");
    match read_line().as_deref() {
        Some("y" | "Y" | "yes") => json!({"action": "accept"}),
        _ => json!({"action": "decline"}),
    }
}

fn ask_form(params: &Value) -> Value {
    let schema = params.get("requestedSchema").cloned().unwrap_or_else(|| json!({}));
    print_prompt(&format!("\nThe server asks: {}\n", message(params)));
    print_prompt("(Press Enter to accept the default in brackets or to skip a field, Ctrl-D to decline)\n");
    let mut content = Map::new();
    for field in parameters(&to_raw(&schema)) {
        match ask_field(&field) {
            Some(Some(value)) => drop(content.insert(field.name.clone(), value)),
            Some(None) => {}
            None => return json!({"action": "decline"}),
        }
    }
    json!({"action": "accept", "content": content})
}

/// Asks for one field. The outer `None` means that the user declined, the inner `None` that the
/// field is omitted.
fn ask_field(field: &ToolParameter) -> Option<Option<Value>> {
    if let Some(description) = &field.description {
        print_prompt(&format!("  {}\n", clean_line(description)));
    }
    if !field.choices.is_empty() {
        let choices: Vec<String> = field.choices.iter().map(display_value).collect();
        print_prompt(&format!("  one of: {}\n", choices.join(", ")));
    }
    for _ in 0..TRIES {
        let usual =
            field.default.as_ref().map(|value| format!(" [{}]", display_value(value))).unwrap_or_default();
        let star = if field.required { "*" } else { "" };
        print_prompt(&format!("{}{star} ({}){usual}: ", clean_line(&field.name), clean_line(&field.kind)));
        let typed = read_line()?;
        match read_value(field, typed.trim()) {
            Ok(value) => return Some(value),
            Err(problem) => print_prompt(&format!("  {problem}\n")),
        }
    }
    None
}

/// Parses what the user typed for this field.
fn read_value(field: &ToolParameter, typed: &str) -> Result<Option<Value>, String> {
    if typed.is_empty() {
        return match &field.default {
            Some(default) => Ok(Some(default.clone())),
            None if field.required => Err("a value is required".to_owned()),
            None => Ok(None),
        };
    }
    let kind = field.kind.as_str();
    let value = match kind {
        "boolean" => match typed.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Value::Bool(true),
            "n" | "no" | "false" => Value::Bool(false),
            _ => return Err("enter yes or no".to_owned()),
        },
        "integer" => typed.parse::<i64>().map_err(|_| "not an integer".to_owned())?.into(),
        "number" => typed
            .parse::<f64>()
            .ok()
            .and_then(serde_json::Number::from_f64)
            .map(Value::Number)
            .ok_or_else(|| "not a number".to_owned())?,
        list if list.starts_with("array") => typed.split(',').map(|item| Value::from(item.trim())).collect(),
        _ => typed.into(),
    };
    if !field.choices.is_empty() && !value.is_array() && !field.choices.contains(&value) {
        return Err("not one of the choices".to_owned());
    }
    Ok(Some(value))
}

fn display_value(value: &Value) -> String {
    clean_line(&value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned))
}

fn print_prompt(text: &str) {
    let mut stderr = std::io::stderr();
    let _ = stderr.write_all(clean(text).as_bytes());
    let _ = stderr.flush();
}

/// Reads a line from the terminal. Returns `None` at the end of input.
fn read_line() -> Option<String> {
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(1..) => Some(line.trim_end_matches(['\n', '\r']).to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolyard_hub::json::to_raw;
    use toolyard_hub::parameters;

    use super::read_value;

    fn typed(schema: &Value, text: &str) -> Result<Option<Value>, String> {
        let schema = json!({"properties": {"field": schema}, "required": ["field"]});
        read_value(&parameters(&to_raw(&schema))[0], text)
    }

    #[test]
    fn converts_input_to_the_type_of_the_field() {
        for (schema, text, expected) in [
            (json!({"type": "string"}), "5", json!("5")),
            (json!({"type": "integer"}), "5", json!(5)),
            (json!({"type": "number"}), "2.5", json!(2.5)),
            (json!({"type": "boolean"}), "Yes", json!(true)),
            (json!({"type": "string", "enum": ["a", "b"]}), "b", json!("b")),
            (json!({"type": "string", "default": "x"}), "", json!("x")),
            (json!({"type": "array", "items": {"type": "string"}}), "a, b", json!(["a", "b"])),
        ] {
            assert_eq!(typed(&schema, text), Ok(Some(expected)), "{schema} {text}");
        }
    }

    #[test]
    fn rejects_input_that_does_not_match_the_field() {
        for (schema, text, expected) in [
            (json!({"type": "integer"}), "five", "not an integer"),
            (json!({"type": "number"}), "NaN", "not a number"),
            (json!({"type": "boolean"}), "maybe", "enter yes or no"),
            (json!({"enum": ["a"]}), "b", "not one of the choices"),
            (json!({"type": "string"}), "", "a value is required"),
        ] {
            assert_eq!(typed(&schema, text), Err(expected.to_owned()), "{schema} {text}");
        }
    }
}
