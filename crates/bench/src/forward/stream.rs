//! The ceiling: bare libp2p streams over TCP, noise and yamux, written 64 KiB at a time, through relays that only copy.

use crate::forward::role::{
    Command, Meter, STAMP, Sender, commands, moment_of, serve_publisher, serve_subscriber, tell_ready,
};
use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use libp2p::multiaddr::Protocol;
use libp2p::swarm::SwarmEvent;
use libp2p::{Multiaddr, PeerId, Stream, StreamProtocol, Swarm, SwarmBuilder, noise, tcp, yamux};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime;

type Failure = Box<dyn Error + Send + Sync>;

const PROTOCOL: StreamProtocol = StreamProtocol::new("/enroute-bench/stream/1");
/// Bytes of a write and of a read.
const CHUNK: usize = 64 << 10;
/// Bytes that a message begins with: its length.
const LENGTH: usize = 4;

/// The first byte on a stream says which way it flows.
const UP: u8 = 0;
const DOWN: u8 = 1;

fn swarm() -> Result<Swarm<libp2p_stream::Behaviour>, Failure> {
    let builder = SwarmBuilder::with_new_identity().with_tokio();
    let builder = builder.with_tcp(tcp::Config::new().nodelay(true), noise::Config::new, yamux::Config::default)?;
    let builder = builder.with_behaviour(|_| libp2p_stream::Behaviour::new())?;
    let idle = Duration::from_secs(3_600);
    Ok(builder.with_swarm_config(|config| config.with_idle_connection_timeout(idle)).build())
}

/// Opens a stream to whoever is at an address, with its peer id at the end.
async fn open(address: &str, way: u8) -> Result<Stream, Failure> {
    let address: Multiaddr = address.parse()?;
    let Some(Protocol::P2p(peer)) = address.iter().last() else { return Err("an address without a peer".into()) };
    let mut swarm = swarm()?;
    swarm.dial(address)?;
    let mut control = swarm.behaviour().new_control();
    tokio::spawn(async move { while swarm.next().await.is_some() {} });
    let mut stream = control.open_stream(peer, PROTOCOL).await?;
    stream.write_all(&[way]).await?;
    stream.flush().await?;
    Ok(stream)
}

/// Copies what comes up to all who listen, until the standard input ends.
///
/// # Errors
/// If it does not start.
pub fn serve_relay(port: u16, upstream: Option<&str>) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut swarm = swarm()?;
        let peer: PeerId = *swarm.local_peer_id();
        let mut incoming = swarm.behaviour().new_control().accept(PROTOCOL)?;
        swarm.listen_on(format!("/ip4/127.0.0.1/tcp/{port}").parse()?)?;
        let address = loop {
            if let SwarmEvent::NewListenAddr { address, .. } = swarm.select_next_some().await {
                break address;
            }
        };
        tokio::spawn(async move { while swarm.next().await.is_some() {} });
        let upstream = match upstream {
            Some(upstream) => Some(open(upstream, DOWN).await?),
            None => None,
        };
        tokio::spawn(async move {
            // One of each, as there is one subscriber.
            let (mut source, mut target) = (upstream, None);
            while let Some((_, mut stream)) = incoming.next().await {
                let mut way = [0];
                if stream.read_exact(&mut way).await.is_err() {
                    continue;
                }
                match way[0] {
                    UP => source = Some(stream),
                    _ => target = Some(stream),
                }
                match (source.take(), target.take()) {
                    (Some(source), Some(target)) => drop(tokio::spawn(copy(source, target))),
                    pair => (source, target) = pair,
                }
            }
        });
        tell_ready(&format!("{address}/p2p/{peer}"));
        tokio::task::spawn_blocking(|| commands::<Command>().for_each(drop)).await?;
        Ok(())
    })
}

async fn copy(mut source: Stream, mut target: Stream) {
    let mut chunk = vec![0; CHUNK];
    loop {
        let mut length = 0;
        // What is there already goes into the same write.
        while length < CHUNK {
            let read = std::future::poll_fn(|context| {
                match futures::AsyncRead::poll_read(std::pin::Pin::new(&mut source), context, &mut chunk[length..]) {
                    std::task::Poll::Pending if length > 0 => std::task::Poll::Ready(Ok(0)),
                    other => other,
                }
            });
            match read.await {
                Ok(0) if length == 0 => return,
                Ok(0) => break,
                Ok(count) => length += count,
                Err(_) => return,
            }
        }
        if target.write_all(&chunk[..length]).await.is_err() || target.flush().await.is_err() {
            return;
        }
    }
}

/// Publishes as told.
///
/// # Errors
/// If it cannot connect.
pub fn publish(address: &str, body: usize) -> Result<(), Failure> {
    // A thread of its own for the connection: what is flushed is not written yet.
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let stream = runtime.block_on(open(address, UP))?;
    tell_ready("");
    serve_publisher(&mut Publisher { runtime, stream, message: vec![0; body.max(STAMP)], buffer: Vec::new() });
    Ok(())
}

struct Publisher {
    runtime: runtime::Runtime,
    stream: Stream,
    message: Vec<u8>,
    buffer: Vec<u8>,
}

impl Publisher {
    fn flush(&mut self) {
        self.runtime.block_on(async {
            self.stream.write_all(&self.buffer).await.expect("the stream lives");
            self.stream.flush().await.expect("the stream lives");
        });
        self.buffer.clear();
    }
}

impl Sender for Publisher {
    fn send(&mut self, moments: &[u64]) {
        for moment in moments {
            self.message[..STAMP].copy_from_slice(&moment.to_le_bytes());
            self.buffer.extend_from_slice(&(self.message.len() as u32).to_le_bytes());
            self.buffer.extend_from_slice(&self.message);
            if self.buffer.len() >= CHUNK {
                self.flush();
            }
        }
        if moments.first().is_some_and(|&moment| moment != 0) {
            self.flush();
        }
    }

    fn finish(&mut self) {
        self.flush();
    }
}

/// Subscribes and counts.
///
/// # Errors
/// If it cannot connect.
pub fn subscribe(address: &str) -> Result<(), Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let mut stream = runtime.block_on(open(address, DOWN))?;
    let meter = Arc::new(Meter::default());
    let counting = Arc::clone(&meter);
    std::thread::spawn(move || {
        runtime.block_on(async {
            let (mut chunk, mut rest, mut moments) = (vec![0; CHUNK], Vec::new(), Vec::new());
            while let Ok(count) = stream.read(&mut chunk).await {
                if count == 0 {
                    return;
                }
                rest.extend_from_slice(&chunk[..count]);
                let taken = take_messages(&rest, &mut moments);
                rest.drain(..taken);
                if !moments.is_empty() {
                    counting.take(&moments);
                    moments.clear();
                }
            }
        });
    });
    tell_ready("");
    serve_subscriber(&meter);
    Ok(())
}

/// Reads all whole messages; how many bytes they had.
fn take_messages(bytes: &[u8], moments: &mut Vec<u64>) -> usize {
    let mut taken = 0;
    while let Some((length, rest)) = bytes[taken..].split_first_chunk::<LENGTH>() {
        let Some(message) = rest.get(..u32::from_le_bytes(*length) as usize) else { break };
        moments.push(moment_of(message));
        taken += LENGTH + message.len();
    }
    taken
}
