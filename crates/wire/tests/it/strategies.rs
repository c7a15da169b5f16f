//! Arbitrary frames.

use crate::sample::Sample;
use bytes::Bytes;
use enroute_broker::{
    AnnouncedFilter, Attach, BrokerId, CloseReason, Command, Delivery, Detach, Digest, EventFrame, EventId, Held,
    Interest, InterestPart, LeafMessage, Letters, Life, LinkEnd, LinkState, Message, Payload, Receipt, Refusal, Reply,
    RequestId, Role, Routed, RoutedBody, Scope, ScopeRecord, Version,
};
use enroute_filter::{Filter, Limit, Limits};
use enroute_wire::{
    BROKER_VERSIONS, ClientFrame, ClientHello, ControlFrame, DataFrame, DataHello, Goodbye, Hello, HelloAck,
    HelloRefused, RefusalCode, ServerFrame, ServerHello, ShortText, SlowSubscriber, VersionRange,
};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use std::sync::Arc;

/// Small numbers, numbers at the borders of the encodings, and any.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..4u64, 120..260u64, (0..64u32).prop_map(|shift| 1 << shift), any::<u64>(), Just(u64::MAX)]
}

fn broker() -> impl Strategy<Value = BrokerId> {
    number().prop_map(BrokerId)
}

fn version() -> impl Strategy<Value = Version> {
    (number(), number()).prop_map(|(incarnation, sequence)| Version { incarnation, sequence })
}

fn blob(most: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..=most).prop_map(Bytes::from)
}

fn short() -> impl Strategy<Value = String> {
    "\\PC{0,12}"
}

fn name() -> impl Strategy<Value = Arc<str>> {
    short().prop_map(Arc::from)
}

fn short_text() -> impl Strategy<Value = ShortText> {
    "\\PC{0,300}".prop_map(ShortText::clip)
}

fn announced() -> impl Strategy<Value = Vec<AnnouncedFilter>> {
    vec(blob(20).prop_map(AnnouncedFilter), 0..5)
}

fn filter() -> impl Strategy<Value = Filter> {
    let texts = ["true", "false", "a = 1", "a in ('x', 'y') and not b is null or c like '%z%'"];
    prop::sample::select(texts.map(|text| Filter::parse(text).unwrap()).to_vec())
}

fn event_id() -> impl Strategy<Value = EventId> {
    (broker(), number(), number()).prop_map(|(origin, incarnation, sequence)| EventId { origin, incarnation, sequence })
}

/// Ranges with a version in common with this crate's.
fn versions() -> impl Strategy<Value = VersionRange> {
    (0..=BROKER_VERSIONS.max, BROKER_VERSIONS.max..).prop_map(|(min, max)| VersionRange { min, max })
}

fn link_state() -> impl Strategy<Value = LinkState> {
    let end = (broker(), any::<u32>(), number());
    let end = end.prop_map(|(neighbour, cost, nonce)| LinkEnd { neighbour, cost, nonce });
    let parts = (broker(), name(), number(), version(), any::<bool>(), vec(short(), 0..4), vec(end, 0..5));
    parts.prop_map(|(origin, peer_id, start_nonce, version, starting, addresses, links)| LinkState {
        origin,
        peer_id,
        start_nonce,
        version,
        starting,
        addresses,
        links,
    })
}

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![Just(Scope::Nobody), Just(Scope::Anything), announced().prop_map(Scope::Filters)]
}

fn interest() -> impl Strategy<Value = Interest> {
    let parts =
        (number(), number(), any::<bool>(), announced(), announced(), any::<bool>(), any::<u128>().prop_map(Digest));
    parts.prop_map(|(version, scope_version, whole, added, removed, last, digest)| {
        Interest::new(scope_version, InterestPart { version, whole, added, removed, last, digest })
    })
}

fn routed_body() -> impl Strategy<Value = RoutedBody> {
    let payload = prop_oneof![
        interest().prop_map(Payload::Interest),
        number().prop_map(|version| Payload::Resync { version }),
        detach().prop_map(Payload::Detach),
    ];
    prop_oneof![
        (number(), number(), payload).prop_map(|(epoch, sequence, payload)| RoutedBody::Data {
            epoch,
            sequence,
            payload
        }),
        (number(), number()).prop_map(|(epoch, received)| RoutedBody::Ack { epoch, received }),
        number().prop_map(|epoch| RoutedBody::Restart { epoch }),
    ]
}

