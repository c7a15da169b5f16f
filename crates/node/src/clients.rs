//! A client's connection: the hello, its requests one way, answers and deliveries the other.

use crate::context::{SOFTWARE, Shared};
use crate::event_loop::{ClientRequest, ControlInput, Traffic};
use crate::frames::{Frames, FramesError, write};
use crate::handshake::send_last;
use crate::outbox::{Batch, Outbox};
use bytes::BytesMut;
use enroute_broker::ClientId;
use enroute_filter::Event;
use enroute_session::{ClientStatus, NodeStatus, SlowSubscriber};
use enroute_wire::{
    CLIENT_VERSIONS, ClientFrame, ClientHello, Frame, Goodbye, HelloRefused, MAX_STATUS, RefusalCode, ServerFrame,
    ServerHello, ShortText,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, WriteHalf};
use tokio::sync::Semaphore;
use tracing::Instrument;

/// How long a client may take to say hello, and to take its last words.
const STEP: Duration = Duration::from_secs(5);
/// Requests of one client that may be unanswered.
const MAX_REQUESTS: usize = 8_192;
/// Batches of one client that may wait for the event loop, and what is in a batch: so many requests, or with the last so many
/// bytes.
const BATCHES: usize = 2;
const BATCH_REQUESTS: usize = 128;
const BATCH_BYTES: usize = 128 << 10;
/// Bytes of a status that a frame has room for, its number besides.
const STATUS_BYTES: usize = MAX_STATUS - 64;

/// What the event loop holds of a client.
pub(crate) struct ClientEntry {
    pub(crate) id: ClientId,
    pub(crate) outbox: Outbox,
    peer_id: String,
    software: String,
    /// One permit: a status is far longer than the request for it.
    status: Arc<Semaphore>,
}

/// How many more requests a client may have unanswered. Only its reader takes of them, and so takes many at a time.
struct Window<'a> {
    open: &'a Semaphore,
    at_hand: usize,
}

impl Window<'_> {
    /// Takes one, which is given back when the answer is written; waits for it if need be.
    async fn take(&mut self) -> Result<(), End> {
        if self.at_hand == 0 {
            let many = self.open.available_permits().clamp(1, BATCH_REQUESTS);
            self.open.acquire_many(many as u32).await.map_err(|_| End::Gone("over".into()))?.forget();
            self.at_hand = many;
        }
        self.at_hand -= 1;
        Ok(())
    }

    fn is_open(&self) -> bool {
        self.at_hand > 0 || self.open.available_permits() > 0
    }
}

/// Why nothing more is read from a client.
enum End {
    /// It has said goodbye, closed its stream, or is gone.
    Gone(String),
    /// It has sent what cannot be read.
    Unreadable(String),
}

impl ClientEntry {
    pub(crate) fn new(id: ClientId, outbox: Outbox, peer_id: String, software: String) -> ClientEntry {
        ClientEntry { id, outbox, peer_id, software, status: Arc::new(Semaphore::new(1)) }
    }

    pub(crate) fn status(&self) -> ClientStatus {
        let counts = self.outbox.counts();
        let slow_subscriber = match self.outbox.policy() {
            SlowSubscriber::DropOldest => "drop_oldest",
            SlowSubscriber::DropNewest => "drop_newest",
            SlowSubscriber::Disconnect => "disconnect",
            SlowSubscriber::PushBack => "push_back",
        };
        ClientStatus {
            client: self.id.0,
            peer_id: self.peer_id.clone(),
            software: self.software.clone(),
            slow_subscriber: slow_subscriber.into(),
            delivered: counts.delivered,
            dropped: counts.dropped,
            waiting: counts.waiting as u64,
            waiting_bytes: counts.waiting_bytes as u64,
        }
    }
}

/// Serves a client over a stream, from its hello to its end. `peer_id` is empty for one in this process.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(context: Shared, peer_id: String, stream: S) {
    let mut frames = Frames::new(stream, enroute_wire::Traffic::FromClient);
    let hello = match tokio::time::timeout(STEP, read_hello(&context, &mut frames)).await {
        Ok(Ok(hello)) => hello,
        Ok(Err(Some(refused))) => {
            tracing::warn!(%peer_id, reason = %refused.text, "client refused");
            context.note_refusal(peer_id, refused.text.to_string());
            let mut bytes = BytesMut::new();
            if ServerFrame::HelloRefused(refused).encode(&mut bytes).is_ok() {
                send_last(frames.get_mut(), &bytes).await;
            }
            return;
        }
        Ok(Err(None)) => return tracing::debug!(%peer_id, "a client went without a hello"),
        Err(_) => return tracing::debug!(%peer_id, "a client did not say hello in time"),
    };
    // The place was taken by `read_hello`.
    let config = &context.config;
    let policy = hello.slow_subscriber.unwrap_or(config.slow_subscriber);
    let outbox = Outbox::new(policy, config.client_queue_events, config.client_queue_bytes);
    let entry = Arc::new(ClientEntry::new(context.next_client(), outbox, peer_id, hello.software.to_string()));
    let span = tracing::info_span!("client", id = entry.id.0);
    run(&context, &entry, frames).instrument(span).await;
    context.clients.fetch_sub(1, Ordering::AcqRel);
}

