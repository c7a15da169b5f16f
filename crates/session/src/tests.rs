//! A session over pipes, at whose other end a broker does as the test says.

use crate::{Client, ClientError, Notice, Options, Publication};
use bytes::BytesMut;
use enroute_broker::{BrokerId, EventId, Receipt, RequestId};
use enroute_filter::{Event, Limits};
use enroute_wire::{CLIENT_VERSIONS, ClientFrame, FrameReader, ServerFrame, ServerHello, ShortText, Traffic};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;

/// The broker's end of a connection.
struct Broker {
    stream: DuplexStream,
    frames: FrameReader,
}

impl Broker {
    /// Takes a session in, and so many requests of it at a time.
    async fn accept(stream: DuplexStream, max_requests: u32) -> Broker {
        let mut broker = Broker { stream, frames: FrameReader::new(Traffic::FromClient) };
        assert!(matches!(broker.next().await, ClientFrame::Hello(_)));
        let hello = ServerHello {
            version: CLIENT_VERSIONS.max,
            broker: BrokerId(1),
            max_requests,
            limits: Limits::default(),
            software: ShortText::clip("a test"),
        };
        broker.say(&ServerFrame::Hello(hello)).await;
        broker
    }

    async fn next(&mut self) -> ClientFrame {
        let mut chunk = [0; 4096];
        loop {
            if let Some(frame) = self.frames.next_frame().unwrap() {
                return ClientFrame::decode(frame).unwrap();
            }
            let count = self.stream.read(&mut chunk).await.unwrap();
            assert!(count > 0, "the session has gone");
            self.frames.push(&chunk[..count]);
        }
    }

    /// The number of the next publication, whatever credit comes before it.
    async fn next_publication(&mut self) -> RequestId {
        loop {
            match self.next().await {
                ClientFrame::Publish { request, .. } => return request,
                ClientFrame::Credit { .. } => {}
                frame => panic!("{frame:?}"),
            }
        }
    }

    async fn say(&mut self, frame: &ServerFrame) {
        let mut bytes = BytesMut::new();
        frame.encode(&mut bytes).unwrap();
        self.stream.write_all(&bytes).await.unwrap();
    }

    async fn answer(&mut self, first: RequestId, count: u32, sequence: u64) {
        self.say(&ServerFrame::Receipts { first, count, receipt: receipt(sequence) }).await;
    }
}

fn receipt(sequence: u64) -> Receipt {
    let id = EventId { origin: BrokerId(1), incarnation: 1, sequence };
    Receipt { id, destinations: 0, complete: true }
}

fn event() -> Event {
    Event::builder().build().unwrap()
}

/// A session whose connections come out of the receiver.
async fn start(options: Options, max_requests: u32) -> (Client, Broker, mpsc::UnboundedReceiver<DuplexStream>) {
    let (sender, mut streams) = mpsc::unbounded_channel();
    let connect = move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        std::future::ready(sender.send(far).map(|()| near).map_err(|_| ClientError::disconnected("the test is over")))
    };
    let accept = async {
        let stream = streams.recv().await.unwrap();
        Broker::accept(stream, max_requests).await
    };
    let (client, broker) = tokio::join!(Client::start(connect, options), accept);
    (client.unwrap(), broker, streams)
}

async fn publish(client: &Client, count: usize) -> Vec<Publication> {
    let mut publications = Vec::new();
    for _ in 0..count {
        publications.push(client.publish_nowait(event()).await.unwrap());
    }
    publications
}

#[tokio::test]
async fn credit_goes_out_while_the_broker_takes_no_more_requests() {
    let options = Options { delivery_window: 2, ..Options::default() };
    let (client, mut broker, _streams) = start(options, 1).await;
    let publications = publish(&client, 2).await;
    let (mut credit, mut first) = (0, None);
    while credit == 0 || first.is_none() {
        match broker.next().await {
            ClientFrame::Credit { deliveries } => credit += deliveries,
            ClientFrame::Publish { request, .. } => assert!(first.replace(request).is_none(), "it takes one at a time"),
            frame => panic!("{frame:?}"),
        }
    }
    for sequence in 0..2 {
        let id = receipt(sequence).id;
        let delivery = enroute_broker::Delivery { id, event: event().as_bytes().clone(), subscriptions: [].into() };
        broker.say(&ServerFrame::Delivery(delivery)).await;
        assert_eq!(client.next().await.map(|delivery| delivery.id), Some(id));
    }
    assert!(matches!(broker.next().await, ClientFrame::Credit { .. }), "though the first is not answered");
    broker.answer(first.unwrap(), 1, 7).await;
    let second = broker.next_publication().await;
    broker.answer(second, 1, 8).await;
    for (publication, sequence) in publications.into_iter().zip([7, 8]) {
        assert_eq!(publication.await, Ok(receipt(sequence)));
    }
}

#[tokio::test(start_paused = true)]
async fn every_publication_is_answered_once_or_fails_over_many_connections() {
    let options = Options { reconnect: true, ..Options::default() };
    let (client, mut broker, mut streams) = start(options, 4).await;
    for round in 0..20u64 {
        let answered = (round % 5) as usize;
        // Some are answered, some are sent, some wait for room, and some for the session's task.
        let mut publications = publish(&client, 12).await;
        let dropped = publications.split_off(10);
        for sequence in 0..answered as u64 {
            let request = broker.next_publication().await;
            broker.answer(request, 1, 100 * round + sequence).await;
        }
        drop(dropped);
        let (answered_ones, rest) = publications.split_at_mut(answered);
        for (publication, sequence) in answered_ones.iter_mut().zip(0..) {
            assert_eq!(publication.await, Ok(receipt(100 * round + sequence)), "round {round}");
        }
        drop(broker);
        for publication in rest {
            assert!(matches!(publication.await, Err(ClientError::Disconnected { .. })), "round {round}");
        }
        let meanwhile = client.publish(event()).await;
        assert!(matches!(meanwhile, Err(ClientError::Disconnected { .. })), "there is no connection");
        broker = Broker::accept(streams.recv().await.unwrap(), 4).await;
        // The session has yet to read the hello, and refuses what is asked before.
        while !matches!(client.next_notice().await, Some(Notice::Reconnected { .. })) {}
    }
    let publications = publish(&client, 3).await;
    drop(client);
    let mut count = 0;
    while count < 3 {
        let request = broker.next_publication().await;
        broker.answer(request, 1, count).await;
        count += 1;
    }
    for (publication, sequence) in publications.into_iter().zip(0..) {
        assert_eq!(publication.await, Ok(receipt(sequence)), "what was handed over is sent though the session is over");
    }
}
