//! What many tell one, and one tells many, goes over a link together.

use crate::world::{DELAY, World, event};
use enroute_broker::*;
use enroute_filter::Filter;
use std::time::Duration;

const PUBLISHERS: usize = 40;

/// A subscriber's broker, a hub, and behind it publishers' brokers, at rest.
fn star() -> (World, BrokerId, BrokerId, Vec<BrokerId>) {
    let mut world = World::new();
    let [subscriber, hub] = ["subscriber", "hub"].map(|name| world.start(name));
    world.link(subscriber, hub);
    let publishers: Vec<BrokerId> = (0..PUBLISHERS).map(|number| world.start(&format!("publisher {number}"))).collect();
    publishers.iter().for_each(|&publisher| world.link(publisher, hub));
    for &publisher in &publishers {
        let filter = Filter::parse("x >= 0").expect("a filter");
        world.command(publisher, 1, Command::Advertise { name: "all".into(), filter });
    }
    world.run();
    world.advance(Duration::from_secs(1));
    (world, subscriber, hub, publishers)
}

/// Control that a broker has had from another.
fn received(world: &mut World, broker: BrokerId, from: BrokerId) -> u64 {
    let links = world.status(broker).links;
    links.iter().find(|link| link.neighbour == from.to_string()).expect("neighbours").control_received
}

#[test]
fn a_subscription_goes_to_all_publishers_at_once_and_they_acknowledge_together() {
    let (mut world, subscriber, hub, publishers) = star();
    let (to_hub, to_subscriber) = (received(&mut world, hub, subscriber), received(&mut world, subscriber, hub));
    let request = world.subscribe(subscriber, 1, "s", "x > 5");
    world.advance(3 * DELAY);
    assert_eq!(world.reply(subscriber, 1, request), None, "the acknowledgements are under way");
    assert_eq!(world.answer(subscriber, 1, request), Reply::InForce { brokers: PUBLISHERS as u32 });
    assert_eq!(received(&mut world, hub, subscriber), to_hub + 1);
    let came = received(&mut world, subscriber, hub) - to_subscriber;
    assert!((2..=8).contains(&came), "{came} messages bring {PUBLISHERS} acknowledgements");
    for publisher in publishers {
        world.publish(publisher, 1, event("x", 6));
    }
    world.run();
    assert_eq!(world.deliveries(subscriber, 1).len(), PUBLISHERS);
}

/// When a link is replaced, goes down or is closed while what it was to carry waits, nothing need be sent again for that.
#[test]
fn what_gathers_for_a_link_that_is_gone_goes_another_way_at_once() {
    for fate in ["replaced", "cut", "closed"] {
        let mut world = World::new();
        world.config.gather = Duration::from_millis(100);
        let [one, other, near, hub, publisher] = ["one", "other", "near", "hub", "publisher"].map(|it| world.start(it));
        for (from, to, cost) in
            [(one, near, 1), (other, near, 1), (near, hub, 1), (hub, publisher, 1), (near, publisher, 9)]
        {
            world.link_with_cost(from, to, cost);
        }
        let filter = Filter::parse("x >= 0").expect("a filter");
        world.command(publisher, 1, Command::Advertise { name: "all".into(), filter });
        world.run();
        world.advance(Duration::from_secs(1));
        let resent = |world: &mut World| [one, other].map(|broker| world.status(broker).counters.resent);
        let before = resent(&mut world);
        let mut requests = Vec::new();
        for number in 0..4 {
            let (name, filter) = (format!("s{number}"), format!("x = {number}"));
            requests.extend([one, other].map(|broker| (broker, world.subscribe(broker, 1, &name, &filter))));
        }
        // Some have gone on from where the ways meet, and some wait there.
        let carried = received(&mut world, hub, near);
        world.advance(DELAY * 5 / 2);
        assert_eq!(received(&mut world, hub, near), carried + 4);
        match fate {
            "replaced" => world.link(near, hub),
            "cut" => world.cut(near, hub),
            _ => {
                let links = world.status(near).links;
                let to_hub = links.iter().find(|link| link.neighbour == hub.to_string()).expect("neighbours");
                let message = Message::Leaf(LeafMessage::Revoke);
                world.input(near, Input::Message { link: LinkId(to_hub.link), message });
            }
        }
        world.advance(Duration::from_millis(350));
        for (broker, request) in requests {
            assert_eq!(world.reply(broker, 1, request), Some(&Reply::InForce { brokers: 1 }), "{fate}");
        }
        assert_eq!(resent(&mut world), before, "{fate}");
    }
}

/// A letter that claims to be from the broker that it is for comes from anywhere: no link is closed over it, and what comes with it counts.
#[test]
fn a_letter_from_oneself_is_passed_over() {
    let (mut world, subscriber, hub, publishers) = star();
    let life = |broker| Life { broker, incarnation: world.brokers[&broker].incarnation() };
    let letter = |source| {
        let body = RoutedBody::Data { epoch: 99, sequence: 1, payload: Payload::Resync { version: 1 } };
        Routed { source: life(source), destination: life(subscriber), passed: 0, body }
    };
    let letters = Letters(vec![letter(subscriber), letter(publishers[0])]);
    let to_hub = world.status(subscriber).links[0].link;
    world.transcript = Some(Vec::new());
    world.input(subscriber, Input::Message { link: LinkId(to_hub), message: Message::Routed(letters) });
    let said = world.transcript.take().unwrap_or_default().join("\n");
    assert_eq!((said.matches("got 99:1").count(), said.contains("closes")), (1, false), "{said}");
    assert_eq!(world.status(subscriber).links.len(), 1);
    let request = world.subscribe(subscriber, 1, "s", "x > 5");
    assert_eq!(world.answer(subscriber, 1, request), Reply::InForce { brokers: PUBLISHERS as u32 });
    assert_eq!(world.status(hub).links.len(), PUBLISHERS + 1);
}
