//! Leaf brokers: what holds between a leaf and its parent, and what either takes from the other.

use crate::invariants::{link_mute, mute_link_state};
use crate::world::{World, event};
use enroute_broker::*;
use enroute_filter::{Event, Filter};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const LINK: LinkId = LinkId(500);

/// A neighbour that says nothing by itself.
pub(crate) fn neighbour(name: &str, role: Role) -> Neighbour {
    Neighbour {
        broker: BrokerId::of_peer(name),
        role,
        peer_id: name.into(),
        incarnation: 1,
        start_nonce: 1,
        dialled_by: BrokerId::of_peer(name),
        dial: 1,
        cost: 1,
        told_incarnation: 1,
    }
}

/// Gives a broker an input and says what it did.
pub(crate) fn lines(world: &mut World, broker: BrokerId, input: Input) -> String {
    world.transcript = Some(Vec::new());
    world.input(broker, input);
    world.transcript.take().unwrap_or_default().join("\n")
}

pub(crate) fn says(world: &mut World, broker: BrokerId, message: LeafMessage) -> String {
    lines(world, broker, Input::Message { link: LINK, message: Message::Leaf(message) })
}

pub(crate) fn attach(epoch: u64) -> LeafMessage {
    LeafMessage::Attach(Attach { epoch, previous: Vec::new(), table: 100 })
}

/// A world that knows the names of brokers that are not in it.
fn world_of_names() -> World {
    let mut world = World::new();
    for name in ["parent", "leaf", "below", "second", "far"] {
        world.names.insert(BrokerId::of_peer(name), name.to_owned());
    }
    world
}

/// A core broker with a mute leaf below it.
pub(crate) fn beside_a_leaf() -> (World, BrokerId) {
    let mut world = world_of_names();
    let core = world.start("core");
    let neighbour = neighbour("leaf", Role::Leaf);
    world.input(core, Input::LinkUp { link: LINK, neighbour });
    assert!(says(&mut world, core, attach(1)).contains("path to the core [core]"));
    (world, core)
}

/// A leaf broker with a mute parent above it.
pub(crate) fn below_a_parent() -> (World, BrokerId) {
    let mut world = world_of_names();
    let leaf = world.start_leaf("leaf");
    let neighbour = neighbour("parent", Role::Parent);
    world.input(leaf, Input::LinkUp { link: LINK, neighbour });
    let path = LeafMessage::Path(vec![BrokerId::of_peer("parent")]);
    assert!(says(&mut world, leaf, path).contains("whole interest 1"));
    (world, leaf)
}

fn announced(text: &str) -> AnnouncedFilter {
    AnnouncedFilter::of(&Filter::parse(text).expect("a filter").conjunctions()[0])
}

/// A whole interest of one step; its digest is right.
pub(crate) fn whole(version: u64, scope_version: u64, filters: &[&str]) -> Interest {
    let added: Vec<AnnouncedFilter> = filters.iter().map(|text| announced(text)).collect();
    let digest = added.iter().fold(Digest::default(), Digest::with);
    let part = InterestPart { version, whole: true, added, removed: Vec::new(), last: true, digest };
    Interest::new(scope_version, part)
}

/// The same with something else in it.
pub(crate) fn but(mut interest: Interest, change: impl FnOnce(&mut InterestPart)) -> Interest {
    change(Arc::make_mut(&mut interest.part));
    interest
}

pub(crate) fn frame(origin: &str, to: &str, event: &Event) -> EventFrame {
    let id = EventId { origin: BrokerId::of_peer(origin), incarnation: 1, sequence: 1 };
    EventFrame {
        hop_limit: 1,
        destinations: [BrokerId::of_peer(to)].into_iter().collect(),
        id,
        event: event.as_bytes().clone(),
    }
}

pub(crate) fn message(message: LeafMessage) -> Input {
    Input::Message { link: LINK, message: Message::Leaf(message) }
}

pub(crate) fn arrival(frame: EventFrame) -> Input {
    Input::Event { link: LINK, frame }
}

