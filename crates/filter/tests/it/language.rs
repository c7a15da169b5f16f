//! The language by a table of cases, its limits, and what `explain` says.

use enroute_filter::{
    Explanation, Expression, Filter, Limit, LimitExceeded, Limits, ParseError, ParseErrorKind, WarningKind,
};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/filters.txt");
const SEPARATOR: &str = " => ";

fn outcome(text: &str) -> String {
    match Filter::parse(text) {
        Ok(filter) => filter.to_string(),
        Err(error) => format!("! {} {}..{}", error.kind.name(), error.span.start, error.span.end),
    }
}

#[test]
fn the_table_of_cases() {
    let table = std::fs::read_to_string(TABLE).unwrap();
    let case = |line: &str| {
        let text = line.split_once(SEPARATOR).map_or(line, |(text, _)| text);
        format!("{text}{SEPARATOR}{}", outcome(text))
    };
    let is = |line: &str| if line.starts_with('#') { line.to_owned() } else { case(line) };
    let actual: Vec<String> = table.lines().map(is).collect();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(TABLE, actual.join("\n") + "\n").unwrap();
        return;
    }
    for (expected, actual) in table.lines().zip(actual) {
        assert_eq!(actual, expected);
    }
}

/// What every canonical text, and every text of a syntax tree, must do.
#[test]
fn canonical_texts_are_fixed_points() {
    for line in std::fs::read_to_string(TABLE).unwrap().lines().filter(|line| !line.starts_with('#')) {
        let text = line.split_once(SEPARATOR).map_or(line, |(text, _)| text);
        let Ok(filter) = Filter::parse(text) else { continue };
        assert_eq!(Filter::parse(&filter.to_string()).as_ref(), Ok(&filter), "{text}");
        assert_eq!(filter.to_string().parse().as_ref(), Ok(&filter), "{text}");
        let expression = Expression::parse(text).unwrap();
        assert_eq!(Expression::parse(&expression.to_string()).as_ref(), Ok(&expression), "{text}");
    }
}

#[test]
fn errors_say_what_was_expected_and_show_the_place() {
    let source = "kind = 'flight' AND\n\tdest IN ('SFO', NULL)";
    let error = Filter::parse(source).unwrap_err();
    assert_eq!(error.kind, ParseErrorKind::NullLiteral);
    assert_eq!(&source[error.span.clone()], "NULL");
    assert_eq!(
        error.to_string(),
        "NULL is not a value: expected a literal (`attribute IS NULL` asks for absence) (bytes 37..41)"
    );
    assert_eq!(
        error.render(source),
        "error: NULL is not a value: expected a literal (`attribute IS NULL` asks for absence)\n\
         \x20--> line 2, column 18\n\
         \x20 |\n\
         2 | \tdest IN ('SFO', NULL)\n\
         \x20 | \t                ^^^^"
    );
}

/// Every error of the table can be shown, and says something.
#[test]
fn all_errors_render() {
    let mut kinds = std::collections::BTreeSet::new();
    for line in std::fs::read_to_string(TABLE).unwrap().lines().filter(|line| !line.starts_with('#')) {
        let text = line.split_once(SEPARATOR).map_or(line, |(text, _)| text);
        let Err(error) = Filter::parse(text) else { continue };
        assert!(!error.expected.is_empty(), "{text}");
        assert!(text.get(error.span.clone()).is_some(), "{text}");
        assert!(error.render(text).contains('^'));
        kinds.insert(error.kind.name());
    }
    // All but those of limits.
    assert_eq!(kinds.len(), 14, "{kinds:?}");
}

#[track_caller]
fn exceeds(text: &str, limits: &Limits, limit: Limit, found: usize) -> ParseError {
    let error = Filter::parse_with(text, limits).unwrap_err();
    let maximum = limits.maximum(limit);
    assert_eq!(error.kind, ParseErrorKind::Limit(LimitExceeded { limit, found, maximum }));
    assert!(error.to_string().contains(limit.name()) && error.to_string().contains(&found.to_string()));
    assert_eq!(error.render(text).lines().count(), 5);
    error
}

#[test]
fn every_limit_has_an_error_of_its_own() {
    let limits = Limits::default();
    let of_length = |length: usize| format!("x = '{}'", "y".repeat(length - 6));
    assert!(Filter::parse(&of_length(16 * 1024)).is_ok());
    let error = exceeds(&of_length(16 * 1024 + 1), &limits, Limit::FilterText, 16 * 1024 + 1);
    assert_eq!(error.span, 16 * 1024..16 * 1024 + 1);

    let chain = |attributes: usize| vec!["a"; attributes].join(" and ");
    assert!(Filter::parse(&format!("not {}", chain(500))).is_ok(), "1,000 tokens");
    exceeds(&chain(501), &limits, Limit::Tokens, 1_001);

    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Filter::parse(&nested(64)).is_ok());
    assert_eq!(exceeds(&nested(65), &limits, Limit::Nesting, 65).span, 64..65);

    let lower = Limits::default().lowered(Limit::InValues, 3);
    assert!(Filter::parse_with("x in (1, 2, 3)", &lower).is_ok());
    assert_eq!(exceeds("x in (1, 2, 3, 4)", &lower, Limit::InValues, 4).span, 15..16);

    let many = |count: usize| (0..count).map(|n| format!("a{n}")).collect::<Vec<_>>().join(" or ");
    assert_eq!(Filter::parse(&many(256)).unwrap().conjunctions().len(), 256);
    exceeds(&many(257), &limits, Limit::Conjunctions, 257);

    let name = |length: usize| "x".repeat(length);
    assert!(Filter::parse(&name(255)).is_ok());
    exceeds(&name(256), &limits, Limit::AttributeName, 256);
    exceeds(&format!("`{}`", name(256)), &limits, Limit::AttributeName, 256);
}

