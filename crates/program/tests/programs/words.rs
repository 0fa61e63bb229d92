//! The text of results: truncated output, no output, and compile errors.

use std::time::Duration;

use super::desk::{ran, ran_for};

#[test]
fn output_that_was_truncated_before_a_timeout_is_reported() {
    let answered = ran_for("print('x' * 1500)\nwhile True: pass\n", Duration::from_secs(3));
    let expected = format!(
        "[Script failed]\n{}\n[Output truncated: 501 more bytes; the limit is 1000 bytes]\nTimeoutError: the program \
         exceeded its time limit of 3 s",
        "x".repeat(1000)
    );
    assert_eq!(answered.text, expected);
    assert_eq!(answered.meta["leftOut"], 501);
}

#[test]
fn progress_of_zero_is_sent() {
    let answered = ran("progress(0, 2, 'begin')\nprogress(2, 2, 'end')\nprint('x')\n");
    let reports: Vec<_> =
        answered.progress.iter().map(|(value, message)| (*value, message.as_deref())).collect();
    assert_eq!(reports, [(0.0, Some("begin")), (2.0, Some("end"))]);
}

#[test]
fn compile_errors_show_their_line() {
    let lines = [
        ("x = 1\nreturn x\n", "return x", "line 2"),
        ("x = 1\n\nfor y in x:\n    pass\nbreak\n", "break", "line 5"),
        ("def f():\n    nonlocal q\n", "nonlocal q", "line 2"),
        ("def f():\n    x = 1\n    global x\n", "global x", "line 3"),
        ("x = 1\ndef f():\n    await g()\n", "await g()", "line 3"),
        ("print('a')\nx = (\n", "x = (", "line 2"),
        ("ok = 1\nx = '\0'\n", "x = '", "line 2"),
    ];
    for (code, shown, number) in lines {
        let text = ran(code).text;
        let shows_line = text.contains(number) && text.lines().any(|line| line.trim().starts_with(shown));
        assert!(shows_line, "{code:?}: {text}");
        assert!(text.starts_with("[Script failed]\n") && text.contains("Error: "), "{text}");
    }
}

#[test]
fn the_value_of_a_last_expression_is_shown_when_nothing_was_printed() {
    let last = |code: &str| {
        let answered = ran(code);
        assert!(!answered.failed, "{answered:?}");
        answered.text.strip_prefix("[Script executed successfully]\n").unwrap().to_owned()
    };
    let value = "[Nothing was printed] The value of the last expression:";
    let nothing = "[Nothing was printed] Use print(...) to return results";
    assert_eq!(last("x = [1, 'a']\nx\n"), format!("{value}\n[1, 'a']"));
    assert_eq!(last("await get_customer(customer_id=7)"), format!("{value}\n{{'id': 7, 'name': 'Ann'}}"));
    assert_eq!(last("x = 2\nx + 1  # three\n"), format!("{value}\n3"));
    assert_eq!(
        last("import asyncio\nawait asyncio.sleep(0)\nasyncio.create_task(slow(ms=1))"),
        format!("{value}\n{{'slept': 1}}")
    );
    // None counts as no value, and a statement has no value.
    assert_eq!(last("x = 1\n"), nothing);
    assert_eq!(last("[].append(1)\n"), nothing);
    assert_eq!(last(""), nothing);
    // Output takes precedence, and only the last expression counts.
    assert_eq!(last("print('a')\n7\n"), "a");
    assert_eq!(last("7\nx = 1\n"), nothing);
    // The value is truncated like output.
    let long = last("'x' * 5000\n");
    assert_eq!(
        long,
        format!(
            "{value}\n'{}\n[Output truncated: 4002 more bytes; the limit is 1000 bytes]",
            "x".repeat(999)
        )
    );
    // An error in `__repr__` does not fail the program.
    let broken = "class Odd:\n    def __repr__(self):\n        raise ValueError('no')\nOdd()\n";
    assert_eq!(last(broken), format!("{value}\n<Odd object whose repr raises ValueError: no>"));
}

#[test]
fn a_failed_program_without_output_reports_it() {
    let answered = ran("1 / 0\n");
    assert!(
        answered.text.starts_with("[Script failed]\n[Nothing was printed]\nTraceback"),
        "{}",
        answered.text
    );
}
