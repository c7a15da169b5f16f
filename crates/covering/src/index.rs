//! Finds, among the roots of a forest, those that may cover a conjunction and those it may cover.
//!
//! The index only narrows down: whatever it names is verified by the caller. For each attribute it has two
//! [`PredicateForest`]s:
//!
//! - `members`: the predicates of all roots that speak of the attribute;
//! - `access`: those of the roots that are *posted* here. Each root is posted under one of its attributes.
//!
//! **Who covers g?** A root that covers g has, on each of its attributes, a predicate that covers g's, and so has it where it
//! is posted. So for each attribute of g those posted predicates are looked up that cover g's.
//!
//! **Whom does f cover?** A root that f covers has, on each attribute of f, a predicate that f's covers. The attribute with the
//! fewest of those is chosen, and its users are gone through. When f becomes a root, this is also where it is posted: a predicate
//! that covers few others is rarely looked up.
//!
//! Of the users so found, most are ruled out by two looks, before `covers` decides: at the signature, which is kept beside the
//! user's number and tells of the attributes and single values it asks for; and at the outlines of its predicates, which are
//! kept together.

use crate::nodes::{NodeId, Nodes, RootId};
use crate::predicate_forest::{Found, Key, PredicateForest, User};
use crate::span::{Outline, Span};
use crate::summary::{PredicateShape, PredicateSummary};
use enroute_filter::{Conjunction, Constraint, Test};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// See the [module page](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct RootIndex {
    /// The numbers of the attributes that roots speak of.
    names: HashMap<Arc<str>, u32, foldhash::fast::RandomState>,
    attributes: Vec<Attribute>,
    unused: Vec<u32>,
    records: Records,
    /// Roots that there is no room for; looked at one by one.
    unnumbered: BTreeSet<NodeId>,
}

/// What the roots say of one attribute.
#[derive(Clone, Debug, Default)]
struct Attribute {
    members: PredicateForest<MEMBERS_BLOCK>,
    access: PredicateForest<ACCESS_BLOCK>,
}

/// Small in tests, which otherwise would never see a second block.
const MEMBERS_BLOCK: usize = if cfg!(test) { 4 } else { 256 };

/// Smaller, as most look-ups are of one block for each attribute.
const ACCESS_BLOCK: usize = if cfg!(test) { 3 } else { 64 };

/// A conjunction in the terms of the index.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// Of each of its constraints.
    spans: Vec<Span>,
    /// Likewise.
    glances: Vec<Glance>,
    signature: u32,
}

/// A predicate in few bytes.
#[derive(Clone, Copy, Debug)]
struct Glance {
    /// The number of the attribute, or [`UNKNOWN`].
    attribute: u32,
    outline: Outline,
}

/// Orders conjunctions such that none covers one with a lesser width.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Width {
    constraints: usize,
    /// Of each the attribute, the place of the low end, and the place of the high end, the greatest first.
    ends: Vec<(u32, u32, Reverse<u32>)>,
}

/// In place of the number of an attribute that no root speaks of.
const UNKNOWN: u32 = MOST_ATTRIBUTES as u32;

/// Their numbers share a word with a byte. Small in tests, which otherwise would never see it reached.
const MOST_ATTRIBUTES: usize = if cfg!(test) { 4 } else { (1 << 24) - 1 };

/// What a root says of its attributes is gone through again and again, so one that speaks of more is not taken in. Small in
/// tests, as above.
const MOST_CONSTRAINTS: usize = if cfg!(test) { 3 } else { 256 };

/// Words of all records: roots are known by 32 bits. Small in tests, as above.
const MOST_WORDS: usize = if cfg!(test) { 1 << 20 } else { u32::MAX as usize };

/// Attributes that are told of.
const MOST_SUMMARIES: usize = 32;

/// Predicates that are sorted for that. Small in tests, which otherwise would never see it reached.
const MOST_SORTED: usize = if cfg!(test) { 12 } else { 16_384 };

/// Of the roots that have no record.
const UNNUMBERED: RootId = RootId(u32::MAX);

/// The constraint of a conjunction that covers the fewest predicates, and where these are.
#[derive(Clone, Debug)]
pub(crate) struct Narrowest {
    constraint: usize,
    found: Found,
}