/// Whatever a leaf does wrong, its link is closed and nothing of it is left.
#[test]
fn what_a_leaf_says_is_checked() {
    let long = vec![BrokerId(1); MAX_PATH + 1];
    let detach = Detach { leaf: BrokerId(1), incarnation: 1, epoch: 1, path: long.clone() };
    let unreadable = AnnouncedFilter(vec![0xff; 4].into());
    let digest = Digest::default().with(&unreadable);
    let garbled = but(whole(2, 0, &[]), |part| (part.added, part.digest) = (vec![unreadable], digest));
    let held = LeafMessage::Held { step: u64::MAX, brokers: 0, missing: Vec::new() };
    let long_attach = LeafMessage::Attach(Attach { epoch: 2, previous: long, table: 1 });
    let scope = || LeafMessage::Scope { version: 1, scope: Scope::Anything };
    let spoilt = EventFrame { event: vec![9, 9, 9].into(), ..frame("leaf", "core", &event("x", 1)) };
    let wrong: [(&str, Vec<Input>); 14] = [
        ("attaches twice", vec![message(attach(2))]),
        ("attaches twice, from far", vec![message(long_attach)]),
        ("path", vec![message(LeafMessage::Path(vec![BrokerId(1)]))]),
        ("lease", vec![message(LeafMessage::Lease { number: 1, lasts_us: 1 })]),
        ("revoke", vec![message(LeafMessage::Revoke)]),
        ("long detach", vec![message(LeafMessage::Detach(detach))]),
        ("digest", vec![message(LeafMessage::Interest(but(whole(2, 0, &["x = 1"]), |part| part.digest = Digest(1))))]),
        ("filter", vec![message(LeafMessage::Interest(garbled))]),
        ("old scope", vec![message(scope()), message(scope())]),
        ("core talk", vec![message(held), Input::Message { link: LINK, message: Message::Synced }]),
        ("unreadable event", vec![arrival(spoilt)]),
        ("event for another", vec![arrival(frame("leaf", "other", &event("x", 1)))]),
        ("event of the core", vec![arrival(frame("core", "core", &event("x", 1)))]),
        (
            "event to nobody",
            vec![arrival(EventFrame { destinations: Default::default(), ..frame("leaf", "core", &event("x", 1)) })],
        ),
    ];
    for (what, inputs) in wrong {
        let (mut world, core) = beside_a_leaf();
        says(&mut world, core, LeafMessage::Interest(whole(1, 0, &["x > 1", "y = 1"])));
        assert_eq!(world.brokers.get_mut(&core).expect("it lives").status().forest_roots, 2, "{what}");
        let last = inputs.into_iter().map(|input| lines(&mut world, core, input)).last().unwrap_or_default();
        assert!(last.contains("closes the link") && last.contains("violation"), "{what}: {last}");
        let status = world.brokers.get_mut(&core).expect("it lives").status();
        assert_eq!((status.leaves.len(), status.forest_roots), (0, 0), "{what}");
        // What still comes over the closed link does nothing.
        for input in [message(attach(3)), arrival(frame("leaf", "core", &event("x", 1)))] {
            assert_eq!(lines(&mut world, core, input), "", "{what}");
        }
    }
}

#[test]
fn a_leaf_that_is_not_taken_in_says_nothing() {
    for early in [message(LeafMessage::Renew { number: 1 }), message(LeafMessage::Interest(whole(1, 0, &["x = 1"])))] {
        let mut world = World::new();
        let core = world.start("core");
        world.input(core, Input::LinkUp { link: LINK, neighbour: neighbour("leaf", Role::Leaf) });
        let stray = arrival(frame("leaf", "core", &event("x", 1)));
        assert_eq!(lines(&mut world, core, stray), "");
        assert_eq!(world.brokers.get_mut(&core).expect("it lives").status().counters.strays, 1);
        assert!(lines(&mut world, core, early).contains("violation"));
    }
}

