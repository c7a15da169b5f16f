//! One connection of a session: the hellos, then requests one way, answers and deliveries the other.

use crate::inbox::Inbox;
use crate::keeper::{Request, Waiter};
use crate::pending::Pending;
use crate::receipts::Ticket;
use crate::requests::Requests;
use crate::{ClientError, Delivery, Options};
use bytes::BytesMut;
use enroute_broker::{BrokerId, Receipt, Reply};
use enroute_filter::{Event, Limits};
use enroute_wire::{
    CLIENT_VERSIONS, ClientFrame, ClientHello, FrameReader, Goodbye, Names, ServerFrame, ServerHello, ShortText,
    Traffic, encode_publish,
};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::oneshot;

/// How long the broker may take to answer the hello.
const HELLO_WAIT: Duration = Duration::from_secs(5);
/// How long a session that is being closed waits for what is still to be answered.
const CLOSE_WAIT: Duration = Duration::from_secs(12);
/// Bytes read at a time, of hellos and of what follows.
const HELLO: usize = 4 << 10;
const CHUNK: usize = 64 << 10;
/// A write that has so many bytes is not added to: with one frame more it mostly is still encrypted at once.
const WRITE: usize = 60 << 10;

/// A stream on which the hellos have been exchanged.
pub(crate) struct Connection<S> {
    stream: S,
    frames: FrameReader,
    hello: ServerHello,
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

    /// Runs until the connection ends or the session is to be closed; what is unsent in `pending` is sent before anything else.
    /// The error says why; `Ok` if the session is over.
    pub(crate) async fn run(
        self,
        requests: &Requests,
        pending: &Pending,
        inbox: &Inbox,
        mut on_reply: impl FnMut(Waiter, ServerFrame),
    ) -> Result<(), ClientError> {
        inbox.reset_credit();
        let limits = self.hello.limits.clone();
        let (reader, writer) = tokio::io::split(self.stream);
        let mut output = Output { writer, buffer: BytesMut::new(), closing: None };
        let incoming = Incoming { frames: self.frames, names: Names::default(), limits: &limits, requests, pending };
        let mut reading = std::pin::pin!(incoming.read(reader, inbox, &mut on_reply));
        tokio::select! {
            result = output.run(requests, pending, inbox) => result?,
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
    loop {
        if let Some(frame) = frames.next_frame().map_err(ClientError::protocol)? {
            let kind = frame.kind;
            return match ServerFrame::decode(frame).map_err(ClientError::protocol)? {
                ServerFrame::Hello(hello) => Ok(hello),
                ServerFrame::HelloRefused(refused) => Err(ClientError::HelloRefused(refused)),
                ServerFrame::Goodbye(goodbye) => Err(ClientError::disconnected(format!("the broker says: {goodbye}"))),
                ServerFrame::Reply { .. }
                | ServerFrame::Receipts { .. }
                | ServerFrame::Status { .. }
                | ServerFrame::Delivery(_) => Err(ClientError::protocol(format!("a {kind} frame before the hello"))),
            };
        }
        let count = stream.read(frames.room(HELLO)).await.map_err(lost)?;
        if count == 0 {
            return Err(ClientError::disconnected("the broker has closed the stream without answering the hello"));
        }
        frames.filled(count);
    }
}

/// The receiving direction.
struct Incoming<'a> {
    frames: FrameReader,
    names: Names,
    limits: &'a Limits,
    requests: &'a Requests,
    pending: &'a Pending,
}

/// What has come and is still to be handed on, all at once.
#[derive(Default)]
struct Arrived {
    deliveries: Vec<Delivery>,
    receipts: Vec<(Ticket, Result<Receipt, ClientError>)>,
}

impl Incoming<'_> {
    /// Takes in frames until the stream ends or breaks.
    async fn read<S: AsyncRead>(
        mut self,
        mut reader: ReadHalf<S>,
        inbox: &Inbox,
        on_reply: &mut impl FnMut(Waiter, ServerFrame),
    ) -> ClientError {
        let mut arrived = Arrived::default();
        loop {
            let taken = self.take_in_all(&mut arrived, on_reply);
            self.requests.answer(&mut arrived.receipts);
            if !inbox.push(&mut arrived.deliveries) {
                return ClientError::protocol("a delivery beyond the credit");
            }
            if let Err(error) = taken {
                return error;
            }
            match reader.read(self.frames.room(CHUNK)).await {
                Ok(0) => return ClientError::disconnected("the broker has closed the stream"),
                Ok(count) => self.frames.filled(count),
                Err(error) => return lost(error),
            }
        }
    }

