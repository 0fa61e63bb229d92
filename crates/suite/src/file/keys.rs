//! The keys of test files. The reader, the JSON Schema and the reference page all use these tables.

/// A map with fixed keys.
pub(crate) struct Section {
    /// Its name in the reference and in the schema.
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) keys: &'static [SectionKey],
}

pub(crate) struct SectionKey {
    pub(crate) name: &'static str,
    pub(crate) shape: KeyShape,
    pub(crate) about: &'static str,
}

/// The values that a key accepts.
pub(crate) enum KeyShape {
    Text,
    Flag,
    Count,
    Number,
    /// A duration such as `500ms`.
    Time,
    /// A number of bytes, such as `512` or `10kB`.
    Size,
    Any,
    Choice(&'static [&'static str]),
    List(&'static KeyShape),
    /// A map with any keys.
    Map(&'static KeyShape),
    Section(&'static Section),
    Either(&'static [KeyShape]),
}

const fn key(name: &'static str, shape: KeyShape, about: &'static str) -> SectionKey {
    SectionKey { name, shape, about }
}

const TEXTS: KeyShape = KeyShape::Either(&[KeyShape::Text, KeyShape::List(&KeyShape::Text)]);
const MATCHER: KeyShape = KeyShape::Either(&[
    KeyShape::Section(&MATCH),
    KeyShape::Text,
    KeyShape::Number,
    KeyShape::Flag,
    KeyShape::List(&KeyShape::Any),
]);
const ANSWERS_ABOUT: &str = "Answers to the server's questions. Declares the capabilities that are answered";
const REDACT_ABOUT: &str =
    "Replaces what changes from run to run before a result is compared with a snapshot or the other era";
pub(crate) const ERAS: [&str; 2] = ["legacy", "modern"];
pub(crate) const LISTS: [&str; 4] = ["tools", "resources", "templates", "prompts"];
pub(crate) const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
pub(crate) const KINDS: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

pub(crate) static FILE: Section = Section {
    name: "File",
    about: "The top level of a test file.",
    keys: &[
        key("name", KeyShape::Text, "Title in reports. Default: the path of the file"),
        key(
            "server",
            KeyShape::Either(&[KeyShape::Text, KeyShape::Section(&SERVER)]),
            "The server under test: the name of a server of the configuration, or a command or URL. \
             `--server`, `--url` or a command after `--` replaces it",
        ),
        key(
            "eras",
            KeyShape::List(&KeyShape::Choice(&ERAS)),
            "Runs every test in each of these eras that the server has, and reports where the answers differ. \
             Default: the newest era of the server",
        ),
        key("timeout", KeyShape::Time, "Time limit of each test. Default: `30s`"),
        key("start_timeout", KeyShape::Time, "Time limit for starting the server. Default: `30s`"),
        key(
            "fixtures",
            TEXTS,
            "Folders that are copied to a temporary folder, `${FIXTURES}`, for each run. If there is one, its \
             content is copied; of several, each keeps its name",
        ),
        key("vars", KeyShape::Map(&KeyShape::Any), "Variables, used as `${name}`"),
        key("answers", KeyShape::Section(&ANSWERS), ANSWERS_ABOUT),
        key(
            "log_level",
            KeyShape::Choice(&LEVELS),
            "The minimum level of log messages to request from the server",
        ),
        key(
            "violations",
            KeyShape::Choice(&["fail", "ignore"]),
            "Whether messages that violate the protocol fail the test in which they arrive. Default: `fail`",
        ),
        key("redact", KeyShape::List(&KeyShape::Section(&REDACT)), REDACT_ABOUT),
        key("only", KeyShape::Section(&ONLY), "Where the file runs. Elsewhere its tests are skipped"),
        key("tags", TEXTS, "Tags of every test, for `--filter tag:NAME`"),
        key(
            "setup",
            KeyShape::List(&KeyShape::Section(&STEP)),
            "Steps before the first test on each connection. Their captures are available to all tests",
        ),
        key(
            "teardown",
            KeyShape::List(&KeyShape::Section(&STEP)),
            "Steps after the last test on each connection",
        ),
        key("tests", KeyShape::List(&KeyShape::Section(&TEST)), "The tests. Required"),
    ],
};

pub(crate) static SERVER: Section = Section {
    name: "Server",
    about: "A server that is not in the configuration: either `command` or `url`.",
    keys: &[
        key(
            "command",
            KeyShape::Text,
            "The program. A relative path with a slash starts at the file's folder",
        ),
        key("args", KeyShape::List(&KeyShape::Text), "Its arguments"),
        key(
            "env",
            KeyShape::Map(&KeyShape::Text),
            "Environment variables, besides those that every program needs",
        ),
        key(
            "inherit_env",
            KeyShape::Flag,
            "Whether the server inherits all environment variables of `toolyard test`. Default: `false`",
        ),
        key("cwd", KeyShape::Text, "Working folder. Default: the folder of the test file"),
        key("url", KeyShape::Text, "URL of a server over HTTP"),
        key("headers", KeyShape::Map(&KeyShape::Text), "HTTP headers for that URL"),
        key(
            "transport",
            KeyShape::Choice(&["http", "sse"]),
            "`sse` uses only the old HTTP+SSE transport. Default: `http`, with SSE as the fallback",
        ),
    ],
};

pub(crate) static ONLY: Section = Section {
    name: "Only",
    about: "Conditions; all must hold.",
    keys: &[
        key("os", TEXTS, "Operating systems, such as `linux` or `macos`"),
        key("era", KeyShape::Choice(&ERAS), "The era"),
        key("env", TEXTS, "Environment variables that must be set"),
    ],
};

pub(crate) static ANSWERS: Section = Section {
    name: "Answers",
    about: "Answers to the questions of a server, in both eras. A list answers one question after the other; \
            a single answer is used for every question.",
    keys: &[
        key(
            "elicitation",
            KeyShape::Any,
            "`accept: {field: value}`, `decline` or `cancel`, or a list of these",
        ),
        key("sampling", KeyShape::Any, "A text, or a map with `text`, `model` and `stop_reason`, or a list"),
        key("roots", KeyShape::List(&KeyShape::Text), "URIs or paths. Paths start at the folder of the file"),
    ],
};

pub(crate) static SAMPLING: Section = Section {
    name: "Sampling",
    about: "A message in answer to `sampling/createMessage`.",
    keys: &[
        key("text", KeyShape::Text, "The text. Required"),
        key("model", KeyShape::Text, "The name of the model. Default: `scripted`"),
        key("stop_reason", KeyShape::Text, "Default: `endTurn`"),
    ],
};

pub(crate) static REDACT: Section = Section {
    name: "Redact",
    about: "What to replace: either `jsonpath` or `matches`.",
    keys: &[
        key("jsonpath", KeyShape::Text, "Replaces every value that this path selects in a result"),
        key("matches", KeyShape::Text, "Replaces every match of this regular expression in a text"),
        key("with", KeyShape::Text, "The replacement. Default: `<redacted>`"),
    ],
};

/// The keys of a test besides those of a step.
pub(crate) static TEST: Section = Section {
    name: "Test",
    about: "A test has `steps`, or one step whose keys are written next to those of the test.",
    keys: &[
        key("name", KeyShape::Text, "The name. Required, and unique in the file"),
        key("steps", KeyShape::List(&KeyShape::Section(&STEP)), "The steps, in order"),
        key("isolate", KeyShape::Flag, "Runs on a fresh connection with fresh fixtures. Default: `false`"),
        key(
            "skip",
            KeyShape::Either(&[KeyShape::Flag, KeyShape::Text]),
            "Skips the test. A text is the reason",
        ),
        key("only", KeyShape::Section(&ONLY), "Where the test runs"),
        key("tags", TEXTS, "Tags, for `--filter tag:NAME`"),
        key("vars", KeyShape::Map(&KeyShape::Any), "Variables of this test"),
        key("answers", KeyShape::Section(&ANSWERS), "Replaces the answers of the file"),
        key(
            "redact",
            KeyShape::List(&KeyShape::Section(&REDACT)),
            "In addition to the redactions of the file",
        ),
        key("timeout", KeyShape::Time, "Time limit of the test. Default: that of the file"),
    ],
};

pub(crate) static STEP: Section = Section {
    name: "Step",
    about: "A step does one thing: `call`, `read`, `prompt`, `complete`, `list`, `subscribe`, `unsubscribe`, \
            `wait`, `cancel` or `reconnect`.",
    keys: &[
        key("call", KeyShape::Text, "Calls this tool"),
        key("read", KeyShape::Text, "Reads the resource with this URI"),
        key("prompt", KeyShape::Text, "Gets this prompt"),
        key("arguments", KeyShape::Map(&KeyShape::Any), "Arguments of `call` or `prompt`"),
        key("complete", KeyShape::Section(&COMPLETE), "Completes an argument"),
        key("list", KeyShape::Choice(&LISTS), "Reads a list to its end"),
        key(
            "subscribe",
            KeyShape::Either(&[KeyShape::Text, KeyShape::Flag, KeyShape::List(&KeyShape::Text)]),
            "Subscribes to resources by URI. In the modern era this also subscribes to list changes; `true` \
             subscribes only to those",
        ),
        key("unsubscribe", TEXTS, "Ends these subscriptions"),
        key(
            "wait",
            KeyShape::Section(&WAIT),
            "Waits for a notification. Those that arrived since the test began count, each for one `wait`",
        ),
        key("cancel", KeyShape::Section(&CANCEL), "Starts a call and cancels it"),
        key("reconnect", KeyShape::Flag, "Closes the connection and opens another"),
        key("timeout", KeyShape::Time, "Time limit of the step. Default: what is left of that of the test"),
        key("expect", KeyShape::Section(&EXPECT), "What the result must be"),
        key(
            "capture",
            KeyShape::Map(&KeyShape::Either(&[KeyShape::Text, KeyShape::Section(&CAPTURE)])),
            "Stores parts of the result in variables for later steps: a JSONPath in the result for each name",
        ),
    ],
};

pub(crate) static COMPLETE: Section = Section {
    name: "Complete",
    about: "The argument to complete, of a prompt or of a resource template.",
    keys: &[
        key("prompt", KeyShape::Text, "The prompt"),
        key("template", KeyShape::Text, "The URI template"),
        key("argument", KeyShape::Text, "The name of the argument. Required"),
        key("value", KeyShape::Text, "What has been typed so far. Default: empty"),
        key("context", KeyShape::Map(&KeyShape::Text), "Arguments that are already known"),
    ],
};

pub(crate) static WAIT: Section = Section {
    name: "Wait",
    about: "A notification to wait for.",
    keys: &[
        key(
            "notification",
            KeyShape::Text,
            "The method, such as `notifications/resources/updated`. Required",
        ),
        key("params", KeyShape::Map(&KeyShape::Any), "Members that the params must have"),
    ],
};

pub(crate) static CANCEL: Section = Section {
    name: "Cancel",
    about: "A call that is canceled. The step fails if the call ends before that.",
    keys: &[
        key("call", KeyShape::Text, "The tool. Required"),
        key("arguments", KeyShape::Map(&KeyShape::Any), "Its arguments"),
        key("after", KeyShape::Time, "How long the call runs before it is canceled. Default: `100ms`"),
    ],
};

pub(crate) static CAPTURE: Section = Section {
    name: "Capture",
    about: "A part of the text of a result.",
    keys: &[
        key("json", KeyShape::Text, "A JSONPath in the text, parsed as JSON"),
        key(
            "matches",
            KeyShape::Text,
            "A regular expression. Its first group is captured, or else the match",
        ),
    ],
};

pub(crate) static EXPECT: Section = Section {
    name: "Expect",
    about: "Assertions; all must hold. Without `isError` or `error`, the step must succeed.",
    keys: &[
        key("isError", KeyShape::Flag, "Whether the result says that the tool failed"),
        key(
            "error",
            KeyShape::Either(&[KeyShape::Section(&ERROR), KeyShape::Flag]),
            "The server must answer with a protocol error",
        ),
        key("text", MATCHER, "The text of the result: all text blocks, separated by newlines"),
        key("json", MATCHER, "The text of the result, parsed as JSON"),
        key("structured", MATCHER, "`structuredContent`"),
        key("result", MATCHER, "The whole result"),
        key("jsonpath", KeyShape::Map(&MATCHER), "Values in the result, by JSONPath (RFC 9535)"),
        key("names", MATCHER, "For `list`: names, or URIs of resources. For `complete`: the values"),
        key(
            "output_schema",
            KeyShape::Flag,
            "Whether `structuredContent` must match the output schema of the tool. Default: `true`",
        ),
        key("progress", KeyShape::Section(&PROGRESS), "Progress notifications during the step"),
        key(
            "notifications",
            KeyShape::List(&KeyShape::Section(&NOTIFICATION)),
            "Notifications that must arrive during the step",
        ),
        key("log", KeyShape::List(&KeyShape::Section(&LOG)), "Log messages that must arrive during the step"),
        key("questions", MATCHER, "What the server asked during the step: a list of `method` and `params`"),
        key("latency", KeyShape::Time, "The step may take at most this long"),
        key("size", KeyShape::Size, "The result may have at most this many bytes"),
        key(
            "files",
            KeyShape::Map(&KeyShape::Section(&FILES)),
            "Files after the step, relative to `${FIXTURES}`",
        ),
        key("stderr", MATCHER, "The last lines that the server wrote to standard error"),
        key(
            "snapshot",
            KeyShape::Either(&[KeyShape::Flag, KeyShape::Text, KeyShape::Section(&SNAPSHOT)]),
            "Compares the result with a stored one. A text is the name of the snapshot",
        ),
    ],
};

pub(crate) static MATCH: Section = Section {
    name: "Matcher",
    about: "Conditions on one value; all must hold. A text, a number, a flag or a list means `equals`.",
    keys: &[
        key("equals", KeyShape::Any, "Equal, with numbers compared by value"),
        key("not_equals", KeyShape::Any, "Not equal"),
        key("one_of", KeyShape::List(&KeyShape::Any), "Equal to one of these"),
        key(
            "contains",
            KeyShape::Any,
            "A text contains a text, a list an element, a map these members. A list stands for several",
        ),
        key("not_contains", KeyShape::Any, "Contains none of these"),
        key("matches", TEXTS, "A text matches this regular expression, or all of them"),
        key("not_matches", TEXTS, "A text matches none of these"),
        key("in_order", KeyShape::List(&KeyShape::Any), "A text or list contains these in this order"),
        key("type", KeyShape::Choice(&KINDS), "The JSON type"),
        key(
            "length",
            KeyShape::Either(&[KeyShape::Count, KeyShape::Section(&BOUNDS)]),
            "The number of characters, elements or members",
        ),
        key("min", KeyShape::Number, "At least"),
        key("max", KeyShape::Number, "At most"),
        key("order", KeyShape::Choice(&["ascending", "descending"]), "A list is sorted"),
        key("schema", KeyShape::Any, "The value matches a JSON Schema"),
        key("exists", KeyShape::Flag, "Whether there is a value"),
        key("jsonpath", KeyShape::Map(&KeyShape::Any), "Values inside this value, by JSONPath"),
    ],
};

pub(crate) static BOUNDS: Section = Section {
    name: "Bounds",
    about: "A range.",
    keys: &[key("min", KeyShape::Count, "At least"), key("max", KeyShape::Count, "At most")],
};

pub(crate) static ERROR: Section = Section {
    name: "Error",
    about: "A protocol error.",
    keys: &[
        key("code", KeyShape::Number, "The code, such as `-32602`"),
        key("message", MATCHER, "The message"),
        key("data", MATCHER, "The data"),
    ],
};

pub(crate) static PROGRESS: Section = Section {
    name: "Progress",
    about: "The progress notifications of a step.",
    keys: &[
        key("count", KeyShape::Count, "Exactly this many"),
        key("min", KeyShape::Count, "At least this many"),
        key("max", KeyShape::Count, "At most this many"),
        key(
            "increasing",
            KeyShape::Flag,
            "Whether each value must be greater than the one before. Default: `true`",
        ),
        key("last", KeyShape::Number, "The last value"),
        key("messages", MATCHER, "The messages, as a list"),
    ],
};

pub(crate) static NOTIFICATION: Section = Section {
    name: "Notification",
    about: "Notifications that match.",
    keys: &[
        key("method", KeyShape::Text, "The method. Required"),
        key("params", MATCHER, "The params"),
        key(
            "count",
            KeyShape::Either(&[KeyShape::Count, KeyShape::Section(&BOUNDS)]),
            "How many must match. Default: at least one",
        ),
    ],
};

pub(crate) static LOG: Section = Section {
    name: "Log",
    about: "Log messages that match.",
    keys: &[
        key("level", KeyShape::Choice(&LEVELS), "The level"),
        key("logger", KeyShape::Text, "The logger"),
        key("data", MATCHER, "The data"),
        key(
            "count",
            KeyShape::Either(&[KeyShape::Count, KeyShape::Section(&BOUNDS)]),
            "How many must match. Default: at least one",
        ),
    ],
};

pub(crate) static FILES: Section = Section {
    name: "Files",
    about: "A file.",
    keys: &[
        key("exists", KeyShape::Flag, "Whether it exists"),
        key("content", MATCHER, "Its text"),
        key("json", MATCHER, "Its text, parsed as JSON"),
    ],
};

pub(crate) static SNAPSHOT: Section = Section {
    name: "Snapshot",
    about: "A stored result.",
    keys: &[
        key(
            "name",
            KeyShape::Text,
            "Default: the name of the test, with the number of the step if there are several",
        ),
        key(
            "redact",
            KeyShape::List(&KeyShape::Section(&REDACT)),
            "In addition to the redactions of the test",
        ),
    ],
};

/// All sections, in the order of the reference.
pub(crate) static SECTIONS: [&Section; 21] = [
    &FILE,
    &SERVER,
    &ONLY,
    &ANSWERS,
    &SAMPLING,
    &REDACT,
    &TEST,
    &STEP,
    &COMPLETE,
    &WAIT,
    &CANCEL,
    &CAPTURE,
    &EXPECT,
    &MATCH,
    &BOUNDS,
    &ERROR,
    &PROGRESS,
    &NOTIFICATION,
    &LOG,
    &FILES,
    &SNAPSHOT,
];
