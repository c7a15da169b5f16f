//! A link: four tasks over two streams, and what happens when it ends.

use crate::context::Shared;
use crate::control_queue::ControlQueue;
use crate::event_loop::{ControlInput, Traffic};
use crate::event_queue::EventQueue;
use crate::frames::{Frames, FramesError, write};
use crate::handshake::{Established, StreamFrames};
use crate::outbox::{Put, Queued, Wakes};
use crate::swarm::{SwarmCommand, Target};
use bytes::BytesMut;
use enroute_broker::{EventFrame, LinkId, Message, Neighbour, Role};
use enroute_session::{LinkQueueStatus, LinkReason};
use enroute_wire::{ControlFrame, DataFrame, Goodbye, ShortText, WireError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument;

/// How long a link that is being closed in good order may take to drain.
const DRAIN: Duration = Duration::from_secs(2);
/// Signs of life that may fail to come.
const MISSED: u32 = 3;
/// Batches of one direction of a link that may wait for the event loop.
const BATCHES: usize = 2;
/// What is handed to the event loop at a time: so many events, or with the last so many bytes.
const BATCH_EVENTS: usize = 128;
const BATCH_BYTES: u64 = 128 << 10;

/// What the event loop holds of a link.
pub(crate) struct Link {
    pub(crate) id: LinkId,
    pub(crate) neighbour: Neighbour,
    software: String,
    dialled: bool,
    control: ControlQueue,
    events: EventQueue,
    counts: Counts,
    /// Grow with every read on either stream.
    heard: [Arc<AtomicU64>; 2],
}

#[derive(Default)]
struct Counts {
    control_sent: AtomicU64,
    control_bytes_sent: AtomicU64,
    control_received: AtomicU64,
    control_bytes_received: AtomicU64,
    events_sent: AtomicU64,
    event_bytes_sent: AtomicU64,
    events_received: AtomicU64,
    event_bytes_received: AtomicU64,
}

/// Why a task of a link has ended.
enum End {
    /// This side has closed the link, and all has been written.
    Drained,
    /// The other side sends no more events.
    EventsEnded,
    /// The other side has closed the link in good order.
    Goodbye(Goodbye),
    /// It is broken.
    Broken(String),
    /// The neighbour has sent what cannot be read.
    Unreadable(WireError),
    /// Nothing has been heard for too long.
    Silent,
}

impl Link {
    /// Queues control; false if that cannot be, and the link is being closed for it.
    pub(crate) fn send(&self, message: &Message) -> bool {
        match self.control.push(message) {
            Ok(()) => {
                add(&self.counts.control_sent, 1);
                true
            }
            Err(error) => {
                tracing::warn!(link = self.id.0, neighbour = %self.neighbour.broker, %error, "closing the link");
                self.close(Goodbye::TooSlow);
                false
            }
        }
    }

    /// Queues an event; whether whoever has brought it should be held back, and whether that [wakes](Link::wake).
    pub(crate) fn forward(&self, frame: &EventFrame) -> Queued {
        self.events.push(frame).unwrap_or_else(|error| {
            tracing::error!(link = self.id.0, %error, "an event that cannot be encoded is dropped");
            Queued { put: Put::Done, wakes: Wakes::Nobody }
        })
    }

    /// Wakes whoever writes events: some have been queued.
    pub(crate) fn wake(&self) {
        self.events.wake();
    }

    /// Keeps a source from going on until less waits for this link, or until it is [released](Link::release).
    pub(crate) fn hold(&self, permit: OwnedSemaphorePermit, until: Instant) {
        self.events.hold(permit, until);
    }

    /// Lets those sources go on that were to be held until `now` at most.
    pub(crate) fn release(&self, now: Instant) {
        self.events.release(now);
    }

    /// Closes the link when what is queued has gone out.
    pub(crate) fn close(&self, goodbye: Goodbye) {
        let mut last_words = BytesMut::new();
        if let Err(error) = ControlFrame::Goodbye(goodbye).encode(&mut last_words) {
            tracing::warn!(%error, "a goodbye that cannot be encoded");
        }
        self.control.finish(&last_words);
        self.events.finish();
    }

    /// After the end: the events of which no byte has gone out.
    pub(crate) fn take_unsent(&self) -> Vec<EventFrame> {
        self.events.take_unsent()
    }

    pub(crate) fn status(&self) -> LinkQueueStatus {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LinkQueueStatus {
            link: self.id.0,
            neighbour: self.neighbour.broker.to_string(),
            peer_id: self.neighbour.peer_id.to_string(),
            software: self.software.clone(),
            dialled: self.dialled,
            reason: LinkReason::default(),
            control_sent: get(&self.counts.control_sent),
            control_bytes_sent: get(&self.counts.control_bytes_sent),
            control_received: get(&self.counts.control_received),
            control_bytes_received: get(&self.counts.control_bytes_received),
            control_bytes_waiting: self.control.waiting_bytes() as u64,
            events_sent: get(&self.counts.events_sent),
            event_bytes_sent: get(&self.counts.event_bytes_sent),
            events_received: get(&self.counts.events_received),
            event_bytes_received: get(&self.counts.event_bytes_received),
            events_waiting: self.events.waiting() as u64,
            events_dropped: self.events.dropped(),
        }
    }
}

/// Runs a link from its hellos to its end. `target` is what was dialled for it, if this side dialled.
pub(crate) async fn run(context: Shared, established: Established, target: Option<Target>) {
    let Established { peer, neighbour, software, dialled, round_trip, control, data } = established;
    let config = &context.config;
    let link = Arc::new(Link {
        id: context.next_link(),
        neighbour,
        software,
        dialled,
        control: ControlQueue::new(config.link_control_bytes),
        events: EventQueue::new(config.full_link, config.link_queue_events, config.link_queue_bytes),
        counts: Counts::default(),
        heard: [control.reads(), data.reads()],
    });
    let span = tracing::info_span!("link", id = link.id.0, neighbour = %link.neighbour.broker);
    async {
        if context.control.send(ControlInput::LinkUp(Arc::clone(&link))).await.is_err() {
            return;
        }
        let (role, neighbour) = (link.neighbour.role, link.neighbour.broker);
        if let Some(took) = round_trip {
            let _ = context.control.send(ControlInput::RoundTrip { neighbour, took }).await;
        }
        let core_links = usize::from(role == Role::Core);
        context.core_links.fetch_add(core_links, Ordering::Relaxed);
        if role != Role::Leaf {
            // The swarm's task ends after this one.
            let _ = context.swarm.send(SwarmCommand::LinkUp { peer, target }).await;
        }
        tracing::info!(%peer, dialled, "{} up", name_of(role));
        let (silent, reason) = serve(&context, &link, control, data).await;
        context.core_links.fetch_sub(core_links, Ordering::Relaxed);
        tracing::info!(%peer, reason, "{} down", name_of(role));
        let _ = context.traffic.send(Traffic::LinkEnded(link.id)).await;
        // Nobody dials a leaf broker: it comes back by itself.
        if role != Role::Leaf {
            let _ = context.swarm.send(SwarmCommand::LinkDown { peer, reason, silent }).await;
        }
    }
    .instrument(span)
    .await;
}

/// What a link is called, by what the neighbour is on it.
fn name_of(neighbour: Role) -> &'static str {
    match neighbour {
        Role::Core => "link",
        Role::Leaf => "link to a leaf",
        Role::Parent => "uplink",
    }
}

