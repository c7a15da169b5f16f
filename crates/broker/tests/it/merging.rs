//! Merging: fewer filters are announced, and what is delivered stays the same.

use crate::world::World;
use enroute_broker::*;
use enroute_filter::{Event, ValueRef};

fn point(d: i64, x: i64) -> Event {
    Event::builder().attribute("d", d).attribute("x", x).build().expect("a small event")
}

fn status(world: &mut World, broker: BrokerId) -> Status {
    world.brokers.get_mut(&broker).expect("it lives").status()
}

/// The roots at a broker, what it makes of them, and what it has told the others.
fn sizes(world: &mut World, broker: BrokerId) -> (u64, u64, u64) {
    let status = status(world, broker);
    let told: u64 = status.brokers.iter().map(|it| it.announced).sum();
    let told_up = status.uplink.as_ref().map_or(0, |uplink| uplink.announced);
    (status.forest_roots, status.announced, told + told_up)
}

fn subscribe(world: &mut World, broker: BrokerId, name: &str, filter: &str) {
    let request = world.subscribe(broker, 1, name, filter);
    let reply = world.answer(broker, 1, request);
    assert!(matches!(reply, Reply::InForce { .. }), "{reply:?}");
}

fn unsubscribe(world: &mut World, broker: BrokerId, name: &str) {
    world.command(broker, 1, Command::Unsubscribe { name: name.into() });
    world.run();
}

/// Publishes all points at a broker; returns how many copies that put on links.
fn publish_all(world: &mut World, broker: BrokerId) -> usize {
    world.crossings.clear();
    for (d, x) in (0..4).flat_map(|d| (0..4).map(move |x| (d, x))) {
        let request = world.publish(broker, 9, point(d, x));
        world.answer(broker, 9, request);
    }
    world.run();
    world.crossings.len()
}

/// What a client was given since it was last asked.
fn received(world: &mut World, broker: BrokerId) -> Vec<(i64, i64)> {
    let Some(inbox) = world.inboxes.get_mut(&(broker, ClientId(1))) else { return Vec::new() };
    let values = |event: &Event| match (event.get("d"), event.get("x")) {
        (Some(ValueRef::Int(d)), Some(ValueRef::Int(x))) => Some((d, x)),
        _ => None,
    };
    inbox.deliveries.drain(..).filter_map(|(_, event, _)| values(&event)).collect()
}

#[test]
fn what_is_merged_comes_apart_again_and_nobody_gets_anything_else() {
    for at_leaf in [false, true] {
        let mut world = World::new();
        world.config.merging.perfect = true;
        let line = world.line(2);
        let reader = if at_leaf { world.start_leaf("leaf") } else { line[1] };
        if at_leaf {
            world.attach(reader, line[1]);
            world.run();
        }
        publish_all(&mut world, line[0]);

        for d in 1..4 {
            subscribe(&mut world, reader, &format!("d{d}"), &format!("d = {d} AND x >= 2"));
        }
        assert_eq!(sizes(&mut world, reader), (3, 1, 1));
        let held: u64 = status(&mut world, line[0]).brokers.iter().map(|it| it.interest).sum();
        assert_eq!(held, 1);
        let hops = if at_leaf { 2 } else { 1 };
        assert_eq!(publish_all(&mut world, line[0]), 6 * hops);
        assert_eq!(received(&mut world, reader), [(1, 2), (1, 3), (2, 2), (2, 3), (3, 2), (3, 3)]);

        // One value of the union goes; then one that comes along in another attribute.
        unsubscribe(&mut world, reader, "d2");
        assert_eq!(sizes(&mut world, reader), (2, 1, 1));
        assert_eq!(publish_all(&mut world, line[0]), 4 * hops);
        assert_eq!(received(&mut world, reader), [(1, 2), (1, 3), (3, 2), (3, 3)]);
        subscribe(&mut world, reader, "low", "d = 3 AND x < 1");
        assert_eq!(sizes(&mut world, reader), (3, 2, 2));
        assert_eq!(publish_all(&mut world, line[0]), 5 * hops);
        assert_eq!(received(&mut world, reader), [(1, 2), (1, 3), (3, 0), (3, 2), (3, 3)]);

        // What is covered adds nothing, and what covers all leaves one.
        subscribe(&mut world, reader, "covered", "d = 1 AND x = 3");
        assert_eq!(sizes(&mut world, reader), (3, 2, 2));
        subscribe(&mut world, reader, "all", "d >= 0");
        assert_eq!(sizes(&mut world, reader), (1, 1, 1));
        for name in ["all", "d1", "d3", "low", "covered"] {
            unsubscribe(&mut world, reader, name);
        }
        assert_eq!(sizes(&mut world, reader), (0, 0, 0));
        assert_eq!(publish_all(&mut world, line[0]), 0);
        assert!(world.notices.is_empty(), "{:?}", world.notices);
    }
}

#[test]
fn imperfect_merging_learns_from_what_comes_and_takes_back_what_brings_too_much() {
    let mut world = World::new();
    let budget = Budget { filters: 1, false_interest: 0.25 };
    world.config.merging.imperfect = Some(budget);
    let line = world.line(2);
    let request = world.publish(line[0], 9, point(0, 0));
    world.answer(line[0], 9, request);
    subscribe(&mut world, line[1], "1", "d = 1 AND x = 1");
    subscribe(&mut world, line[1], "2", "d = 2 AND x = 2");
    // Nothing is known yet of what comes.
    assert_eq!(sizes(&mut world, line[1]), (2, 2, 2));
    let publish = |world: &mut World, d: i64, x: i64| {
        let request = world.publish(line[0], 9, point(d, x));
        world.answer(line[0], 9, request);
        world.run();
    };
    (0..40).for_each(|_| publish(&mut world, 1, 1));
    // Then it is, and told, though nobody has subscribed since.
    assert_eq!(sizes(&mut world, line[1]), (2, 1, 1));
    let used = |world: &mut World| {
        let status = status(world, line[1]);
        let imperfect = status.merging.and_then(|merging| merging.imperfect).expect("it is configured");
        assert_eq!((imperfect.filters, imperfect.false_interest), (1, 0.25));
        (status.counters.arrived, status.counters.unwanted, imperfect.estimate)
    };
    assert_eq!(used(&mut world), (40, 0, Some(0.0)));
    assert_eq!(received(&mut world, line[1]).len(), 40);

    // What only the merged filter matches comes, too, is counted and not delivered, until it is too much.
    (0..5).for_each(|_| publish(&mut world, 1, 2));
    let (arrived, unwanted, estimate) = used(&mut world);
    assert_eq!((arrived, unwanted), (45, 5));
    assert!(estimate.is_some_and(|share| share > 0.0 && share <= budget.false_interest), "{estimate:?}");
    (0..40).for_each(|_| publish(&mut world, 1, 2));
    assert_eq!(sizes(&mut world, line[1]), (2, 2, 2));
    let (arrived, unwanted, estimate) = used(&mut world);
    assert!(arrived < 85 && unwanted == arrived - 40, "{arrived}, {unwanted}");
    assert_eq!(estimate, Some(0.0));
    (0..3).for_each(|_| publish(&mut world, 2, 2));
    assert_eq!(received(&mut world, line[1]), [(2, 2); 3]);
}
