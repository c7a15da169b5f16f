//! The paper's examples, step by step, and the index's own invariants.

use super::entry::Keys;
use super::predicate::{Operand, Predicate};
use super::*;
use crate::samples::{PAPER, event, found};
use std::collections::{BTreeMap, BTreeSet};

fn filter(text: &str) -> Filter {
    Filter::parse(text).unwrap()
}

fn build(subscriptions: &[(u64, &str)]) -> Enindex {
    let filters: Vec<(u64, Filter)> = subscriptions.iter().map(|&(id, text)| (id, filter(text))).collect();
    Enindex::build(filters.iter().map(|(id, filter)| (SubscriptionId(*id), filter)))
}

/// After section 3.4's update: s3 deleted, s7 added.
fn updated() -> Enindex {
    let mut index = build(&PAPER);
    assert!(index.remove(SubscriptionId(3)));
    assert!(index.insert(SubscriptionId(7), &filter("D >= 6")));
    index
}

const S8: &str = "(B in (3, 6) or E >= 2) and (A <= 8 or D >= 6) and C <= 4";

impl Enindex {
    fn id(&self, entry: u32) -> u64 {
        self.subscriptions[self.entries[entry].subscription].id.0
    }

    /// Every L(a), sorted.
    fn key_lists(&self) -> BTreeMap<&str, Vec<u64>> {
        let list = |attribute| {
            let mut ids: Vec<u64> = self.lists.list(attribute).iter().map(|&entry| self.id(entry)).collect();
            ids.sort_unstable();
            (self.predicates.attribute_name(attribute), ids)
        };
        self.lists.keys().map(list).collect()
    }

    /// Every predicate with its users.
    fn predicate_lists(&self) -> BTreeMap<String, u32> {
        let text = |(attribute, predicate, users): (&str, &Predicate, u32)| {
            let (operator, operand) = match predicate {
                Predicate::Equal(Operand::Number(number)) => ("=", number),
                Predicate::AtLeast(Operand::Number(number)) => (">=", number),
                Predicate::AtMost(Operand::Number(number)) => ("<=", number),
                other => panic!("the paper has no {other:?}"),
            };
            (format!("{attribute}{operator}{}", operand.to_f64_rounded()), users)
        };
        self.predicates.all().into_iter().map(text).collect()
    }

    /// Algorithm 4 to the end: what is left of the count of each entry visited, list by list.
    fn left_overs(&self, event: &Event) -> Vec<(u64, u32)> {
        let mut scratch = Scratch::default();
        scratch.begin(self.predicates.predicate_bound(), self.predicates.attribute_bound(), 0);
        let mut left = Vec::new();
        self.visit(event, &mut scratch, |entry, readings, scratch| {
            let id = self.subscriptions[entry.subscription].id.0;
            left.push((id, self.left_over::<false>(entry, readings, scratch)));
        });
        left.sort_unstable();
        left
    }

    fn pointers(&self) -> usize {
        self.entries.values().map(|entry| entry.pointers.len()).sum()
    }

