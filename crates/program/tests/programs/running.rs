//! Tests of the engine: requests and replies, output, limits, and how programs end.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolyard_hub::json::to_raw;
use toolyard_program::{
    Engine, ExitReason, PendingProgramQuestion, ProgramData, ProgramOutcome, ProgramOutput, ProgramQuestion,
    ProgramReply, UnawaitedCall,
};

use super::fixture::{engine, limits, program, run};
use super::shop::{answer, bindings};

fn finished(text: &str) -> ProgramOutcome {
    ProgramOutcome::new(ExitReason::Finished, ProgramOutput { text: text.into(), left_out: 0 })
}

/// Runs a program that has the shop's tools.
async fn with_tools(engine: &Engine, code: &str) -> ProgramOutcome {
    let (sender, questions) = mpsc::channel(8);
    let mut program = program(code);
    program.bindings = bindings();
    let (ending, ()) = tokio::join!(engine.run(program, sender, CancellationToken::new()), answer(questions));
    ending.unwrap()
}

async fn raised(engine: &Engine, code: &str) -> String {
    match with_tools(engine, code).await.exit_reason {
        ExitReason::Raised { traceback } => traceback,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn event_loops_run_inside_a_program_that_awaits_at_its_top_level() {
    let engine = engine();
    let code = r#"
import asyncio
async def name(number):
    return (await get_customer(number))["name"]
print(await name(1))
print(asyncio.run(name(2)))
loop = asyncio.get_event_loop()
print(loop.run_until_complete(name(3)))
task = asyncio.create_task(name(4))
print(asyncio.run(name(5)), loop.run_until_complete(asyncio.gather(name(1), name(2))))
print(await task)
"#;
    assert_eq!(with_tools(&engine, code).await, finished("Ann\nBob\nCarla\nEve ['Ann', 'Bob']\nDmitri\n"));
    engine.stop().await;
}

#[tokio::test]
async fn a_result_of_an_http_api_has_status_and_headers() {
    let engine = engine();
    let code = r#"
import json
customer = await get_customer(1)
print(customer, customer["name"], isinstance(customer, dict), customer.status, customer.headers.get("link"))
text = await describe("a")
print(text, text.headers, json.dumps(customer))
"#;
    let (sender, mut questions) = mpsc::channel::<PendingProgramQuestion>(8);
    let mut program = program(code);
    program.bindings = bindings();
    let answering = async {
        while let Some(PendingProgramQuestion { question, reply }) = questions.recv().await {
            let data = match question {
                ProgramQuestion::Call { tool, .. } if tool.ends_with("describe") => {
                    ProgramData::Text("hi".to_owned())
                }
                _ => ProgramData::Json(to_raw(&json!({"name": "Ann"}))),
            };
            let http = to_raw(&json!({"status": 200, "headers": {"link": "</2>"}}));
            reply.send(ProgramReply::Data(ProgramData::Http { data: Box::new(data), http })).unwrap();
        }
    };
    let (ending, ()) = tokio::join!(engine.run(program, sender, CancellationToken::new()), answering);
    let printed = "{'name': 'Ann'} Ann True 200 </2>\nhi {'link': '</2>'} {\"name\": \"Ann\"}\n";
    assert_eq!(ending.unwrap(), finished(printed));
    engine.stop().await;
}

#[tokio::test]
async fn tools_are_found_by_any_of_their_names() {
    let engine = engine();
    let code = r#"
print((await tools["mcp__shop__get_customer"](1))["name"], (await tools.get_customer(customer_id=2))["name"])
print((await call_tool("get_customer", {"customer_id": 3}))["name"])
print((await call_tool("mcp__shop__get_customer", customer_id=4))["name"])
print("echo" in tools, "nothing" in tools, hasattr(tools, "echo"), hasattr(tools, "nothing"))
print(await inspect_tool("echo"), await search_tools("orders", limit=3))
print(tools, echo.__name__, echo.__doc__)
try:
    tools["nothing"]
except ToolError as error:
    print(error.type, error)
"#;
    // Without bindings, the program looks up every tool.
    let (sender, questions) = mpsc::channel(8);
    let bare =
        program(&code.replace("print(tools, echo.__name__, echo.__doc__)", "print(tools.echo.__doc__)"));
    let (ending, ()) = tokio::join!(engine.run(bare, sender, CancellationToken::new()), answer(questions));
    let expected = "Ann Bob\nCarla\nDmitri\nTrue False True False\n{'name': 'echo'} [{'query': 'orders', 'server': \
                    None, 'limit': 3}]\necho(value)\ntool_not_found unknown tool \"nothing\"\n";
    assert_eq!(ending.unwrap(), finished(expected));
    let text = with_tools(&engine, code).await.printed.text;
    assert!(text.contains("<tools: call tools[\"name\"](...)"), "{text}");
    engine.stop().await;
}

#[tokio::test]
async fn errors_about_arguments_list_the_valid_ones() {
    let engine = engine();
    let code = r#"
for call in (lambda: get_customer(customer=1), lambda: get_customer(1, 2), lambda: get_customer(1, customer_id=1),
             lambda: echo(value=object()), lambda: echo(value=float("nan")),
             lambda: call_tool("echo", [1]), lambda: inspect_tool(5)):
    try:
        await call()
    except ToolError as error:
        print(error.type, "|", error)
"#;
    let expected = "\
invalid_arguments | mcp__shop__get_customer: unknown argument 'customer', did you mean 'customer_id'?; valid arguments: customer_id
invalid_arguments | mcp__shop__get_customer: expected at most 1 positional arguments, got 2; valid arguments: customer_id
invalid_arguments | mcp__shop__get_customer: the argument 'customer_id' was given twice; valid arguments: customer_id
invalid_arguments | the arguments cannot be sent: a value of type object cannot be passed to a tool
invalid_arguments | the arguments cannot be sent: JSON does not support infinity and NaN
invalid_arguments | call_tool expects the arguments as a dict, not list
invalid_arguments | inspect_tool expects a string, not int
";
    assert_eq!(with_tools(&engine, code).await, finished(expected));
    let nested = with_tools(&engine, "await echo(value=slow(1, 2))").await;
    assert!(
        matches!(&nested.exit_reason, ExitReason::Raised { traceback } if traceback.contains("write `await` before")),
        "{nested:?}"
    );
    engine.stop().await;
}

#[tokio::test]
async fn a_forgotten_await_is_explained() {
    let engine = engine();
    let hint =
        "hint: a tool call returns a coroutine; write `await` before it, as in `data = await tool(...)`.";
    let traceback = raised(&engine, "customer = get_customer(1)\nprint(customer[\"name\"])\n").await;
    let lines: Vec<_> = traceback.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "Traceback (most recent call last):",
            "  File \"<program>\", line 2, in <module>",
            "    print(customer[\"name\"])"
        ]
    );
    assert_eq!(lines[lines.len() - 2..], ["TypeError: 'coroutine' object is not subscriptable", hint]);
    let traceback = raised(&engine, "page = list_orders()\nprint(page.keys())\n").await;
    assert!(
        traceback.ends_with(&format!("AttributeError: 'coroutine' object has no attribute 'keys'\n{hint}\n")),
        "{traceback}"
    );
    engine.stop().await;
}

