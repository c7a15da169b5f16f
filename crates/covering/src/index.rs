//! Finds, among the roots of a forest, those that may cover a conjunction and those it may cover.
//!
//! The index only narrows down: whatever it names is verified by the caller. It knows of each constraint its [`Span`], two
//! ends on one line on which the values of all classes lie one behind the other.
//!
//! **Who covers g?** A root that covers g has, on each of its attributes, a span that contains g's. Each root is posted
//! under one of its constraints, in the smallest [`Cell`] that holds the span: the cells are the nodes of the binary tree
//! over the line and, below them, one for each single value. Of its constraints it is the one whose cell fewest roots have
//! in common when the root is posted. So the cells to be looked at are, for each attribute of g, the cell of g's span and
//! those above it, of which only the levels in use are asked for.
//!
//! **Whom does f cover?** A root that f covers has, on each attribute of f, a span that f's contains, and so one whose low
//! end lies within f's. All roots are in a list for each of their attributes, ordered by low end; the shortest of the ranges
//! that the constraints of f cut out of these lists is walked.

use crate::span::{Cell, Code, Span};
use enroute_filter::Conjunction;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A node of a forest; the roots are in the index under it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(u64);

impl NodeId {
    const MIN: NodeId = NodeId(0);
    const MAX: NodeId = NodeId(u64::MAX);

    pub(crate) fn next(self) -> NodeId {
        NodeId(self.0 + 1)
    }
}

/// See the [module page](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct RootIndex {
    all: BTreeMap<NodeId, Entry>,
    attributes: BTreeMap<Arc<str>, AttributeIndex>,
}

/// What the roots say of one attribute.
#[derive(Clone, Debug, Default)]
struct AttributeIndex {
    cells: BTreeMap<Cell, Bucket>,
    /// How many cells of each level have roots posted.
    levels: BTreeMap<u16, usize>,
    /// All roots that constrain the attribute.
    by_low: BTreeMap<LowEnd, Entry>,
}

/// What a cell is the smallest for.
#[derive(Clone, Debug, Default)]
struct Bucket {
    /// How many roots there are, posted here or elsewhere.
    roots: usize,
    posted: BTreeMap<NodeId, Entry>,
}

/// Low end of the span, the single value, if it is one, and the root.
type LowEnd = (Code, u64, NodeId);

/// A part of an attribute's roots.
type Range<'a> = (&'a AttributeIndex, RangeInclusive<LowEnd>);

/// A root, with what tells at a glance that another conjunction has nothing to do with it.
#[derive(Clone, Debug)]
struct Entry {
    signature: Signature,
    root: Arc<Conjunction>,
}

/// The attributes of a conjunction as bits, one for each, though others may share it.
#[derive(Clone, Copy, Debug)]
struct Signature(u64);

impl RootIndex {
    pub(crate) fn insert(&mut self, id: NodeId, root: &Arc<Conjunction>) {
        let entry = Entry { signature: Signature::of(root), root: Arc::clone(root) };
        self.all.insert(id, entry.clone());
        let mut rarest: Option<(usize, &Arc<str>, Cell)> = None;
        for constraint in root.constraints() {
            let attribute = self.attributes.entry(Arc::clone(constraint.attribute())).or_default();
            let span = Span::of(constraint.test());
            let cell = span.cell();
            attribute.by_low.insert((span.low, span.single, id), entry.clone());
            let bucket = attribute.cells.entry(cell.clone()).or_default();
            bucket.roots += 1;
            if rarest.as_ref().is_none_or(|(least, ..)| bucket.roots < *least) {
                rarest = Some((bucket.roots, constraint.attribute(), cell));
            }
        }
        if let Some((_, attribute, cell)) = rarest {
            let attribute = self.attributes.get_mut(attribute).expect("made above");
            attribute.post(&cell, id, entry);
        }
    }

    /// Forgets a root that [`RootIndex::insert`] was told of under the same id.
    pub(crate) fn remove(&mut self, id: NodeId, root: &Conjunction) {
        self.all.remove(&id);
        for constraint in root.constraints() {
            let name: &str = constraint.attribute();
            let Some(attribute) = self.attributes.get_mut(name) else { continue };
            let span = Span::of(constraint.test());
            attribute.forget(&span.cell(), id);
            attribute.by_low.remove(&(span.low, span.single, id));
            if attribute.by_low.is_empty() {
                self.attributes.remove(name);
            }
        }
    }

