//! Leaves below a core: what holds for brokers holds for them, settled and through failovers.

use crate::{ANSWER, calm, filter, network_with_leaves, settle, stormy};
use enroute_broker::Reply;
use enroute_filter::Event;
use enroute_netsim::{Chaos, Leaves, LinkSettings, Shape, World, seeded};
use std::time::Duration;

fn numbered(number: i64) -> Event {
    Event::builder().attribute("n", number).build().expect("a small event")
}

/// A ring of core brokers, and leaves in one of several arrangements.
fn world(seed: u64) -> World {
    let leaves = Leaves { count: 6, depth: 1 + seed as usize % 3, uplinks: 2, anywhere: seed % 4 == 3 };
    let link = match seed % 3 {
        0 => LinkSettings::default(),
        1 => LinkSettings { jitter_us: 5_000, ..LinkSettings::default() },
        _ => LinkSettings { bandwidth: Some(50_000), detection_us: [0, 2_000_000], ..LinkSettings::default() },
    };
    let uplinks = leaves.uplinks(4, &mut seeded(seed, "leaves"));
    network_with_leaves(Shape::Ring, 4, uplinks, seed, link)
}

#[test]
fn without_faults_all_comes_once_and_no_byte_goes_for_nothing() {
    (0..12).for_each(|seed| calm(world(seed), seed));
}

#[test]
fn with_faults_nothing_comes_twice_and_losses_are_explained() {
    let chaos = Chaos { actions: 500, gap_us: 60_000, cut: 8, heal: 10, ..Chaos::default() };
    (100..112).for_each(|seed| stormy(world(seed), seed, &chaos));
}

/// Places a subscription, and publishes elsewhere in the moment in which it is answered.
fn subscribe_then_publish(world: &mut World, seed: u64, (reader, writer): (usize, usize), number: i64) {
    let before = world.verdict(reader);
    let ticket = world.subscribe(reader, &format!("s{number}"), filter(&format!("n = {number}"))).expect("it is up");
    let reply = world.await_answer(ticket, ANSWER).expect("an answer");
    assert!(matches!(reply, Some(Reply::InForce { .. })), "seed {seed}: {reply:?}");
    world.publish(writer, &numbered(number));
    settle(world, seed);
    let after = world.verdict(reader);
    assert_eq!(after.received, before.received + 1, "seed {seed}, from {writer} to {reader}: {after:?}");
}

/// Three levels of leaves, the lowest with two uplinks, one of which is cut each time: whoever is answered afterwards gets the first event,
/// whether the reader or the writer sits on the leaf that has just reconnected, and whether or not it had a lease before.
#[test]
fn a_leaf_that_has_just_reconnected_misses_nothing_from_the_answer_on() {
    for seed in 0..6 {
        let uplinks = vec![vec![0], vec![2], vec![3, 4], vec![1]];
        let mut world = network_with_leaves(Shape::Line, 3, uplinks, seed, LinkSettings::default());
        let (low, side) = (5, 6);
        let links = [3, 4].map(|parent| world.link_between(low, parent).expect("a link"));
        let mut number = 0;
        for round in 0..8 {
            world.heal(links[round % 2]);
            world.cut(links[1 - round % 2]);
            world.run_for(Duration::from_millis(50 + 400 * round as u64));
            for (reader, writer) in [(low, 1), (side, low), (2, low), (low, side)] {
                number += 1;
                subscribe_then_publish(&mut world, seed, (reader, writer), number);
            }
        }
        assert_eq!(world.total().lost(), 0, "seed {seed}");
    }
}

/// What is published while the uplink is away goes up afterwards, in order and once; the leaf's own clients need not wait.
#[test]
fn a_leaf_goes_on_without_an_uplink() {
    for seed in 0..4 {
        let mut world = network_with_leaves(Shape::Line, 2, vec![vec![0]], seed, LinkSettings::default());
        for reader in 0..3 {
            world.subscribe(reader, "all", filter("n >= 0"));
        }
        settle(&mut world, seed);
        world.cut(world.link_between(2, 0).expect("a link"));
        world.run_for(Duration::from_secs(1));
        for number in 0..50 {
            world.publish(2, &numbered(number));
        }
        world.run_for(Duration::from_secs(20));
        world.heal_all();
        settle(&mut world, seed);
        for reader in 0..3 {
            assert_eq!(world.verdict(reader).received, 50, "seed {seed}, client {reader}");
        }
    }
}

/// An event that waits in a leaf lives until it goes on: it is no loss if its subscriber goes meanwhile, or crashes together with
/// the leaf in which it waits.
#[test]
fn an_event_lives_while_it_waits() {
    for crash in [true, false] {
        let link = LinkSettings { delay_us: [10_000, 10_000], jitter_us: 0, ..LinkSettings::default() };
        let mut world = network_with_leaves(Shape::Line, 1, vec![vec![0], vec![1]], 1, link);
        let (middle, low) = (1, 2);
        world.advertise(low, "n", filter("n >= 0"));
        world.subscribe(middle, "all", filter("n >= 0"));
        settle(&mut world, 1);
        world.publish(low, &numbered(1));
        settle(&mut world, 1);
        // With a wider scope the leaf has no lease until it has asked for one again, which takes longer than the event.
        world.advertise(middle, "m", filter("m = 1"));
        world.publish(low, &numbered(2));
        world.run_for(Duration::from_millis(15));
        if crash {
            world.crash(middle);
            world.run_for(Duration::from_secs(1));
            world.start(middle);
        } else {
            world.unsubscribe(middle, "all");
        }
        settle(&mut world, 1);
        let verdict = world.verdict(middle);
        assert_eq!((verdict.received, verdict.optional), (1, 0), "crash: {crash}: the event did not wait");
    }
}
