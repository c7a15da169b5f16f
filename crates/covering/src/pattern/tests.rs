use super::*;
use crate::domain::{mixed_tests, pattern_tests};
use enroute_filter::{Comparison, Filter};

/// All strings of up to five characters: two that the tests' patterns name, one less than those and one greater.
fn strings() -> Vec<String> {
    let mut strings = vec![String::new()];
    let mut from = 0;
    for _ in 0..5 {
        let longest = from..strings.len();
        from = strings.len();
        for index in longest {
            strings.extend(['A', 'a', 'b', 'c'].map(|char| format!("{}{char}", strings[index])));
        }
    }
    strings
}

fn string_sets() -> Vec<StringSet> {
    let tests = [mixed_tests(), pattern_tests()].concat();
    let of = |test: &Test| match test {
        Test::In(set) => Some(set.strings().clone()),
        Test::Absent | Test::Present => None,
    };
    let mut sets: Vec<StringSet> = tests.iter().filter_map(of).collect();
    sets.sort_unstable();
    sets.dedup();
    sets
}

fn strings_of(text: &str) -> StringSet {
    let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{}", error.render(text)));
    let [conjunction] = filter.conjunctions() else { panic!("{text} is no single conjunction") };
    match conjunction.test("s") {
        Some(Test::In(set)) => set.strings().clone(),
        Some(Test::Absent | Test::Present) | None => panic!("{text} is no set"),
    }
}

#[test]
fn searches_find_what_is_there() {
    let (strings, sets) = (strings(), string_sets());
    let members: Vec<BTreeSet<&str>> = sets
        .iter()
        .map(|set| strings.iter().map(|string| &**string).filter(|string| set.contains(string)).collect())
        .collect();
    let mut empty = 0;
    for (f, of_f) in sets.iter().zip(&members) {
        for (g, of_g) in sets.iter().zip(&members) {
            assert!(!is_refuted(f, g) || !of_g.is_subset(of_f), "{f:?}\n{g:?}");
            match find_string(&[f, g], &[]) {
                Found::Nothing => assert!(of_f.is_disjoint(of_g), "{f:?}\n{g:?}"),
                Found::String(string) => assert!(f.contains(&string) && g.contains(&string), "{string}: {f:?}\n{g:?}"),
                Found::Undecided => panic!("{f:?}\n{g:?}"),
            }
            match find_string(&[f], &[g]) {
                Found::Nothing => assert!(of_f.is_subset(of_g), "{f:?}\n{g:?}"),
                Found::String(string) => assert!(f.contains(&string) && !g.contains(&string), "{string}: {f:?}\n{g:?}"),
                Found::Undecided => panic!("{f:?}\n{g:?}"),
            }
            empty += usize::from(of_f.is_subset(of_g));
        }
    }
    assert!(empty > 1_000, "{empty}");
}

#[test]
fn the_shortest_string_is_found() {
    for (inside, outside, expected) in [
        ("s like '%ab%' and s like '%ba%'", "s = ''", "aba"),
        ("s contains 'na'", "s like '%na_%'", "na"),
        ("s like '__%_'", "s like '____%'", "\0\0\0"),
        ("s > 'abc' and s prefix 'ab'", "s prefix 'abc'", "abd"),
        ("s like 'é%' and not (s like '%é')", "s = ''", "é\0"),
    ] {
        let Found::String(string) = find_string(&[&strings_of(inside)], &[&strings_of(outside)]) else {
            panic!("{inside} without {outside}")
        };
        assert_eq!(string, expected, "{inside} without {outside}");
    }
}

/// Both kinds of pattern that take too many states: one too long, and one that has to remember where every `a` stood.
#[test]
fn hopeless_searches_end() {
    let forgetful = strings_of(&format!("s like '%a{}'", "_".repeat(20)));
    let long = strings_of(&format!("s like '_%{}'", "a".repeat(200)));
    let b = strings_of("s contains 'b'");
    for hopeless in [&forgetful, &long] {
        assert!(matches!(
            find_string(&[hopeless, &b], &[&strings_of("s contains 'bb'"), &forgetful]),
            Found::Undecided
        ));
    }
}

/// What does not reach as far is not found out, though it covers: only `a`, `b` and `c` are one character from `a` to `cz`.
#[test]
fn covering_needs_intervals_that_reach_as_far() {
    let listed = Test::In(strings_of("s in ('a', 'b', 'c')").into());
    let one_of_three = Test::In(strings_of("s like '_' and s between 'a' and 'cz'").into());
    assert!(does_cover(&listed, &one_of_three) && !might_cover(&listed, &one_of_three));
    let wider = Test::compare(Comparison::Ge, "a");
    assert!(wider.covers(&one_of_three));
}

/// Patterns that name the same characters take no search each to be told apart.
#[test]
fn what_a_guess_tells_apart_takes_no_search() {
    let named = |index: usize| ["%a%b%c%", "%a%c%b%", "%b%a%c%", "_%c_b%a", "%c%a%b", "a%c%b_"][index];
    let sets = [0, 1, 2, 3, 4, 5].map(|index| strings_of(&format!("s LIKE '{}'", named(index))));
    for (f, g) in (0..6).flat_map(|f| (0..6).map(move |g| (f, g))) {
        assert_eq!(is_refuted(&sets[f], &sets[g]), f != g && (f, g) != (1, 5), "{} {}", named(f), named(g));
    }
}

#[test]
fn what_a_guess_is_in_takes_no_search() {
    let sets =
        ["s CONTAINS 'warm'", "s LIKE '%warm%dry'", "s PREFIX 'site/'", "s NOT LIKE '%warm%'", "s SUFFIX 'cold'"];
    let sets = sets.map(strings_of);
    for (f, g) in (0..5).flat_map(|f| (0..5).map(move |g| (f, g))) {
        let apart = [(0, 3), (1, 3), (1, 4)].contains(&(f.min(g), f.max(g)));
        assert_eq!(meet(&sets[f], &sets[g]), !apart, "{f} {g}");
    }
}