    /// Takes in the frames that are here; deliveries and receipts are only collected.
    fn take_in_all(
        &mut self,
        arrived: &mut Arrived,
        on_reply: &mut impl FnMut(Waiter, ServerFrame),
    ) -> Result<(), ClientError> {
        while let Some(frame) = self.frames.next_frame().map_err(ClientError::protocol)? {
            match ServerFrame::decode_sharing(frame, &mut self.names).map_err(ClientError::protocol)? {
                ServerFrame::Delivery(delivery) => {
                    let event = Event::from_bytes(delivery.event, self.limits).map_err(ClientError::protocol)?;
                    arrived.deliveries.push(Delivery { id: delivery.id, event, subscriptions: delivery.subscriptions });
                }
                ServerFrame::Receipts { first, count, mut receipt } => {
                    self.pending.answered(first, count, |request, waiter| {
                        match waiter {
                            Waiter::Publish { ticket } => arrived.receipts.push((ticket, Ok(receipt))),
                            waiter @ (Waiter::Command { .. } | Waiter::Status { .. }) => {
                                on_reply(waiter, ServerFrame::Reply { request, reply: Reply::Published(receipt) });
                            }
                        }
                        receipt.id.sequence = receipt.id.sequence.wrapping_add(1);
                    })?;
                }
                frame @ (ServerFrame::Reply { request, .. } | ServerFrame::Status { request, .. }) => {
                    let mut answered = None;
                    self.pending.answered(request, 1, |_, waiter| answered = Some(waiter))?;
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
}

/// The sending direction.
struct Output<S> {
    writer: WriteHalf<S>,
    buffer: BytesMut,
    /// Told, by being dropped, when the session is over.
    closing: Option<oneshot::Sender<()>>,
}

/// How far putting requests into the buffer has got.
enum Progress {
    /// All of them are there.
    Done,
    /// There is enough for a write.
    Enough,
    /// The broker takes no more before it has answered some.
    NoRoom,
    /// The session is to be closed.
    Close(oneshot::Sender<()>),
}

impl<S: AsyncWrite> Output<S> {
    /// Sends credit and requests as they come; `Ok` when the session is to be closed.
    async fn run(&mut self, requests: &Requests, pending: &Pending, inbox: &Inbox) -> Result<(), ClientError> {
        let mut taken = VecDeque::new();
        loop {
            loop {
                let progress = self.put_requests(requests, pending);
                self.flush().await?;
                match progress {
                    Progress::Done => break,
                    Progress::Enough => {}
                    // The broker may answer only when deliveries that wait there are gone.
                    Progress::NoRoom => tokio::select! {
                        () = pending.room() => {}
                        deliveries = inbox.grant() => self.put(&ClientFrame::Credit { deliveries })?,
                    },
                    Progress::Close(done) => {
                        self.closing = Some(done);
                        return Ok(());
                    }
                }
            }
            tokio::select! {
                deliveries = inbox.grant() => self.put(&ClientFrame::Credit { deliveries })?,
                any = requests.take(&mut taken) => {
                    if !any {
                        return Ok(());
                    }
                    pending.lock().unsent.append(&mut taken);
                }
            }
        }
    }

    /// Puts requests into the buffer, as many as go.
    fn put_requests(&mut self, requests: &Requests, pending: &Pending) -> Progress {
        let mut sent = pending.lock();
        while let Some(request) = sent.unsent.pop_front() {
            if self.buffer.len() >= WRITE || !pending.has_room(&sent) {
                sent.unsent.push_front(request);
                return if pending.has_room(&sent) { Progress::Enough } else { Progress::NoRoom };
            }
            let number = sent.next();
            let encoded = match &request {
                Request::Publish { event, .. } => encode_publish(number, event.as_bytes(), &mut self.buffer),
                Request::Command { command, .. } | Request::Again { command } => {
                    ClientFrame::Request { request: number, command: command.clone() }.encode(&mut self.buffer)
                }
                Request::Status { .. } => ClientFrame::StatusRequest { request: number }.encode(&mut self.buffer),
                Request::Close { .. } => Ok(()),
            };
            match (request, encoded) {
                (Request::Close { done }, _) => return Progress::Close(done),
                (request, Ok(())) => request.into_waiter().into_iter().for_each(|waiter| sent.push(waiter)),
                (request, Err(error)) => {
                    let waiter = request.into_waiter();
                    waiter.into_iter().for_each(|waiter| waiter.fail(requests, ClientError::Unsendable(error.clone())));
                }
            }
        }
        Progress::Done
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