    /// The first root found that `covers` confirms, asked about those that may cover `conjunction`.
    pub(crate) fn find_coverer(
        &self,
        conjunction: &Conjunction,
        covers: impl Fn(&Conjunction) -> bool,
    ) -> Option<NodeId> {
        // TRUE, which no attribute leads to, covers all; so where it is a root it is the only one.
        if let Some((&id, only)) = self.all.first_key_value()
            && only.root.constraints().is_empty()
        {
            return covers(&only.root).then_some(id);
        }
        let signature = Signature::of(conjunction);
        let confirmed = |entry: &Entry| entry.signature.is_within(signature) && covers(&entry.root);
        conjunction.constraints().iter().find_map(|constraint| {
            let attribute = self.attributes.get(&**constraint.attribute())?;
            let span = Span::of(constraint.test());
            let cells = span.cells_at(attribute.levels.keys().copied());
            let mut posted = cells.filter_map(|cell| attribute.cells.get(&cell)).flat_map(|bucket| &bucket.posted);
            posted.find(|(_, entry)| confirmed(entry)).map(|(&id, _)| id)
        })
    }

    /// All roots that `is_covered` confirms, asked about those that `conjunction` may cover.
    pub(crate) fn find_covered(
        &self,
        conjunction: &Conjunction,
        is_covered: impl Fn(&Conjunction) -> bool,
    ) -> Vec<(NodeId, Arc<Conjunction>)> {
        let signature = Signature::of(conjunction);
        let confirmed = |entry: &Entry| signature.is_within(entry.signature) && is_covered(&entry.root);
        let mut ranges: Vec<Range> = Vec::with_capacity(conjunction.constraints().len());
        for constraint in conjunction.constraints() {
            let Some(attribute) = self.attributes.get(&**constraint.attribute()) else { return Vec::new() };
            ranges.push((attribute, low_ends_in(Span::of(constraint.test()))));
        }
        // Which range is the shortest is not known without walking: all are tried with ever longer steps.
        let mut step = 16;
        let shortest = loop {
            let is_short = |(attribute, range): &&Range| attribute.by_low.range(range.clone()).nth(step).is_none();
            match &ranges[..] {
                [] => break None,
                [only] => break Some(only),
                several => {
                    if let Some(short) = several.iter().find(is_short) {
                        break Some(short);
                    }
                }
            }
            step *= 4;
        };
        let found = |(id, entry): (NodeId, &Entry)| confirmed(entry).then(|| (id, Arc::clone(&entry.root)));
        match shortest {
            Some((attribute, range)) => attribute
                .by_low
                .range(range.clone())
                .map(|(&(_, _, id), entry)| (id, entry))
                .filter_map(found)
                .collect(),
            None => self.all.iter().map(|(&id, entry)| (id, entry)).filter_map(found).collect(),
        }
    }
}

impl AttributeIndex {
    fn post(&mut self, cell: &Cell, id: NodeId, entry: Entry) {
        let bucket = self.cells.get_mut(cell).expect("the root was counted there");
        if bucket.posted.is_empty() {
            *self.levels.entry(cell.level).or_default() += 1;
        }
        bucket.posted.insert(id, entry);
    }

    /// Counts the root no longer, and unposts it if it is posted there.
    fn forget(&mut self, cell: &Cell, id: NodeId) {
        let Some(bucket) = self.cells.get_mut(cell) else { return };
        bucket.roots -= 1;
        let was_last = bucket.posted.remove(&id).is_some() && bucket.posted.is_empty();
        if bucket.roots == 0 {
            self.cells.remove(cell);
        }
        if was_last && let Some(cells) = self.levels.get_mut(&cell.level) {
            *cells -= 1;
            if *cells == 0 {
                self.levels.remove(&cell.level);
            }
        }
    }
}

impl Signature {
    fn of(conjunction: &Conjunction) -> Signature {
        let bits = conjunction.constraints().iter().map(|constraint| {
            let mut hasher = DefaultHasher::new();
            constraint.attribute().hash(&mut hasher);
            1 << (hasher.finish() % 64)
        });
        Signature(bits.fold(0, |all, bit| all | bit))
    }

    /// Whether all attributes may be among the others. A conjunction covers only what speaks of all its attributes.
    fn is_within(self, other: Signature) -> bool {
        self.0 & !other.0 == 0
    }
}

/// The low ends of all spans that may lie within a span.
fn low_ends_in(span: Span) -> RangeInclusive<LowEnd> {
    match span.single {
        0 => (span.low, 0, NodeId::MIN)..=(span.high, u64::MAX, NodeId::MAX),
        single => (span.low.clone(), single, NodeId::MIN)..=(span.low, single, NodeId::MAX),
    }
}
