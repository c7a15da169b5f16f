//! The invariants of the network, each against the oracle, over fixed seeds.

mod faults;
mod leaves;
mod order;
mod random;
mod scenarios;

use enroute_broker::Config;
use enroute_filter::Filter;
use enroute_netsim::{Dial, LinkSettings, Settings, Shape, Topology, World, seeded};
use std::time::Duration;

/// Longer than the longest pause between two attempts at anything.
const QUIET: Duration = Duration::from_secs(6);
/// Nothing takes longer to come to rest.
const BOUND: Duration = Duration::from_secs(120);
/// No answer takes longer.
const ANSWER: Duration = Duration::from_secs(20);

/// Short enough that a simulation sees what comes after, long enough that a restart is within it.
fn config() -> Config {
    Config { grace: Duration::from_secs(10), narrowing: Duration::from_secs(20), ..Config::default() }
}

/// A network with one client on each broker, started and settled.
fn network(shape: Shape, brokers: usize, seed: u64, link: LinkSettings) -> World {
    network_with_leaves(shape, brokers, Vec::new(), seed, link)
}

/// A network with leaves behind the core brokers, each with the places of its uplinks, and one client on each broker, started
/// and settled.
fn network_with_leaves(shape: Shape, core: usize, uplinks: Vec<Vec<usize>>, seed: u64, link: LinkSettings) -> World {
    let topology = Topology::new(shape, core);
    let mut brokers = topology.names().expect("good names");
    brokers.extend((0..uplinks.len()).map(|leaf| format!("l{leaf}")));
    let count = brokers.len();
    let mut world = World::new(Settings {
        brokers,
        links: topology.edges(&mut seeded(seed, "topology")).expect("good links"),
        uplinks: (core..).zip(uplinks).collect(),
        link,
        config: config(),
        seed,
    });
    world.start_all();
    for broker in 0..count {
        world.add_client(&format!("c{broker}"), broker);
    }
    settle(&mut world, seed);
    world
}

/// Links that are dialled from both ends, and brokers that dial themselves.
fn double_dialled() -> LinkSettings {
    LinkSettings { dial: Dial::Both, self_dials: true, ..LinkSettings::default() }
}

/// Settles the world, and panics with the seed if it does not or if anything is wrong so far.
fn settle(world: &mut World, seed: u64) -> Duration {
    let took = world.settle(QUIET, BOUND).unwrap_or_else(|unsettled| panic!("seed {seed}: {unsettled}"));
    assert_good(world, seed);
    took
}

/// Panics with the seed if anything is wrong so far.
fn assert_good(world: &World, seed: u64) {
    let (total, complaints) = (world.total(), world.complaints());
    let broken = total.missed + total.duplicates + total.wrong;
    assert!(broken == 0 && complaints.is_empty(), "seed {seed}: {total:?}\n{}", complaints.join("\n"));
}

fn filter(text: &str) -> Filter {
    Filter::parse(text).expect("a good filter")
}
