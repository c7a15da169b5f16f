//! What a broker says of itself when asked: plain numbers for people and programs.

use crate::broker::Broker;
use crate::leaves::Leaf;
use crate::links::Link;
use crate::topology::ScopeView;
use crate::uplink::Uplink;
use crate::{BrokerId, LinkId};
use enroute_covering::{Budget, MergingConfig, PredicateSummary};
use serde::{Deserialize, Serialize};

/// A picture of a broker's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// One entry for each leaf broker below.
    pub leaves: Vec<LeafStatus>,
    /// Of a leaf broker: how it stands with the world above; none for a core broker.
    pub uplink: Option<UplinkStatus>,
    /// Subscriptions of all clients.
    pub subscriptions: u64,
    /// Distinct conjunctions in the covering forest of the clients' subscriptions.
    pub forest_nodes: u64,
    /// Roots over these and what the leaves below want.
    pub forest_roots: u64,
    /// Filters that are announced: the roots, or fewer if they are merged.
    pub announced: u64,
    /// How the roots are merged; none if they are announced as they are.
    pub merging: Option<MergingStatus>,
    /// What the roots say of their attributes, for those of which most roots speak, these first.
    pub predicates: Vec<PredicateStatus>,
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

/// How the roots are merged before they are announced. How much of what comes matches what is announced though nobody wants it is
/// [`Counters::unwanted`] of [`Counters::arrived`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MergingStatus {
    /// Whether those that differ in one attribute become one.
    pub perfect: bool,
    /// What may be announced beyond what is wanted; none if nothing may.
    pub imperfect: Option<ImperfectStatus>,
}

/// The budget of imperfect merging, and what is used of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImperfectStatus {
    /// The most filters to announce.
    pub filters: u64,
    /// The greatest share of false interest, from 0 to 1.
    pub false_interest: f64,
    /// The share of a sample of the events matched here that match what is announced though nobody wants them; none before any came.
    pub estimate: Option<f64>,
}

/// What the roots say of one attribute, as a forest of predicates ordered by covering.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PredicateStatus {
    /// The attribute.
    pub attribute: String,
    /// Roots that speak of it.
    pub roots: u64,
    /// Different things they say; none if that is too much to look through.
    pub predicates: Option<u64>,
    /// Predicates that stand one below the other at most, likewise.
    pub depth: Option<u64>,
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
    /// The shortest round trip of the last minute, in microseconds; none if none has been measured.
    pub round_trip_us: Option<u64>,
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

/// A leaf broker below, as its parent sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeafStatus {
    /// The driver's number of the link.
    pub link: u64,
    /// Its id in hexadecimal.
    pub id: String,
    /// Its peer id.
    pub peer_id: String,
    /// Its scope, as in [`Status::scope`].
    pub scope: String,
    /// Filters it has announced.
    pub interest: u64,
    /// Filters of others that it has been told, to know what it need not send.
    pub told: u64,
    /// Control messages sent.
    pub control_sent: u64,
    /// Control messages received.
    pub control_received: u64,
    /// Events sent.
    pub events_sent: u64,
    /// Events received.
    pub events_received: u64,
}

/// How a leaf broker stands with the world above.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UplinkStatus {
    /// The driver's number of the link to the parent; none without an uplink.
    pub link: Option<u64>,
    /// The parent's peer id.
    pub peer_id: Option<String>,
    /// The brokers on the way to the core, in hexadecimal, the parent first; empty while there is none.
    pub path: Vec<String>,
    /// Filters that the parent has been told.
    pub announced: u64,
    /// Filters of others that the parent has told.
    pub interest: u64,
    /// Events that wait for an uplink.
    pub kept_events: u64,
    /// Control messages sent to the present parent.
    pub control_sent: u64,
    /// Control messages received from it.
    pub control_received: u64,
    /// Events sent to it.
    pub events_sent: u64,
    /// Events received from it.
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
    /// Events that reached this broker as a destination.
    pub arrived: u64,
    /// Of these, those that nobody wants: false interest of imperfect merging, or subscribers that are gone.
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
    /// Events that a leaf broker did not send up, since nobody beyond wants them.
    pub quenched: u64,
    /// Events that came from a leaf or uplink once more and were dropped.
    pub seen_again: u64,
    /// Events that came over a link to a leaf or parent that is not attached, or under the name of a leaf that hangs elsewhere, and
    /// were dropped.
    pub strays: u64,
    /// Events that were kept for an uplink and dropped since there were too many.
    pub lost_kept: u64,
    /// Events for a leaf that had not gone out when its link died.
    pub lost_with_leaf: u64,
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
            cost: self.cost.get(),
            round_trip_us: self.cost.round_trip(),
            in_sync: self.in_sync(),
            control_sent: self.counts.control_sent,
            control_received: self.counts.control_received,
            events_sent: self.counts.events_sent,
            events_received: self.counts.events_received,
        }
    }
}

