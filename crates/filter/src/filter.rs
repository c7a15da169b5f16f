//! Filters in canonical form.

use crate::Event;
use std::sync::Arc;

/// A disjunction of conjunctions in canonical form: sorted, none twice. None at all is FALSE; one empty conjunction is TRUE.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Filter {
    conjunctions: Vec<Conjunction>,
}

/// Constraints on distinct attributes, sorted by attribute; none at all is TRUE. Never unsatisfiable.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conjunction {
    constraints: Vec<Constraint>,
}

/// What a conjunction says of one attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Constraint {
    attribute: Arc<str>,
    test: Test,
}

/// The values an attribute may take.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Test {
    /// `IS NULL`.
    Absent,
    /// `IS NOT NULL`.
    Present,
}

/// Why bytes are no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed filter: {0}")]
pub struct DecodeError(pub &'static str);

impl Filter {
    /// TRUE.
    pub fn always() -> Filter {
        todo!()
    }
    /// FALSE.
    pub fn never() -> Filter {
        todo!()
    }
    /// The conjunctions, sorted.
    pub fn conjunctions(&self) -> &[Conjunction] {
        &self.conjunctions
    }
    /// Whether any conjunction matches.
    pub fn matches(&self, event: &Event) -> bool {
        let _ = event;
        todo!()
    }
    /// The canonical form as bytes, versioned; equal filters give equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        todo!()
    }
    /// Reads and checks what [`Filter::to_bytes`] wrote; anything not canonical is an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Filter, DecodeError> {
        let _ = bytes;
        todo!()
    }
}

impl From<Conjunction> for Filter {
    fn from(conjunction: Conjunction) -> Filter {
        Filter { conjunctions: vec![conjunction] }
    }
}

impl Conjunction {
    /// The constraints, sorted by attribute.
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }
}

impl Constraint {
    /// The attribute.
    pub fn attribute(&self) -> &Arc<str> {
        &self.attribute
    }
    /// The values it may take.
    pub fn test(&self) -> &Test {
        &self.test
    }
}