/// Runs the four tasks of a link; whether it fell silent, and why it has ended.
async fn serve(context: &Shared, link: &Arc<Link>, control: StreamFrames, data: StreamFrames) -> (bool, String) {
    let (control, control_writer) = control.split();
    let (data, data_writer) = data.split();
    let mut readers = JoinSet::new();
    let mut writers = JoinSet::new();
    readers.spawn(read_control(Arc::clone(context), Arc::clone(link), control).in_current_span());
    readers.spawn(read_events(Arc::clone(context), Arc::clone(link), data).in_current_span());
    writers.spawn(write_control(Arc::clone(link), control_writer, context.config.keep_alive()).in_current_span());
    writers.spawn(write_events(Arc::clone(link), data_writer).in_current_span());
    let first = tokio::select! {
        Some(end) = readers.join_next() => end,
        Some(end) = writers.join_next() => end,
        end = watch_silence(link, context.config.keep_alive()) => Ok(end),
    };
    let first = first.unwrap_or_else(|error| End::Broken(format!("a task failed: {error}")));
    let (silent, reason) = match first {
        End::Drained => {
            // The other task still drains, and what the neighbour has sent is still taken in.
            drain(&mut writers, &mut readers, link).await;
            (false, "closed by this side".into())
        }
        End::EventsEnded => {
            let goodbye = drain(&mut readers, &mut writers, link).await;
            (false, goodbye.map_or("the neighbour has closed the data stream".into(), |goodbye| by_neighbour(&goodbye)))
        }
        End::Goodbye(goodbye) => {
            drain(&mut readers, &mut writers, link).await;
            (false, by_neighbour(&goodbye))
        }
        End::Broken(reason) => (false, reason),
        End::Unreadable(error) => {
            let peer_id = link.neighbour.peer_id.to_string();
            tracing::warn!(%peer_id, %error, "the neighbour sent what cannot be read");
            context.note_refusal(peer_id, error.to_string());
            link.close(Goodbye::Unreadable(ShortText::clip(error.to_string())));
            drain(&mut writers, &mut readers, link).await;
            (false, error.to_string())
        }
        End::Silent => {
            link.close(Goodbye::Silent);
            (true, "nothing was heard for too long".into())
        }
    };
    readers.shutdown().await;
    writers.shutdown().await;
    (silent, reason)
}

