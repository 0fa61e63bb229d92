//! Whatever this reader reads, the parser that knows all of YAML reads as the same, and counts alike.

use std::path::Path;

use super::super::text::Reading;
use super::super::yaml::read_strictly;

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    GaveUp,
    Differs { usual: String, strict: String },
}

fn compared(text: &str) -> Verdict {
    let reading = || Reading { depth: 192, left: 6_000_000, diagnostics: Vec::new() };
    let (mut ours, mut theirs) = (reading(), reading());
    let Some(node) = super::read(text, &mut ours) else { return Verdict::GaveUp };
    let usual = format!("{node} {} []", ours.left);
    let strict = match read_strictly(text, &mut theirs) {
        Ok(node) => format!("{node} {} {:?}", theirs.left, theirs.diagnostics),
        Err(stop) => format!("{stop:?}"),
    };
    if usual == strict { Verdict::Same } else { Verdict::Differs { usual, strict } }
}

/// What is usual, one thing at a time.
const USUAL: [&str; 34] = [
    "a: 1\nb: x y\nc:\nd: -5\ne: true\nf: ~\n",
    "---\n# first\na: 1 # one\n\n  # more\nb: 'x' # two\n",
    "a:\n  b:\n    c: d\n  e: f\ng: h\n",
    "a:\n- 1\n- 2\nb:\n  - x: 1\n    y: 2\n  -\n    z: 3\n  -\n  - - p\n    - q\n",
    "- 1",
    "a: one\n  two\n\n\n  three\nb: 2\n",
    "a:\n  one\n    two\n  three\n",
    "a:\n  - one\n    two\n  - three\n",
    "a: |\n  one\n    two\n\n  three\n\n\nb: 1\n",
    "a: |-\n  one\n\nb: |+\n  two\n\n\nc: >\n  x\n  y\n\n  z\n   more\n  w\n",
    "a: >-\n  one\n\n\n  two\n    three\n\n    four\n  five\n",
    "a: |+\n      \n  \nb: |\n\n\nc: >-\nd: |\n",
    "a: |\n  one\n      \n  two\n    \nb: >\n  one\n      \n  two\n     \n",
    "a: |  # why\n  # no comment\n  text\n # comment\nb: 1\n",
    "a:\n  - |\n    one\n  - >\n   two\n   three\n  - four\n",
    "a: \"one\"\nb: 'it''s'\nc: \"\"\nd: ''\n\"e\": f\n'g h': i\n",
    "a: \"x\\n\\\"y\\\" \\u00e4 \\x41 \\/ \\_z\"\n",
    "a: \"one  \n  two\n\n\n  three \\\n   four\\n  \n  five\"\nb: 1\n",
    "a: 'one  \n  two''s\n\n  three\n  '\nb: 1\n",
    "a: \"\n  x\"\nb: 'y'\n",
    "a: []\nb: {}\nc: [1, x, 'y', \"z\", [2], {k: v}]\nd: {a: 1, \"b\": [x]}\n",
    "a: [\n    1,\n    two\n  ]\nb: {\n  k: v,\n\n  l: w }\n",
    "a: [http://x/y, 12:30, a b c]\n",
    "a: http://x/y#z\nb: a#b\nc: x:y\nd: --x\n",
    "a: <b>\nb: (c)\nc: $d\nd: /e\ne: ^f\nf: +g\ng: .h\nh: 1.5e3\ni: 0x1f\n",
    "/a/{b}:\n  get: x\na b: c\n$ref: '#/d'\n404: e\n",
    "a: x, [y], {z}\nb: it's \"so\"\nc: a - b ? c\n",
    "a: ä\nü: 'ö'\nb: \"日本\"\nc: |\n  ß\n",
    "a:\n    b: 1\n    c:\n          d: 2\n",
    "a:\n# c\n  b: 1\n      # d\n  c: 2\n",
    "a:   1   \nb:   \nc: 'x'   \n",
    "a: 1",
    "a:\n  b: x\n\n\n",
    "a:\n  - b: |\n      one\n    c: 2\n  - d: >+\n      two\n\ne: 1\n",
];

