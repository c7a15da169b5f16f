//! Brokers and clients of other versions.

use crate::sample::Sample;
use bytes::{BufMut, Bytes, BytesMut};
use enroute_broker::{BrokerId, Role};
use enroute_wire::{
    BROKER_VERSIONS, CLIENT_VERSIONS, ClientFrame, ControlFrame, DataFrame, Frame, Hello, HelloAck, HelloRefused, Kind,
    MAX_TEXT, RefusalCode, ServerFrame, ShortText, Traffic, VersionRange, WireError,
};

fn hello(versions: VersionRange) -> Hello {
    let (broker, dialled_by) = (BrokerId(1), BrokerId(2));
    let software = ShortText::clip("enroute");
    Hello {
        versions,
        broker,
        incarnation: 3,
        start_nonce: 4,
        dialled_by,
        dial: 5,
        software,
        role: Role::Core,
        spare: false,
    }
}

fn frame(kind: Kind, content: &[u8]) -> Frame {
    Frame { kind, content: Bytes::copy_from_slice(content) }
}

#[test]
fn the_highest_common_version_is_spoken() {
    let range = |min, max| VersionRange { min, max };
    assert_eq!(range(1, 3).highest_common(range(2, 5)), Ok(3));
    assert_eq!(range(2, 5).highest_common(range(1, 3)), Ok(3));
    assert_eq!(range(1, 9).highest_common(range(4, 4)), Ok(4));
    assert_eq!(range(1, 1).highest_common(range(1, 1)), Ok(1));
    let (ours, theirs) = (range(1, 2), range(3, 4));
    assert_eq!(ours.highest_common(theirs), Err(WireError::NoCommonVersion { ours, theirs }));
    assert_eq!(theirs.highest_common(ours), Err(WireError::NoCommonVersion { ours: theirs, theirs: ours }));
}

/// Nothing but the range may be looked at: whatever else a future hello contains.
#[test]
fn a_hello_without_a_common_version_is_refused_by_its_range_alone() {
    let theirs = VersionRange { min: 7, max: 9 };
    let content = [7, 0, 9, 0, 0xff, 0xff];
    let broker = ControlFrame::decode(&frame(Kind::Hello, &content)).unwrap_err();
    assert_eq!(broker, WireError::NoCommonVersion { ours: BROKER_VERSIONS, theirs });
    let client = ClientFrame::decode(frame(Kind::ClientHello, &content)).unwrap_err();
    assert_eq!(client, WireError::NoCommonVersion { ours: CLIENT_VERSIONS, theirs });

    let refused = HelloRefused::from(&broker);
    assert_eq!(refused.code, RefusalCode::Version);
    let reason = "no common protocol version: this side speaks 7 to 9, the other 1; upgrade the older of the two";
    assert_eq!(refused.text.as_str(), reason);
    let sample = Sample::Control(ControlFrame::HelloRefused(refused));
    assert_eq!(Sample::from_bytes(Traffic::Control, &sample.to_bytes()), Ok(sample));
}

#[test]
fn other_errors_refuse_a_hello_as_unreadable() {
    let error = ControlFrame::decode(&frame(Kind::Hello, &[1, 0, 1, 0, 5])).unwrap_err();
    assert_eq!(error, WireError::Truncated { kind: Kind::Hello, what: "broker id" });
    let refused = HelloRefused::from(&error);
    assert_eq!(refused.code, RefusalCode::Unreadable);
    assert_eq!(refused.text.as_str(), "a hello frame that ends within its broker id");
}

#[test]
fn a_range_that_is_upside_down_is_malformed() {
    let error = ControlFrame::decode(&frame(Kind::Hello, &[2, 0, 1, 0])).unwrap_err();
    assert!(matches!(error, WireError::Malformed { kind: Kind::Hello, .. }), "{error}");
}

#[test]
fn what_a_later_version_appends_to_a_hello_is_skipped() {
    let newer = hello(VersionRange { min: 1, max: 40 });
    let mut bytes = Sample::Control(ControlFrame::Hello(newer.clone())).to_bytes().split_off(5);
    bytes.extend_from_slice(b"and more");
    assert_eq!(ControlFrame::decode(&frame(Kind::Hello, &bytes)), Ok(ControlFrame::Hello(newer)));
}

