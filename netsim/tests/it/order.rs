//! What a subscription's answer promises: an event published from then on is not missed.

use crate::{ANSWER, assert_good, filter, network, settle};
use enroute_broker::Reply;
use enroute_filter::Event;
use enroute_netsim::{LinkSettings, Shape};
use std::time::Duration;

fn numbered(number: i64) -> Event {
    Event::builder().attribute("n", number).build().expect("a small event")
}

#[test]
fn subscribe_then_publish_at_once_at_the_other_end() {
    let mut world = network(Shape::Line, 6, 1, LinkSettings::default());
    world.publish(5, &numbered(-1));
    settle(&mut world, 1);
    for number in 0..1_000 {
        let name = format!("s{number}");
        let ticket = world.subscribe(0, &name, filter(&format!("n = {number}"))).expect("the broker is up");
        let reply = world.await_answer(ticket, ANSWER).expect("an answer");
        assert_eq!(reply, Some(Reply::InForce { brokers: 1 }));
        world.publish(5, &numbered(number));
    }
    settle(&mut world, 1);
    let verdict = world.verdict(0);
    assert_eq!((verdict.expected, verdict.received), (1_000, 1_000));
}

/// The second client's subscription is covered by one of the first's that is still under way: it changes nothing of what
/// is announced, and must wait all the same.
#[test]
fn subscribe_under_a_cover_that_is_just_being_placed() {
    let mut world = network(Shape::Line, 6, 2, LinkSettings::default());
    let second = world.add_client("second", 0);
    world.publish(5, &numbered(-1));
    settle(&mut world, 2);
    for number in 0..1_000 {
        let name = format!("s{number}");
        let (from, to) = (number * 10, number * 10 + 5);
        world.subscribe(0, &name, filter(&format!("n >= {from} AND n <= {to}"))).expect("the broker is up");
        let ticket = world.subscribe(second, &name, filter(&format!("n = {from}"))).expect("the broker is up");
        let reply = world.await_answer(ticket, ANSWER).expect("an answer");
        assert_eq!(reply, Some(Reply::InForce { brokers: 1 }));
        world.publish(5, &numbered(from));
    }
    settle(&mut world, 2);
    let verdict = world.verdict(second);
    assert_eq!((verdict.expected, verdict.received), (1_000, 1_000));
}

/// So many subscriptions at once that their changes are told together: each answer still holds for its own.
#[test]
fn subscribe_faster_than_changes_are_acknowledged() {
    let mut world = network(Shape::Line, 6, 4, LinkSettings::default());
    world.publish(5, &numbered(-1));
    settle(&mut world, 4);
    let mut tickets = Vec::new();
    for number in 0..1_000 {
        let name = format!("s{number}");
        tickets.push(world.subscribe(0, &name, filter(&format!("n = {number}"))).expect("the broker is up"));
        world.run_for(Duration::from_millis(1));
    }
    for (number, ticket) in (0..).zip(tickets) {
        let reply = world.await_answer(ticket, ANSWER).expect("an answer");
        assert_eq!(reply, Some(Reply::InForce { brokers: 1 }));
        world.publish(5, &numbered(number));
    }
    settle(&mut world, 4);
    let verdict = world.verdict(0);
    assert_eq!((verdict.expected, verdict.received), (1_000, 1_000));
}

/// A broker where nobody has published yet hears of what others want before its first event goes out.
#[test]
fn the_first_event_of_a_new_publisher_is_not_missed() {
    for seed in 0..20 {
        let mut world = network(Shape::Tree, 7, seed, LinkSettings::default());
        let ticket = world.subscribe(3, "all", filter("n >= 0")).expect("the broker is up");
        world.await_answer(ticket, ANSWER).expect("an answer");
        world.publish(6, &numbered(1));
        settle(&mut world, seed);
        assert_eq!(world.verdict(3).received, 1, "seed {seed}");
    }
}

/// A hundred thousand subscriptions come and go, fifty standing at a time; nothing of them stays anywhere.
#[test]
fn subscriptions_that_come_and_go_leave_nothing_behind() {
    let mut world = network(Shape::Line, 3, 3, LinkSettings { delay_us: [100, 200], ..LinkSettings::default() });
    for client in 1..3 {
        world.publish(client, &numbered(-1));
    }
    for number in 0..100_000 {
        let client = number % 3;
        world.subscribe(client, &format!("s{number}"), filter(&format!("n = {number}")));
        if let Some(old) = number.checked_sub(50) {
            world.unsubscribe(old % 3, &format!("s{old}"));
        }
        world.run_for(Duration::from_micros(50));
        if number % 1_000 == 999 {
            settle(&mut world, 3);
        }
    }
    world.unsubscribe_all();
    settle(&mut world, 3);
    world.check_empty();
    assert_good(&world, 3);
}
