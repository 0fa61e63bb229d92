//! The generated part of `docs/reference/cli.md`, and a check of every `toolyard` command in the
//! manual.

use clap::{Arg, ArgAction, Command, CommandFactory};
use toolyard_testkit::docs::{CodeBlock, check_generated, code_blocks, prose, table};

use super::Args;

fn command() -> Command {
    let mut command = Args::command();
    command.build();
    command
}

fn shown_subcommands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
}

/// One option or positional argument, as it is typed.
fn spelling(argument: &Arg) -> String {
    let value = || {
        let names = argument.get_value_names().unwrap_or_default();
        names.iter().map(|name| name.to_string()).collect::<Vec<_>>().join(" ")
    };
    if argument.is_positional() {
        let separator = if argument.is_last_set() { "-- " } else { "" };
        return format!("`{separator}{}`", value());
    }
    let mut names = Vec::new();
    names.extend(argument.get_short().map(|short| format!("-{short}")));
    names.extend(argument.get_long().map(|long| format!("--{long}")));
    let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let value = if takes_value { format!(" {}", value()) } else { String::new() };
    format!("`{}{value}`", names.join(", "))
}

/// The help of an argument with its values, default and variable.
fn explanation(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let mut text = help.map(ToString::to_string).unwrap_or_default().replace("\n\n", " ");
    if !text.is_empty() && !text.ends_with('.') {
        text.push('.');
    }
    let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    if takes_value && !argument.is_hide_possible_values_set() {
        let values: Vec<String> = argument
            .get_possible_values()
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        if !values.is_empty() {
            text.push_str(&format!(" One of {}.", values.join(", ")));
        }
    }
    let defaults = argument.get_default_values();
    if defaults.iter().any(|value| !value.is_empty()) && takes_value && !argument.is_hide_default_value_set()
    {
        let defaults: Vec<String> =
            defaults.iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
        text.push_str(&format!(" Default: {}.", defaults.join(", ")));
    }
    if let Some(variable) = argument.get_env() {
        text.push_str(&format!(" Environment variable: `{}`.", variable.to_string_lossy()));
    }
    text.trim().to_owned()
}

/// The rows of the arguments that a command does not share with all others.
fn own_rows(command: &Command) -> Vec<Vec<String>> {
    let own = |argument: &&Arg| {
        let name = argument.get_id().as_str();
        !argument.is_hide_set() && !argument.is_global_set() && name != "help" && name != "version"
    };
    command
        .get_arguments()
        .filter(own)
        .map(|argument| vec![spelling(argument), explanation(argument)])
        .collect()
}

/// The rows of the options that select servers, which many commands share.
fn selection_rows(command: &Command) -> Vec<Vec<String>> {
    let call = command.find_subcommand("call").unwrap();
    let is_selection =
        |argument: &&Arg| argument.get_help_heading() == Some("Server selection") || argument.is_last_set();
    let rows = call.get_arguments().filter(is_selection);
    rows.map(|argument| vec![spelling(argument), explanation(argument)]).collect()
}

fn render(command: &Command, path: &str, level: usize, selection: &[Vec<String>], text: &mut String) {
    text.push_str(&format!("\n{} `{path}`\n\n", "#".repeat(level)));
    let about = command.get_long_about().or_else(|| command.get_about());
    if let Some(about) = about {
        let about = prose(&about.to_string());
        text.push_str(&format!("{}.\n\n", about.trim_end_matches('.')));
    }
    let mut shown = command.clone().bin_name(path);
    let usage = shown.render_usage().to_string();
    text.push_str(&format!("```text\n{}\n```\n", usage.trim_start_matches("Usage: ")));
    let mut rows = own_rows(command);
    let before = rows.len();
    if selection.iter().all(|row| rows.contains(row)) {
        rows.retain(|row| !selection.contains(row));
    }
    if !rows.is_empty() {
        text.push_str(&format!("\n{}", table(&["argument", "description"], rows.clone())));
    }
    if rows.len() < before {
        text.push_str("\nThis command also accepts the [server options](#server-options).\n");
    }
    if let Some(help) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        text.push_str(&render_help_text(&help.to_string()));
    }
    for below in shown_subcommands(command) {
        render(below, &format!("{path} {}", below.get_name()), level + 1, selection, text);
    }
}

/// The text below the options: paragraphs, and indented lines as code blocks.
fn render_help_text(help: &str) -> String {
    let mut text = String::new();
    let mut title = String::new();
    for chunk in help.lines().collect::<Vec<_>>().chunk_by(|a, b| a.starts_with("  ") == b.starts_with("  "))
    {
        if !chunk[0].starts_with("  ") {
            let paragraphs = chunk.join("\n");
            for paragraph in paragraphs.trim().split("\n\n") {
                title = paragraph.replace('\n', " ");
                text.push_str(&format!("\n{}\n", prose(&title)));
            }
        } else if title.starts_with("Example") {
            let lines: Vec<String> = chunk.iter().map(|line| example(line)).collect();
            text.push_str(&format!("\n```sh\n{}\n```\n", lines.join("\n")));
        } else {
            let lines: Vec<&str> = chunk.iter().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
            text.push_str(&format!("\n```text\n{}\n```\n", lines.join("\n")));
        }
    }
    text
}

/// Turns a line of the examples into shell: what follows the command is a comment.
fn example(line: &str) -> String {
    let indented = line.strip_prefix("  ").unwrap_or(line);
    if indented.starts_with(' ') {
        let column = indented.len() - indented.trim_start().len();
        return format!("{}# {}", " ".repeat(column.saturating_sub(2)), indented.trim_start());
    }
    match indented.split_once("  ") {
        Some((command, comment)) => {
            let column = command.len() + 2 + comment.len() - comment.trim_start().len();
            let width = (column - 2).max(command.len() + 2);
            format!("{command:<width$}# {}", comment.trim_start())
        }
        None => indented.to_owned(),
    }
}

