//! A publisher that is faster than what lies behind a link.

use crate::support::{address, client, filter, linked, loopback, number, until, within};
use enroute_client::Builder;
use enroute_filter::Event;
use enroute_node::{Client, FullLink, Node, NodeConfig, SlowSubscriber, Subscribed};

/// Events that wait for the subscriber, and for a neighbour: more than are handled at a time.
const QUEUE: usize = 300;
/// So many are neither in these queues nor in the buffers of the connections.
const EVENTS: i64 = 2_000;

async fn broker(full_link: FullLink, peer: Option<&Node>) -> Node {
    let config = NodeConfig {
        client_queue_events: QUEUE,
        link_queue_events: QUEUE,
        full_link,
        mesh: false,
        ..NodeConfig::default()
    };
    let builder = Node::builder().config(config).listen(loopback());
    let builder = match peer {
        Some(peer) => builder.peer(address(peer)),
        None => builder,
    };
    within("start", builder.start()).await.unwrap()
}

/// At the second broker of two, a subscriber that takes nothing until it is asked, and holds up its broker.
async fn stalled(node: &Node) -> Client {
    let client = Builder::new(address(node)).delivery_window(4).slow_subscriber(SlowSubscriber::PushBack).connect();
    let client = within("connect", client).await.unwrap();
    within("subscribe", client.subscribe("all", filter("TRUE"))).await.unwrap();
    client
}

fn large(n: i64) -> Event {
    Event::builder().attribute("n", n).payload(vec![0; 16 << 10]).build().unwrap()
}

/// Publishes one after the other, each when the one before is on its way.
async fn publish_all(publisher: Client) -> Client {
    for n in 0..EVENTS {
        within("publish", publisher.publish(large(n))).await.unwrap();
    }
    publisher
}

#[tokio::test]
async fn a_link_that_pushes_back_holds_the_publisher_loses_nothing_and_leaves_control_alone() {
    let near = broker(FullLink::PushBack, None).await;
    let far = broker(FullLink::PushBack, Some(&near)).await;
    linked(&near, &[&far]).await;
    let slow = stalled(&far).await;
    let publishing = tokio::spawn(publish_all(client(&near).await));
    until(&near, "a full link", |status| status.link_queues[0].events_waiting >= QUEUE as u64).await;
    // Control goes past the events that wait.
    let other = client(&far).await;
    let answer = within("subscribe", other.subscribe("none", filter("n < 0"))).await.unwrap();
    assert_eq!(answer, Subscribed::InForce { brokers: 1 });
    for n in 0..EVENTS {
        let delivery = within("a delivery", slow.next()).await.unwrap();
        assert_eq!(number(&delivery.event), n);
    }
    drop(within("the publisher", publishing).await.unwrap());
    for node in [&near, &far] {
        let status = node.status().await.unwrap();
        assert!(status.link_queues.iter().all(|link| link.events_dropped == 0), "{status:?}");
        assert!(status.clients.iter().all(|client| client.dropped == 0), "{status:?}");
    }
}

#[tokio::test]
async fn a_link_that_drops_holds_up_nobody_and_counts() {
    let near = broker(FullLink::Drop, None).await;
    let far = broker(FullLink::Drop, Some(&near)).await;
    linked(&near, &[&far]).await;
    let slow = stalled(&far).await;
    let publisher = publish_all(client(&near).await).await;
    let status = near.status().await.unwrap();
    let link = &status.link_queues[0];
    assert!(link.events_dropped > 0 && link.events_waiting <= QUEUE as u64, "{link:?}");
    // What was not dropped arrives, in order, and then all is as before.
    let mut numbers = Vec::new();
    let all = async {
        while numbers.len() as u64 + dropped(&near).await + dropped(&far).await < EVENTS as u64 {
            match slow.try_next() {
                Some(delivery) => numbers.push(number(&delivery.event)),
                None => tokio::task::yield_now().await,
            }
        }
    };
    within("what was not dropped", all).await;
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    within("publish", publisher.publish(large(EVENTS))).await.unwrap();
    assert_eq!(number(&within("a delivery", slow.next()).await.unwrap().event), EVENTS);
}

async fn dropped(node: &Node) -> u64 {
    let status = node.status().await.unwrap();
    let links = status.link_queues.iter().map(|link| link.events_dropped);
    links.chain(status.clients.iter().map(|client| client.dropped)).sum()
}
