//! What the tests share.

use enroute_filter::{Event, Filter};
use enroute_node::{Client, Multiaddr, Node, NodeStatus};
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

/// Longer than anything takes that works, on a machine that has other things to do.
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: not within {DEADLINE:?}"),
    }
}

/// Asks for the status until it is as it should be.
pub(crate) async fn until(node: &Node, what: &str, condition: impl Fn(&NodeStatus) -> bool) -> NodeStatus {
    let mut last = NodeStatus::default();
    let met = tokio::time::timeout(DEADLINE, async {
        loop {
            last = node.status().await.expect("the node runs");
            if condition(&last) {
                return;
            }
            tokio::task::yield_now().await;
        }
    });
    if met.await.is_err() {
        panic!("{what}: not within {DEADLINE:?}; the status is {last:#?}");
    }
    last
}

pub(crate) fn loopback() -> Multiaddr {
    "/ip4/127.0.0.1/tcp/0".parse().expect("an address")
}

/// A node that links to nobody by itself, so that a test has the links that it makes.
pub(crate) async fn listening() -> Node {
    within("start", Node::builder().listen(loopback()).mesh(false).start()).await.expect("a node")
}

pub(crate) async fn linked_to(other: &Node) -> Node {
    let node = Node::builder().listen(loopback()).mesh(false).peer(address(other)).start();
    within("start", node).await.expect("a node")
}

pub(crate) fn address(node: &Node) -> Multiaddr {
    node.addresses().first().expect("it listens").clone()
}

/// Waits until a node has exactly these links, they carry events, and the neighbours know it too.
pub(crate) async fn linked(node: &Node, neighbours: &[&Node]) -> NodeStatus {
    let mut expected: Vec<String> = neighbours.iter().map(|node| node.id().to_string()).collect();
    expected.sort();
    let status = until(node, "links", |status| {
        let mut links: Vec<&String> =
            status.broker.links.iter().filter(|link| link.in_sync).map(|link| &link.neighbour).collect();
        links.sort();
        links == expected.iter().collect::<Vec<_>>() && status.broker.links.len() == expected.len()
    });
    let status = status.await;
    for neighbour in neighbours {
        knows(neighbour, &[node]).await;
    }
    knows(node, neighbours).await;
    status
}

/// Waits until a node has a path to each of these.
pub(crate) async fn knows(node: &Node, others: &[&Node]) {
    until(node, "paths", |status| {
        let reachable = |id: String| status.broker.brokers.iter().any(|broker| broker.id == id && broker.reachable);
        others.iter().all(|other| reachable(other.id().to_string()))
    })
    .await;
}

pub(crate) async fn client(node: &Node) -> Client {
    within("client", node.client()).await.expect("a client")
}

pub(crate) fn filter(text: &str) -> Filter {
    text.parse().expect("a filter")
}

pub(crate) fn event(n: i64) -> Event {
    Event::builder().attribute("n", n).build().expect("an event")
}

/// The numbers of the next events, in the order in which they come.
pub(crate) async fn take(client: &Client, count: usize) -> Vec<i64> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let delivery = within("a delivery", client.next()).await.expect("the session lives");
        numbers.push(number(&delivery.event));
    }
    numbers
}

pub(crate) fn number(event: &Event) -> i64 {
    match event.get("n") {
        Some(enroute_filter::ValueRef::Int(n)) => n,
        other => panic!("no number but {other:?}"),
    }
}

/// A directory of its own for a test, empty.
pub(crate) fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        std::fs::remove_dir_all(&path).expect("what an earlier run left can be removed");
    }
    path
}

/// Publishes and checks that another client gets it: whatever has happened before, all is well.
pub(crate) async fn assert_delivers(publisher: &Client, subscriber: &Client, n: i64) {
    let filter = filter(&format!("n = {n}"));
    within("subscribe", subscriber.subscribe("check", filter)).await.expect("subscribed");
    let receipt = within("publish", publisher.publish(event(n))).await.expect("published");
    let delivery = within("a delivery", subscriber.next()).await.expect("the session lives");
    assert_eq!((delivery.id, number(&delivery.event)), (receipt.id, n));
    assert_eq!(delivery.subscriptions[..], ["check".into()]);
}