#[test]
fn what_a_parent_says_is_checked() {
    let path = |names: &[&str]| message(LeafMessage::Path(names.iter().map(|name| BrokerId::of_peer(name)).collect()));
    let wrong: [(&str, Vec<Input>); 9] = [
        ("attach", vec![message(attach(1))]),
        ("renew", vec![message(LeafMessage::Renew { number: 1 })]),
        ("scope", vec![message(LeafMessage::Scope { version: 1, scope: Scope::Anything })]),
        ("another's path", vec![path(&["other"])]),
        ("a long path", vec![message(LeafMessage::Path(vec![BrokerId::of_peer("parent"); MAX_PATH + 1]))]),
        ("digest", vec![message(LeafMessage::Interest(but(whole(1, 0, &["x = 1"]), |part| part.digest = Digest(1))))]),
        ("core talk", vec![Input::Message { link: LINK, message: Message::SyncedAck }]),
        ("event for another", vec![arrival(frame("far", "other", &event("x", 1)))]),
        (
            "unreadable event",
            vec![arrival(EventFrame { event: vec![1].into(), ..frame("far", "leaf", &event("x", 1)) })],
        ),
    ];
    for (what, inputs) in wrong {
        let (mut world, leaf) = below_a_parent();
        let last = inputs.into_iter().map(|input| lines(&mut world, leaf, input)).last().unwrap_or_default();
        assert!(last.contains("closes the link") && last.contains("violation"), "{what}: {last}");
        let uplink = world.brokers.get_mut(&leaf).expect("it lives").status().uplink.expect("a leaf broker");
        assert_eq!((uplink.link, uplink.path.len()), (None, 0), "{what}");
    }
    // More than the leaf can hold.
    let mut world = World::new();
    world.config.leaf_table = 2;
    let leaf = world.start_leaf("leaf");
    world.input(leaf, Input::LinkUp { link: LINK, neighbour: neighbour("parent", Role::Parent) });
    lines(&mut world, leaf, path(&["parent"]));
    let interest = LeafMessage::Interest(whole(1, 0, &["x = 1", "x = 2", "x = 3"]));
    assert!(says(&mut world, leaf, interest).contains("violation"));
}

#[test]
fn who_cannot_be_a_parent_is_left_and_who_cannot_be_a_leaf_refused() {
    let (mut world, leaf) = below_a_parent();
    let cycle = ["parent", "leaf", "core"].map(BrokerId::of_peer).to_vec();
    assert!(says(&mut world, leaf, LeafMessage::Path(cycle)).contains("leads back through the leaf"));
    for (role, name, reason) in [
        (Role::Core, "core", "linked by its uplink only"),
        (Role::Parent, "leaf", "a connection to oneself"),
        (Role::Leaf, "leaf", "a connection to oneself"),
    ] {
        let neighbour = neighbour(name, role);
        let said = lines(&mut world, leaf, Input::LinkUp { link: LinkId(501), neighbour });
        assert!(said.contains(reason), "{said}");
    }
    let mut world = World::new();
    world.config.leaves = 1;
    let core = world.start("core");
    world.input(core, Input::LinkUp { link: LINK, neighbour: neighbour("leaf", Role::Leaf) });
    let second = Input::LinkUp { link: LinkId(501), neighbour: neighbour("second", Role::Leaf) };
    assert!(lines(&mut world, core, second).contains("no room for another leaf"));
    let parent = Input::LinkUp { link: LinkId(502), neighbour: neighbour("parent", Role::Parent) };
    assert!(lines(&mut world, core, parent).contains("a core broker has no uplink"));
}

/// Whoever stands on a parent's own path cannot hang below it.
#[test]
fn a_leaf_that_the_own_path_leads_through_is_refused() {
    let (mut world, leaf) = below_a_parent();
    let below = LinkId(501);
    let path = ["parent", "upper", "core"].map(BrokerId::of_peer).to_vec();
    says(&mut world, leaf, LeafMessage::Path(path));
    for (name, answer) in [("upper", "leads back through the leaf"), ("other", "path to the core")] {
        world.input(leaf, Input::LinkUp { link: below, neighbour: neighbour(name, Role::Leaf) });
        let said = lines(&mut world, leaf, Input::Message { link: below, message: Message::Leaf(attach(1)) });
        assert!(said.contains(answer), "{said}");
    }
}

