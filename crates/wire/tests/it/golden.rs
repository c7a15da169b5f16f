//! The bytes of every kind of frame, as recorded in `testdata/golden.txt`. They change only if the protocol does.

use crate::sample::{Sample, TRAFFIC};
use bytes::Bytes;
use enroute_broker::{
    AnnouncedFilter, Attach, BrokerId, CloseReason, Command, Delivery, Detach, Digest, EventFrame, EventId, Held,
    Interest, InterestPart, LeafMessage, Letters, Life, LinkEnd, LinkState, Message, Payload, Receipt, Refusal, Reply,
    RequestId, Role, Routed, RoutedBody, Scope, ScopeRecord, Version,
};
use enroute_filter::{Event, Filter, Limit, Limits, Value};
use enroute_wire::{
    ClientFrame, ClientHello, ControlFrame, DataFrame, DataHello, Goodbye, Hello, HelloAck, HelloRefused, Kind,
    RefusalCode, ServerFrame, ServerHello, ShortText, SlowSubscriber, VersionRange,
};
use std::collections::BTreeSet;
use std::fmt::Write;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/golden.txt");

/// Names of cases are single words.
fn cases() -> Vec<(String, Sample)> {
    let mut cases = Vec::new();
    let mut add = |name: &str, sample| cases.push((name.to_string(), sample));
    add("hello", Sample::Control(ControlFrame::Hello(hello())));
    add("hello-ack", Sample::Control(ControlFrame::HelloAck(HelloAck { version: 1, hello: hello() })));
    add("hello-spare", Sample::Control(ControlFrame::Hello(Hello { spare: true, ..hello() })));
    add("hello-leaf", Sample::Control(ControlFrame::Hello(Hello { role: Role::Leaf, ..hello() })));
    let parent = Hello { role: Role::Parent, ..hello() };
    add("hello-ack-parent", Sample::Control(ControlFrame::HelloAck(HelloAck { version: 1, hello: parent })));
    for (name, code) in refusal_codes() {
        let refused = HelloRefused::new(code, "because");
        add(&format!("hello-refused-{name}"), Sample::Control(ControlFrame::HelloRefused(refused)));
    }
    add("keep-alive", Sample::Control(ControlFrame::KeepAlive));
    for (name, message) in messages() {
        add(&format!("message-{name}"), Sample::Control(ControlFrame::Message(message)));
    }
    for (name, message) in leaf_messages() {
        add(&format!("message-leaf-{name}"), Sample::Control(ControlFrame::Message(Message::Leaf(message))));
    }
    for (name, goodbye) in goodbyes() {
        add(&format!("goodbye-{name}"), Sample::Control(ControlFrame::Goodbye(goodbye)));
    }
    let data_hello = DataHello { dialled_by: BrokerId(0x1112131415161718), dial: 3 };
    add("data-hello", Sample::Data(DataFrame::Hello(data_hello)));
    for (name, destinations) in [("one", vec![7]), ("several", vec![0, 1, 0x90, 0x4000, 1 << 63, u64::MAX])] {
        let destinations = destinations.into_iter().map(BrokerId).collect();
        let frame = EventFrame { hop_limit: 0x1234, destinations, id: event_id(), event: event() };
        add(&format!("event-to-{name}"), Sample::Data(DataFrame::Event(frame)));
    }
    for (name, frame) in client_frames() {
        add(name, Sample::Client(frame));
    }
    for (name, frame) in server_frames() {
        add(name, Sample::Server(frame));
    }
    cases
}

