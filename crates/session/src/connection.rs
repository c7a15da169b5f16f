//! One connection of a session: the hellos, then requests one way, answers and deliveries the other.

use crate::inbox::Inbox;
use crate::keeper::{Request, Waiter};
use crate::{ClientError, Delivery, Options};
use bytes::BytesMut;
use enroute_broker::{BrokerId, Reply, RequestId};
use enroute_filter::{Event, Limits};
use enroute_wire::{
    CLIENT_VERSIONS, ClientFrame, ClientHello, FrameReader, Goodbye, ServerFrame, ServerHello, ShortText, Traffic,
};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};

/// How long the broker may take to answer the hello.
const HELLO_WAIT: Duration = Duration::from_secs(5);
/// How long a session that is being closed waits for what is still to be answered.
const CLOSE_WAIT: Duration = Duration::from_secs(12);
/// Bytes read at a time, and put into one write if there are that many.
const CHUNK: usize = 64 << 10;
/// Requests taken from the handle at a time.
const TAKEN: usize = 256;

/// A stream on which the hellos have been exchanged.
pub(crate) struct Connection<S> {
    stream: S,
    frames: FrameReader,
    hello: ServerHello,
}

/// What is asked for and not answered yet.
pub(crate) struct Pending {
    waiters: Mutex<Waiters>,
    /// One permit for each request that the broker still takes.
    window: Semaphore,
    /// The last waiter is gone.
    settled: Notify,
}

/// Who waits for the answers to requests whose numbers follow each other.
#[derive(Default)]
struct Waiters {
    /// The number of the first.
    first: u64,
    /// None if it has been answered; the first has not.
    waiters: VecDeque<Option<Waiter>>,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Connection<S> {
    /// Exchanges the hellos.
    pub(crate) async fn open(mut stream: S, options: &Options) -> Result<Connection<S>, ClientError> {
        let mut frames = FrameReader::new(Traffic::ToClient);
        let hello = tokio::time::timeout(HELLO_WAIT, exchange_hellos(&mut stream, &mut frames, options));
        match hello.await {
            Ok(hello) => Ok(Connection { hello: hello?, stream, frames }),
            Err(_) => Err(ClientError::protocol("it has not answered the hello in time")),
        }
    }

    pub(crate) fn broker(&self) -> BrokerId {
        self.hello.broker
    }

    /// Runs until the connection ends or the session is to be closed; `first` is sent before anything else. The error says
    /// why; `Ok` if the session is over.
    pub(crate) async fn run(
        self,
        first: Vec<Request>,
        requests: &mut mpsc::Receiver<Request>,
        pending: &Pending,
        inbox: &Inbox,
        mut on_reply: impl FnMut(Waiter, ServerFrame),
    ) -> Result<(), ClientError> {
        inbox.reset_credit();
        let limits = self.hello.limits.clone();
        let (reader, writer) = tokio::io::split(self.stream);
        let mut output = Output { writer, buffer: BytesMut::new(), closing: None };
        let mut reading = std::pin::pin!(read(reader, self.frames, &limits, pending, inbox, &mut on_reply));
        tokio::select! {
            result = output.run(first, requests, pending, inbox) => result?,
            error = &mut reading => return Err(error),
        }
        // Nothing more is asked. What has been is answered still, and the broker takes in the goodbye, or it does not.
        let settled = async {
            tokio::select! {
                () = pending.settled() => {}
                _ = &mut reading => return,
            }
            let goodbye = output.put(&ClientFrame::Goodbye(Goodbye::ShuttingDown));
            if goodbye.is_ok() && output.flush().await.is_ok() && output.writer.shutdown().await.is_ok() {
                reading.await;
            }
        };
        let _ = tokio::time::timeout(CLOSE_WAIT, settled).await;
        Ok(())
    }

    pub(crate) fn max_requests(&self) -> usize {
        (self.hello.max_requests as usize).clamp(1, 1 << 20)
    }
}

async fn exchange_hellos<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    frames: &mut FrameReader,
    options: &Options,
) -> Result<ServerHello, ClientError> {
    let mut out = BytesMut::new();
    let hello = ClientHello {
        versions: CLIENT_VERSIONS,
        slow_subscriber: options.slow_subscriber,
        software: ShortText::clip(&*options.software),
    };
    ClientFrame::Hello(hello).encode(&mut out).map_err(ClientError::Unsendable)?;
    stream.write_all(&out).await.map_err(lost)?;
    stream.flush().await.map_err(lost)?;
    let mut chunk = vec![0; 4096];
    loop {
        if let Some(frame) = frames.next_frame().map_err(ClientError::protocol)? {
            return match ServerFrame::decode(&frame).map_err(ClientError::protocol)? {
                ServerFrame::Hello(hello) => Ok(hello),
                ServerFrame::HelloRefused(refused) => Err(ClientError::HelloRefused(refused)),
                ServerFrame::Goodbye(goodbye) => Err(ClientError::disconnected(format!("the broker says: {goodbye}"))),
                ServerFrame::Reply { .. }
                | ServerFrame::Receipts { .. }
                | ServerFrame::Status { .. }
                | ServerFrame::Delivery(_) => {
                    Err(ClientError::protocol(format!("a {} frame before the hello", frame.kind)))
                }
            };
        }
        let count = stream.read(&mut chunk).await.map_err(lost)?;
        if count == 0 {
            return Err(ClientError::disconnected("the broker has closed the stream without answering the hello"));
        }
        frames.push(&chunk[..count]);
    }
}