fn routed() -> impl Strategy<Value = Routed> {
    let life = || (broker(), number()).prop_map(|(broker, incarnation)| Life { broker, incarnation });
    (life(), life(), any::<u16>(), routed_body()).prop_map(|(source, destination, passed, body)| Routed {
        source,
        destination,
        passed,
        body,
    })
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    let held = (broker(), version(), version()).prop_map(|(origin, links, scope)| Held { origin, links, scope });
    prop_oneof![
        (vec(held, 0..6), any::<bool>()).prop_map(|(held, last)| Message::Offer { held, last }),
        Just(Message::Synced),
        Just(Message::SyncedAck),
        link_state().prop_map(|state| Message::LinkState(state.into())),
        (broker(), version(), scope())
            .prop_map(|(origin, version, scope)| Message::Scope(ScopeRecord { origin, version, scope }.into())),
        vec(routed(), 0..4).prop_map(|letters| Message::Routed(Letters(letters))),
        leaf_message().prop_map(Message::Leaf),
    ]
}

fn path() -> impl Strategy<Value = Vec<BrokerId>> {
    vec(broker(), 0..4)
}

fn detach() -> impl Strategy<Value = Detach> {
    (broker(), number(), number(), path()).prop_map(|(leaf, incarnation, epoch, path)| Detach {
        leaf,
        incarnation,
        epoch,
        path,
    })
}

fn leaf_message() -> impl Strategy<Value = LeafMessage> {
    prop_oneof![
        (number(), path(), any::<u32>()).prop_map(|(epoch, previous, table)| LeafMessage::Attach(Attach {
            epoch,
            previous,
            table
        })),
        path().prop_map(LeafMessage::Path),
        interest().prop_map(LeafMessage::Interest),
        (number(), any::<u32>(), path()).prop_map(|(step, brokers, missing)| LeafMessage::Held {
            step,
            brokers,
            missing
        }),
        (number(), scope()).prop_map(|(version, scope)| LeafMessage::Scope { version, scope }),
        number().prop_map(|number| LeafMessage::Renew { number }),
        (number(), number()).prop_map(|(number, lasts_us)| LeafMessage::Lease { number, lasts_us }),
        Just(LeafMessage::Revoke),
        detach().prop_map(LeafMessage::Detach),
    ]
}

fn hello() -> impl Strategy<Value = Hello> {
    let role = prop_oneof![Just(Role::Core), Just(Role::Leaf), Just(Role::Parent)];
    let parts = (versions(), broker(), number(), number(), broker(), number(), short_text(), (role, any::<bool>()));
    parts.prop_map(|(versions, broker, incarnation, start_nonce, dialled_by, dial, software, (role, spare))| Hello {
        versions,
        broker,
        incarnation,
        start_nonce,
        dialled_by,
        dial,
        software,
        role,
        spare,
    })
}

fn hello_refused() -> impl Strategy<Value = HelloRefused> {
    let code = prop_oneof![Just(RefusalCode::Version), Just(RefusalCode::Busy), (7u8..).prop_map(RefusalCode::Other)];
    (code, short_text()).prop_map(|(code, text)| HelloRefused { code, text })
}

fn goodbye() -> impl Strategy<Value = Goodbye> {
    prop_oneof![
        Just(Goodbye::ShuttingDown),
        Just(Goodbye::Silent),
        Just(Goodbye::TooSlow),
        short_text().prop_map(Goodbye::Unreadable),
        short_text().prop_map(Goodbye::Other),
        short().prop_map(|text| Goodbye::Closed(CloseReason::Violation(text))),
        Just(Goodbye::Closed(CloseReason::Duplicate)),
        Just(Goodbye::Closed(CloseReason::Oneself)),
        Just(Goodbye::Closed(CloseReason::OldIncarnation)),
        Just(Goodbye::Closed(CloseReason::NoPath)),
        Just(Goodbye::Closed(CloseReason::Cycle)),
        Just(Goodbye::Closed(CloseReason::Moved)),
        number().prop_map(|limit| Goodbye::Closed(CloseReason::Full { limit })),
        (broker(), name(), name()).prop_map(|(id, held_by, refused)| Goodbye::Closed(CloseReason::IdClash {
            id,
            held_by,
            refused
        })),
    ]
}

fn control() -> impl Strategy<Value = ControlFrame> {
    prop_oneof![
        1 => hello().prop_map(ControlFrame::Hello),
        1 => hello().prop_map(|hello| ControlFrame::HelloAck(HelloAck { version: BROKER_VERSIONS.max, hello })),
        1 => hello_refused().prop_map(ControlFrame::HelloRefused),
        6 => message().prop_map(ControlFrame::Message).boxed(),
        1 => Just(ControlFrame::KeepAlive),
        1 => goodbye().prop_map(ControlFrame::Goodbye),
    ]
}

pub(crate) fn event_frame() -> impl Strategy<Value = EventFrame> {
    // Now and then beyond the size up to which the reader copies.
    let event = prop_oneof![4 => blob(60), 1 => blob(40_000)];
    (any::<u16>(), btree_set(broker(), 1..40), event_id(), event).prop_map(|(hop_limit, destinations, id, event)| {
        EventFrame { hop_limit, destinations: destinations.into_iter().collect(), id, event }
    })
}

