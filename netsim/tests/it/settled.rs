//! Networks that start at rest are those that a start from nothing leaves, and go on as those do.

use crate::{assert_good, config, publish_in_turn, settle};
use enroute_filter::Filter;
use enroute_netsim::{LinkSettings, Settings, Shape, Topology, Traffic, World, seeded};
use std::time::Duration;

/// Longer than anything is kept.
const KEPT: Duration = Duration::from_secs(30);

fn settled(shape: Shape, brokers: usize, seed: u64, link: LinkSettings) -> World {
    let topology = Topology::new(shape, brokers);
    let mut names = topology.names().expect("good names");
    names.extend(["leaf".into(), "leaf of the leaf".into()]);
    let mut world = World::new(Settings {
        brokers: names,
        links: topology.edges(&mut seeded(seed, "topology")).expect("good links"),
        uplinks: [(brokers, vec![0, 1]), (brokers + 1, vec![brokers])].into(),
        clones: Default::default(),
        link,
        config: config(),
        domain: Default::default(),
        seed,
    });
    world.start_settled();
    let mut traffic = Traffic::new(seeded(seed, "filters"));
    for broker in 0..world.broker_count() {
        let client = world.add_client(&format!("c{broker}"), broker);
        world.subscribe(client, "s", traffic.filter());
        if broker % 5 == 1 {
            let filter = if broker == 1 { Filter::always() } else { traffic.broad_filter() };
            world.advertise(client, "a", filter);
        }
    }
    // What is placed later is told those who publish, and who publishes later is told, as ever.
    world.go_on();
    world.subscribe(0, "later", traffic.filter());
    world.advertise(2, "later", traffic.broad_filter());
    world
}

#[test]
fn a_settled_start_equals_a_start_from_nothing() {
    for (seed, shape) in (1..).zip([Shape::Random, Shape::Ring, Shape::Star, Shape::Clique, Shape::Random]) {
        let link = LinkSettings { cost: [1, 3], measured: seed == 5, ..LinkSettings::default() };
        let mut world = settled(shape, 14, seed, link);
        settle(&mut world, seed);
        world.check_fresh();
        assert_good(&world, seed);
        publish_in_turn(&mut world, seed, 40);
        settle(&mut world, seed);
        world.check_fresh();
        assert_good(&world, seed);
        assert!(world.total().received > 0, "somebody wants something");
    }
}

#[test]
fn what_happens_after_a_settled_start_heals_as_ever() {
    for seed in 1..4 {
        let mut world = settled(Shape::Random, 14, seed, LinkSettings::default());
        publish_in_turn(&mut world, seed, 20);
        settle(&mut world, seed);
        // One is gone for good, another comes back in a new life, and a link is another one afterwards.
        world.crash(3);
        world.crash(4);
        world.cut(5);
        world.run_for(Duration::from_secs(1));
        world.start(4);
        publish_in_turn(&mut world, seed, 20);
        world.run_for(KEPT);
        settle(&mut world, seed);
        world.check_fresh();
        assert_good(&world, seed);
        world.heal(5);
        world.start(3);
        publish_in_turn(&mut world, seed, 20);
        settle(&mut world, seed);
        world.check_fresh();
        assert_good(&world, seed);
    }
}
