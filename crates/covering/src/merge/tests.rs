use super::*;
use crate::domain::{conjunction, events, mixed_points, mixed_tests, number_points, number_tests, pattern_tests};
use crate::filter_covers;
use enroute_filter::{Comparison, Constraint, Event, Filter, Limits, Test};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::LazyLock;

static NUMBER_EVENTS: LazyLock<Vec<Event>> = LazyLock::new(|| events(&number_points(), 2));
static MIXED_EVENTS: LazyLock<Vec<Event>> = LazyLock::new(|| events(&mixed_points(), 2));

const PERFECT: MergingConfig = MergingConfig { perfect: true, imperfect: None };

/// A conjunction of the pool, and whether it is inserted or removed.
type Step = (usize, bool);

/// A forest, what is announced of its roots, and what others know of that by the changes they were told.
struct Announcing {
    forest: Forest,
    merging: Merging,
    told: BTreeSet<Conjunction>,
}

impl Announcing {
    fn new(config: MergingConfig) -> Announcing {
        Announcing { forest: Forest::new(), merging: Merging::new(config), told: BTreeSet::new() }
    }

    /// Returns how many conjunctions had to be told.
    fn change(&mut self, conjunction: &Conjunction, is_insert: bool) -> usize {
        let roots = if is_insert { self.forest.insert(1, conjunction) } else { self.forest.remove(1, conjunction) };
        self.tell(&roots)
    }

    fn tell(&mut self, roots: &RootChange) -> usize {
        let change = self.merging.apply(roots);
        for added in &change.added {
            assert!(self.told.insert(Conjunction::clone(added)), "{added:?} is told already");
        }
        for removed in &change.removed {
            assert!(self.told.remove(&**removed), "{removed:?} was never told");
        }
        assert!(self.merging.announced().eq(&self.told));
        change.added.len() + change.removed.len()
    }

    /// Sees an event, and tells at once what that changes, if anything.
    fn observe(&mut self, event: &Event) {
        if self.merging.observe(event) {
            self.tell(&RootChange::default());
        }
    }

    fn insert(&mut self, text: &str) {
        self.change(&parsed(text), true);
    }

    fn insert_all(&mut self, texts: &[&str]) {
        texts.iter().for_each(|text| self.insert(text));
    }

    fn remove(&mut self, text: &str) {
        self.change(&parsed(text), false);
    }

    fn announces(&self, event: &Event) -> bool {
        self.told.iter().any(|one| one.matches(event))
    }

    fn wants(&self, event: &Event) -> bool {
        self.forest.roots().any(|root| root.matches(event))
    }

    fn assert_announces(&self, expected: &[&str]) {
        let expected: BTreeSet<Conjunction> = expected.iter().map(|text| parsed(text)).collect();
        assert_eq!(self.told, expected);
    }

    /// What is announced if all roots come at once.
    fn afresh(&self, config: MergingConfig) -> BTreeSet<Conjunction> {
        let mut merging = Merging::new(config);
        let added = self.forest.roots().cloned().map(Arc::new).collect();
        merging.apply(&RootChange { added, removed: Vec::new() });
        merging.announced().cloned().collect()
    }
}

fn parsed(text: &str) -> Conjunction {
    let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{}", error.render(text)));
    let [conjunction] = filter.conjunctions() else { panic!("{text} is no single conjunction") };
    conjunction.clone()
}

fn event(attributes: &[(&str, i64)]) -> Event {
    attributes
        .iter()
        .fold(Event::builder(), |event, &(name, value)| event.attribute(name, value))
        .build()
        .expect("is small")
}

fn pool_and_steps(tests: Vec<Test>, names: usize) -> impl Strategy<Value = (Vec<Conjunction>, Vec<Step>)> {
    let pool = proptest::collection::vec(conjunction(tests, names), 1..24);
    let steps = proptest::collection::vec((any::<prop::sample::Index>(), proptest::bool::weighted(0.6)), 0..60);
    (pool, steps).prop_map(|(pool, steps)| {
        let steps = steps.into_iter().map(|(index, is_insert)| (index.index(pool.len()), is_insert)).collect();
        (pool, steps)
    })
}

/// The steps, and then the removal of everything.
fn and_remove_all(pool: &[Conjunction], steps: Vec<Step>) -> impl Iterator<Item = Step> {
    steps.into_iter().chain((0..pool.len()).map(|index| (index, false)))
}

