//! Twelve thousand LIKE filters, most of which something hits.

use crate::chance::{Random, seed};
use enroute_filter::{Comparison, Conjunction, Constraint, Event, Filter, Test};
use enroute_matcher::{Enindex, Owner, Scratch, SubscriptionId};

const FILTERS: u64 = 12_000;
const EVENTS: usize = 120;
/// Letters of one to four bytes, and two that mean something in a pattern.
const LETTERS: [char; 8] = ['a', 'b', 'c', 'é', '京', '🦀', '%', '_'];

fn word(most: u64, random: &mut Random) -> String {
    (0..1 + random.below(most)).map(|_| *random.pick(&LETTERS)).collect()
}

/// The word as a pattern that only the word fits.
fn literal(word: &str) -> String {
    word.chars().flat_map(|char| ['!'].into_iter().filter(move |_| "%_".contains(char)).chain([char])).collect()
}

/// A prefix, a suffix, a part, or anything of literals, `%` and `_`.
fn pattern(random: &mut Random) -> String {
    let text = literal(&word(6, random));
    match random.below(6) {
        0 => format!("{text}%"),
        1 => format!("%{text}"),
        2 => format!("%{text}%"),
        3 => format!("{text}%{}", literal(&word(4, random))),
        4 => format!("%{text}_{}%", literal(&word(3, random))),
        _ => {
            let pieces = (0..1 + random.below(7)).map(|_| match random.below(3) {
                0 => "%".to_owned(),
                1 => "_".to_owned(),
                _ => literal(&word(2, random)),
            });
            pieces.collect()
        }
    }
}

/// A string that fits the pattern.
fn hit(pattern: &str, random: &mut Random) -> String {
    let (mut string, mut chars) = (String::new(), pattern.chars());
    while let Some(char) = chars.next() {
        match char {
            '!' => string.extend(chars.next()),
            '%' if random.below(2) == 0 => string.push_str(&word(3, random)),
            '%' => {}
            '_' => string.push(*random.pick(&LETTERS)),
            char => string.push(char),
        }
    }
    string
}

fn filter(pattern: &str, random: &mut Random) -> Filter {
    let like = Test::like(pattern, Some('!')).expect("escapes are in order");
    let mut constraints = vec![];
    match random.below(8) {
        0 => constraints.push(Constraint::new("text", like.complement())),
        1 => constraints.push(Constraint::new("other", like)),
        2 => {
            constraints.push(Constraint::new("text", like));
            constraints.push(Constraint::compare("text", Comparison::Gt, "b"));
        }
        3 => {
            constraints.push(Constraint::new("text", like));
            constraints.push(Constraint::compare("size", Comparison::Ge, random.below(5) as i64));
        }
        _ => constraints.push(Constraint::new("text", like)),
    }
    Conjunction::new(constraints).map_or_else(Filter::never, Filter::from)
}

/// Twice the same attribute values, so that both attributes with patterns are hit.
fn event(patterns: &[String], random: &mut Random) -> Event {
    let mut text = || {
        let pattern = random.pick(patterns).clone();
        hit(&pattern, random)
    };
    let (text, other) = (text(), text());
    let event = Event::builder().attribute("text", text).attribute("other", other);
    event.attribute("size", random.below(5) as i64).build().expect("short")
}

#[test]
fn twelve_thousand_like_filters() {
    let seed = seed(11);
    let mut random = Random(seed);
    let patterns: Vec<String> = (0..FILTERS).map(|_| pattern(&mut random)).collect();
    let mut filters: Vec<Option<Filter>> = patterns.iter().map(|pattern| Some(filter(pattern, &mut random))).collect();
    let (mut engine, mut scratch, mut found) = (Enindex::new(), Scratch::default(), Vec::new());
    for (id, filter) in (0..).zip(&filters) {
        assert!(engine.insert(SubscriptionId(id), Owner(id % 9), filter.as_ref().expect("none was removed yet")));
    }
    for round in 0..3 {
        let mut matches = 0;
        for _ in 0..EVENTS {
            let event = event(&patterns, &mut random);
            let matching = filters.iter().map(|filter| filter.as_ref().is_some_and(|filter| filter.matches(&event)));
            let expected: Vec<SubscriptionId> =
                matching.zip(0..).filter(|(matches, _)| *matches).map(|(_, id)| SubscriptionId(id)).collect();
            engine.matches(&event, &mut scratch, &mut found);
            found.sort_unstable();
            assert_eq!(found, expected, "seed {seed}, round {round}, {event:?}");
            matches += found.len();
        }
        assert!(matches > 100 * EVENTS, "seed {seed}, round {round}: {matches}");
        // Half are removed, then half of what was removed comes back.
        for (id, filter) in (0..).zip(&mut filters) {
            match round {
                0 if random.below(2) == 0 => {
                    assert!(filter.take().is_some() && engine.remove(SubscriptionId(id)));
                }
                1 if filter.is_none() && random.below(2) == 0 => {
                    let new = self::filter(&patterns[id as usize], &mut random);
                    assert!(engine.insert(SubscriptionId(id), Owner(0), &new));
                    *filter = Some(new);
                }
                _ => {}
            }
        }
    }
}
