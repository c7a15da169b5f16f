//! Real nodes in this process, six core brokers and two leaves, linked over loopback TCP.

use super::reckoning::{Crossings, Routes};
use super::scenario::{self, BROKERS, CORE, LINKS};
use crate::failure::Failure;
use enroute_broker::{Config, Status};
use enroute_node::{Client, Multiaddr, Node, NodeConfig, NodeStatus};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the network may take to come together.
const SETTLE: Duration = Duration::from_secs(30);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// The running brokers, in the order of [`BROKERS`].
pub(super) struct Network {
    nodes: Vec<Node>,
}

impl Network {
    /// Starts the brokers one after the other; each dials those of its neighbours that run already.
    pub(super) async fn start() -> Result<Network, Failure> {
        let anywhere: Multiaddr =
            "/ip4/127.0.0.1/tcp/0".parse().map_err(|error| Failure::new("loopback").because(&error))?;
        let mut nodes: Vec<Node> = Vec::new();
        for (broker, name) in BROKERS.into_iter().enumerate() {
            let neighbours = LINKS.into_iter().filter(|&(a, b)| a.max(b) == broker).map(|(a, b)| a.min(b));
            let addresses: Vec<Multiaddr> = neighbours.flat_map(|neighbour| nodes[neighbour].addresses()).collect();
            let (peers, leaf) = if broker < CORE { (addresses, Vec::new()) } else { (Vec::new(), addresses) };
            let config =
                NodeConfig { listen: vec![anywhere.clone()], peers, leaf, mesh: false, ..NodeConfig::default() };
            // Within one machine the way takes as long as the processor is busy: the fewest links make the shortest path.
            let core = Config { measured: false, ..Config::default() };
            let node = Node::builder().config(config).core(core).start().await;
            nodes.push(node.map_err(|error| Failure::new(format!("{name} does not start")).because(&error))?);
        }
        let network = Network { nodes };
        network.come_together().await?;
        Ok(network)
    }

    /// A client of a broker, within the process.
    pub(super) async fn client(&self, broker: usize) -> Result<Client, Failure> {
        let client = self.nodes[broker].client().await;
        client.map_err(|error| Failure::new(format!("{} takes no client", BROKERS[broker])).because(&error))
    }

    /// Waits until every broker has a link to each of its neighbours, and a path to all.
    async fn come_together(&self) -> Result<(), Failure> {
        let deadline = Instant::now() + SETTLE;
        while self.routes().await?.is_none() {
            if Instant::now() > deadline {
                return Err(Failure::new(format!("the brokers have not come together in {} s", SETTLE.as_secs())));
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// The routes as the brokers have them; none while a link is not up or a broker is out of reach of another.
    pub(super) async fn routes(&self) -> Result<Option<Routes>, Failure> {
        let mut routes = Routes::default();
        for (at, row) in routes.iter_mut().enumerate() {
            let status = self.status(at).await?.broker;
            if !self.is_linked(at, &status) {
                return Ok(None);
            }
            for (to, next) in row.iter_mut().enumerate() {
                match self.next_hop(at, to, &status) {
                    Some(hop) => *next = hop,
                    None => return Ok(None),
                }
            }
        }
        Ok(Some(routes))
    }

    /// Whether a broker has all its links, with its uplink and those to leaves.
    fn is_linked(&self, at: usize, status: &Status) -> bool {
        let mut neighbours = LINKS.into_iter().filter(|&(a, b)| a == at || b == at).map(|(a, b)| a + b - at);
        neighbours.all(|other| {
            let id = self.nodes[other].id().to_string();
            let uplink = status.uplink.iter().filter_map(|uplink| uplink.path.first());
            status.links.iter().any(|link| link.in_sync && link.neighbour == id)
                || status.leaves.iter().map(|leaf| &leaf.id).chain(uplink).any(|other| *other == id)
        })
    }

    /// Where a broker sends what is for another one. Of leaves the core brokers know only those below themselves.
    fn next_hop(&self, at: usize, to: usize, status: &Status) -> Option<usize> {
        match (scenario::parent(at), scenario::parent(to)) {
            _ if at == to => Some(at),
            (Some(parent), _) => Some(parent),
            (None, Some(parent)) if parent == at => Some(to),
            (None, parent) => {
                let id = self.nodes[parent.unwrap_or(to)].id().to_string();
                let found = status.brokers.iter().find(|broker| broker.id == id);
                found.and_then(|broker| broker.next_hop.as_deref()).and_then(|hop| self.broker(hop))
            }
        }
    }

    /// How many events each broker has sent to each of its neighbours.
    pub(super) async fn crossings(&self) -> Result<Crossings, Failure> {
        let mut crossings = Crossings::new();
        for at in 0..BROKERS.len() {
            let status = self.status(at).await?.broker;
            let core = status.links.iter().map(|link| (Some(&link.neighbour), link.events_sent));
            let leaves = status.leaves.iter().map(|leaf| (Some(&leaf.id), leaf.events_sent));
            let uplink = status.uplink.iter().map(|uplink| (uplink.path.first(), uplink.events_sent));
            for (neighbour, events_sent) in core.chain(leaves).chain(uplink) {
                if let Some(neighbour) = neighbour.and_then(|id| self.broker(id)) {
                    *crossings.entry((at, neighbour)).or_default() += events_sent;
                }
            }
        }
        Ok(crossings)
    }

    async fn status(&self, broker: usize) -> Result<NodeStatus, Failure> {
        let status = self.nodes[broker].status().await;
        status.map_err(|error| Failure::new(format!("{} says nothing of its state", BROKERS[broker])).because(&error))
    }

    /// The broker of an id in hexadecimal.
    fn broker(&self, id: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.id().to_string() == id)
    }

    pub(super) async fn shut_down(self) {
        for node in self.nodes {
            node.shutdown().await;
        }
    }
}