/// Reads and judges the hello; a client that is let in has taken a place. No refusal if there is nobody to tell.
async fn read_hello<S: AsyncRead + Unpin>(
    context: &Shared,
    frames: &mut Frames<S>,
) -> Result<ClientHello, Option<HelloRefused>> {
    let frame = match frames.next().await {
        Ok(Some(frame)) => frame,
        Err(FramesError::Wire(error)) => return Err(Some((&error).into())),
        Ok(None) | Err(FramesError::Io(_) | FramesError::BrokenOff) => return Err(None),
    };
    let kind = frame.kind;
    let hello = match ClientFrame::decode(frame) {
        Ok(ClientFrame::Hello(hello)) => hello,
        Ok(_) => {
            let text = format!("a {kind} frame before the hello");
            return Err(Some(HelloRefused::new(RefusalCode::Unreadable, text)));
        }
        Err(error) => return Err(Some((&error).into())),
    };
    if context.stopping.is_cancelled() {
        return Err(Some(HelloRefused::new(RefusalCode::ShuttingDown, "the broker is shutting down")));
    }
    let limit = context.max_clients;
    let place = |clients: usize| (clients < limit).then_some(clients + 1);
    if context.clients.fetch_update(Ordering::AcqRel, Ordering::Acquire, place).is_err() {
        return Err(Some(HelloRefused::new(
            RefusalCode::Busy,
            format!("this broker has its limit of {limit} clients"),
        )));
    }
    Ok(hello)
}

async fn run<S: AsyncRead + AsyncWrite + Unpin>(context: &Shared, entry: &Arc<ClientEntry>, frames: Frames<S>) {
    let (frames, mut writer) = frames.split();
    let hello = ServerFrame::Hello(ServerHello {
        version: CLIENT_VERSIONS.max,
        broker: context.broker,
        max_requests: MAX_REQUESTS as u32,
        limits: context.limits.clone(),
        software: ShortText::clip(SOFTWARE),
    });
    let mut bytes = BytesMut::new();
    if hello.encode(&mut bytes).is_err() || write(&mut writer, &bytes).await.is_err() {
        return;
    }
    if context.control.send(ControlInput::ClientConnected(Arc::clone(entry))).await.is_err() {
        return;
    }
    tracing::info!(peer_id = %entry.peer_id, software = %entry.software, "client connected");
    let window = Semaphore::new(MAX_REQUESTS);
    let mut output = std::pin::pin!(write_all(entry, writer, &window));
    let mut input = std::pin::pin!(read(context, entry, frames, &window));
    let end = tokio::select! {
        end = &mut input => end,
        told = &mut output => match told {
            Ok(()) => {
                // Its last words are lost if the connection goes before the client has them, and then it closes the stream.
                let _ = tokio::time::timeout(STEP, input).await;
                End::Gone("it was told to go".into())
            }
            Err(reason) => End::Gone(reason),
        },
    };
    match end {
        End::Gone(reason) => tracing::info!(reason, "client gone"),
        End::Unreadable(reason) => {
            tracing::warn!(reason, "the client sent what cannot be read");
            context.note_refusal(entry.peer_id.clone(), reason.clone());
            entry.outbox.finish(Goodbye::Unreadable(ShortText::clip(reason)));
            // Whether the client still listens makes no difference any more.
            let _ = tokio::time::timeout(STEP, output).await;
        }
    }
    entry.outbox.close();
    let _ = context.traffic.send(Traffic::ClientEnded(entry.id)).await;
}

/// Takes in requests until the client ends.
async fn read<R: AsyncRead + Unpin>(
    context: &Shared,
    entry: &Arc<ClientEntry>,
    mut frames: Frames<R>,
    window: &Semaphore,
) -> End {
    let permits = Arc::new(Semaphore::new(BATCHES));
    let mut window = Window { open: window, at_hand: 0 };
    loop {
        let mut next = match frames.next().await {
            Ok(Some(frame)) => Some(frame),
            Ok(None) => return End::Gone("it has closed its stream".into()),
            Err(error) => return failed(error),
        };
        let mut batch = Vec::new();
        let (mut bytes, mut end) = (0, None);
        while let Some(frame) = next.take() {
            bytes += frame.size();
            match take_in(context, entry, frame, &mut window).await {
                Ok(request) => batch.extend(request),
                Err(reason) => end = Some(reason),
            }
            // A full window opens only when what is in the batch is answered.
            let has_room = batch.len() < BATCH_REQUESTS && bytes < BATCH_BYTES;
            if end.is_none() && has_room && window.is_open() {
                match frames.next_ready() {
                    Ok(frame) => next = frame,
                    Err(error) => end = Some(failed(error)),
                }
            }
        }
        if !batch.is_empty() {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return End::Gone("over".into()) };
            let item = Traffic::Requests { client: entry.id, requests: batch, permit };
            if context.traffic.send(item).await.is_err() {
                return End::Gone("the broker has stopped".into());
            }
        }
        if let Some(end) = end {
            return end;
        }
    }
}

