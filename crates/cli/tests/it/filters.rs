//! `enroute filter`.

use crate::program::{Running, run};

const EVAL: &str = include_str!("../../testdata/eval.txt");
const COVERS: &str = include_str!("../../testdata/covers.txt");

/// Feeds the questions of a table to a command in one go and compares answer by answer. A case is two lines: the question,
/// and `=> ` with what the answer must be, or must start with if it ends in `…`. Other lines are comments.
fn converse(command: &str, table: &str) {
    let mut questions = String::new();
    let mut expected = Vec::new();
    let mut lines = table.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(answer) = lines.peek().and_then(|next| next.strip_prefix("=> ")) {
            questions += line;
            questions.push('\n');
            expected.push((line, answer));
        }
    }
    let ended = run(&["filter", command], questions);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let answers: Vec<_> = ended.stdout.lines().collect();
    assert_eq!(answers.len(), expected.len());
    for ((question, expected), answer) in expected.into_iter().zip(answers) {
        match expected.strip_suffix('…') {
            Some(start) => assert!(answer.starts_with(start), "{question}\n{answer}"),
            None => assert_eq!(answer, expected, "{question}"),
        }
        serde_json::from_str::<serde_json::Value>(answer).unwrap();
    }
}

#[test]
fn eval_answers_line_by_line() {
    assert!(EVAL.matches("\n=> ").count() > 20);
    converse("eval", EVAL);
}

#[test]
fn covers_answers_line_by_line() {
    assert!(COVERS.matches("\n=> ").count() > 10);
    converse("covers", COVERS);
}

#[test]
fn eval_answers_before_more_is_read() {
    let mut running = Running::start(&["filter", "eval", "--time", "at"]);
    for _ in 0..3 {
        running.write(
            "{\"filter\":\"at > TIMESTAMP '2013-01-01T00:00:00Z'\",\"event\":{\"at\":\"2013-01-01T00:00:01Z\"}}\n",
        );
        assert_eq!(running.line(), r#"{"match":true}"#);
    }
    assert_eq!(running.end().code, Some(0));
}

#[test]
fn eval_survives_what_is_no_text() {
    let mut input = b"\xff\xfe\n".to_vec();
    input.extend(vec![b'['; 100_000]);
    input.extend(b"\n{\"filter\":\"x\",\"event\":{\"x\":true}}");
    let ended = run(&["filter", "eval"], input);
    let answers: Vec<_> = ended.stdout.lines().collect();
    assert_eq!(answers.len(), 3);
    assert!(answers[0].starts_with(r#"{"error":{"kind":"line","message":"the line is not UTF-8"#), "{}", answers[0]);
    assert!(answers[1].starts_with(r#"{"error":{"kind":"line""#), "{}", answers[1]);
    assert_eq!(answers[2], r#"{"match":true}"#);
    assert_eq!(ended.code, Some(0));
}

#[test]
fn explain_shows_the_canonical_form() {
    let ended = run(&["filter", "explain", "not (x <> 3) and y in (2, 1)"], "");
    assert_eq!(ended.stdout.lines().next(), Some("canonical: x = 3 AND y IN (1, 2)"));
    assert!(ended.stdout.contains("requires:  x, y\n"), "{}", ended.stdout);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn explain_warns_of_negations() {
    let ended = run(&["filter", "explain", "x <> 1"], "");
    assert!(ended.stdout.contains("warning:   "), "{}", ended.stdout);
    assert!(ended.stdout.contains("IS NULL"), "{}", ended.stdout);
}

#[test]
fn explain_reads_standard_input_and_writes_json() {
    let ended = run(&["filter", "explain", "--json", "-"], "x = 1 or x = 2\n");
    let explanation: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(explanation["canonical"], "x IN (1, 2)");
    assert_eq!(explanation["required"], serde_json::json!(["x"]));
}

#[test]
fn a_filter_error_has_a_caret_under_its_place() {
    let ended = run(&["filter", "explain", "kind = 'flight' and dep_delay >> 60"], "");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    let lines: Vec<_> = ended.stderr.lines().collect();
    assert!(lines[0].starts_with("error: "), "{}", ended.stderr);
    let source = lines.iter().position(|line| line.contains("dep_delay >> 60")).expect(&ended.stderr);
    let caret = lines[source + 1].find('^').expect(&ended.stderr);
    assert_eq!(caret, lines[source].find(">> 60").unwrap() + 1, "{}", ended.stderr);
}

#[test]
fn limits_are_named() {
    let parentheses = "(".repeat(100_000);
    let identifier = "a".repeat(1 << 20);
    for text in [parentheses, identifier] {
        let ended = run(&["filter", "explain", "-"], text);
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains("16384"), "{}", ended.stderr);
        assert!(ended.stderr.len() < 4096);
    }
    let ended = run(&["filter", "explain", &"(".repeat(900)], "");
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("64"), "{}", ended.stderr);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut running = Running::start_unread(&["filter", "eval"]);
    running.stop_reading();
    running.write("{\"filter\":\"x\",\"event\":{\"x\":true}}\n");
    let ended = running.end();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn usage_errors_are_2() {
    for arguments in
        [&["filter"][..], &["filter", "explain"], &["nonsense"], &["--nonsense"], &[], &["sub", "x", "--count", "0"]]
    {
        assert_eq!(run(arguments, "").code, Some(2), "{arguments:?}");
    }
    let ended = run(&["--log", "a=b=c", "filter", "covers"], "");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
}
