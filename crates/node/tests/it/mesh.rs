//! Nodes that find their neighbours by themselves. With processes, and deaths, this is tested in `enroute-cli`.

use crate::support::{address, assert_delivers, client, directory, loopback, until, within};
use enroute_node::{LinkReason, Node, NodeConfig};

/// A node that knows at most one other.
async fn member(min_links: usize, max_links: usize, peer: Option<&Node>) -> Node {
    let peers = peer.map(address).into_iter().collect();
    let config = NodeConfig { min_links, max_links, peers, listen: vec![loopback()], ..NodeConfig::default() };
    within("start", Node::builder().config(config).start()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_know_one_address_link_up_within_their_bounds() {
    let hub = member(2, 3, None).await;
    let mut nodes = vec![];
    for _ in 0..6 {
        nodes.push(member(2, 3, Some(&hub)).await);
    }
    nodes.push(hub);
    let all_well = async {
        loop {
            let mut well = 0;
            for node in &nodes {
                let status = node.status().await.unwrap().broker;
                let reachable = status.brokers.iter().filter(|broker| broker.reachable).count();
                let links = status.links.iter().filter(|link| link.in_sync).count();
                well += usize::from(reachable == nodes.len() && links >= 2 && status.links.len() <= 3);
            }
            if well == nodes.len() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    within("a mesh within bounds", all_well).await;
    let status = nodes[0].status().await.unwrap();
    assert_eq!(status.peers.len(), 1, "{:?}", status.peers);
    let chosen = |reason| matches!(reason, LinkReason::Chosen | LinkReason::ChosenFar);
    let mut reasons = Vec::new();
    for node in &nodes {
        reasons.extend(node.status().await.unwrap().link_queues.iter().map(|queue| queue.reason));
    }
    assert!(reasons.iter().any(|reason| chosen(*reason)), "{reasons:?}");
    assert!(reasons.contains(&LinkReason::Accepted), "{reasons:?}");
    assert_delivers(&client(&nodes[0]).await, &client(&nodes[5]).await, 1).await;
}

#[tokio::test]
async fn without_a_mesh_there_are_only_the_links_that_were_named() {
    let middle = within("start", Node::builder().listen(loopback()).mesh(false).start()).await.unwrap();
    let end = || async {
        let node = Node::builder().listen(loopback()).mesh(false).peer(address(&middle)).start();
        within("start", node).await.unwrap()
    };
    let (left, right) = (end().await, end().await);
    let all =
        |node| until(node, "all three", |status| status.broker.brokers.iter().filter(|it| it.reachable).count() == 3);
    let (of_left, of_right) = (all(&left).await, all(&right).await);
    assert_eq!((of_left.broker.links.len(), of_right.broker.links.len()), (1, 1));
    assert_eq!((of_left.link_queues[0].reason, of_left.members.len()), (LinkReason::Configured, 0));
}

#[tokio::test]
async fn announced_addresses_are_told_and_round_trips_measured() {
    let announced = "/dns4/broker.example.org/tcp/7440";
    let config = NodeConfig { announce: vec![announced.parse().unwrap()], ..NodeConfig::default() };
    let node = within("start", Node::builder().config(config).listen(loopback()).start()).await.unwrap();
    let other = member(3, 8, Some(&node)).await;
    let expected = format!("{announced}/p2p/{}", node.peer_id());
    until(&other, "the address", |status| {
        let entry = status.broker.brokers.iter().find(|broker| broker.id == node.id().to_string());
        entry.is_some_and(|broker| broker.addresses == [&*expected])
    })
    .await;
    for end in [&node, &other] {
        until(end, "a round trip", |status| status.broker.links.iter().any(|link| link.round_trip_us.is_some())).await;
    }
}

#[tokio::test]
async fn a_damaged_file_of_members_does_no_harm() {
    let data_dir = directory("damaged-members");
    std::fs::create_dir_all(&data_dir).unwrap();
    std::fs::write(data_dir.join("members"), b"\xff\x00 nonsense\n/ip4/127.0.0.1/tcp/1\n").unwrap();
    let node = within("start", Node::builder().listen(loopback()).data_dir(&data_dir).start()).await.unwrap();
    let other = member(3, 8, Some(&node)).await;
    let status = until(&node, "a member", |status| !status.members.is_empty()).await;
    assert_eq!(status.members[0].peer_id, other.peer_id().to_string());
    within("the file", async {
        while !std::fs::read_to_string(data_dir.join("members"))
            .is_ok_and(|it| it.contains(&other.peer_id().to_string()))
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
