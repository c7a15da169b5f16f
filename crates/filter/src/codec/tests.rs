use super::*;
use crate::Comparison;
use crate::samples;
use proptest::prelude::*;
use proptest::sample::{Index, select};

fn conjunction() -> impl Strategy<Value = Conjunction> {
    let constraint = (select(&["a", "b", "c"][..]), samples::test(true));
    proptest::collection::vec(constraint, 0..4).prop_filter_map("never true", |constraints| {
        Conjunction::new(constraints.into_iter().map(|(name, (_, test))| Constraint::new(name, test)))
    })
}

fn filter() -> impl Strategy<Value = Filter> {
    proptest::collection::vec(conjunction(), 0..4)
        .prop_map(|conjunctions| Filter::any_of(conjunctions, &Default::default()).unwrap())
}

/// Whatever is read must be written the same, or there would be two ways to write one filter.
fn check_reading(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(filter) = Filter::from_bytes(bytes) {
        prop_assert_eq!(filter.to_bytes(), bytes);
    }
    if let Ok(conjunction) = Conjunction::from_bytes(bytes) {
        prop_assert_eq!(conjunction.to_bytes(), bytes);
    }
    Ok(())
}

proptest! {
    #![proptest_config(samples::cases(10_000))]

    #[test]
    fn what_is_written_is_read(filter in filter(), conjunction in conjunction()) {
        prop_assert_eq!(Filter::from_bytes(&filter.to_bytes()), Ok(filter));
        prop_assert_eq!(Conjunction::from_bytes(&conjunction.to_bytes()), Ok(conjunction));
    }

    #[test]
    fn changed_bytes_are_refused_or_another_filter(filter in filter(), at in any::<Index>(), byte in any::<u8>()) {
        let mut bytes = filter.to_bytes();
        let at = at.index(bytes.len());
        prop_assert!(Filter::from_bytes(&bytes[..at]).is_err());
        bytes[at] = byte;
        check_reading(&bytes)?;
        bytes.insert(at, byte);
        check_reading(&bytes)?;
    }

    #[test]
    fn any_bytes_are_read_safely(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        check_reading(&bytes)?;
        check_reading(&[&[VERSION, 1, 1, 1, b'a'], &bytes[..]].concat())?;
    }
}

#[test]
fn the_layout_of_version_1() {
    let test = Test::one_of([ValueRef::Int(-1), ValueRef::Bool(true), ValueRef::from("x")])
        .union(&Test::compare(Comparison::Ge, 1.5))
        .and_then(|test| test.union(&Test::between(Timestamp(1), Timestamp(3))))
        .and_then(|test| test.union(&Test::prefix("y")))
        .and_then(|test| test.union(&Test::like("a%_b", None).unwrap()))
        .unwrap();
    let constraints =
        [Constraint::new("é", Test::Absent), Constraint::new("k", test), Constraint::new("n", Test::Present)];
    let filter = Filter::from(Conjunction::new(constraints).unwrap());
    let mut expected = vec![VERSION, 1, 3];
    expected.extend([1, b'k', HAS_TRUE | HAS_NUMBERS | HAS_TIMES | HAS_STRINGS | HAS_TERMS]);
    expected.extend([2, INT | SAME << 4, 1, FLOAT | INFINITE << 4, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f]);
    expected.extend([1, 2, 2]);
    expected.extend([2, 1, b'x', ONLY, 1, b'y', ALL_STARTING_WITH]);
    expected.extend([1, 1, 1, b'a', ALL_STARTING_WITH, 1, 4, b'a', b'_', b'%', b'b', 0]);
    expected.extend([1, b'n', PRESENT, 2, 0xc3, 0xa9, ABSENT]);
    assert_eq!(filter.to_bytes(), expected);
    assert_eq!(Filter::never().to_bytes(), [VERSION, 0]);
    assert_eq!(Filter::always().to_bytes(), [VERSION, 1, 0]);
}