impl RootIndex {
    /// Looks at a conjunction.
    pub(crate) fn read(&self, conjunction: &Conjunction) -> Reading {
        let constraints = conjunction.constraints();
        let spans: Vec<Span> = constraints.iter().map(|constraint| Span::of(constraint.test())).collect();
        let glance = |(constraint, span): (&Constraint, &Span)| Glance {
            attribute: self.names.get(&**constraint.attribute()).copied().unwrap_or(UNKNOWN),
            outline: span.outline(),
        };
        let glances: Vec<Glance> = constraints.iter().zip(&spans).map(glance).collect();
        let signature = signature(&glances);
        Reading { spans, glances, signature }
    }

    /// The first root found that `covers` confirms, asked about those that may cover what was read.
    pub(crate) fn find_coverer(&self, reading: &Reading, covers: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        let posted = reading.spans.iter().zip(&reading.glances).find_map(|(span, glance)| {
            let access = &self.attributes.get(glance.attribute as usize)?.access;
            let found = access.find(|group| span.keys_of_covering(group));
            access.users(&found).find_map(|user| {
                if user.signature & !reading.signature != 0 {
                    return None;
                }
                let record = self.records.get(user.id);
                let may_cover = may_cover(record.glances(), reading.glances.iter().copied());
                (may_cover && covers(record.node())).then(|| record.node())
            })
        });
        posted.or_else(|| self.unnumbered.iter().copied().find(|&root| covers(root)))
    }

    /// The constraint that covers the fewest predicates of the roots; none if what was read has no constraint.
    pub(crate) fn narrowest(&self, reading: &Reading) -> Option<Narrowest> {
        let mut narrowest: Option<Narrowest> = None;
        let mut fewest = usize::MAX;
        let constraints = || reading.spans.iter().zip(&reading.glances).enumerate();
        // Single values are looked up fastest, and when they are rare nothing else need be.
        let points = constraints().filter(|(_, (_, glance))| glance.outline.is_point());
        let others = constraints().filter(|(_, (_, glance))| !glance.outline.is_point());
        for (constraint, (span, glance)) in points.chain(others) {
            if fewest == 0 {
                break;
            }
            let found = match self.attributes.get(glance.attribute as usize) {
                Some(attribute) => attribute.members.find(|group| span.keys_of_covered(group)),
                None => Found::default(),
            };
            // Single values mostly share their block with many others.
            let users = if glance.outline.is_point() { found.inner_users } else { found.users };
            if users < fewest {
                fewest = users;
                narrowest = Some(Narrowest { constraint, found });
            }
        }
        narrowest
    }

    /// All roots that `is_covered` confirms, asked about those that what was read may cover.
    pub(crate) fn find_covered(
        &self,
        reading: &Reading,
        narrowest: &Narrowest,
        is_covered: impl Fn(NodeId) -> bool,
    ) -> Vec<NodeId> {
        let attribute = self.attributes.get(reading.glances[narrowest.constraint].attribute as usize);
        let confirmed = |user: &User| {
            if reading.signature & !user.signature != 0 {
                return None;
            }
            let record = self.records.get(user.id);
            let may_be_covered = may_cover(reading.glances.iter().copied(), record.glances());
            (may_be_covered && is_covered(record.node())).then(|| record.node())
        };
        let users = attribute.into_iter().flat_map(|attribute| attribute.members.users(&narrowest.found));
        let unnumbered = self.unnumbered.iter().copied().filter(|&root| is_covered(root));
        users.filter_map(confirmed).chain(unnumbered).collect()
    }

    /// Takes in a root, posted under its narrowest constraint.
    pub(crate) fn insert(&mut self, node: NodeId, reading: &mut Reading, posted: &Narrowest, nodes: &Nodes) -> RootId {
        if !self.has_room(reading) {
            self.unnumbered.insert(node);
            return UNNUMBERED;
        }
        let constraints = nodes.conjunction(node).constraints();
        for (glance, constraint) in reading.glances.iter_mut().zip(constraints) {
            if glance.attribute == UNKNOWN {
                glance.attribute = self.number(constraint.attribute());
            }
        }
        reading.signature = signature(&reading.glances);
        let id = self.records.add(node, posted.constraint, &reading.glances);
        let user = User { id, signature: reading.signature };
        for (constraint, (span, glance)) in reading.spans.iter().zip(&reading.glances).enumerate() {
            let records = &self.records;
            let rank_of = |id| records.get(id).glance(glance.attribute).1.outline.rank();
            let key_of = |id| key(Span::of(records.get(id).test(glance.attribute, nodes)));
            let attribute = &mut self.attributes[glance.attribute as usize];
            attribute.members.insert(user, key(span.clone()), rank_of, key_of);
            if constraint == posted.constraint {
                attribute.access.insert(user, key(span.clone()), rank_of, key_of);
            }
        }
        RootId(id)
    }

