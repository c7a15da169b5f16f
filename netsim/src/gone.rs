//! What is gone must not stay behind: brokers that are down, copies of events, requests that wait for nobody any more. And what
//! need not go must stay: links that are dialled twice.

use crate::link::Standing;
use crate::world::World;
use enroute_broker::{BrokerId, Counters, Time};
use std::collections::BTreeSet;
use std::time::Duration;

/// More than what is sent, and waits in a queue, takes on its way besides what [`World::allowance`] reckons with.
const UNDER_WAY: Duration = Duration::from_secs(2);

impl World {
    /// Whether a broker has been down for longer than it takes until everybody has found out, and for the time of grace after that.
    fn is_long_gone(&self, broker: BrokerId) -> bool {
        let Some(&since) = self.down.get(&broker) else { return false };
        let [low, high] = self.settings.link.detection_us;
        let found_out = Duration::from_micros(low.max(high)) + self.allowance() + UNDER_WAY;
        // Parts that meet again believe each other for a moment that it is there; the time of grace begins anew then.
        let since = since.max(self.stalled_until).max(self.healed_at);
        // Of two with one identity the other one may be up.
        self.now.since(since) > found_out + self.settings.config.grace && self.settings.clones.is_empty()
    }

    /// Whoever has been down for longer than the time of grace is known to nobody, and nothing is kept of what it wanted or was
    /// told. Call it when the network has settled.
    pub(crate) fn check_forgotten(&mut self) {
        let gone = self.down.keys().filter(|&&broker| self.is_long_gone(broker));
        let gone: BTreeSet<String> = gone.map(BrokerId::to_string).collect();
        if gone.is_empty() {
            return;
        }
        for host in 0..self.hosts.len() {
            let Some(core) = &mut self.hosts[host].core else { continue };
            let (status, [held, told]) = (core.status(), core.interest_held_and_told());
            let known = status.brokers.iter().fold([0, 0], |sum, it| [sum[0] + it.interest, sum[1] + it.announced]);
            let name = self.hosts[host].name.clone();
            for broker in status.brokers.iter().filter(|broker| gone.contains(&broker.id)) {
                self.complain(format!("{name} still knows {}, which has been down for long", broker.peer_id));
            }
            if [held, told] != known {
                self.complain(format!(
                    "{name} holds {held} filters and has told {told}, but of brokers that it knows it is {known:?}"
                ));
            }
        }
    }

    /// Every copy of an event that is still in a broker when the network has settled has been given up, and is counted.
    pub(crate) fn check_copies(&mut self) {
        let held = self.oracle.held();
        for host in 0..self.hosts.len() {
            let machine = &mut self.hosts[host];
            let Some(core) = &mut machine.core else { continue };
            let Counters { lost_no_path, lost_hop_limit, lost_overflow, .. } = core.own_status().counters;
            let counted = lost_no_path + lost_hop_limit + lost_overflow;
            let given_up = counted - std::mem::replace(&mut machine.written_off, counted);
            let held = held.get(&machine.id).copied().unwrap_or(0);
            if held > given_up && self.settings.clones.is_empty() {
                let name = machine.name.clone();
                self.complain(format!("{held} copies of events have not left {name}, which has given up {given_up}"));
            }
        }
    }

    /// Whoever waits for nobody any more is answered at once, not when the time is up.
    pub(crate) fn check_promptness(&mut self, what: &str, asked: Time, wait: Duration) {
        if self.now.since(asked) >= wait {
            self.complain(format!("{what} waited for nobody, and was answered only after {wait:?}"));
        }
    }

    /// The broker at a side of a link has been told that a connection is over since there is another one. If that is whole, it must
    /// have that one too.
    pub(crate) fn check_doubled(&mut self, edge: usize, side: usize) {
        let [host, other] = [side, 1 - side].map(|side| self.edges[edge].hosts[side]);
        let mut whole = self.connections.values().filter(|it| it.edge == edge && it.broken.is_none());
        let is_kept = whole.any(|connection| connection.ends[1 - side].standing == Standing::Up);
        let link = self.hosts[host].core.as_ref().and_then(|core| core.link_nonce(self.hosts[other].id));
        if is_kept && link.is_none() && !self.edges[edge].uplink {
            let [name, other] = [host, other].map(|host| self.hosts[host].name.clone());
            self.complain(format!("{name} has no link to {other} any more, since both dialled"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkSettings;
    use crate::traffic::Domain;
    use crate::world::Settings;
    use enroute_broker::{Config, EventFrame, EventId};
    use std::collections::BTreeMap;

    /// Two brokers and a link.
    fn pair() -> World {
        let mut world = World::new(Settings {
            brokers: vec!["a".into(), "b".into()],
            links: vec![[0, 1]],
            uplinks: BTreeMap::new(),
            clones: BTreeMap::new(),
            link: LinkSettings::default(),
            config: Config::default(),
            domain: Domain::default(),
            seed: 1,
        });
        world.start_all();
        world
    }

    #[test]
    fn who_is_down_for_long_must_be_forgotten() {
        let mut world = pair();
        world.run_for(Duration::from_secs(100));
        world.check_forgotten();
        assert_eq!(world.complaints(), [""; 0]);
        // It is up and known, and is taken to be down.
        world.down.insert(world.hosts[1].id, Time(0));
        world.check_forgotten();
        assert!(world.complaints()[0].contains("a still knows b"), "{:?}", world.complaints());
        assert_eq!(world.complaints().len(), 2, "b knows itself, too");
    }

    #[test]
    fn a_copy_that_stays_must_have_been_given_up() {
        let mut world = pair();
        let id = EventId { origin: world.hosts[0].id, incarnation: 1, sequence: 1 };
        let destinations = [BrokerId(7)].into_iter().collect();
        let frame = EventFrame { hop_limit: 1, destinations, id, event: Default::default() };
        world.oracle.arrived(world.hosts[1].id, &frame, Time(0));
        world.check_copies();
        assert!(world.complaints()[0].contains("1 copies of events have not left b"), "{:?}", world.complaints());
    }

    #[test]
    fn nothing_happens_any_more_when_too_much_has() {
        let mut world = pair();
        world.set_most_happenings(30);
        for _ in 0..3 {
            world.run_for(Duration::from_secs(1));
            world.crash(0);
            world.start(0);
        }
        assert_eq!(world.complaints().len(), 1, "{:?}", world.complaints());
        assert!(world.hosts[0].core.as_ref().is_some_and(|core| core.members().count() == 1), "nothing has come to it");
    }
}
