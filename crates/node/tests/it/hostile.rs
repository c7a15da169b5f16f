//! What strangers may send: everything ends with a reason, and the node goes on.

use crate::raw::{RawPeer, frames_to_the_end, next_frame};
use crate::support::{address, assert_delivers, client, linked, linked_to, listening, loopback, until, within};
use bytes::BytesMut;
use enroute_broker::{BrokerId, RequestId, Role};
use enroute_node::{Node, NodeConfig};
use enroute_wire::{
    BROKER_PROTOCOL, BROKER_VERSIONS, CLIENT_PROTOCOL, CLIENT_VERSIONS, ClientFrame, ClientHello, ControlFrame,
    DataFrame, DataHello, EVENT_PROTOCOL, FrameReader, Goodbye, Hello, RefusalCode, ServerFrame, ShortText, Traffic,
    VersionRange,
};
use futures::AsyncWriteExt;
use libp2p::Stream;

/// The same rubbish in each run: a linear congruential generator.
fn rubbish(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..4_096).map(step).collect()
}

fn encode_control(frame: &ControlFrame) -> BytesMut {
    let mut bytes = BytesMut::new();
    frame.encode(&mut bytes).unwrap();
    bytes
}

fn encode_client(frame: &ClientFrame) -> BytesMut {
    let mut bytes = BytesMut::new();
    frame.encode(&mut bytes).unwrap();
    bytes
}

fn hello_of(peer: &RawPeer, versions: VersionRange) -> Hello {
    let broker = BrokerId::of_peer(&peer.id.to_string());
    Hello {
        versions,
        broker,
        incarnation: 1,
        start_nonce: 1,
        dialled_by: broker,
        dial: 1,
        software: ShortText::clip("a test"),
        role: Role::Core,
        spare: false,
    }
}

fn client_hello(versions: VersionRange) -> ClientFrame {
    ClientFrame::Hello(ClientHello { versions, slow_subscriber: None, software: ShortText::clip("a test") })
}

/// Goes through the hellos by hand: a link to the node.
async fn link(peer: &mut RawPeer) -> (Stream, Stream) {
    let hello = hello_of(peer, BROKER_VERSIONS);
    let name = DataHello { dialled_by: hello.dialled_by, dial: hello.dial };
    let mut control = peer.open(BROKER_PROTOCOL, &encode_control(&ControlFrame::Hello(hello))).await;
    let frame = next_frame(&mut control, &mut FrameReader::new(Traffic::Control)).await;
    assert!(matches!(ControlFrame::decode(&frame), Ok(ControlFrame::HelloAck(_))));
    let mut bytes = BytesMut::new();
    DataFrame::Hello(name).encode(&mut bytes).unwrap();
    let mut data = peer.open(EVENT_PROTOCOL, &bytes).await;
    let frame = next_frame(&mut data, &mut FrameReader::new(Traffic::Data)).await;
    assert_eq!(DataFrame::decode(frame).unwrap(), DataFrame::Hello(name));
    (control, data)
}

#[tokio::test]
async fn rubbish_instead_of_a_hello() {
    let node = listening().await;
    for protocol in [BROKER_PROTOCOL, EVENT_PROTOCOL, CLIENT_PROTOCOL] {
        for seed in 0..10 {
            let mut peer = RawPeer::connect(address(&node)).await;
            let mut stream = peer.open(protocol, &rubbish(seed)).await;
            let traffic = if protocol == CLIENT_PROTOCOL { Traffic::ToClient } else { Traffic::Control };
            let frames = frames_to_the_end(&mut stream, traffic).await;
            assert!(frames.len() <= 1, "{frames:?}");
            let id = peer.id.to_string();
            until(&node, "the refusal", |status| status.refused.iter().any(|refused| refused.peer_id == id)).await;
        }
    }
    assert_delivers(&client(&node).await, &client(&node).await, 1).await;
}

#[tokio::test]
async fn rubbish_on_the_streams_of_a_link() {
    let node = listening().await;
    let neighbour = linked_to(&node).await;
    for on_control in [true, false] {
        let mut peer = RawPeer::connect(address(&node)).await;
        let (mut control, mut data) = link(&mut peer).await;
        let broken = if on_control { &mut control } else { &mut data };
        let _ = broken.write_all(&rubbish(7)).await;
        let _ = broken.flush().await;
        let goodbyes: Vec<_> = frames_to_the_end(&mut control, Traffic::Control)
            .await
            .iter()
            .filter_map(|frame| match ControlFrame::decode(frame) {
                Ok(ControlFrame::Goodbye(goodbye)) => Some(goodbye),
                _ => None,
            })
            .collect();
        assert!(matches!(goodbyes[..], [Goodbye::Unreadable(_)]), "{goodbyes:?}");
        let id = peer.id.to_string();
        until(&node, "the reason", |status| status.refused.iter().any(|refused| refused.peer_id == id)).await;
        linked(&node, &[&neighbour]).await;
    }
    assert_delivers(&client(&node).await, &client(&neighbour).await, 1).await;
}