/// What has gathered since too many steps are under way has to be told before there is a lease again.
#[test]
fn there_is_no_lease_before_all_is_told() {
    let (mut world, core) = beside_a_leaf();
    says(&mut world, core, LeafMessage::Scope { version: 1, scope: Scope::Anything });
    for number in 0..10 {
        world.subscribe(core, 1, &format!("s{number}"), &format!("x = {number}"));
    }
    assert_eq!(says(&mut world, core, LeafMessage::Renew { number: 1 }), "");
    let said = says(&mut world, core, LeafMessage::Held { step: 8, brokers: 0, missing: vec![] });
    let told = said.find("interest 9 for scope 1").expect("the rest is told");
    assert!(said.find("lease 1").expect("a lease") > told, "{said}");
}

/// Of two attachments of one leaf the later one stays, in whichever order they come.
#[test]
fn the_later_attachment_stays() {
    for (second_epoch, stays) in [(2, LinkId(501)), (1, LINK)] {
        let (mut world, core) = beside_a_leaf();
        world.input(core, Input::LinkUp { link: LinkId(501), neighbour: neighbour("leaf", Role::Leaf) });
        let input = Input::Message { link: LinkId(501), message: Message::Leaf(attach(second_epoch)) };
        assert!(lines(&mut world, core, input).contains("attached elsewhere by now"));
        let status = world.brokers.get_mut(&core).expect("it lives").status();
        assert_eq!(status.leaves.iter().map(|leaf| leaf.link).collect::<Vec<_>>(), [stays.0]);
    }
    // Word from elsewhere; an earlier attachment than the present one changes nothing.
    for (epoch, left) in [(1, 1), (2, 0)] {
        let (mut world, core) = beside_a_leaf();
        world.input(core, Input::LinkUp { link: LinkId(501), neighbour: neighbour("other", Role::Leaf) });
        world.input(core, Input::Message { link: LinkId(501), message: Message::Leaf(attach(7)) });
        let path = vec![core];
        let detach = Detach { leaf: BrokerId::of_peer("leaf"), incarnation: 1, epoch, path };
        world.input(core, Input::Message { link: LinkId(501), message: Message::Leaf(LeafMessage::Detach(detach)) });
        let status = world.brokers.get_mut(&core).expect("it lives").status();
        assert_eq!(status.leaves.iter().filter(|leaf| leaf.link == LINK.0).count(), left);
    }
}

/// Steps that a leaf tells without waiting for answers are bounded.
#[test]
fn a_leaf_that_tells_without_waiting_is_closed() {
    let (mut world, core) = beside_a_leaf();
    // A publisher that never acknowledges, so that no step is in force.
    let other = world.start("other");
    world.link(core, other);
    world.run();
    world.publish(other, 1, event("x", 1));
    world.run();
    world.lose(core, other);
    let mut said = String::new();
    let mut step = 0;
    while !said.contains("violation") && step < 100 {
        step += 1;
        said = says(&mut world, core, LeafMessage::Interest(whole(step, 0, &[&format!("x = {step}")])));
    }
    assert!((64..80).contains(&step), "closed after {step} steps");
}

/// A parent may be long in acknowledging: after a while it is told all that has gathered meanwhile, as one step.
#[test]
fn what_has_gathered_goes_up_after_a_while() {
    let (mut world, leaf) = below_a_parent();
    for number in 0..10 {
        world.subscribe(leaf, 1, &format!("s{number}"), &format!("x = {number}"));
    }
    let mut said = |span| {
        world.transcript = Some(Vec::new());
        world.advance(Duration::from_millis(span));
        world.transcript.take().unwrap_or_default().join("\n")
    };
    assert_eq!(said(249), "");
    let gathered = said(1);
    assert!(gathered.contains("interest 9 for scope 0: +[x = 7; x = 8; x = 9] -[]"), "{gathered}");
    assert_eq!(said(1_000), "");
}

