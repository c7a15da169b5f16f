//! Brokers that begin in the middle of a network at rest, as a start from nothing would have left them: for simulations of
//! networks whose start from nothing takes longer than what is to be seen in them.

use crate::broker::Broker;
use crate::records::Records;
use crate::timers::Timer;
use crate::{LinkId, LinkState, Neighbour};
use std::sync::Arc;
use std::time::Duration;

/// The link states of all brokers of a network at rest.
#[derive(Clone, Debug, Default)]
pub struct Members(Records);

impl Members {
    /// Gathers link states, one of each broker.
    pub fn new(records: impl IntoIterator<Item = Arc<LinkState>>) -> Members {
        let mut members = Records::default();
        for record in records {
            members.insert(record);
        }
        Members(members)
    }
}

impl Broker {
    /// In a core broker that has said and heard nothing yet: has all its links at once and in sync, and is not starting any more.
    /// Returns the link state that says so; when all brokers have theirs, [`Broker::know_settled`] must follow.
    pub fn link_settled(&mut self, links: impl IntoIterator<Item = (LinkId, Neighbour)>) -> Option<&Arc<LinkState>> {
        for (link, neighbour) in links {
            self.use_link(link, neighbour, true, None);
        }
        (self.starting, self.peers_tried) = (false, true);
        self.timers.set(Timer::Started, None);
        self.renew_link_state();
        self.topology.link_state(self.identity.id)
    }

    /// Changes [`Config::gather`](crate::Config::gather): nothing is to gather while all that is told from end to end is there at once.
    pub fn gather_for(&mut self, time: Duration) {
        self.config.gather = time;
    }

    /// Knows all members of the network at once, itself among them, and the ways to them. Most of what it holds of them, it shares
    /// with the others that begin with these, until that changes.
    pub fn know_settled(&mut self, members: &Members) {
        self.topology.begin(members.0.clone(), self.now);
        (self.unsettled.links, self.unsettled.routes) = (false, false);
        self.view_changed_throughout();
    }
}
