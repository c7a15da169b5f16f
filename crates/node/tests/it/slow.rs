//! Subscribers that do not take what is delivered.

use crate::support::{address, client, event, filter, loopback, take, until, within};
use enroute_client::Builder;
use enroute_node::{Client, Node, NodeConfig, Notice, SlowSubscriber};

/// Deliveries that wait in the client itself.
const WINDOW: usize = 4;
/// Deliveries that wait for it at its broker.
const QUEUE: usize = 10;
const EVENTS: i64 = 200;

async fn node() -> Node {
    let config = NodeConfig { client_queue_events: QUEUE, ..NodeConfig::default() };
    within("start", Node::builder().config(config).listen(loopback()).start()).await.unwrap()
}

async fn stalled(node: &Node, policy: SlowSubscriber) -> Client {
    let client = Builder::new(address(node)).delivery_window(WINDOW).slow_subscriber(policy).connect();
    let client = within("connect", client).await.unwrap();
    within("subscribe", client.subscribe("all", filter("TRUE"))).await.unwrap();
    client
}

#[tokio::test]
async fn a_stalled_subscriber_costs_nobody_else_anything() {
    for policy in [SlowSubscriber::DropOldest, SlowSubscriber::DropNewest, SlowSubscriber::Disconnect] {
        let node = node().await;
        let stalled = stalled(&node, policy).await;
        let (busy, publisher) = (client(&node).await, client(&node).await);
        within("subscribe", busy.subscribe("all", filter("TRUE"))).await.unwrap();
        for n in 0..EVENTS {
            within("publish", publisher.publish(event(n))).await.unwrap();
            assert_eq!(take(&busy, 1).await, [n]);
        }
        match policy {
            SlowSubscriber::DropOldest | SlowSubscriber::DropNewest => {
                let of = |status: &enroute_node::NodeStatus| {
                    let name = if policy == SlowSubscriber::DropOldest { "drop_oldest" } else { "drop_newest" };
                    let client = status.clients.iter().find(|c| c.slow_subscriber == name && c.dropped > 0);
                    client.map(|c| (c.delivered, c.dropped, c.waiting))
                };
                let status = until(&node, "drops", |status| of(status).is_some()).await;
                let (delivered, dropped, waiting) = of(&status).unwrap();
                assert_eq!((delivered + dropped + waiting, waiting), (EVENTS as u64, QUEUE as u64));
                // It still gets answers, and then what was kept for it.
                within("unsubscribe", stalled.unsubscribe("all")).await.unwrap();
                let numbers = take(&stalled, (delivered + waiting) as usize).await;
                assert!(numbers.is_sorted(), "{numbers:?}");
                let newest_kept = numbers.contains(&(EVENTS - 1));
                assert_eq!(newest_kept, policy == SlowSubscriber::DropOldest, "{numbers:?}");
            }
            SlowSubscriber::Disconnect => {
                let notice = within("the end", stalled.next_notice()).await.unwrap();
                assert!(
                    matches!(&notice, Notice::Disconnected { reason } if reason.contains("too much")),
                    "{notice:?}"
                );
                until(&node, "its end", |status| status.clients.len() == 2).await;
            }
            SlowSubscriber::PushBack => unreachable!("it does cost others something"),
        }
    }
}

#[tokio::test]
async fn pushing_back_holds_the_publisher_and_loses_nothing() {
    let node = node().await;
    let slow = stalled(&node, SlowSubscriber::PushBack).await;
    let publisher = client(&node).await;
    let publishing = tokio::spawn(async move {
        for n in 0..EVENTS {
            within("publish", publisher.publish(event(n))).await.unwrap();
        }
        publisher
    });
    // Nothing is taken until the broker holds as much as it may.
    until(&node, "a full queue", |status| status.clients.iter().any(|client| client.waiting >= QUEUE as u64)).await;
    assert_eq!(take(&slow, EVENTS as usize).await, (0..EVENTS).collect::<Vec<_>>());
    drop(within("the publisher", publishing).await.unwrap());
    let status = node.status().await.unwrap();
    assert!(status.clients.iter().all(|client| client.dropped == 0), "{:?}", status.clients);
}

#[tokio::test]
async fn who_never_takes_anything_holds_the_publisher_only_so_long() {
    let node = node().await;
    let _stalled = stalled(&node, SlowSubscriber::PushBack).await;
    let publisher = client(&node).await;
    for n in 0..3 * QUEUE as i64 {
        within("publish", publisher.publish(event(n))).await.unwrap();
    }
    let status = until(&node, "drops", |status| status.clients.iter().any(|client| client.dropped > 0)).await;
    assert!(status.clients.iter().all(|client| client.waiting <= 2 * QUEUE as u64), "{:?}", status.clients);
}
