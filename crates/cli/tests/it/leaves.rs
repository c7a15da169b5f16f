//! Leaf brokers as processes: how they hang off others, what goes up and down, and what happens when an uplink is lost.

use crate::files::Scratch;
use crate::network::Broker;
use crate::program::{Running, run};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Longer than any failover takes; a test that waits for it has failed.
const DEADLINE: Duration = Duration::from_secs(60);

fn status(broker: &Broker) -> Value {
    let status = run(&["status", "--json", "--broker", &broker.address], "");
    serde_json::from_str(&status.stdout).unwrap_or_else(|error| panic!("{error}: {}", status.stderr))
}

/// Asks for the status until it is as it should be.
fn until(broker: &Broker, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let status = status(broker);
        if condition(&status) {
            return status;
        }
        assert!(Instant::now() < deadline, "{what}: not in time; the status is {status:#}");
    }
}

/// Waits until a leaf is attached to a parent.
fn attached(leaf: &Broker, parent: &Broker) {
    until(leaf, "the attachment", |status| status["broker"]["uplink"]["path"][0] == *parent.id);
}

fn publish(broker: &Broker, numbers: impl IntoIterator<Item = u32>) {
    let lines: String = numbers.into_iter().map(|n| format!("{{\"n\":{n}}}\n")).collect();
    let published = run(&["pub", "--broker", &broker.address], lines);
    assert_eq!(published.code, Some(0), "{}", published.stderr);
}

/// The number of the next event.
fn number(subscriber: &mut Running) -> u32 {
    let line = subscriber.line();
    let number = line.strip_prefix("{\"n\":").and_then(|rest| rest.strip_suffix('}'));
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}

/// All numbers until both closing ones have come.
fn numbers(subscriber: &mut Running, closing: [u32; 2]) -> Vec<u32> {
    let mut received = Vec::new();
    while !closing.iter().all(|n| received.contains(n)) {
        received.push(number(subscriber));
    }
    received
}

#[test]
fn a_leaf_publishes_and_subscribes_through_its_uplink() {
    let core = Broker::start(&[]);
    let mut leaf = Broker::start(&["--leaf", core.plain_address()]);
    leaf.running.told("attached");
    let mut above = core.subscriber(&["n < 10"]);
    let mut below = leaf.subscriber(&["n >= 10"]);
    publish(&leaf, [1, 10, 2, 11]);
    publish(&core, [3, 12, 4, 13]);
    publish(&core, [5, 14]);
    let ups = [1, 2, 3, 4, 5];
    let downs = [10, 11, 12, 13, 14];
    assert_eq!(ups.map(|_| number(&mut above)), ups);
    assert_eq!(downs.map(|_| number(&mut below)), downs);

    let text = run(&["status", "--broker", &leaf.address], "");
    for part in ["role          leaf", "uplinks", &format!("path          {}", core.id), "kept for it   0 events"] {
        assert!(text.stdout.contains(part), "{part}: {}", text.stdout);
    }
    let text = run(&["status", "--broker", &core.address], "");
    for part in ["role          core", "leaves\n", &leaf.id] {
        assert!(text.stdout.contains(part), "{part}: {}", text.stdout);
    }
}

#[test]
fn two_leaves_of_one_parent_send_up_only_what_somebody_wants() {
    let parent = Broker::start(&[]);
    let publishing = Broker::start(&["--leaf", &parent.address]);
    let listening = Broker::start(&["--leaf", &parent.address]);
    attached(&publishing, &parent);
    attached(&listening, &parent);
    let mut subscriber = listening.subscriber(&["n >= 98"]);
    publish(&publishing, 0..100);
    assert_eq!([number(&mut subscriber), number(&mut subscriber)], [98, 99]);

    let above = status(&publishing);
    assert_eq!(above["broker"]["uplink"]["events_sent"], 2, "{above:#}");
    assert_eq!(above["broker"]["counters"]["quenched"], 98, "{above:#}");
    let between = status(&parent);
    let counts = |leaf: &Broker| {
        let leaves = between["broker"]["leaves"].as_array().into_iter().flatten();
        let entry = leaves.into_iter().find(|entry| entry["id"] == *leaf.id).expect("it is below");
        (entry["events_received"].as_u64(), entry["events_sent"].as_u64())
    };
    assert_eq!(counts(&publishing), (Some(2), Some(0)));
    assert_eq!(counts(&listening), (Some(0), Some(2)));
}