/// A client of the parent is answered when the leaf holds its subscription, or can rely on nothing any more.
#[test]
fn a_subscription_waits_for_a_quenched_leaf_as_long_as_its_lease() {
    let (mut world, core) = beside_a_leaf();
    says(&mut world, core, LeafMessage::Scope { version: 1, scope: Scope::Anything });
    says(&mut world, core, LeafMessage::Held { step: 1, brokers: 0, missing: vec![] });
    assert!(says(&mut world, core, LeafMessage::Renew { number: 1 }).contains("lease 1, 2000 ms"));
    let first = world.subscribe(core, 1, "first", "x = 1");
    assert!(world.reply(core, 1, first).is_none());
    says(&mut world, core, LeafMessage::Held { step: 2, brokers: 0, missing: vec![] });
    assert_eq!(world.reply(core, 1, first), Some(&Reply::InForce { brokers: 0 }));
    let second = world.subscribe(core, 1, "second", "x = 2");
    world.advance(Duration::from_millis(2_900));
    assert!(world.reply(core, 1, second).is_none());
    world.advance(Duration::from_millis(200));
    assert_eq!(world.reply(core, 1, second), Some(&Reply::InForce { brokers: 0 }));
}

/// One that renews its lease and acknowledges nothing is waited for a little longer, but not for ever.
#[test]
fn a_leaf_that_acknowledges_nothing_holds_up_nobody_for_long() {
    let (mut world, core) = beside_a_leaf();
    says(&mut world, core, LeafMessage::Scope { version: 1, scope: Scope::Anything });
    says(&mut world, core, LeafMessage::Held { step: 1, brokers: 0, missing: vec![] });
    says(&mut world, core, LeafMessage::Renew { number: 1 });
    let request = world.subscribe(core, 1, "s", "x = 1");
    for number in 2..19 {
        world.advance(Duration::from_millis(500));
        says(&mut world, core, LeafMessage::Renew { number });
    }
    assert_eq!(world.reply(core, 1, request), None);
    world.advance(Duration::from_millis(500));
    assert_eq!(world.reply(core, 1, request), Some(&Reply::InForce { brokers: 0 }));
}

/// What a leaf had not begun to send over an uplink that it closed itself goes up over the next one, in order.
#[test]
fn unsent_events_of_a_closed_uplink_are_kept() {
    let (mut world, leaf) = below_a_parent();
    says(&mut world, leaf, LeafMessage::Path(vec![]));
    world.advance(Duration::from_secs(3));
    let up = |sequence| {
        let mut up = EventFrame { hop_limit: 31, ..frame("leaf", "parent", &event("x", 1)) };
        up.id.sequence = sequence;
        up
    };
    let down = EventFrame { hop_limit: 0, ..frame("leaf", "below", &event("x", 2)) };
    world.input(leaf, Input::LinkDown { link: LINK, unsent: vec![up(1), down, up(2)] });
    let kept = |world: &mut World| {
        world.brokers.get_mut(&leaf).expect("it lives").status().uplink.expect("a leaf").kept_events
    };
    assert_eq!(kept(&mut world), 2);
    let core = world.start("core");
    let request = world.subscribe(core, 1, "s", "TRUE");
    world.answer(core, 1, request);
    world.attach(leaf, core);
    world.advance(Duration::from_secs(6));
    let sequences: Vec<u64> = world.deliveries(core, 1).iter().map(|(id, _, _)| id.sequence).collect();
    assert_eq!((sequences, kept(&mut world)), (vec![1, 2], 0));
}