impl Leaf {
    fn status(&self, link: LinkId) -> LeafStatus {
        LeafStatus {
            link: link.0,
            id: self.id.to_string(),
            peer_id: self.peer_id.to_string(),
            scope: self.scope.describe(),
            interest: self.filters.len() as u64,
            told: self.quenched.as_ref().map_or(0, |quenched| quenched.told.filters()),
            control_sent: self.counts.control_sent,
            control_received: self.counts.control_received,
            events_sent: self.counts.events_sent,
            events_received: self.counts.events_received,
        }
    }
}

impl Uplink {
    fn status(&self) -> UplinkStatus {
        let counts = self.parent.as_ref().map(|parent| &parent.counts);
        UplinkStatus {
            link: self.parent.as_ref().map(|parent| parent.link.0),
            peer_id: self.parent.as_ref().map(|parent| parent.peer_id.to_string()),
            path: self.path().iter().map(BrokerId::to_string).collect(),
            announced: self.told.filters(),
            interest: self.others.len() as u64,
            kept_events: self.kept.len() as u64,
            control_sent: counts.map_or(0, |counts| counts.control_sent),
            control_received: counts.map_or(0, |counts| counts.control_received),
            events_sent: counts.map_or(0, |counts| counts.events_sent),
            events_received: counts.map_or(0, |counts| counts.events_received),
        }
    }
}

impl From<PredicateSummary> for PredicateStatus {
    fn from(summary: PredicateSummary) -> PredicateStatus {
        PredicateStatus {
            attribute: summary.attribute.to_string(),
            roots: summary.users as u64,
            predicates: summary.shape.map(|shape| shape.predicates as u64),
            depth: summary.shape.map(|shape| shape.depth as u64),
        }
    }
}

impl Broker {
    /// A picture of the state. O(links + brokers + their links), and some milliseconds for the predicates of a large forest.
    pub fn status(&mut self) -> Status {
        let brokers = self.topology.brokers().map(|broker| self.broker_status(broker)).collect();
        Status { brokers, ..self.own_status() }
    }

    /// As [`Broker::status`], but without what is known of other brokers.
    pub fn own_status(&mut self) -> Status {
        Status {
            id: self.identity.id.to_string(),
            peer_id: self.identity.peer_id.to_string(),
            incarnation: self.identity.incarnation,
            starting: self.starting,
            complete: self.view_is_complete(),
            links: self.links.iter().map(|(id, link)| link.status(id)).collect(),
            brokers: Vec::new(),
            clients: self.clients.count() as u64,
            leaves: self.leaves.iter().map(|(link, leaf)| leaf.status(link)).collect(),
            uplink: self.uplink.as_ref().map(Uplink::status),
            subscriptions: self.clients.subscriptions() as u64,
            forest_nodes: self.interest.clients().len() as u64,
            forest_roots: self.interest.root_count() as u64,
            announced: self.announcements.count() as u64,
            merging: self.merging_status(),
            predicates: self.interest.predicates().into_iter().map(PredicateStatus::from).collect(),
            advertisements: self.clients.advertisements() as u64,
            scope: self.topology.scope(self.identity.id).describe(),
            waiting_publications: self.waiting.len() as u64,
            parked_events: self.parked.len() as u64,
            counters: self.counters,
        }
    }

    /// Where what goes to another broker goes next, and the sum of the link costs of the whole path; none without a path.
    pub fn route_to(&self, broker: BrokerId) -> Option<(BrokerId, u64)> {
        self.topology.route(broker).map(|route| (route.next_hop, route.distance.cost))
    }

    /// How many filters of other brokers are held here, and how many have been told others, each as often as there are brokers.
    pub fn interest_held_and_told(&self) -> [u64; 2] {
        [self.remote.total(), self.announcements.total_told()]
    }

    fn merging_status(&self) -> Option<MergingStatus> {
        let MergingConfig { perfect, imperfect } = self.config.merging;
        let budget = |Budget { filters, false_interest }| ImperfectStatus {
            filters: filters as u64,
            false_interest,
            estimate: self.interest.false_interest(),
        };
        (perfect || imperfect.is_some()).then(|| MergingStatus { perfect, imperfect: imperfect.map(budget) })
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
            interest: self.remote.count(broker),
            announced: self.announcements.told(broker),
        }
    }
}
