//! What a filter says of one attribute.

use crate::pattern::{Pattern, PatternError};
use crate::set::{StringSet, prefix_interval};
use crate::{Comparison, ValueRef, ValueSet};
use std::sync::Arc;

/// What a conjunction says of one attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Constraint {
    attribute: Arc<str>,
    test: Test,
}

/// The values an attribute may take.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Test {
    /// `IS NULL`: there must be none.
    Absent,
    /// `IS NOT NULL`: there must be one, any; the only test that NaN passes.
    Present,
    /// There must be one, of this set; if the set is empty, nothing passes.
    In(ValueSet),
}

impl Constraint {
    /// Says `test` of `attribute`.
    pub fn new(attribute: impl Into<Arc<str>>, test: Test) -> Constraint {
        Constraint { attribute: attribute.into(), test }
    }

    /// `attribute comparison operand`, as in `delay >= 60`; see [`ValueSet::compare`].
    pub fn compare<'a>(
        attribute: impl Into<Arc<str>>,
        comparison: Comparison,
        operand: impl Into<ValueRef<'a>>,
    ) -> Constraint {
        Constraint::new(attribute, Test::compare(comparison, operand))
    }

    /// The attribute.
    pub fn attribute(&self) -> &Arc<str> {
        &self.attribute
    }

    /// The values it may take.
    pub fn test(&self) -> &Test {
        &self.test
    }

    /// Whether the attribute's value, `None` if it is absent, passes.
    pub fn matches(&self, value: Option<ValueRef<'_>>) -> bool {
        self.test.matches(value)
    }
}

