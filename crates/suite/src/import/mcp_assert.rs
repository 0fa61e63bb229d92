//! Files of mcp-assert: one assertion per file, with its own server. Read here; its assertions are
//! checked in `check` with the semantics of mcp-assert, so that verdicts are the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolyard_upstream::{EnvInheritance, Era, ServerListKind};

use crate::file::yaml::parse_yaml;
use crate::file::{
    AnswerSequence, CaptureSource, CompletionStep, CompletionTargetSpec, FailureExpectation, FilePosition,
    RunCondition, ScriptedAnswers, ServerSpec, StepAction, StepExpectations, TestCase, TestFile,
    TestFileProblem, TestStep, ValueCapture, ViolationPolicy,
};

mod check;
mod format;
mod trajectory;

pub(crate) use check::check;
pub use check::{
    AssertLoggingExpect, AssertNotificationExpect, AssertResultExpect, McpAssertExpect, McpAssertTarget,
};

use format::{AssertCall, AssertCapabilities, AssertFile, AssertSampling, AssertServer};

/// The position of everything in an imported file: it has one assertion.
const START: FilePosition = FilePosition { line: 1, column: 1 };

/// How a suite of mcp-assert is started.
#[derive(Debug, Clone, Default)]
pub struct McpAssertOptions {
    /// The folder that `{{fixture}}` stands for. Each test gets a copy.
    pub fixture: Option<PathBuf>,
    /// Where servers run, and where relative paths of the suite start.
    pub working_folder: PathBuf,
}

/// Reads a file, or all files of a folder and of its direct subfolders.
pub fn import_mcp_assert(
    path: &Path,
    options: &McpAssertOptions,
) -> Result<Vec<TestFile>, Vec<TestFileProblem>> {
    let files = find_files(path).map_err(|problem| vec![problem])?;
    let mut imported = Vec::new();
    let mut problems = Vec::new();
    for file in files {
        let read = fs::read_to_string(&file).map_err(|error| {
            vec![TestFileProblem::for_file(&file, format!("cannot read the file: {error}"))]
        });
        match read.and_then(|text| parse_mcp_assert(&file, &text, options)) {
            Ok(file) => imported.push(file),
            Err(more) => problems.extend(more),
        }
    }
    if problems.is_empty() { Ok(imported) } else { Err(problems) }
}

fn find_files(path: &Path) -> Result<Vec<PathBuf>, TestFileProblem> {
    let unreadable = |path: &Path, error: std::io::Error| {
        TestFileProblem::for_file(path, format!("cannot read {}: {error}", path.display()))
    };
    if !fs::metadata(path).map_err(|error| unreadable(path, error))?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = |folder: &Path| -> Result<Vec<PathBuf>, TestFileProblem> {
        let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, error))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        Ok(paths)
    };
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    let mut files = Vec::new();
    for entry in entries(path)? {
        match entry.is_dir() {
            true => files.extend(entries(&entry)?.into_iter().filter(is_yaml)),
            false => files.extend(Some(entry).filter(is_yaml)),
        }
    }
    if files.is_empty() {
        return Err(TestFileProblem::for_file(path, "there are no YAML files in the folder"));
    }
    Ok(files)
}