    /// That all structures say the same.
    fn check(&self) {
        let mut users: BTreeMap<u32, u32> = BTreeMap::new();
        let mut listed = 0;
        for (number, entry) in
            (0..self.entries.bound() as u32).filter_map(|number| Some((number, self.entries.get(number)?)))
        {
            for pointer in &entry.pointers {
                *users.entry(pointer.predicate).or_default() += 1;
            }
            let colours: BTreeSet<u32> =
                entry.pointers.iter().map(|pointer| pointer.colour).filter(|&c| c != PLAIN).collect();
            let plain = entry.pointers.iter().filter(|pointer| pointer.colour == PLAIN).count();
            assert_eq!(entry.count as usize, plain + colours.len());
            let keys: Vec<Option<u32>> = entry.postings.iter().map(|posting| posting.key).collect();
            match &entry.keys {
                Keys::Any(candidates) => assert!(keys.len() == 1 && candidates.contains(&keys[0].unwrap())),
                Keys::All(attributes) => assert_eq!(keys, attributes.iter().copied().map(Some).collect::<Vec<_>>()),
                Keys::None => assert_eq!(keys, [None]),
            }
            for posting in &entry.postings {
                let list = posting.key.map_or(self.lists.unkeyed(), |key| self.lists.list(key));
                assert_eq!(list[posting.position as usize], number);
            }
            listed += entry.postings.len();
        }
        for attribute in 0..self.predicates.attribute_bound() as u32 {
            let uses = |entry: &&Entry| matches!(&entry.keys, Keys::Any(candidates) if candidates.contains(&attribute));
            assert_eq!(self.lists.users(attribute) as usize, self.entries.values().filter(uses).count());
        }
        let keyed: usize = self.lists.keys().map(|key| self.lists.list(key).len()).sum();
        assert_eq!(keyed + self.lists.unkeyed().len(), listed);
        assert_eq!(users.len(), self.predicates.len());
        let total: u32 = self.predicates.all().iter().map(|(_, _, users)| users).sum();
        assert_eq!(users.values().sum::<u32>(), total);
    }
}

/// Algorithm 1: first A2 B4 C3 D2 E3, so B; of the rest A1 C1 D1 E2, so E.
#[test]
fn subscription_lists() {
    let uses = |index: &Enindex| -> Vec<(char, u32)> {
        ('A'..='E')
            .filter_map(|name| Some((name, index.lists.users(index.predicates.find(&name.to_string())?))))
            .collect()
    };
    let index = build(&PAPER);
    assert_eq!(uses(&index), [('A', 2), ('B', 4), ('C', 3), ('D', 2), ('E', 3)]);
    assert_eq!(index.key_lists(), BTreeMap::from([("B", vec![1, 3, 4, 6]), ("E", vec![2, 5])]));
    let rest = build(&[PAPER[1], PAPER[4]]);
    assert_eq!(uses(&rest), [('A', 1), ('C', 1), ('D', 1), ('E', 2)]);
    assert_eq!(rest.key_lists(), BTreeMap::from([("E", vec![2, 5])]));
    index.check();
}

/// Algorithm 1, silent in the paper: of attributes that as many have, the smallest name.
#[test]
fn ties_between_keys_go_to_the_smaller_name() {
    let index = build(&[(1, "Z = 1 and B = 1"), (2, "B = 2 and Z = 2"), (3, "Y = 1 and X = 1")]);
    assert_eq!(index.key_lists(), BTreeMap::from([("B", vec![1, 2]), ("X", vec![3])]));
}

/// Algorithm 2: 10 predicates for 15 uses.
#[test]
fn predicate_lists() {
    let index = build(&PAPER);
    let expected = [
        ("E>=2", 2),
        ("D>=8", 1),
        ("D>=6", 1),
        ("A=2", 1),
        ("B=3", 3),
        ("C=6", 2),
        ("A<=8", 1),
        ("B<=4", 1),
        ("E<=9", 2),
        ("C<=4", 1),
    ];
    assert_eq!(index.predicate_lists(), expected.map(|(text, users)| (text.to_owned(), users)).into());
    assert_eq!(index.pointers(), 15);
}

/// Algorithm 3: the counts.
#[test]
fn counts() {
    let index = build(&PAPER);
    let counts: BTreeMap<u64, u32> = (0..6).map(|entry| (index.id(entry), index.entries[entry].count)).collect();
    assert_eq!(counts, BTreeMap::from([(1, 2), (2, 3), (3, 4), (4, 1), (5, 2), (6, 3)]));
}

