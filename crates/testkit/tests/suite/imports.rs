//! Files of other tools run as they are.

use std::fs;

use toolyard_suite::import::mcp_assert::{McpAssertOptions, import_mcp_assert};
use toolyard_suite::import::mcporter::parse_mcporter;
use toolyard_upstream::{CommandSettings, EnvInheritance, ServerSettings, TransportSettings};

use super::{FIXTURE, SuiteRunner, outcomes};

#[tokio::test]
async fn files_of_mcp_assert_get_their_verdicts() {
    let runner = SuiteRunner::new();
    let folder = runner.folder().join("evals");
    fs::create_dir_all(folder.join("more")).unwrap();
    let server = format!("server:\n  command: {FIXTURE}\n  args: [stdio]\n");
    let write = |name: &str, text: &str| {
        fs::write(folder.join(name), format!("name: {name}\n{server}{text}")).unwrap()
    };
    write("1.yaml", "assert: {tool: test_simple_text, expect: {not_error: true, contains: [simple text]}}\n");
    write("2.yaml", "assert: {tool: test_simple_text, expect: {contains: [nothing]}}\n");
    write("3.yml", "assert: {tool: test_error_handling, expect: {is_error: true}}\n");
    write(
        "more/4.yaml",
        "setup:\n  - {tool: json_schema_2020_12_tool, args: {name: Bob, email: x, contactMethod: email}, capture: {who: $.name}}\n\
         assert: {tool: test_x_mcp_header, args: {region: \"{{who}} {{other}}\"}, expect: {equals: \"Region: Bob {{other}}\"}}\n",
    );
    write(
        "more/5.yaml",
        "assert_resources: {read: \"test://static-text\", expect: {contains: [static text]}}\n",
    );
    write("more/6.yaml", "assert_prompts: {list: {}, expect: {contains: [test_simple_prompt]}}\n");
    write(
        "more/7.yaml",
        "assert_sampling: {tool: test_sampling, args: {prompt: x}, mock_text: Paris, expect: {contains: [Paris]}}\n",
    );
    write(
        "more/8.yaml",
        "assert_logging: {set_level: debug, tool: test_tool_with_logging, expect: {min_messages: 3, contains_level: [info]}}\n",
    );
    write(
        "more/9.yaml",
        "assert: {tool: test_tool_with_progress, expect: {min_progress: 3}, capture_progress: true}\nskip: true\n",
    );
    let options = McpAssertOptions { fixture: None, working_folder: runner.folder() };
    let files = import_mcp_assert(&folder, &options).unwrap();
    let report = runner.run(&files).await;
    let found = outcomes(&report);
    let passed = |name: &str| found.contains(&format!("{name} [legacy]: passed"));
    for name in ["1.yaml", "3.yml", "more/4.yaml", "more/5.yaml", "more/6.yaml", "more/7.yaml", "more/8.yaml"]
    {
        assert!(passed(name), "{name}: {found:#?}");
    }
    assert!(
        found.iter().any(|line| line.starts_with("2.yaml [legacy]: failed: expected the result to contain"))
    );
    assert!(found.contains(&"more/9.yaml [legacy]: skipped: skipped in the file".to_owned()), "{found:#?}");
    assert_eq!(found.len(), 9);
}

#[tokio::test]
async fn a_recording_of_mcporter_is_verified() {
    let mut runner = SuiteRunner::new();
    let transport = TransportSettings::Command(CommandSettings {
        program: FIXTURE.to_owned(),
        args: vec!["stdio".to_owned()],
        env: Default::default(),
        cwd: None,
        inherit: EnvInheritance::AllowList,
    });
    let settings = ServerSettings::new(toolyard_hub::SourceName::new("fixture"), transport);
    runner.options.configured.insert("fixture".to_owned(), settings);
    let line = |text: &str, dir: &str| {
        format!(
            "{}, \"_meta\": {{\"dir\": \"{dir}\", \"server\": \"fixture\", \"ts\": \"x\"}}}}\n",
            text.trim_end_matches('}')
        )
    };
    let request =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test_simple_text","arguments":{}"#;
    let request = format!("{request}}}, \"_meta\": {{\"dir\": \"send\", \"server\": \"fixture\"}}}}\n");
    let answer = |text: &str| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}, \
             \"_meta\": {{\"dir\": \"recv\", \"server\": \"fixture\"}}}}\n"
        )
    };
    let start = line(r#"{"event":"start"}"#, "lifecycle");
    let path = runner.folder().join("r.ndjson");
    let right = parse_mcporter(
        &path,
        &format!("{start}{request}{}", answer("This is a simple text response for testing.")),
    );
    let report = runner.run(&right.unwrap()).await;
    assert_eq!(outcomes(&report), ["1 tools/call test_simple_text: passed"]);
    let wrong = parse_mcporter(&path, &format!("{request}{}", answer("Something else")));
    let report = runner.run(&wrong.unwrap()).await;
    assert!(
        outcomes(&report)[0].contains("failed: the recorded result is not equal"),
        "{:?}",
        outcomes(&report)
    );
}
