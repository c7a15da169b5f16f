//! Measured round trips become costs, and costs move routes: seldom. Addresses are told when they change.

use crate::world::World;
use enroute_broker::*;
use std::time::Duration;

/// Between two measurements of a link.
const PROBE: Duration = Duration::from_secs(15);

/// A square: from a to c by way of b or of d.
struct Square {
    world: World,
    brokers: [BrokerId; 4],
}

impl Square {
    fn new() -> Square {
        let mut world = World::new();
        let brokers = ["a", "b", "c", "d"].map(|name| world.start(name));
        for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 0)] {
            world.link(brokers[from], brokers[to]);
        }
        world.run();
        Square { world, brokers }
    }

    /// Measures all links from both ends: those of d take so many milliseconds, the others 4.
    fn probe(&mut self, of_d: u64) {
        let [_, _, _, d] = self.brokers;
        for broker in self.brokers {
            for link in self.world.status(broker).links {
                let ends_at_d = broker == d || link.neighbour == d.to_string();
                let took = Duration::from_millis(if ends_at_d { of_d } else { 4 });
                self.world.input(broker, Input::RoundTrip { link: LinkId(link.link), took });
            }
        }
        self.world.advance(PROBE);
    }

    /// Where events from a to c go first.
    fn way(&mut self) -> BrokerId {
        let [a, b, c, d] = self.brokers;
        let status = self.world.status(a);
        let to_c = status.brokers.iter().find(|broker| broker.id == c.to_string()).expect("known");
        [b, d].into_iter().find(|next| Some(next.to_string()) == to_c.next_hop).expect("over one of them")
    }

    /// What the links of d cost, as their two ends say.
    fn costs_of_d(&mut self) -> Vec<u32> {
        let [a, _, c, d] = self.brokers;
        let mut costs: Vec<u32> = self.world.status(d).links.iter().map(|link| link.cost).collect();
        for broker in [a, c] {
            let links = self.world.status(broker).links;
            costs.extend(links.iter().filter(|link| link.neighbour == d.to_string()).map(|link| link.cost));
        }
        costs
    }

    /// Link states told so far, as a has counted them.
    fn sequences(&mut self) -> Vec<u64> {
        let [a, ..] = self.brokers;
        self.world.status(a).links.iter().map(|link| link.control_received).collect()
    }
}

#[test]
fn routes_follow_measured_round_trips() {
    let mut square = Square::new();
    let [_, b, _, d] = square.brokers;
    square.probe(2);
    assert_eq!((square.costs_of_d(), square.way()), (vec![2; 4], d));
    let mut square = Square::new();
    square.probe(8);
    assert_eq!((square.costs_of_d(), square.way()), (vec![8; 4], b));
    let status = square.world.status(d);
    assert!(status.links.iter().all(|link| link.round_trip_us == Some(8_000)), "{:?}", status.links);
}

#[test]
fn a_burst_of_slow_probes_moves_no_route_and_tells_nobody_anything() {
    let mut square = Square::new();
    let [.., d] = square.brokers;
    (0..8).for_each(|_| square.probe(2));
    let told = square.sequences();
    for _ in 0..3 {
        square.probe(900);
        assert_eq!((square.costs_of_d(), square.way()), (vec![2; 4], d));
    }
    (0..100).for_each(|round| square.probe(if round % 4 == 0 { 2 } else { 900 }));
    assert_eq!((square.costs_of_d(), square.way()), (vec![2; 4], d));
    assert_eq!(square.sequences(), told);
}

#[test]
fn a_lasting_change_moves_one_link_of_a_broker_in_ten_minutes() {
    let mut square = Square::new();
    let [_, b, _, d] = square.brokers;
    (0..8).for_each(|_| square.probe(2));
    assert_eq!(square.way(), d);
    // Five probes are more than a minute: the slow ones are all that counts then.
    (0..6).for_each(|_| square.probe(64));
    let costs = square.costs_of_d();
    assert_eq!(
        costs.iter().filter(|&&cost| cost == 64).count(),
        3,
        "one of the two that d lists, and both others: {costs:?}"
    );
    assert_eq!(square.way(), b, "the larger of two ends counts");
    (0..36).for_each(|_| square.probe(64));
    assert_eq!(square.costs_of_d().iter().filter(|&&cost| cost == 64).count(), 3, "for nearly ten minutes");
    (0..6).for_each(|_| square.probe(64));
    assert_eq!(square.costs_of_d(), [64; 4]);
}

#[test]
fn a_link_that_replaces_another_between_the_same_lives_keeps_its_cost() {
    let mut square = Square::new();
    let [a, .., d] = square.brokers;
    (0..8).for_each(|_| square.probe(32));
    // Who hears of the new one first closes the old one; the other may hear of that before, and begins anew.
    square.world.link(d, a);
    square.world.run();
    let status = square.world.status(d);
    assert_eq!(status.links.iter().map(|link| (link.cost, link.in_sync)).collect::<Vec<_>>(), [(32, true); 2]);
}

#[test]
fn who_does_not_measure_goes_by_what_is_said() {
    let mut world = World::new();
    world.config = Config { measured: false, ..Config::default() };
    let line = world.line(2);
    let link = world.status(line[0]).links[0].link;
    world.input(line[0], Input::RoundTrip { link: LinkId(link), took: Duration::from_millis(50) });
    let status = world.status(line[0]);
    assert_eq!((status.links[0].cost, status.links[0].round_trip_us), (1, None));
}

#[test]
fn new_addresses_are_told_to_all() {
    let mut world = World::new();
    let line = world.line(3);
    let addresses = |world: &mut World| {
        let brokers = world.status(line[2]).brokers;
        brokers.into_iter().find(|broker| broker.id == line[0].to_string()).map(|broker| broker.addresses)
    };
    assert_eq!(addresses(&mut world), Some(vec![]));
    for told in [vec!["/ip4/192.0.2.1/tcp/7440".to_owned()], vec!["/ip4/192.0.2.2/tcp/7440".to_owned()], vec![]] {
        world.input(line[0], Input::Addresses(told.clone()));
        world.run();
        world.advance(Duration::from_secs(1));
        assert_eq!(addresses(&mut world), Some(told));
    }
}
