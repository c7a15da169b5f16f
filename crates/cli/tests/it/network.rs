//! Brokers, publishers and subscribers as processes of their own.

use crate::files::Scratch;
use crate::program::{Running, enroute, run};

pub(crate) const JANUARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/nyc-2013-01.jsonl.gz");

/// A running broker.
pub(crate) struct Broker {
    pub(crate) running: Running,
    pub(crate) id: String,
    /// With /p2p/ID.
    pub(crate) address: String,
}

impl Broker {
    /// Starts one on a free port.
    pub(crate) fn start(more: &[&str]) -> Broker {
        Broker::start_at("/ip4/127.0.0.1/tcp/0", more)
    }

    pub(crate) fn start_at(listen: &str, more: &[&str]) -> Broker {
        let mut running = Running::start(&[&["run", "--listen", listen], more].concat());
        let id = running.line().strip_prefix("id ").unwrap().to_owned();
        let peer = running.line().strip_prefix("peer ").unwrap().to_owned();
        let address = running.line().strip_prefix("listening ").unwrap().to_owned();
        assert!(address.ends_with(&format!("/p2p/{peer}")), "{address}");
        Broker { running, id, address }
    }

    /// The address without the peer id.
    pub(crate) fn plain_address(&self) -> &str {
        self.address.split("/p2p/").next().unwrap()
    }

    /// A subscriber whose subscription is in force.
    pub(crate) fn subscriber(&self, arguments: &[&str]) -> Running {
        let mut running = Running::start(&[&["sub", "--broker", &self.address], arguments].concat());
        running.told("in force at ");
        running
    }
}

