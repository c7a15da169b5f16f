//! What the subscription lists hold.

/// One subscription of the paper: pointers to predicates, plain or coloured, and their count.
///
/// A filter is one entry if it can be coloured, else one for each of its conjunctions.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) subscription: u32,
    /// Plain pointers, plus one for each colour.
    pub(super) count: u32,
    /// Plain ones first, then colour by colour.
    pub(super) pointers: Box<[Pointer]>,
    pub(super) keys: Keys,
    /// Where the entry is listed now.
    pub(super) postings: Vec<Posting>,
}

/// From an entry to a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pointer {
    pub(super) predicate: u32,
    /// [`PLAIN`], or the disjunction within the entry that the predicate belongs to, from 1.
    pub(super) colour: u32,
}

/// The colour of a pointer that belongs to no disjunction.
pub(super) const PLAIN: u32 = 0;

/// The attributes that an entry may be listed under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// Under one of these, any: every event that matches contains each of them.
    Any(Vec<u32>),
    /// Under all of these: every event that matches contains at least one of them, but none is in all such events.
    All(Vec<u32>),
    /// Under none: an event may match without an attribute that the entry names.
    None,
}

impl Keys {
    /// Bytes that it owns.
    pub(super) fn memory_usage(&self) -> usize {
        match self {
            Keys::Any(attributes) | Keys::All(attributes) => attributes.capacity() * size_of::<u32>(),
            Keys::None => 0,
        }
    }
}

/// A place in a subscription list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Posting {
    /// The attribute of the list; none for the list of the entries without a key.
    pub(super) key: Option<u32>,
    pub(super) position: u32,
}
