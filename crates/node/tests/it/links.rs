//! Links between nodes: how they come, how they go, and that they carry what they should.

use crate::support::{
    address, assert_delivers, client, directory, event, filter, knows, linked, linked_to, listening, loopback, take,
    until, within,
};
use enroute_node::{Multiaddr, Node, NodeConfig, StopReason, Subscribed};
use libp2p::multiaddr::Protocol;

fn without_peer_id(address: Multiaddr) -> Multiaddr {
    address.iter().filter(|part| !matches!(part, Protocol::P2p(_))).collect()
}

#[tokio::test]
async fn two_nodes_link_publish_and_subscribe() {
    let a = listening().await;
    let b = linked_to(&a).await;
    linked(&a, &[&b]).await;
    let (subscriber, publisher) = (client(&a).await, client(&b).await);
    within("advertise", publisher.advertise("all", filter("n >= 0"))).await.unwrap();
    let answer = within("subscribe", subscriber.subscribe("big", filter("n >= 10"))).await.unwrap();
    assert_eq!(answer, Subscribed::InForce { brokers: 1 });
    for (n, destinations) in [(5, 0), (10, 1), (11, 1)] {
        let receipt = within("publish", publisher.publish(event(n))).await.unwrap();
        assert_eq!((receipt.destinations, receipt.complete, receipt.id.origin), (destinations, true, b.id()));
    }
    assert_eq!(take(&subscriber, 2).await, [10, 11]);
    let status = b.status().await.unwrap();
    assert_eq!(status.link_queues.len(), 1);
    assert_eq!((status.link_queues[0].events_sent, status.link_queues[0].events_dropped), (2, 0));
    assert_eq!(status.link_queues[0].neighbour, a.id().to_string());
    assert!(status.link_queues[0].dialled && status.peers[0].linked);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_events_in_order_over_two_links() {
    let a = listening().await;
    let b = linked_to(&a).await;
    let c = linked_to(&b).await;
    linked(&b, &[&a, &c]).await;
    knows(&a, &[&c]).await;
    knows(&c, &[&a]).await;
    let (subscriber, publisher) = (client(&c).await, client(&a).await);
    within("advertise", publisher.advertise("all", filter("n >= 0"))).await.unwrap();
    within("subscribe", subscriber.subscribe("all", filter("n >= 0"))).await.unwrap();
    let mut receipts = Vec::new();
    for n in 0..1_000 {
        receipts.push(within("room", publisher.publish_nowait(event(n))).await.unwrap());
    }
    for receipt in receipts {
        assert_eq!(within("a receipt", receipt).await.unwrap().destinations, 1);
    }
    assert_eq!(take(&subscriber, 1_000).await, (0..1_000).collect::<Vec<_>>());
    assert!(subscriber.try_next().is_none());
}

#[tokio::test]
async fn a_peer_may_start_later_and_come_back_without_its_address_changing() {
    let data_dir = directory("restart");
    let start = |listen: Multiaddr| {
        let builder = Node::builder().listen(listen).data_dir(&data_dir);
        async { within("start", builder.start()).await.unwrap() }
    };
    // The first life only finds a free port and makes the key.
    let first = start(loopback()).await;
    let (address, id) = (address(&first), first.id());
    within("shutdown", first.shutdown()).await;

    let dialler = Node::builder().peer(address.clone()).start();
    let dialler = within("start", dialler).await.unwrap();
    until(&dialler, "a failed dial", |status| status.peers[0].last_error.is_some()).await;
    let subscriber = client(&dialler).await;
    let mut incarnation = first.status().await.map_or(0, |status| status.broker.incarnation);
    for life in 1..=3 {
        let node = start(without_peer_id(address.clone())).await;
        assert_eq!(node.id(), id, "the key is kept");
        let status = linked(&node, &[&dialler]).await;
        assert!(status.broker.incarnation > incarnation, "each life is later than all before");
        incarnation = status.broker.incarnation;
        linked(&dialler, &[&node]).await;
        assert_delivers(&client(&node).await, &subscriber, life).await;
        within("shutdown", node.shutdown()).await;
        until(&dialler, "the loss", |status| status.broker.links.is_empty()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_dial_each_other_end_with_one_link() {
    for round in 0..5 {
        let (a, b) = (listening().await, listening().await);
        let (to_b, to_a) = (address(&b), address(&a));
        // With and without a peer id: without, neither knows whom it dials.
        let (to_b, to_a) = if round % 2 == 0 { (to_b, to_a) } else { (without_peer_id(to_b), without_peer_id(to_a)) };
        let (from_a, from_b) = tokio::join!(a.connect(to_b), b.connect(to_a));
        from_a.unwrap();
        from_b.unwrap();
        until(&a, "the dial of a", |status| status.peers[0].linked).await;
        until(&b, "the dial of b", |status| status.peers[0].linked).await;
        let (of_a, of_b) = (linked(&a, &[&b]).await, linked(&b, &[&a]).await);
        assert_eq!((of_a.broker.links.len(), of_b.broker.links.len()), (1, 1));
        assert_delivers(&client(&a).await, &client(&b).await, round).await;
    }
}

#[tokio::test]
async fn a_node_does_not_link_to_itself() {
    let node = listening().await;
    node.connect(address(&node)).await.unwrap();
    node.connect(without_peer_id(address(&node))).await.unwrap();
    let status = until(&node, "both known for oneself", |status| {
        status.peers.len() == 2 && status.peers.iter().all(|peer| peer.oneself)
    });
    assert!(status.await.broker.links.is_empty());
}

#[tokio::test]
async fn who_is_not_allowed_is_told_so() {
    let stranger = enroute_node::Keypair::generate_ed25519();
    let friend = enroute_node::Keypair::generate_ed25519();
    let closed = Node::builder().listen(loopback()).allow(friend.public().to_peer_id()).start();
    let closed = within("start", closed).await.unwrap();
    let refused = Node::builder().peer(address(&closed)).keypair(stranger).start();
    let refused = within("start", refused).await.unwrap();
    let their_view = until(&refused, "the refusal", |status| {
        status.peers[0].last_error.as_ref().is_some_and(|error| error.contains("allow-list"))
    });
    assert!(their_view.await.broker.links.is_empty());
    let our_view = until(&closed, "the refusal", |status| !status.refused.is_empty()).await;
    assert_eq!(our_view.refused[0].peer_id, refused.peer_id().to_string());
    assert!(our_view.refused[0].reason.contains("allow-list"), "{:?}", our_view.refused);

    let welcome = Node::builder().peer(address(&closed)).keypair(friend).start();
    let welcome = within("start", welcome).await.unwrap();
    linked(&closed, &[&welcome]).await;
}

#[tokio::test]
async fn who_dials_a_stranger_by_an_open_address_keeps_to_its_own_list() {
    let stranger = listening().await;
    let node = Node::builder().peer(without_peer_id(address(&stranger))).allow(enroute_node::PeerId::random()).start();
    let node = within("start", node).await.unwrap();
    let status = until(&node, "the refusal", |status| status.peers[0].last_error.is_some()).await;
    assert!(status.peers[0].last_error.as_ref().unwrap().contains("not on the allow-list"), "{:?}", status.peers);
    assert!(status.broker.links.is_empty());
}

#[tokio::test]
async fn shutting_down_ends_every_task() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let a = within("start", Node::builder().listen(loopback()).start()).await.unwrap();
    let b = within("start", Node::builder().listen(loopback()).peer(address(&a)).start()).await.unwrap();
    linked(&a, &[&b]).await;
    let local = client(&a).await;
    let remote = within("connect", enroute_client::connect(address(&a))).await.unwrap();
    within("subscribe", remote.subscribe("all", filter("TRUE"))).await.unwrap();
    within("shutdown", async { tokio::join!(a.shutdown(), b.shutdown()) }).await;
    assert_eq!(within("stopped", a.stopped()).await, StopReason::Shutdown);
    assert!(a.status().await.is_err());
    assert!(within("the end", local.next()).await.is_none());
    assert!(within("the end", remote.next()).await.is_none());
    assert!(within("an answer", local.publish(event(1))).await.is_err());
    drop((a, b, local, remote));
    // What libp2p has spawned ends when it is polled next.
    within("no tasks", async {
        while tasks() > before {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_goodbye_is_told_to_the_neighbour() {
    let a = listening().await;
    let b = linked_to(&a).await;
    linked(&b, &[&a]).await;
    within("shutdown", a.shutdown()).await;
    let status = until(&b, "the loss", |status| !status.peers[0].linked).await;
    let error = status.peers[0].last_error.clone().unwrap_or_default();
    assert!(error.contains("shutting down") || error.contains("refused"), "{error}");
    assert!(status.broker.links.is_empty());
}

#[cfg(feature = "quic")]
#[tokio::test]
async fn a_link_over_quic() {
    let listen: Multiaddr = "/ip4/127.0.0.1/udp/0/quic-v1".parse().unwrap();
    let a = within("start", Node::builder().listen(listen.clone()).start()).await.unwrap();
    let b = within("start", Node::builder().listen(listen).peer(address(&a)).start()).await.unwrap();
    linked(&a, &[&b]).await;
    assert_delivers(&client(&a).await, &client(&b).await, 1).await;
}

#[tokio::test]
async fn a_leaf_without_an_uplink_keeps_as_much_as_it_is_told() {
    let config = NodeConfig { kept_events: 2, ..NodeConfig::default() };
    let nobody = "/ip4/127.0.0.1/tcp/1".parse().unwrap();
    let leaf = within("start", Node::builder().config(config).leaf([nobody]).start()).await.unwrap();
    let publisher = client(&leaf).await;
    for n in 0..5 {
        within("publish", publisher.publish(event(n))).await.unwrap();
    }
    let status = leaf.status().await.unwrap().broker;
    assert_eq!((status.uplink.unwrap().kept_events, status.counters.lost_kept), (2, 3));
}