/// A leaf relies on what it holds from the time it asked, and no longer than it is told.
#[test]
fn a_lease_runs_from_the_question() {
    let (mut world, leaf) = below_a_parent();
    let publish = |world: &mut World| {
        let request = world.publish(leaf, 1, event("x", 1));
        world.reply(leaf, 1, request).cloned()
    };
    assert_eq!(publish(&mut world), None, "it waits for a lease");
    says(&mut world, leaf, LeafMessage::Interest(whole(1, 1, &["x = 2"])));
    world.advance(Duration::from_millis(400));
    let said = says(&mut world, leaf, LeafMessage::Lease { number: 1, lasts_us: 2_000_000 });
    assert!(said.contains("published 1, 0 destinations"), "{said}");
    let interested = |world: &mut World, value: i64| {
        let now = world.now;
        world.brokers.get_mut(&leaf).expect("it lives").interested(&event("x", value), now)
    };
    assert_eq!((interested(&mut world, 1), interested(&mut world, 2)), (Interested::No, Interested::Yes));
    world.advance(Duration::from_millis(1_599));
    assert_eq!(interested(&mut world, 1), Interested::No);
    world.advance(Duration::from_millis(1));
    assert_eq!(interested(&mut world, 1), Interested::Unknown);
    // An answer to a question that was never asked, and one to another scope, say nothing.
    says(&mut world, leaf, LeafMessage::Lease { number: 1, lasts_us: 2_000_000 });
    says(&mut world, leaf, LeafMessage::Lease { number: 99, lasts_us: 2_000_000 });
    assert_eq!(interested(&mut world, 1), Interested::Unknown);
    // Nor do clients here need the parent.
    let request = world.subscribe(leaf, 2, "own", "x = 1");
    assert_eq!(interested(&mut world, 1), Interested::Yes);
    assert!(world.reply(leaf, 2, request).is_none());
}

#[test]
fn above_its_table_a_leaf_is_told_anything() {
    let mut world = World::new();
    world.config.leaf_table = 3;
    let core = world.start("core");
    let leaf = world.start_leaf("leaf");
    world.attach(leaf, core);
    world.run();
    let request = world.publish(leaf, 1, event("x", 0));
    world.answer(leaf, 1, request);
    let told = |world: &mut World| world.brokers.get_mut(&core).expect("it lives").status().leaves[0].told;
    for number in 1..=6 {
        let request = world.subscribe(core, 1, &format!("s{number}"), &format!("x = {number}"));
        assert_eq!(world.answer(core, 1, request), Reply::InForce { brokers: 0 });
        assert_eq!(told(&mut world), if number <= 3 { number as u64 } else { 1 });
        let request = world.publish(leaf, 1, event("x", number));
        assert!(matches!(world.answer(leaf, 1, request), Reply::Published(receipt) if receipt.destinations == 1));
    }
    world.run();
    assert_eq!(world.deliveries(core, 1).len(), 6);
    assert!(world.notices.is_empty());
}

#[test]
fn what_is_kept_is_bounded_and_the_oldest_go() {
    let mut world = World::new();
    world.config.kept_events = 10;
    let core = world.start("core");
    let leaf = world.start_leaf("leaf");
    for number in 0..25 {
        let request = world.publish(leaf, 1, event("x", number));
        let Reply::Published(receipt) = world.answer(leaf, 1, request) else { panic!("not published") };
        assert!(!receipt.complete);
    }
    let request = world.subscribe(core, 1, "s", "x >= 0");
    world.answer(core, 1, request);
    world.attach(leaf, core);
    world.advance(Duration::from_secs(1));
    let values: Vec<_> = world.deliveries(core, 1).iter().map(|(id, _, _)| id.sequence).collect();
    assert_eq!(values, (16..=25).collect::<Vec<u64>>());
    let status = world.brokers.get_mut(&leaf).expect("it lives").status();
    assert_eq!((status.counters.lost_kept, status.uplink.expect("a leaf").kept_events), (15, 0));
}

