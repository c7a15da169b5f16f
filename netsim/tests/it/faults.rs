//! Single faults: partitions that rejoin, restarts, links that flap. Invariants 4, 6 and 8.

use crate::{ANSWER, assert_good, double_dialled, filter, network, settle};
use enroute_broker::Reply;
use enroute_filter::Event;
use enroute_netsim::{LinkSettings, Shape, World};
use std::time::Duration;

fn event() -> Event {
    Event::builder().attribute("a", 1i64).build().expect("a small event")
}

/// Every client but the first subscribes to all there is; each publishes once.
fn subscribe_and_publish(world: &mut World, seed: u64) {
    for client in 1..world.client_count() {
        world.subscribe(client, "all", filter("a IS NOT NULL"));
    }
    settle(world, seed);
    publish_everywhere(world, seed);
}

/// One event from each client; all of them come, to everybody. And whoever subscribes anew is in force everywhere.
fn publish_everywhere(world: &mut World, seed: u64) {
    let before = world.total();
    let clients = world.client_count() as u64;
    for client in 0..world.client_count() {
        world.publish(client, &event());
    }
    settle(world, seed);
    let after = world.total();
    assert_eq!(after.received - before.received, clients * (clients - 1), "seed {seed}");
    assert_eq!(after.lost(), before.lost(), "seed {seed}");
    for client in 0..world.client_count() {
        let anew = filter(&format!("a = {}", 100 + world.now().0));
        let ticket = world.subscribe(client, "anew", anew).expect("the broker is up");
        let reply = world.await_answer(ticket, ANSWER).expect("an answer");
        assert_eq!(reply, Some(Reply::InForce { brokers: clients as u32 - 1 }), "seed {seed}, client {client}");
    }
    settle(world, seed);
}

fn check_fresh(world: &mut World, seed: u64) {
    world.run_for(Duration::from_secs(40));
    settle(world, seed);
    world.check_fresh();
    assert_good(world, seed);
}

/// Two halves of a line, apart for a while that is now shorter, now longer than the grace time, and now about as long, so
/// that one broker has forgotten another that has not forgotten it.
#[test]
fn partitions_rejoin_after_any_time() {
    for (seed, apart) in
        [500, 3_000, 9_500, 9_900, 10_050, 10_100, 10_200, 10_300, 10_400, 15_000].into_iter().enumerate()
    {
        let seed = seed as u64;
        let link = LinkSettings { redial_us: [1_000, 100_000], ..LinkSettings::default() };
        let mut world = network(Shape::Line, 4, seed, link);
        subscribe_and_publish(&mut world, seed);
        world.cut(1);
        world.run_for(Duration::from_millis(apart));
        world.heal(1);
        settle(&mut world, seed);
        publish_everywhere(&mut world, seed);
        check_fresh(&mut world, seed);
    }
}

/// Both halves change while they are apart, and the links between them come back in either order.
#[test]
fn partitions_rejoin_equal_whatever_the_order() {
    for seed in 0..6 {
        let mut world = network(Shape::Ring, 6, seed, LinkSettings::default());
        subscribe_and_publish(&mut world, seed);
        world.partition(&[vec![0, 1, 2]]);
        world.subscribe(0, "one", filter("a = 1"));
        world.unsubscribe(1, "all");
        world.subscribe(4, "more", filter("a >= 1"));
        world.advertise(5, "mine", filter("a < 3"));
        world.run_for(Duration::from_secs([2, 30][seed as usize % 2]));
        let mut cut = world.links(true);
        if seed % 3 == 0 {
            cut.reverse();
        }
        for link in cut {
            world.heal(link);
            world.run_for(Duration::from_millis([0, 50, 3_000][seed as usize % 3]));
        }
        settle(&mut world, seed);
        check_fresh(&mut world, seed);
    }
}

#[test]
fn restarting_any_position_of_a_chain_heals_both_directions() {
    for position in 0..6 {
        for down in [0, 200, 20_000] {
            let seed = position as u64 * 10 + down / 200;
            let mut world = network(Shape::Line, 6, seed, LinkSettings::default());
            subscribe_and_publish(&mut world, seed);
            world.crash(position);
            world.run_for(Duration::from_millis(down));
            world.start(position);
            settle(&mut world, seed);
            publish_everywhere(&mut world, seed);
            check_fresh(&mut world, seed);
        }
    }
}

/// A broker that crashes again and again, faster than its neighbours notice.
#[test]
fn no_earlier_life_outlives_a_later_one() {
    for seed in 0..4 {
        let mut world = network(Shape::Ring, 5, seed, double_dialled());
        subscribe_and_publish(&mut world, seed);
        for round in 0..6 {
            world.crash(2);
            world.start(2);
            world.run_for(Duration::from_millis(round * 40));
        }
        settle(&mut world, seed);
        publish_everywhere(&mut world, seed);
        check_fresh(&mut world, seed);
    }
}

/// A link that breaks and heals all the time while events cross it: what is lost was under way on it.
#[test]
fn a_flapping_link_duplicates_nothing() {
    for seed in 0..4 {
        let link = LinkSettings { redial_us: [1_000, 50_000], detection_us: [0, 80_000], ..double_dialled() };
        let mut world = network(Shape::Ring, 5, seed, link);
        subscribe_and_publish(&mut world, seed);
        for round in 0..40 {
            world.cut(0);
            for client in 0..world.client_count() {
                world.publish(client, &event());
                world.run_for(Duration::from_millis(3 + round % 7));
            }
            world.heal(0);
            for client in 0..world.client_count() {
                world.publish(client, &event());
                world.run_for(Duration::from_millis(20));
            }
        }
        settle(&mut world, seed);
        let total = world.total();
        assert_eq!(
            total.lost_without_path + total.lost_incomplete,
            0,
            "seed {seed}: a ring has a way round: {total:?}"
        );
        publish_everywhere(&mut world, seed);
        check_fresh(&mut world, seed);
    }
}

/// A second connection between two brokers replaces the first without a link going down: nobody tells anybody.
#[test]
fn a_second_dial_changes_nothing() {
    for seed in 0..4 {
        let mut world = network(Shape::Ring, 5, seed, LinkSettings::default());
        subscribe_and_publish(&mut world, seed);
        let before = world.control()["link-state"];
        for side in [0, 1, 1, 0] {
            world.dial_again(0, side);
            for client in 0..world.client_count() {
                world.publish(client, &event());
                world.run_for(Duration::from_millis(2));
            }
            settle(&mut world, seed);
        }
        assert_eq!(world.control()["link-state"], before, "seed {seed}");
        assert_eq!(world.total().lost(), 0, "seed {seed}");
        check_fresh(&mut world, seed);
    }
}