    /// Whether there are numbers for all its attributes, and a place for its record.
    fn has_room(&self, reading: &Reading) -> bool {
        let new = reading.glances.iter().filter(|glance| glance.attribute == UNKNOWN).count();
        reading.glances.len() <= MOST_CONSTRAINTS
            && new <= self.unused.len() + (MOST_ATTRIBUTES - self.attributes.len())
            && self.records.has_room(reading.glances.len())
    }

    /// Forgets a root.
    pub(crate) fn remove(&mut self, root: NodeId, nodes: &Nodes) {
        match nodes.root_id(root) {
            UNNUMBERED => {
                self.unnumbered.remove(&root);
            }
            RootId(id) => self.remove_record(id, nodes.conjunction(root)),
        }
        if self.names.is_empty() && self.unnumbered.is_empty() {
            // Nothing is kept of an index that was once large.
            *self = RootIndex::default();
        }
    }

    /// Leaves room for no record.
    #[cfg(test)]
    pub(crate) fn fill(&mut self) {
        self.records.words.resize(MOST_WORDS, 0);
    }

    /// See [`Forest::predicates`](crate::Forest::predicates). Roots that there was no room for do not count.
    pub(crate) fn predicates(&self, nodes: &Nodes) -> Vec<PredicateSummary> {
        let members = |number: u32| &self.attributes[number as usize].members;
        let mut attributes: Vec<(Reverse<usize>, &Arc<str>, u32)> =
            self.names.iter().map(|(name, &number)| (Reverse(members(number).len()), name, number)).collect();
        attributes.sort_unstable();
        attributes.truncate(MOST_SUMMARIES);
        let mut left = MOST_SORTED;
        let summary = |(Reverse(users), name, number): (Reverse<usize>, &Arc<str>, u32)| {
            let shape = left.checked_sub(users).map(|rest| {
                left = rest;
                let tests = members(number).all_users().map(|user| self.records.get(user.id).test(number, nodes));
                PredicateShape::of(tests.collect())
            });
            PredicateSummary { attribute: Arc::clone(name), users, shape }
        };
        attributes.into_iter().map(summary).collect()
    }

    fn remove_record(&mut self, id: u32, conjunction: &Conjunction) {
        let record = self.records.get(id);
        let posted = record.posted();
        let numbers: Vec<u32> = record.glances().map(|glance| glance.attribute).collect();
        for (index, (&number, constraint)) in numbers.iter().zip(conjunction.constraints()).enumerate() {
            let key = key(Span::of(constraint.test()));
            let attribute = &mut self.attributes[number as usize];
            if index == posted {
                attribute.access.remove(id, key.clone());
            }
            attribute.members.remove(id, key);
            if attribute.members.is_empty() {
                self.names.remove(&**constraint.attribute());
                self.unused.push(number);
            }
        }
        self.records.remove(id);
    }

    /// The number of an attribute, new if need be and then to be had.
    fn number(&mut self, name: &Arc<str>) -> u32 {
        let (attributes, unused) = (&mut self.attributes, &mut self.unused);
        *self.names.entry(Arc::clone(name)).or_insert_with(|| {
            unused.pop().unwrap_or_else(|| {
                attributes.push(Attribute::default());
                attributes.len() as u32 - 1
            })
        })
    }
}

impl Reading {
    /// See [`Width`]; to be compared with that of others read from the index as it is now.
    pub(crate) fn width(&self) -> Width {
        let ends = self.glances.iter().map(|glance| {
            let (low, high) = glance.outline.ends();
            (glance.attribute, low, Reverse(high))
        });
        Width { constraints: self.glances.len(), ends: ends.collect() }
    }
}

/// Whether a conjunction may cover another one, by the glances of both, which are in the order of the attributes' names.
fn may_cover(mut outer: impl Iterator<Item = Glance>, mut inner: impl Iterator<Item = Glance>) -> bool {
    outer.all(|outer| {
        let inner = inner.find(|inner| inner.attribute == outer.attribute);
        inner.is_some_and(|inner| outer.outline.may_contain(inner.outline))
    })
}