#[test]
fn a_leaf_whose_parent_is_killed_goes_on_below_the_next_and_gets_nothing_twice() {
    let second = Broker::start(&[]);
    let first = Broker::start(&["--peer", &second.address]);
    let mut leaf = Broker::start(&["--leaf", &first.address, &second.address]);
    attached(&leaf, &first);
    let mut below = leaf.subscriber(&["n IS NOT NULL"]);
    let mut above = second.subscriber(&["n IS NOT NULL"]);
    publish(&second, [1]);
    publish(&leaf, [2]);
    assert_eq!([number(&mut below), number(&mut below)], [1, 2]);
    assert_eq!([number(&mut above), number(&mut above)], [1, 2]);

    // Both publish all the time while the leaf changes its uplink. What is on its way through the first then is lost with it.
    let mut downwards = Running::start(&["pub", "--broker", &second.address]);
    let mut upwards = Running::start(&["pub", "--broker", &leaf.address]);
    let write = |publisher: &mut Running, numbers: std::ops::Range<u32>| {
        numbers.for_each(|n| publisher.write(format!("{{\"n\":{n}}}\n")));
    };
    write(&mut downwards, 1_000..1_100);
    write(&mut upwards, 2_000..2_100);
    let first_id = first.id.clone();
    first.running.kill();
    write(&mut downwards, 1_100..1_200);
    write(&mut upwards, 2_100..2_200);
    leaf.running.told("uplink down");
    attached(&leaf, &second);
    let again = leaf.subscriber(&["n IS NOT NULL"]);
    // From here on nothing may be lost.
    write(&mut downwards, 1_200..1_300);
    write(&mut upwards, 2_200..2_300);
    for publisher in [downwards, upwards] {
        let ended = publisher.end();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    publish(&second, [9_001]);
    publish(&leaf, [9_002]);
    drop(again);

    for (subscriber, far) in [(&mut below, 1_000), (&mut above, 2_000)] {
        let received = numbers(subscriber, [9_001, 9_002]);
        let of = |publisher: u32| received.iter().copied().filter(move |n| (publisher..publisher + 1_000).contains(n));
        for publisher in [1_000, 2_000] {
            assert!(of(publisher).is_sorted_by(|a, b| a < b), "each once, in order: {received:?}");
        }
        let near = 3_000 - far;
        assert!(of(near).eq(near..near + 300), "what is published at the same broker is not lost: {received:?}");
        let last = of(far).skip_while(|&n| n < far + 200);
        assert!(last.eq(far + 200..far + 300), "all since the subscription was in force again: {received:?}");
    }
    let uplinks = status(&leaf);
    assert_eq!(uplinks["peers"][0]["linked"], false, "{first_id} is dead: {uplinks:#}");
    assert_eq!(uplinks["peers"][1]["linked"], true, "{uplinks:#}");
}

#[test]
fn a_leaf_goes_on_without_its_uplink_and_sends_up_afterwards_what_it_kept() {
    let scratch = Scratch::new("leaf-offline");
    let data = scratch.path("parent");
    let far = Broker::start(&[]);
    let parent = Broker::start(&["--peer", &far.address, "--data-dir", &data]);
    let mut leaf = Broker::start(&["--leaf", &parent.address]);
    attached(&leaf, &parent);
    let mut here = leaf.subscriber(&["n IS NOT NULL"]);
    let mut there = far.subscriber(&["n IS NOT NULL"]);
    publish(&leaf, [1]);
    assert_eq!((number(&mut here), number(&mut there)), (1, 1));

    let listen = parent.plain_address().to_owned();
    parent.running.kill();
    leaf.running.told("uplink down");
    publish(&leaf, 2..50);
    (2..50).for_each(|n| assert_eq!(number(&mut here), n));
    let alone = status(&leaf);
    assert_eq!(alone["broker"]["uplink"]["kept_events"], 48, "{alone:#}");

    let parent = Broker::start_at(&listen, &["--peer", &far.address, "--data-dir", &data]);
    attached(&leaf, &parent);
    (2..50).for_each(|n| assert_eq!(number(&mut there), n));
    publish(&leaf, [50]);
    assert_eq!((number(&mut here), number(&mut there)), (50, 50));
    let together = status(&leaf);
    assert_eq!(together["broker"]["uplink"]["kept_events"], 0, "{together:#}");
    assert_eq!(together["broker"]["counters"]["lost_kept"], 0, "{together:#}");
}

#[test]
fn who_will_not_take_a_leaf_in_says_so_and_the_next_is_tried() {
    let core = Broker::start(&[]);
    // An uplink that hangs nowhere itself has no way to the core.
    let astray = Broker::start(&["--leaf", "/ip4/127.0.0.1/tcp/1"]);
    let mut leaf = Broker::start(&["--leaf", &astray.address, &core.address]);
    leaf.running.told("no path to a core broker");
    leaf.running.told("attached");
    attached(&leaf, &core);

    let mut peer = Broker::start(&["--peer", &leaf.address]);
    peer.running.told("a leaf broker is linked to no core broker");
    assert_eq!(status(&leaf)["broker"]["leaves"].as_array().map(Vec::len), Some(0));
}

#[test]
fn leaves_hang_off_leaves() {
    let core = Broker::start(&[]);
    let middle = Broker::start(&["--leaf", &core.address]);
    attached(&middle, &core);
    let low = Broker::start(&["--leaf", &middle.address]);
    let way = until(&low, "the attachment", |status| status["broker"]["uplink"]["path"][1] == *core.id);
    assert_eq!(way["broker"]["uplink"]["path"][0], *middle.id);
    let mut above = core.subscriber(&["n = 1"]);
    let mut below = low.subscriber(&["n = 2"]);
    publish(&low, 0..10);
    publish(&core, 0..10);
    assert_eq!([number(&mut above), number(&mut above)], [1, 1]);
    assert_eq!([number(&mut below), number(&mut below)], [2, 2]);
    assert_eq!(status(&low)["broker"]["uplink"]["events_sent"], 1);
    assert_eq!(status(&middle)["broker"]["uplink"]["events_received"], 1);
}

#[test]
fn a_broker_is_core_or_leaf() {
    let address = "/ip4/127.0.0.1/tcp/7440";
    let both = run(&["run", "--leaf", address, "--peer", address], "");
    assert_eq!(both.code, Some(2));
    assert!(both.stderr.contains("--leaf") && both.stderr.contains("--peer"), "{}", both.stderr);
    let scratch = Scratch::new("leaf-config");
    let file = scratch.write("leaf.toml", &format!("leaf = ['{address}']\npeers = ['{address}']\n"));
    let checked = run(&["config", "check", &file], "");
    assert_eq!(checked.code, Some(1));
    assert!(checked.stderr.contains("leaf"), "{}", checked.stderr);
}