/// Hellos of the first version ended before it.
#[test]
fn a_hello_without_a_role_is_that_of_a_core_broker() {
    let core = hello(BROKER_VERSIONS);
    let mut bytes = Sample::Control(ControlFrame::Hello(core.clone())).to_bytes().split_off(5);
    assert!(bytes.ends_with(&[0, 0]));
    bytes.truncate(bytes.len() - 1);
    let read = ControlFrame::decode(&frame(Kind::Hello, &bytes));
    assert_eq!(read, Ok(ControlFrame::Hello(core.clone())), "nor does it say that it can do without the link");
    bytes.truncate(bytes.len() - 1);
    assert_eq!(ControlFrame::decode(&frame(Kind::Hello, &bytes)), Ok(ControlFrame::Hello(core)));
    bytes.put_u8(3);
    let error = ControlFrame::decode(&frame(Kind::Hello, &bytes)).unwrap_err();
    assert_eq!(error, WireError::Malformed { kind: Kind::Hello, what: "unknown role 3".into() });
    bytes.truncate(bytes.len() - 1);
    bytes.extend_from_slice(&[0, 2]);
    let error = ControlFrame::decode(&frame(Kind::Hello, &bytes)).unwrap_err();
    assert_eq!(error, WireError::Malformed { kind: Kind::Hello, what: "2 is neither yes nor no".into() });
}

#[test]
fn an_answer_must_choose_the_highest_common_version() {
    let ack = HelloAck { version: 2, hello: hello(VersionRange { min: 1, max: 2 }) };
    let bytes = Sample::Control(ControlFrame::HelloAck(ack)).to_bytes();
    let error = Sample::from_bytes(Traffic::Control, &bytes).unwrap_err();
    assert_eq!(error.to_string(), "a malformed hello acknowledgement frame: version 2 was chosen instead of 1");
    let error = ServerFrame::decode(frame(Kind::ServerHello, &[2, 0])).unwrap_err();
    assert!(matches!(error, WireError::NoCommonVersion { .. }), "{error}");
}

#[test]
fn a_broker_with_more_limits_than_are_known_is_understood() {
    let mut content = BytesMut::new();
    content.put_u16_le(1);
    content.put_u64_le(77);
    content.put_u32_le(8);
    content.put_u8(200);
    (0..200).for_each(|index| content.put_u64_le(index));
    content.put_u16_le(0);
    let ServerFrame::Hello(hello) = ServerFrame::decode(frame(Kind::ServerHello, &content)).unwrap() else {
        panic!("not a hello")
    };
    assert_eq!(hello.broker, BrokerId(77));
    assert_eq!(hello.limits.maximum(enroute_filter::Limit::ALL[3]), 3);
}

#[test]
fn texts_of_hellos_are_bounded() {
    let mut content = Sample::Control(ControlFrame::Hello(hello(BROKER_VERSIONS))).to_bytes().split_off(5);
    content.truncate(44);
    content.put_u16_le(MAX_TEXT as u16 + 1);
    content.extend_from_slice(&[b'x'; MAX_TEXT + 1]);
    let expected = WireError::TextTooLong { kind: Kind::Hello, what: "software", found: MAX_TEXT + 1, limit: MAX_TEXT };
    assert_eq!(ControlFrame::decode(&frame(Kind::Hello, &content)), Err(expected));
}

#[test]
fn event_frames_of_other_versions_and_modes_are_refused() {
    let decode = |content: &[u8]| DataFrame::decode(frame(Kind::Event, content)).unwrap_err();
    assert_eq!(decode(&[2]), WireError::EventVersion { found: 2, known: 1 });
    assert_eq!(decode(&[1, 1]), WireError::EventMode { found: 1, known: 0 });
    assert!(matches!(decode(&[1, 0, 2]), WireError::Malformed { .. }));
}

/// Slots and extensions that a later version may write are skipped.
#[test]
fn slots_and_extensions_are_skipped() {
    let mut content = BytesMut::from(&[1, 0, 1, 9, 0, 2, 5, 0, 4, 0xac, 0x02, 3, b'e', b'x', b't'][..]);
    (1..=3).for_each(|number| content.put_u64_le(number));
    content.extend_from_slice(b"event");
    let DataFrame::Event(event) = DataFrame::decode(frame(Kind::Event, &content)).unwrap() else {
        panic!("not an event")
    };
    assert_eq!(event.hop_limit, 9);
    assert_eq!(event.destinations[..], [BrokerId(5), BrokerId(9)]);
    assert_eq!((event.id.origin, event.id.incarnation, event.id.sequence), (BrokerId(1), 2, 3));
    assert_eq!(event.event.as_ref(), b"event");
}