fn data() -> impl Strategy<Value = DataFrame> {
    prop_oneof![
        1 => (broker(), number()).prop_map(|(dialled_by, dial)| DataFrame::Hello(DataHello { dialled_by, dial })),
        5 => event_frame().prop_map(DataFrame::Event),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        (name(), filter()).prop_map(|(name, filter)| Command::Subscribe { name, filter }),
        name().prop_map(|name| Command::Unsubscribe { name }),
        (name(), filter()).prop_map(|(name, filter)| Command::Advertise { name, filter }),
        name().prop_map(|name| Command::Unadvertise { name }),
    ]
}

fn request() -> impl Strategy<Value = RequestId> {
    number().prop_map(RequestId)
}

fn client() -> impl Strategy<Value = ClientFrame> {
    let policy = prop_oneof![
        Just(None),
        Just(Some(SlowSubscriber::DropOldest)),
        Just(Some(SlowSubscriber::DropNewest)),
        Just(Some(SlowSubscriber::Disconnect)),
        Just(Some(SlowSubscriber::PushBack)),
    ];
    prop_oneof![
        (versions(), policy, short_text()).prop_map(|(versions, slow_subscriber, software)| ClientFrame::Hello(
            ClientHello { versions, slow_subscriber, software }
        )),
        (request(), command()).prop_map(|(request, command)| ClientFrame::Request { request, command }),
        (request(), blob(60)).prop_map(|(request, event)| ClientFrame::Publish { request, event }),
        request().prop_map(|request| ClientFrame::StatusRequest { request }),
        any::<u32>().prop_map(|deliveries| ClientFrame::Credit { deliveries }),
        goodbye().prop_map(ClientFrame::Goodbye),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let receipt = (event_id(), any::<u32>(), any::<bool>());
    let receipt = receipt.prop_map(|(id, destinations, complete)| Receipt { id, destinations, complete });
    prop_oneof![
        any::<u32>().prop_map(|brokers| Reply::InForce { brokers }),
        vec(broker(), 0..6).prop_map(|missing| Reply::Partial { missing }),
        Just(Reply::Withdrawn),
        receipt.prop_map(Reply::Published),
        Just(Reply::Refused(Refusal::NotAdvertised)),
        name().prop_map(|name| Reply::Refused(Refusal::UnknownName { name })),
        (short(), number()).prop_map(|(what, limit)| Reply::Refused(Refusal::Limit { what, limit })),
        Just(Reply::Refused(Refusal::ShuttingDown)),
    ]
}

fn server_hello() -> impl Strategy<Value = ServerHello> {
    (broker(), any::<u32>(), vec(any::<u16>(), Limit::ALL.len()), short_text()).prop_map(
        |(broker, max_requests, maxima, software)| {
            let limits = Limit::ALL.into_iter().zip(maxima);
            let limits = limits.fold(Limits::default(), |limits, (limit, most)| limits.lowered(limit, most.into()));
            ServerHello { version: 1, broker, max_requests, limits, software }
        },
    )
}

fn server() -> impl Strategy<Value = ServerFrame> {
    let delivery = (event_id(), blob(60), vec(name(), 0..5));
    let delivery =
        delivery.prop_map(|(id, event, subscriptions)| Delivery { id, event, subscriptions: subscriptions.into() });
    prop_oneof![
        server_hello().prop_map(ServerFrame::Hello),
        hello_refused().prop_map(ServerFrame::HelloRefused),
        (request(), reply()).prop_map(|(request, reply)| ServerFrame::Reply { request, reply }),
        (any::<u32>(), 1..=u32::MAX, any::<u32>(), event_id(), any::<bool>()).prop_map(
            |(first, count, destinations, id, complete)| {
                let id = EventId { sequence: id.sequence >> 1, ..id };
                let receipt = Receipt { id, destinations, complete };
                ServerFrame::Receipts { first: RequestId(first.into()), count, receipt }
            }
        ),
        (request(), short()).prop_map(|(request, json)| ServerFrame::Status { request, json }),
        delivery.prop_map(ServerFrame::Delivery),
        goodbye().prop_map(ServerFrame::Goodbye),
    ]
}

/// Any frame of any stream. Boxed, since proptest keeps the trees of all alternatives by value: too much for a test's stack.
pub(crate) fn sample() -> impl Strategy<Value = Sample> {
    prop_oneof![
        control().prop_map(Sample::Control).boxed(),
        data().prop_map(Sample::Data).boxed(),
        client().prop_map(Sample::Client).boxed(),
        server().prop_map(Sample::Server).boxed(),
    ]
}
