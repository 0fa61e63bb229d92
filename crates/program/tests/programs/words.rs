//! What a model reads of a program that printed too much, nothing, or could not be compiled.

use std::time::Duration;

use super::desk::{ran, ran_for};

#[test]
fn output_that_was_cut_before_a_time_out_is_reported() {
    let answered = ran_for("print('x' * 1500)\nwhile True: pass\n", Duration::from_secs(3));
    let expected = format!(
        "[Script failed]\n{}\n[Output cut: 501 more bytes were printed; a program may print 1000]\nTimeoutError: the \
         program was stopped after 3 s, which is all that it may take",
        "x".repeat(1000)
    );
    assert_eq!(answered.text, expected);
    assert_eq!(answered.meta["leftOut"], 501);
}

#[test]
fn progress_of_zero_is_sent() {
    let answered = ran("progress(0, 2, 'begin')\nprogress(2, 2, 'end')\nprint('x')\n");
    let told: Vec<_> = answered.progress.iter().map(|(at, words)| (*at, words.as_deref())).collect();
    assert_eq!(told, [(0.0, Some("begin")), (2.0, Some("end"))]);
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
        let fine = text.contains(number) && text.lines().any(|line| line.trim().starts_with(shown));
        assert!(fine, "{code:?}: {text}");
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
    let nothing = "[Nothing was printed] Use print(...) to show what you need";
    assert_eq!(last("x = [1, 'a']\nx\n"), format!("{value}\n[1, 'a']"));
    assert_eq!(last("await get_customer(customer_id=7)"), format!("{value}\n{{'id': 7, 'name': 'Ann'}}"));
    assert_eq!(last("x = 2\nx + 1  # three\n"), format!("{value}\n3"));
    assert_eq!(
        last("import asyncio\nawait asyncio.sleep(0)\nasyncio.create_task(slow(ms=1))"),
        format!("{value}\n{{'slept': 1}}")
    );
    // None is nothing, and a statement has no value.
    assert_eq!(last("x = 1\n"), nothing);
    assert_eq!(last("[].append(1)\n"), nothing);
    assert_eq!(last(""), nothing);
    // What was printed is the answer, and an expression in the middle is none.
    assert_eq!(last("print('a')\n7\n"), "a");
    assert_eq!(last("7\nx = 1\n"), nothing);
    // It is cut as what is printed is.
    let long = last("'x' * 5000\n");
    assert_eq!(
        long,
        format!("{value}\n'{}\n[Output cut: 4002 more bytes; a program may print 1000]", "x".repeat(999))
    );
    // A repr that fails says so instead of failing the program.
    let odd = "class Odd:\n    def __repr__(self):\n        raise ValueError('no')\nOdd()\n";
    assert_eq!(last(odd), format!("{value}\n<Odd object whose repr raises ValueError: no>"));
}

#[test]
fn a_failed_program_says_that_it_printed_nothing() {
    let answered = ran("1 / 0\n");
    assert!(
        answered.text.starts_with("[Script failed]\n[Nothing was printed]\nTraceback"),
        "{}",
        answered.text
    );
}
