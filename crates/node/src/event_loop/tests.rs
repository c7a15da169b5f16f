use super::*;
use crate::config::NodeConfig;
use crate::context::{Context, ContextParts};
use crate::outbox::Outbox;
use enroute_broker::{Config, Identity};
use enroute_session::SlowSubscriber;
use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::task::{Wake, Waker};

const SUBSCRIBER: ClientId = ClientId(1);
const PUBLISHER: ClientId = ClientId(2);

/// Whether a task has been woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A broker with a subscriber to everything, for whom `bound` deliveries may wait before it is cut off.
fn event_loop(bound: usize) -> (EventLoop, Arc<ClientEntry>) {
    let core = Config::default();
    let peer = libp2p::identity::Keypair::generate_ed25519().public().to_peer_id();
    let context = Arc::new(Context::new(ContextParts {
        config: NodeConfig::default(),
        peer,
        start_nonce: 1,
        incarnation: 1,
        limits: core.limits.clone(),
        max_clients: core.clients,
        control: mpsc::channel(1).0,
        traffic: mpsc::channel(1).0,
        swarm: mpsc::channel(1).0,
    }));
    let identity = Identity {
        id: context.broker,
        peer_id: peer.to_string().into(),
        incarnation: 1,
        start_nonce: 1,
        addresses: vec![],
    };
    let broker = Broker::new(identity, core, Time(0));
    let mut event_loop = EventLoop::new(context, broker, Instant::now(), None, watch::channel(None).0);
    event_loop.handle(Input::PeersTried);
    let outbox = Outbox::new(SlowSubscriber::Disconnect, bound, usize::MAX);
    let subscriber = Arc::new(ClientEntry::new(SUBSCRIBER, outbox, String::new(), String::new()));
    event_loop.on_control(ControlInput::ClientConnected(subscriber.clone()));
    event_loop.handle(Input::ClientConnected { client: PUBLISHER });
    let command = Command::Subscribe { name: "all".into(), filter: "TRUE".parse().unwrap() };
    event_loop.handle(Input::Command { client: SUBSCRIBER, request: RequestId(1), command });
    subscriber.outbox.add_credit(1_000);
    (event_loop, subscriber)
}

/// Handles a batch of so many publications. Before each comes `meanwhile`, and then the subscriber's writer has its turn if
/// it has been woken; gives before which publications it had one.
fn publish(event_loop: &mut EventLoop, subscriber: &ClientEntry, count: u64, meanwhile: impl Fn()) -> Vec<u64> {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut writer = pin!(async { while let Ok(Some(_)) = subscriber.outbox.take().await {} });
    let mut turn = || writer.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending();
    assert!(turn(), "it waits for something to write");
    // What was said before the batch has woken it.
    if woken.0.swap(false, Ordering::Relaxed) {
        turn();
    }
    let mut turns = Vec::new();
    let publication = |number| {
        meanwhile();
        if woken.0.swap(false, Ordering::Relaxed) {
            turns.push(number);
            turn();
        }
        let event = Event::builder().attribute("n", number as i64).build().unwrap();
        Input::Publish { client: PUBLISHER, request: RequestId(number), event }
    };
    event_loop.handle_batch((1..=count).map(publication));
    turns
}

#[test]
fn a_batch_larger_than_a_queue_cuts_off_nobody_who_keeps_up() {
    let (mut event_loop, subscriber) = event_loop(8);
    publish(&mut event_loop, &subscriber, 256, || {});
    let counts = subscriber.outbox.counts();
    assert_eq!((counts.delivered + counts.waiting as u64, counts.dropped), (256, 0));
}

#[test]
fn a_slow_batch_keeps_no_writer_waiting() {
    let (mut event_loop, subscriber) = event_loop(1_000);
    let slowly = || {
        let begun = Instant::now();
        while begun.elapsed() < BATCH_TIME {
            std::hint::spin_loop();
        }
    };
    let clocked = u64::from(CLOCKED);
    let turns = publish(&mut event_loop, &subscriber, 4 * clocked, slowly);
    assert_eq!(turns, [1, 2, 3].map(|looks| looks * clocked + 1));
}
