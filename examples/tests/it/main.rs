//! Runs the examples.

use enroute_node::Node;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};

/// Runs a program; the lines of its output.
fn lines(program: &str) -> Vec<String> {
    let output = Command::new(program).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn embed() {
    let lines = lines(env!("CARGO_BIN_EXE_embed"));
    assert!(lines[0].starts_with("broker "), "{lines:?}");
    assert_eq!(lines[1..], [r#"received {"celsius":30,"kind":"reading"}"#]);
}

#[test]
fn publish_subscribe() {
    let expected = [
        "subscribed: InForce { brokers: 0 }",
        r#"received {"delay":75,"dest":"SFO","kind":"flight"} for ["late to California"]"#,
        r#"received {"delay":60,"dest":"LAX","kind":"flight"} for ["late to California"]"#,
    ];
    assert_eq!(lines(env!("CARGO_BIN_EXE_publish_subscribe")), expected);
}

#[test]
fn three_nodes() {
    let expected = [
        "magnitude 3.5: sent to 0 brokers",
        "magnitude 6.1: sent to 1 brokers",
        r#"west received {"kind":"earthquake","magnitude":6.1}"#,
    ];
    assert_eq!(lines(env!("CARGO_BIN_EXE_three_nodes")), expected);
}

#[test]
fn quiet_device() {
    let expected = [
        "nobody listens: 0 published",
        "the office listens: 2 published",
        r#"the office received {"celsius":31,"device":"d1"}"#,
        r#"the office received {"celsius":36,"device":"d1"}"#,
    ];
    assert_eq!(lines(env!("CARGO_BIN_EXE_quiet_device")), expected);
}

/// The device says nothing while nobody wants to know.
#[tokio::test]
async fn edge() {
    let site = Node::builder().listen("/ip4/127.0.0.1/tcp/0".parse().unwrap()).start().await.unwrap();
    let office = site.client().await.unwrap();
    let mut device = tokio::process::Command::new(env!("CARGO_BIN_EXE_edge"));
    device.arg(site.addresses()[0].to_string()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut device = device.spawn().unwrap();
    let mut lines = BufReader::new(device.stdout.take().unwrap()).lines();
    let served = async {
        assert!(lines.next_line().await.unwrap().unwrap().starts_with("leaf broker "));
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "nobody wants to know");
        office.subscribe("warm", "celsius >= 20".parse().unwrap()).await.unwrap();
        office.next().await.unwrap()
    };
    let delivery = tokio::time::timeout(Duration::from_secs(60), served).await.expect("soon");
    assert_eq!(delivery.event.to_json(), r#"{"celsius":20,"device":"d1"}"#);
}
