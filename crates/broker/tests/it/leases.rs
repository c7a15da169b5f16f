//! What leases allow and what they hold up; which events go up and down between a leaf and its parent.

use crate::invariants::{link_mute, mute_link_state};
use crate::leaves::{LINK, arrival, attach, below_a_parent, beside_a_leaf, but, frame, lines, neighbour, says, whole};
use crate::world::{World, event};
use enroute_broker::*;
use std::time::Duration;

/// The link of a second leaf.
const SECOND: LinkId = LinkId(501);

const LEASE: LeafMessage = LeafMessage::Lease { number: 1, lasts_us: 2_000_000 };

fn over(world: &mut World, broker: BrokerId, link: LinkId, message: LeafMessage) -> String {
    lines(world, broker, Input::Message { link, message: Message::Leaf(message) })
}

fn held(step: u64) -> LeafMessage {
    LeafMessage::Held { step, brokers: 0, missing: Vec::new() }
}

/// A mute leaf is attached, and publishes anything.
fn attach_publisher(world: &mut World, broker: BrokerId, link: LinkId, name: &str) {
    world.input(broker, Input::LinkUp { link, neighbour: neighbour(name, Role::Leaf) });
    assert!(over(world, broker, link, attach(1)).contains("path to the core"));
    over(world, broker, link, LeafMessage::Scope { version: 1, scope: Scope::Anything });
    over(world, broker, link, held(1));
}

/// A leaf broker between a mute parent, which has given it a lease, and a mute leaf that publishes.
fn between() -> (World, BrokerId) {
    let (mut world, middle) = below_a_parent();
    attach_publisher(&mut world, middle, SECOND, "below");
    says(&mut world, middle, LeafMessage::Interest(whole(1, 1, &["x = 2"])));
    over(&mut world, middle, SECOND, held(2));
    assert_eq!(says(&mut world, middle, LEASE), "");
    (world, middle)
}

fn interested(world: &mut World, leaf: BrokerId, value: i64) -> Interested {
    let now = world.now;
    world.brokers.get_mut(&leaf).expect("it lives").interested(&event("x", value), now)
}

/// A leaf below a mute parent, with a client that has published and a lease by which only `x = 2` is wanted.
fn leased() -> (World, BrokerId) {
    let (mut world, leaf) = below_a_parent();
    world.publish(leaf, 1, event("x", 1));
    says(&mut world, leaf, LeafMessage::Interest(whole(1, 1, &["x = 2"])));
    says(&mut world, leaf, LEASE);
    assert_eq!(interested(&mut world, leaf, 1), Interested::No);
    (world, leaf)
}

/// A lease is given while the view is complete; when a broker appears that has not said what it wants, it is revoked.
#[test]
fn a_lease_goes_with_the_complete_view() {
    let mut world = World::new();
    let core = world.start("core");
    attach_publisher(&mut world, core, SECOND, "second");
    let renew = |world: &mut World, number| over(world, core, SECOND, LeafMessage::Renew { number });
    assert!(renew(&mut world, 1).contains("lease 1"));
    world.transcript = Some(Vec::new());
    let (mute, link) = link_mute(&mut world, core);
    let said = world.transcript.take().unwrap_or_default().join("\n");
    assert_eq!(said.matches("no lease until the next").count(), 1, "{said}");
    let state = mute_link_state(&world, mute, core);
    world.input(core, Input::Message { link, message: state });
    assert_eq!(renew(&mut world, 2), "");
    let said = lines(&mut world, core, Input::LinkDown { link, unsent: vec![] });
    assert!(said.contains("lease 2"), "{said}");
}

/// A leaf does not rely on what it holds when the lease is revoked, the uplink lost, or the scope another one.
#[test]
fn a_lease_ends_with_what_it_was_given_for() {
    let parts: [(&str, Input); 3] = [
        ("revoked", Input::Message { link: LINK, message: Message::Leaf(LeafMessage::Revoke) }),
        ("no uplink", Input::LinkDown { link: LINK, unsent: vec![] }),
        (
            "a wider scope",
            Input::Command {
                client: ClientId(2),
                request: RequestId(99),
                command: Command::Advertise {
                    name: "wide".into(),
                    filter: enroute_filter::Filter::parse("y = 1").expect("a filter"),
                },
            },
        ),
    ];
    for (what, input) in parts {
        let (mut world, leaf) = below_a_parent();
        let narrow = enroute_filter::Filter::parse("x >= 0").expect("a filter");
        world.command(leaf, 1, Command::Advertise { name: "narrow".into(), filter: narrow });
        says(&mut world, leaf, LeafMessage::Interest(whole(1, 1, &["x = 2"])));
        says(&mut world, leaf, LEASE);
        assert_eq!(interested(&mut world, leaf, 1), Interested::No, "{what}");
        world.input(leaf, input);
        assert_eq!(interested(&mut world, leaf, 1), Interested::Unknown, "{what}");
    }
    // Nor is there a lease while what it holds answers an earlier scope.
    let (mut world, leaf) = below_a_parent();
    world.publish(leaf, 1, event("x", 1));
    says(&mut world, leaf, LeafMessage::Interest(whole(1, 0, &["x = 2"])));
    says(&mut world, leaf, LEASE);
    assert_eq!(interested(&mut world, leaf, 1), Interested::Unknown);
}