/// Reads one file.
pub fn parse_mcp_assert(
    path: &Path,
    text: &str,
    options: &McpAssertOptions,
) -> Result<TestFile, Vec<TestFileProblem>> {
    let problem = |at, message: String| vec![TestFileProblem::at(path, text, at, message)];
    let node = parse_yaml(text).map_err(|error| problem(error.at, error.message))?;
    let file: AssertFile = serde_json::from_value(node.to_json())
        .map_err(|error| problem(START, format!("this is not a file of mcp-assert: {error}")))?;
    let converter =
        Converter { captured: captured_names(&file.setup), has_fixture: options.fixture.is_some() };
    let server = converter.server(&file.server, options).map_err(|message| problem(START, message))?;
    let skip = file.skip.then(|| "skipped in the file".to_owned());
    let mut steps: Vec<TestStep> = Vec::new();
    if !file.trajectory.is_empty() {
        let verdict = trajectory::check(&file.trajectory, &file.trace, file.audit_log.as_deref(), options);
        steps.push(plain_step(StepAction::Decided(verdict)));
    } else if skip.is_none() {
        steps.extend(file.setup.iter().map(|call| converter.setup_call(call)));
        steps.extend(converter.main_steps(&file).map_err(|message| problem(START, message))?);
    }
    let name = match file.name.is_empty() {
        true => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        false => file.name.clone(),
    };
    let env = file.skip_unless_env.into_iter().collect();
    let test = TestCase {
        name: name.lines().next().unwrap_or_default().to_owned(),
        at: START,
        isolate: false,
        skip,
        only: RunCondition { env, ..RunCondition::default() },
        tags: Vec::new(),
        timeout: file.timeout.as_deref().and_then(go_duration),
        vars: Map::new(),
        answers: None,
        redact: Vec::new(),
        steps,
    };
    let log_level = file.assert_logging.as_ref().and_then(|logging| logging.set_level.as_ref());
    Ok(TestFile {
        path: path.to_owned(),
        server,
        eras: Some(vec![Era::Legacy]),
        fixtures: options.fixture.iter().map(|folder| options.working_folder.join(folder)).collect(),
        vars: Map::from_iter([("fixture".to_owned(), json!("${FIXTURES}"))]),
        answers: converter.answers(&file.server.client_capabilities, file.assert_sampling.as_ref()),
        log_level: log_level.and_then(|level| serde_json::from_value(json!(level)).ok()),
        violations: ViolationPolicy::Ignore,
        tests: vec![test],
        ..TestFile::default()
    })
}

fn captured_names(setup: &[AssertCall]) -> Vec<String> {
    setup.iter().flat_map(|call| call.capture.keys().cloned()).collect()
}

/// Converts texts: `{{name}}` of mcp-assert becomes `${name}`, where the name is known.
struct Converter {
    captured: Vec<String>,
    has_fixture: bool,
}

