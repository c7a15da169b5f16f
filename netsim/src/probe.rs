//! Round trips, as a driver measures them.

use crate::link::{Connection, Edge, Standing};
use crate::world::{Happening, World};
use enroute_broker::{Input, cost_of};
use std::time::Duration;

/// Between two measurements of a link; as often as a daemon does it.
const EVERY: Duration = Duration::from_secs(15);

/// A link with the costs that its ends will find, if they measure.
pub(crate) fn measured(measured: bool, edge: Edge) -> Edge {
    if measured { Edge { costs: [cost_of(round_trip(&edge)); 2], ..edge } } else { edge }
}

fn round_trip(edge: &Edge) -> Duration {
    Duration::from_micros(2 * edge.delay)
}

impl World {
    /// The side of a connection measures, if that is wanted and it is in use, and will do so again.
    pub(crate) fn on_probe(&mut self, number: u64, side: usize) {
        let Some(connection) = self.connections.get(&number).filter(|_| self.settings.link.measured) else { return };
        let edge = &self.edges[connection.edge];
        if connection.broken.is_some() || connection.ends[side].standing != Standing::Up || edge.uplink {
            return;
        }
        let (host, took) = (edge.hosts[side], round_trip(edge));
        self.give(host, Input::RoundTrip { link: Connection::link(number, side), took });
        self.schedule(self.now + EVERY, Happening::Probe { connection: number, side });
    }
}
