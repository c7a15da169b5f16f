//! What a broker says of itself when asked: plain numbers for people and programs.

use crate::broker::Broker;
use crate::links::Link;
use crate::topology::ScopeView;
use crate::{BrokerId, LinkId};
use serde::{Deserialize, Serialize};

/// A picture of a broker's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its id in hexadecimal.
    pub id: String,
    /// Its peer id.
    pub peer_id: String,
    /// Its incarnation.
    pub incarnation: u64,
    /// Whether it still counts as starting.
    pub starting: bool,
    /// Whether every reachable broker has said what it wants of what is published here.
    pub complete: bool,
    /// One entry for each link.
    pub links: Vec<LinkStatus>,
    /// One entry for each known broker, itself included.
    pub brokers: Vec<BrokerStatus>,
    /// Clients connected.
    pub clients: u64,
    /// Subscriptions of all clients.
    pub subscriptions: u64,
    /// Distinct conjunctions in the covering forest of the subscriptions.
    pub forest_nodes: u64,
    /// Roots of that forest: all that others are told.
    pub forest_roots: u64,
    /// Advertisements of all clients.
    pub advertisements: u64,
    /// The own scope: "nobody", "anything" or the filters.
    pub scope: String,
    /// Publications waiting for a complete view.
    pub waiting_publications: u64,
    /// Events parked for want of a next hop.
    pub parked_events: u64,
    /// What has been counted since the start.
    pub counters: Counters,
}

/// A link as this end sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// The driver's number of the link.
    pub link: u64,
    /// The broker at the other end, in hexadecimal.
    pub neighbour: String,
    /// Its peer id.
    pub peer_id: String,
    /// What this end says it costs.
    pub cost: u32,
    /// Whether both directions are in sync, so that it carries events.
    pub in_sync: bool,
    /// Control messages sent.
    pub control_sent: u64,
    /// Control messages received.
    pub control_received: u64,
    /// Events sent.
    pub events_sent: u64,
    /// Events received.
    pub events_received: u64,
}

/// What is known of a broker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerStatus {
    /// Its id in hexadecimal.
    pub id: String,
    /// Its peer id.
    pub peer_id: String,
    /// Whether there is a path to it.
    pub reachable: bool,
    /// The neighbour on the path, in hexadecimal; none for oneself and the unreachable.
    pub next_hop: Option<String>,
    /// Sum of the link costs on the path.
    pub distance: u64,
    /// Its neighbours, in hexadecimal.
    pub neighbours: Vec<String>,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// Its scope, as in [`Status::scope`].
    pub scope: String,
    /// Filters it has announced here.
    pub interest: u64,
    /// Filters announced to it.
    pub announced: u64,
}

/// What a broker counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Events published by own clients.
    pub published: u64,
    /// Events handed to own clients (each client counts).
    pub delivered: u64,
    /// Events that reached this broker as a destination and matched nobody any more.
    pub unwanted: u64,
    /// Copies of events sent to neighbours.
    pub forwarded: u64,
    /// Events dropped because no path was found in time (each destination counts, here and in the next two).
    pub lost_no_path: u64,
    /// Events dropped at their hop limit.
    pub lost_hop_limit: u64,
    /// Events dropped because too much was waiting.
    pub lost_overflow: u64,
    /// Publications that went out before all reachable brokers had said what they want.
    pub published_incomplete: u64,
    /// Control messages sent again for want of an acknowledgement.
    pub resent: u64,
    /// Interests sent whole because a digest did not come out right.
    pub resyncs: u64,
}

impl ScopeView {
    /// The scope in words.
    fn describe(&self) -> String {
        match self {
            ScopeView::Nobody => "nobody".into(),
            ScopeView::Anything => "anything".into(),
            ScopeView::Filters(filters) => {
                filters.iter().map(|filter| filter.to_string()).collect::<Vec<_>>().join(" OR ")
            }
        }
    }
}

impl Link {
    fn status(&self, id: LinkId) -> LinkStatus {
        LinkStatus {
            link: id.0,
            neighbour: self.neighbour.broker.to_string(),
            peer_id: self.neighbour.peer_id.to_string(),
            cost: self.neighbour.cost.max(1),
            in_sync: self.in_sync(),
            control_sent: self.counts.control_sent,
            control_received: self.counts.control_received,
            events_sent: self.counts.events_sent,
            events_received: self.counts.events_received,
        }
    }
}

impl Broker {
    /// A picture of the state. O(links + brokers + their links).
    pub fn status(&mut self) -> Status {
        Status {
            id: self.identity.id.to_string(),
            peer_id: self.identity.peer_id.to_string(),
            incarnation: self.identity.incarnation,
            starting: self.starting,
            complete: self.view_is_complete(),
            links: self.links.iter().map(|(id, link)| link.status(id)).collect(),
            brokers: self.topology.brokers().map(|broker| self.broker_status(broker)).collect(),
            clients: self.clients.count() as u64,
            subscriptions: self.clients.subscriptions() as u64,
            forest_nodes: self.clients.forest.len() as u64,
            forest_roots: self.clients.forest.root_count() as u64,
            advertisements: self.clients.advertisements() as u64,
            scope: self.topology.scope(self.identity.id).describe(),
            waiting_publications: self.waiting.len() as u64,
            parked_events: self.parked.len() as u64,
            counters: self.counters,
        }
    }

    fn broker_status(&self, broker: BrokerId) -> BrokerStatus {
        let record = self.topology.link_state(broker);
        let route = self.topology.route(broker);
        BrokerStatus {
            id: broker.to_string(),
            peer_id: record.map_or(String::new(), |record| record.peer_id.to_string()),
            reachable: route.is_some() || broker == self.identity.id,
            next_hop: route.map(|route| route.next_hop.to_string()),
            distance: route.map_or(0, |route| route.distance.cost),
            neighbours: record.iter().flat_map(|record| &record.links).map(|link| link.neighbour.to_string()).collect(),
            addresses: record.map_or(Vec::new(), |record| record.addresses.clone()),
            scope: self.topology.scope(broker).describe(),
            interest: self.remote.filters(broker),
            announced: self.announcements.told(broker),
        }
    }
}