impl Converter {
    fn text(&self, text: &str) -> String {
        let mut text = text.replace("${", "$${");
        let fixture = self.has_fixture.then_some("fixture");
        for name in self.captured.iter().map(String::as_str).chain(fixture) {
            text = text.replace(&format!("{{{{{name}}}}}"), &format!("${{{name}}}"));
        }
        text
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                Value::Object(members.iter().map(|(key, value)| (key.clone(), self.value(value))).collect())
            }
            other => other.clone(),
        }
    }

    fn arguments(&self, args: Option<&Value>) -> Value {
        args.filter(|args| args.is_object()).map_or_else(|| json!({}), |args| self.value(args))
    }

    fn server(
        &self,
        server: &AssertServer,
        options: &McpAssertOptions,
    ) -> Result<Option<ServerSpec>, String> {
        let pairs = |map: &Map<String, Value>| -> Vec<(String, String)> {
            map.iter().map(|(name, value)| (name.clone(), expand_environment(&scalar(value)))).collect()
        };
        if server.docker.is_some() {
            return Err("servers in containers (`docker`) are not supported".to_owned());
        }
        match server.transport.as_deref().map(str::to_lowercase).as_deref() {
            Some(transport @ ("sse" | "http")) => {
                let url = server.url.clone().ok_or("a server over HTTP needs `url`")?;
                let url = url.replace("${", "$${");
                Ok(Some(ServerSpec::Url { url, headers: pairs(&server.headers), sse: transport == "sse" }))
            }
            _ => Ok(server.command.as_ref().map(|program| ServerSpec::Command {
                program: program.replace("${", "$${"),
                args: server.args.iter().map(|arg| self.text(&scalar(arg))).collect(),
                env: pairs(&server.env),
                cwd: Some(options.working_folder.to_string_lossy().replace("${", "$${")),
                inherit: EnvInheritance::Everything,
            })),
        }
    }

    fn answers(
        &self,
        capabilities: &AssertCapabilities,
        sampling: Option<&AssertSampling>,
    ) -> ScriptedAnswers {
        let message = |text: &str, model: Option<&str>, stop: Option<&str>| {
            AnswerSequence::Always(json!({
                "role": "assistant",
                "content": {"type": "text", "text": text.replace("${", "$${")},
                "model": model.unwrap_or("mock"),
                "stopReason": stop.unwrap_or("end_turn"),
            }))
        };
        let sampling = match (&capabilities.sampling, sampling) {
            (Some(own), _) => message(&own.text, own.model.as_deref(), own.stop_reason.as_deref()),
            (None, Some(block)) => message(&block.mock_text, block.mock_model.as_deref(), None),
            (None, None) => AnswerSequence::None,
        };
        let elicitation = match &capabilities.elicitation {
            Some(values) if !values.is_empty() => AnswerSequence::Always(elicitation_answer(values)),
            _ => AnswerSequence::None,
        };
        let roots = capabilities.roots.as_ref().map(|roots| {
            let roots: Vec<Value> = roots.iter().map(|root| json!({"uri": self.text(root)})).collect();
            json!({"roots": roots})
        });
        ScriptedAnswers { elicitation, sampling, roots }
    }

    fn setup_call(&self, call: &AssertCall) -> TestStep {
        let captures = call.capture.iter().map(|(name, path)| {
            let path = scalar(path);
            let source = match path.as_str() {
                "$" | "$." | "" => CaptureSource::Text("(?s)(.*)".to_owned()),
                path if path.starts_with('$') => CaptureSource::TextJson(path.to_owned()),
                path => CaptureSource::TextJson(format!("$.{path}")),
            };
            ValueCapture { name: name.clone(), at: START, source }
        });
        let action =
            StepAction::Call { tool: call.tool.clone(), arguments: self.arguments(call.args.as_ref()) };
        TestStep { captures: captures.collect(), ..plain_step(action) }
    }

    fn main_steps(&self, file: &AssertFile) -> Result<Vec<TestStep>, String> {
        let step = |action, target| {
            let expect = StepExpectations {
                failure: FailureExpectation::Unchecked,
                skip_output_schema: true,
                imported: Some(Box::new(McpAssertExpect { target })),
                ..StepExpectations::default()
            };
            TestStep { at: START, action, timeout: None, expect, captures: Vec::new() }
        };
        let call = |tool: &str, args: &Option<Value>| StepAction::Call {
            tool: tool.replace("${", "$${"),
            arguments: self.arguments(args.as_ref()),
        };
        let result = |expect: &AssertResultExpect| McpAssertTarget::Result(Box::new(self.expect(expect)));
        if let Some(block) = &file.assert_resources {
            let mut steps = Vec::new();
            if let Some(uri) = &block.subscribe {
                let uris = vec![self.text(uri)];
                steps.push(step(StepAction::Subscribe { uris }, McpAssertTarget::Nothing));
            }
            steps.push(match (&block.list, &block.read) {
                (Some(_), _) => step(StepAction::List(ServerListKind::Resources), result(&block.expect)),
                (None, Some(uri)) => step(StepAction::Read { uri: self.text(uri) }, result(&block.expect)),
                (None, None) => return Err("assert_resources requires either `list` or `read`".to_owned()),
            });
            if block.expect_notification == Some(true) {
                let method = "notifications/resources/updated".to_owned();
                steps.push(step(StepAction::Wait { method, params: None }, McpAssertTarget::Nothing));
            }
            if let Some(uri) = &block.unsubscribe {
                let uris = vec![self.text(uri)];
                steps.push(step(StepAction::Unsubscribe { uris }, McpAssertTarget::Nothing));
            }
            return Ok(steps);
        }
        let only = if let Some(block) = &file.assert_prompts {
            match (&block.list, &block.get) {
                (Some(_), _) => step(StepAction::List(ServerListKind::Prompts), result(&block.expect)),
                (None, Some(get)) => {
                    let (name, arguments) = (self.text(&get.name), self.arguments(get.arguments.as_ref()));
                    step(StepAction::Prompt { name, arguments }, result(&block.expect))
                }
                (None, None) => return Err("assert_prompts requires either `list` or `get`".to_owned()),
            }
        } else if let Some(block) = &file.assert_completion {
            let reference = match block.r#ref.r#type.as_str() {
                "ref/prompt" => CompletionTargetSpec::Prompt(block.r#ref.name.clone()),
                "ref/resource" => CompletionTargetSpec::Template(block.r#ref.name.clone()),
                other => return Err(format!("unsupported completion ref type `{other}`")),
            };
            let (argument, value) = (block.argument.name.clone(), block.argument.value.clone());
            let completion = CompletionStep { reference, argument, value, context: None };
            step(StepAction::Complete(completion), result(&block.expect))
        } else if let Some(block) = &file.assert_sampling {
            step(call(&block.tool, &block.args), result(&block.expect))
        } else if let Some(block) = &file.assert_logging {
            let target = McpAssertTarget::Logging(block.expect.clone());
            match &block.tool {
                Some(tool) => step(call(tool, &block.args), target),
                None => step(StepAction::List(ServerListKind::Tools), target),
            }
        } else if let Some(block) = &file.assert_notifications {
            let target = McpAssertTarget::Notifications(block.expect.clone());
            step(call(&block.tool, &block.args), target)
        } else if let Some(block) = &file.assert {
            step(call(&block.tool, &block.args), result(&block.expect))
        } else {
            return Err("the file has no assertion block, such as `assert`".to_owned());
        };
        Ok(vec![only])
    }

    /// Converts the paths of files, which are the only texts of `expect` with placeholders.
    fn expect(&self, expect: &AssertResultExpect) -> AssertResultExpect {
        let keys = |map: &Map<String, Value>| -> Map<String, Value> {
            map.iter().map(|(path, text)| (self.text(path), text.clone())).collect()
        };
        AssertResultExpect {
            file_contains: keys(&expect.file_contains),
            file_not_contains: keys(&expect.file_not_contains),
            file_not_exists: expect.file_not_exists.iter().map(|path| self.text(path)).collect(),
            ..expect.clone()
        }
    }
}

