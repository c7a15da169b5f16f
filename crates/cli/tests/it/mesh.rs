//! Brokers as processes that make their network by themselves, each from the address of one member.

use crate::files::Scratch;
use crate::network::Broker;
use crate::program::run;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Longer than any healing takes; a test that waits for it has failed.
const DEADLINE: Duration = Duration::from_secs(90);

fn status(broker: &Broker) -> Value {
    let status = run(&["status", "--json", "--broker", &broker.address], "");
    serde_json::from_str(&status.stdout).unwrap_or_else(|error| panic!("{error}: {}", status.stderr))
}

/// Waits until what a look gives is as it should be.
fn until<T: std::fmt::Debug>(what: &str, look: impl Fn() -> T, condition: impl Fn(&T) -> bool) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let seen = look();
        if condition(&seen) {
            return seen;
        }
        assert!(Instant::now() < deadline, "{what}: not in time; it is {seen:#?}");
    }
}

/// What the brokers of a network say of it.
#[derive(Debug)]
struct View {
    /// Links in sync and links in all, of each broker.
    links: Vec<[usize; 2]>,
    /// The brokers that each can reach, itself included.
    reached: Vec<BTreeSet<String>>,
}

impl View {
    fn of(brokers: &[&Broker]) -> View {
        let list = |status: &Value, name: &str| status["broker"][name].as_array().cloned().unwrap_or_default();
        let statuses: Vec<Value> = brokers.iter().map(|broker| status(broker)).collect();
        let links = |status: &Value| {
            let links = list(status, "links");
            [links.iter().filter(|link| link["in_sync"] == true).count(), links.len()]
        };
        let reached = |status: &Value| {
            let brokers = list(status, "brokers").into_iter().filter(|broker| broker["reachable"] == true);
            brokers.filter_map(|broker| broker["id"].as_str().map(str::to_owned)).collect()
        };
        View { links: statuses.iter().map(links).collect(), reached: statuses.iter().map(reached).collect() }
    }
}

/// Waits until each of the brokers has at least 3 links and at most 8, and reaches all of them and nobody else.
fn meshed(what: &str, brokers: &[&Broker]) {
    let all: BTreeSet<String> = brokers.iter().map(|broker| broker.id.clone()).collect();
    until(
        what,
        || View::of(brokers),
        |view| {
            view.links.iter().all(|&[in_sync, links]| in_sync >= 3 && links <= 8)
                && view.reached.iter().all(|it| *it == all)
        },
    );
}

#[test]
fn ten_brokers_that_know_one_address_make_a_mesh_and_outlive_the_one() {
    let scratch = Scratch::new("mesh");
    let data = scratch.path("first");
    let first = Broker::start(&["--data-dir", &data]);
    let others: Vec<Broker> = (0..9).map(|_| Broker::start(&["--peer", first.plain_address()])).collect();
    let others: Vec<&Broker> = others.iter().collect();
    meshed("ten brokers", &[&[&first], &others[..]].concat());
    let text: String = others.iter().map(|it| run(&["status", "--broker", &it.address], "").stdout).collect();
    for part in ["configured", "chosen", "they dialled", "round trip", "members remembered"] {
        assert!(text.contains(part), "{part}: {text}");
    }

    // It has learnt whom else it could ask.
    let members = || std::fs::read_to_string(scratch.path("first/members")).unwrap_or_default();
    until("nine remembered", members, |text| text.lines().count() == 9);
    first.running.kill();
    meshed("nine brokers", &others);

    // Nobody has told it of any peer.
    let first = Broker::start(&["--data-dir", &data]);
    meshed("ten brokers again", &[&[&first], &others[..]].concat());
    let again = status(&first);
    assert_eq!(again["peers"].as_array().map(Vec::len), Some(0), "{again:#}");
    let mut subscriber = others[8].subscriber(&["n = 1", "--count", "1"]);
    assert_eq!(run(&["pub", "--broker", &first.address], "{\"n\":1}\n{\"n\":2}\n").code, Some(0));
    assert_eq!(subscriber.line(), "{\"n\":1}");
}

#[test]
fn who_is_not_allowed_learns_so_and_the_others_see_who_it_was() {
    let scratch = Scratch::new("refused");
    let key = |name: &str| {
        let data = scratch.path(name);
        let shown = run(&["key", "--data-dir", &data], "").stdout;
        let peer = shown.split_whitespace().find(|word| word.starts_with("12D3")).map(str::to_owned);
        (data, peer.unwrap_or_else(|| panic!("no peer id: {shown}")))
    };
    let (friend_data, friend_peer) = key("friend");
    let (stranger_data, stranger_peer) = key("stranger");
    let closed = Broker::start(&["--allow", &friend_peer]);
    let friend = Broker::start(&["--peer", &closed.address, "--data-dir", &friend_data]);
    let mut stranger = Broker::start(&["--peer", &closed.address, "--data-dir", &stranger_data]);
    stranger.running.told("not on the allow-list");
    let theirs = run(&["status", "--broker", &stranger.address], "").stdout;
    assert!(theirs.contains("not linked") && theirs.contains("not on the allow-list"), "{theirs}");
    let ours = run(&["status", "--broker", &closed.address], "").stdout;
    assert!(ours.contains("refused") && ours.contains(&stranger_peer) && ours.contains("allow-list"), "{ours}");
    let linked = |broker: &Broker| status(broker)["broker"]["links"].as_array().map(Vec::len);
    until("the friend's link", || linked(&friend), |links| *links == Some(1));
    assert_eq!(linked(&stranger), Some(0));
}