#[tokio::test]
async fn an_unawaited_call_is_listed_with_its_line() {
    let engine = engine();
    let forgotten = |call: &str, line: u64| UnawaitedCall { call: call.to_owned(), line };
    let code = r#"
get_customer(1)
kept = list_orders()
several = [get_customer(number) for number in range(2)]
async def later():
    pass
later()
call_tool("echo", {"value": 1})
print("done")
"#;
    let ending = with_tools(&engine, code).await;
    assert_eq!((ending.exit_reason, ending.printed.text.as_str()), (ExitReason::Finished, "done\n"));
    let mut unawaited = ending.unawaited;
    unawaited.sort_by_key(|call| call.line);
    let expected = [
        forgotten("get_customer", 2),
        forgotten("list_orders", 3),
        forgotten("get_customer", 4),
        forgotten("get_customer", 4),
        forgotten("later", 7),
        forgotten("call_tool", 8),
    ];
    assert_eq!(unawaited, expected);
    // Also inside an awaited function, and before another error.
    let code = "async def main():\n    get_customer(1)\nawait main()\nraise ValueError('other')\n";
    assert_eq!(with_tools(&engine, code).await.unawaited, [forgotten("get_customer", 2)]);
    // A call that already has a hint is not listed, and the list is limited.
    let code = "customer = get_customer(1)\nprint(customer['name'])\n";
    assert_eq!(with_tools(&engine, code).await.unawaited, []);
    let code = "for number in range(1000):\n    get_customer(number)\n";
    assert_eq!(with_tools(&engine, code).await.unawaited, vec![forgotten("get_customer", 2); 20]);
    engine.stop().await;
}

