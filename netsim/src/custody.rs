//! Where the copies of events are: in the core, each (event, destination) is in exactly one place; from a parent down to a leaf
//! an event goes at most once in the parent's life.

use enroute_broker::{BrokerId, EventFrame, EventId};
use std::collections::{BTreeMap, BTreeSet};

/// Where a copy of an event for a destination is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Under way between two brokers.
    OnLink,
    /// In a broker that is not its destination.
    At(BrokerId),
    /// It has arrived.
    Arrived,
    /// It went down with a link or a broker.
    Lost,
}

/// Keeps books of all copies.
#[derive(Debug, Default)]
pub(crate) struct Custody {
    places: BTreeMap<(EventId, BrokerId), Place>,
    /// Events that have come up to a broker from a leaf.
    come_up: BTreeSet<(EventId, BrokerId)>,
    /// Events that have gone down from a parent to a leaf.
    gone_down: BTreeSet<(EventId, [usize; 2])>,
}

impl Custody {
    /// A broker sends a copy on.
    ///
    /// # Errors
    /// A complaint if the destinations are not sorted, none twice and at least one, or if the broker does not have the
    /// copy that it sends.
    pub(crate) fn forwarded(&mut self, from: BrokerId, frame: &EventFrame) -> Result<(), String> {
        let mut result = Ok(());
        if frame.destinations.is_empty() || !frame.destinations.is_sorted_by(|a, b| a < b) {
            result = Err(format!("event {} with destinations {:?}", frame.id, frame.destinations));
        }
        for &destination in &frame.destinations {
            let place = self.places.insert((frame.id, destination), Place::OnLink);
            let has = match place {
                Some(Place::At(broker)) => broker == from,
                None => frame.id.origin == from || self.come_up.contains(&(frame.id, from)),
                Some(Place::OnLink | Place::Arrived | Place::Lost) => false,
            };
            if !has {
                let id = frame.id;
                result = Err(format!("broker {from} sends event {id} for {destination}, whose copy is {place:?}"));
            }
        }
        result
    }

    /// A copy comes to a broker.
    pub(crate) fn arrived(&mut self, at: BrokerId, frame: &EventFrame) {
        for &destination in &frame.destinations {
            let place = if destination == at { Place::Arrived } else { Place::At(at) };
            self.places.insert((frame.id, destination), place);
        }
    }

    /// A copy is lost.
    pub(crate) fn lost(&mut self, frame: &EventFrame) {
        for &destination in &frame.destinations {
            self.places.insert((frame.id, destination), Place::Lost);
        }
    }

    /// A copy is given back to the broker that sent it.
    pub(crate) fn returned(&mut self, to: BrokerId, frame: &EventFrame) {
        for &destination in &frame.destinations {
            self.places.insert((frame.id, destination), Place::At(to));
        }
    }

    /// All copies in a broker are lost; the events they were of.
    pub(crate) fn crashed(&mut self, (host, broker): (usize, BrokerId)) -> Vec<EventId> {
        self.gone_down.retain(|&(_, [parent, _])| parent != host);
        let mut events = Vec::new();
        for (&(event, _), place) in &mut self.places {
            if *place == Place::At(broker) {
                *place = Place::Lost;
                events.push(event);
            }
        }
        events
    }

    /// An event goes down from a parent to a leaf.
    ///
    /// # Errors
    /// A complaint if it has done so before.
    pub(crate) fn goes_down(&mut self, hop: [usize; 2], frame: &EventFrame) -> Result<(), String> {
        if self.gone_down.insert((frame.id, hop)) {
            return Ok(());
        }
        Err(format!("event {} goes down from {} to {} twice", frame.id, hop[0], hop[1]))
    }

    /// An event has come up or down to a broker.
    pub(crate) fn hop_arrived(&mut self, frame: &EventFrame) {
        self.come_up.extend(frame.destinations.iter().map(|&at| (frame.id, at)));
    }

    /// How many copies are in each broker that is not their destination.
    pub(crate) fn held(&self) -> BTreeMap<BrokerId, u64> {
        let mut held = BTreeMap::new();
        for place in self.places.values() {
            if let Place::At(broker) = place {
                *held.entry(*broker).or_default() += 1;
            }
        }
        held
    }

    pub(crate) fn place(&self, event: EventId, destination: BrokerId) -> Option<Place> {
        self.places.get(&(event, destination)).copied()
    }

    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.come_up.clear();
        self.gone_down.clear();
    }
}
