//! The protocol's promises on small networks; the simulator tries them on large and random ones.

use crate::world::{DELAY, World, event};
use enroute_broker::*;
use enroute_filter::Filter;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

fn received(world: &World, broker: BrokerId, client: u64) -> Vec<u64> {
    world.deliveries(broker, client).iter().map(|(id, _, _)| id.sequence).collect()
}

#[test]
fn an_event_published_right_after_the_answer_is_not_missed() {
    let mut world = World::new();
    let line = world.line(6);
    let (near, far) = (line[0], line[5]);
    for round in 0..200 {
        let request = world.subscribe(near, 1, &format!("s{round}"), &format!("x = {round}"));
        assert!(matches!(world.answer(near, 1, request), Reply::InForce { .. }));
        world.publish(far, 1, event("x", round));
    }
    world.advance(Duration::from_secs(10));
    assert_eq!(received(&world, near, 1).len(), 200);
}

#[test]
fn a_subscription_covered_by_one_under_way_waits_for_that_one() {
    let mut world = World::new();
    let line = world.line(6);
    let (near, far) = (line[0], line[5]);
    let opening = world.publish(far, 9, event("y", 0));
    world.answer(far, 9, opening);
    for round in 0..200 {
        let wide = world.subscribe(near, 1, "wide", &format!("x >= {round}"));
        let narrow = world.subscribe(near, 2, "narrow", &format!("x = {round}"));
        assert!(world.reply(near, 2, narrow).is_none(), "answered before the cover is in force");
        world.answer(near, 2, narrow);
        world.publish(far, 9, event("x", round));
        world.run();
        assert_eq!(world.deliveries(near, 2).last().map(|(_, event, _)| event.get("x")), Some(Some(round.into())));
        world.answer(near, 1, wide);
        world.command(near, 1, Command::Unsubscribe { name: "wide".into() });
        world.run();
    }
}

/// What nobody acknowledges is sent again after `resend`, then after twice as long each time, up to `resend_max`.
#[test]
fn the_unacknowledged_is_sent_again_ever_more_seldom() {
    let mut world = World::new();
    let line = world.line(2);
    let opening = world.publish(line[1], 1, event("x", 0));
    world.answer(line[1], 1, opening);
    world.run();
    world.lose(line[1], line[0]);
    world.subscribe(line[0], 1, "s", "x = 1");
    let begun = world.now;
    let resent_before = |at: u64| {
        world.advance((begun + Duration::from_millis(at - 1)).since(world.now));
        let before = world.status(line[0]).counters.resent;
        world.advance(Duration::from_millis(1));
        (before, world.status(line[0]).counters.resent)
    };
    let resent = [500, 1_500, 3_500, 7_500, 12_500].map(resent_before);
    assert_eq!(resent, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]);
}

#[test]
fn nothing_is_left_when_all_have_unsubscribed() {
    let mut world = World::new();
    let line = world.line(3);
    let opening = world.publish(line[2], 1, event("x", 0));
    world.answer(line[2], 1, opening);
    for number in 0..2_000 {
        world.subscribe(line[0], 1, &format!("s{number}"), &format!("x >= {number} AND y = {number}"));
        world.subscribe(line[1], 1, &format!("s{number}"), &format!("x >= {number} AND y = {}", number % 50));
        if number % 100 == 0 {
            world.run();
        }
    }
    world.run();
    let interest = |world: &mut World, at: BrokerId| -> u64 {
        world.brokers.get_mut(&at).map_or(0, |broker| broker.status().brokers.iter().map(|it| it.interest).sum())
    };
    assert_eq!(interest(&mut world, line[2]), 2_050);
    for number in 0..2_000 {
        world.command(line[0], 1, Command::Unsubscribe { name: format!("s{number}").into() });
    }
    world.input(line[1], Input::ClientDisconnected { client: ClientId(1) });
    world.run();
    assert_eq!(interest(&mut world, line[2]), 0);
    for &broker in &line {
        let status = world.brokers.get_mut(&broker).expect("it lives").status();
        assert_eq!((status.subscriptions, status.forest_nodes, status.forest_roots), (0, 0, 0));
        assert!(status.brokers.iter().all(|it| it.announced == 0));
    }
    assert!(world.notices.is_empty(), "{:?}", world.notices);
}