#[tokio::test]
async fn values_that_json_cannot_represent_are_converted() {
    let engine = engine();
    let code = r#"
import uuid, pathlib, enum, dataclasses
from datetime import date
from decimal import Decimal
class Color(enum.Enum):
    RED = "red"
@dataclasses.dataclass
class Point:
    x: int
    y: int
values = [date(2024, 1, 2), Decimal("1.50"), Decimal(3), {1}, b"ab", uuid.UUID(int=5), pathlib.PurePath("a/b"), Color.RED, Point(1, 2)]
print(await echo(values))
print(await echo("\ud800"), repr(await picture("logo")))
number = int("9" * 5000) if False else 10**4400 + 7
import sys
sys.set_int_max_str_digits(0) if hasattr(sys, "set_int_max_str_digits") else None
back = await echo(number)
print(back == number)
"#;
    let ending = with_tools(&engine, code).await;
    // A lone surrogate can be sent and received, but not printed.
    assert!(
        matches!(&ending.exit_reason, ExitReason::Raised { traceback } if traceback.contains("surrogates not allowed")),
        "{ending:?}"
    );
    let ending = with_tools(&engine, &code.replace("print(await echo(\"\\ud800\"), ", "print(")).await;
    let expected = "['2024-01-02', 1.5, 3, [1], 'YWI=', '00000000-0000-0000-0000-000000000005', 'a/b', 'red', \
                    {'x': 1, 'y': 2}]\n<image image/png, 16 bytes>\nTrue\n";
    assert_eq!(ending, finished(expected));
    engine.stop().await;
}

#[tokio::test]
async fn thousands_of_concurrent_calls_are_queued() {
    let engine = engine();
    let code = r#"
import asyncio
values = await asyncio.gather(*(echo(number) for number in range(3000)))
print(values == list(range(3000)))
"#;
    assert_eq!(with_tools(&engine, code).await, finished("True\n"));
    engine.stop().await;
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_for_the_broker_too() {
    let engine = engine();
    let code = "import asyncio\ntry:\n    await asyncio.wait_for(slow(60000, 1), 0.05)\nexcept asyncio.TimeoutError:\n    print('cut')\nawait asyncio.sleep(0.2)\n";
    let (sender, mut questions) = mpsc::channel::<PendingProgramQuestion>(8);
    let mut program = program(code);
    program.bindings = bindings();
    let (ending, delay) = tokio::join!(engine.run(program, sender, CancellationToken::new()), async {
        let mut question = questions.recv().await.unwrap();
        let started = Instant::now();
        question.reply.closed().await;
        started.elapsed()
    });
    assert_eq!(ending.unwrap(), finished("cut\n"));
    assert!(delay < Duration::from_secs(5), "{delay:?}");
    engine.stop().await;
}

#[tokio::test]
async fn progress_is_forwarded_and_need_not_be_awaited() {
    let engine = engine();
    let (sender, mut questions) = mpsc::channel::<PendingProgramQuestion>(8);
    let collect = async {
        let mut reports = Vec::new();
        while let Some(PendingProgramQuestion { question, .. }) = questions.recv().await {
            match question {
                ProgramQuestion::Progress { progress, total, message } => {
                    reports.push((progress, total, message))
                }
                other => panic!("{other:?}"),
            }
        }
        reports
    };
    let code = "progress(1, 3, 'one')\nawait progress(2)\nprint('x')";
    let (ending, reports) =
        tokio::join!(engine.run(program(code), sender, CancellationToken::new()), collect);
    assert_eq!(ending.unwrap(), finished("x\n"));
    assert_eq!(reports, [(1.0, Some(3.0), Some("one".to_owned())), (2.0, None, None)]);
    engine.stop().await;
}

#[tokio::test]
async fn limits_end_a_program_and_keep_its_output() {
    let engine = engine();
    let (questions, _unanswered) = mpsc::channel(1);
    let mut endless = program("print('so far')\nwhile True: pass");
    endless.limits.time = Duration::from_millis(300);
    let started = Instant::now();
    let ending = engine.run(endless, questions.clone(), CancellationToken::new()).await.unwrap();
    // The first program also waits for the attacks.
    eprintln!("stopped after {:?}", started.elapsed());
    let so_far = |text: &str| ProgramOutput { text: text.into(), left_out: 0 };
    assert_eq!(ending, ProgramOutcome::new(ExitReason::TimedOut, so_far("so far\n")));

    let ending = run(&engine, "print('a')\nx = []\nwhile True: x.append(b'x' * 10**6)").await.unwrap();
    assert_eq!(ending, ProgramOutcome::new(ExitReason::OutOfMemory, so_far("a\n")));
    let caught = "try:\n    x = bytearray(10**9)\nexcept MemoryError:\n    print('caught')";
    assert_eq!(run(&engine, caught).await.unwrap(), finished("caught\n"));

    let mut loud = program("import sys\nfor n in range(1000): print('ä' * 500)\nsys.exit('end')");
    loud.limits.output = 1002;
    let ending = engine.run(loud, questions.clone(), CancellationToken::new()).await.unwrap();
    let text = format!("{}\n", "ä".repeat(500));
    let expected = ProgramOutput { text, left_out: 1001 * 1000 - 1001 };
    assert_eq!(ending, ProgramOutcome::new(ExitReason::Raised { traceback: "end\n".into() }, expected));

    let ended = run(&engine, "import ctypes\nprint('x')\nctypes.CDLL(None).mount(b'', b'/', b'', 0, None)")
        .await
        .unwrap();
    let why = "it made a forbidden system call".to_owned();
    assert_eq!(ended, ProgramOutcome::new(ExitReason::Died { why }, so_far("x\n")));
    let crashed = run(&engine, "import ctypes\nctypes.string_at(0)").await.unwrap();
    assert_eq!(crashed.exit_reason, ExitReason::Died { why: "Python crashed".into() });
    let exited = run(&engine, "import os\nprint('y', flush=True)\nos._exit(0)").await.unwrap();
    assert_eq!(exited.exit_reason, ExitReason::Died { why: "its process exited without a result".into() });
    engine.stop().await;
}

#[tokio::test]
async fn a_canceled_program_reports_it() {
    let engine = engine();
    engine.ready().await.unwrap();
    let cancel = CancellationToken::new();
    let (questions, _unanswered) = mpsc::channel(1);
    let (ending, ()) =
        tokio::join!(engine.run(program("print(1)\nwhile True: pass"), questions, cancel.clone()), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cancel.cancel();
        });
    let printed = ProgramOutput { text: "1\n".into(), left_out: 0 };
    assert_eq!(
        ending.unwrap(),
        ProgramOutcome::new(ExitReason::Died { why: "it was canceled".into() }, printed)
    );
    engine.stop().await;
}

