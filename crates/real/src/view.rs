//! What the brokers' own words say about the network as a whole.

use enroute_client::{LinkQueueStatus, NodeStatus};
use enroute_netsim::{Count, LinkTally};
use std::collections::{BTreeMap, BTreeSet};

/// What must be so, and what the brokers that run say.
pub(crate) struct View<'a> {
    /// Names and ids of the brokers that run, by their places.
    pub(crate) names: BTreeMap<usize, (&'a str, &'a str)>,
    /// Links that are whole and whose ends run, both ways round.
    pub(crate) links: BTreeSet<[usize; 2]>,
    pub(crate) statuses: &'a BTreeMap<usize, NodeStatus>,
}

impl View<'_> {
    /// What is not as it is in a settled network: every broker has its links and knows whom it can reach; each holds what
    /// the others have announced to it; nothing waits and nothing is under way.
    pub(crate) fn unsettled(&self) -> Option<String> {
        self.names.keys().find_map(|&place| {
            let name = self.names[&place].0;
            match self.statuses.get(&place) {
                Some(status) => self.unsettled_at(place, status).map(|why| format!("{name}: {why}")),
                None => Some(format!("{name} does not answer")),
            }
        })
    }

    fn unsettled_at(&self, place: usize, status: &NodeStatus) -> Option<String> {
        let broker = &status.broker;
        let neighbours: BTreeSet<usize> =
            self.links.iter().filter(|link| link[0] == place).map(|link| link[1]).collect();
        let in_sync: Vec<&str> =
            broker.links.iter().filter(|link| link.in_sync).map(|link| link.neighbour.as_str()).collect();
        let wanted = neighbours.iter().map(|&it| self.names[&it].1);
        if broker.links.len() != in_sync.len() || in_sync.iter().copied().collect::<BTreeSet<_>>() != wanted.collect() {
            let all = broker.links.len();
            return Some(format!("{} links in sync of {all}, instead of {}", in_sync.len(), neighbours.len()));
        }
        let reached: BTreeSet<&str> =
            broker.brokers.iter().filter(|it| it.reachable).map(|it| it.id.as_str()).collect();
        let within_reach = within_reach(&self.links, place);
        if reached != within_reach.iter().map(|it| self.names[it].1).collect() {
            return Some(format!("reaches {} brokers instead of {}", reached.len(), within_reach.len()));
        }
        // Nobody tells what it wants to a broker at which nobody publishes.
        if !broker.complete && broker.scope != "nobody" {
            return Some("its view is not complete".into());
        }
        let waiting = [
            ("publications", broker.waiting_publications),
            ("parked events", broker.parked_events),
            ("events", status.link_queues.iter().map(|queue| queue.events_waiting).sum()),
            ("bytes of control", status.link_queues.iter().map(|queue| queue.control_bytes_waiting).sum()),
            ("deliveries", status.clients.iter().map(|client| client.waiting).sum()),
        ];
        if let Some((what, count)) = waiting.into_iter().find(|&(_, count)| count > 0) {
            return Some(format!("{count} {what} wait"));
        }
        within_reach.iter().find_map(|&other| self.differs(place, other))
    }

    /// What one broker has sent to or told another, and that has not got or does not hold.
    fn differs(&self, here: usize, there: usize) -> Option<String> {
        let (there_name, there_id) = self.names[&there];
        let here_id = self.names[&here].1;
        let (ours, theirs) = (&self.statuses.get(&here)?.broker, &self.statuses.get(&there)?.broker);
        let told = ours.brokers.iter().find(|it| it.id == there_id).map_or(0, |it| it.announced);
        let held = theirs.brokers.iter().find(|it| it.id == here_id).map_or(0, |it| it.interest);
        if told != held {
            return Some(format!("has announced {told} filters to {there_name}, which holds {held}"));
        }
        let sent: u64 =
            ours.links.iter().filter(|it| it.neighbour == there_id).map(|it| it.control_sent + it.events_sent).sum();
        let received: u64 = theirs
            .links
            .iter()
            .filter(|it| it.neighbour == here_id)
            .map(|it| it.control_received + it.events_received)
            .sum();
        (sent != received).then(|| format!("{sent} messages sent to {there_name}, which has got {received}"))
    }
}

/// The places that links, which stand both ways round, lead to from one, itself included.
pub(crate) fn within_reach(links: &BTreeSet<[usize; 2]>, place: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::from([place]);
    let mut next = vec![place];
    while let Some(from) = next.pop() {
        next.extend(links.iter().filter(|link| link[0] == from && reached.insert(link[1])).map(|link| link[1]));
    }
    reached
}