#[test]
fn an_event_goes_from_shell_to_shell() {
    let there = Broker::start(&[]);
    let here = Broker::start(&["--peer", there.plain_address()]);
    let mut subscriber = there.subscriber(&["a >= 2 and kind = 'x'", "--count", "2"]);
    let input = "{\"kind\":\"x\",\"a\":1}\n{\"kind\":\"x\",\"a\":2,\"b\":{\"c\":1.5}}\n\n{\"kind\":\"y\",\"a\":3}\n{\"kind\":\"x\",\"a\":4}";
    let published = run(&["pub", "--broker", &here.address], input);
    assert_eq!(published.code, Some(0), "{}", published.stderr);
    assert!(published.stderr.contains("published 4 events"), "{}", published.stderr);
    assert!(published.stderr.contains(" 2 to other brokers"), "{}", published.stderr);
    assert_eq!(published.stdout, "");
    assert_eq!(subscriber.line(), r#"{"a":2,"b.c":1.5,"kind":"x"}"#);
    assert_eq!(subscriber.line(), r#"{"a":4,"kind":"x"}"#);
    let ended = subscriber.end();
    assert_eq!((ended.code, ended.stdout.lines().count()), (Some(0), 2));
}

#[test]
fn status_shows_what_merging_makes_of_the_roots_and_what_these_say() {
    let scratch = Scratch::new("merging");
    let file = scratch.write("merging.toml", "merge = true\nmerge_filters = 50\nmerge_false_interest = 0.02\n");
    let broker = Broker::start(&["--config", &file]);
    let text = run(&["status", "--broker", &broker.address], "").stdout;
    let merging = "merging       at most 50 filters to announce within 2.0 % of false interest: no events yet; 0 of 0 events came for nobody";
    assert!(text.contains(merging), "{text}");
    let mut subscribers: Vec<Running> =
        (1..4).map(|n| broker.subscriber(&[&format!("dest = '{n}' and delay >= {}", 10 * (n % 2))])).collect();
    let published = run(&["pub", "--broker", &broker.address], "{\"dest\":\"2\",\"delay\":7}\n");
    assert_eq!(published.code, Some(0), "{}", published.stderr);
    assert_eq!(subscribers[1].line(), r#"{"delay":7,"dest":"2"}"#);

    let text = run(&["status", "--broker", &broker.address], "").stdout;
    let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    for line in ["attribute roots predicates deep", "delay 3 2 2", "dest 3 3 1"] {
        assert!(words.contains(&line.split(' ').collect()), "{line}: {text}");
    }
    assert!(text.contains("3 filters in the forest, 3 roots, merged into 2, which others are told"), "{text}");
}

#[test]
fn a_month_from_a_compressed_file() {
    let there = Broker::start(&[]);
    let here = Broker::start(&["--peer", &there.address]);
    let subscriber = there.subscriber(&[
        "kind='flight' and dest='SFO' and dep_delay>=60 and time_hour < TIMESTAMP '2013-02-02T00:00:00Z'",
        "--count",
        "31",
    ]);
    let published = run(&["pub", "--broker", &here.address, "--time", "time_hour", JANUARY], "");
    assert_eq!(published.code, Some(0), "{}", published.stderr);
    assert!(published.stderr.contains("published 29,230 events"), "{}", published.stderr);
    assert!(published.stderr.contains(" 31 to other brokers"), "{}", published.stderr);
    let ended = subscriber.end();
    assert_eq!((ended.code, ended.stdout.lines().count()), (Some(0), 31));
}

#[test]
fn bad_lines_are_reported_by_number_and_skipped() {
    let broker = Broker::start(&[]);
    let subscriber = broker.subscriber(&["a = 1", "--count", "2"]);
    let input = "{\"a\":1}\nnonsense\n\n{\"a\":1,\"a\":2}\n{\"a\":1,\"list\":[1]}\n";
    let published = run(&["pub", "--broker", &broker.address, "-"], input);
    assert_eq!(published.code, Some(1));
    for part in
        ["error: line 2: ", "error: line 4: ", "warning: ", "line 5", "published 2 events", "2 lines not published"]
    {
        assert!(published.stderr.contains(part), "{part}: {}", published.stderr);
    }
    assert_eq!(subscriber.end().code, Some(0));
}

#[test]
fn strict_stops_at_the_first_bad_line() {
    let broker = Broker::start(&[]);
    let input = "{\"a\":1}\n{\"a\":[1]}\n{\"a\":1}\nnonsense\n";
    let published = run(&["pub", "--strict", "--broker", &broker.address], input);
    assert_eq!(published.code, Some(1));
    assert!(published.stderr.contains("error: line 2: "), "{}", published.stderr);
    assert!(!published.stderr.contains("line 4"), "{}", published.stderr);
    assert!(published.stderr.contains("published 1 event in"), "{}", published.stderr);
}

#[test]
fn what_is_not_advertised_is_refused() {
    let broker = Broker::start(&[]);
    let input = "{\"kind\":\"x\"}\n{\"kind\":\"y\"}\n";
    let published = run(&["pub", "--broker", &broker.address, "--advertise", "kind = 'x'"], input);
    assert_eq!(published.code, Some(1));
    assert!(published.stderr.contains("error: line 2: "), "{}", published.stderr);
    assert!(published.stderr.contains("advertise"), "{}", published.stderr);
}

#[test]
fn full_output_names_the_subscriptions() {
    let broker = Broker::start(&[]);
    let mut subscriber = broker.subscriber(&["a = 1", "a < 5", "a = 2", "--full", "--count", "1"]);
    subscriber.told("in force at ");
    subscriber.told("in force at ");
    assert_eq!(run(&["pub", "--broker", &broker.address], "{\"a\":1}").code, Some(0));
    let full: serde_json::Value = serde_json::from_str(&subscriber.line()).unwrap();
    assert!(full["id"].as_str().unwrap().starts_with(&broker.id), "{full}");
    assert_eq!(full["subscriptions"], serde_json::json!(["1", "2"]));
    assert_eq!(full["attributes"], serde_json::json!({ "a": 1 }));
    assert_eq!(full["payload"], "");
}

#[test]
fn the_time_runs_out() {
    let broker = Broker::start(&[]);
    let ended = broker.subscriber(&["a = 1", "--timeout", "100ms"]).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let ended = broker.subscriber(&["a = 1", "--timeout", "0.1", "--count", "1"]).end();
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("error: the time is up after 0 of 1 events"), "{}", ended.stderr);
}

#[test]
fn nobody_there() {
    for command in [&["sub", "a"][..], &["pub"], &["advertise", "a"], &["status"]] {
        // Nobody listens at port 1 of loopback.
        let ended = run(&[command, &["--broker", "/ip4/127.0.0.1/tcp/1"]].concat(), "");
        assert_eq!(ended.code, Some(1), "{command:?}: {}", ended.stderr);
        assert!(ended.stderr.starts_with("error: ") && ended.stderr.contains("hint: "), "{}", ended.stderr);
    }
    assert_eq!(run(&["status", "--broker", "nonsense"], "").code, Some(2));
}

#[test]
fn the_broker_comes_from_the_environment() {
    let broker = Broker::start(&[]);
    let output = enroute(&["status", "--json"]).env("ENROUTE_BROKER", &broker.address).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["broker"]["id"], broker.id);
}

#[test]
fn status_shows_neighbours_and_interest() {
    let there = Broker::start(&[]);
    let here = Broker::start(&["--peer", &there.address]);
    let _subscriber = there.subscriber(&["a > 1", "a > 2"]);
    // A publication waits until the brokers know of each other.
    assert_eq!(run(&["pub", "--broker", &here.address], "{\"a\":2}").code, Some(0));
    let status = run(&["status", "--broker", &here.address], "");
    assert_eq!(status.code, Some(0), "{}", status.stderr);
    for part in [&*format!("broker {}", here.id), &there.id, "peers", "links", "published 1 "] {
        assert!(status.stdout.contains(part), "{part}: {}", status.stdout);
    }
    let json = run(&["status", "--json", "--broker", &here.address], "");
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["broker"]["links"][0]["neighbour"], there.id);
    assert_eq!(json["broker"]["links"][0]["events_sent"], 1);
}