/// Takes in frames until the stream ends or breaks.
async fn read<S: AsyncRead>(
    mut reader: ReadHalf<S>,
    mut frames: FrameReader,
    limits: &Limits,
    pending: &Pending,
    inbox: &Inbox,
    on_reply: &mut impl FnMut(Waiter, ServerFrame),
) -> ClientError {
    let mut chunk = vec![0; CHUNK];
    let mut deliveries = Vec::new();
    loop {
        let taken = take_in_all(&mut frames, limits, pending, &mut deliveries, on_reply);
        if !inbox.push(&mut deliveries) {
            return ClientError::protocol("a delivery beyond the credit");
        }
        if let Err(error) = taken {
            return error;
        }
        match reader.read(&mut chunk).await {
            Ok(0) => return ClientError::disconnected("the broker has closed the stream"),
            Ok(count) => frames.push(&chunk[..count]),
            Err(error) => return lost(error),
        }
    }
}

/// Takes in the frames that are here; deliveries are only collected.
fn take_in_all(
    frames: &mut FrameReader,
    limits: &Limits,
    pending: &Pending,
    deliveries: &mut Vec<Delivery>,
    on_reply: &mut impl FnMut(Waiter, ServerFrame),
) -> Result<(), ClientError> {
    while let Some(frame) = frames.next_frame().map_err(ClientError::protocol)? {
        match ServerFrame::decode(&frame).map_err(ClientError::protocol)? {
            ServerFrame::Delivery(delivery) => {
                let event = Event::from_bytes(delivery.event, limits).map_err(ClientError::protocol)?;
                deliveries.push(Delivery { id: delivery.id, event, subscriptions: delivery.subscriptions });
            }
            ServerFrame::Receipts { first, count, mut receipt } => {
                pending.answered(first, count, |request, waiter| {
                    on_reply(waiter, ServerFrame::Reply { request, reply: Reply::Published(receipt) });
                    receipt.id.sequence = receipt.id.sequence.wrapping_add(1);
                })?
            }
            frame @ (ServerFrame::Reply { request, .. } | ServerFrame::Status { request, .. }) => {
                let mut answered = None;
                pending.answered(request, 1, |_, waiter| answered = Some(waiter))?;
                if let Some(waiter) = answered {
                    on_reply(waiter, frame);
                }
            }
            ServerFrame::Goodbye(goodbye) => {
                return Err(ClientError::disconnected(format!("the broker says: {goodbye}")));
            }
            ServerFrame::Hello(_) | ServerFrame::HelloRefused(_) => {
                return Err(ClientError::protocol("a second hello"));
            }
        }
    }
    Ok(())
}

impl Pending {
    pub(crate) fn new(max_requests: usize) -> Pending {
        Pending { waiters: Mutex::default(), window: Semaphore::new(max_requests), settled: Notify::new() }
    }

    /// Waits until everything is answered.
    async fn settled(&self) {
        while !self.lock().is_empty() {
            self.settled.notified().await;
        }
    }