/// Lets both directions come to their ends, within bounds: what this side has queued still goes out, and what the other
/// side has sent is still taken in. Gives the other side's last words.
async fn drain(first: &mut JoinSet<End>, second: &mut JoinSet<End>, link: &Link) -> Option<Goodbye> {
    link.close(Goodbye::Other(ShortText::clip("closed by the other side")));
    let mut goodbye = None;
    let both = async {
        for tasks in [first, second] {
            while let Some(end) = tasks.join_next().await {
                if let Ok(End::Goodbye(words)) = end {
                    goodbye = Some(words);
                }
            }
        }
    };
    if tokio::time::timeout(DRAIN, both).await.is_err() {
        tracing::debug!("the neighbour does not let the link drain");
    }
    goodbye
}

fn by_neighbour(goodbye: &Goodbye) -> String {
    format!("closed by the neighbour: {goodbye}")
}

/// Ends when nothing has come for too long. Counts its own ticks and not the time, so that a moment in which this whole process
/// was held up is not taken for the neighbour's silence.
async fn watch_silence(link: &Link, keep_alive: Duration) -> End {
    let mut ticks = tokio::time::interval(keep_alive);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut heard, mut missed) = (u64::MAX, 0);
    loop {
        ticks.tick().await;
        let now = link.heard.iter().map(|reads| reads.load(Ordering::Relaxed)).sum();
        missed = if now == heard { missed + 1 } else { 0 };
        heard = now;
        if missed >= MISSED {
            return End::Silent;
        }
    }
}

async fn read_control<R: AsyncRead + Unpin>(context: Shared, link: Arc<Link>, mut frames: Frames<R>) -> End {
    loop {
        let frame = match frames.next().await {
            Ok(Some(frame)) => frame,
            Ok(None) => return End::Broken("the neighbour has closed the stream without a goodbye".into()),
            Err(error) => return failed(error),
        };
        add(&link.counts.control_bytes_received, frame.size() as u64);
        match ControlFrame::decode(&frame) {
            Ok(ControlFrame::Message(message)) => {
                add(&link.counts.control_received, 1);
                tracing::trace!(?message, "control");
                let input = ControlInput::Message { link: link.id, message };
                if context.control.send(input).await.is_err() {
                    return End::Drained;
                }
            }
            Ok(ControlFrame::KeepAlive) => {}
            Ok(ControlFrame::Goodbye(goodbye)) => return End::Goodbye(goodbye),
            Ok(ControlFrame::Hello(_) | ControlFrame::HelloAck(_) | ControlFrame::HelloRefused(_)) => {
                return End::Broken("a second hello".into());
            }
            Err(error) => return End::Unreadable(error),
        }
    }
}