/// A leaf and the one below it change places; what the lower one could not send up then goes up over the other.
#[test]
fn what_was_kept_above_goes_up_over_who_was_below() {
    let mut world = World::new();
    let core = world.start("core");
    let (upper, lower) = (world.start_leaf("upper"), world.start_leaf("lower"));
    let request = world.subscribe(core, 1, "s", "TRUE");
    world.answer(core, 1, request);
    world.attach(upper, core);
    world.run();
    world.attach(lower, upper);
    world.run();
    for leaf in [upper, lower] {
        let request = world.publish(leaf, 1, event("x", 0));
        world.answer(leaf, 1, request);
        world.subscribe(leaf, 2, "s", "TRUE");
    }
    world.run();
    world.cut(upper, core);
    for value in 1..=3 {
        world.publish(lower, 1, event("x", value));
        world.run();
    }
    world.cut(upper, lower);
    world.attach(lower, core);
    world.run();
    world.attach(upper, lower);
    world.advance(Duration::from_secs(1));
    assert_eq!(world.deliveries(core, 1).len(), 5);
    // The upper one's client also got the first event of the lower one's.
    assert_eq!([upper, lower].map(|leaf| world.deliveries(leaf, 2).len()), [4, 3], "nothing comes twice");
}

/// A core broker does not acknowledge: the leaf is told so in time, and does not take it for an answer the next time.
#[test]
fn a_partial_answer_comes_through_a_leaf_and_is_asked_for_again() {
    let mut world = World::new();
    let core = world.start("core");
    let (mute, link) = link_mute(&mut world, core);
    let message = mute_link_state(&world, mute, core);
    world.input(core, Input::Message { link, message });
    let record = ScopeRecord { origin: mute, version: Version { incarnation: 1, sequence: 1 }, scope: Scope::Anything };
    world.input(core, Input::Message { link, message: Message::Scope(record.into()) });
    let leaf = world.start_leaf("leaf");
    world.attach(leaf, core);
    world.run();
    for name in ["first", "covered by the first"] {
        let request = world.subscribe(leaf, 1, name, "x = 1");
        assert_eq!(world.answer(leaf, 1, request), Reply::Partial { missing: vec![mute] });
    }
    world.input(core, Input::LinkDown { link, unsent: vec![] });
    let request = world.subscribe(leaf, 1, "third", "x = 1");
    assert_eq!(world.answer(leaf, 1, request), Reply::InForce { brokers: 1 });
}

/// Without an uplink a subscription waits for one for two seconds, counted from when the last one was lost; after that it is
/// answered at once, also that of a leaf below. With the next uplink it is in force again.
#[test]
fn who_has_been_without_an_uplink_is_answered_at_once() {
    let mut world = World::new();
    let core = world.start("core");
    let (upper, lower) = (world.start_leaf("upper"), world.start_leaf("lower"));
    let early = world.subscribe(upper, 1, "early", "x = 1");
    world.advance(Duration::from_millis(1_900));
    assert_eq!(world.reply(upper, 1, early), None);
    world.attach(upper, core);
    world.run();
    assert_eq!(world.reply(upper, 1, early), Some(&Reply::InForce { brokers: 1 }));
    world.attach(lower, upper);
    world.run();
    world.cut(upper, core);
    world.run();
    let own = world.subscribe(upper, 1, "own", "x = 2");
    let below = world.subscribe(lower, 1, "below", "x = 3");
    world.advance(Duration::from_millis(1_000));
    // One that has no path itself makes no difference.
    let lonely = world.start_leaf("lonely");
    world.attach(upper, lonely);
    world.advance(Duration::from_millis(900));
    assert_eq!((world.reply(upper, 1, own), world.reply(lower, 1, below)), (None, None));
    world.advance(Duration::from_millis(200));
    assert_eq!(world.reply(upper, 1, own), Some(&Reply::Partial { missing: vec![upper] }));
    assert!(matches!(world.reply(lower, 1, below), Some(Reply::Partial { .. })), "{:?}", world.reply(lower, 1, below));
    let late = world.subscribe(upper, 1, "late", "x = 4");
    assert_eq!(world.reply(upper, 1, late), Some(&Reply::Partial { missing: vec![upper] }));
    world.attach(upper, core);
    world.run();
    let again = world.subscribe(upper, 1, "again", "x = 4");
    world.run();
    assert_eq!(world.reply(upper, 1, again), Some(&Reply::InForce { brokers: 1 }));
}