#[test]
fn a_product_of_disjunctions_is_refused_before_it_is_built() {
    // 2^40 conjunctions.
    let text = (0..40).map(|n| format!("(a{n} or b{n})")).collect::<Vec<_>>().join(" and ");
    let error = Filter::parse(&text).unwrap_err();
    assert_eq!(error.kind.name(), "limit_conjunctions");
    let error = Filter::parse(&format!("not ({})", text.replace("or", "AND").replace(" and ", " or "))).unwrap_err();
    assert_eq!(error.kind.name(), "limit_conjunctions");
}

#[test]
fn hostile_texts_get_an_error() {
    let limits = Limits::default();
    exceeds(&"(".repeat(100_000), &limits, Limit::FilterText, 100_000);
    exceeds(&"(".repeat(16_000), &limits, Limit::Nesting, 65);
    exceeds(&"x".repeat(1 << 20), &limits, Limit::FilterText, 1 << 20);
    exceeds(&"x".repeat(16_000), &limits, Limit::AttributeName, 16_000);
    exceeds(&"not ".repeat(4_000), &limits, Limit::Tokens, 1_001);
    exceeds(&"- ".repeat(8_000), &Limits::default().lowered(Limit::Tokens, 1), Limit::Tokens, 2);
    assert_eq!(Filter::parse(&"not ".repeat(900)).unwrap_err().kind, ParseErrorKind::UnexpectedEnd);
    assert_eq!(Filter::parse(&format!("x = {}", "9".repeat(16_000))).unwrap_err().kind.name(), "number_out_of_range");
}

fn kinds(text: &str) -> Vec<WarningKind> {
    explain(text).warnings.into_iter().map(|warning| warning.kind).collect()
}

fn explain(text: &str) -> Explanation {
    Explanation::of(text, &Limits::default()).unwrap()
}

#[test]
fn explain_names_attributes_and_the_canonical_form() {
    let explanation = explain("b = 1 and (a > 2 or a in (1, 2)) and c is null");
    assert_eq!(explanation.canonical, "(a = 1 OR a >= 2) AND b = 1 AND c IS NULL");
    assert_eq!(explanation.required, ["a", "b"]);
    assert_eq!(explanation.mentioned, ["a", "b", "c"]);
    let json = serde_json::to_value(explain("not a")).unwrap();
    assert_eq!(json["canonical"], "a = FALSE");
    assert_eq!(json["warnings"][0]["kind"], "skips_absent");
}

#[test]
fn explain_warns_of_negations_that_skip_the_absent() {
    use WarningKind::SkipsAbsent;
    for text in ["a <> 1", "not a = 1", "not (a = 1 and b)", "a not in (1)", "not a like 'x'", "not a", "`x y` <> 1"] {
        assert_eq!(kinds(text).first(), Some(&SkipsAbsent), "{text}");
    }
    for text in
        ["a = 1", "not a <> 1", "not not a = 1", "a is null or a <> 1", "a is not null and a <> 1", "not a is null"]
    {
        assert_eq!(kinds(text), [], "{text}");
    }
    assert_eq!(
        explain("`x y` <> 1").warnings[0].message,
        "the negation skips events without `x y`; to have those too, add: OR `x y` IS NULL"
    );
}

#[test]
fn explain_shows_the_smallest_part_that_is_never_true() {
    for (text, parts) in [
        ("a between 5 and 3", vec!["a BETWEEN 5 AND 3"]),
        ("b and a between 1 and 'x'", vec!["a BETWEEN 1 AND 'x'"]),
        ("b or a < 3 and a > 5 and b", vec!["a < 3 AND a > 5 AND b = TRUE"]),
        ("c and (a = 1 and a = 'x' or b)", vec!["a = 1 AND a = 'x'"]),
        ("a between 2 and 1 or b between 2 and 1", vec!["a BETWEEN 2 AND 1", "b BETWEEN 2 AND 1"]),
        ("b = 1 or FALSE", vec![]),
    ] {
        let warnings = explain(text).warnings;
        let expected: Vec<_> = parts.iter().map(|part| format!("this is never true: {part}")).collect();
        assert_eq!(warnings.into_iter().map(|warning| warning.message).collect::<Vec<_>>(), expected, "{text}");
    }
    assert!(kinds("not a in (1, 'x')").contains(&WarningKind::NeverTrue));
}

#[test]
fn explain_warns_of_strings_that_read_like_something_else() {
    assert_eq!(kinds("t >= '2013-01-01T06:00:00Z'"), [WarningKind::LooksLikeTime]);
    assert_eq!(kinds("t = '2013-01-01T06:00:00'"), [WarningKind::LooksLikeTime]);
    assert_eq!(kinds("t >= TIMESTAMP '2013-01-01T06:00:00Z'"), []);
    assert_eq!(kinds("x > '5'"), [WarningKind::LooksLikeNumber]);
    assert_eq!(kinds("zip = '94107'"), []);
    assert_eq!(kinds("x > 'nan'"), []);
    assert_eq!(kinds("a is null or a is not null"), [WarningKind::AlwaysTrue]);
}
