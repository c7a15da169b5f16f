//! The table of filters and how they stand to each other.

use enroute_covering::{Kind, Relation, filter_covers, filter_overlaps, relation};
use enroute_filter::Filter;
use std::collections::BTreeSet;
use std::fmt::Write;

const TABLE: &str = include_str!("../../testdata/covers.txt");

/// Each line as the two filters' text, the filters and the relation.
fn cases() -> impl Iterator<Item = (&'static str, Filter, Filter, &'static str)> {
    let parse = |text: &str| Filter::parse(text).unwrap_or_else(|error| panic!("{}", error.render(text)));
    TABLE.lines().filter(|line| !line.starts_with('#')).map(move |line| {
        let (case, reason) = line.rsplit_once(" # ").expect("a reason");
        assert!(!reason.is_empty(), "{line}");
        let (filters, expected) = case.rsplit_once(" => ").expect("a relation");
        let (f, g) = filters.split_once(" | ").expect("two filters");
        (filters, parse(f), parse(g), expected)
    })
}

fn text(relation: Relation) -> String {
    let kind = serde_json::to_value(relation.kind).expect("is a name");
    let doubt = if relation.exact { "" } else { "?" };
    format!("{}{doubt}", kind.as_str().expect("is a name"))
}

#[test]
fn filters_stand_to_each_other_as_the_table_says() {
    let mut wrong = String::new();
    for (filters, f, g, expected) in cases() {
        let found = text(relation(&f, &g));
        if found != expected {
            writeln!(wrong, "{filters} => {found}, not {expected}").expect("is memory");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn no_case_is_there_twice() {
    let mut lines = BTreeSet::new();
    for (filters, ..) in cases() {
        let (f, g) = filters.split_once(" | ").expect("two filters");
        assert!(!lines.contains(&(g, f)) && lines.insert((f, g)), "{filters}");
    }
    assert!(lines.len() >= 300, "{}", lines.len());
}

#[test]
fn the_other_way_round_the_relation_is_mirrored() {
    for (filters, f, g, _) in cases() {
        let (there, back) = (relation(&f, &g), relation(&g, &f));
        let mirrored = match there.kind {
            Kind::Covers => Kind::Covered,
            Kind::Covered => Kind::Covers,
            same @ (Kind::Equal | Kind::Overlaps | Kind::Disjoint) => same,
        };
        assert_eq!(back, Relation { kind: mirrored, exact: there.exact }, "{filters}");
    }
}

#[test]
fn the_relation_agrees_with_covers_and_overlaps() {
    for (filters, f, g, _) in cases() {
        let kind = relation(&f, &g).kind;
        assert_eq!(filter_covers(&f, &g), matches!(kind, Kind::Equal | Kind::Covers), "{filters}");
        assert_eq!(filter_covers(&g, &f), matches!(kind, Kind::Equal | Kind::Covered), "{filters}");
        match kind {
            Kind::Overlaps => assert!(filter_overlaps(&f, &g), "{filters}"),
            Kind::Disjoint => assert!(!filter_overlaps(&f, &g), "{filters}"),
            // They overlap, unless one of them matches nothing.
            Kind::Equal | Kind::Covers | Kind::Covered => {}
        }
    }
}

#[test]
fn a_relation_is_written_as_the_command_line_answers() {
    let relation = Relation { kind: Kind::Covered, exact: true };
    let json = serde_json::to_string(&relation).expect("is plain");
    assert_eq!(json, r#"{"relation":"covered","exact":true}"#);
    assert_eq!(serde_json::from_str::<Relation>(&json).expect("round trip"), relation);
}
