//! The commands for tokens without a database: what they print, and what they say is missing. The
//! script `tests/replicas/tokens` tests them with one.

use std::process::{Command, Output};

use serde_json::Value;
use toolyard_testkit::harness::Scratch;

use super::TOOLYARD;

fn run(scratch: &Scratch, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(TOOLYARD);
    command.args(words).current_dir(scratch.path("")).env_clear().env("HOME", scratch.path(""));
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn yard() -> Scratch {
    let scratch = Scratch::new();
    let tokens = format!(
        "demo = true\n[[tokens]]\nname = \"ci\"\nsha256 = \"{}\"\npermissions = [\"read\"]\nservers = [\"git*\"]\n\
         [[tokens]]\nname = \"old\"\nsha256 = \"{}\"\nexpires = \"2001-01-01T00:00:00Z\"\n",
        "ab".repeat(32),
        "cd".repeat(32)
    );
    scratch.file("toolyard.toml", &tokens);
    scratch
}

#[test]
fn without_a_database_a_token_is_not_saved_and_the_error_says_what_to_configure() {
    let (code, output, errors) = run(&yard(), &["token", "new", "--save", "--name", "ada"]);
    assert_eq!((code, output.as_str()), (Some(2), ""), "no secret is printed");
    assert_eq!(
        errors,
        "error: tokens can be saved only in the database of a yard with several replicas\n  \
         hint: set `cluster.postgres` in toolyard.toml, or omit --save and add the printed lines to toolyard.toml\n"
    );
}

#[test]
fn without_a_database_a_token_is_revoked_by_removing_its_table() {
    let (code, output, errors) = run(&yard(), &["token", "revoke", "ci"]);
    assert_eq!((code, output.as_str()), (Some(2), ""));
    assert_eq!(
        errors,
        "error: the token \"ci\" is in the configuration, and there is no database for revocations\n  \
         hint: remove its [[tokens]] table from toolyard.toml; a running yard rejects it within a second\n"
    );
    let (code, _, errors) = run(&yard(), &["token", "revoke", "c\u{202e}i"]);
    assert_eq!(code, Some(2));
    assert_eq!(
        errors,
        "error: unknown token \"c\\u{202e}i\"\n  hint: run `toolyard token list` to see the tokens\n"
    );
}

#[test]
fn the_tokens_of_the_configuration_are_listed_with_their_state() {
    let (code, output, errors) = run(&yard(), &["token", "list"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    let expected = "ci\tactive\tconfiguration\t-\tread\t\n\
                    old\texpired\tconfiguration\t2001-01-01T00:00:00.000Z\t-\t\n";
    assert_eq!(output, expected);
    let (_, output, _) = run(&yard(), &["token", "list", "--json"]);
    let listed: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(listed[0]["servers"], serde_json::json!(["git*"]));
    assert_eq!(listed[1]["state"], "expired");
}

#[test]
fn limits_of_a_new_token_are_checked_like_those_of_the_configuration() {
    let scratch = yard();
    let limits = |text| run(&scratch, &["token", "new", "--name", "ada", "--limits", text]);
    let (code, output, _) = limits("{ calls = 4, rate = { per_second = 5.0, burst = 20.0 } }");
    assert_eq!(code, Some(0));
    assert!(
        output.contains("limits = { calls = 4, rate = { burst = 20.0, per_second = 5.0 } }\n"),
        "{output}"
    );
    for (text, error) in [
        ("{ call = 4 }", "error: invalid token: unknown key `call`"),
        (
            "{ call_seconds = -1.0 }",
            "error: invalid token: `limits.call_seconds` must be a number of seconds",
        ),
        ("4", "error: invalid limits \"4\": expected a table"),
        ("{}\nname = \"owner\"", "error: invalid limits \"{}\\nname = \\\"owner\\\"\": expected a table"),
        ("{ calls", "error: invalid limits \"{ calls\": "),
    ] {
        let (code, output, errors) = limits(text);
        assert_eq!((code, output.as_str()), (Some(2), ""), "{text}");
        assert!(errors.starts_with(error), "{text}: {errors}");
    }
}

#[test]
fn an_empty_permission_server_or_tool_is_refused() {
    let scratch = yard();
    for option in ["--permission", "--server", "--tool"] {
        let (code, output, errors) = run(&scratch, &["token", "new", "--name", "ada", option, ""]);
        assert_eq!((code, output.as_str()), (Some(2), ""), "{option}");
        assert!(errors.starts_with(&format!("error: a value is required for '{option} <")), "{errors}");
    }
}
