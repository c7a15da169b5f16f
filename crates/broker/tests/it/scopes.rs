//! What waits while another scope is still to be told, and what does not.

use crate::invariants::{link_mute, mute_link_state};
use crate::leaves::{LINK, beside_a_leaf, frame};
use crate::world::{DELAY, World, event};
use enroute_broker::*;
use enroute_filter::Filter;
use std::time::Duration;

fn advertise(world: &mut World, broker: BrokerId, filter: &str) -> u64 {
    let name = filter.into();
    world.command(broker, 1, Command::Advertise { name, filter: Filter::parse(filter).expect("a filter") })
}

/// Whether a publication has its receipt, and that says that the view was complete.
fn receipt(world: &World, broker: BrokerId, request: u64) -> Option<bool> {
    let complete = |reply: &Reply| matches!(reply, Reply::Published(receipt) if receipt.complete);
    world.reply(broker, 1, request).map(complete)
}

/// All have answered for what is within the scope that they know: it goes, and for certain. What they have not been told of waits,
/// and what comes after it waits behind it.
#[test]
fn what_is_within_the_scope_that_was_told_does_not_wait_for_the_next() {
    let mut world = World::new();
    let line = world.line(2);
    let (here, there) = (line[0], line[1]);
    world.subscribe(there, 1, "s", "x >= 0 OR y >= 0");
    advertise(&mut world, here, "x >= 0");
    world.advance(3 * DELAY);
    let wider = advertise(&mut world, here, "y >= 0");
    let within = world.publish(here, 1, event("x", 1));
    assert_eq!(receipt(&world, here, within), Some(true));
    let beyond = [world.publish(here, 1, event("y", 2)), world.publish(here, 1, event("x", 3))];
    world.advance(DELAY);
    assert_eq!(beyond.map(|request| receipt(&world, here, request)), [None, None]);
    assert!(!world.status(here).complete && world.reply(here, 1, wider).is_none());
    let pause = world.config.scope_pause;
    world.advance(pause);
    assert_eq!(beyond.map(|request| receipt(&world, here, request)), [Some(true), Some(true)]);
    world.run();
    let values = world.deliveries(there, 1).iter().map(|(_, event, _)| event.get("x").or(event.get("y")));
    assert_eq!(values.collect::<Vec<_>>(), [1, 2, 3].map(|value| Some(value.into())));
}

/// A broker that publications are not held up for any more holds them up no longer because a scope is still to be told.
#[test]
fn who_is_overdue_is_not_waited_for_while_the_scope_changes() {
    let mut world = World::new();
    let core = world.start("core");
    let (mute, link) = link_mute(&mut world, core);
    let state = mute_link_state(&world, mute, core);
    world.input(core, Input::Message { link, message: state });
    advertise(&mut world, core, "x >= 0");
    let first = world.publish(core, 1, event("x", 1));
    let (wait, pause) = (world.config.publish_wait, world.config.scope_pause);
    world.advance(wait - Duration::from_millis(1));
    assert_eq!(receipt(&world, core, first), None);
    world.advance(Duration::from_millis(1));
    assert_eq!(receipt(&world, core, first), Some(false));
    for attribute in ["y", "z"] {
        advertise(&mut world, core, &format!("{attribute} >= 0"));
        let within = world.publish(core, 1, event("x", 1));
        assert_eq!(receipt(&world, core, within), Some(false), "{attribute}");
    }
    let beyond = world.publish(core, 1, event("z", 1));
    assert_eq!(receipt(&world, core, beyond), None);
    world.advance(pause);
    assert_eq!(receipt(&world, core, beyond), Some(false));
}

/// What comes up from a leaf although nobody publishes, since it was kept for long, is answered by nobody: it does not wait, and
/// those who were not asked then are waited for when somebody publishes.
#[test]
fn who_was_not_asked_is_not_overdue() {
    let (mut world, core) = beside_a_leaf();
    let other = world.start("other");
    world.link(core, other);
    world.run();
    let subscribed = world.subscribe(core, 2, "s", "x >= 0");
    world.answer(core, 2, subscribed);
    let up = EventFrame { hop_limit: 31, ..frame("leaf", "core", &event("x", 1)) };
    world.input(core, Input::Event { link: LINK, frame: up });
    assert_eq!(world.deliveries(core, 2).len(), 1);
    let wait = world.config.publish_wait;
    world.advance(2 * wait);
    world.subscribe(other, 1, "s", "x >= 0");
    world.advance(3 * DELAY);
    let request = world.publish(core, 1, event("x", 2));
    assert_eq!(receipt(&world, core, request), None);
    world.advance(3 * DELAY);
    assert_eq!(receipt(&world, core, request), Some(true));
    assert_eq!(world.deliveries(other, 1).len(), 1);
}

/// As long as a leaf keeps an event it says that such events come, however long ago its publisher left: those far away are asked
/// what they want of it.
#[test]
fn a_leaf_does_not_narrow_its_scope_while_it_keeps_events() {
    let mut world = World::new();
    world.config.narrowing = Duration::from_secs(10);
    let line = world.line(2);
    let leaf = world.start_leaf("leaf");
    let request = world.subscribe(line[1], 1, "s", "x >= 0");
    world.answer(line[1], 1, request);
    world.publish(leaf, 1, event("x", 1));
    world.input(leaf, Input::ClientDisconnected { client: ClientId(1) });
    world.advance(Duration::from_secs(60));
    world.attach(leaf, line[0]);
    world.advance(Duration::from_secs(1));
    assert_eq!(world.deliveries(line[1], 1).len(), 1);
    let asked = |world: &mut World| world.status(line[1]).brokers.iter().map(|broker| broker.announced).sum::<u64>();
    assert_eq!(asked(&mut world), 1);
    world.advance(Duration::from_secs(60));
    assert_eq!(asked(&mut world), 0);
}