#[test]
fn events_go_only_where_they_are_wanted_and_by_the_shortest_paths() {
    let mut world = World::new();
    let ring: Vec<BrokerId> = (0..6).map(|index| world.start(&format!("b{index}"))).collect();
    for index in 0..6 {
        world.link(ring[index], ring[(index + 1) % 6]);
    }
    world.run();
    world.advance(Duration::from_secs(1));
    for (index, filter) in [(1, "x > 0"), (2, "x > 1"), (5, "x > 2")] {
        let request = world.subscribe(ring[index], 1, "s", filter);
        world.answer(ring[index], 1, request);
    }
    for (value, wanted) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
        let request = world.publish(ring[0], 1, event("x", value));
        world.answer(ring[0], 1, request);
        world.run();
        world.crossings.clear();
        let request = world.publish(ring[0], 1, event("x", value));
        world.run();
        assert!(matches!(world.reply(ring[0], 1, request), Some(Reply::Published(receipt)) if receipt.complete));
        assert_eq!(world.crossings.len(), wanted, "crossings for x = {value}");
    }
    for (index, count) in [(1, 6), (2, 4), (5, 2), (3, 0), (4, 0)] {
        assert_eq!(received(&world, ring[index], 1).len(), count);
    }
}

#[test]
fn restarting_any_position_of_a_chain_heals_both_directions() {
    for position in 0..5 {
        let mut world = World::new();
        let line = world.line(5);
        let ends = [line[0], line[4]];
        for end in ends {
            world.publish(end, 7, event("warm", 0));
            world.subscribe(end, 1, "s", "x > 0");
        }
        world.run();
        world.kill(line[position]);
        world.start(&format!("b{position}"));
        for other in [position.wrapping_sub(1), position + 1] {
            if let Some(&other) = line.get(other) {
                world.link(line[position], other);
            }
        }
        world.run();
        world.advance(Duration::from_secs(3));
        if ends.contains(&line[position]) {
            let request = world.subscribe(line[position], 1, "s", "x > 0");
            world.answer(line[position], 1, request);
        }
        for (from, to) in [(ends[0], ends[1]), (ends[1], ends[0])] {
            let before = received(&world, to, 1).len();
            let request = world.publish(from, 1, event("x", 1));
            world.answer(from, 1, request);
            world.run();
            assert_eq!(received(&world, to, 1).len(), before + 1, "position {position}");
        }
    }
}

#[test]
fn a_partition_that_heals_equals_a_fresh_network() {
    // All tables, as far as they do not tell of versions and counts.
    let tables = |world: &mut World| -> Vec<(String, Vec<BrokerStatus>)> {
        world.brokers.values_mut().map(|broker| broker.status()).map(|status| (status.scope, status.brokers)).collect()
    };
    let populate = |world: &mut World, line: &[BrokerId]| {
        for (index, &broker) in line.iter().enumerate() {
            world.subscribe(broker, 1, "s", &format!("x > {index}"));
            let filter = Filter::parse(&format!("x < {}", index * 3)).expect("a filter");
            world.command(broker, 1, Command::Advertise { name: "a".into(), filter });
        }
    };
    let mut fresh = World::new();
    let line = fresh.line(4);
    populate(&mut fresh, &line);
    fresh.advance(Duration::from_secs(30));
    for away in [Duration::from_secs(1), Duration::from_secs(100)] {
        for late in [false, true] {
            let mut world = World::new();
            let line = world.line(4);
            if !late {
                populate(&mut world, &line);
                world.run();
            }
            world.cut(line[1], line[2]);
            world.advance(away);
            if late {
                populate(&mut world, &line);
            }
            world.link(line[2], line[1]);
            world.advance(Duration::from_secs(30));
            assert_eq!(tables(&mut world), tables(&mut fresh), "away for {away:?}, late {late}");
        }
    }
}

