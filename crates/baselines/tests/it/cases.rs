//! Named cases, crossed with every system.

use enroute_baselines::all;
use enroute_filter::{Event, Filter, JsonReader};
use enroute_matcher::SubscriptionId;

struct Case {
    name: &'static str,
    filter: Filter,
    event: Event,
    matches: bool,
}

fn cases() -> Vec<Case> {
    let reader = JsonReader { times: vec!["t".into()], ..JsonReader::default() };
    let lines = include_str!("../../../matcher/testdata/cases.txt").lines();
    let case = |line: &'static str| {
        let (name, case) = line.split_once(": ").unwrap_or_else(|| panic!("no name: {line}"));
        let [filter, event, answer] = case.split(" => ").collect::<Vec<_>>()[..] else { panic!("three parts: {line}") };
        Case {
            name,
            filter: Filter::parse(filter).unwrap_or_else(|error| panic!("{line}: {error}")),
            event: reader.read(event).unwrap_or_else(|error| panic!("{line}: {error}")).0,
            matches: match answer {
                "yes" => true,
                "no" => false,
                other => panic!("yes or no, not {other}: {line}"),
            },
        }
    };
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(case).collect()
}

#[test]
fn every_system_answers_every_case() {
    let cases = cases();
    assert!(cases.len() > 100);
    let mut ids = Vec::new();
    for mut engine in all() {
        for Case { name, filter, event, matches } in &cases {
            engine.insert(SubscriptionId(0), filter);
            engine.matches(event, &mut ids);
            assert_eq!(!ids.is_empty(), *matches, "{name}, alone: {}", engine.name());
            engine.remove(SubscriptionId(0));
        }
        for (id, case) in cases.iter().enumerate() {
            engine.insert(SubscriptionId(id as u64), &case.filter);
        }
        for (id, case) in cases.iter().enumerate() {
            engine.matches(&case.event, &mut ids);
            let found = ids.contains(&SubscriptionId(id as u64));
            assert_eq!(found, case.matches, "{}, among all: {}", case.name, engine.name());
        }
    }
}

#[test]
fn names_tell_the_systems_apart() {
    let mut names: Vec<&str> = all().iter().map(|engine| engine.name()).collect();
    assert_eq!((names.len(), names[0]), (14, "scan"));
    assert!(names.iter().all(|name| enroute_baselines::engine(name).is_some_and(|engine| engine.name() == *name)));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 14);
    assert!(enroute_baselines::engine("none").is_none());
}