#[test]
fn a_data_directory_serves_one_broker_at_a_time() {
    let scratch = Scratch::new("locked");
    let data = scratch.path("data");
    let _broker = Broker::start(&["--data-dir", &data]);
    let second = run(&["run", "--listen", "/ip4/127.0.0.1/tcp/0", "--data-dir", &data], "");
    assert_eq!((second.code, second.stdout.as_str()), (Some(1), ""));
    assert!(second.stderr.contains(&data) && second.stderr.contains("in use"), "{}", second.stderr);
}

#[test]
fn a_configuration_starts_a_broker_too() {
    let scratch = Scratch::new("run-config");
    let file = scratch.write("enroute.toml", "listen = ['/ip4/127.0.0.1/tcp/0']\nkeep_alive_ms = 500\n");
    let mut running = Running::start(&["run", "--config", &file]);
    assert!(running.line().starts_with("id "));
    assert!(running.line().starts_with("peer "));
    assert!(running.line().starts_with("listening /ip4/127.0.0.1/tcp/"));
}

#[cfg(unix)]
#[test]
fn signals_end_everything_cleanly() {
    let broker = Broker::start(&[]);

    let endless = broker.subscriber(&["a"]);
    endless.interrupt();
    assert_eq!(endless.end().code, Some(0), "it has all that came");
    let cut_short = broker.subscriber(&["a", "--count", "1"]);
    cut_short.interrupt();
    assert_eq!(cut_short.end().code, Some(130));

    let mut advertiser = Running::start(&["advertise", "a", "--broker", &broker.address]);
    advertiser.told("in force at ");
    advertiser.interrupt();
    assert_eq!(advertiser.end().code, Some(0));

    // The subscriber shows that the publisher has read all there is, and waits for more.
    let mut subscriber = broker.subscriber(&["a", "--count", "1"]);
    let mut publisher = Running::start(&["pub", "--broker", &broker.address]);
    publisher.write("{\"a\":true}\n");
    assert_eq!(subscriber.line(), r#"{"a":true}"#);
    publisher.interrupt();
    publisher.told("published 1 event in");
    assert_eq!(publisher.end().code, Some(130), "its input has not ended");

    broker.running.interrupt();
    let ended = broker.running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let terminated = Broker::start(&[]);
    terminated.running.signal("TERM");
    assert_eq!(terminated.running.end().code, Some(0));
}

#[test]
fn a_subscriber_outlives_its_broker() {
    let scratch = Scratch::new("restart");
    let data = scratch.path("data");
    let broker = Broker::start(&["--data-dir", &data]);
    let (id, listen) = (broker.id.clone(), broker.plain_address().to_owned());
    let mut subscriber = broker.subscriber(&["a = 1", "--count", "2"]);
    assert_eq!(run(&["pub", "--broker", &listen], "{\"a\":1,\"n\":1}").code, Some(0));
    assert_eq!(subscriber.line(), r#"{"a":1,"n":1}"#);

    broker.running.kill();
    subscriber.told("trying again");
    let broker = Broker::start_at(&listen, &["--data-dir", &data]);
    assert_eq!(broker.id, id);
    subscriber.told(&format!("connected again, to broker {id}"));
    subscriber.told("subscription 1 in force at ");
    assert_eq!(run(&["pub", "--broker", &listen], "{\"a\":1,\"n\":2}").code, Some(0));
    assert_eq!(subscriber.line(), r#"{"a":1,"n":2}"#);
    assert_eq!(subscriber.end().code, Some(0));
}

#[test]
fn a_subscriber_whose_reader_goes_away_ends() {
    let broker = Broker::start(&[]);
    let mut subscriber = Running::start_unread(&["sub", "a", "--broker", &broker.address]);
    subscriber.told("in force at ");
    // Nothing is published that it could fail to write.
    subscriber.stop_reading();
    let ended = subscriber.end();
    assert_eq!(ended.code, Some(0));
    assert!(!ended.stderr.contains("error"), "{}", ended.stderr);
}

#[test]
fn the_log_is_json_if_asked() {
    let mut broker = Running::start(&["run", "--listen", "/ip4/127.0.0.1/tcp/0", "--log-format", "json", "-v"]);
    broker.line();
    let line = broker.told("{");
    let entry: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert!(entry["level"].is_string(), "{entry}");
}