fn failed(error: FramesError) -> End {
    match error {
        FramesError::Wire(error) => End::Unreadable(error.to_string()),
        FramesError::Io(_) | FramesError::BrokenOff => End::Gone(error.to_string()),
    }
}

/// One frame; what is for the core is returned.
async fn take_in(
    context: &Shared,
    entry: &Arc<ClientEntry>,
    frame: Frame,
    window: &mut Window<'_>,
) -> Result<Option<ClientRequest>, End> {
    let frame = ClientFrame::decode(frame).map_err(|error| End::Unreadable(error.to_string()))?;
    match frame {
        ClientFrame::Request { .. } | ClientFrame::Publish { .. } | ClientFrame::StatusRequest { .. } => {
            window.take().await?;
        }
        ClientFrame::Hello(_) | ClientFrame::Credit { .. } | ClientFrame::Goodbye(_) => {}
    }
    match frame {
        ClientFrame::Request { request, command } => Ok(Some(ClientRequest::Command { request, command })),
        ClientFrame::Publish { request, event } => match Event::from_bytes(event, &context.limits) {
            Ok(event) => Ok(Some(ClientRequest::Publish { request, event })),
            Err(error) => Err(End::Unreadable(error.to_string())),
        },
        ClientFrame::StatusRequest { request } => {
            // A client that asks and does not read has one answer waiting here, not one for each request.
            let one = Arc::clone(&entry.status).acquire_owned().await.map_err(|_| End::Gone("over".into()))?;
            let (context, entry) = (Arc::clone(context), Arc::clone(entry));
            context.clone().spawn(async move {
                let json = status_json(context.status().await.unwrap_or_default(), STATUS_BYTES);
                entry.outbox.answer_holding(ServerFrame::Status { request, json }, one);
            });
            Ok(None)
        }
        ClientFrame::Credit { deliveries } => {
            entry.outbox.add_credit(deliveries);
            Ok(None)
        }
        ClientFrame::Goodbye(goodbye) => Err(End::Gone(format!("it says: {goodbye}"))),
        ClientFrame::Hello(_) => Err(End::Unreadable("a second hello".into())),
    }
}

/// The status in at most so many bytes: of what a large network or a crowd of clients makes too long, the latter halves are
/// left out until it fits, and `left_out` says how many entries that were.
fn status_json(mut status: NodeStatus, most: usize) -> String {
    loop {
        let json = serde_json::to_string(&status).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"));
        let (brokers, clients) = (status.broker.brokers.len(), status.clients.len());
        if json.len() <= most || brokers + clients == 0 {
            return json;
        }
        // The reachable come first: what is known of the others matters least.
        status.broker.brokers.sort_by_key(|broker| !broker.reachable);
        status.broker.brokers.truncate(brokers / 2);
        status.clients.truncate(clients / 2);
        status.left_out += (brokers - brokers / 2 + clients - clients / 2) as u64;
    }
}

/// Sends what waits for the client until it has been told to go; the error says why it ends before.
async fn write_all<S: AsyncWrite>(
    entry: &ClientEntry,
    mut writer: WriteHalf<S>,
    window: &Semaphore,
) -> Result<(), String> {
    loop {
        let batch = match entry.outbox.take().await {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            Err(error) => {
                tracing::error!(%error, "something for this client cannot be encoded");
                return Err(error.to_string());
            }
        };
        if let Err(error) = write_batch(&mut writer, &batch).await {
            return Err(error.to_string());
        }
        window.add_permits(batch.answered);
    }
    // It is over either way.
    let _ = tokio::time::timeout(STEP, writer.shutdown()).await;
    Ok(())
}

async fn write_batch<S: AsyncWrite>(writer: &mut WriteHalf<S>, batch: &Batch) -> std::io::Result<()> {
    if !batch.answers.is_empty() {
        writer.write_all(&batch.answers).await?;
    }
    write(writer, &batch.deliveries).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_is_too_long_says_what_is_left_out() {
        let mut status = NodeStatus::default();
        status.broker.brokers.resize_with(1_000, Default::default);
        status.broker.brokers[999].reachable = true;
        status.clients.resize_with(3, ClientStatus::default);
        let whole = status_json(status.clone(), usize::MAX);
        assert_eq!(serde_json::from_str::<NodeStatus>(&whole).unwrap(), status);
        let part = status_json(status.clone(), whole.len() / 3);
        assert!(part.len() <= whole.len() / 3, "{} of {}", part.len(), whole.len());
        let part: NodeStatus = serde_json::from_str(&part).unwrap();
        assert_eq!((part.broker.brokers.len(), part.clients.len(), part.left_out), (250, 0, 753));
        assert!(part.broker.brokers[0].reachable, "the reachable are kept");
        assert!(status_json(status, 1).len() < 2_000, "what is not a list stays");
    }
}