/// Counts that stand still while nothing happens.
pub(crate) fn counts(statuses: &BTreeMap<usize, NodeStatus>) -> Vec<u64> {
    let links = statuses.values().flat_map(|status| &status.broker.links);
    let links = links.flat_map(|link| [link.link, link.control_sent, link.events_sent]);
    let delivered = statuses.values().map(|status| status.broker.counters.delivered);
    links.chain(delivered).collect()
}

/// The latest counts of each link in each life of each broker.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// By the broker and its life, and the driver's number of the link; with the place of the neighbour.
    latest: BTreeMap<((usize, u64), u64), (usize, LinkQueueStatus)>,
}

impl Traffic {
    pub(crate) fn note(&mut self, life: (usize, u64), status: &NodeStatus, places: &BTreeMap<&str, usize>) {
        for queue in &status.link_queues {
            if let Some(&neighbour) = places.get(queue.neighbour.as_str()) {
                self.latest.insert((life, queue.link), (neighbour, queue.clone()));
            }
        }
    }

    /// What has gone over a link.
    pub(crate) fn tally(&self, ends: [usize; 2]) -> LinkTally {
        let mut tally = LinkTally::default();
        for (((place, _), _), (neighbour, queue)) in &self.latest {
            let side = match [*place, *neighbour] {
                pair if pair == ends => 0,
                pair if pair == [ends[1], ends[0]] => 1,
                _ => continue,
            };
            tally.events[side] += queue.events_sent;
            tally.event_bytes += queue.event_bytes_sent;
            tally.control.messages += queue.control_sent;
            tally.control.bytes += queue.control_bytes_sent;
        }
        tally
    }

    /// Events and control over all links.
    pub(crate) fn sums(&self) -> [Count; 2] {
        let mut sums = [Count::default(); 2];
        for (_, queue) in self.latest.values() {
            sums[0].messages += queue.events_sent;
            sums[0].bytes += queue.event_bytes_sent;
            sums[1].messages += queue.control_sent;
            sums[1].bytes += queue.control_bytes_sent;
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two brokers with one link, as they say of themselves when all is well: `b` has told `a` two filters.
    fn statuses() -> BTreeMap<usize, NodeStatus> {
        let status = |interest: u64, announced: u64, other: &str| {
            let mut status = NodeStatus::default();
            status.broker.complete = true;
            status.broker.brokers.resize_with(2, Default::default);
            for (broker, id) in status.broker.brokers.iter_mut().zip(["a", "b"]) {
                (broker.id, broker.reachable) = (id.to_owned(), true);
                if id == other {
                    (broker.interest, broker.announced) = (interest, announced);
                }
            }
            status.broker.links.resize_with(1, Default::default);
            status.broker.links[0].neighbour = other.to_owned();
            status.broker.links[0].in_sync = true;
            status
        };
        [(0, status(2, 0, "b")), (1, status(0, 2, "a"))].into()
    }

    fn unsettled(statuses: &BTreeMap<usize, NodeStatus>, links: &[[usize; 2]]) -> Option<String> {
        let names = [(0, ("first", "a")), (1, ("second", "b"))].into();
        View { names, links: links.iter().copied().collect(), statuses }.unsettled()
    }

    #[test]
    fn a_settled_network_is_one_in_which_everybody_agrees() {
        let both = [[0, 1], [1, 0]];
        assert_eq!(unsettled(&statuses(), &both), None);
        let changed = |change: fn(&mut BTreeMap<usize, NodeStatus>)| {
            let mut statuses = statuses();
            change(&mut statuses);
            unsettled(&statuses, &both).unwrap_or_default()
        };
        assert!(changed(|it| drop(it.remove(&1))).contains("second does not answer"));
        assert!(
            changed(|it| it.entry(0).or_default().broker.links[0].in_sync = false).contains("first: 0 links in sync")
        );
        assert!(changed(|it| it.entry(0).or_default().broker.brokers[1].reachable = false).contains("reaches 1"));
        assert!(changed(|it| it.entry(1).or_default().broker.complete = false).contains("second: its view"));
        assert!(changed(|it| it.entry(1).or_default().broker.parked_events = 3).contains("3 parked events wait"));
        assert!(changed(|it| it.entry(0).or_default().broker.brokers[1].interest = 1).contains("announced 2 filters"));
        assert!(
            changed(|it| it.entry(0).or_default().broker.links[0].events_sent = 1)
                .contains("1 messages sent to second")
        );
        // A link that is cut must be gone.
        assert!(unsettled(&statuses(), &[]).is_some());
    }
}
