//! Streams that others open: each gets a task of its own.

use crate::context::Shared;
use crate::handshake::{self, AwaitedStreams};
use crate::swarm::report;
use crate::{clients, link};
use enroute_wire::{BROKER_PROTOCOL, CLIENT_PROTOCOL, EVENT_PROTOCOL};
use futures::StreamExt;
use libp2p::{PeerId, Stream, StreamProtocol};
use libp2p_stream::{AlreadyRegistered, Control, IncomingStreams};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::compat::FuturesAsyncReadCompatExt;

/// Streams from outside that may be at their hellos at a time; further ones are dropped, and opened again by who lost them.
const HANDSHAKES: usize = 512;

/// The protocols of brokers and clients, before anybody can open a stream.
pub(crate) struct Acceptors {
    control: IncomingStreams,
    data: IncomingStreams,
    clients: IncomingStreams,
}

impl Acceptors {
    pub(crate) fn register(streams: &mut Control) -> Result<Acceptors, AlreadyRegistered> {
        Ok(Acceptors {
            control: streams.accept(StreamProtocol::new(BROKER_PROTOCOL))?,
            data: streams.accept(StreamProtocol::new(EVENT_PROTOCOL))?,
            clients: streams.accept(StreamProtocol::new(CLIENT_PROTOCOL))?,
        })
    }

    /// One task for each protocol, which does nothing but accept: streams that come while it does something else are lost.
    pub(crate) fn spawn(self, context: &Shared) {
        let awaited = Arc::new(AwaitedStreams::default());
        let places = Arc::new(Semaphore::new(HANDSHAKES));
        let (context, control_awaited, control_places) = (context.clone(), awaited.clone(), places.clone());
        let shared = context.clone();
        context.spawn(accept(context.clone(), self.control, move |peer, stream| {
            if let Ok(place) = control_places.clone().try_acquire_owned() {
                let (context, awaited) = (shared.clone(), control_awaited.clone());
                shared.spawn(async move {
                    let established = handshake::accept(&context, &awaited, peer, stream).await;
                    drop(place);
                    match established {
                        Ok(established) => link::run(context, established, None).await,
                        Err(error) => report(&context, peer, &error),
                    }
                });
            }
        }));
        let (shared, data_places) = (context.clone(), places.clone());
        context.spawn(accept(context.clone(), self.data, move |peer, stream| {
            if let Ok(place) = data_places.clone().try_acquire_owned() {
                let (context, awaited) = (shared.clone(), awaited.clone());
                shared.spawn(async move {
                    let _place = place;
                    if let Err(error) = handshake::accept_data(&awaited, peer, stream).await {
                        report(&context, peer, &error);
                    }
                });
            }
        }));
        let shared = context.clone();
        context.spawn(accept(context.clone(), self.clients, move |peer, stream| {
            shared.spawn(clients::serve(shared.clone(), peer.to_string(), stream.compat()));
        }));
    }
}

async fn accept(context: Shared, mut streams: IncomingStreams, mut on_stream: impl FnMut(PeerId, Stream)) {
    loop {
        tokio::select! {
            next = streams.next() => match next {
                Some((peer, stream)) => on_stream(peer, stream),
                None => return,
            },
            () = context.stopping.cancelled() => return,
        }
    }
}