#[test]
fn neighbours_that_forget_each_other_at_different_moments_agree_again() {
    let mut world = World::new();
    let line = world.line(3);
    for &broker in &line {
        world.publish(broker, 1, event("warm", 0));
        world.subscribe(broker, 2, "s", "x > 0");
    }
    world.run();
    // The middle loses its left neighbour 30 seconds before its right one; each purges on its own clock.
    world.cut(line[0], line[1]);
    world.advance(Duration::from_secs(30));
    world.cut(line[1], line[2]);
    world.advance(Duration::from_secs(40));
    world.link(line[2], line[1]);
    world.link(line[0], line[1]);
    world.advance(Duration::from_secs(5));
    for (round, &from) in line.iter().enumerate() {
        world.publish(from, 1, event("x", 1));
        world.run();
        for &to in &line {
            assert_eq!(received(&world, to, 2).len(), round + 1);
        }
    }
}

#[test]
fn an_old_life_never_overwrites_a_new_one() {
    let mut world = World::new();
    let line = world.line(3);
    let (left, middle) = (line[0], line[1]);
    world.kill(left);
    world.start("b0");
    world.link(left, middle);
    world.run();
    let old = Arc::new(LinkState {
        origin: left,
        peer_id: "b0".into(),
        start_nonce: 1,
        version: Version { incarnation: 1, sequence: 1_000 },
        starting: false,
        addresses: vec![],
        links: vec![],
    });
    world.link(line[2], middle);
    let link = LinkId(1_000_000);
    let neighbour = Neighbour {
        broker: left,
        role: Role::Core,
        peer_id: "b0".into(),
        incarnation: 1,
        start_nonce: 1,
        dialled_by: left,
        dial: 99,
        cost: 1,
        told_incarnation: 1,
    };
    world.transcript = Some(vec![]);
    world.input(middle, Input::LinkUp { link, neighbour });
    let closed = world.transcript.take().expect("a transcript");
    assert!(closed.iter().any(|line| line.contains("incarnation older")), "{closed:?}");
    let known = world.brokers.get_mut(&middle).expect("it lives").status();
    world.input(middle, Input::Message { link: LinkId(2), message: Message::LinkState(old) });
    let after = world.brokers.get_mut(&middle).expect("it lives").status();
    assert_eq!(known.brokers, after.brokers);
}

#[test]
fn an_identity_used_twice_is_found_out() {
    let mut world = World::new();
    let line = world.line(2);
    let forged = |incarnation: u64| {
        Message::LinkState(Arc::new(LinkState {
            origin: line[1],
            peer_id: "b1".into(),
            start_nonce: 777,
            version: Version { incarnation, sequence: 1 },
            starting: false,
            addresses: vec![],
            links: vec![],
        }))
    };
    for (jump, heard) in [10, 20].into_iter().enumerate() {
        world.input(line[1], Input::Message { link: LinkId(2), message: forged(heard) });
        assert_eq!(world.brokers[&line[1]].incarnation(), heard + 1);
        assert_eq!(world.notices.len(), jump + 1);
        world.run();
        // After the jump the network is whole again.
        let request = world.subscribe(line[1], 1, "s", "x = 1");
        world.publish(line[0], 1, event("x", 1));
        world.answer(line[1], 1, request);
        world.run();
        assert_eq!(received(&world, line[1], 1).len(), jump + 1);
    }
    assert!(world.stopped.is_empty());
    world.input(line[1], Input::Message { link: LinkId(2), message: forged(30) });
    assert!(world.stopped.contains(&line[1]));
}

/// A broker that is linked to `to` and in sync with it, but says nothing by itself; gives its id and the link.
pub(crate) fn link_mute(world: &mut World, to: BrokerId) -> (BrokerId, LinkId) {
    let mute = BrokerId::of_peer("mute");
    let link = LinkId(500);
    let neighbour = Neighbour {
        broker: mute,
        role: Role::Core,
        peer_id: "mute".into(),
        incarnation: 1,
        start_nonce: 1,
        dialled_by: mute,
        dial: 1,
        cost: 1,
        told_incarnation: world.brokers[&to].incarnation(),
    };
    world.names.insert(mute, "mute".into());
    world.input(to, Input::LinkUp { link, neighbour });
    for message in [Message::Offer { held: vec![], last: true }, Message::Synced, Message::SyncedAck] {
        world.input(to, Input::Message { link, message });
    }
    let status = world.brokers.get_mut(&to).expect("it lives").status();
    assert!(status.links.iter().all(|link| link.in_sync));
    (mute, link)
}

