use super::*;
use crate::domain::{conjunction, mixed_tests, number_tests, pattern_tests, single};
use crate::{PredicateShape, PredicateSummary};
use enroute_filter::{Comparison, Constraint, Test};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;

thread_local! {
    /// How often two conjunctions were compared: what a change costs, whatever the machine.
    pub(super) static COMPARISONS: Cell<u64> = const { Cell::new(0) };
}

/// How many comparisons something takes.
fn comparisons(work: impl FnOnce()) -> u64 {
    let before = COMPARISONS.get();
    work();
    COMPARISONS.get() - before
}

/// The truth: who wants what, and nothing else.
#[derive(Default)]
struct Model(BTreeMap<Conjunction, BTreeSet<u64>>);

impl Model {
    /// Those above which none stands; of equivalent ones the smallest.
    fn roots(&self) -> BTreeSet<Conjunction> {
        let is_root = |one: &&Conjunction| !self.0.keys().any(|other| other != *one && stands_above(other, one));
        self.0.keys().filter(is_root).cloned().collect()
    }

    fn insert(&mut self, owner: u64, conjunction: &Conjunction) {
        self.0.entry(conjunction.clone()).or_default().insert(owner);
    }

    fn remove(&mut self, owner: u64, conjunction: &Conjunction) {
        if let Some(owners) = self.0.get_mut(conjunction) {
            owners.remove(&owner);
            if owners.is_empty() {
                self.0.remove(conjunction);
            }
        }
    }
}

fn roots(forest: &Forest) -> BTreeSet<Conjunction> {
    forest.roots().cloned().collect()
}

/// The difference of two sets of roots, as the forest should have told it.
fn change(before: &BTreeSet<Conjunction>, after: &BTreeSet<Conjunction>) -> RootChange {
    let list = |a: &BTreeSet<Conjunction>, b: &BTreeSet<Conjunction>| a.difference(b).cloned().map(Arc::new).collect();
    RootChange { added: list(after, before), removed: list(before, after) }
}

fn assert_invariants(forest: &Forest) {
    let nodes = &forest.nodes;
    let mut hanging = 0;
    let mut trees: Vec<NodeId> = nodes.roots().collect();
    assert_eq!(trees.len(), forest.root_count);
    while let Some(parent) = trees.pop() {
        let conjunction = nodes.conjunction(parent);
        assert_eq!(nodes.find(conjunction, nodes.hash(conjunction)), Some(parent));
        hanging += 1;
        for child in nodes.children(parent) {
            assert_eq!(nodes.parent(child), Some(parent));
            assert!(covers(nodes.conjunction(parent), nodes.conjunction(child)));
            trees.push(child);
        }
    }
    assert_eq!(hanging, nodes.len());
}

fn assert_is_as_new(forest: &Forest) {
    let memory = |forest: &Forest| format!("{:?} {:?}", forest.nodes.capacity(), forest.index);
    assert_eq!(memory(forest), memory(&Forest::new()));
    assert!(forest.is_empty());
}

/// An owner, a conjunction of the pool, and whether it is inserted or removed.
type Step = (u64, usize, bool);

fn run(pool: &[Conjunction], steps: &[Step]) {
    let (mut forest, mut model) = (Forest::new(), Model::default());
    let finally = model_removals(pool);
    for &(owner, index, is_insert) in steps.iter().chain(&finally) {
        let (conjunction, before) = (&pool[index], roots(&forest));
        let change_told = if is_insert {
            model.insert(owner, conjunction);
            forest.insert(owner, conjunction)
        } else {
            model.remove(owner, conjunction);
            forest.remove(owner, conjunction)
        };
        let after = model.roots();
        assert_eq!(roots(&forest), after);
        assert_eq!(change_told, change(&before, &after));
        assert_eq!((forest.len(), forest.root_count()), (model.0.len(), after.len()));
        assert_eq!(forest.is_empty(), model.0.is_empty());
        assert_invariants(&forest);
    }
    assert_is_as_new(&forest);
}

/// Removes everything of everybody.
fn model_removals(pool: &[Conjunction]) -> Vec<Step> {
    (0..3).flat_map(|owner| (0..pool.len()).map(move |index| (owner, index, false))).collect()
}

