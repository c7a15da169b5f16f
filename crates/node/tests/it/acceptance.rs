//! What is promised of answered subscriptions: at the two ends of a line of six brokers, and while links are replaced.

use crate::support::{client, event, filter, knows, linked, linked_to, listening, loopback, take, until, within};
use enroute_client::Subscribed;
use enroute_node::{Multiaddr, Node};

const ROUNDS: i64 = 1_000;

/// Six nodes in a line, all of which know both ends.
async fn line_of_six() -> Vec<Node> {
    let mut line = vec![listening().await];
    while line.len() < 6 {
        line.push(linked_to(&line[line.len() - 1]).await);
    }
    for node in &line {
        let others: Vec<&Node> = line.iter().filter(|other| other.id() != node.id()).collect();
        knows(node, &others).await;
    }
    line
}

#[tokio::test]
async fn what_is_published_right_after_the_answer_is_not_missed() {
    let line = line_of_six().await;
    let (publisher, subscriber) = (client(&line[0]).await, client(&line[5]).await);
    for n in 0..ROUNDS {
        let name = n.to_string();
        let answer = within("subscribe", subscriber.subscribe(&name, filter(&format!("n = {n}")))).await.unwrap();
        assert!(matches!(answer, Subscribed::InForce { .. }), "{n}: {answer:?}");
        within("publish", publisher.publish(event(n))).await.unwrap();
        assert_eq!(take(&subscriber, 1).await, [n]);
    }
    assert!(subscriber.try_next().is_none(), "nothing comes twice");
}

#[tokio::test]
async fn nor_when_a_subscription_that_covers_it_is_just_being_placed() {
    let line = line_of_six().await;
    let publisher = client(&line[0]).await;
    let (subscriber, other) = (client(&line[5]).await, client(&line[5]).await);
    // What is published first makes the scope of the first broker known.
    within("publish", publisher.publish(event(-1))).await.unwrap();
    for round in 0..ROUNDS {
        let n = 10 * round;
        let cover = filter(&format!("n BETWEEN {} AND {}", n - 5, n + 4));
        let covering = other.subscribe("cover", cover);
        let covered = async {
            // The cover is under way: its request was handed over first, and nobody has answered it yet.
            let answer =
                within("subscribe", subscriber.subscribe("covered", filter(&format!("n = {n}")))).await.unwrap();
            assert!(matches!(answer, Subscribed::InForce { .. }), "{round}: {answer:?}");
            within("publish", publisher.publish(event(n))).await.unwrap();
            assert_eq!(take(&subscriber, 1).await, [n]);
        };
        let (covering, ()) = tokio::join!(within("cover", covering), covered);
        covering.unwrap();
        assert_eq!(take(&other, 1).await, [n]);
        within("unsubscribe", subscriber.unsubscribe("covered")).await.unwrap();
        within("unsubscribe", other.unsubscribe("cover")).await.unwrap();
    }
    assert!(subscriber.try_next().is_none() && other.try_next().is_none(), "nothing comes twice");
}

/// The addresses of a node, without its peer id: whoever is told one of them does not know whom it dials.
fn doors(node: &Node) -> Vec<Multiaddr> {
    node.addresses().iter().map(|address| address.iter().take(2).collect()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_while_one_connection_replaces_another() {
    const DOORS: usize = 10;
    const EVENTS: i64 = 500;
    let start = || {
        let builder = (0..DOORS).fold(Node::builder(), |builder, _| builder.listen(loopback()));
        async { within("start", builder.start()).await.unwrap() }
    };
    let (a, b) = (start().await, start().await);
    within("connect", a.connect(doors(&b)[0].clone())).await.unwrap();
    linked(&a, &[&b]).await;
    let (publisher, subscriber) = (client(&a).await, client(&b).await);
    within("subscribe", subscriber.subscribe("all", filter("n >= 0"))).await.unwrap();
    let (to_b, to_a) = (doors(&b).split_off(1), doors(&a));
    let mut expected = 0;
    for (to_b, to_a) in to_b.into_iter().zip(to_a) {
        // The new connections come up, and the old ones go, while these are on their way.
        within("connect", a.connect(to_b)).await.unwrap();
        within("connect", b.connect(to_a)).await.unwrap();
        for n in expected..expected + EVENTS {
            drop(within("room", publisher.publish_nowait(event(n))).await.unwrap());
        }
        let mut round = take(&subscriber, EVENTS as usize).await;
        round.sort_unstable();
        assert_eq!(round, (expected..expected + EVENTS).collect::<Vec<_>>());
        expected += EVENTS;
    }
    let status = until(&a, "all dials", |status| status.peers.iter().all(|peer| peer.linked)).await;
    assert_eq!((status.peers.len(), status.broker.counters.lost_no_path), (DOORS, 0));
    assert!(subscriber.try_next().is_none(), "nothing comes twice");
}
