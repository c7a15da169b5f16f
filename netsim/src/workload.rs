//! What was asked of a network, over which links, and what it did with each event: noted down while a scenario runs, for
//! [`crate::compare`].

use crate::client::Client;
use crate::link::Standing;
use crate::paths::Graph;
use crate::world::World;
use enroute_broker::{EventFrame, EventId};
use enroute_filter::{Event, Filter};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Something that was asked.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Subscribe {
        client: usize,
        name: Arc<str>,
        filter: Filter,
    },
    Unsubscribe {
        client: usize,
        name: Arc<str>,
    },
    Publish {
        client: usize,
        event: Event,
    },
    /// Nobody asks: these are the links from now on.
    Links(Links),
    /// Nobody asks: the network has settled, in this step.
    Settled {
        step: usize,
    },
}

/// The links that a scheme can use which knows of a dead one as soon as one of its ends does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Links {
    /// Those that are taken for alive.
    pub(crate) graph: Graph,
    /// Of these, those that are dead, the lower end first.
    dead: BTreeSet<[usize; 2]>,
}

impl Links {
    /// All alive.
    pub(crate) fn whole(graph: Graph) -> Links {
        Links { graph, dead: BTreeSet::new() }
    }

    /// Whether what goes over a link between neighbours arrives.
    pub(crate) fn carry(&self, a: usize, b: usize) -> bool {
        !self.dead.contains(&[a.min(b), a.max(b)])
    }
}

/// The way of one event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trip {
    /// The broker it was published at.
    pub(crate) origin: usize,
    /// Each time a copy came from one broker to another, in order, with its bytes.
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
    /// As they were last noted down: from when the network has first settled.
    links: Option<Links>,
    /// Whether nothing has happened since that may have changed them.
    links_stand: bool,
}

impl Workload {
    pub(crate) fn crossed(&mut self, frame: &EventFrame, hop: [usize; 2]) {
        let bytes = enroute_wire::event_frame_size(frame) as u64;
        self.trips.entry(frame.id).or_default().crossings.push((hop, bytes));
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

impl World {
    /// The network has settled.
    pub(crate) fn note_settled(&mut self, step: usize) {
        if let Some(workload) = &mut self.workload {
            workload.links.get_or_insert_default();
            self.note_links();
            self.note(|| Asked::Settled { step });
        }
    }

    /// Notes down which links there are, if that has changed.
    pub(crate) fn note_links(&mut self) {
        let Some(Workload { links: Some(noted), links_stand, .. }) = &self.workload else { return };
        if *links_stand {
            debug_assert!(*noted == self.known_links(), "a change that `links_change` was not told of");
            return;
        }
        let links = self.known_links();
        if let Some(workload) = &mut self.workload {
            workload.links_stand = true;
            if workload.links.as_ref() != Some(&links) {
                workload.asked.push(Asked::Links(links.clone()));
                workload.links = Some(links);
            }
        }
    }

    /// A link comes up or breaks, or that is found: they are to be looked at before the next event.
    pub(crate) fn links_change(&mut self) {
        if let Some(workload) = &mut self.workload {
            workload.links_stand = false;
        }
    }

    /// The links at this moment. A dead one is found by the first of the brokers at its ends that knows; one that is down
    /// knows nothing.
    pub(crate) fn known_links(&self) -> Links {
        let mut links = Links::whole(self.whole_graph());
        for connection in self.connections.values().filter(|connection| connection.broken.is_some()) {
            let edge = &self.edges[connection.edge];
            let [a, b] = edge.hosts;
            let holds = |side: usize| connection.ends[side].standing == Standing::Up;
            let knows = |side: usize| !holds(side) && self.hosts[edge.hosts[side]].core.is_some();
            let is_found = [0, 1].into_iter().any(knows) || ![0, 1].into_iter().any(holds);
            if !is_found && !edge.is_loop() && !links.graph.neighbours[a].contains_key(&b) {
                links.graph.neighbours[a].insert(b, edge.cost());
                links.graph.neighbours[b].insert(a, edge.cost());
                links.dead.insert([a.min(b), a.max(b)]);
            }
        }
        links
    }
}