/// The mute broker's link state, which lists its link.
pub(crate) fn mute_link_state(world: &World, mute: BrokerId, to: BrokerId) -> Message {
    let nonce = world.brokers[&to].link_nonce(mute).expect("a link");
    Message::LinkState(Arc::new(LinkState {
        origin: mute,
        peer_id: "mute".into(),
        start_nonce: 1,
        version: Version { incarnation: 1, sequence: 1 },
        starting: false,
        addresses: vec![],
        links: vec![LinkEnd { neighbour: to, cost: 1, nonce }],
    }))
}

#[test]
fn a_publication_waits_for_a_neighbour_whose_end_of_the_link_is_not_listed_yet() {
    let mut world = World::new();
    let line = world.line(1);
    let (mute, link) = link_mute(&mut world, line[0]);
    let request = world.publish(line[0], 1, event("x", 1));
    assert!(world.reply(line[0], 1, request).is_none(), "published without the neighbour");
    let message = mute_link_state(&world, mute, line[0]);
    world.input(line[0], Input::Message { link, message });
    assert!(world.reply(line[0], 1, request).is_none(), "published before the neighbour said what it wants");
    assert!(matches!(world.answer(line[0], 1, request), Reply::Published(receipt) if !receipt.complete));
}

#[test]
fn a_publication_waits_for_a_broker_that_does_not_answer_only_so_long() {
    let mut world = World::new();
    let line = world.line(2);
    let (mute, link) = link_mute(&mut world, line[0]);
    let message = mute_link_state(&world, mute, line[0]);
    world.input(line[0], Input::Message { link, message });
    world.subscribe(line[1], 1, "s", "TRUE");
    let start = world.now;
    let first = world.publish(line[0], 1, event("x", 1));
    let reply = world.answer(line[0], 1, first);
    assert!(matches!(reply, Reply::Published(receipt) if !receipt.complete), "{reply:?}");
    let waited = world.now.since(start);
    assert!(waited >= world.config.publish_wait && waited < world.config.publish_wait + 2 * DELAY, "{waited:?}");
    // It is not waited for again.
    let second = world.publish(line[0], 1, event("x", 2));
    assert!(matches!(world.reply(line[0], 1, second), Some(Reply::Published(receipt)) if !receipt.complete));
    world.run();
    assert_eq!(received(&world, line[1], 1), [1, 2]);
}

#[test]
fn bounds_are_kept_and_named() {
    let mut world = World::new();
    world.config.names_per_client = 3;
    world.config.waiting_publications = 2;
    world.config.clients = 2;
    let broker = world.start("b0");
    for number in 0..4 {
        let request = world.subscribe(broker, 1, &format!("s{number}"), "x = 1");
        let refused = matches!(world.reply(broker, 1, request), Some(Reply::Refused(Refusal::Limit { limit: 3, .. })));
        assert_eq!(refused, number == 3);
    }
    // Replacing is no new name.
    let request = world.subscribe(broker, 1, "s0", "x = 2");
    assert!(matches!(world.reply(broker, 1, request), Some(Reply::InForce { .. })));
    world.subscribe(broker, 2, "s", "x = 1");
    let request = world.subscribe(broker, 3, "s", "x = 1");
    assert!(matches!(world.reply(broker, 3, request), Some(Reply::Refused(Refusal::Limit { limit: 2, .. }))));
}

#[test]
fn transit_holds_no_interest_and_copies_are_disjoint() {
    let mut world = World::new();
    let line = world.line(4);
    let request = world.publish(line[0], 1, event("warm", 0));
    world.answer(line[0], 1, request);
    for &broker in &line[1..] {
        let request = world.subscribe(broker, 1, "s", "x > 0");
        world.answer(broker, 1, request);
    }
    for &transit in &line[1..3] {
        let status = world.brokers.get_mut(&transit).expect("it lives").status();
        assert!(status.brokers.iter().all(|it| it.interest == 0));
    }
    world.crossings.clear();
    world.publish(line[0], 1, event("x", 1));
    world.run();
    let distinct: BTreeSet<_> = world.crossings.iter().collect();
    assert_eq!((world.crossings.len(), distinct.len()), (3, 3));
}

