//! What was asked of a network and what it did with each event, noted down while a scenario runs, for [`crate::compare`].

use crate::client::Client;
use enroute_broker::EventId;
use enroute_filter::{Event, Filter};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Something that was asked.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Subscribe { client: usize, name: Arc<str>, filter: Filter },
    Unsubscribe { client: usize, name: Arc<str> },
    Publish { client: usize, event: Event },
}

/// The way of one event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trip {
    /// The broker it was published at.
    pub(crate) origin: usize,
    /// Each time a copy went from one broker to another, in order, with its bytes.
    pub(crate) crossings: Vec<([usize; 2], u64)>,
    /// The brokers that handed it to a client.
    pub(crate) homes: BTreeSet<usize>,
    /// To how many clients.
    pub(crate) deliveries: u64,
}

/// See the module's page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workload {
    pub(crate) asked: Vec<Asked>,
    pub(crate) trips: BTreeMap<EventId, Trip>,
}

impl Workload {
    pub(crate) fn crossed(&mut self, id: EventId, hop: [usize; 2], bytes: u64) {
        self.trips.entry(id).or_default().crossings.push((hop, bytes));
    }

    /// Says where an event was published, as its receipt has it.
    pub(crate) fn answered(&mut self, id: EventId, origin: usize) {
        self.trips.entry(id).or_default().origin = origin;
    }

    pub(crate) fn delivered(&mut self, id: EventId, home: usize) {
        let trip = self.trips.entry(id).or_default();
        trip.homes.insert(home);
        trip.deliveries += 1;
    }

    /// A client's connection has ended, and with it its subscriptions.
    pub(crate) fn disconnected(&mut self, client: usize, gone: &Client) {
        let names = gone.subscriptions.keys().cloned();
        self.asked.extend(names.map(|name| Asked::Unsubscribe { client, name }));
    }
}