/// Algorithm 4: what b2 to b5 leave of the counts, and what they match.
#[test]
fn matching() {
    let mut index = build(&PAPER);
    let b2 = event(&[("D", 10)]);
    let b3 = event(&[("D", 10), ("E", 5)]);
    let b4 = event(&[("A", 2), ("E", 6)]);
    let b5 = event(&[("B", 1), ("C", 6), ("E", 5)]);
    // Twice, as the counts are to be whole again.
    for _ in 0..2 {
        assert_eq!(index.left_overs(&b2), [(0, 0); 0]);
        assert_eq!(index.left_overs(&b3), [(2, 2), (5, 0)]);
        assert_eq!(index.left_overs(&b4), [(2, 1), (5, 1)]);
        assert_eq!(index.left_overs(&b5), [(1, 2), (2, 1), (3, 0), (4, 1), (5, 1), (6, 3)]);
        let found = [&b2, &b3, &b4, &b5].map(|event| found(&mut index, event));
        assert_eq!(found, [vec![], vec![5], vec![], vec![3]]);
    }
}

/// Algorithm 5: with s3 only B<=4 goes; s7 opens a list, with a predicate that is there.
#[test]
fn updates() {
    let mut index = build(&PAPER);
    let before = index.predicate_lists();
    index.remove(SubscriptionId(3));
    let after = index.predicate_lists();
    let gone: Vec<&String> = before.keys().filter(|text| !after.contains_key(*text)).collect();
    assert_eq!(gone, ["B<=4"]);

    let mut index = updated();
    assert_eq!(index.key_lists(), BTreeMap::from([("B", vec![1, 4, 6]), ("D", vec![7]), ("E", vec![2, 5])]));
    assert_eq!((index.predicates.len(), index.pointers()), (9, 12));
    assert_eq!(found(&mut index, &event(&[("D", 10)])), [7]);
    assert_eq!(found(&mut index, &event(&[("D", 10), ("E", 5)])), [5, 7]);
    assert_eq!(found(&mut index, &event(&[("A", 2), ("E", 6)])), [0_u64; 0]);
    assert_eq!(found(&mut index, &event(&[("B", 1), ("C", 6), ("E", 5)])), [0_u64; 0]);
    index.check();
}

/// Section 4.2: two colours and a plain pointer; only B=6 is new.
#[test]
fn colours() {
    let mut index = updated();
    let before = index.predicate_lists();
    index.insert(SubscriptionId(8), &filter(S8));
    let new: Vec<String> = index.predicate_lists().into_keys().filter(|text| !before.contains_key(text)).collect();
    assert_eq!(new, ["B=6"]);
    let s8 = index.entries.values().find(|entry| index.subscriptions[entry.subscription].id.0 == 8).unwrap();
    assert_eq!((s8.count, s8.pointers.len()), (3, 6));
    let mut colours: Vec<usize> =
        s8.pointers.chunk_by(|a, b| a.colour == b.colour).map(|pointers| pointers.len()).collect();
    colours.sort_unstable();
    assert_eq!(colours, [1, 2, 3]);
    index.check();
}

/// Section 4.2, corrected: the paper lists s8 under D, which its matches need not have, and so misses the first of these.
#[test]
fn a_coloured_attribute_is_no_key() {
    let mut index = updated();
    index.insert(SubscriptionId(8), &filter(S8));
    assert_eq!(index.key_lists()["C"], [8]);
    assert_eq!(found(&mut index, &event(&[("A", 2), ("B", 3), ("C", 4)])), [1, 4, 8]);
    assert_eq!(found(&mut index, &event(&[("B", 6), ("C", 1), ("D", 7)])), [7, 8]);
    assert_eq!(found(&mut index, &event(&[("A", 8), ("C", 4), ("E", 2)])), [8]);
    assert_eq!(found(&mut index, &event(&[("C", 4), ("D", 7), ("E", 1)])), [7]);
    assert_eq!(found(&mut index, &event(&[("B", 6), ("C", 1), ("D", 5)])), [0_u64; 0]);
}