/// When the last publisher is gone a leaf forgets what others want. A change of it that was on its way then says nothing, also not
/// when somebody publishes again; but what answers the present scope must come out right.
#[test]
fn a_leaf_that_has_fallen_silent_takes_no_changes_of_what_it_has_forgotten() {
    let change = |version, scope_version| {
        let digest = Digest(1);
        LeafMessage::Interest(but(whole(version, scope_version, &["x = 3"]), |part| {
            (part.whole, part.digest) = (false, digest)
        }))
    };
    let (mut world, leaf) = leased();
    world.input(leaf, Input::ClientDisconnected { client: ClientId(1) });
    world.transcript = Some(Vec::new());
    let narrowing = world.config.narrowing;
    world.advance(narrowing + Duration::from_secs(1));
    let said = world.transcript.take().unwrap_or_default().join("\n");
    assert!(said.contains("scope 2: nobody"), "{said}");
    assert_eq!(says(&mut world, leaf, change(2, 1)), "");
    world.publish(leaf, 2, event("x", 1));
    assert_eq!(says(&mut world, leaf, change(3, 1)), "");
    assert_eq!(says(&mut world, leaf, LeafMessage::Interest(whole(4, 1, &["x = 4"]))), "");
    assert_eq!(world.status(leaf).uplink.expect("a leaf broker").interest, 0);
    let again = says(&mut world, leaf, LeafMessage::Interest(whole(1, 3, &["x = 2"])));
    assert!(again.contains("interest 1 is held"), "{again}");
    let wrong = says(&mut world, leaf, change(2, 3));
    assert!(wrong.contains("closes the link") && wrong.contains("violation"), "{wrong}");
}

/// A step that does not come out right ends the attachment, and yet the next parent's words are taken for what they add to it:
/// what they find there already must count.
#[test]
fn a_wrong_step_leaves_nothing_that_is_held_and_not_heeded() {
    let (mut world, leaf) = leased();
    let filter = enroute_filter::Filter::parse("x = 1").expect("a filter");
    world.brokers.get_mut(&leaf).expect("it lives").watch(WatchId(1), filter);
    let gone = whole(1, 1, &["x = 2"]).part.added.clone();
    let wrong = but(whole(2, 1, &["x = 1"]), |part| {
        (part.whole, part.removed, part.digest) = (false, gone, Digest(1));
    });
    let said = says(&mut world, leaf, LeafMessage::Interest(wrong));
    assert!(said.contains("closes the link") && said.contains("violation"), "{said}");
    world.input(leaf, Input::LinkUp { link: LINK, neighbour: neighbour("second", Role::Parent) });
    says(&mut world, leaf, LeafMessage::Path(vec![BrokerId::of_peer("second")]));
    says(&mut world, leaf, LeafMessage::Interest(whole(1, 1, &["x = 1"])));
    says(&mut world, leaf, LeafMessage::Lease { number: 2, lasts_us: 2_000_000 });
    assert_eq!([1, 2].map(|value| interested(&mut world, leaf, value)), [Interested::Yes, Interested::No]);
    let watched = world.brokers.get_mut(&leaf).expect("it lives").take_watched();
    assert_eq!(watched, [(WatchId(1), Interested::Yes)]);
    let said =
        lines(&mut world, leaf, Input::Publish { client: ClientId(1), request: RequestId(99), event: event("x", 1) });
    assert!(said.contains("for second"), "{said}");
}

/// Without a lease what a leaf holds says nothing: what has waited long enough goes up, wanted or not.
#[test]
fn without_a_lease_nothing_is_held_back() {
    let (mut world, leaf) = leased();
    let said = |world: &mut World| {
        world.transcript = Some(Vec::new());
        world.publish(leaf, 1, event("x", 1));
        world.advance(Duration::from_secs(6));
        world.transcript.take().unwrap_or_default().join("\n")
    };
    world.advance(Duration::from_secs(2));
    let unquenched = said(&mut world);
    assert!(unquenched.contains("event leaf/2 for parent") && unquenched.contains("view incomplete"), "{unquenched}");
}