fn pool_and_steps(tests: Vec<Test>, names: usize) -> impl Strategy<Value = (Vec<Conjunction>, Vec<Step>)> {
    let pool = proptest::collection::vec(conjunction(tests, names), 1..24);
    let steps =
        proptest::collection::vec((0..3u64, any::<prop::sample::Index>(), proptest::bool::weighted(0.6)), 0..80);
    (pool, steps).prop_map(|(pool, steps)| {
        let steps = steps.into_iter().map(|(owner, index, is_insert)| (owner, index.index(pool.len()), is_insert));
        let steps = steps.collect();
        (pool, steps)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn roots_are_the_maxima_of_numbers((pool, steps) in pool_and_steps(number_tests(), 3)) {
        run(&pool, &steps);
    }

    /// Of one more than the index has numbers for.
    #[test]
    fn roots_are_the_maxima_on_too_many_attributes((pool, steps) in pool_and_steps(number_tests(), 5)) {
        run(&pool, &steps);
    }

    #[test]
    fn roots_are_the_maxima_of_all_classes((pool, steps) in pool_and_steps(mixed_tests(), 2)) {
        run(&pool, &steps);
    }

    #[test]
    fn roots_are_the_maxima_of_strings_and_patterns(
        (pool, steps) in pool_and_steps([mixed_tests(), pattern_tests()].concat(), 1),
    ) {
        run(&pool, &steps);
    }
}

#[test]
fn equal_conjunctions_live_until_both_owners_are_gone() {
    let both = single("a", Test::compare(Comparison::Ge, 1));
    let mut forest = Forest::new();
    assert_eq!(forest.insert(1, &both).added, [Arc::new(both.clone())]);
    assert!(forest.insert(2, &both).is_empty());
    assert!(forest.insert(2, &both).is_empty());
    assert!(forest.remove(2, &both).is_empty());
    assert!(forest.remove(2, &both).is_empty(), "it is not theirs any more");
    assert_eq!(forest.len(), 1);
    assert_eq!(forest.remove(1, &both).removed, [Arc::new(both.clone())]);
    assert_is_as_new(&forest);
}

#[test]
fn a_cover_that_leaves_reveals_what_it_hid() {
    let [wide, narrow, narrower] = [1, 2, 3].map(|least| single("a", Test::compare(Comparison::Ge, least)));
    let mut forest = Forest::new();
    for conjunction in [&narrower, &wide, &narrow] {
        forest.insert(7, conjunction);
    }
    assert_eq!((forest.len(), forest.root_count()), (3, 1));
    let change = forest.remove(7, &wide);
    assert_eq!(change, RootChange { added: vec![Arc::new(narrow)], removed: vec![Arc::new(wide)] });
}

/// Neither for long ones nor, when all words are taken, for any.
#[test]
fn roots_that_the_index_has_no_room_for_are_looked_at_one_by_one() {
    let bounded = |names: &[&str], least: i64| {
        let constraints = names.iter().map(|name| Constraint::compare(*name, Comparison::Ge, least));
        Conjunction::new(constraints).expect("satisfiable")
    };
    let (long, longer) = (bounded(&["a", "b", "c", "d"], 1), bounded(&["a", "b", "c", "d"], 2));
    for is_full in [false, true] {
        let (mut forest, mut model) = (Forest::new(), Model::default());
        if is_full {
            forest.index.fill();
        }
        for root in [&longer, &bounded(&["a"], 9), &bounded(&["b"], 9), &long, &bounded(&["a"], 2)] {
            forest.insert(1, root);
            model.insert(1, root);
            assert_eq!(roots(&forest), model.roots());
            assert_invariants(&forest);
        }
        let users: usize = forest.predicates().iter().map(|summary| summary.users).sum();
        assert_eq!(users, if is_full { 0 } else { 2 });
        for root in [&long, &bounded(&["a"], 2), &bounded(&["b"], 9), &longer, &bounded(&["a"], 9)] {
            forest.remove(1, root);
            model.remove(1, root);
            assert_eq!(roots(&forest), model.roots());
        }
        assert_is_as_new(&forest);
    }
}

#[test]
fn true_covers_all() {
    let constrained = single("a", Test::Absent);
    let mut forest = Forest::new();
    forest.insert(1, &constrained);
    let change = forest.insert(1, &Conjunction::always());
    assert_eq!(change.removed, [Arc::new(constrained.clone())]);
    assert_eq!(forest.remove(1, &Conjunction::always()).added, [Arc::new(constrained)]);
}

/// Long strings of one beginning have one code; numbers beyond 2^53 share a float.
#[test]
fn values_that_the_index_cannot_tell_apart_are_told_apart() {
    let strings =
        ["", "1", "2"].map(|end| Test::compare(Comparison::Eq, format!("a long common beginning {end}").as_str()));
    let numbers = [0, 1, 2].map(|offset| Test::compare(Comparison::Eq, (1_i64 << 60) + offset));
    let above = Test::compare(Comparison::Gt, 1_i64 << 60);
    let mut forest = Forest::new();
    for test in strings.into_iter().chain(numbers) {
        forest.insert(1, &single("a", test));
    }
    assert_eq!(forest.root_count(), 6);
    assert_eq!(forest.insert(1, &single("a", above)).removed.len(), 2);
    assert_eq!(forest.root_count(), 5);
}

#[test]
fn predicates_of_the_roots_are_summed_up() {
    let mut forest = Forest::new();
    for (index, least) in [(1, 1), (2, 2), (3, 2), (1, 3)] {
        let constraints =
            [Constraint::compare("topic", Comparison::Eq, index), Constraint::compare("amount", Comparison::Ge, least)];
        forest.insert(1, &Conjunction::new(constraints).expect("satisfiable"));
    }
    let summaries = |forest: &Forest| -> Vec<String> {
        let shape = |it: PredicateShape| format!("{} different, {} deep", it.predicates, it.depth);
        let summary = |it: &PredicateSummary| format!("{} {}: {:?}", it.attribute, it.users, it.shape.map(shape));
        forest.predicates().iter().map(summary).collect()
    };
    let both = ["amount 3: Some(\"2 different, 2 deep\")", "topic 3: Some(\"3 different, 1 deep\")"];
    assert_eq!(summaries(&forest), both);
    // Of one attribute the roots say too much to look through; the others are looked at all the same.
    (0..20).for_each(|value| drop(forest.insert(1, &single("name", Test::compare(Comparison::Eq, value)))));
    assert_eq!(summaries(&forest), ["name 20: None", both[0], both[1]]);
}

/// A chain taken down from its top: each removal reveals one root.
#[test]
fn a_chain_falls_link_by_link() {
    let links: Vec<Conjunction> = (0..2_000).map(|least| single("a", Test::compare(Comparison::Ge, least))).collect();
    let mut forest = Forest::new();
    for link in &links {
        forest.insert(1, link);
    }
    for pair in links.windows(2) {
        let change = forest.remove(1, &pair[0]);
        assert_eq!(change.added, [Arc::new(pair[1].clone())]);
    }
    assert_eq!(forest.len(), 1);
}

/// Many that have nothing to do with each other, below one that covers them all, which comes and goes.
#[test]
fn many_unrelated_below_one_cover() {
    let cover = single("kind", Test::compare(Comparison::Eq, "flight"));
    let below = |index: i64| {
        let constraints = [
            Constraint::compare("kind", Comparison::Eq, "flight"),
            Constraint::compare("number", Comparison::Eq, index / 2),
            Constraint::compare("delay", if index % 2 == 0 { Comparison::Ge } else { Comparison::Lt }, 60),
        ];
        Conjunction::new(constraints).expect("satisfiable")
    };
    let mut forest = Forest::new();
    for index in 0..2_000 {
        assert_eq!(forest.insert(1, &below(index)).added.len(), 1);
    }
    assert_eq!(forest.insert(2, &cover).removed.len(), 2_000);
    assert!(forest.insert(3, &below(2_000)).is_empty());
    assert_eq!(forest.remove(2, &cover).added.len(), 2_001);
    for index in (0..=2_000).rev() {
        let owner = if index == 2_000 { 3 } else { 1 };
        assert_eq!(forest.remove(owner, &below(index)).removed.len(), 1);
    }
    assert_is_as_new(&forest);
}

/// Roots over many children that have nothing to do with one another, among many more roots, leave one after the other.
#[test]
fn a_storm_of_removals_compares_each_child_with_few() {
    let topic = |index: i64| single("topic", Test::compare(Comparison::Eq, index));
    let below = |topic: i64, index: i64| {
        let constraints = [
            Constraint::compare("topic", Comparison::Eq, topic),
            Constraint::new("place", Test::between(10 * index, 10 * index + 5)),
        ];
        Conjunction::new(constraints).expect("satisfiable")
    };
    let (topics, children) = (5, 500);
    let mut forest = Forest::new();
    for topic in 0..20 {
        (0..children).for_each(|index| drop(forest.insert(1, &below(topic, index))));
    }
    (0..topics).for_each(|index| drop(forest.insert(2, &topic(index))));
    let compared = comparisons(|| {
        for index in 0..topics {
            assert_eq!(forest.remove(2, &topic(index)).added.len(), children as usize);
        }
    });
    let moved = (topics * children) as u64;
    assert!(compared < 3 * moved, "{compared} comparisons for {moved} children");
}

/// Boxes of which none covers another, though each overlaps many.
#[test]
fn boxes_are_compared_with_few_others() {
    let side = |start: i64| Test::between(start, start + 100);
    let mut forest = Forest::new();
    let compared = comparisons(|| {
        for index in 0..2_000 {
            let constraints =
                [Constraint::new("x", side(index * 7 % 1_000)), Constraint::new("y", side(index * 11 % 1_009))];
            forest.insert(1, &Conjunction::new(constraints).expect("satisfiable"));
        }
    });
    assert_eq!(forest.root_count(), 2_000);
    assert!(compared < 2_000, "{compared} comparisons");
}

/// None of them covers another one, and each covers all single values but one.
#[test]
fn what_differs_from_one_value_each_is_compared_with_few_others() {
    let mut forest = Forest::new();
    let compared = comparisons(|| {
        (0..1_000).for_each(|value| drop(forest.insert(1, &single("a", Test::compare(Comparison::Ne, value)))));
    });
    assert_eq!(forest.root_count(), 1_000);
    assert!(compared < 20_000, "{compared} comparisons");
    assert!(forest.insert(1, &single("a", Test::compare(Comparison::Eq, 500))).is_empty());
}

/// Patterns that have little in common.
#[test]
fn patterns_are_compared_with_few_others() {
    let word =
        |index: usize| (0..5).map(|place| char::from(b'a' + (index * 7 / 3_usize.pow(place) % 23) as u8)).collect();
    let patterns: BTreeSet<String> = (0..400).map(word).collect();
    let mut forest = Forest::new();
    let compared = comparisons(|| {
        patterns.iter().for_each(|part| drop(forest.insert(1, &single("a", Test::contains(part)))));
        patterns.iter().for_each(|part| drop(forest.insert(1, &single("a", Test::suffix(part)))));
    });
    assert_eq!(forest.len(), 2 * patterns.len());
    assert_eq!(forest.root_count(), patterns.len(), "what ends with a part contains it");
    assert!(compared < 10_000, "{compared} comparisons of {} patterns", 2 * patterns.len());
}

/// Of two bounds each, the children of a root that leaves are placed without going through all pairs; nor is there much to do
/// when those leave that take its place.
#[test]
fn children_with_two_bounds_are_compared_with_few() {
    let bounds = |x: i64, y: i64| {
        let constraints = [Constraint::compare("x", Comparison::Ge, x), Constraint::compare("y", Comparison::Ge, y)];
        Conjunction::new(constraints).expect("satisfiable")
    };
    let mut forest = Forest::new();
    forest.insert(1, &bounds(0, 0));
    (1..=2_000).for_each(|index| drop(forest.insert(1, &bounds(index, index * 977 % 2_003))));
    let mut leaving = bounds(0, 0);
    let compared = comparisons(|| {
        for _ in 0..100 {
            forest.remove(1, &leaving);
            leaving = forest.roots().next().expect("many are left").clone();
        }
    });
    assert!(compared < 20_000, "{compared} comparisons");
}
