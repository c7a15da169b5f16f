//! Letters that go over a link together, and their bytes, in which what they have in common stands once: an interest that is
//! told to many publishers, a publisher whom many answer, a broker that acknowledges what many have said.

use crate::BrokerId;
use crate::message::{Interest, InterestPart, Life, Payload, Routed, RoutedBody};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Letters that may go together.
pub const MAX_LETTERS: usize = 1_024;

/// Bytes that letters which go together may have in all, at the most that each can take, with all that it says in it: what is written
/// once, and named by many, must not make others write, and do, far more than has come. It is less than a control frame may
/// have, so that what has been read can be written again.
pub const MAX_LETTERS_BYTES: usize = (1 << 20) - 64;

/// The most that a letter takes besides what it says of an interest or a path, that a part takes besides its filters, and what
/// the length of a filter or a broker takes.
const LETTER: usize = 112;
const PART: usize = 40;
const LENGTH: usize = 5;
const BROKER: usize = 9;

/// Letters that go over a link together, at most [`MAX_LETTERS`] with at most [`MAX_LETTERS_BYTES`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Letters(pub Vec<Routed>);

/// As it is written: letters name lives and parts by their places.
#[derive(Debug, Serialize, Deserialize)]
struct Packed {
    /// Each with how much its incarnation is larger than that of the one before.
    lives: Vec<(BrokerId, i64)>,
    parts: Vec<Arc<InterestPart>>,
    letters: Vec<PackedLetter>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PackedLetter {
    source: u32,
    destination: u32,
    passed: u16,
    body: RoutedBody<u32>,
}

impl<P> RoutedBody<P> {
    /// What it says of an interest, if it does.
    pub(crate) fn part(&self) -> Option<&P> {
        match self {
            RoutedBody::Data { payload: Payload::Interest(interest), .. } => Some(&interest.part),
            RoutedBody::Data { payload: Payload::Resync { .. } | Payload::Detach(_), .. }
            | RoutedBody::Ack { .. }
            | RoutedBody::Restart { .. } => None,
        }
    }

    /// The same with something else in place of a part of an interest, or none if there is nothing.
    fn try_map<Q>(self, part: impl FnOnce(P) -> Option<Q>) -> Option<RoutedBody<Q>> {
        Some(match self {
            RoutedBody::Data { epoch, sequence, payload } => {
                let payload = match payload {
                    Payload::Interest(Interest { scope_version, part: it }) => {
                        Payload::Interest(Interest { scope_version, part: part(it)? })
                    }
                    Payload::Resync { version } => Payload::Resync { version },
                    Payload::Detach(detach) => Payload::Detach(detach),
                };
                RoutedBody::Data { epoch, sequence, payload }
            }
            RoutedBody::Ack { epoch, received } => RoutedBody::Ack { epoch, received },
            RoutedBody::Restart { epoch } => RoutedBody::Restart { epoch },
        })
    }
}

impl Routed {
    /// The most that it takes, but for the part of an interest in it.
    pub(crate) fn size_without_part(&self) -> usize {
        match &self.body {
            RoutedBody::Data { payload: Payload::Detach(detach), .. } => LETTER + BROKER * detach.path.len(),
            RoutedBody::Data { payload: Payload::Interest(_) | Payload::Resync { .. }, .. }
            | RoutedBody::Ack { .. }
            | RoutedBody::Restart { .. } => LETTER,
        }
    }
}

impl InterestPart {
    /// The most that it takes.
    pub(crate) fn size(&self) -> usize {
        PART + self.added.iter().chain(&self.removed).map(|filter| LENGTH + filter.0.len()).sum::<usize>()
    }
}

/// Distinct things in a list, and the place of each.
#[derive(Debug)]
struct Places<T> {
    list: Vec<T>,
    places: BTreeMap<T, u32>,
}

impl<T: Clone + Ord> Places<T> {
    fn new() -> Places<T> {
        Places { list: Vec::new(), places: BTreeMap::new() }
    }

    fn of(&mut self, thing: &T) -> u32 {
        *self.places.entry(thing.clone()).or_insert_with(|| {
            self.list.push(thing.clone());
            self.list.len() as u32 - 1
        })
    }
}

impl Packed {
    fn of(letters: &[Routed]) -> Packed {
        let (mut lives, mut parts) = (Places::new(), Places::<Arc<InterestPart>>::new());
        // What is told to many is shared, and need not be compared for each.
        let mut last: Option<(Arc<InterestPart>, u32)> = None;
        let mut place_of = |part: Arc<InterestPart>| {
            let place = match &last {
                Some((last, place)) if Arc::ptr_eq(last, &part) => *place,
                Some(_) | None => parts.of(&part),
            };
            last = Some((part, place));
            Some(place)
        };
        let pack = |Routed { source, destination, passed, body }: &Routed| PackedLetter {
            source: lives.of(source),
            destination: lives.of(destination),
            passed: *passed,
            body: body.clone().try_map(&mut place_of).expect("each part has a place"),
        };
        let letters = letters.iter().map(pack).collect();
        let mut before = 0;
        let difference = |Life { broker, incarnation }: Life| {
            (broker, incarnation.wrapping_sub(std::mem::replace(&mut before, incarnation)).cast_signed())
        };
        Packed { lives: lives.list.into_iter().map(difference).collect(), parts: parts.list, letters }
    }

    /// None if a letter names what is not there.
    fn unpack(self) -> Option<Vec<Routed>> {
        let mut incarnation = 0_u64;
        let lives: Vec<Life> = (self.lives.into_iter())
            .map(|(broker, difference)| {
                incarnation = incarnation.wrapping_add_signed(difference);
                Life { broker, incarnation }
            })
            .collect();
        let life = |place: u32| lives.get(place as usize).copied();
        let part = |place: u32| self.parts.get(place as usize).cloned();
        let unpack = |PackedLetter { source, destination, passed, body }| {
            Some(Routed { source: life(source)?, destination: life(destination)?, passed, body: body.try_map(part)? })
        };
        self.letters.into_iter().map(unpack).collect()
    }
}

fn check_count(count: usize) -> Result<(), String> {
    if count <= MAX_LETTERS { Ok(()) } else { Err(format!("{count} letters at once, at most {MAX_LETTERS} may be")) }
}

fn check_bytes(letters: &[Routed]) -> Result<(), String> {
    let (mut bytes, mut last) = (0, None::<(&Arc<InterestPart>, usize)>);
    for letter in letters {
        bytes += letter.size_without_part();
        if let Some(part) = letter.body.part() {
            let size = last.filter(|(last, _)| Arc::ptr_eq(last, part)).map_or_else(|| part.size(), |(_, size)| size);
            bytes += size;
            last = Some((part, size));
        }
        if bytes > MAX_LETTERS_BYTES {
            return Err(format!("letters of more than {MAX_LETTERS_BYTES} bytes at once, each with all that it says"));
        }
    }
    Ok(())
}

impl Serialize for Letters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        check_count(self.0.len()).and_then(|()| check_bytes(&self.0)).map_err(ser::Error::custom)?;
        Packed::of(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Letters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Letters, D::Error> {
        let packed = Packed::deserialize(deserializer)?;
        check_count(packed.letters.len()).map_err(de::Error::custom)?;
        let missing = || de::Error::custom("a letter names a broker or an interest that is missing");
        let letters = packed.unpack().ok_or_else(missing)?;
        check_bytes(&letters).map_err(de::Error::custom)?;
        Ok(Letters(letters))
    }
}
