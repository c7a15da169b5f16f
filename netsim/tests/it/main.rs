//! The invariants of the network, each against the oracle, over fixed seeds.

mod explore;
mod faults;
mod leaves;
mod order;
mod random;
mod scenarios;
mod settled;
mod shared;

use enroute_broker::Config;
use enroute_filter::Filter;
use enroute_netsim::{Chaos, Dial, LinkSettings, Settings, Shape, Topology, Traffic, World, seeded};
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
        clones: Default::default(),
        link,
        config: config(),
        domain: Default::default(),
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

/// Publishes from every client in turn.
fn publish_in_turn(world: &mut World, seed: u64, events: usize) {
    let mut traffic = Traffic::new(seeded(seed, "events"));
    for number in 0..events {
        world.publish(number % world.client_count(), &traffic.event());
        world.run_for(Duration::from_micros(500));
    }
}

/// After all that is kept for a while has run out: tables as a fresh build has them; then nobody subscribes: none.
fn finish(world: &mut World, seed: u64) {
    world.run_for(Duration::from_secs(40));
    settle(world, seed);
    world.check_fresh();
    assert_good(world, seed);
    world.unsubscribe_all();
    settle(world, seed);
    world.check_empty();
    assert_good(world, seed);
}

/// Without faults everything that must come comes, over the shortest paths and no other links.
fn calm(mut world: World, seed: u64) {
    Chaos { actions: 300, gap_us: 20_000, ..Chaos::without_faults() }.run(&mut world, seed, 0);
    settle(&mut world, seed);
    publish_in_turn(&mut world, seed, 200);
    settle(&mut world, seed);
    let total = world.total();
    assert_eq!(total.lost(), 0, "seed {seed}: lost without a fault: {total:?}");
    assert!(total.received > 100, "seed {seed}: too little to show anything: {total:?}");
    finish(&mut world, seed);
}

/// With faults nothing comes twice, what is lost is explained, and once the faults are over nothing is lost any more.
fn stormy(mut world: World, seed: u64, chaos: &Chaos) {
    chaos.run(&mut world, seed, 0);
    world.heal_all();
    world.start_all();
    settle(&mut world, seed);
    let before = world.total();
    publish_in_turn(&mut world, seed, 200);
    settle(&mut world, seed);
    let after = world.total();
    assert_eq!(after.lost(), before.lost(), "seed {seed}: lost after the faults");
    assert!(after.received > before.received, "seed {seed}: too little to show anything: {after:?}");
    finish(&mut world, seed);
}

fn filter(text: &str) -> Filter {
    Filter::parse(text).expect("a good filter")
}