#[test]
fn the_reference_lists_every_command_and_option() {
    let command = command();
    let mut text = String::from("## Global options\n\n");
    let global = command.get_arguments().filter(|argument| !argument.is_hide_set());
    text.push_str(&table(
        &["argument", "description"],
        global.map(|argument| vec![spelling(argument), explanation(argument)]),
    ));
    let selection = selection_rows(&command);
    assert!(selection.len() > 4, "{selection:?}");
    text.push_str("\n## Server options\n\nCommands that use servers accept these options.\n\n");
    text.push_str(&table(&["argument", "description"], selection.clone()));
    text.push_str("\n## Commands\n");
    for below in shown_subcommands(&command) {
        render(below, &format!("toolyard {}", below.get_name()), 3, &selection, &mut text);
    }
    check_generated("reference/cli.md", &text);
}

#[test]
fn examples_of_the_help_become_shell_commands() {
    assert_eq!(example("  toolyard list     list the tools"), "toolyard list   # list the tools");
    assert_eq!(example("  toolyard list"), "toolyard list");
    assert_eq!(example("      of a server"), "  # of a server");
}

/// The `toolyard` commands of a block: from the prompt or the start of a line to the end of the
/// simple command.
fn commands(block: &CodeBlock) -> Vec<String> {
    let shell = ["sh", "console", "bash", "yaml"].contains(&block.language.as_str());
    let joined = if shell { block.text.replace("\\\n", " ") } else { String::new() };
    let mut found = Vec::new();
    for line in joined.lines() {
        let line = line.trim_start();
        let line = match block.language.as_str() {
            "console" => line.strip_prefix("$ ").unwrap_or_default(),
            "yaml" => line.trim_start_matches("- ").strip_prefix("run: ").unwrap_or(line),
            _ => line,
        };
        let mut rest = line;
        while let Some(at) = find_command(rest) {
            let (command, after) = cut_command(&rest[at..]);
            found.push(command);
            rest = after;
        }
    }
    found
}

/// Where the word `toolyard` stands as a command.
fn find_command(line: &str) -> Option<usize> {
    line.match_indices("toolyard ").map(|(at, _)| at).find(|&at| {
        let before = line[..at].trim_end();
        let follows_space = at == 0 || line[..at].ends_with([' ', '(', '`']);
        let is_command = before.is_empty()
            || before.ends_with(['|', ';', '(', '&', '`'])
            || before.ends_with("then")
            || before.ends_with("do")
            || before.ends_with("--")
            || before.split(' ').next_back().is_some_and(|word| word.contains('=') && !word.starts_with('-'));
        follows_space && is_command && !line[..at].contains('#')
    })
}

/// The words of a simple command, and what follows it.
fn cut_command(text: &str) -> (String, &str) {
    let mut quote = None;
    let mut previous = ' ';
    for (index, letter) in text.char_indices() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            None if ['|', ';', '&', '>', '<', ')', '`'].contains(&letter)
                || (letter == '#' && previous == ' ') =>
            {
                return (text[..index].trim_end_matches(['2', ' ']).to_owned(), &text[index + 1..]);
            }
            None => {}
        }
        previous = letter;
    }
    (text.trim_end().to_owned(), "")
}

/// Splits a command into words. Quotes group; everything else is left to clap.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut started = false;
    for letter in command.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => word.push(letter),
            None if letter == '\'' || letter == '"' => (quote, started) = (Some(letter), true),
            None if letter == ' ' => {
                if started || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                started = false;
            }
            None => word.push(letter),
        }
    }
    if started || !word.is_empty() {
        words.push(word);
    }
    // A variable that holds a URL must look like one.
    let is_url = |word: &str| word.starts_with('$') && word.to_lowercase().contains("url");
    words.into_iter().map(|word| if is_url(&word) { "http://127.0.0.1".to_owned() } else { word }).collect()
}

#[test]
fn every_command_in_the_manual_is_accepted() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for block in code_blocks() {
        for command in commands(&block) {
            checked += 1;
            if let Err(error) = Args::command().try_get_matches_from(words(&command)) {
                use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
                // A command can name a file that the reader has and the repository has not.
                let misses_file = error.to_string().contains("cannot read the file");
                if ![DisplayHelp, DisplayVersion].contains(&error.kind()) && !misses_file {
                    let first = error.to_string().lines().next().unwrap_or_default().to_owned();
                    wrong.push(format!("{}: {command}: {first}", block.location));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(checked > 60, "only {checked} commands found");
}

#[test]
fn commands_are_found_in_blocks() {
    let block = |language: &str, text: &str| CodeBlock {
        language: language.to_owned(),
        location: String::new(),
        text: text.to_owned(),
    };
    let text = "$ toolyard list > a.txt   # all\nerror: toolyard is not here\n$ x=$(toolyard call a \\\n  b='c | d' 2> e); T=1 toolyard serve &\n";
    assert_eq!(
        commands(&block("console", text)),
        ["toolyard list", "toolyard call a    b='c | d'", "toolyard serve"]
    );
    assert_eq!(commands(&block("sh", "claude mcp add toolyard -- toolyard stdio\n")), ["toolyard stdio"]);
    assert_eq!(words("toolyard call a b='c d' ''"), ["toolyard", "call", "a", "b=c d", ""]);
    assert!(commands(&block("text", "toolyard nope")).is_empty());
}