/// A leaf gives leases that end with its own, from whenever they are asked for.
#[test]
fn a_lease_does_not_outlast_that_of_the_one_who_gives_it() {
    let (mut world, middle) = between();
    world.advance(Duration::from_millis(1_200));
    let said = over(&mut world, middle, SECOND, LeafMessage::Renew { number: 1 });
    assert!(said.contains("lease 1, 800 ms"), "{said}");
    world.advance(Duration::from_millis(800));
    assert_eq!(over(&mut world, middle, SECOND, LeafMessage::Renew { number: 2 }), "");
}

/// Nobody is told that an interest is held before the leaves below that rely on theirs hold it: neither the parent, nor another
/// core broker, nor another leaf.
#[test]
fn acknowledgements_wait_for_the_leaves_below() {
    let (mut world, middle) = between();
    assert!(over(&mut world, middle, SECOND, LeafMessage::Renew { number: 1 }).contains("lease 1"));
    let more = whole(2, 1, &["x = 3"]);
    let digest = whole(2, 1, &["x = 2", "x = 3"]).part.digest;
    let said =
        says(&mut world, middle, LeafMessage::Interest(but(more, |part| (part.whole, part.digest) = (false, digest))));
    assert!(said.contains("interest 3 for scope 1: +[x = 3]") && !said.contains("is held"), "{said}");
    let said = over(&mut world, middle, SECOND, held(3));
    assert!(said.contains("interest 2 is held"), "{said}");

    let (mut world, core) = beside_a_leaf();
    says(&mut world, core, LeafMessage::Scope { version: 1, scope: Scope::Anything });
    says(&mut world, core, held(1));
    let other = world.start("other");
    world.link(core, other);
    world.run();
    world.advance(Duration::from_secs(1));
    assert!(says(&mut world, core, LeafMessage::Renew { number: 1 }).contains("lease 1"));
    let request = world.subscribe(other, 1, "s", "x = 1");
    world.run();
    assert_eq!(world.reply(other, 1, request), None);
    says(&mut world, core, held(2));
    world.run();
    assert_eq!(world.reply(other, 1, request), Some(&Reply::InForce { brokers: 1 }));

    attach_publisher(&mut world, core, SECOND, "second");
    says(&mut world, core, LeafMessage::Renew { number: 2 });
    let said = over(&mut world, core, SECOND, LeafMessage::Interest(whole(1, 0, &["y = 1"])));
    assert!(said.contains("+[y = 1]") && !said.contains("is held"), "{said}");
    assert!(says(&mut world, core, held(3)).contains("interest 1 is held"));
}

/// A leaf is not told what only it wants itself, neither in the whole nor in a step.
#[test]
fn a_leaf_is_not_told_its_own_interest() {
    let (mut world, core) = beside_a_leaf();
    says(&mut world, core, LeafMessage::Interest(whole(1, 0, &["x = 1", "x = 2"])));
    world.subscribe(core, 1, "s", "x = 2");
    let said = says(&mut world, core, LeafMessage::Scope { version: 1, scope: Scope::Anything });
    assert!(said.contains("whole interest 1 for scope 1: +[x = 2] -[]"), "{said}");
    let all = whole(2, 0, &["x = 1", "x = 2", "x = 3"]);
    let more = but(whole(2, 0, &["x = 3"]), |part| (part.whole, part.digest) = (false, all.part.digest));
    let said = says(&mut world, core, LeafMessage::Interest(more));
    assert!(!said.contains("x = 3"), "{said}");
}

/// An event goes to whoever is here and above, and not back to the leaf it came from; the second time it is known.
#[test]
fn what_comes_up_goes_once_and_not_back() {
    let (mut world, core) = beside_a_leaf();
    says(&mut world, core, LeafMessage::Interest(whole(1, 0, &["x = 1"])));
    world.subscribe(core, 1, "s", "x = 1");
    let said = lines(&mut world, core, arrival(frame("leaf", "core", &event("x", 1))));
    assert_eq!(said, "core delivers event leaf/1 to client 1: s");
    assert_eq!(lines(&mut world, core, arrival(frame("leaf", "core", &event("x", 1)))), "");
    assert_eq!(world.brokers.get_mut(&core).expect("it lives").status().counters.seen_again, 1);
}