/// What all that is covered has in common with what covers it, as bits: the attributes, the values that are asked for, and the
/// cells of their lines that they do not leave. The attributes numbered first, mostly the common ones, have a bit of their own; the
/// other bits stand for several things.
fn signature(glances: &[Glance]) -> u32 {
    const OWN: u32 = 20;
    let shared = |number: u32| 1 << (OWN + number % (u32::BITS - OWN));
    let bits = |glance: &Glance| {
        let Glance { attribute, outline } = *glance;
        let value = if outline.is_point() { shared(outline.high.wrapping_add(attribute)) } else { 0 };
        let cell = outline.cell().map_or(0, |cell| shared(cell.wrapping_add(attribute).wrapping_mul(0x9E37_79B1) >> 8));
        value | cell | if attribute < OWN { 1 << attribute } else { shared(attribute) }
    };
    glances.iter().fold(0, |all, glance| all | bits(glance))
}

/// The nodes of roots and the outlines of their predicates, each root's in one piece. Roots are known by where that begins.
#[derive(Clone, Debug, Default)]
struct Records {
    words: Vec<u32>,
    /// By their length: pieces that are free.
    unused: BTreeMap<usize, Vec<u32>>,
}

/// A root's piece: its node, the constraint it is posted under, the number of constraints, and three words for each.
struct Record<'a> {
    words: &'a [u32],
}

const HEADER: usize = 3;

impl Records {
    /// Whether a root with so many constraints can be added.
    fn has_room(&self, constraints: usize) -> bool {
        let length = HEADER + 3 * constraints;
        self.words.len() + length <= MOST_WORDS || self.unused.get(&length).is_some_and(|pieces| !pieces.is_empty())
    }

    /// There must be room.
    fn add(&mut self, node: NodeId, posted: usize, glances: &[Glance]) -> u32 {
        let length = HEADER + 3 * glances.len();
        let begin = match self.unused.get_mut(&length).and_then(Vec::pop) {
            Some(begin) => begin as usize,
            None => {
                let begin = self.words.len();
                if begin + length > self.words.capacity() {
                    self.words.reserve_exact(begin / 16 + length);
                }
                self.words.resize(begin + length, 0);
                begin
            }
        };
        let piece = &mut self.words[begin..begin + length];
        piece[..HEADER].copy_from_slice(&[node.0, posted as u32, glances.len() as u32]);
        for (words, glance) in piece[HEADER..].chunks_exact_mut(3).zip(glances) {
            let Outline { kind, low, high } = glance.outline;
            words.copy_from_slice(&[glance.attribute << 8 | u32::from(kind), low, high]);
        }
        begin as u32
    }

    fn get(&self, begin: u32) -> Record<'_> {
        let words = &self.words[begin as usize..];
        let length = HEADER + 3 * words[2] as usize;
        Record { words: &words[..length] }
    }

    fn remove(&mut self, begin: u32) {
        let length = self.get(begin).words.len();
        self.unused.entry(length).or_default().push(begin);
    }
}

impl<'a> Record<'a> {
    fn node(&self) -> NodeId {
        NodeId(self.words[0])
    }

    fn posted(&self) -> usize {
        self.words[1] as usize
    }

    fn glances(&self) -> impl Iterator<Item = Glance> + use<'a> {
        let glance = |words: &[u32; 3]| Glance {
            attribute: words[0] >> 8,
            outline: Outline { kind: words[0] as u8, low: words[1], high: words[2] },
        };
        self.words[HEADER..].as_chunks::<3>().0.iter().map(glance)
    }

    /// The outline of what the root says of an attribute that it speaks of, and which of its constraints that is.
    fn glance(&self, attribute: u32) -> (usize, Glance) {
        let mut glances = self.glances().enumerate();
        glances.find(|(_, glance)| glance.attribute == attribute).expect("it speaks of the attribute")
    }

    /// What the root says of an attribute that it speaks of.
    fn test<'n>(&self, attribute: u32, nodes: &'n Nodes) -> &'n Test {
        let (constraint, _) = self.glance(attribute);
        nodes.conjunction(self.node()).constraints()[constraint].test()
    }
}

fn key(span: Span) -> Key {
    (span.group, span.key())
}
