//! What is published only if somebody wants it: on a core broker and on a leaf.

use crate::support::{address, client, event, filter, linked, linked_to, listening, loopback, take, within};
use enroute_node::{Advertisement, Interested, Node};

async fn leaf_of(parent: &Node) -> Node {
    let node = Node::builder().listen(loopback()).leaf([address(parent)]).start();
    within("start", node).await.expect("a node")
}

async fn becomes(advertisement: &Advertisement, interested: Interested) {
    let mut interest = advertisement.interest();
    let what = format!("the interest becomes {interested:?}");
    within(&what, interest.wait_for(|now| *now == interested)).await.expect("the node runs");
}

/// Somebody elsewhere begins to want some of what is advertised, and ends.
async fn follows_interest(publishing: &Node, elsewhere: &Node) {
    let advertisement = within("advertise", publishing.advertise(filter("n >= 0"))).await.unwrap();
    becomes(&advertisement, Interested::No).await;
    let subscriber = client(elsewhere).await;
    within("subscribe", subscriber.subscribe("small", filter("n < 0"))).await.unwrap();
    within("subscribe", subscriber.subscribe("big", filter("n >= 10"))).await.unwrap();
    becomes(&advertisement, Interested::Yes).await;
    assert_eq!(within("an answer", publishing.interested(&event(9))).await, Interested::No);
    assert_eq!(within("an answer", publishing.interested(&event(10))).await, Interested::Yes);
    // What is not advertised others need not say, though a leaf below has said it.
    assert_ne!(within("an answer", publishing.interested(&event(-1))).await, Interested::No);
    within("publish", advertisement.publish(event(10))).await.unwrap();
    assert_eq!(take(&subscriber, 1).await, [10]);
    assert!(within("publish", advertisement.publish(event(-1))).await.is_err(), "not advertised");
    // One of two that want it goes, then the other.
    within("subscribe", subscriber.subscribe("bigger", filter("n >= 20"))).await.unwrap();
    within("unsubscribe", subscriber.unsubscribe("big")).await.unwrap();
    within("subscribe", subscriber.subscribe("smaller", filter("n < -10"))).await.unwrap();
    assert_eq!(within("an answer", publishing.interested(&event(30))).await, Interested::Yes);
    assert_eq!(*advertisement.interest().borrow(), Interested::Yes);
    within("unsubscribe", subscriber.unsubscribe("bigger")).await.unwrap();
    becomes(&advertisement, Interested::No).await;

    let here = client(publishing).await;
    within("subscribe", here.subscribe("here", filter("n = 5"))).await.unwrap();
    becomes(&advertisement, Interested::Yes).await;
    within("close", here.close()).await;
    becomes(&advertisement, Interested::No).await;
}

#[tokio::test]
async fn of_another_core_broker() {
    let there = listening().await;
    let here = linked_to(&there).await;
    linked(&here, &[&there]).await;
    follows_interest(&here, &there).await;
}

#[tokio::test]
async fn of_the_core_on_a_leaf_and_of_a_leaf_below_the_core() {
    let core = listening().await;
    let (one, other) = (leaf_of(&core).await, leaf_of(&core).await);
    follows_interest(&one, &core).await;
    follows_interest(&core, &other).await;
    follows_interest(&one, &other).await;
}

#[tokio::test]
async fn without_its_uplink_a_leaf_does_not_know() {
    let core = listening().await;
    let leaf = leaf_of(&core).await;
    let advertisement = within("advertise", leaf.advertise(filter("n >= 0"))).await.unwrap();
    becomes(&advertisement, Interested::No).await;
    within("shutdown", core.shutdown()).await;
    becomes(&advertisement, Interested::Unknown).await;
    assert_eq!(within("an answer", leaf.interested(&event(1))).await, Interested::Unknown);
    let here = client(&leaf).await;
    // It holds here at once; the answer waits for an uplink.
    let subscribing = tokio::spawn(async move { here.subscribe("here", filter("n = 1")).await });
    becomes(&advertisement, Interested::Yes).await;
    assert_eq!(within("an answer", leaf.interested(&event(1))).await, Interested::Yes);

    let mut interest = advertisement.interest();
    within("shutdown", leaf.shutdown()).await;
    assert!(within("an answer", subscribing).await.expect("no panic").is_err(), "no uplink has come");
    assert!(within("the end", interest.wait_for(|_| false)).await.is_err(), "nobody says anything any more");
    assert_eq!(within("an answer", leaf.interested(&event(1))).await, Interested::Unknown);
}