fn refusal_codes() -> [(&'static str, RefusalCode); 7] {
    [
        ("version", RefusalCode::Version),
        ("not-allowed", RefusalCode::NotAllowed),
        ("oneself", RefusalCode::Oneself),
        ("shutting-down", RefusalCode::ShuttingDown),
        ("unreadable", RefusalCode::Unreadable),
        ("busy", RefusalCode::Busy),
        ("other", RefusalCode::Other(200)),
    ]
}

fn hello() -> Hello {
    Hello {
        versions: VersionRange { min: 1, max: 0x0203 },
        broker: BrokerId(0x0102030405060708),
        incarnation: 1_700_000_000_000,
        start_nonce: 0xfeedfacecafebeef,
        dialled_by: BrokerId(0x1112131415161718),
        dial: 3,
        software: ShortText::clip("enroute 0.1.0"),
        role: Role::Core,
        spare: false,
    }
}

fn event_id() -> EventId {
    EventId { origin: BrokerId(0x0102030405060708), incarnation: 1_700_000_000_000, sequence: 42 }
}

fn event() -> Bytes {
    let event =
        Event::builder().attribute("kind", "flight").attribute("delay", Value::Int(61)).payload(b"pay".as_slice());
    event.build().unwrap().as_bytes().clone()
}

fn announced(bytes: &'static [u8]) -> AnnouncedFilter {
    AnnouncedFilter(Bytes::from_static(bytes))
}

fn version(sequence: u64) -> Version {
    Version { incarnation: 1_700_000_000_000, sequence }
}

fn messages() -> Vec<(&'static str, Message)> {
    let held = |origin| Held { origin: BrokerId(origin), links: version(9), scope: Version::default() };
    let link_state = LinkState {
        origin: BrokerId(0x0102030405060708),
        peer_id: "12D3KooWpeer".into(),
        start_nonce: 250,
        version: version(251),
        starting: true,
        addresses: vec!["/ip4/127.0.0.1/tcp/4001".into()],
        links: vec![LinkEnd { neighbour: BrokerId(300), cost: 1, nonce: 70_000 }],
    };
    let scope = |scope| Message::Scope(ScopeRecord { origin: BrokerId(5), version: version(2), scope }.into());
    let routed = |body| {
        let source = Life { broker: BrokerId(5), incarnation: 6 };
        let destination = Life { broker: BrokerId(7), incarnation: 8 };
        Message::Routed(Letters(vec![Routed { source, destination, passed: 1, body }]))
    };
    let data = |payload| routed(RoutedBody::Data { epoch: 1, sequence: 2, payload });
    let part = InterestPart {
        version: 3,
        whole: false,
        added: vec![announced(b"added"), announced(b"more")],
        removed: vec![announced(b"gone")],
        last: true,
        digest: Digest(0x0123456789abcdef0123456789abcdef),
    };
    vec![
        ("offer", Message::Offer { held: vec![held(5), held(u64::MAX)], last: true }),
        ("synced", Message::Synced),
        ("synced-ack", Message::SyncedAck),
        ("link-state", Message::LinkState(link_state.into())),
        ("scope-nobody", scope(Scope::Nobody)),
        ("scope-anything", scope(Scope::Anything)),
        ("scope-filters", scope(Scope::Filters(vec![announced(b"one"), announced(b"two")]))),
        ("routed-interest", data(Payload::Interest(Interest::new(4, part)))),
        ("routed-resync", data(Payload::Resync { version: 3 })),
        ("routed-ack", routed(RoutedBody::Ack { epoch: 1, received: 2 })),
        ("routed-restart", routed(RoutedBody::Restart { epoch: 1 })),
        ("routed-detach", data(Payload::Detach(detach()))),
    ]
}

fn detach() -> Detach {
    Detach { leaf: BrokerId(11), incarnation: 12, epoch: 13, path: vec![BrokerId(14), BrokerId(300)] }
}

fn leaf_messages() -> Vec<(&'static str, LeafMessage)> {
    let path = vec![BrokerId(14), BrokerId(300)];
    let part = InterestPart {
        version: 3,
        whole: true,
        added: vec![announced(b"added")],
        removed: Vec::new(),
        last: true,
        digest: Digest(5),
    };
    vec![
        ("attach", LeafMessage::Attach(Attach { epoch: 13, previous: path.clone(), table: 65_536 })),
        ("path", LeafMessage::Path(path)),
        ("interest", LeafMessage::Interest(Interest::new(4, part))),
        ("held", LeafMessage::Held { step: 3, brokers: 5, missing: vec![BrokerId(9)] }),
        ("scope", LeafMessage::Scope { version: 4, scope: Scope::Anything }),
        ("renew", LeafMessage::Renew { number: 7 }),
        ("lease", LeafMessage::Lease { number: 7, lasts_us: 2_000_000 }),
        ("revoke", LeafMessage::Revoke),
        ("detach", LeafMessage::Detach(detach())),
    ]
}

fn goodbyes() -> Vec<(&'static str, Goodbye)> {
    let clash = CloseReason::IdClash { id: BrokerId(1), held_by: "12D3a".into(), refused: "12D3b".into() };
    vec![
        ("shutting-down", Goodbye::ShuttingDown),
        ("violation", Goodbye::Closed(CloseReason::Violation("why".into()))),
        ("duplicate", Goodbye::Closed(CloseReason::Duplicate)),
        ("oneself", Goodbye::Closed(CloseReason::Oneself)),
        ("id-clash", Goodbye::Closed(clash)),
        ("old-incarnation", Goodbye::Closed(CloseReason::OldIncarnation)),
        ("no-path", Goodbye::Closed(CloseReason::NoPath)),
        ("cycle", Goodbye::Closed(CloseReason::Cycle)),
        ("moved", Goodbye::Closed(CloseReason::Moved)),
        ("full", Goodbye::Closed(CloseReason::Full { limit: 4_096 })),
        ("unreadable", Goodbye::Unreadable(ShortText::clip("why"))),
        ("silent", Goodbye::Silent),
        ("too-slow", Goodbye::TooSlow),
        ("other", Goodbye::Other(ShortText::clip("why"))),
    ]
}

fn client_frames() -> Vec<(&'static str, ClientFrame)> {
    let client_hello = |slow_subscriber| {
        let versions = VersionRange { min: 1, max: 2 };
        ClientFrame::Hello(ClientHello { versions, slow_subscriber, software: ShortText::clip("enroute 0.1.0") })
    };
    let request = |command| ClientFrame::Request { request: RequestId(300), command };
    let name = "late flights";
    let filter = Filter::parse("kind = 'flight' and delay >= 60 or kind = 'weather' and sky like 'fog%'").unwrap();
    vec![
        ("client-hello", client_hello(None)),
        ("client-hello-drop-oldest", client_hello(Some(SlowSubscriber::DropOldest))),
        ("client-hello-drop-newest", client_hello(Some(SlowSubscriber::DropNewest))),
        ("client-hello-disconnect", client_hello(Some(SlowSubscriber::Disconnect))),
        ("client-hello-push-back", client_hello(Some(SlowSubscriber::PushBack))),
        ("subscribe", request(Command::Subscribe { name: name.into(), filter })),
        ("unsubscribe", request(Command::Unsubscribe { name: name.into() })),
        ("advertise", request(Command::Advertise { name: name.into(), filter: Filter::always() })),
        ("unadvertise", request(Command::Unadvertise { name: name.into() })),
        ("publish", ClientFrame::Publish { request: RequestId(301), event: event() }),
        ("status-request", ClientFrame::StatusRequest { request: RequestId(302) }),
        ("credit", ClientFrame::Credit { deliveries: 256 }),
        ("client-goodbye", ClientFrame::Goodbye(Goodbye::ShuttingDown)),
    ]
}

fn server_frames() -> Vec<(&'static str, ServerFrame)> {
    let server_hello = ServerHello {
        version: 1,
        broker: BrokerId(0x0102030405060708),
        max_requests: 1024,
        limits: Limits::default().lowered(Limit::Payload, 4096),
        software: ShortText::clip("enroute 0.1.0"),
    };
    let reply = |reply| ServerFrame::Reply { request: RequestId(300), reply };
    let refused = |refusal| reply(Reply::Refused(refusal));
    let receipt = Receipt { id: event_id(), destinations: 2, complete: true };
    let subscriptions = ["a".into(), "late flights".into()].into();
    vec![
        ("server-hello", ServerFrame::Hello(server_hello)),
        ("client-refused", ServerFrame::HelloRefused(HelloRefused::new(RefusalCode::Busy, "too many clients"))),
        ("reply-in-force", reply(Reply::InForce { brokers: 5 })),
        ("reply-partial", reply(Reply::Partial { missing: vec![BrokerId(1), BrokerId(u64::MAX)] })),
        ("reply-withdrawn", reply(Reply::Withdrawn)),
        ("reply-published", reply(Reply::Published(receipt))),
        ("receipts", ServerFrame::Receipts { first: RequestId(301), count: 3, receipt }),
        ("refused-not-advertised", refused(Refusal::NotAdvertised)),
        ("refused-unknown-name", refused(Refusal::UnknownName { name: "x".into() })),
        ("refused-limit", refused(Refusal::Limit { what: "clients".into(), limit: 65_536 })),
        ("refused-shutting-down", refused(Refusal::ShuttingDown)),
        ("status", ServerFrame::Status { request: RequestId(302), json: "{\"id\":\"1\"}".into() }),
        ("delivery", ServerFrame::Delivery(Delivery { id: event_id(), event: event(), subscriptions })),
        ("server-goodbye", ServerFrame::Goodbye(Goodbye::TooSlow)),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn frames_have_the_recorded_bytes_and_are_read_from_them() {
    let mut text = String::from("# One frame a line, length and kind included. Rewritten by UPDATE_EXPECT=1.\n");
    for (name, sample) in cases() {
        writeln!(text, "{name} {}", hex(&sample.to_bytes())).unwrap();
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(FILE, &text).unwrap();
    }
    let recorded = std::fs::read_to_string(FILE).unwrap();
    for (now, before) in text.lines().zip(recorded.lines()) {
        assert_eq!(now, before);
    }
    assert_eq!(text.lines().count(), recorded.lines().count());
    for (line, (name, sample)) in recorded.lines().skip(1).zip(cases()) {
        let (_, bytes) = line.split_once(' ').unwrap();
        assert_eq!(Sample::from_bytes(sample.traffic(), &unhex(bytes)), Ok(sample), "{name}");
    }
}

#[test]
fn every_kind_is_recorded() {
    let recorded: BTreeSet<u8> = cases().iter().map(|(_, sample)| sample.to_bytes()[4]).collect();
    let all: BTreeSet<u8> = Kind::ALL.iter().map(|kind| *kind as u8).collect();
    assert_eq!(recorded, all);
    let places: BTreeSet<String> = cases().iter().map(|(_, sample)| sample.traffic().to_string()).collect();
    assert_eq!(places.len(), TRAFFIC.len());
}