/// Where each kind of filter is listed.
#[test]
fn keys() {
    let lists = |text: &str| {
        let index = build(&[(1, text)]);
        index.check();
        let unkeyed = index.lists.unkeyed().len();
        (index.key_lists().into_keys().collect::<String>(), unkeyed, index.entries.len())
    };
    // One attribute shared by all pointers of a colour is a key.
    assert_eq!(lists("B in (3, 6)"), ("B".into(), 0, 1));
    // Without a shared one: all attributes of the smallest colour without an absence.
    assert_eq!(lists("A = 1 or B = 2"), ("AB".into(), 0, 1));
    assert_eq!(lists("(A = 1 or B = 2 or C = 3) and (D = 1 or E = 2)"), ("DE".into(), 0, 1));
    assert_eq!(lists("(A = 1 or B is null) and (C = 1 or D = 1 or E = 1)"), ("CDE".into(), 0, 1));
    // Events without any attribute may match.
    assert_eq!(lists("TRUE"), ("".into(), 1, 1));
    assert_eq!(lists("A is null"), ("".into(), 1, 1));
    assert_eq!(lists("A is null or A <> 1"), ("".into(), 1, 1));
    // An absence beside a required attribute.
    assert_eq!(lists("A is null and B = 1"), ("B".into(), 0, 1));
    // No product: an entry for each conjunction.
    assert_eq!(lists("A = 1 and B = 2 or C = 3"), ("AC".into(), 0, 2));
    // Nothing at all.
    assert_eq!(lists("FALSE"), ("".into(), 0, 0));
}

/// An interval in a colour is one predicate, since a true half of it must not count.
#[test]
fn a_half_true_interval_in_a_colour_is_false() {
    let mut index = build(&[(1, "A between 2 and 5 or B between 2 and 5")]);
    assert_eq!(index.pointers(), 2);
    assert_eq!(found(&mut index, &event(&[("A", 7), ("B", 1)])), [0_u64; 0]);
    assert_eq!(found(&mut index, &event(&[("A", 7), ("B", 2)])), [1]);
    // Both true, in two lists: reported once.
    assert_eq!(found(&mut index, &event(&[("A", 3), ("B", 2)])), [1]);
}

/// Section 4.1: key attributes near the root of the entries, lists of like lengths, growing and shrinking.
#[test]
fn balance() {
    let mut index = Enindex::default();
    let text = |id: u64| {
        let name = |step: u64| format!("a{} = {id}", id.wrapping_mul(step).wrapping_add(id / 7) % 61);
        ["common = 1".into(), name(11), name(29), name(43)].join(" and ")
    };
    for id in 0..2_000 {
        index.insert(SubscriptionId(id), &filter(&text(id)));
    }
    index.check();
    let lengths =
        |index: &Enindex| -> Vec<usize> { index.lists.keys().map(|key| index.lists.list(key).len()).collect() };
    let many = lengths(&index);
    assert!((40..=90).contains(&many.len()), "{many:?}");
    assert!(many.last().unwrap() <= &(3 * 2_000 / many.len()), "{many:?}");
    for id in 30..2_000 {
        index.remove(SubscriptionId(id));
    }
    index.check();
    let few = lengths(&index);
    assert!(few.len().pow(2) <= 4 * 30, "{few:?}");
}

/// A list whose entries have no other key must not keep the others from being dissolved.
#[test]
fn a_stuck_list_blocks_no_other() {
    let mut index = Enindex::default();
    for id in 0..10 {
        index.insert(SubscriptionId(id), &filter(&format!("single{id} = 1")));
    }
    for id in 10..400 {
        index.insert(SubscriptionId(id), &filter(&format!("common = 1 and m{} = 1 and n{} = 1", id % 13, id % 11)));
    }
    let before = index.lists.keys().count();
    for id in 10..370 {
        index.remove(SubscriptionId(id));
    }
    index.check();
    let after = index.lists.keys().count();
    assert!(before >= 20 && after < 16, "{before} {after}");
}