#[tokio::test]
async fn rubbish_from_a_client() {
    let node = listening().await;
    let bad_event = encode_client(&ClientFrame::Publish { request: RequestId(1), event: vec![9; 50].into() });
    for bytes in [rubbish(3), bad_event.to_vec()] {
        let mut peer = RawPeer::connect(address(&node)).await;
        let mut hello = encode_client(&client_hello(CLIENT_VERSIONS)).to_vec();
        hello.extend_from_slice(&bytes);
        let mut stream = peer.open(CLIENT_PROTOCOL, &hello).await;
        let frames = frames_to_the_end(&mut stream, Traffic::ToClient).await;
        let last = ServerFrame::decode(frames.last().expect("a hello and a goodbye").clone()).unwrap();
        assert!(matches!(last, ServerFrame::Goodbye(Goodbye::Unreadable(_))), "{last:?}");
        until(&node, "its end", |status| status.clients.is_empty() && !status.refused.is_empty()).await;
    }
    assert_delivers(&client(&node).await, &client(&node).await, 1).await;
}

#[tokio::test]
async fn an_unknown_version_is_refused_and_both_ranges_are_named() {
    let node = listening().await;
    let newer = VersionRange { min: 98, max: 99 };
    let mut peer = RawPeer::connect(address(&node)).await;
    let hello = ControlFrame::Hello(hello_of(&peer, newer));
    let mut stream = peer.open(BROKER_PROTOCOL, &encode_control(&hello)).await;
    let frames = frames_to_the_end(&mut stream, Traffic::Control).await;
    let ControlFrame::HelloRefused(refused) = ControlFrame::decode(&frames[0]).unwrap() else { panic!("{frames:?}") };
    let text = refused.text.as_str();
    assert!(refused.code == RefusalCode::Version && text.contains("98 to 99") && text.contains('1'), "{text}");

    let mut stream = peer.open(CLIENT_PROTOCOL, &encode_client(&client_hello(newer))).await;
    let frames = frames_to_the_end(&mut stream, Traffic::ToClient).await;
    let ServerFrame::HelloRefused(refused) = ServerFrame::decode(frames[0].clone()).unwrap() else {
        panic!("{frames:?}")
    };
    assert_eq!(refused.code, RefusalCode::Version);
    let status = until(&node, "both refusals", |status| status.refused.len() == 2).await;
    assert!(status.refused.iter().all(|refused| refused.reason.contains("98 to 99")), "{:?}", status.refused);
}

#[tokio::test]
async fn a_broker_cannot_call_itself_by_another_name() {
    let node = listening().await;
    let mut peer = RawPeer::connect(address(&node)).await;
    let hello = Hello { broker: BrokerId(7), dialled_by: BrokerId(7), ..hello_of(&peer, BROKER_VERSIONS) };
    let mut stream = peer.open(BROKER_PROTOCOL, &encode_control(&ControlFrame::Hello(hello))).await;
    let frames = frames_to_the_end(&mut stream, Traffic::Control).await;
    let ControlFrame::HelloRefused(refused) = ControlFrame::decode(&frames[0]).unwrap() else { panic!("{frames:?}") };
    assert!(refused.text.as_str().contains("calls itself broker"), "{}", refused.text);
}

#[tokio::test]
async fn a_neighbour_that_falls_silent_is_given_up() {
    let config = NodeConfig { keep_alive_ms: 50, ..NodeConfig::default() };
    let node = within("start", Node::builder().config(config).listen(loopback()).start()).await.unwrap();
    let mut peer = RawPeer::connect(address(&node)).await;
    let _streams = link(&mut peer).await;
    until(&node, "the link", |status| status.broker.links.len() == 1).await;
    until(&node, "its end", |status| status.broker.links.is_empty()).await;
}

#[tokio::test]
async fn quiet_links_stay() {
    let config = NodeConfig { keep_alive_ms: 50, ..NodeConfig::default() };
    let a = within("start", Node::builder().config(config.clone()).listen(loopback()).start()).await.unwrap();
    let b = Node::builder().config(config).peer(address(&a)).start();
    let b = within("start", b).await.unwrap();
    let status = linked(&a, &[&b]).await;
    let link = status.broker.links[0].link;
    let enough = status.link_queues[0].control_bytes_received
        + 20 * encode_control(&ControlFrame::KeepAlive).len() as u64
        + 1_000; // More than the few messages that may still come.
    let status = until(&a, "signs of life", |status| {
        status.link_queues.iter().any(|queue| queue.control_bytes_received > enough)
            || status.broker.links.first().is_none_or(|present| present.link != link)
    });
    assert_eq!(status.await.broker.links.first().map(|present| present.link), Some(link), "the same link as before");
}

#[tokio::test]
async fn a_client_that_asks_and_never_reads_harms_nobody() {
    let node = listening().await;
    let mut peer = RawPeer::connect(address(&node)).await;
    let mut bytes = encode_client(&client_hello(CLIENT_VERSIONS)).to_vec();
    for request in 0..5_000 {
        bytes.extend_from_slice(&encode_client(&ClientFrame::StatusRequest { request: RequestId(request) }));
    }
    let _deaf = peer.open(CLIENT_PROTOCOL, &bytes).await;
    until(&node, "the client", |status| status.clients.len() == 1).await;
    assert_delivers(&client(&node).await, &client(&node).await, 1).await;
}