/// What comes down is delivered once, whoever it comes from, and what was published here not at all.
#[test]
fn what_comes_down_is_known_again() {
    let (mut world, leaf) = leased();
    world.subscribe(leaf, 2, "s", "x = 1");
    let other = |sequence| {
        let mut frame = frame("far", "leaf", &event("x", 1));
        frame.id.sequence = sequence;
        arrival(frame)
    };
    assert_eq!(lines(&mut world, leaf, other(1)), "leaf delivers event far/1 to client 2: s");
    assert_eq!(lines(&mut world, leaf, other(1)), "");
    let mut own = frame("leaf", "leaf", &event("x", 1));
    own.id.incarnation = world.brokers[&leaf].incarnation();
    assert_eq!(lines(&mut world, leaf, arrival(own)), "");
    assert_eq!(lines(&mut world, leaf, other(2)), "leaf delivers event far/2 to client 2: s");
}

/// What a leaf has seen from above goes up again if it comes from below, but is not delivered again; with no hops left nothing
/// goes up.
#[test]
fn what_comes_round_goes_up_and_is_not_delivered_again() {
    let (mut world, middle) = below_a_parent();
    attach_publisher(&mut world, middle, SECOND, "below");
    world.subscribe(middle, 1, "s", "x = 2");
    says(&mut world, middle, LeafMessage::Interest(whole(1, 1, &["x = 2"])));
    says(&mut world, middle, LEASE);
    let from_above = frame("far", "leaf", &event("x", 2));
    assert!(lines(&mut world, middle, arrival(from_above.clone())).contains("leaf delivers event far/1"));
    let from_below = |hop_limit| Input::Event { link: SECOND, frame: EventFrame { hop_limit, ..from_above.clone() } };
    assert_eq!(lines(&mut world, middle, from_below(3)), "leaf -> nowhere: event far/1 for parent, 2 hops");
    assert_eq!(lines(&mut world, middle, from_below(0)), "");
    assert_eq!(world.brokers.get_mut(&middle).expect("it lives").status().counters.lost_hop_limit, 1);
}

/// What was kept goes up when there is a lease, and only what is wanted.
#[test]
fn what_was_kept_waits_for_a_lease() {
    let (mut world, leaf) = below_a_parent();
    world.input(leaf, Input::LinkDown { link: LINK, unsent: vec![] });
    for value in 1..=2 {
        world.publish(leaf, 1, event("x", value));
    }
    world.input(leaf, Input::LinkUp { link: LINK, neighbour: neighbour("parent", Role::Parent) });
    let said = says(&mut world, leaf, LeafMessage::Path(vec![BrokerId::of_peer("parent")]));
    assert!(said.contains("question 1 for a lease") && !said.contains("event"), "{said}");
    says(&mut world, leaf, LeafMessage::Interest(whole(1, 1, &["x = 2"])));
    assert_eq!(says(&mut world, leaf, LEASE), "leaf -> nowhere: event leaf/2 for parent, 31 hops");
}

/// What a leaf had sent before it moved still counts, over the link that it has left; what it sends to a parent that has not
/// taken it in does not.
#[test]
fn what_was_sent_before_a_move_counts() {
    let (mut world, core) = beside_a_leaf();
    world.subscribe(core, 1, "s", "x = 1");
    world.input(core, Input::LinkUp { link: SECOND, neighbour: neighbour("leaf", Role::Leaf) });
    let moved = LeafMessage::Attach(Attach { epoch: 2, previous: vec![core], table: 100 });
    assert!(over(&mut world, core, SECOND, moved).contains("attached elsewhere by now"));
    let said = lines(&mut world, core, arrival(frame("leaf", "core", &event("x", 1))));
    assert_eq!(said, "core delivers event leaf/1 to client 1: s");
}

/// Nobody else speaks for a leaf that hangs here and has hung nowhere else in this life; for one that has moved, others may.
#[test]
fn nobody_publishes_under_the_name_of_a_leaf_that_never_moved() {
    for (previous, incarnation, said) in [
        (vec![], 1, ""),
        (vec![], 2, "core delivers event leaf/1 to client 1: s"),
        (vec![BrokerId::of_peer("second")], 1, "core delivers event leaf/1 to client 1: s"),
    ] {
        let (mut world, core) = beside_a_leaf();
        world.subscribe(core, 1, "s", "x = 1");
        if !previous.is_empty() {
            world.input(core, Input::LinkDown { link: LINK, unsent: vec![] });
            world.input(core, Input::LinkUp { link: LINK, neighbour: neighbour("leaf", Role::Leaf) });
            says(&mut world, core, LeafMessage::Attach(Attach { epoch: 2, previous, table: 100 }));
        }
        world.input(core, Input::LinkUp { link: SECOND, neighbour: neighbour("second", Role::Leaf) });
        over(&mut world, core, SECOND, attach(1));
        let mut claimed = frame("leaf", "core", &event("x", 1));
        claimed.id.incarnation = incarnation;
        assert_eq!(lines(&mut world, core, Input::Event { link: SECOND, frame: claimed }), said);
        let own = lines(&mut world, core, arrival(frame("leaf", "core", &event("x", 1))));
        assert_eq!(own.is_empty(), incarnation == 1 && !said.is_empty(), "{own}");
    }
}