async fn read_events<R: AsyncRead + Unpin>(context: Shared, link: Arc<Link>, mut frames: Frames<R>) -> End {
    let permits = Arc::new(Semaphore::new(BATCHES));
    loop {
        let mut next = match frames.next().await {
            Ok(Some(frame)) => Some(frame),
            // The control stream says why.
            Ok(None) => return End::EventsEnded,
            Err(error) => return failed(error),
        };
        let mut batch = Vec::with_capacity(BATCH_EVENTS);
        let (mut bytes, mut end) = (0, None);
        while let Some(frame) = next.take() {
            bytes += frame.size() as u64;
            match DataFrame::decode(frame) {
                Ok(DataFrame::Event(event)) => batch.push(event),
                Ok(DataFrame::Hello(_)) => end = Some(End::Broken("a second data hello".into())),
                Err(error) => end = Some(End::Unreadable(error)),
            }
            if batch.len() < BATCH_EVENTS && bytes < BATCH_BYTES && end.is_none() {
                match frames.next_ready() {
                    Ok(frame) => next = frame,
                    Err(error) => end = Some(failed(error)),
                }
            }
        }
        add(&link.counts.events_received, batch.len() as u64);
        add(&link.counts.event_bytes_received, bytes);
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return End::Drained };
        if context.traffic.send(Traffic::Events { link: link.id, frames: batch, permit }).await.is_err() {
            return End::Drained;
        }
        if let Some(end) = end {
            return end;
        }
    }
}

async fn write_control<W: AsyncWrite + Unpin>(link: Arc<Link>, mut writer: W, keep_alive: Duration) -> End {
    let mut sign_of_life = BytesMut::new();
    if let Err(error) = ControlFrame::KeepAlive.encode(&mut sign_of_life) {
        return End::Broken(error.to_string());
    }
    let mut ticks = tokio::time::interval(keep_alive);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let bytes = tokio::select! {
            taken = link.control.take() => match taken {
                Some(bytes) => bytes,
                None => break,
            },
            _ = ticks.tick() => sign_of_life.clone(),
        };
        if let Err(error) = write(&mut writer, &bytes).await {
            return End::Broken(error.to_string());
        }
        add(&link.counts.control_bytes_sent, bytes.len() as u64);
    }
    finish(writer).await
}

async fn write_events<W: AsyncWrite + Unpin>(link: Arc<Link>, mut writer: W) -> End {
    while let Some(bytes) = link.events.take().await {
        let mut written = 0;
        while written < bytes.len() {
            match writer.write(&bytes[written..]).await {
                Ok(0) => return End::Broken("the stream takes nothing more".into()),
                Ok(count) => {
                    written += count;
                    add(&link.counts.events_sent, link.events.written(written));
                    add(&link.counts.event_bytes_sent, count as u64);
                }
                Err(error) => return End::Broken(error.to_string()),
            }
        }
        // While there is more to write, the transport need not be hurried.
        if link.events.waiting() == 0
            && let Err(error) = writer.flush().await
        {
            return End::Broken(error.to_string());
        }
    }
    finish(writer).await
}

async fn finish<W: AsyncWrite + Unpin>(mut writer: W) -> End {
    match writer.shutdown().await {
        Ok(()) => End::Drained,
        Err(error) => End::Broken(error.to_string()),
    }
}

fn failed(error: FramesError) -> End {
    match error {
        FramesError::Wire(error) => End::Unreadable(error),
        FramesError::Io(error) => End::Broken(error.to_string()),
        FramesError::BrokenOff => End::Broken(FramesError::BrokenOff.to_string()),
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}