fn run_perfectly(pool: &[Conjunction], steps: Vec<Step>, events: &[Event]) {
    let mut announcing = Announcing::new(PERFECT);
    for (index, is_insert) in and_remove_all(pool, steps) {
        announcing.change(&pool[index], is_insert);
        for event in events {
            assert_eq!(announcing.announces(event), announcing.wants(event), "{event:?}");
        }
        assert!(announcing.told.len() <= announcing.forest.root_count());
        assert_eq!(announcing.told, announcing.afresh(PERFECT));
    }
    assert!(announcing.told.is_empty());
    assert_eq!(format!("{:?}", announcing.merging.groups), format!("{:?}", Some(Groups::default())));
    assert!(announcing.merging.counts.is_empty() && announcing.merging.merged.is_empty());
}

/// Imperfect merging, alone or after perfect merging, while some of the events are seen.
fn run_imperfectly(pool: &[Conjunction], steps: Vec<Step>, events: &[Event], config: MergingConfig, seen: usize) {
    let budget = config.imperfect.expect("is given");
    let mut announcing = Announcing::new(config);
    let mut observed = Vec::new();
    for (number, (index, is_insert)) in and_remove_all(pool, steps).enumerate() {
        // Few enough for all to be in the sample.
        for offset in 0..seen {
            let event = &events[(37 * number + 101 * offset) % events.len()];
            if observed.len() < 200 {
                announcing.observe(event);
                observed.push(event);
            }
        }
        announcing.change(&pool[index], is_insert);
        assert!(events.iter().all(|event| announcing.announces(event) || !announcing.wants(event)));
        let share = |start: usize| {
            let half: Vec<_> = observed.iter().skip(start).step_by(2).collect();
            let unwanted = half.iter().filter(|event| announcing.announces(event) && !announcing.wants(event)).count();
            (!half.is_empty()).then(|| unwanted as f64 / half.len() as f64)
        };
        let (of_lessons, of_checks) = (share(0), share(1));
        assert_eq!(announcing.merging.false_interest(), of_checks);
        assert!([of_lessons, of_checks].iter().flatten().all(|&share| share <= budget.false_interest));
    }
    assert!(announcing.told.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn perfect_merging_of_numbers_changes_nothing_of_what_matches((pool, steps) in pool_and_steps(number_tests(), 2)) {
        run_perfectly(&pool, steps, &NUMBER_EVENTS);
    }

    #[test]
    fn perfect_merging_of_all_classes_changes_nothing_of_what_matches(
        (pool, steps) in pool_and_steps([mixed_tests(), pattern_tests()].concat(), 2),
    ) {
        run_perfectly(&pool, steps, &MIXED_EVENTS);
    }

    #[test]
    fn imperfect_merging_covers_what_is_wanted_within_its_budget(
        (pool, steps) in pool_and_steps([number_tests(), mixed_tests()].concat(), 2),
        perfect: bool, filters in 0..6_usize, false_interest in 0.0..0.5, seen in 0..8_usize,
    ) {
        let config = MergingConfig { perfect, imperfect: Some(Budget { filters, false_interest }) };
        run_imperfectly(&pool, steps, &MIXED_EVENTS, config, seen);
    }
}

#[test]
fn what_differs_in_one_attribute_is_announced_as_one() {
    let mut announcing = Announcing::new(PERFECT);
    announcing.insert("dest = 'A' AND origin = 'X'");
    announcing.insert("dest = 'B' AND origin = 'X'");
    announcing.assert_announces(&["dest IN ('A', 'B') AND origin = 'X'"]);
    announcing.insert("dest = 'A' AND origin = 'Y'");
    announcing.assert_announces(&["dest IN ('A', 'B') AND origin = 'X'", "dest = 'A' AND origin = 'Y'"]);
    announcing.insert("dest = 'B' AND origin = 'Y'");
    announcing.assert_announces(&["dest IN ('A', 'B') AND origin IN ('X', 'Y')"]);
    announcing.remove("dest = 'A' AND origin = 'X'");
    announcing.assert_announces(&["dest = 'B' AND origin = 'X'", "dest IN ('A', 'B') AND origin = 'Y'"]);
}

#[test]
fn unions_are_of_all_that_a_constraint_can_say() {
    for (a, b, union) in [
        ("a BETWEEN 1 AND 3 AND b = 1", "a BETWEEN 2 AND 5 AND b = 1", "a BETWEEN 1 AND 5 AND b = 1"),
        ("a < 5 AND b = 1", "a >= 5 AND b = 1", "(a < 5 OR a >= 5) AND b = 1"),
        ("a <> 5 AND b = 1", "a = 5 AND b = 1", "(a < 5 OR a >= 5) AND b = 1"),
        ("a = 1 AND b = 1", "a = 'x' AND b = 1", "a IN (1, 'x') AND b = 1"),
        ("a PREFIX 'x' AND b = 1", "a SUFFIX 'y' AND b = 1", "(a PREFIX 'x' OR a SUFFIX 'y') AND b = 1"),
        ("a IS NULL AND b = 1", "a IS NOT NULL AND b = 1", "b = 1"),
    ] {
        let mut announcing = Announcing::new(PERFECT);
        announcing.insert(a);
        announcing.insert(b);
        announcing.assert_announces(&[union]);
        announcing.remove(a);
        announcing.assert_announces(&[b]);
    }
}

#[test]
fn no_union_says_absent_or_some_value() {
    let mut announcing = Announcing::new(PERFECT);
    let (absent, one, two) = ("a IS NULL AND b = 1", "a = 1 AND b = 1", "a = 2 AND b = 1");
    announcing.insert_all(&[absent, one, two]);
    announcing.assert_announces(&[absent, "a IN (1, 2) AND b = 1"]);
}

#[test]
fn what_a_union_covers_is_not_announced() {
    let mut announcing = Announcing::new(PERFECT);
    let hidden = "a BETWEEN 1 AND 4 AND b = 7";
    announcing.insert_all(&["a BETWEEN 1 AND 2 AND b >= 5", "a BETWEEN 2 AND 4 AND b >= 5", hidden]);
    announcing.assert_announces(&["a BETWEEN 1 AND 4 AND b >= 5"]);
    announcing.remove("a BETWEEN 2 AND 4 AND b >= 5");
    announcing.assert_announces(&["a BETWEEN 1 AND 2 AND b >= 5", hidden]);
}

/// Thousands that could be one are several, of bounded size; a change of one tells few others anew.
#[test]
fn large_groups_are_divided() {
    let one = |index: i64| {
        let values = [("flight", index), ("carrier", 7)];
        Conjunction::new(values.map(|(name, value)| Constraint::compare(name, Comparison::Eq, value)))
            .expect("satisfiable")
    };
    let mut announcing = Announcing::new(PERFECT);
    let mut told = 0;
    for index in 0..2_000 {
        told += announcing.change(&one(index), true);
        let largest = announcing.told.iter().map(|one| one.to_bytes().len()).max().expect("something");
        assert!(largest <= perfect::MAX_GROUP, "{largest}");
    }
    assert!(announcing.told.len() < 100, "{}", announcing.told.len());
    assert!(told < 5 * 2_000, "{told}");
    let all = Filter::any_of(announcing.told.iter().cloned(), &Limits::default()).expect("is small");
    assert!((0..2_000).all(|index| filter_covers(&all, &one(index).into())));
    for index in 0..2_000 {
        announcing.change(&one(index), false);
        assert!(!announcing.told.iter().any(|told| told.covers(&one(index))));
    }
    assert!(announcing.told.is_empty());
}

/// What alone is larger than a group may be passes as it is.
#[test]
fn large_conjunctions_are_left_alone() {
    let long = |letter: &str| {
        let test = Test::compare(Comparison::Eq, &*letter.repeat(perfect::MAX_GROUP));
        Conjunction::new([Constraint::new("a", test)]).expect("satisfiable")
    };
    let mut announcing = Announcing::new(PERFECT);
    let (x, y) = (long("x"), long("y"));
    announcing.change(&x, true);
    announcing.change(&y, true);
    assert_eq!(announcing.told, BTreeSet::from([x, y]));
}

fn within(filters: usize, false_interest: f64) -> Announcing {
    Announcing::new(MergingConfig { perfect: false, imperfect: Some(Budget { filters, false_interest }) })
}

/// Four that nobody would call alike but for two of them.
const FOUR: [&str; 4] = ["a = 1 AND b = 1", "a = 2 AND b = 2", "c = 1 AND d = 1", "e = 1"];

#[test]
fn nothing_is_merged_on_no_evidence() {
    let mut announcing = within(3, 0.01);
    announcing.insert_all(&FOUR);
    announcing.assert_announces(&FOUR);
    assert_eq!(announcing.merging.false_interest(), None);
    for _ in 0..198 {
        announcing.observe(&event(&[("e", 1)]));
    }
    announcing.insert("e = 1 AND f = 1");
    announcing.assert_announces(&["a IN (1, 2) AND b IN (1, 2)", "c = 1 AND d = 1", "e = 1"]);
}

#[test]
fn evidence_is_acted_upon_though_nobody_subscribes_any_more() {
    let mut announcing = within(3, 0.1);
    announcing.insert_all(&FOUR);
    (0..15).for_each(|_| announcing.observe(&event(&[("e", 1)])));
    announcing.assert_announces(&FOUR);
    // Ten of those that check are enough for a tenth; that many more are looked at when there are 32 in all.
    (15..32).for_each(|_| announcing.observe(&event(&[("e", 1)])));
    announcing.assert_announces(&["a IN (1, 2) AND b IN (1, 2)", "c = 1 AND d = 1", "e = 1"]);
}

#[test]
fn hulls_that_match_what_nobody_wants_are_not_made() {
    let mut announcing = within(3, 0.1);
    for _ in 0..90 {
        announcing.observe(&event(&[("a", 1), ("b", 2)]));
    }
    announcing.insert_all(&FOUR);
    // Not `a` with `b`; what else is merged has nothing in common.
    assert!(!announcing.announces(&event(&[("a", 1), ("b", 2)])));
    assert_eq!(announcing.merging.false_interest(), Some(0.0));
    assert_eq!(announcing.told.len(), 4);
}

/// Each hull of two matches one of the events that nobody wants, but none twice: those that were seen say which hulls are
/// bad, and only others, of how many.
#[test]
fn what_was_learnt_is_checked_with_other_events() {
    let mut announcing = within(10, 0.1);
    let unwanted = |index: i64| event(&[("a", index), ("b", index + 1)]);
    let (seen, others) = (0..4_000).partition::<Vec<i64>, _>(|index| index * 2_147_483_647 % 4 == 0);
    seen.into_iter().for_each(|index| announcing.observe(&unwanted(index)));
    (0..4_000).for_each(|value| announcing.insert(&format!("a = {value} AND b = {value}")));
    let matched = others.iter().filter(|&&index| announcing.announces(&unwanted(index))).count();
    let share = matched as f64 / others.len() as f64;
    assert!((0.05..0.2).contains(&share), "{share}");
    assert!(announcing.told.len() < 3_900, "{}", announcing.told.len());
}

#[test]
fn a_hull_ends_when_half_of_its_parts_are_gone() {
    let mut announcing = within(1, 1.0);
    let parts = [1, 2, 3, 4].map(|value| format!("a = {value} AND b = {value}"));
    announcing.insert_all(&parts.each_ref().map(|text| &**text));
    announcing.assert_announces(&["a IN (1, 2, 3, 4) AND b IN (1, 2, 3, 4)"]);
    announcing.remove(&parts[0]);
    announcing.remove(&parts[1]);
    announcing.assert_announces(&["a IN (1, 2, 3, 4) AND b IN (1, 2, 3, 4)"]);
    announcing.remove(&parts[2]);
    announcing.assert_announces(&[&parts[3]]);
}

#[test]
fn a_hull_ends_when_it_matches_too_much_of_what_comes() {
    let mut announcing = within(1, 0.25);
    for _ in 0..100 {
        announcing.observe(&event(&[("a", 1), ("b", 1)]));
    }
    let parts = ["a = 1 AND b = 1", "a = 2 AND b = 2"];
    announcing.insert_all(&parts);
    announcing.assert_announces(&["a IN (1, 2) AND b IN (1, 2)"]);
    for _ in 0..100 {
        announcing.observe(&event(&[("a", 1), ("b", 2)]));
    }
    // No root has changed since.
    announcing.assert_announces(&parts);
    assert_eq!(announcing.merging.false_interest(), Some(0.0));
}

/// A set that grows without end in a hull ends as "present", and a hull of very many sets as TRUE.
#[test]
fn hulls_are_small_enough_to_be_told() {
    for (long_attributes, expected) in [(1, Some(&Test::Present)), (3, None)] {
        let mut announcing = within(1, 1.0);
        for index in 0..200 {
            let long = format!("{index}").repeat(20);
            let text =
                (0..long_attributes).map(|attribute| format!("a{attribute} = '{long}' AND ")).collect::<String>();
            announcing.insert(&format!("{text}c = {index}"));
            let largest = announcing.told.iter().map(|one| one.to_bytes().len()).max().expect("something");
            assert!(largest <= 2 * perfect::MAX_GROUP, "{largest}");
        }
        let [hull] = &announcing.told.iter().collect::<Vec<_>>()[..] else { panic!("{:?}", announcing.told) };
        assert_eq!(hull.test("a0"), expected);
        assert_eq!(hull.test("c").is_some(), expected.is_some());
    }
}

#[test]
fn the_sample_forgets_what_has_not_come_for_long() {
    let (old, new) = (event(&[("a", 1)]), event(&[("b", 1)]));
    let mut sample = sample::Sample::default();
    for _ in 0..1_000 {
        sample.observe(&old, |_| (0, 1));
    }
    for _ in 0..2_000_000 {
        sample.observe(&new, |_| (1, 1));
    }
    let left = sample.unwanted_announced().count();
    assert_eq!(sample.len(), sample::MAX_EVENTS);
    assert!(left < sample::MAX_EVENTS / 4, "{left}");
}