#[tokio::test]
async fn frames_of_the_program_are_not_trusted() {
    let engine = engine();
    let write_frame = |body: &str| {
        format!(
            "import os\nbody = {body}\nos.write(3, len(body).to_bytes(4, 'little') + body)\nimport time\ntime.sleep(60)"
        )
    };
    let why = async |code: &str| match run(&engine, code).await.unwrap().exit_reason {
        ExitReason::ProtocolViolation { why } => why,
        other => format!("{other:?}"),
    };
    let forgeries = [
        ("b'e{}'", "malformed end frame: missing field `how` at line 1 column 2"),
        ("b'e{\"how\":\"finished\"}'", "malformed end frame: missing field `left_out`"),
        (
            "b'e{\"how\":\"finished\",\"left_out\":-1}'",
            "malformed end frame: invalid value: integer `-1`, expected u64",
        ),
        (
            "b'q' + b'[' * 100000",
            "malformed request: invalid type: sequence, expected u64 at line 1 column 1",
        ),
        ("b'q\\xff'", "malformed request: not UTF-8"),
        ("b'c123'", "malformed cancel frame"),
        ("b'z'", "unknown frame kind 122"),
        ("b'o' + b'x' * (2 << 20)", "invalid frame length 2097153; expected 1 to 1048576 bytes"),
        (
            "b'q{\"id\":1,\"ask\":\"call\",\"tool\":\"x\",\"arguments\":\"{}\"}'",
            "the arguments of a call are not an object",
        ),
    ];
    for (body, expected) in forgeries {
        assert_eq!(why(&write_frame(body)).await, expected, "{body}");
    }
    // After an end frame the program has finished, whatever it does next.
    let forged_end = write_frame("b'e{\"how\":\"finished\",\"left_out\":0}'")
        .replace("time.sleep(60)", "\nwhile True: pass");
    assert_eq!(run(&engine, &forged_end).await.unwrap(), finished(""));
    assert_eq!(limits().output, 1 << 20);
    engine.stop().await;
}
