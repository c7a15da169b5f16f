//! A peer that can say anything.

use crate::support::within;
use enroute_wire::{Frame, FrameReader, Traffic};
use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use libp2p::identity::Keypair;
use libp2p::swarm::SwarmEvent;
use libp2p::{Multiaddr, PeerId, Stream, StreamProtocol, SwarmBuilder, noise, tcp, yamux};
use libp2p_stream::Control;
use tokio::task::JoinHandle;

/// A connection to a node, and no idea of the protocol.
pub(crate) struct RawPeer {
    pub(crate) id: PeerId,
    node: PeerId,
    streams: Control,
    swarm: JoinHandle<()>,
}

impl RawPeer {
    pub(crate) async fn connect(address: Multiaddr) -> RawPeer {
        let keypair = Keypair::generate_ed25519();
        let id = keypair.public().to_peer_id();
        let mut swarm = SwarmBuilder::with_existing_identity(keypair)
            .with_tokio()
            .with_tcp(tcp::Config::new(), noise::Config::new, yamux::Config::default)
            .expect("a transport")
            .with_behaviour(|_| libp2p_stream::Behaviour::new())
            .expect("a behaviour")
            .build();
        let streams = swarm.behaviour().new_control();
        swarm.dial(address).expect("an address that can be dialled");
        let node = within("a connection", async {
            loop {
                if let SwarmEvent::ConnectionEstablished { peer_id, .. } = swarm.select_next_some().await {
                    return peer_id;
                }
            }
        });
        let node = node.await;
        let swarm = tokio::spawn(async move {
            loop {
                swarm.select_next_some().await;
            }
        });
        RawPeer { id, node, streams, swarm }
    }

    /// Opens a stream and writes to it.
    pub(crate) async fn open(&mut self, protocol: &'static str, bytes: &[u8]) -> Stream {
        let stream = self.streams.open_stream(self.node, StreamProtocol::new(protocol));
        let mut stream = within("a stream", stream).await.expect("the protocol is spoken");
        // The node may cut off whoever sends rubbish before it has sent all of it.
        let _ = stream.write_all(bytes).await;
        let _ = stream.flush().await;
        stream
    }
}

impl Drop for RawPeer {
    fn drop(&mut self) {
        self.swarm.abort();
    }
}

/// All frames up to the end of a stream.
pub(crate) async fn frames_to_the_end(stream: &mut Stream, traffic: Traffic) -> Vec<Frame> {
    let mut bytes = Vec::new();
    // A stream that is reset ends too.
    let _ = within("the end of the stream", stream.read_to_end(&mut bytes)).await;
    let mut reader = FrameReader::new(traffic);
    reader.push(&bytes);
    std::iter::from_fn(|| reader.next_frame().expect("the node sends whole frames")).collect()
}

/// The next frame.
pub(crate) async fn next_frame(stream: &mut Stream, reader: &mut FrameReader) -> Frame {
    let mut chunk = [0; 4096];
    loop {
        if let Some(frame) = reader.next_frame().expect("the node sends frames") {
            return frame;
        }
        let count = within("a frame", stream.read(&mut chunk)).await.expect("the stream lives");
        assert!(count > 0, "the stream has ended");
        reader.push(&chunk[..count]);
    }
}
