//! Runs the recipe of docs/tasks/give-a-team-access.md in a shell, unchanged except for the port.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;
use toolyard_testkit::harness::{PATIENCE, Scratch};

use super::TOOLYARD;

const HEADING: &str = "\n## Recipe: a token for one server and two tools\n";
/// What the script prints after each command, to delimit its output.
const END: &str = "-- end of one command --";

/// A command of the document, and its documented output.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    command: String,
    output: String,
}

/// Returns the commands in the `console` blocks of a text: lines that begin with `$ `, including
/// here-documents and lines continued with a backslash. Everything else is output.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut inside, mut until) = (false, None::<&str>);
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
            continue;
        }
        if !inside {
            continue;
        }
        if until.is_none()
            && let Some(command) = line.strip_prefix("$ ")
        {
            steps.push(Step { command: format!("{command}\n"), output: String::new() });
            until = if command.contains("<<'END'") { Some("END") } else { None };
        } else if let Some(step) = steps.last_mut() {
            let continued = step.command.ends_with("\\\n") && step.output.is_empty();
            if until.is_some() || continued {
                step.command.push_str(line);
                step.command.push('\n');
                until = until.filter(|end| *end != line);
            } else {
                step.output.push_str(line);
                step.output.push('\n');
            }
        }
    }
    steps
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn the_recipe_for_a_limited_token_does_what_it_says() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tasks/give-a-team-access.md");
    let document = std::fs::read_to_string(document).unwrap();
    let (_, recipe) =
        document.split_once(HEADING).expect("the recipe is in docs/tasks/give-a-team-access.md");
    let recipe = recipe.split("\n## ").next().unwrap();
    let refusals = recipe.lines().filter(|line| line.starts_with("$ : ")).count();
    assert!(refusals >= 6, "{refusals} refusals");
    let recipe = recipe.replace("127.0.0.1:8080", &format!("127.0.0.1:{}", free_port()));
    let steps = steps(&recipe);
    assert!(steps.len() > 20, "{steps:?}");

    let scratch = Scratch::new();
    let programs = Path::new(TOOLYARD).parent().unwrap().display();
    // Standard output and standard error are merged as on a terminal. The trap ends the server even
    // if a command fails.
    let mut script = format!("exec 2>&1\nPATH='{programs}':$PATH\ntrap 'kill $! 2> /dev/null' EXIT\n");
    for step in &steps {
        script.push_str(&step.command);
        script.push_str(&format!("printf '\\n%s\\n' '{END}'\n"));
    }
    let file = scratch.file("recipe.sh", &script);
    let mut shell = Command::new("sh");
    shell.arg(file).current_dir(scratch.path("")).env("HOME", scratch.path(""));
    shell.env_remove("TOOLYARD_TOKEN").env_remove("XDG_CONFIG_HOME").env_remove("http_proxy");
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let ran = tokio::time::timeout(3 * PATIENCE, shell.output()).await;
    let log = std::fs::read_to_string(scratch.path("serve.log")).unwrap_or_default();
    let ran = ran.unwrap_or_else(|_| panic!("the recipe does not end; log of the server: {log}")).unwrap();
    let output = String::from_utf8(ran.stdout).unwrap();
    let outputs = output.split(END).map(|output| output.trim_start_matches('\n'));
    let transcript =
        |step: &Step, output: &str| format!("$ {}{}\n", step.command, output.trim_end_matches('\n'));
    let expected: Vec<String> = steps.iter().map(|step| transcript(step, &step.output)).collect();
    let happened: Vec<String> =
        steps.iter().zip(outputs).map(|(step, output)| transcript(step, output)).collect();
    assert_eq!(happened.join(""), expected.join(""), "log of the server: {log}");
}

#[test]
fn commands_are_distinguished_from_their_output() {
    let text = "$ not in a block\n```console\n$ cat <<'END'\n$ inside\nEND\nout\n$ a \\\n  b\n```\n```toml\n$ x\n```\n";
    let step = |command: &str, output: &str| Step { command: command.to_owned(), output: output.to_owned() };
    assert_eq!(steps(text), [step("cat <<'END'\n$ inside\nEND\n", "out\n"), step("a \\\n  b\n", "")]);
}