impl Test {
    /// The values for which the comparison is true; see [`ValueSet::compare`].
    pub fn compare<'a>(comparison: Comparison, operand: impl Into<ValueRef<'a>>) -> Test {
        Test::In(ValueSet::compare(comparison, operand.into()))
    }

    /// `IN`: one of these values, of whatever classes. NaN equals nothing.
    pub fn one_of<'a>(values: impl IntoIterator<Item = ValueRef<'a>>) -> Test {
        Test::In(ValueSet::one_of(values))
    }

    /// `NOT IN`: differs from all of these values. Where they are of several classes nothing passes, as a value cannot be
    /// compared with all of them; nor does it if one is NaN. Without any value, everything present passes.
    pub fn none_of<'a>(values: impl IntoIterator<Item = ValueRef<'a>>) -> Test {
        let values: Vec<_> = values.into_iter().collect();
        let Some(first) = values.first() else { return Test::Present };
        let comparable = values.iter().all(|value| {
            let is_nan = matches!(value, ValueRef::Float(float) if float.is_nan());
            value.class() == first.class() && !is_nan
        });
        let listed = ValueSet::one_of(values.iter().copied());
        Test::In(if comparable { listed.complement_within(first.class()) } else { ValueSet::none() })
    }

    /// `BETWEEN`: at least `low` and at most `high`. Nothing passes if they are of different classes or in descending order.
    pub fn between<'a>(low: impl Into<ValueRef<'a>>, high: impl Into<ValueRef<'a>>) -> Test {
        let from_low = ValueSet::compare(Comparison::Ge, low.into());
        Test::In(from_low.intersection(&ValueSet::compare(Comparison::Le, high.into())))
    }

    /// `NOT BETWEEN`: less than `low` or greater than `high`.
    pub fn not_between<'a>(low: impl Into<ValueRef<'a>>, high: impl Into<ValueRef<'a>>) -> Test {
        let below = ValueSet::compare(Comparison::Lt, low.into());
        Test::In(below.union(&ValueSet::compare(Comparison::Gt, high.into())))
    }

    /// `PREFIX`: strings that start with `prefix`.
    pub fn prefix(prefix: &str) -> Test {
        Test::strings(prefix_interval(prefix))
    }

    /// `SUFFIX`: strings that end with `suffix`.
    pub fn suffix(suffix: &str) -> Test {
        Test::strings(Pattern::suffix(suffix))
    }

    /// `CONTAINS`: strings that contain `part`.
    pub fn contains(part: &str) -> Test {
        Test::strings(Pattern::contains(part))
    }

    /// `LIKE`: `%` stands for any run of characters, `_` for any one; after `escape` they, and it, stand for themselves.
    ///
    /// # Errors
    /// If `escape` stands before anything else.
    pub fn like(pattern: &str, escape: Option<char>) -> Result<Test, PatternError> {
        Ok(Test::strings(Pattern::like(pattern, escape)?))
    }

    fn strings(strings: impl Into<StringSet>) -> Test {
        Test::In(ValueSet::from(strings.into()))
    }

    /// What passes where this test of one comparison is false: absent for present and the other way round; of a set the
    /// values of its class outside it. From a set with values of no class, or of several, nothing: it is not one comparison's.
    pub fn complement(&self) -> Test {
        let set = match self {
            Test::Absent => return Test::Present,
            Test::Present => return Test::Absent,
            Test::In(set) => set,
        };
        let mut classes = set.classes();
        match (classes.next(), classes.next()) {
            (Some(class), None) => Test::In(set.complement_within(class)),
            (None, _) | (Some(_), Some(_)) => Test::In(ValueSet::none()),
        }
    }

    /// Whether nothing passes.
    pub fn is_never(&self) -> bool {
        match self {
            Test::Absent | Test::Present => false,
            Test::In(set) => set.is_empty(),
        }
    }

    /// Whether patterns are involved. Between tests without, [`covers`](Test::covers) and [`overlaps`](Test::overlaps) are exact.
    pub fn has_patterns(&self) -> bool {
        match self {
            Test::Absent | Test::Present => false,
            Test::In(set) => set.has_patterns(),
        }
    }

    /// Whether an attribute's value, `None` if it is absent, passes.
    pub fn matches(&self, value: Option<ValueRef<'_>>) -> bool {
        match self {
            Test::Absent => value.is_none(),
            Test::Present => value.is_some(),
            Test::In(set) => value.is_some_and(|value| set.contains(value)),
        }
    }

    /// Whether all that passes `other` passes this. Exact without patterns; where those leave it undecided, no.
    pub fn covers(&self, other: &Test) -> bool {
        match (self, other) {
            (Test::Absent, Test::Absent) | (Test::Present, Test::Present | Test::In(_)) => true,
            (Test::In(mine), Test::In(theirs)) => mine.covers(theirs),
            // NaN is present, and in no set.
            (Test::Absent, Test::Present) | (Test::In(_), Test::Present) | (Test::Present, Test::Absent) => false,
            (Test::Absent, Test::In(set)) => set.is_empty(),
            (Test::In(_), Test::Absent) => false,
        }
    }

    /// Whether something passes both. Exact without patterns; where those leave it undecided, yes.
    pub fn overlaps(&self, other: &Test) -> bool {
        match (self, other) {
            (Test::Absent, Test::Absent) | (Test::Present, Test::Present) => true,
            (Test::Present, Test::In(set)) | (Test::In(set), Test::Present) => !set.is_empty(),
            (Test::In(mine), Test::In(theirs)) => mine.overlaps(theirs),
            (Test::Absent, Test::Present | Test::In(_)) | (Test::Present | Test::In(_), Test::Absent) => false,
        }
    }

    /// What passes both; `None` if nothing does.
    pub fn intersection(&self, other: &Test) -> Option<Test> {
        let both = match (self, other) {
            (same, other) if same == other => same.clone(),
            (Test::Absent, Test::Absent) => Test::Absent,
            (Test::Present, both) | (both, Test::Present) if *both != Test::Absent => both.clone(),
            (Test::In(mine), Test::In(theirs)) => Test::In(mine.intersection(theirs)),
            (Test::Absent, Test::Present | Test::In(_)) | (Test::Present | Test::In(_), _) => return None,
        };
        (!both.is_never()).then_some(both)
    }

    /// What passes either; `None` if no one test says so, as of [`Test::Absent`] and a set.
    pub fn union(&self, other: &Test) -> Option<Test> {
        Test::union_of(&[self, other])
    }

    /// What passes any; `None` if no one test says so, as of [`Test::Absent`] and a set. Nothing, if there are no tests.
    pub fn union_of(tests: &[&Test]) -> Option<Test> {
        let mut sets = Vec::with_capacity(tests.len());
        let (mut absent, mut present) = (false, false);
        for test in tests {
            match test {
                Test::Absent => absent = true,
                Test::Present => present = true,
                Test::In(set) => sets.push(set),
            }
        }
        match (absent, present) {
            (true, true) => None,
            (true, false) => sets.is_empty().then_some(Test::Absent),
            (false, true) => Some(Test::Present),
            (false, false) => Some(Test::In(ValueSet::union_of(&sets))),
        }
    }
}
