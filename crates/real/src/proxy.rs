//! A link's wire: a TCP proxy that delays, throttles, cuts and resets.
//!
//! One end of a link dials the proxy, which dials the other end. What it copies it does not understand: bytes come out in order,
//! later.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

/// Bytes taken at a time.
const CHUNK: usize = 16 << 10;

/// Chunks under way in one direction; a megabyte in all.
const CHUNKS: usize = 64;

/// What a wire does to the bytes of either direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wire {
    /// How much later they come out. The runtime's timers make whole milliseconds of it.
    pub delay: Duration,
    /// Bytes a second; nothing: as many as there are.
    pub bandwidth: Option<u64>,
}

/// What connections are told.
#[derive(Clone, Copy, Debug)]
struct Orders {
    /// Where the far end listens, once that is known.
    target: Option<SocketAddr>,
    cut: bool,
    /// How many resets there have been.
    resets: u64,
    wire: Wire,
}

/// A proxy; it stops, and its connections with it, when dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    orders: watch::Sender<Orders>,
    struck: Arc<AtomicUsize>,
    accepting: AbortHandle,
}

impl Proxy {
    /// Listens at a free port. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If the port cannot be had.
    pub async fn start(host: IpAddr, wire: Wire) -> io::Result<Proxy> {
        let listener = TcpListener::bind((host, 0)).await?;
        let address = listener.local_addr()?;
        let (orders, watching) = watch::channel(Orders { target: None, cut: false, resets: 0, wire });
        let struck = Arc::default();
        let accepting = tokio::spawn(accept(listener, watching, Arc::clone(&struck))).abort_handle();
        Ok(Proxy { address, orders, struck, accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections from now on lead there.
    pub fn lead_to(&self, target: SocketAddr) {
        self.orders.send_modify(|orders| orders.target = Some(target));
    }

    /// Closes what there is and refuses what comes, until [`Proxy::heal`].
    pub fn cut(&self) {
        self.orders.send_modify(|orders| orders.cut = true);
    }

    /// Lets connections through again.
    pub fn heal(&self) {
        self.orders.send_modify(|orders| orders.cut = false);
    }

    /// Resets all connections, both sides: neither end reads what was under way.
    pub fn reset(&self) {
        self.orders.send_modify(|orders| orders.resets += 1);
    }

    /// How many connections have been reset.
    pub fn struck(&self) -> usize {
        self.struck.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, orders: watch::Receiver<Orders>, struck: Arc<AtomicUsize>) {
    loop {
        // Too many open files, say: the dialler tries again, and so does this.
        let Ok((near, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let Orders { target, cut, .. } = *orders.borrow();
        if let Some(target) = target.filter(|_| !cut) {
            tokio::spawn(join(near, target, orders.clone(), Arc::clone(&struck)));
        }
    }
}

/// Carries one connection until either end or an order closes it.
async fn join(mut near: TcpStream, target: SocketAddr, mut orders: watch::Receiver<Orders>, struck: Arc<AtomicUsize>) {
    let Orders { wire, resets, .. } = *orders.borrow_and_update();
    let Ok(mut far) = TcpStream::connect(target).await else { return };
    // Without it the proxy would add waits of its own; a connection that cannot be told so is over anyway.
    let _ = near.set_nodelay(true).and_then(|()| far.set_nodelay(true));
    let over = {
        let (near_read, near_write) = near.split();
        let (far_read, far_write) = far.split();
        tokio::select! {
            _ = async { tokio::join!(pump(near_read, far_write, wire), pump(far_read, near_write, wire)) } => None,
            over = orders.wait_for(|orders| orders.cut || orders.resets != resets) => over.ok().map(|orders| *orders),
        }
    };
    if over.is_some_and(|orders| orders.resets != resets) {
        struck.fetch_add(1, Ordering::Relaxed);
        let _ = near.set_zero_linger().and_then(|()| far.set_zero_linger());
    }
}

/// Copies one direction to its end, and passes the end on too.
async fn pump(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, wire: Wire) -> io::Result<()> {
    let (sender, mut chunks) = mpsc::channel::<(Instant, Vec<u8>)>(CHUNKS);
    let reading = async move {
        let mut buffer = vec![0; CHUNK];
        // An end that fails closes the other one as an end that closes does.
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            if sender.send((Instant::now() + wire.delay, buffer[..length].to_vec())).await.is_err() {
                break;
            }
        }
    };
    let writing = async move {
        let mut free = Instant::now();
        while let Some((due, bytes)) = chunks.recv().await {
            if !wire.delay.is_zero() || wire.bandwidth.is_some() {
                sleep_until(due.max(free)).await;
            }
            to.write_all(&bytes).await?;
            if let Some(bandwidth) = wire.bandwidth {
                free = free.max(due) + Duration::from_secs_f64(bytes.len() as f64 / bandwidth.max(1) as f64);
            }
        }
        to.shutdown().await
    };
    tokio::join!(reading, writing).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use tokio::time::timeout;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const DEADLINE: Duration = Duration::from_secs(30);

    /// A proxy and a connection through it, both of its ends.
    async fn through(wire: Wire) -> (Proxy, TcpListener, TcpStream, TcpStream) {
        let proxy = Proxy::start(HERE, wire).await.expect("a free port");
        let listener = TcpListener::bind((HERE, 0)).await.expect("a free port");
        proxy.lead_to(listener.local_addr().expect("bound"));
        let near = TcpStream::connect(proxy.address()).await.expect("it listens");
        let (far, _) = listener.accept().await.expect("the proxy dials");
        (proxy, listener, near, far)
    }

    /// What reading one byte comes to.
    async fn read(stream: &mut TcpStream) -> io::Result<usize> {
        timeout(DEADLINE, stream.read(&mut [0])).await.expect("in time")
    }

    #[tokio::test]
    async fn bytes_come_later_in_their_order() {
        let delay = Duration::from_millis(20);
        let (_proxy, _listener, mut near, mut far) = through(Wire { delay, bandwidth: Some(1 << 20) }).await;
        let start = Instant::now();
        let sent: Vec<u8> = (0..100_000u32).map(|number| (number % 251) as u8).collect();
        near.write_all(&sent).await.expect("open");
        near.shutdown().await.expect("open");
        let mut received = Vec::new();
        timeout(DEADLINE, far.read_to_end(&mut received)).await.expect("in time").expect("to its end");
        assert_eq!(received, sent);
        // Less would be a wrong proxy; more is a busy machine. The last chunk is not paid for.
        let least = delay + Duration::from_secs_f64((sent.len() - CHUNK) as f64 / f64::from(1 << 20));
        assert!(start.elapsed() >= least, "{:?} < {least:?}", start.elapsed());
    }

    #[tokio::test]
    async fn a_cut_closes_both_sides_and_refuses_until_healed() {
        let (proxy, listener, mut near, mut far) = through(Wire::default()).await;
        proxy.cut();
        assert_eq!(read(&mut near).await.ok(), Some(0));
        assert_eq!(read(&mut far).await.ok(), Some(0));
        let mut refused = TcpStream::connect(proxy.address()).await.expect("it listens");
        assert!(matches!(read(&mut refused).await, Ok(0) | Err(_)));
        proxy.heal();
        let mut near = TcpStream::connect(proxy.address()).await.expect("it listens");
        let (mut far, _) = timeout(DEADLINE, listener.accept()).await.expect("in time").expect("the proxy dials");
        far.write_all(b"x").await.expect("open");
        assert_eq!(read(&mut near).await.ok(), Some(1));
    }

    #[tokio::test]
    async fn a_reset_is_one_for_both_sides() {
        let (proxy, _listener, mut near, mut far) = through(Wire::default()).await;
        proxy.reset();
        for side in [&mut near, &mut far] {
            let error = read(side).await.expect_err("a reset");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        }
        assert_eq!(proxy.struck(), 1);
    }
}