/// What leaves may publish is part of the scope while they are there, and no longer than any scope afterwards.
#[test]
fn the_scope_of_a_leaf_goes_with_it() {
    let (mut world, core) = beside_a_leaf();
    let scope = |world: &mut World| world.brokers.get_mut(&core).expect("it lives").status().scope;
    says(&mut world, core, LeafMessage::Scope { version: 1, scope: Scope::Anything });
    assert_eq!(scope(&mut world), "anything");
    world.input(core, Input::LinkDown { link: LINK, unsent: vec![] });
    world.advance(Duration::from_secs(601));
    assert_eq!(scope(&mut world), "nobody");
}

/// A core broker with a leaf that publishes and has a lease, and with a mute neighbour over the link that is given.
fn between_a_leaf_and_a_mute() -> (World, BrokerId, BrokerId, LinkId) {
    let mut world = World::new();
    let core = world.start("core");
    attach_publisher(&mut world, core, SECOND, "second");
    assert!(over(&mut world, core, SECOND, LeafMessage::Renew { number: 1 }).contains("lease 1"));
    let (mute, link) = link_mute(&mut world, core);
    let state = mute_link_state(&world, mute, core);
    world.input(core, Input::Message { link, message: state });
    (world, core, mute, link)
}

fn data(source: BrokerId, destination: BrokerId, epoch: u64, sequence: u64, payload: Payload) -> Routed {
    let life = |broker| Life { broker, incarnation: 1 };
    let body = RoutedBody::Data { epoch, sequence, payload };
    Routed { source: life(source), destination: life(destination), passed: 0, body }
}

/// However often somebody says something while a leaf has not taken in what it is told, it is owed one acknowledgement for all.
#[test]
fn acknowledgements_that_wait_for_a_leaf_do_not_pile_up() {
    let (mut world, core, mute, link) = between_a_leaf_and_a_mute();
    let letter = |epoch, sequence, payload| data(mute, core, epoch, sequence, payload);
    let interest = letter(1, 1, Payload::Interest(whole(1, 1, &["x = 2"])));
    let more = (2..1_000).map(|sequence| letter(1, sequence, Payload::Resync { version: 1 }));
    // Nor if it begins anew all the time.
    let anew = (2..20).map(|epoch| letter(epoch, 1, Payload::Resync { version: 1 }));
    let letters = Letters([interest].into_iter().chain(more).chain(anew).collect());
    let said = lines(&mut world, core, Input::Message { link, message: Message::Routed(letters) });
    assert!(said.contains("x = 2") && !said.contains("got "), "{said}");
    let said = over(&mut world, core, SECOND, held(2));
    assert_eq!((said.matches("got ").count(), said.matches("got 19:1").count()), (1, 1), "{said}");
    // If what is wanted changes each time, it is owed some, each for more than the one before.
    for sequence in 2..100 {
        let filter = format!("x = {sequence}");
        let letter = letter(19, sequence, Payload::Interest(whole(1, sequence, &[&filter])));
        world.input(core, Input::Message { link, message: Message::Routed(Letters(vec![letter])) });
    }
    world.transcript = Some(Vec::new());
    for step in 3..=11 {
        world.input(core, Input::Message { link: SECOND, message: Message::Leaf(held(step)) });
    }
    world.advance(Duration::from_millis(5));
    let said = world.transcript.take().unwrap_or_default().join("\n");
    assert_eq!((said.matches("got 19:").count(), said.contains("got 19:99")), (16, true), "{said}");
}

/// What is said again while its acknowledgement is owed is acknowledged when the first would be, and once.
#[test]
fn what_is_said_again_puts_no_acknowledgement_off() {
    let (mut world, core, mute, link) = between_a_leaf_and_a_mute();
    let letter = data(mute, core, 1, 1, Payload::Interest(whole(1, 1, &["x = 2"])));
    let say = || Input::Message { link, message: Message::Routed(Letters(vec![letter.clone()])) };
    world.input(core, say());
    world.subscribe(core, 1, "s", "x = 7");
    world.input(core, say());
    let acknowledged = [2, 3].map(|step| over(&mut world, core, SECOND, held(step)).matches("got 1:1").count());
    assert_eq!(acknowledged, [1, 0]);
}