#[test]
fn parked_events_find_the_new_path_and_are_lost_without_one() {
    let mut world = World::new();
    let line = world.line(3);
    let request = world.publish(line[0], 1, event("warm", 0));
    world.answer(line[0], 1, request);
    let request = world.subscribe(line[2], 1, "s", "x > 0");
    world.answer(line[2], 1, request);
    world.cut(line[1], line[2]);
    world.publish(line[0], 1, event("x", 1));
    world.link(line[0], line[2]);
    world.run();
    assert_eq!(received(&world, line[2], 1).len(), 1);
    world.cut(line[0], line[2]);
    world.publish(line[0], 1, event("x", 2));
    world.advance(Duration::from_secs(2));
    let status = world.brokers.get_mut(&line[0]).expect("it lives").status();
    assert_eq!((status.counters.lost_no_path, status.parked_events), (1, 0));
    assert_eq!(received(&world, line[2], 1).len(), 1);
}

#[test]
fn what_is_parked_is_bounded_by_its_destinations_too() {
    let mut world = World::new();
    world.config.waiting_bytes = 64 << 10;
    let pair = world.line(2);
    let status = world.brokers.get_mut(&pair[1]).expect("it lives").status();
    let (origin, link) = (pair[0], LinkId(status.links[0].link));
    // Destinations that nobody knows: far fewer bytes of events than may be parked.
    let destinations: Vec<BrokerId> = (1..=2_000).map(BrokerId).collect();
    for sequence in 1..=10 {
        let id = EventId { origin, incarnation: 1, sequence };
        let event = event("x", 1).as_bytes().clone();
        let frame = EventFrame { hop_limit: 16, destinations: destinations.clone().into(), id, event };
        world.input(pair[1], Input::Event { link, frame });
    }
    let status = world.brokers.get_mut(&pair[1]).expect("it lives").status();
    assert_eq!((status.parked_events, status.counters.lost_overflow), (4, 6 * 2_000));
    world.advance(Duration::from_secs(2));
    let status = world.brokers.get_mut(&pair[1]).expect("it lives").status();
    assert_eq!((status.parked_events, status.counters.lost_no_path), (0, 4 * 2_000));
}

#[test]
fn the_scope_narrows_late() {
    let mut world = World::new();
    let line = world.line(2);
    world.publish(line[0], 1, event("x", 0));
    world.subscribe(line[1], 1, "s", "x > 0");
    world.run();
    let scope = |world: &mut World| world.brokers.get_mut(&line[0]).expect("it lives").status().scope;
    assert_eq!(scope(&mut world), "anything");
    world.input(line[0], Input::ClientDisconnected { client: ClientId(1) });
    world.advance(Duration::from_secs(599));
    assert_eq!(scope(&mut world), "anything");
    world.advance(Duration::from_secs(2));
    assert_eq!(scope(&mut world), "nobody");
    let status = world.brokers.get_mut(&line[1]).expect("it lives").status();
    assert!(status.brokers.iter().all(|it| it.announced == 0));
}

#[test]
fn a_newcomer_that_is_answered_misses_nothing_its_neighbours_publish() {
    for publisher in 0..2 {
        let mut world = World::new();
        let line = world.line(2);
        let newcomer = BrokerId::of_peer("newcomer");
        let peer_id = "newcomer".into();
        let identity = Identity { id: newcomer, peer_id, incarnation: 1, start_nonce: 0, addresses: vec![] };
        world.start_as(identity, world.config.clone());
        world.link(newcomer, line[1]);
        world.input(newcomer, Input::PeersTried);
        let request = world.subscribe(newcomer, 1, "s", "x = 1");
        // No later than the answer: the newcomer's own link state may still be under way to the publisher.
        world.answer(newcomer, 1, request);
        world.publish(line[publisher], 1, event("x", 1));
        world.advance(Duration::from_secs(10));
        assert_eq!(received(&world, newcomer, 1).len(), 1, "published at {publisher}");
        assert!(world.brokers.get_mut(&line[publisher]).expect("it lives").status().complete);
    }
}
