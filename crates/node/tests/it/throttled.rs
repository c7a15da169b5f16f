//! A link that is far slower than what is published, and a client that reads nothing at all.

use crate::raw::RawPeer;
use crate::support::{address, assert_delivers, client, filter, linked, loopback, number, take, until, within};
use bytes::BytesMut;
use enroute_broker::{Command, RequestId};
use enroute_filter::Event;
use enroute_node::{FullLink, Multiaddr, Node, NodeConfig, NodeStatus, Subscribed};
use enroute_wire::{CLIENT_PROTOCOL, CLIENT_VERSIONS, ClientFrame, ClientHello, ShortText};
use libp2p::multiaddr::Protocol;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::Instant;

/// Bytes a second: 1 Mbit/s.
const SPEED: u32 = 125_000;
/// Bytes that are passed on at a time.
const PIECE: usize = 1_250;
/// Events that wait for a neighbour, or for a client.
const QUEUE: usize = 100;
/// The number of the last event, far beyond those before it.
const LAST: i64 = 1 << 40;

/// Passes bytes to a node and back, slowly. Gives the address to dial.
async fn throttled(node: &Node) -> Multiaddr {
    let mut parts: Vec<Protocol> = address(node).iter().map(Protocol::acquire).collect();
    let Protocol::Tcp(port) = parts[1] else { panic!("not over TCP: {parts:?}") };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    parts[1] = Protocol::Tcp(listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let socket = TcpSocket::new_v4().unwrap();
            // A slow link does not hold much.
            socket.set_recv_buffer_size(16 << 10).unwrap();
            let far = socket.connect(([127, 0, 0, 1], port).into()).await.unwrap();
            let (near, far) = (near.into_split(), far.into_split());
            tokio::spawn(pass(near.0, far.1));
            tokio::spawn(pass(far.0, near.1));
        }
    });
    parts.into_iter().collect()
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let mut piece = [0; PIECE];
    let mut free = Instant::now();
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        free = free.max(Instant::now()) + Duration::from_secs(1) * count as u32 / SPEED;
        if to.write_all(&piece[..count]).await.is_err() {
            return;
        }
        tokio::time::sleep_until(free).await; // sleep: the speed of the link
    }
}

fn large(n: i64) -> Event {
    Event::builder().attribute("n", n).payload(vec![0; 1 << 10]).build().unwrap()
}

/// The numbers of the links, which change when a link is built anew.
fn links(status: &NodeStatus) -> Vec<u64> {
    status.link_queues.iter().map(|link| link.link).collect()
}

#[tokio::test]
async fn a_throttled_link_bounds_what_waits_and_all_is_as_before_when_less_comes() {
    let config = NodeConfig { link_queue_events: QUEUE, full_link: FullLink::Drop, ..NodeConfig::default() };
    let near = within("start", Node::builder().config(config).listen(loopback()).start()).await.unwrap();
    let far = Node::builder().listen(loopback()).peer(throttled(&near).await).start();
    let far = within("start", far).await.unwrap();
    let before = linked(&near, &[&far]).await;
    let (publisher, subscriber, other) = (client(&near).await, client(&far).await, client(&far).await);
    within("subscribe", subscriber.subscribe("all", filter("n >= 0"))).await.unwrap();
    let overload = async {
        for n in 0.. {
            within("publish", publisher.publish(large(n))).await.unwrap();
        }
    };
    let control = async {
        until(&near, "drops", |status| status.link_queues[0].events_dropped > 2_000).await;
        // Would only be partial if the acknowledgement, which goes the way of the events, took ten seconds.
        let answer = within("subscribe", other.subscribe("none", filter("n = -2"))).await.unwrap();
        assert_eq!(answer, Subscribed::InForce { brokers: 1 });
        let status = near.status().await.unwrap();
        assert!(status.link_queues[0].events_waiting <= QUEUE as u64, "{status:?}");
    };
    tokio::select! {
        () = overload => unreachable!("it has no end"),
        () = control => {}
    }
    // Nothing was lost but what was dropped and counted, and what is published now finds the link free.
    until(&near, "an empty queue", |status| status.link_queues[0].events_waiting == 0).await;
    within("publish", publisher.publish(large(LAST))).await.unwrap();
    let mut numbers = Vec::new();
    while numbers.last() != Some(&LAST) {
        numbers.push(number(&within("a delivery", subscriber.next()).await.unwrap().event));
    }
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let status = near.status().await.unwrap();
    assert_eq!(status.link_queues[0].events_sent, numbers.len() as u64);
    assert_eq!(links(&status), links(&before), "the link is the one it was");
    assert_delivers(&publisher, &other, -1).await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_costs_its_queue_and_nobody_else_anything() {
    let config = NodeConfig { client_queue_events: QUEUE, ..NodeConfig::default() };
    let node = within("start", Node::builder().config(config).listen(loopback()).start()).await.unwrap();
    let mut peer = RawPeer::connect(address(&node)).await;
    let mut bytes = BytesMut::new();
    let hello = ClientHello { versions: CLIENT_VERSIONS, slow_subscriber: None, software: ShortText::clip("a test") };
    let command = Command::Subscribe { name: "all".into(), filter: filter("TRUE") };
    let frames = [
        ClientFrame::Hello(hello),
        ClientFrame::Request { request: RequestId(1), command },
        ClientFrame::Credit { deliveries: u32::MAX },
    ];
    frames.iter().for_each(|frame| frame.encode(&mut bytes).unwrap());
    let stream = peer.open(CLIENT_PROTOCOL, &bytes).await;
    until(&node, "its subscription", |status| status.broker.subscriptions == 1).await;
    let (publisher, busy) = (client(&node).await, client(&node).await);
    within("subscribe", busy.subscribe("all", filter("TRUE"))).await.unwrap();
    for n in 0..2_000 {
        within("publish", publisher.publish(large(n))).await.unwrap();
        assert_eq!(take(&busy, 1).await, [n]);
    }
    let status = node.status().await.unwrap();
    let silent = status.clients.iter().find(|client| client.dropped > 0).expect("more than its buffers take");
    assert!(silent.waiting <= QUEUE as u64, "{silent:?}");
    drop((stream, peer));
    until(&node, "its end", |status| status.clients.len() == 2 && status.broker.subscriptions == 1).await;
    assert_delivers(&publisher, &client(&node).await, -1).await;
}