/// A step that fails only if there is no answer.
fn plain_step(action: StepAction) -> TestStep {
    let expect = StepExpectations {
        failure: FailureExpectation::Unchecked,
        skip_output_schema: true,
        ..StepExpectations::default()
    };
    TestStep { at: START, action, timeout: None, expect, captures: Vec::new() }
}

/// Returns the answer to a form: the values, or the action in `action`.
fn elicitation_answer(values: &Map<String, Value>) -> Value {
    let action = values.get("action").and_then(Value::as_str);
    match action {
        Some(action @ ("decline" | "cancel")) => json!({"action": action}),
        _ => {
            let content = values.get("content").filter(|content| content.is_object());
            let own: Map<String, Value> = values
                .iter()
                .filter(|(key, _)| *key != "action")
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            json!({"action": "accept", "content": content.cloned().unwrap_or(Value::Object(own))})
        }
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Converts `$NAME` and `${NAME}`. Variables that are not set are empty, like in a shell.
fn expand_environment(text: &str) -> String {
    let mut done = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        done.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        let (name, end) = match after.strip_prefix('{') {
            Some(inner) => match inner.find('}') {
                Some(end) => (&inner[..end], end + 2),
                None => ("", 0),
            },
            None => {
                let end = after.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                let end = end.unwrap_or(after.len());
                (&after[..end], end)
            }
        };
        match name.is_empty() {
            true => done.push('$'),
            false => done.push_str(&format!("${{env:{name}:-}}")),
        }
        rest = &after[end..];
    }
    done + rest
}

/// Parses a duration as Go writes it, such as `1m30s`.
fn go_duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let unit = rest.find(|letter: char| letter.is_ascii_alphabetic())?;
        let end = rest[unit..]
            .find(|letter: char| !letter.is_ascii_alphabetic())
            .map_or(rest.len(), |end| unit + end);
        total += crate::file::parse_duration(&rest[..end])?;
        rest = &rest[end..];
    }
    (total > Duration::ZERO).then_some(total)
}
