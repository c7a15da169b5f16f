use super::*;
use crate::samples;
use proptest::prelude::*;
use std::cell::Cell;

fn pattern(text: &str) -> Option<Pattern> {
    match Pattern::like(text, Some('\\')).unwrap() {
        Like::Pattern(pattern) => Some(pattern),
        Like::Exactly(_) | Like::Prefix(_) | Like::LongerPrefix(_) => None,
    }
}

/// All strings up to six characters over an alphabet with one character that no tested pattern names.
fn strings() -> Vec<String> {
    let mut strings = vec![String::new()];
    let mut from = 0;
    for _ in 0..6 {
        let longest = from..strings.len();
        from = strings.len();
        for index in longest {
            for char in ['a', 'b', 'é'] {
                let longer = format!("{}{char}", strings[index]);
                strings.push(longer);
            }
        }
    }
    strings
}

#[test]
fn texts_are_read_into_their_simplest_form() {
    let pattern = |text| Like::Pattern(pattern(text).unwrap());
    for (text, expected) in [
        ("", Like::Exactly(String::new())),
        ("abc", Like::Exactly("abc".into())),
        (r"50\%", Like::Exactly("50%".into())),
        (r"a\_\\", Like::Exactly(r"a_\".into())),
        ("%", Like::Prefix(String::new())),
        ("%%%", Like::Prefix(String::new())),
        ("abc%", Like::Prefix("abc".into())),
        ("abc%%", Like::Prefix("abc".into())),
        ("%%a", pattern("%a")),
        ("%_a", pattern("_%a")),
        ("a%_%_", pattern("a__%")),
        ("_%", Like::LongerPrefix(String::new())),
        ("ab%_", Like::LongerPrefix("ab".into())),
    ] {
        assert_eq!(Pattern::like(text, Some('\\')), Ok(expected), "{text}");
    }
    assert_eq!(super::Pattern::suffix("a%"), Pattern::like(r"%a\%", Some('\\')).unwrap());
    assert_eq!(super::Pattern::contains("a"), Pattern::like("%a%", None).unwrap());
    assert_eq!(super::Pattern::contains(""), Like::Prefix(String::new()));
}

#[test]
fn an_escape_stands_before_what_it_escapes() {
    for (text, at) in [(r"a\b", 1), (r"é\", 2), (r"\\\", 2)] {
        assert_eq!(Pattern::like(text, Some('\\')), Err(PatternError { at }), "{text}");
    }
    assert_eq!(Pattern::like(r"\", None), Ok(Like::Exactly(r"\".into())));
    assert_eq!(Pattern::like("%%a", Some('%')), Ok(Like::Exactly("%a".into())));
}

#[test]
fn forms_and_prefixes() {
    assert_eq!(pattern("%ab").unwrap().kind(), PatternKind::Suffix("ab"));
    assert_eq!(pattern("%ab%").unwrap().kind(), PatternKind::Contains("ab"));
    assert!(matches!(pattern("a%b").unwrap().kind(), PatternKind::Like(_)));
    for (text, prefix) in [("%a", ""), ("ab%c", "ab"), ("é_", "é"), ("_a", "")] {
        assert_eq!(pattern(text).unwrap().literal_prefix(), prefix);
    }
}

/// Counts how often a symbol is taken, copies included.
#[derive(Clone)]
struct Counting<'a, I>(I, &'a Cell<usize>);

impl<I: Iterator<Item = Symbol>> Iterator for Counting<'_, I> {
    type Item = Symbol;
    fn next(&mut self) -> Option<Symbol> {
        self.1.set(self.1.get() + 1);
        self.0.next()
    }
}

#[test]
fn no_text_takes_more_steps_than_the_lengths_multiply_to() {
    let text = "a".repeat(2_000);
    for part in ["%a", "%a_", "%_a", "a%", "a%_"] {
        let pattern = Pattern::like(&format!("{}b%b", part.repeat(100)), None).unwrap();
        let Like::Pattern(pattern) = pattern else { panic!("no pattern") };
        let symbols = pattern.symbols();
        let steps = Cell::new(0);
        assert!(!fits(&symbols, Counting(text.chars().map(Symbol::Char), &steps)));
        assert!(steps.get() <= 2 * text.len() * symbols.len(), "{} steps for {part}", steps.get());
    }
}

fn text() -> impl Strategy<Value = String> {
    "[ab%_]{1,5}"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn matching_agrees_with_plain_recursion(text in text(), string in "[abé]{0,6}") {
        let fits = match Pattern::like(&text, None).unwrap() {
            Like::Exactly(whole) => whole == string,
            Like::Prefix(prefix) => string.starts_with(&prefix),
            Like::LongerPrefix(prefix) => string.starts_with(&prefix) && string != prefix,
            Like::Pattern(pattern) => pattern.matches(&string),
        };
        prop_assert_eq!(fits, samples::like(&text, &string), "{} {}", text, string);
    }

    #[test]
    fn printing_comes_back(text in r"([ab%_]|\\%|\\_|\\\\){1,6}") {
        if let Some(read) = pattern(&text) {
            prop_assert_eq!(pattern(&read.to_string()), Some(read));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn comparing_agrees_with_all_short_strings(a in "[ab%_]{1,4}", b in "[ab%_]{1,4}") {
        let (Some(a), Some(b)) = (pattern(&a), pattern(&b)) else { return Ok(()) };
        let fitting: Vec<_> = strings().into_iter().filter(|string| a.matches(string)).collect();
        let all_fit = fitting.iter().all(|string| b.matches(string));
        if let Some(included) = a.inclusion(&b) {
            prop_assert_eq!(included, all_fit, "{} in {}", a, b);
        }
        if a.is_disjoint(&b) {
            prop_assert!(!fitting.iter().any(|string| b.matches(string)), "{} against {}", a, b);
        }
        prop_assert_eq!(a.is_disjoint(&b), b.is_disjoint(&a));
    }
}

#[test]
fn comparing_decides_the_usual() {
    for (a, b, included) in [
        ("%ab", "%b", Some(true)),
        ("%b", "%ab", Some(false)),
        ("%ab", "%a%", Some(true)),
        ("%abc%", "%b%", Some(true)),
        ("a%b", "%b", Some(true)),
        ("a_b", "a%b", Some(true)),
        ("a%b", "a_b", Some(false)),
        ("%a%b%", "%b%", Some(true)),
        ("_%a", "%a", Some(true)),
    ] {
        assert_eq!(pattern(a).unwrap().inclusion(&pattern(b).unwrap()), included, "{a} in {b}");
    }
    assert!(pattern("%a").unwrap().is_disjoint(&pattern("%b").unwrap()));
    assert!(!pattern("%a").unwrap().is_disjoint(&pattern("%ba").unwrap()));
    let long = |end: &str| pattern(&format!("_%{}", "a".repeat(20_000) + end)).unwrap();
    assert_eq!(long("").inclusion(&long("b")), None);
    assert_eq!(long("").inclusion(&long("")), Some(true));
}
