//! Random topologies and schedules: invariants 3 to 7 and 11.

use crate::{calm, double_dialled, network, settle, stormy};
use enroute_netsim::{Chaos, LinkSettings, Shape, World};

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

#[test]
fn without_faults_all_comes_once_over_the_shortest_paths() {
    (0..12).for_each(|seed| calm(world(seed), seed));
}

#[test]
fn with_faults_nothing_comes_twice_and_losses_are_explained() {
    let chaos = Chaos { actions: 500, gap_us: 60_000, ..Chaos::default() };
    (100..112).for_each(|seed| stormy(world(seed), seed, &chaos));
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