#[test]
fn refuses() {
    let number = |interval: &[u8]| [&[VERSION, 1, 1, 1, b'a', HAS_NUMBERS][..], interval].concat();
    let term = |term: &[u8]| [&[VERSION, 1, 1, 1, b'a', HAS_TERMS][..], term].concat();
    assert!(Filter::from_bytes(&number(&[1, INT | SAME << 4, 2])).is_ok());
    for (bytes, reason) in [
        (vec![], "cut short"),
        (vec![2, 0], "unknown version"),
        (vec![VERSION, 0, 0], "bytes are left over"),
        (vec![VERSION, 0x80, 0], "not in canonical form"),
        (vec![VERSION, 2, 0, 0], "not in canonical form"),
        (vec![VERSION, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], "cut short"),
        (vec![VERSION, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], "a number is too long"),
        (vec![VERSION, 1, 1, 0, PRESENT], "an attribute has no name"),
        (vec![VERSION, 1, 1, 1, 0xff, PRESENT], "a string is not UTF-8"),
        (vec![VERSION, 1, 1, 1, b'a', 0x80], "unknown test"),
        (vec![VERSION, 1, 1, 1, b'a', HAS_TRUE | 1], "unknown test"),
        (vec![VERSION, 1, 2, 1, b'b', PRESENT, 1, b'a', PRESENT], "not in canonical form"),
        (vec![VERSION, 2, 1, 1, b'a', HAS_FALSE, 1, 1, b'a', HAS_TRUE], "not in canonical form"),
        (number(&[0]), "not in canonical form"),
        (number(&[1, INT | INT << 4, 4, 2]), "not in canonical form"),
        (number(&[1, INT | INT << 4, 2, 2]), "not in canonical form"),
        (number(&[2, INT | SAME << 4, 4, INT | SAME << 4, 2]), "not in canonical form"),
        (number(&[1, FLOAT | SAME << 4, 0, 0, 0, 0, 0, 0, 0, 0x80]), "not in canonical form"),
        (number(&[1, FLOAT | SAME << 4, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f]), "not in canonical form"),
        (number(&[1, 4, 2]), "unknown form of a number"),
        (term(&[1, 1, 0, ALL_FOLLOWING, 0, 0]), "not in canonical form"),
        (term(&[1, 1, 0, ALL_FOLLOWING, 1, 2, b'a', b'%', 0]), "not in canonical form"),
        (term(&[1, 1, 0, ALL_FOLLOWING, 1, 3, b'a', b'%', b'b', 0]), "not in canonical form"),
        (term(&[1, 1, 0, ALL_FOLLOWING, 1, 2, b'%', b'\\', 0]), "malformed pattern"),
        (term(&[1, 1, 0, 4]), "unknown form of an interval"),
    ] {
        assert_eq!(Filter::from_bytes(&bytes), Err(DecodeError(reason)), "{bytes:?}");
    }
}

#[test]
fn limits_hold() {
    assert_eq!(Filter::from_bytes(&vec![VERSION; 65_537]), Err(DecodeError("too long")));
    let name = [&[VERSION, 1, 1, 0x80, 2], &[b'a'; 256][..], &[PRESENT]].concat();
    assert_eq!(Filter::from_bytes(&name), Err(DecodeError("an attribute's name is too long")));
    let conjunction = |index: u8| [1, 2, b'a' + index / 26, b'a' + index % 26, PRESENT];
    let many = [vec![VERSION, 0x81, 2], (0..=255).chain([255]).flat_map(conjunction).collect()].concat();
    assert_eq!(Filter::from_bytes(&many), Err(DecodeError("too many conjunctions")));
    let pattern = |index: u16| [3, b'%', b'a' + (index / 26) as u8, b'a' + (index % 26) as u8];
    let mut patterns = vec![VERSION, 1, 1, 1, b'a', HAS_TERMS, 1, 1, 0, ALL_FOLLOWING, 0x81, 4];
    patterns.extend((0..513).flat_map(pattern).chain([0]));
    assert_eq!(Filter::from_bytes(&patterns), Err(DecodeError("too many patterns")));
}
