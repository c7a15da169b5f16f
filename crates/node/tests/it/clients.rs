//! Clients, in the same process and elsewhere.

use crate::support::{
    address, assert_delivers, client, directory, event, filter, listening, loopback, take, until, within,
};
use enroute_client::{Builder, ClientError, Notice};
use enroute_node::{Multiaddr, Node};
use std::sync::Arc;

#[tokio::test]
async fn a_client_elsewhere_does_what_one_here_does() {
    let node = listening().await;
    let remote = within("connect", enroute_client::connect(address(&node))).await.unwrap();
    let local = client(&node).await;
    assert_eq!((remote.broker(), local.broker()), (node.id(), node.id()));
    assert_delivers(&remote, &local, 1).await;
    assert_delivers(&local, &remote, 2).await;
    let status = within("status", remote.status()).await.unwrap();
    assert_eq!((status.broker.clients, status.clients.len()), (2, 2));
    assert!(status.clients.iter().any(|client| client.software.starts_with("enroute-client")), "{:?}", status.clients);
    within("unsubscribe", remote.unsubscribe("check")).await.unwrap();
    let error = within("unsubscribe", remote.unsubscribe("check")).await.unwrap_err();
    assert!(matches!(&error, ClientError::Refused(_)) && error.to_string().contains("'check'"), "{error}");
}

#[tokio::test]
async fn what_is_not_advertised_is_refused_and_says_why() {
    let node = listening().await;
    let publisher = client(&node).await;
    within("advertise", publisher.advertise("small", filter("n < 10"))).await.unwrap();
    within("publish", publisher.publish(event(1))).await.unwrap();
    let error = within("publish", publisher.publish(event(10))).await.unwrap_err();
    assert!(error.to_string().contains("advertise"), "{error}");
    within("unadvertise", publisher.unadvertise("small")).await.unwrap();
    within("publish", publisher.publish(event(10))).await.unwrap();
}

#[tokio::test]
async fn what_was_handed_over_before_closing_is_published() {
    let node = listening().await;
    let subscriber = client(&node).await;
    within("subscribe", subscriber.subscribe("all", filter("TRUE"))).await.unwrap();
    let publisher = within("connect", enroute_client::connect(address(&node))).await.unwrap();
    for n in 0..500 {
        drop(within("room", publisher.publish_nowait(event(n))).await.unwrap());
    }
    within("close", publisher.close()).await;
    assert_eq!(take(&subscriber, 500).await, (0..500).collect::<Vec<_>>());
    assert!(within("next", publisher.next()).await.is_none(), "every handle is over");
}

#[tokio::test]
async fn a_client_that_goes_is_forgotten() {
    let node = listening().await;
    let one = within("connect", enroute_client::connect(address(&node))).await.unwrap();
    within("subscribe", one.subscribe("all", filter("TRUE"))).await.unwrap();
    until(&node, "the client", |status| status.broker.subscriptions == 1).await;
    drop(one);
    until(&node, "its end", |status| status.broker.subscriptions == 0 && status.clients.is_empty()).await;
}

/// The node and the hundred do not share one thread, as they would not elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_clients_at_once_all_get_in() {
    let node = listening().await;
    let address = address(&node);
    let connecting = (0..100).map(|_| tokio::spawn(enroute_client::connect(address.clone())));
    let mut clients = Vec::new();
    for client in connecting.collect::<Vec<_>>() {
        clients.push(within("connect", client).await.unwrap().unwrap());
    }
    assert_eq!(node.status().await.unwrap().clients.len(), 100);
}

#[tokio::test]
async fn too_many_clients_are_told_so() {
    let core = enroute_broker::Config { clients: 1, ..enroute_broker::Config::default() };
    let node = within("start", Node::builder().listen(loopback()).core(core).start()).await.unwrap();
    let first = client(&node).await;
    let error = within("connect", enroute_client::connect(address(&node))).await.err().expect("one too many");
    assert!(matches!(error, ClientError::HelloRefused(_)) && error.to_string().contains("limit of 1"), "{error}");
    within("close", first.close()).await;
    until(&node, "room", |status| status.clients.is_empty()).await;
    within("connect", enroute_client::connect(address(&node))).await.unwrap();
}

#[tokio::test]
async fn nobody_there_is_said_at_once() {
    let node = listening().await;
    let gone = address(&node);
    within("shutdown", node.shutdown()).await;
    let error = within("connect", enroute_client::connect(gone.clone())).await.err().expect("nobody listens");
    assert!(matches!(error, ClientError::Unreachable { .. }) && error.to_string().contains("refused"), "{error}");
    let nonsense: Multiaddr = "/ip4/127.0.0.1/udp/1".parse().unwrap();
    let error = within("connect", enroute_client::connect(nonsense)).await.err().expect("no transport");
    assert!(error.to_string().contains("/udp/1"), "{error}");
}

#[tokio::test]
async fn a_client_comes_back_with_its_subscriptions() {
    let data_dir = directory("reconnect");
    let start = |listen: Multiaddr| {
        let builder = Node::builder().listen(listen).data_dir(&data_dir);
        async { within("start", builder.start()).await.unwrap() }
    };
    let node = start(loopback()).await;
    let address = address(&node);
    let client = within("connect", Builder::new(address.clone()).reconnect(true).connect()).await.unwrap();
    within("advertise", client.advertise("mine", filter("n >= 0"))).await.unwrap();
    within("subscribe", client.subscribe("kept", filter("n = 1"))).await.unwrap();
    within("subscribe", client.subscribe("withdrawn", filter("n = 2"))).await.unwrap();
    within("unsubscribe", client.unsubscribe("withdrawn")).await.unwrap();
    within("shutdown", node.shutdown()).await;
    let notice = within("the loss", client.next_notice()).await.unwrap();
    assert!(matches!(&notice, Notice::Disconnected { reason } if reason.contains("shutting down")), "{notice:?}");
    let error = within("an answer", client.publish(event(1))).await.unwrap_err();
    assert!(matches!(error, ClientError::Disconnected { .. }), "{error}");

    let node = start(address.iter().take(2).collect()).await;
    let notice = within("the return", client.next_notice()).await.unwrap();
    assert_eq!(notice, Notice::Reconnected { broker: node.id() });
    let mut again = Vec::new();
    for _ in 0..2 {
        match within("a notice", client.next_notice()).await.unwrap() {
            Notice::Readvertised { name, result: Ok(_) } | Notice::Resubscribed { name, result: Ok(_) } => {
                again.push(name)
            }
            other => panic!("{other:?}"),
        }
    }
    again.sort();
    assert_eq!(again, [Arc::<str>::from("kept"), "mine".into()]);
    within("publish", client.publish(event(2))).await.unwrap();
    within("publish", client.publish(event(1))).await.unwrap();
    assert_eq!(take(&client, 1).await, [1]);
    assert!(within("publish", client.publish(event(-1))).await.is_err(), "the advertisement stands again");
}