/// What is for the other parser.
const UNUSUAL: [&str; 30] = [
    "a: &x 1\nb: *x\n",
    "a: !!str 1\n",
    "<<: {a: 1}\n",
    "a: 1\na: 2\n",
    "a: {b: 1, b: 2}\n",
    "? a\n: b\n",
    "[a]: b\n",
    "{a: b}\n",
    "- a\n",
    "text\n",
    "",
    "a:\tb\n",
    "a: b\r\n",
    "%YAML 1.2\n---\na: 1\n",
    "a: 1\n---\nb: 2\n",
    "a: 1\n...\n",
    "a: b: c\n",
    "a: b\n  c: d\n",
    "a:\n  b: 1\n c: 2\n",
    " a: 1\nb: 2\n",
    "a: 'x\nb: 1\n",
    "a: 'x' y\n",
    "a: [1\nb: 2\n",
    "a: [1, 2\n",
    "a: [x: 1]\n",
    "a: [1, # c\n  2]\n",
    "a: |2\n   x\n",
    "a: |\n  no end of line",
    "a: @b\n",
    "a: \"\\q\"\n",
];

#[test]
fn what_is_usual_is_read_as_the_other_parser_reads_it() {
    for text in USUAL {
        let expected =
            if text.starts_with('-') && !text.starts_with("---") { Verdict::GaveUp } else { Verdict::Same };
        assert_eq!(compared(text), expected, "{text}");
    }
}

#[test]
fn what_is_not_usual_is_left_to_the_other_parser() {
    for text in UNUSUAL {
        assert_eq!(compared(text), Verdict::GaveUp, "{text}");
    }
}

#[test]
fn documents_are_read_as_the_other_parser_reads_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/openapi");
    let mut read = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let verdict = compared(&std::fs::read_to_string(&path).unwrap());
            assert!(!matches!(verdict, Verdict::Differs { .. }), "{}: {verdict:?}", path.display());
            read.extend((verdict == Verdict::Same).then(|| path.file_name().unwrap().to_owned()));
        }
    }
    assert!(read.iter().any(|name| name == "openai.yaml") && read.len() >= 6, "{read:?}");
}

#[test]
fn too_deep_or_too_many_is_left_to_the_other_parser() {
    let deep =
        |levels: usize| (0..levels).map(|level| format!("{}a:\n", " ".repeat(level))).collect::<String>();
    let mut reading = Reading { depth: 5, left: 100, diagnostics: Vec::new() };
    assert!(super::read(&deep(5), &mut reading).is_some());
    assert!(super::read(&deep(6), &mut reading).is_none());
    let mut reading = Reading { depth: 5, left: 4, diagnostics: Vec::new() };
    assert!(super::read("a: 1\nb: 2\n", &mut reading).is_none());
    let mut reading = Reading { depth: usize::MAX, left: 1_000_000, diagnostics: Vec::new() };
    assert!(super::read(&deep(1_000), &mut reading).is_none());
    assert!(super::read(&format!("a: {}", "[".repeat(100_000)), &mut reading).is_none());
}

/// Pieces of YAML put together anyhow, most of it wrong: a reader that is too trusting would take some of it for right.
#[test]
fn texts_of_random_pieces_are_read_alike_or_given_up() {
    const PIECES: [&str; 44] = [
        "a", "b", ": ", ":", "\n", "\n", "\n  ", "\n    ", "\n ", "  ", " ", "- ", "-", "#", " # c", "|",
        ">", "|-", "|+\n", ">-\n", "'", "\"", "''", "\\", "\\n", "[", "]", "{", "}", ", ", ",", "x y", "1",
        "?", "&a ", "*a", "!", "---", "...", "\n\n", "a: b\n", "- c\n", "ä", "%",
    ];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let (mut same, mut faults) = (0, Vec::new());
    for _ in 0..40_000 {
        // Most begin as something that is right.
        let mut text = USUAL.get(random(USUAL.len() + 8)).copied().unwrap_or("a: ").to_owned();
        for _ in 0..1 + random(6) {
            let at = (0..=random(text.len() + 1)).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            match random(4) {
                0 => drop(text.drain(at..).take(1 + random(3)).collect::<String>()),
                1 if at < text.len() => drop(text.remove(at)),
                _ => text.insert_str(at, PIECES[random(PIECES.len())]),
            }
        }
        match compared(&text) {
            Verdict::Same => same += 1,
            Verdict::GaveUp => {}
            differs => faults.push(format!("{text:?}\n{differs:?}")),
        }
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(same > 4_000, "{same}");
}