    /// Requests whose numbers follow each other have answers; the broker takes as many more.
    fn answered(
        &self,
        first: RequestId,
        count: u32,
        mut each: impl FnMut(RequestId, Waiter),
    ) -> Result<(), ClientError> {
        let mut waiters = self.lock();
        for request in (first.0..=u64::MAX).take(count as usize).map(RequestId) {
            let waiter = waiters.take(request);
            let unasked = || ClientError::protocol(format!("an answer to no request: {}", request.0));
            each(request, waiter.ok_or_else(unasked)?);
        }
        self.window.add_permits(count as usize);
        if waiters.is_empty() {
            self.settled.notify_one();
        }
        Ok(())
    }

    /// All that nobody will answer any more.
    pub(crate) fn abandoned(&self) -> Vec<Waiter> {
        self.lock().waiters.drain(..).flatten().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiters {
    fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// The numbers grow; one is left out if its request could not be sent.
    fn insert(&mut self, request: RequestId, waiter: Waiter) {
        if self.waiters.is_empty() {
            self.first = request.0;
        }
        let index = (request.0 - self.first) as usize;
        self.waiters.resize_with(index, || None);
        self.waiters.push_back(Some(waiter));
    }

    fn take(&mut self, request: RequestId) -> Option<Waiter> {
        let index = usize::try_from(request.0.checked_sub(self.first)?).ok()?;
        let waiter = self.waiters.get_mut(index)?.take();
        while self.waiters.front().is_some_and(Option::is_none) {
            self.waiters.pop_front();
            self.first += 1;
        }
        waiter
    }
}

/// The sending direction.
struct Output<S> {
    writer: WriteHalf<S>,
    buffer: BytesMut,
    /// Told, by being dropped, when the session is over.
    closing: Option<oneshot::Sender<()>>,
}

impl<S: AsyncWrite> Output<S> {
    /// Sends credit and requests as they come; `Ok` when the session is to be closed.
    async fn run(
        &mut self,
        first: Vec<Request>,
        requests: &mut mpsc::Receiver<Request>,
        pending: &Pending,
        inbox: &Inbox,
    ) -> Result<(), ClientError> {
        let mut taken = first;
        let mut number = 0;
        loop {
            for request in taken.drain(..) {
                number += 1;
                if self.send(request, RequestId(number), pending).await? {
                    return Ok(());
                }
            }
            self.flush().await?;
            tokio::select! {
                deliveries = inbox.grant() => self.put(&ClientFrame::Credit { deliveries })?,
                count = requests.recv_many(&mut taken, TAKEN) => {
                    if count == 0 {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Puts a request into the buffer, and waits with it if the broker takes no more. True if it was the last one.
    async fn send(&mut self, request: Request, number: RequestId, pending: &Pending) -> Result<bool, ClientError> {
        let (frame, waiter) = match request {
            Request::Command { command, answer } => {
                let frame = ClientFrame::Request { request: number, command: command.clone() };
                (frame, Waiter::Command { command, answer: Some(answer) })
            }
            Request::Again { command } => {
                let frame = ClientFrame::Request { request: number, command: command.clone() };
                (frame, Waiter::Command { command, answer: None })
            }
            Request::Publish { event, answer } => {
                let frame = ClientFrame::Publish { request: number, event: event.as_bytes().clone() };
                (frame, Waiter::Publish { answer })
            }
            Request::Status { answer } => (ClientFrame::StatusRequest { request: number }, Waiter::Status { answer }),
            Request::Close { done } => {
                self.flush().await?;
                self.closing = Some(done);
                return Ok(true);
            }
        };
        if self.buffer.len() >= CHUNK || pending.window.available_permits() == 0 {
            self.flush().await?;
        }
        match pending.window.acquire().await {
            // Given back when the answer comes.
            Ok(permit) => permit.forget(),
            Err(_) => return Err(ClientError::disconnected("the session is over")),
        }
        match frame.encode(&mut self.buffer) {
            Ok(()) => {
                pending.lock().insert(number, waiter);
            }
            Err(error) => {
                pending.window.add_permits(1);
                waiter.fail(ClientError::Unsendable(error));
            }
        }
        Ok(false)
    }

    fn put(&mut self, frame: &ClientFrame) -> Result<(), ClientError> {
        frame.encode(&mut self.buffer).map_err(ClientError::Unsendable)
    }

    async fn flush(&mut self) -> Result<(), ClientError> {
        if !self.buffer.is_empty() {
            self.writer.write_all(&self.buffer).await.map_err(lost)?;
            self.buffer.clear();
            self.writer.flush().await.map_err(lost)?;
        }
        Ok(())
    }
}

fn lost(error: std::io::Error) -> ClientError {
    ClientError::disconnected(error.to_string())
}
