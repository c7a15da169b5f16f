//! Random topologies and schedules: invariants 3 to 7 and 11.

use crate::{assert_good, double_dialled, network, settle};
use enroute_netsim::{Chaos, LinkSettings, Shape, Traffic, World, seeded};
use std::time::Duration;

const SHAPES: [Shape; 6] = [Shape::Line, Shape::Ring, Shape::Star, Shape::Tree, Shape::Clique, Shape::Random];

/// What a seed stands for: a shape, a size, properties of the links.
fn world(seed: u64) -> World {
    let shape = SHAPES[seed as usize % SHAPES.len()];
    let brokers = 4 + (seed as usize * 5) % 9;
    let link = match seed % 4 {
        0 => LinkSettings::default(),
        1 => double_dialled(),
        2 => LinkSettings { cost: [1, 5], jitter_us: 5_000, ..LinkSettings::default() },
        _ => LinkSettings { bandwidth: Some(50_000), detection_us: [0, 2_000_000], ..double_dialled() },
    };
    let mut world = network(shape, brokers, seed, link);
    for broker in 0..brokers {
        world.add_client(&format!("d{broker}"), broker);
    }
    world
}

/// Publishes from every client in turn.
fn publish(world: &mut World, seed: u64, events: usize) {
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

/// Without faults everything that must come comes, over the shortest paths.
fn calm(seed: u64) {
    let mut world = world(seed);
    Chaos { actions: 300, gap_us: 20_000, ..Chaos::without_faults() }.run(&mut world, seed, 0);
    settle(&mut world, seed);
    publish(&mut world, seed, 200);
    settle(&mut world, seed);
    let total = world.total();
    assert_eq!(total.lost(), 0, "seed {seed}: lost without a fault: {total:?}");
    assert!(total.received > 100, "seed {seed}: too little to show anything: {total:?}");
    finish(&mut world, seed);
}

/// With faults nothing comes twice, what is lost is explained, and once the faults are over nothing is lost any more.
fn stormy(seed: u64) {
    let mut world = world(seed);
    Chaos { actions: 500, gap_us: 60_000, ..Chaos::default() }.run(&mut world, seed, 0);
    world.heal_all();
    world.start_all();
    settle(&mut world, seed);
    let before = world.total();
    publish(&mut world, seed, 200);
    settle(&mut world, seed);
    let after = world.total();
    assert_eq!(after.lost(), before.lost(), "seed {seed}: lost after the faults");
    assert!(after.received > before.received, "seed {seed}: too little to show anything: {after:?}");
    finish(&mut world, seed);
}

#[test]
fn without_faults_all_comes_once_over_the_shortest_paths() {
    (0..12).for_each(calm);
}

#[test]
fn with_faults_nothing_comes_twice_and_losses_are_explained() {
    (100..112).for_each(stormy);
}

#[test]
fn storms_that_never_calm_down_still_explain_every_loss() {
    for seed in 200..204 {
        let mut world = world(seed);
        let chaos = Chaos { actions: 400, gap_us: 20_000, cut: 15, heal: 10, crash: 5, restart: 5, ..Chaos::default() };
        for round in 0..3 {
            chaos.run(&mut world, seed, round);
            settle(&mut world, seed);
        }
        let total = world.total();
        assert!(total.lost() > 0 && total.received > 0, "seed {seed}: not stormy: {total:?}");
    }
}
