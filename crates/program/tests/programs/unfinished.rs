//! Tasks that a program starts and does not await: the engine waits for them and lists those that
//! cannot finish.

use std::time::Duration;

use super::desk::{ran, ran_for, written};

const WRITE: &str = "asyncio.create_task(write_file(path=PATH, text='hello'))";

#[test]
fn a_task_of_the_last_line_is_awaited() {
    // On the event loop of the program, of `asyncio.run`, and of the program's own loop.
    let scripts = [
        ("top level", format!("import asyncio\nawait asyncio.sleep(0)\n{WRITE}\n")),
        ("run", format!("import asyncio\nasync def main():\n    {WRITE}\nasyncio.run(main())\n")),
        (
            "own loop",
            format!(
                "import asyncio\nasync def main():\n    {WRITE}\nasyncio.new_event_loop().run_until_complete(main())\n"
            ),
        ),
        ("exit", format!("import asyncio, sys\nawait asyncio.sleep(0)\n{WRITE}\nsys.exit(0)\n")),
        (
            "gather",
            "import asyncio\nawait asyncio.sleep(0)\nasyncio.gather(write_file(path=PATH, text='hello'), slow(ms=1))\n"
                .to_owned(),
        ),
    ];
    for (path, code) in scripts {
        let answered = ran(&code.replace("PATH", &format!("{path:?}")));
        assert!(!answered.failed, "{path}: {answered:?}");
        assert_eq!(written(path).as_deref(), Some("hello"), "{path}: {answered:?}");
    }
}

#[test]
fn a_task_that_exceeds_the_time_limit_is_listed_and_the_program_fails() {
    let code = "import asyncio\nasync def work():\n    await slow(ms=600000)\nprint('started')\nasyncio.create_task(work())\nasyncio.create_task(slow(ms=1))\nawait asyncio.sleep(0)\n";
    let answered = ran_for(code, Duration::from_secs(3));
    assert!(answered.failed, "{answered:?}");
    let expected = "[Script failed]\nstarted\nTimeoutError: the program exceeded its time limit of 3 s\n\
        [Not finished] line 5: work(...) was still running in line 3 when the time limit was reached";
    assert_eq!(answered.text, expected);
    assert_eq!(answered.meta["ended"], "timed_out");
}

#[test]
fn a_stuck_task_is_listed_without_waiting_for_the_time_limit() {
    let code = "import asyncio\nnever = asyncio.Event()\nasync def worker(number):\n    await never.wait()\nfor number in range(2):\n    asyncio.create_task(worker(number))\nawait asyncio.sleep(0)\nprint('done')\n";
    let answered = ran_for(code, Duration::from_secs(60));
    assert!(answered.failed, "{answered:?}");
    let line = "[Not finished] line 6: worker(...) waits in line 4 for something that never happens; await the task, or cancel it before the program ends";
    assert_eq!(answered.text, format!("[Script failed]\ndone\n{line}\n{line}"));
    assert_eq!(answered.meta["ended"], "unfinished");
}

#[test]
fn tasks_that_a_failing_program_abandons_are_listed() {
    let code = "import asyncio\nasyncio.create_task(slow(ms=600000))\nawait asyncio.sleep(0)\nraise ValueError('on purpose')\n";
    let answered = ran(code);
    assert!(answered.failed, "{answered:?}");
    assert!(
        answered.text.ends_with(
            "ValueError: on purpose\n[Not finished] line 2: mcp__shop__slow(...) was canceled because the program failed before the task finished"
        ),
        "{}",
        answered.text
    );
}

#[test]
fn a_task_that_fails_after_the_last_line_fails_the_program() {
    let code = "import asyncio\nasync def main():\n    await asyncio.sleep(0.05)\n    raise ValueError('late')\nasyncio.create_task(main())\nawait asyncio.sleep(0)\n";
    let answered = ran(code);
    assert!(answered.failed, "{answered:?}");
    assert!(
        answered.text.contains("line 4, in main") && answered.text.ends_with("ValueError: late"),
        "{}",
        answered.text
    );
}

#[test]
fn a_canceled_task_is_not_listed() {
    let code = "import asyncio\ntask = asyncio.create_task(slow(ms=600000))\nawait asyncio.sleep(0)\ntask.cancel()\nprint('done')\n";
    let answered = ran(code);
    assert_eq!((answered.text.as_str(), answered.failed), ("[Script executed successfully]\ndone", false));
}
